"""Random tables with keys, NULLs, blanks and duplicates, and a session over them."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
from scripts import Counted

TEXTS = [None, "", "  ", "a", "b", "bb", "Zürich", "東京", "it's", "NULL", "12", "x", "P"]
_NUMBERS = [None, None, 0, 1, 2, 3, 4]
_DAYS = [None, *(datetime.date(2024, 1, day) for day in (1, 9, 20, 31))]


class Stored(NamedTuple):
    """A column of a table: what queries take it for, how it is stored, what it holds."""

    kind: str
    type: pa.DataType
    values: list[object]


_TEXT = Stored("text", pa.string(), [*TEXTS])
_INT = Stored("int", pa.int64(), [*_NUMBERS])

TABLES: dict[str, dict[str, Stored]] = {
    "t": {
        "a": _TEXT,
        "b": Stored("text", pa.string_view(), [*TEXTS]),
        "k": _INT,
        "n": _INT,
        "f": Stored("num", pa.float64(), [None, -1.5, 0.0, 0.25, 2.0]),
        "flag": Stored("bool", pa.bool_(), [None, True, False]),
        "d": Stored("date", pa.date32(), [*_DAYS]),
    },
    "u": {
        "s": _TEXT,
        "k": _INT,
        "m": Stored("int", pa.int32(), [None, 1, 2, 3]),
        "l": Stored("text", pa.large_string(), [*TEXTS[:8], "c"]),
        "ok": Stored("bool", pa.bool_(), [None, True, False]),
    },
    "v": {
        "a": Stored("text", pa.string(), ["a", "b", "bb", "c", None]),
        "k": Stored("int", pa.int64(), [0, 1, 2, 2, 5]),
        "g": Stored("num", pa.decimal128(8, 2), [None, Decimal("1.50"), Decimal("-3.25")]),
        "e": Stored("date", pa.date32(), [*_DAYS]),
    },
}
KEY = "id"
"""Numbers the rows of every table; never NULL."""

VIEWS: dict[str, tuple[str, dict[str, str]]] = {
    "seen": (
        "SELECT id, k, n, a, llm_map('m1', a) AS v, llm_filter('q2', b) AS y FROM t "
        "WHERE id % 3 < 2 AND llm_filter('q1', a)",
        {"k": "int", "n": "int", "a": "text", "v": "text", "y": "bool"},
    ),
    "pairs": (
        "SELECT t.id * 100 + u.id AS id, t.k, u.s, t.b, llm_int('i1', s) AS i "
        "FROM t JOIN u ON t.k = u.k",
        {"k": "int", "s": "text", "b": "text", "i": "int"},
    ),
}
"""Views: what defines them, and their columns beside the key."""

COLUMNS: dict[str, dict[str, str]] = {
    **{name: {c: s.kind for c, s in columns.items()} for name, columns in TABLES.items()},
    **{name: columns for name, (_, columns) in VIEWS.items()},
}
"""The kinds of the columns of every table and view, beside the key."""


def tables(seed: int) -> dict[str, pa.Table]:
    """Tables of 0 to 24 rows, in up to three batches each. Seed 0 gives tables without rows."""
    source = random.Random(seed)
    return {name: _table(source, columns, seed) for name, columns in TABLES.items()}


def _table(source: random.Random, columns: dict[str, Stored], seed: int) -> pa.Table:
    n = source.choice([1, 5, 12, 16, 20, 24]) if seed % 8 else 0
    data = {KEY: pa.array(range(n), pa.int64())}
    for name, stored in columns.items():
        pool = source.sample(stored.values, source.randint(2, len(stored.values)))
        data[name] = pa.array([source.choice(pool) for _ in range(n)], stored.type)
    table = pa.table(data)
    cuts = sorted([0, source.randint(0, n), source.randint(0, n), n])
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(cuts)])


def database(stored: dict[str, pa.Table], **options: object) -> Counted:
    """A session over the tables and the views."""
    counted = Counted(**options)
    for name, table in stored.items():
        counted.add(name, table)
    for name, (query, _) in VIEWS.items():
        counted.session.sql(f"CREATE VIEW {name} AS {query}")
    return counted
