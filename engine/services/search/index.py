"""One index in a session: the served version, opened at its first use."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from datafusion import SessionContext

from blendfusion.datafusion.error_translation import translate_error
from blendfusion.datafusion.substrait_io import batches_of
from blendfusion.errors import ModelNotFound, QueryError
from blendfusion.language.query_text.read_only import READING
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.planner.ir.lineage import Column
from blendfusion.planner.ir.search_tables import MODES, Mode, Search
from blendfusion.redaction import Redaction
from blendfusion.services.search.build import open_dataset
from blendfusion.services.search.folder import Folder
from blendfusion.services.search.snapshot import Snapshot, with_scores
from blendfusion.udfs.declare.arguments import sql_string

MOST_ROWS = 10_000
"""Maximum rows of one search; for more, scan the table."""
MOST_RANKED_ROWS = 200_000
"""Maximum rows of an index whose vectors are read automatically for a LIMIT, which takes 2 s."""


class Index:
    """A built index. Another process may update it; searches see the new rows after the update."""

    def __init__(self, name: str, path: Path, embedder: Callable[[], Embedder]) -> None:
        self.name = name
        self.folder = Folder(path)
        self._embedder = embedder
        self._snapshot: Snapshot | None = None
        self._stamp: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Index({self.name!r}, {str(self.folder.path)!r})"

    @property
    def schema(self) -> pa.Schema:
        """The columns of a search's result."""
        return with_scores(self.snapshot().rows_schema)

    def search(self, search: Search, queries: Sequence[str]) -> list[pa.Table]:
        """The best rows for each query, best first; none for a blank one."""
        embedder = None if search.mode == "text" else self._checked_embedder()
        for _ in range(2):
            snapshot = self.snapshot()
            try:
                return snapshot.search(search, queries, embedder)
            except (OSError, ValueError) as problem:
                # A writer may have dropped the files of an old version.
                failed = problem
                if not self._moved_on():
                    break
        raise QueryError(f"{self._place}: {_without_prefix(str(failed))}") from failed

    def check(self, query: str | None, k: object, mode: object, where: object) -> Search:
        """A search with these arguments; mode None means the best mode of the index. Raises
        QueryError for invalid arguments."""
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_ROWS:
            raise QueryError(
                f"llm_search: k => {k!r} is not possible",
                hint=f"k is a whole number from 1 to {MOST_ROWS:,}.",
            )
        modes = self._modes()
        if mode is None:
            mode = modes[-1]
        if not isinstance(mode, str) or mode not in MODES:
            raise QueryError(
                f"llm_search: mode => {mode!r} is not possible",
                hint=f"Choose one of {', '.join(map(repr, MODES))}.",
            )
        if mode not in modes:
            raise self._lacks(mode)
        if mode != "text":
            self._checked_embedder()
        if where is None:
            where = ""
        if not isinstance(where, str):
            raise QueryError(
                f"llm_search: where => {where!r} is not possible",
                hint="A predicate over the columns of the index, as text: where => 'year > 2000'.",
            )
        if where:
            self._check_filter(where)
        chosen: Mode = mode
        return Search(self.name, query, k, chosen, where)

    def _modes(self) -> tuple[Mode, ...]:
        """The modes that are possible, the best one last."""
        return ("text",) if self.snapshot().state.embedder is None else MODES

    def _lacks(self, mode: str) -> QueryError:
        return QueryError(
            f"{self._place} has no vectors, which mode => '{mode}' needs",
            hint="Use mode => 'text', or build it in a session with an embedder.",
        )

    def _check_filter(self, where: str) -> None:
        """Raises QueryError if ``where`` is not a predicate over the columns of the rows."""
        snapshot = self.snapshot()
        scratch = SessionContext()
        scratch.register_record_batches("rows", [batches_of(snapshot.rows_schema.empty_table())])
        try:
            # Lance panics on unknown functions.
            scratch.sql(f"SELECT 1 FROM rows WHERE ({where}\n)", READING)
            snapshot.check_filter(where)
        except Exception as problem:
            found = translate_error(problem, scratch, where, Redaction("on"))
            raise QueryError(
                f"llm_search: where => {sql_string(where)}: {_without_prefix(found.message)}",
                hint=found.hint and _without_prefix(found.hint),
            ) from problem

    def serves(self, column: Column) -> bool:
        """Whether the index has the vectors of the texts in this table column, by the session's
        embedder, as far as it is up to date. Its table is the one from which it was built by name,
        or else the one with its name."""
        try:
            state = self.snapshot().state
            return (
                state.columns == (column.column,)
                and (state.table or self.name) == column.table
                and state.rows <= MOST_RANKED_ROWS
                and state.embedder is not None
                and state.embedder == self._embedder().fingerprint
            )
        except (QueryError, ModelNotFound):
            return False

    def snapshot(self) -> Snapshot:
        """The served version. Raises QueryError if there is none."""
        with self._lock:
            stamp = self.folder.stamp()
            if self._snapshot is None or stamp != self._stamp:
                self._snapshot, self._stamp = self._open(), stamp
            return self._snapshot

    def _moved_on(self) -> bool:
        with self._lock:
            moved = self.folder.stamp() != self._stamp
            self._snapshot = None
            return moved

    def _open(self) -> Snapshot:
        state = self.folder.state()
        dataset = None
        if state is not None:
            dataset = open_dataset(self.folder.dataset(state.dataset), state.version)
        if state is None or dataset is None:
            raise QueryError(
                f"there is no index in '{self.folder.path}'",
                hint=f"Build it: session.index('{self.name}', columns=[…], path=…).",
            )
        return Snapshot(dataset, state)

    def _checked_embedder(self) -> Embedder:
        embedder = self._embedder()
        state = self.snapshot().state
        if state.embedder != embedder.fingerprint:
            raise QueryError(
                f"{self._place} has vectors of {state.embedder_name}, "
                f"and this session's embedder is {embedder.name}",
                hint="Connect with that embedder, or rebuild the index: session.index(…).",
            )
        return embedder

    @property
    def _place(self) -> str:
        return f"the index '{self.name}' in '{self.folder.path}'"


def _without_prefix(words: str) -> str:
    """Lance's message without the place in its source."""
    return re.sub(r"^Invalid user input: |, /\S+\.rs:\d+:\d+", "", words)
