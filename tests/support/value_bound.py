"""The fewest values that a query can ask, from its result under every combination of answers.

A query is a template in which ``q1(a.x)`` is a yes/no question about a value, and ``c1(a.x)`` a
choice between two labels. SQLite evaluates it under all 2ⁿ combinations of answers to the n
questions that it may ask. A question matters, given the answers known so far, if under some
answers to the others its own answer changes the result. The bound of an order of the calls is
the number of values asked when the calls are evaluated one after the other, each for those values
only that matter by then; the bound of the query is that of its best order.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LABELS = ("r", "s")
MOST_QUESTIONS = 10
"""More questions than these have too many combinations of answers."""

Question = tuple[str, tuple[str | None, ...]]
"""The name of a call, and its values."""
Truth = Callable[[Question], bool]

_CALL = re.compile(r"\b([qc]\d)\(([^()]*)\)")


class TooManyQuestions(Exception):
    """The query may ask more than ``MOST_QUESTIONS``."""


class Bound(NamedTuple):
    """``asked``: of the best order of calls; ``by_order``: of each order. ``matters``: the questions
    whose answers can change the result if no answer is known."""

    asked: int
    by_order: dict[tuple[str, ...], int]
    matters: frozenset[Question]

    def in_order(self, names: Sequence[str]) -> int:
        """The bound if calls are evaluated in this order, those that are not named at the end."""
        fitting = (n for order, n in self.by_order.items() if list(order[: len(names)]) == [*names])
        return min(fitting)


def in_our_sql(template: str) -> str:
    """The query as BlendFusion takes it."""

    def call(match: re.Match[str]) -> str:
        name, values = match.groups()
        if name.startswith("c"):
            return f"llm_map('{name}', {values}, options => ['r', 's'])"
        return f"llm_filter('{name}', {values})"

    return _CALL.sub(call, template)


def in_sqlite(template: str) -> str:
    return _CALL.sub(r"answer('\1', \2)", template)


class Oracle:
    """SQLite over some tables, with the function ``answer``."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._answers = 0
        self._bits: dict[Question, int] = {}
        self._database = sqlite3.connect(":memory:")
        self._database.create_function("answer", -1, self._answer)
        for name, table in tables.items():
            columns = ", ".join(table.column_names)
            self._database.execute(f"CREATE TABLE {name} ({columns})")
            places = ", ".join("?" * table.num_columns)
            rows = [tuple(row.values()) for row in table.to_pylist()]
            self._database.executemany(f"INSERT INTO {name} VALUES ({places})", rows)

    def _answer(self, name: str, *values: str | None) -> object:
        if all(value is None for value in values):
            return None
        bit = self._bits.setdefault((name, values), len(self._bits))
        yes = self._answers >> bit & 1
        return LABELS[yes] if name.startswith("c") else yes

    def _rows(self, sql: str, ordered: bool) -> tuple[object, ...]:
        rows = self._database.execute(sql).fetchall()
        return tuple(rows) if ordered else tuple(sorted(rows, key=repr))

    def rows(self, template: str, ordered: bool, truth: Truth) -> tuple[object, ...]:
        """The rows of the query under the true answers. Raises TooManyQuestions."""
        self._table(in_sqlite(template), ordered)
        self._answers = sum(truth(question) << bit for question, bit in self._bits.items())
        return self._rows(in_sqlite(template), ordered)

    def _table(self, sql: str, ordered: bool) -> NDArray[np.int64]:
        """The number of the result under each combination of answers: an axis per question."""
        self._bits = {}
        numbers: dict[tuple[object, ...], int] = {}
        results: list[int] = []
        while len(results) < 1 << len(self._bits) or not results:
            self._answers = len(results)
            rows = self._rows(sql, ordered)
            results.append(numbers.setdefault(rows, len(numbers)))
            if len(self._bits) > MOST_QUESTIONS:
                raise TooManyQuestions
        # The lowest bit is the last axis; reversed, the axes are numbered as the questions.
        table = np.array(results).reshape((2,) * len(self._bits))
        return table.transpose(range(table.ndim)[::-1])

    def bound(self, template: str, ordered: bool, truth: Truth) -> Bound:
        """The bound of a query whose true answers are ``truth``. Raises TooManyQuestions."""
        table = self._table(in_sqlite(template), ordered)
        questions = list(self._bits)
        everything: list[int | slice] = [slice(None)] * table.ndim
        matters = frozenset(
            question for axis, question in enumerate(questions) if _matters(table, axis, everything)
        )
        names = sorted({name for name, _ in questions})
        asked = {order: _asked(table, questions, order, truth) for order in permutations(names)}
        return Bound(min(asked.values()), asked, matters)


def _matters(table: NDArray[np.int64], axis: int, known: Sequence[int | slice]) -> bool:
    no, yes = ([*known[:axis], answer, *known[axis + 1 :]] for answer in (0, 1))
    return not np.array_equal(table[tuple(no)], table[tuple(yes)])


def _asked(
    table: NDArray[np.int64], questions: Sequence[Question], order: Sequence[str], truth: Truth
) -> int:
    known: list[int | slice] = [slice(None)] * table.ndim
    for name in order:
        for axis, question in enumerate(questions):
            if question[0] == name and _matters(table, axis, known):
                known[axis] = int(truth(question))
    return sum(isinstance(answer, int) for answer in known)
