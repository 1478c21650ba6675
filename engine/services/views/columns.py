"""Columns of tables that hold answers: added in one step, and kept fresh.

A column has a folder beside the views:

```
blendfusion_views/.columns/
  reviews%2etopic/
    column.json        its table, its place and its expression
    answers.sqlite     the answers so far: a backfill that was killed goes on from there
    answers.parquet    the provenance of the column: one row for each question and value
    writing            a lock, held during a backfill
```
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from blendfusion.datafusion.arrow_layouts import plain_schema
from blendfusion.errors import QueryError, connect_with
from blendfusion.files.answer_columns import AnsweredTable, Compute
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.models.protocol.gate import Unfit, object_of
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.places.whole_file import replacing, write_private
from blendfusion.places.write_lock import write_lock
from blendfusion.services import parts
from blendfusion.services.views.drift import Draw
from blendfusion.services.views.folder import escape
from blendfusion.services.views.kept_answers import UNLIMITED_MB, store_of
from blendfusion.services.views.lance_columns import LanceColumns
from blendfusion.types import Answer, Task
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.views.registered_tables import RegisteredTables

_FILE, _FOLDER, _NUMBER = "column.json", ".columns", "row number"
_PROVENANCE = pa.schema(
    [
        *(("question", pa.string()), ("values", pa.list_(pa.string())), ("answer", pa.string())),
        *(("probability", pa.float64()), ("model", pa.string()), ("fingerprint", pa.string())),
        ("first_version", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class ModelColumn:
    """A column of answers, as it was declared."""

    table: str
    column: str
    place: str
    """The folder or URI of the table, or its database."""
    expression: str
    """SQL over the columns of one row."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill that is done."""

    column: ModelColumn
    version: int
    """The version of the table that readers see now; 0 for a table of a database."""
    rows: int
    """Rows whose value is another one than before."""
    values: int
    """How many values were asked."""
    provenance: Path
    """The side table: question, values, answer, probability and model of each."""


class _Answers(Draw):
    """Notes every answer of a backfill."""

    def __init__(self) -> None:
        super().__init__(0, Random())
        self.rows: dict[tuple[str, Task, Values], tuple[CachedModel, Answer]] = {}

    def note(self, model: CachedModel, task: Task, found: Mapping[Values, Answer]) -> None:
        for values, answer in found.items():
            self.rows[model.fingerprint, task.in_full, values] = model, answer

    note_new = note


