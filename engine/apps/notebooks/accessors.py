"""``df.llm``: the functions that ask a model on pandas and Polars frames."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from datafusion import Expr, col

from blendfusion.apps.notebooks.frame_namespace import add_namespaces
from blendfusion.entry_points import connect
from blendfusion.errors import ArgumentError, QueryError, close_matches
from blendfusion.files.foreign_tables import check_types, table_of_pandas
from blendfusion.frame import Frame
from blendfusion.session import Session
from blendfusion.udfs.register import python_functions as functions

_ROW, _ANSWER = "__row", "__answer"
_session: Session | None = None


def add_accessors(session: Session | None = None) -> None:
    """Add ``llm`` to the frames of pandas and Polars, as ``import blendfusion`` does.

    It does not matter which is imported first. ``session`` answers the questions from now on; None:
    a session of ``bf.connect()``, opened at the first question.

    >>> import pandas
    >>> add_accessors(connect(ScriptedModel(lambda call: "good" in call.values[0])))
    >>> pandas.DataFrame({"text": ["good", "bad"]}).llm.filter("Is it good?", "text")
       text
    0  good
    """
    global _session
    _session = session or _session
    add_namespaces()


def _default() -> Session:
    global _session
    _session = _session or connect()
    return _session


def sql(query: str, **arguments: Any) -> Frame:
    """As ``Session.sql``, in the session of ``add_accessors``; without one, in a session of
    ``bf.connect()``, which is opened for the first query.

    >>> import pandas
    >>> df = pandas.DataFrame({"n": [1, 2]})
    >>> sql("SELECT sum(n) AS total FROM $df", df=df).to_pylist()
    [{'total': 3}]
    """
    return _default().sql(query, **arguments)


class _Accessor:
    """Asks about the rows of one frame. Each method runs at once, and its answers are in the order
    of the rows; ``{column}`` in a question names a column that no argument has to name again.
    ``session`` is another one than that of ``add_accessors``, ``options`` are those of the call."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def map(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """The answer for each row, as a series: ``bf.llm_map``. ``returns`` gives their type."""
        call = functions.llm_map(question, *self._columns(question, columns), **options)
        return self._series(self._answers(call, session))

    def filter(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """The rows with a yes: ``bf.llm_filter``."""
        call = functions.llm_filter(question, *self._columns(question, columns), **options)
        return self._keep([answer is True for answer in self._answers(call, session).to_pylist()])

    def int(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """The whole number for each row, as a series: ``bf.llm_int``."""
        call = functions.llm_int(question, *self._columns(question, columns), **options)
        return self._series(self._answers(call, session))

    def float(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """The number for each row, as a series: ``bf.llm_float``."""
        call = functions.llm_float(question, *self._columns(question, columns), **options)
        return self._series(self._answers(call, session))

    def bool(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """Yes or no for each row, as a series: ``bf.llm_bool``."""
        call = functions.llm_bool(question, *self._columns(question, columns), **options)
        return self._series(self._answers(call, session))

    def date(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """The date for each row, as a series: ``bf.llm_date``."""
        call = functions.llm_date(question, *self._columns(question, columns), **options)
        return self._series(self._answers(call, session))

    def text(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """The text for each row, as a series: ``bf.llm_text``."""
        call = functions.llm_text(question, *self._columns(question, columns), **options)
        return self._series(self._answers(call, session))

    def classify(
        self, column: str, labels: Sequence[str], *, session: Session | None = None, **options: Any
    ) -> Any:
        """The label of each row, as a series: ``bf.llm_classify``."""
        call = functions.llm_classify(self._known_column(column), labels, **options)
        return self._series(self._answers(call, session))

    def score(
        self, question: str, *columns: str, session: Session | None = None, **options: Any
    ) -> Any:
        """The degree for each row, as a series: ``bf.llm_score``."""
        call = functions.llm_score(question, *self._columns(question, columns), **options)
        return self._series(self._answers(call, session))

    def extract(
        self, column: str, schema: str, *, session: Session | None = None, **options: Any
    ) -> Any:
        """The fields of ``schema`` for each row, as a frame: ``bf.llm_extract``."""
        call = functions.llm_extract(self._known_column(column), schema, **options)
        return self._frame(self._answers(call, session))

    def sql(self, query: str, *, session: Session | None = None, **options: Any) -> Any:
        """The result of a query over this frame, which it names ``$df``, as a frame of the same
        kind. It may name other frames by their variables."""
        found = (session or _default()).sql(query, df=self._data, **options)
        return self._whole(found.to_arrow_table())

    def _columns(self, question: str, columns: Sequence[str]) -> Sequence[str]:
        named = columns or re.findall(r"(?<!\{)\{(\w+)\}", question)
        if not named:
            raise ArgumentError(
                "no column is named", hint="Name one: df.llm.filter('Is it good?', 'text')."
            )
        return list(dict.fromkeys(map(self._known_column, named)))

    def _known_column(self, column: object) -> str:
        if not isinstance(column, str | builtins.int):
            raise ArgumentError(
                f"a column is given by its name, not as {type(column).__name__}",
                hint="For example df.llm.filter('Is it good?', 'text').",
            )
        column, names = str(column), self._names()
        if column not in names:
            raise QueryError(f"unknown column '{column}'", hint=close_matches(column, names))
        return column

    def _answers(self, call: Expr, session: Session | None) -> pa.ChunkedArray:
        """The answer for each row, in the order of the rows."""
        rows = self._arrow()
        rows = rows.append_column(_ROW, pa.array(range(len(rows)), pa.int64()))
        frame = (
            (session or _default()).new_table(rows).select(col(f'"{_ROW}"'), call.alias(_ANSWER))
        )
        return frame.to_arrow_table().sort_by(_ROW).column(_ANSWER)

    def _names(self) -> list[str]:
        return [str(name) for name in self._data.columns]

    def _arrow(self) -> pa.Table:
        raise NotImplementedError

    def _keep(self, mask: list[builtins.bool]) -> Any:
        raise NotImplementedError

    def _series(self, answers: pa.ChunkedArray) -> Any:
        raise NotImplementedError

    def _frame(self, answers: pa.ChunkedArray) -> Any:
        return self._whole(pa.Table.from_struct_array(answers))

    def _whole(self, table: pa.Table) -> Any:
        raise NotImplementedError


class PandasAccessor(_Accessor):
    """``df.llm`` of a pandas frame; results keep its index."""

    def _arrow(self) -> pa.Table:
        return table_of_pandas(self._data, preserve_index=False)

    def _keep(self, mask: list[builtins.bool]) -> Any:
        return self._data.iloc[[place for place, kept in enumerate(mask) if kept]]

    def _series(self, answers: pa.ChunkedArray) -> Any:
        return answers.to_pandas().set_axis(self._data.index).rename(None)

    def _frame(self, answers: pa.ChunkedArray) -> Any:
        return super()._frame(answers).set_axis(self._data.index)

    def _whole(self, table: pa.Table) -> Any:
        return table.to_pandas()


class PolarsAccessor(_Accessor):
    """``df.llm`` of a Polars frame, also of a lazy one: each method collects it, and returns frames
    as lazy ones."""

    @cached_property
    def _eager(self) -> Any:
        return self._data.lazy().collect()  # of a frame that is not lazy, itself

    def _names(self) -> list[str]:
        return list(self._data.collect_schema().names())

    def _arrow(self) -> pa.Table:
        check_types(self._eager)
        return self._eager.to_arrow()

    def _keep(self, mask: list[builtins.bool]) -> Any:
        return self._like(self._eager.filter(mask))

    def _series(self, answers: pa.ChunkedArray) -> Any:
        return sys.modules["polars"].from_arrow(answers).alias("")

    def _whole(self, table: pa.Table) -> Any:
        return self._like(sys.modules["polars"].from_arrow(table))

    def _like(self, frame: Any) -> Any:
        """``frame``, lazy if the accessor's own is."""
        return frame.lazy() if hasattr(self._data, "collect") else frame
