"""The fewest values that a query can ask, from its result under every combination of answers.

A query is a template in which ``q1(a.x)`` is a yes/no question about a value, and ``c1(a.x)`` a
choice between two labels. SQLite evaluates it under all 2ⁿ combinations of answers to the n
questions that it may ask. A question matters, given the answers known so far, if under some
answers to the others its own answer changes the result; also if its failure does, since a model
may give no answer, which is NULL.

Three bounds follow. That of the *order taken*: the questions that mattered when they were asked;
with *batches*, when the batch was sent that they were part of.
That of *any order*: the fewest questions, on average over all answers, of a strategy that chooses
each by the answers so far; it is found by going through all sets of known answers. That of the
*best order of calls*, each evaluated for the values that matter by then; which that is, nobody
knows before the answers.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LABELS = ("r", "s")
MOST_QUESTIONS = 10
"""More questions than these have too many combinations of answers."""

Question = tuple[str, tuple[str | None, ...]]
"""The name of a call, and its values."""
Rows = tuple[object, ...]
Table = NDArray[np.int64]
Truth = Callable[[Question], bool]

_CALL = re.compile(r"\b([qc]\d)\(([^()]*)\)")


class TooManyQuestions(Exception):
    """The query may ask more than ``MOST_QUESTIONS``."""


class Bound(NamedTuple):
    """``in_turn``: the questions that mattered when they were asked, ``or_failed``: those and the
    ones of which a failure would have, ``in_batches``: the same when their batches were sent;
    ``expected``: the mean of the best strategy; ``best``: of the best order of calls; ``matter``:
    those whose answers can change the result if no answer is known."""

    in_turn: int
    or_failed: int
    in_batches: int
    expected: float
    best: int
    matter: frozenset[Question]


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
        self._failed: int | None = None
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
        if bit == self._failed:
            return None
        yes = self._answers >> bit & 1
        return LABELS[yes] if name.startswith("c") else yes

    def _rows(self, sql: str, ordered: bool) -> Rows:
        rows = self._database.execute(sql).fetchall()
        return tuple(rows) if ordered else tuple(sorted(rows, key=repr))

    def rows(self, template: str, ordered: bool, truth: Truth) -> Rows:
        """The rows of the query under the true answers. Raises TooManyQuestions."""
        self._table(in_sqlite(template), ordered)
        self._answers = sum(truth(question) << bit for question, bit in self._bits.items())
        return self._rows(in_sqlite(template), ordered)

    def _table(self, sql: str, ordered: bool) -> tuple[Table, dict[Rows, int]]:
        """(the number of the result under each combination of answers, an axis per question; the
        numbers of results)."""
        self._bits = {}
        numbers: dict[Rows, int] = {}
        results: list[int] = []
        while len(results) < 1 << len(self._bits) or not results:
            self._answers = len(results)
            rows = self._rows(sql, ordered)
            results.append(numbers.setdefault(rows, len(numbers)))
            if len(self._bits) > MOST_QUESTIONS:
                raise TooManyQuestions
        return _by_axes(results), numbers

    def _with_failure(self, sql: str, ordered: bool, axis: int, numbers: dict[Rows, int]) -> Table:
        """As ``_table``, if the question of an axis has no answer."""
        self._failed = axis
        results: list[int] = []
        for answers in range(1 << len(self._bits)):
            without = answers & ~(1 << axis)
            if without != answers:
                results.append(results[without])
            else:
                self._answers = answers
                rows = self._rows(sql, ordered)
                results.append(numbers.setdefault(rows, len(numbers)))
        self._failed = None
        return _by_axes(results)

    def bound(
        self, template: str, ordered: bool, truth: Truth, asked: Sequence[Sequence[Question]]
    ) -> Bound:
        """The bounds of a query with the true answers ``truth``, of which these were ``asked``,
        batch by batch. Raises TooManyQuestions."""
        sql = in_sqlite(template)
        table, numbers = self._table(sql, ordered)
        questions = list(self._bits)
        matter = frozenset(
            question for axis, question in enumerate(questions) if _matters(table, axis, {})
        )
        names = sorted({name for name, _ in questions})
        best = min(_asked(table, questions, order, truth) for order in permutations(names))
        one_by_one = [[question] for batch in asked for question in batch]
        in_turn = or_failed = in_batches = _in_turn(table, questions, one_by_one, truth, {})
        if in_turn < len(one_by_one):
            axes = range(len(questions))
            failed = {axis: self._with_failure(sql, ordered, axis, numbers) for axis in axes}
            or_failed = _in_turn(table, questions, one_by_one, truth, failed)
            in_batches = _in_turn(table, questions, asked, truth, failed)
        return Bound(in_turn, or_failed, in_batches, _least_mean(table), best, matter)


def _by_axes(results: Sequence[int]) -> Table:
    """The lowest bit is the last axis; reversed, the axes are numbered as the questions."""
    axes = len(results).bit_length() - 1
    return np.array(results).reshape((2,) * axes).transpose(range(axes)[::-1])


def _matters(
    table: Table,
    axis: int,
    known: Mapping[int, int],
    failed: Mapping[int, Table] = MappingProxyType({}),
) -> bool:
    def part(of: Table, answer: int) -> Table:
        given = {**known, axis: answer}
        return np.asarray(of[tuple(given.get(i, slice(None)) for i in range(of.ndim))])

    no, yes = part(table, 0), part(table, 1)
    if axis in failed and not np.array_equal(no, part(failed[axis], 0)):
        return True
    return not np.array_equal(no, yes)


def _in_turn(
    table: Table,
    questions: Sequence[Question],
    asked: Sequence[Sequence[Question]],
    truth: Truth,
    failed: Mapping[int, Table],
) -> int:
    known: dict[int, int] = {}
    for batch in asked:
        axes = [questions.index(question) for question in batch if question in questions]
        mattered = [axis for axis in axes if _matters(table, axis, known, failed)]
        known |= {axis: int(truth(questions[axis])) for axis in mattered}
    return len(known)


def _asked(table: Table, questions: Sequence[Question], order: Sequence[str], truth: Truth) -> int:
    turns = [[q] for name in order for q in questions if q[0] == name]
    return _in_turn(table, questions, turns, truth, {})


def _least_mean(table: Table) -> float:
    """The mean number of questions of the best strategy over all answers: of all sets of known
    answers (an axis has 0, 1 and unknown), those with fewer unknown ones come first."""
    if not table.ndim:
        return 0.0
    low = high = table
    for axis in range(table.ndim):
        parts = [low.take([i], axis) for i in (0, 1)]
        low = np.concatenate([*parts, np.minimum(*parts)], axis)
        parts = [high.take([i], axis) for i in (0, 1)]
        high = np.concatenate([*parts, np.maximum(*parts)], axis)
    decided = (low == high).ravel()
    digits = np.indices((3,) * table.ndim).reshape(table.ndim, -1)
    unknown = (digits == 2).sum(axis=0)
    mean = np.where(decided, 0.0, np.inf)
    for level in range(1, table.ndim + 1):
        open_sets = np.flatnonzero((unknown == level) & ~decided)
        for axis in range(table.ndim):
            some = open_sets[digits[axis, open_sets] == 2]
            step = 3 ** (table.ndim - 1 - axis)
            after = 1 + (mean[some - step] + mean[some - 2 * step]) / 2
            mean[some] = np.minimum(mean[some], after)
    return float(mean[-1])
