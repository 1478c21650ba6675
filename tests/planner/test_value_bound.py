"""Random queries ask hardly more values than the fewest that any order of evaluation needs.

``pytest tests/planner/test_value_bound.py --cases 100000`` runs 10,000 queries, and
``python tests/planner/test_value_bound.py 60000 70000`` prints the bounds of those with these
numbers, the values beyond them by kind of query, and each query with more than two of them; a third
argument, ``limited``, those of queries of which few rows matter.
benchmarks/README.md has the figures.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

import pyarrow as pa
import pytest
from bounded_queries import (
    EXCESS,
    Bounded,
    bounded_query,
    kind_of,
    limited_query,
    small_tables,
)
from random_choices import Choices
from scripts import Counted, tuples, unordered
from value_bound import LABELS, Bound, Oracle, Question, TooManyQuestions, in_our_sql

import blendfusion as bf
from blendfusion.models.protocol.model import OnAnswer, Values

DATABASES = 40


@dataclass
class Answers:
    """Even answers to questions: those of query ``draw``, or the same for each query."""

    draw: int | None = None

    def __call__(self, question: Question) -> bool:
        drawn = question if self.draw is None else (self.draw, question)
        return crc32(repr(drawn).encode()) >> 3 & 1 == 1


truth = Answers()


def script(request: bf.Request) -> bool | str:
    yes = truth((request.question, tuple(request.values)))
    return LABELS[yes] if request.constraint.kind == "choice" else yes


class Batched(Counted):
    """With the number of calls before each batch."""

    def __init__(self) -> None:
        super().__init__(script)
        self.starts: list[int] = []
        answer_each = self.model.answer_each

        def noted(task: bf.Task, values: Sequence[Values], on_answer: OnAnswer) -> list[bf.Answer]:
            self.starts.append(len(self.model.calls))
            return answer_each(task, values, on_answer)

        self.model.answer_each = noted  # type: ignore[method-assign]

    def batches(self) -> list[list[Question]]:
        """The questions since the last time, batch by batch."""
        asked = [(call.question, tuple(call.values)) for call in self.model.calls]
        found = [asked[start:end] for start, end in pairwise([*self.starts, len(asked)])]
        self.model.calls.clear()
        self.starts.clear()
        return found


@cache
def database(number: int) -> tuple[Batched, Oracle]:
    tables = small_tables(number)
    counted = Batched()
    for name, table in tables.items():
        counted.add(name, table)
    return counted, Oracle(tables)


class Outcome(NamedTuple):
    query: Bounded
    rows: list[tuple[object, ...]]
    expected: list[tuple[object, ...]]
    asked: list[Question]
    bound: Bound
    plain: str | None
    """Why the query ran without the planner, if it did."""


def outcomes(
    numbers: range, query: Callable[[Choices], Bounded] = bounded_query
) -> Iterator[Outcome]:
    """What came of each query, but for those with too many questions for the oracle."""
    for number in numbers:
        truth.draw = number
        with suppress(TooManyQuestions):
            yield outcome(query(Choices.seeded(number)), number % DATABASES)


def outcome(query: Bounded, number: int) -> Outcome:
    counted, oracle = database(number)
    expected = list(oracle.rows(query.template, query.ordered, truth))
    counted.session.clear_cache()
    counted.batches()
    frame = counted.session.sql(in_our_sql(query.template))
    rows = [
        tuple(int(v) if isinstance(v, bool) else v for v in row)
        for row in tuples(frame.to_arrow_table())
    ]
    batches = counted.batches()
    bound = oracle.bound(query.template, query.ordered, truth, batches)
    rows = rows if query.ordered else sorted(rows, key=repr)
    asked = [question for batch in batches for question in batch]
    return Outcome(query, rows, expected, asked, bound, frame.prepared.reason)


@pytest.mark.parametrize("part", range(2))
def test_queries_ask_hardly_more_than_the_bound(part: int, cases: int) -> None:
    number = cases // 20
    seen = list(outcomes(range(part * number, (part + 1) * number)))
    assert len(seen) > 0.95 * number
    asked = in_turn = or_failed = 0
    mean = 0.0
    for query, rows, expected, questions, bound, plain in seen:
        assert plain is None, in_our_sql(query.template)
        assert rows == expected, in_our_sql(query.template)
        assert len(questions) == len({*questions}), in_our_sql(query.template)
        asked, mean = asked + len(questions), mean + bound.expected
        in_turn, or_failed = in_turn + bound.in_turn, or_failed + bound.or_failed
        print(len(questions), bound.in_turn, in_our_sql(query.template))
    # The best strategy is one on average: with few queries, chance has a part in it.
    assert asked <= 1.05 * in_turn + 3
    assert asked <= 1.04 * or_failed + 3
    assert asked <= 1.08 * mean + 2 * len(seen) ** 0.5


def test_limited_queries_ask_less_than_all_rows(cases: int) -> None:
    """Counts that are compared, first rows of groups, first groups, neighbours: all have rows that
    no one knows to be in vain beforehand."""
    seen = list(outcomes(range(cases // 40), limited_query))
    for query, rows, expected, questions, _, plain in seen:
        assert plain is None, in_our_sql(query.template)
        assert rows == expected, in_our_sql(query.template)
        assert len(questions) == len({*questions}), in_our_sql(query.template)
    asked = sum(len(o.asked) for o in seen)
    assert asked <= 1.25 * sum(o.bound.in_turn for o in seen) + 3


@pytest.mark.parametrize("number", [113_310, 113_461, 150_647])
def test_queries_that_once_failed(number: int) -> None:
    """113,310: DataFusion took columns of one name of two stages for each other. 113,461: two cheap
    joins above an expensive one changed places for ever. 150,647: DataFusion pushed a filter below
    a right join by the names of its columns."""
    (found,) = outcomes(range(number, number + 1))
    assert found.rows == found.expected
    assert found.plain is None


@pytest.mark.parametrize(
    ("template", "asked"),
    [
        ("SELECT a.id FROM a WHERE q1(a.y) AND q2(a.x)", 1),
        ("SELECT a.id FROM a JOIN b ON c1(a.x) = c1(b.x)", 3),
        ("SELECT a.id FROM a WHERE (q1(a.x) AND a.k > 5) OR (a.k = 1 AND q2(a.y))", 2),
        ("SELECT a.k FROM a WHERE q1(a.y) GROUP BY a.k HAVING count(*) > 1", 1),
        ("SELECT a.k FROM a WHERE q1(a.y) GROUP BY a.k HAVING 3 <= count(a.x)", 0),
        ("SELECT a.id FROM a WHERE CASE WHEN q1(a.x) THEN a.k = 7 ELSE a.k = 8 END", 0),
        ("SELECT a.id FROM a WHERE (q1(a.x) OR q2(a.y)) AND a.id + 0 = 9", 0),
        ("SELECT a.id FROM a WHERE q1(a.y) AND NOT q1(a.y)", 0),
        ("SELECT a.id FROM a WHERE (q2(a.x) OR q1(a.y)) AND q1(a.y)", 3),
        ("SELECT a.id FROM a WHERE q1(a.y) AND q1(a.y)", 3),
        ("SELECT a.id FROM a WHERE NOT q1(a.y) AND (q2(a.x) OR NOT q1(a.y)) AND a.k = 1", 2),
        ("SELECT a.id FROM a WHERE (c1(a.y) = 'r' OR a.k = 2) AND q2(a.y) AND c1(a.y) <> 'r'", 1),
        ("SELECT a.id FROM a WHERE CASE WHEN q1(a.y) THEN a.id < 9 ELSE a.id < 1 END", 2),
        ("SELECT a.id FROM a WHERE (q1(a.y) AND q2(a.x)) OR a.id = 0", 0),
        (
            "SELECT a.id FROM a WHERE COALESCE(c1(a.y) <> 'r', q2(a.y)) "
            "AND (c2(a.y) <> 'r' OR a.k > 1)",
            3,
        ),
        ("SELECT a.id FROM a LEFT JOIN b ON c1(a.y) = c1(b.x) JOIN a AS d ON b.id + 5 = d.id", 0),
        ("SELECT a.id FROM a LEFT JOIN b ON c1(a.y) = c1(b.x) AND b.id > 0 WHERE q1(b.x)", 0),
        ("SELECT count(a.x) AS n FROM a WHERE q1(a.y)", 1),
        ("SELECT count(*) FILTER (WHERE a.k = 2) AS n FROM a WHERE q1(a.y)", 1),
        ("SELECT max(a.id) AS n FROM a LEFT JOIN b ON c1(a.x) = c1(b.x)", 0),
        ("SELECT a.x FROM a LEFT JOIN b ON c1(a.y) = c1(b.x) UNION SELECT b.x FROM b", 0),
        ("SELECT a.k FROM a RIGHT JOIN b ON c1(a.y) = c1(b.x) UNION SELECT b.k FROM b", 4),
    ],
)
def test_conditions_that_calls_imply_spare_values(template: str, asked: int) -> None:
    """One query each for what the random ones found."""
    tables = {
        "a": {
            "id": [0, 1, 2, 3],
            "k": [1, 1, 2, None],
            "x": ["u", None, None, "v"],
            "y": ["m", "n", "o", None],
        },
        "b": {"id": [0, 1], "k": [1, 2], "x": ["w", None]},
    }
    truth.draw = None
    counted = Counted(script)
    for name, columns in tables.items():
        counted.add(name, columns)
    sql = in_our_sql(template)
    assert counted.asked(sql) == asked
    oracle = Oracle({name: pa.table(columns) for name, columns in tables.items()})
    assert [*map(repr, unordered(counted.rows(sql)))] == [
        *map(repr, oracle.rows(template, False, truth))
    ]


def main() -> None:
    first, end = map(int, sys.argv[1:3])
    query = limited_query if sys.argv[3:] == ["limited"] else bounded_query
    seen = list(outcomes(range(first, end), query))
    asked = sum(len(o.asked) for o in seen)
    wrong = sum(o.rows != o.expected for o in seen)
    plain = sum(o.plain is not None for o in seen)
    print(f"{len(seen)} queries, {asked} values, {wrong} wrong, {plain} without the planner")
    for name in ("in_turn", "or_failed", "in_batches", "expected", "best"):
        bound = sum(getattr(o.bound, name) for o in seen)
        print(f"{name:10} {bound:9.0f} {asked / bound:7.3f}")
    beyond = [(len(o.asked) - o.bound.in_turn, o.query.template) for o in seen]
    over = Counter[tuple[str, bool]]()
    queries = Counter[tuple[str, bool]]()
    for values, template in beyond:
        if values:
            over[kind_of(template)] += values
            queries[kind_of(template)] += 1
    for (kind, on_answers), values in over.most_common():
        joins = ", join on answers" if on_answers else ""
        print(f"{values:4} in {queries[kind, on_answers]:3} {kind}{joins}: {EXCESS[kind]}")
    for values, template in sorted(beyond, reverse=True):
        if values > 2:
            kind, on_answers = kind_of(template)
            joins = ", join on answers" if on_answers else ""
            print(f"{values} {kind}{joins} ({EXCESS[kind]}): {template}")


if __name__ == "__main__":
    main()