class ModelColumns:
    """The columns of answers in the folder of a session."""

    def __init__(self, session: RegisteredTables) -> None:
        self._session = session

    def _path(self, table: str, column: str) -> Path:
        folder = Path(self._session.options.views_folder).expanduser().absolute()
        return folder / _FOLDER / escape(f"{table}.{column}")

    def _table(self, name: str) -> AnsweredTable | None:
        """The table ``name`` of the session; None for one that gets no column."""
        place = self._session.lance_place(name)
        if place is not None:
            return LanceColumns(self._session, name, place)
        if "." not in name and self._session.version_of(name) is None:
            return None  # another table has the name of one of a lake
        tables = (table_of(self._session, name) for table_of in parts("columns"))
        return next((table for table in tables if table is not None), None)

    def add(self, table: str, column: str, expression: str) -> Backfill:
        """Add a column of answers to a table of Lance, Delta or a database. Raises QueryError for
        another table, a name that is taken, and an expression of more than one row."""
        found = self._table(table)
        if found is None:
            raise QueryError(
                f"no column can be added to {table}: it is no table of Lance, Delta Lake or an "
                "attached database",
                hint="CREATE MATERIALIZED VIEW v AS SELECT *, llm_…(…) AS topic FROM … keeps answers "
                "beside any table.",
            )
        declared = ModelColumn(table, column, found.place, expression)
        if column in found.schema.names:
            raise QueryError(
                f"{table} has a column '{column}' already",
                hint=f"REFRESH COLUMN {table}.{column} brings one of answers up to date.",
            )
        field = self._field(declared, found.schema)
        with self._lock(declared) as path:
            (path / _FILE).unlink(missing_ok=True)
            write_private(path / _FILE, (json.dumps(asdict(declared), indent=1) + "\n").encode())
            return self._fill(found, declared, path, field, found.add)

    def refresh(self, table: str, column: str) -> Backfill:
        """Bring a column of answers up to date after rows were appended or changed: one new
        version, or none. Raises QueryError for a column that was not added here."""
        declared = self._load(table, column)
        found = self._table(table)
        if found is None or found.place != declared.place:
            raise QueryError(
                f"{table} is not the table that got the column '{column}'",
                hint=f"That one lies in {declared.place}.",
            )
        with self._lock(declared) as path:
            if column not in found.schema.names:
                raise QueryError(
                    f"{table} has no column '{column}' any more",
                    hint=f"ALTER TABLE {table} ADD COLUMN {column} AS ({declared.expression}).",
                )
            field = found.schema.field(column)
            return self._fill(found, declared, path, field, found.refresh)

    def _fill(
        self,
        table: AnsweredTable,
        declared: ModelColumn,
        path: Path,
        field: pa.Field,
        change: Callable[[pa.Field, Sequence[str], Compute], int],
    ) -> Backfill:
        """Carry out a change of a table whose column's lock is held."""
        before = self._session.ledger.usage.values
        with self._answers(path) as answers:
            compute = partial(self._values, declared, field)
            rows = change(field, self._read(declared, table.schema), compute)
        provenance = path / "answers.parquet"
        _write_provenance(provenance, answers, table.version)
        table.show()
        values = self._session.ledger.usage.values - before
        return Backfill(declared, table.version, rows, values, provenance)

    def _load(self, table: str, column: str) -> ModelColumn:
        file = self._path(table, column) / _FILE
        shape = dict.fromkeys(("table", "column", "place", "expression"), str)
        try:
            return ModelColumn(**object_of(file.read_bytes(), shape))
        except (OSError, Unfit, TypeError) as problem:
            raise QueryError(
                f"'{table}.{column}' is no column of answers that was added here",
                hint=f"ALTER TABLE {table} ADD COLUMN {column} AS (llm_…(…)) adds one.",
            ) from problem

    @contextmanager
    def _lock(self, declared: ModelColumn) -> Iterator[Path]:
        path = self._path(declared.table, declared.column)
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as problem:
            raise QueryError(
                f"no answers can be kept in '{path}': {problem.strerror or problem}",
                hint=f"Name a folder for views: {connect_with(views_folder='…')}.",
            ) from problem
        with write_lock(path / "writing"):
            yield path

    @contextmanager
    def _answers(self, path: Path) -> Iterator[_Answers]:
        kept, noted = SqliteStore(path / "answers.sqlite", limit_mb=UNLIMITED_MB), _Answers()
        try:
            with self._session.models.answering_from(partial(store_of, kept=kept, draw=noted)):
                yield noted
        finally:
            kept.close()

    # --- one batch -------------------------------------------------------------------------------

    def _read(self, declared: ModelColumn, schema: pa.Schema) -> list[str]:
        """The columns that an expression may read, at least one."""
        words = {token.text.lower() for token in TokenTree(declared.expression).tokens}
        return [name for name in schema.names if name.lower() in words] or schema.names[:1]

    def _field(self, declared: ModelColumn, schema: pa.Schema) -> pa.Field:
        """The field of a column. Raises QueryError for an expression of more than one row."""
        tree = TokenTree(declared.expression)
        frame = self._frame(declared, schema.empty_table())
        whole = [c.name for c in frame.prepared.calls if c.ingredient.kind.whole_column]
        if "OVER" in tree.words or whole:
            raise QueryError(
                "a column of answers is made row by row, and this expression reads other rows",
                hint="Keep the query as a view: CREATE MATERIALIZED VIEW v AS SELECT ….",
            )
        return plain_schema(frame.schema()).field(0).with_name(declared.column).with_nullable(True)

    def _frame(self, declared: ModelColumn, rows: pa.Table) -> Frame:
        numbered = rows.append_column(_NUMBER, pa.array(range(len(rows)), pa.int64()))
        own = self._session.new_table(numbered)
        alias = quoted_name(declared.table.rpartition(".")[2])
        text = f"SELECT ({declared.expression}) AS value FROM $rows AS {alias} ORDER BY {quoted_name(_NUMBER)}"
        frame: Frame = self._session.sql(text, rows=own)
        return frame

    def _values(
        self, declared: ModelColumn, field: pa.Field, batch: pa.RecordBatch | pa.Table
    ) -> pa.Array:
        """The values of the rows of a batch, in order."""
        rows = pa.table(batch)
        found = self._frame(declared, rows).to_arrow_table().column(0).cast(field.type)
        if len(found) != len(rows):
            raise QueryError("the expression gives more or fewer values than rows")
        whole = found.combine_chunks()
        return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _write_provenance(file: Path, answers: _Answers, version: int) -> None:
    """Write the side table; a value that it has already keeps its first version."""
    known: dict[tuple[str, str, tuple[Any, ...]], int] = {}
    if file.is_file():
        for row in pq.read_table(file).to_pylist():
            known[row["fingerprint"], row["question"], tuple(row["values"])] = row["first_version"]
    rows: Sequence[dict[str, Any]] = [
        {
            "question": task.question,
            "values": list(values),
            "answer": answer.text,
            "probability": answer.probability,
            "model": model.name,
            "fingerprint": fingerprint,
            "first_version": known.get((fingerprint, task.question, tuple(values)), version),
        }
        for (fingerprint, task, values), (model, answer) in answers.rows.items()
    ]
    with replacing(file) as part:
        pq.write_table(pa.Table.from_pylist(list(rows), _PROVENANCE), part)
