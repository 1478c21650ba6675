"""Scripted models whose answers are a pure function of what is asked, and sessions around them."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.types import Constraint


def hashed(call: bf.Request) -> Value:
    """An answer inside any constraint, from a digest of everything that the call says."""
    said = repr((call.task.form, call.question, call.values, str(call.constraint)))
    number = int.from_bytes(hashlib.blake2s(said.encode(), digest_size=4).digest(), "big")
    return _within(call.constraint, number)


def _within(constraint: Constraint, number: int) -> Value:
    kind = constraint.kind
    if kind == "boolean":
        return number % 2 == 0
    if kind == "integer":
        return number % 7
    if kind == "number":
        return (number % 70) / 4
    if kind == "date":
        return datetime.date(2024, 1, 1) + datetime.timedelta(days=number % 50)
    if kind == "timestamp":
        return datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=number % 50)
    if kind == "choice":
        return constraint.options[number % len(constraint.options)]
    if kind == "list":
        item = constraint.item or Constraint()
        return [_within(item, number // 3 + i) for i in range(number % 3)]
    if kind == "struct":
        return {
            f.name: _within(f.constraint, number // 2 + i) for i, f in enumerate(constraint.fields)
        }
    if constraint.scale is not None:
        low, high = constraint.scale
        return low + (high - low) * (number % 9) / 8
    if constraint.literals:
        return constraint.literals[number % len(constraint.literals)]
    return "abcdefg"[number % 7]


def spoken(call: bf.Request) -> Value:
    """Answers that SQL can give too, said by the question: what tests compare with plain SQL.

    "starts with X", "holds X", "length", "upper" ask about the first value; "first" (the
    smallest option, or row), "size" and "join" about all rows of a context.
    """
    word, _, rest = call.question.partition(" ")
    first = call.values[0] or ""
    if word == "starts":
        return first.startswith(rest.removeprefix("with "))
    if word == "holds":
        return rest in first
    if word == "length":
        return len(first)
    if word == "upper":
        return first.upper()
    if word == "first":
        return min(call.constraint.options or [v or "" for v in call.values])
    if word == "size":
        return len(call.values)
    if word == "join":
        return "|".join(v or "" for v in call.values)
    raise AssertionError(f"no such question: {call.question}")


def vectors(texts: list[str]) -> list[list[float]]:
    """For each text a vector of small whole numbers, from a digest of it."""
    digests = [hashlib.blake2s(text.encode(), digest_size=6).digest() for text in texts]
    return [[byte % 7 - 3 or 1 for byte in digest] for digest in digests]


class Counted:
    """A session with a scripted model, and how many values it was asked."""

    def __init__(self, script: object = hashed, **options: Any) -> None:
        self.model = bf.ScriptedModel(script)  # type: ignore[arg-type]
        embedder = bf.ScriptedEmbedder(vectors)
        self.session = bf.connect(
            self.model, **{"progress": "off", "embedder": embedder, **options}
        )
        self._tables: dict[str, pa.Table] = {}

    def add(self, name: str, table: pa.Table | dict[str, list[object]]) -> Counted:
        self._tables[name] = table if isinstance(table, pa.Table) else pa.table(table)
        self.session.from_arrow(self._tables[name], name=name)
        return self

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a query, in order, as tuples."""
        return tuples(self.session.sql(sql).to_arrow_table())

    def asked(self, sql: str) -> int:
        """The number of values that a query puts to a model that has not answered anything yet.

        Whatever the query, a second run must ask nothing.
        """
        self.session.clear_cache()
        self.model.calls.clear()
        self.session.sql(sql).collect()
        asked = len(self.model.calls)
        self.session.sql(sql).collect()
        assert len(self.model.calls) == asked, "a second run asked again"
        return asked

    def asked_for_a_new_row(self, sql: str) -> Iterator[Counter[str]]:
        """How many values, a question, a query asks that ran before one row came to a table, for
        each table in turn: the table's first row with other texts."""
        self.session.clear_cache()
        self.session.sql(sql).collect()
        for name, table in self._tables.items():
            row = {
                column: _renewed(value)
                for column, value in table.slice(0, 1).to_pylist()[0].items()
            }
            more = pa.concat_tables([table, pa.Table.from_pylist([row], table.schema)])
            self.model.calls.clear()
            self.session.deregister_table(name)
            self.session.from_arrow(more, name=name)
            try:
                self.session.sql(sql).collect()
                yield Counter(call.question for call in self.model.calls)
            finally:
                self.session.deregister_table(name)
                self.session.from_arrow(table, name=name)

    def number(self, sql: str) -> int:
        """The number that a query without calls gives."""
        return int(self.rows(sql)[0][0])  # type: ignore[call-overload, no-any-return]


def both_ways(
    table: pa.Table | dict[str, list[object]], script: object = hashed
) -> tuple[Counted, Counted]:
    """A session that plans and one that asks about every row, with ``table`` as ``t``."""
    planned, plain = Counted(script), Counted(script, planner=False)
    return planned.add("t", table), plain.add("t", table)


def _renewed(value: object) -> object:
    """A value like this one, if it is text or texts: one that no table holds."""
    if isinstance(value, list):
        return [_renewed(item) for item in value]
    return f"{value} anew" if isinstance(value, str) else value


def tuples(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows of a table; columns by position, so that two may share a name."""
    columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
    if not columns:
        return [()] * table.num_rows
    return [tuple(map(comparable, row)) for row in zip(*columns, strict=True)]


def comparable(value: object) -> object:
    """A value that is equal to itself, and nearly equal ones to each other."""
    if isinstance(value, list):
        return tuple(map(comparable, value))
    if isinstance(value, float):
        return "NaN" if value != value else round(value, 9)
    return value


def unordered(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The rows in an order of their own, to compare results whose order nothing fixes."""
    return sorted(rows, key=repr)
