"""Random queries over folders of files: joins, set operations, limits and subqueries, nested."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 30
_TABLES = {"r": 3, "s": 4, "one": 1}
"""Files of each table; all have the columns id, k and x."""


def write_tables(folder: Path) -> None:
    """The tables, a folder each."""
    for seed, (name, files) in enumerate(_TABLES.items()):
        rng = random.Random(seed)
        columns = {
            "id": [rng.randrange(ROWS) for _ in range(ROWS)],
            "k": [rng.choice((0, 1, 2, 3, None)) for _ in range(ROWS)],
            "x": [rng.choice(("a", "b", "c", "d", "e", None)) for _ in range(ROWS)],
        }
        (folder / name).mkdir()
        table, step = pa.table(columns), ROWS // files
        for place in range(files):
            length = None if place == files - 1 else step
            pq.write_table(table.slice(place * step, length), folder / name / f"{place}.parquet")


@dataclass(frozen=True)
class FolderQuery:
    """A query, and how many of its rows any run gives: ``limit`` of those of ``whole``."""

    sql: str
    whole: str
    limit: int | None


def folder_query(rng: random.Random) -> FolderQuery:
    """A random query. Only its outermost limit may stand without an order of all columns."""
    writer = _Writer(rng)
    rows = writer.rows(rng.choice((1, 2, 2, 3)))
    whole = rng.choice(
        (
            f"SELECT * FROM ({rows}) q",
            f"SELECT * FROM ({rows}) q",
            f"SELECT q.id, q.x FROM ({rows}) q WHERE {writer.predicate('q')}",
            f"SELECT DISTINCT q.k FROM ({rows}) q",
            f"SELECT count(*) AS n, min(q.id) AS m FROM ({rows}) q",
            f"SELECT q.k, count(*) AS n FROM ({rows}) q GROUP BY q.k",
            f"SELECT 1 AS one WHERE EXISTS ({rows})",
        )
    )
    limit = rng.choice((None, None, 1, 3, 20))
    return FolderQuery(whole if limit is None else f"{whole} LIMIT {limit}", whole, limit)


class _Writer:
    """Writes relations with the columns id, k and x."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = count()

    def _name(self) -> str:
        return f"t{next(self._names)}"

    def predicate(self, name: str) -> str:
        """A condition on the rows of a relation, most often with a call."""
        question = self._rng.choice("pqr")
        asks = self._rng.choice(
            (
                f"llm_filter('{question}', {name}.x)",
                f"llm_filter('{question}', {name}.x)",
                f"NOT llm_filter('{question}', {name}.x)",
                f"llm_int('{question}', {name}.x) > 40",
            )
        )
        cheap = self._rng.choice((f"{name}.k < 2", f"{name}.id > 9", f"{name}.x <> 'a'"))
        return self._rng.choice((asks, asks, f"({asks} OR {cheap})", f"{asks} AND {cheap}", cheap))

    def rows(self, depth: int) -> str:
        """A query with the columns id, k and x."""
        if not depth:
            name, table = self._name(), self._rng.choice([*_TABLES])
            where = f" WHERE {self.predicate(name)}" if self._rng.random() < 0.6 else ""
            return f"SELECT {name}.id, {name}.k, {name}.x FROM {table} {name}{where}"
        forms = (self._join, self._join, self._join, self._set, self._limited, self._tested)
        return self._rng.choice(forms)(depth - 1)

    def _join(self, depth: int) -> str:
        a, b = self._name(), self._name()
        kind = self._rng.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"))
        key = self._rng.choice((f"{a}.id = {b}.id", f"{a}.x = {b}.x AND {a}.k = {b}.k"))
        more = f" AND {self.predicate(b)}" if self._rng.random() < 0.4 else ""
        where = f" WHERE {self.predicate(a)}" if self._rng.random() < 0.6 else ""
        return (
            f"SELECT {a}.id, {b}.k, {a}.x FROM ({self.rows(depth)}) {a} "
            f"{kind} ({self.rows(max(0, depth - 1))}) {b} ON {key}{more}{where}"
        )

    def _set(self, depth: int) -> str:
        kind = self._rng.choice(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        a, b = self._name(), self._name()
        return (
            f"SELECT * FROM ({self.rows(depth)}) {a} {kind} "
            f"SELECT * FROM ({self.rows(max(0, depth - 1))}) {b}"
        )

    def _limited(self, depth: int) -> str:
        a, n = self._name(), self._rng.choice((1, 2, 7))
        return f"SELECT * FROM ({self.rows(depth)}) {a} ORDER BY id, k, x LIMIT {n}"

    def _tested(self, depth: int) -> str:
        a, b = self._name(), self._name()
        below = self.rows(max(0, depth - 1))
        test = self._rng.choice(
            (
                f"{a}.id IN (SELECT {b}.id FROM ({below}) {b})",
                f"EXISTS (SELECT 1 FROM ({below}) {b} WHERE {b}.id = {a}.id)",
                f"NOT EXISTS (SELECT 1 FROM ({below}) {b} WHERE {b}.id = {a}.id)",
                f"(EXISTS (SELECT 1 FROM ({below}) {b} WHERE {b}.k = {a}.k) OR {self.predicate(a)})",
            )
        )
        return f"SELECT {a}.id, {a}.k, {a}.x FROM ({self.rows(depth)}) {a} WHERE {test}"
