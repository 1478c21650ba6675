"""Names of columns in the verbs of frames, in another letter case than the columns have.

As in SQL (names_in_text.py), a name that DataFusion does not find is the only column that is equal
but for letter case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, Expr
from datafusion.expr import SortExpr

from blendfusion.datafusion.columns import Column, column_of, columns_of
from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.language.query_text.error_places import either
from blendfusion.run.hooks import Verb
from blendfusion.services.letter_case import case_sensitive_verbs
from blendfusion.services.letter_case.expression_columns import with_columns
from blendfusion.services.letter_case.names_in_text import Column as Named
from blendfusion.services.letter_case.names_in_text import Table, in_any_case
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    pass


class Names:
    """The columns of frames: of one, or of those that a join joins."""

    def __init__(self, *frames: DataFrame) -> None:
        self.columns = [column for frame in frames for column in columns_of(frame)]

    def meant_column(self, column: Column) -> Column:
        """The column that has exactly the name, or else the only one that is equal but for case;
        ``column`` itself for none."""
        path = column.path
        within = [c for c in self.columns if c.path[len(c.path) - len(path) :] == path]
        found = [c for c in within if c.name == column.name]
        found = found or [c for c in within if c.name.lower() == column.name.lower()]
        names = list(dict.fromkeys(c.name for c in found))
        if not names:
            return column
        if len(names) > 1:
            message, hint = either(column.name, names)
            raise QueryError(message, hint=hint)
        return Column(names[0], found[0].relation if path else "")


def respells_first(verb: Verb) -> bool:
    """Whether DataFusion raises nothing for a name that this verb does not find."""
    given = (*verb.args, *verb.kwargs.values())
    return verb.method in _SILENT or any(map(_is_qualified, given))


def respell_text(plan: DataFrame, text: str) -> str:
    """An SQL expression over ``plan`` with the names that were meant."""
    return _text(Names(plan), text)


def respell_columns(frame: DataFrame, names: Sequence[str]) -> list[str]:
    """The names of columns that were meant by exact names."""
    known = Names(frame)
    return [known.meant_column(Column(name)).name for name in names]


# --- verbs ---------------------------------------------------------------------------------------

Spelling = Callable[[Names, str], str]


def respell_verb(verb: Verb) -> Verb:
    """The verb with the names that were meant."""
    otherwise = _OTHERWISE.get(verb.method)
    if otherwise is not None:
        given = inspect.signature(verb.method).bind(verb.below, *verb.args, **verb.kwargs)
        _, *named = given.arguments.items()
        return otherwise(verb, dict(named))
    others = [a for a in (*verb.args, *verb.kwargs.values()) if isinstance(a, DataFrame)]
    names = Names(verb.below, *others)
    strings = _STRINGS.get(verb.method.__name__, lambda _, text: text)
    args = tuple(_argument(verb, names, strings, a) for a in verb.args)
    kwargs = {key: _argument(verb, names, strings, a) for key, a in verb.kwargs.items()}
    return replace(verb, args=args, kwargs=kwargs)


def _argument(verb: Verb, names: Names, strings: Spelling, given: Any) -> Any:
    if isinstance(given, str):
        return strings(names, given)
    if isinstance(given, Expr):
        return _expression(given, names, verb)
    if isinstance(given, SortExpr):
        key = _expression(given.expr(), names, verb)
        return SortExpr(key, ascending=given.ascending(), nulls_first=given.nulls_first())
    if isinstance(given, list | tuple):
        return [_argument(verb, names, strings, each) for each in given]
    return given


def _expression(given: Expr, names: Names, verb: Verb) -> Expr:
    engine = verb.below.engine
    engine.calls.know(engine, str(given))
    try:
        return with_columns(given, names.meant_column, engine.tables)
    except BlendFusionError:
        raise
    except Exception:  # a subquery, or a function that is not registered: DataFusion's error stays
        return given


def _name(names: Names, text: str) -> str:
    column = column_of(text)
    meant = None if column is None else names.meant_column(column)
    return text if meant is None or meant == column else meant.sql


def _text(names: Names, text: str) -> str:
    """An SQL expression with the names that were meant."""
    relations: dict[str, list[str]] = {}
    for column in names.columns:
        relations.setdefault(column.table or "\x00", []).append(column.name)
    before, behind = "SELECT ", f" FROM {', '.join(map(quoted_name, relations))}"

    def tables(path: Sequence[str]) -> list[Table]:
        listed = relations.get(path[-1], ())
        return [Table(tuple(path), tuple(map(Named, listed)))]

    try:
        found = in_any_case(f"{before}{text}{behind}", tables)
    except QueryError as problem:
        problem.span = None  # it is in a text that the user did not write
        raise
    return text if found is None else found.sql[len(before) : -len(behind)]


_STRINGS: Mapping[str, Spelling] = {
    **dict.fromkeys(("select", "drop", "sort", "sort_by", "aggregate", "distinct_on"), _name),
    **dict.fromkeys(("unnest_columns", "repartition_by_hash"), _name),
    **dict.fromkeys(("_select_texts", "__getitem__"), _text),
}
"""How verbs read their texts; of others, a text is no name of a column."""


def _respell_rename(verb: Verb, given: dict[str, Any]) -> Verb:
    old = _name(Names(verb.below), given["old_name"])
    return replace(verb, args=(), kwargs={**given, "old_name": old})


def _cast(verb: Verb, given: dict[str, Any]) -> Verb:
    names = Names(verb.below)
    mapping = {_name(names, name): type_ for name, type_ in given["mapping"].items()}
    return replace(verb, args=(), kwargs={"mapping": mapping})


def _respell_fill(verb: Verb, given: dict[str, Any]) -> Verb:
    names, subset = Names(verb.below), given.get("subset")
    if subset is not None:
        subset = [names.meant_column(Column(name)).name for name in subset]
    method = getattr(case_sensitive_verbs, verb.method.__name__)
    return replace(verb, method=method, args=(), kwargs={**given, "subset": subset})


def _respell_join(verb: Verb, given: dict[str, Any]) -> Verb:
    on = given.pop("on", None)
    sides = {"left_on": verb.below, "right_on": given["right"]}
    if given.get("join_keys") or isinstance(on, tuple):
        return verb
    for key, frame in sides.items():
        names, keys = Names(frame), given.get(key) or on or ()
        given[key] = [_name(names, n) for n in ([keys] if isinstance(keys, str) else keys)]
    quoted = any('"' in name for name in given["left_on"])
    method = case_sensitive_verbs.join if quoted else verb.method
    return replace(verb, method=method, args=(), kwargs=given)


_OTHERWISE: Mapping[Callable[..., DataFrame], Callable[[Verb, dict[str, Any]], Verb]] = {
    DataFrame.with_column_renamed: _respell_rename,
    DataFrame.cast: _cast,
    DataFrame.fill_null: _respell_fill,
    DataFrame.fill_nan: _respell_fill,
    DataFrame.join: _respell_join,
}
_SILENT = {DataFrame.drop, DataFrame.with_column_renamed, DataFrame.cast, DataFrame.join}
"""The verbs that raise nothing for a name that they do not find."""


def _is_qualified(given: Any) -> bool:
    """Whether an argument may name a column with its relation, which no verb looks up."""
    if isinstance(given, list | tuple):
        return any(map(_is_qualified, given))
    given = given.expr() if isinstance(given, SortExpr) else given
    return isinstance(given, Expr) and "." in str(given)
