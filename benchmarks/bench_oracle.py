"""How many values does a query ask, beside the fewest whose answers prove its rows?

    python benchmarks/bench_oracle.py [--rows 160] [--json FILE]

The oracle knows all answers. It leaves out one answer after the other, as long as the rows of the
query stay the same whatever the answers that are left out are: all yes and the greatest numbers,
all no and the least ones, both in one group against all others, and four random completions. What
stays is the smallest of several such sets. A few completions may agree by chance, so the oracle may
ask too few: the ratio is at least what it would be beside a true one. Last numbers in
values_asked.md."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from bench_values_asked import SHAPES, F, S, asked, rows_of, yes_and_number
from datafusion import SessionContext

COMPLETIONS = 6
"""Beside those of one group against all others."""
ORDERS = 3


def total(sql: str) -> str:
    """The query with one right result: groups that are equal in its order come by their keys."""
    head, order, tail = sql.rpartition(" LIMIT 1")
    by_answers = order and "GROUP BY g ORDER BY" in head
    return f"{head}, g{order}{tail}" if by_answers else sql


def has_one_result(sql: str) -> bool:
    return (
        " LIMIT " not in sql or "ORDER BY" in sql.rsplit(" LIMIT ", 1)[0].rsplit(" WHERE ", 1)[-1]
    )


def fewest(sql: str, table: pa.Table) -> int:
    """The size of the smallest set of answers that was found to prove the rows of a query."""
    over = sql.replace(F, "f").replace(S, "s").replace("llm_filter('q', u.x)", "u.f")
    over = over.replace(", x FROM t", ", x, f FROM t")
    answers = [yes_and_number(text) for text in table.column("x").to_pylist()]
    sure = _Proof(over, table, answers)
    return min(len(_smallest(sure, order)) for order in _orders(table))


def _orders(table: pa.Table) -> Iterator[list[int]]:
    """Orders in which answers are left out: those of small values first, or in any order."""
    rows = [*range(len(table))]
    d, p = (table.column(name).to_pylist() for name in "dp")
    yield sorted(rows, key=lambda i: (p[i], d[i]))
    yield sorted(rows, key=lambda i: -d[i])
    for seed in range(ORDERS - 2):
        yield random.Random(seed).sample(rows, len(rows))


def _smallest(sure: _Proof, order: Sequence[int]) -> set[int]:
    """The answers that stay where one part after the other is left out that may be."""
    kept, size = {*order}, len(order)
    while size:
        for start in range(0, len(order), size):
            part = kept.intersection(order[start : start + size])
            if part and sure.holds(kept - part):
                kept -= part
        size //= 2
    return kept


class _Proof:
    """Whether some answers alone prove the rows of a query."""

    def __init__(self, sql: str, table: pa.Table, answers: Sequence[tuple[bool, int]]) -> None:
        self._sql, self._table, self._answers = sql, table, answers
        chance = random.Random(0)
        none, every = [(False, 0)] * len(answers), [(True, 4)] * len(answers)
        others = [
            [(chance.random() < 0.5, chance.randrange(5)) for _ in answers]
            for _ in range(COMPLETIONS - 2)
        ]
        groups = table.column("g").to_pylist()
        against = [
            [(high, 4 * high) for high in ((g == one) == first for g in groups)]
            for one in dict.fromkeys(groups)
            for first in (True, False)
        ]
        self._others = [none, every, *others, *against]
        self._wanted = self._rows(answers)

    def holds(self, kept: set[int]) -> bool:
        for other in self._others:
            mixed = [self._answers[i] if i in kept else other[i] for i in range(len(other))]
            if self._rows(mixed) != self._wanted:
                return False
        return True

    def _rows(self, answers: Sequence[tuple[bool, int]]) -> list[str]:
        context = SessionContext()
        yes, numbers = zip(*answers, strict=True)
        table = self._table.append_column("f", pa.array(yes)).append_column("s", pa.array(numbers))
        context.from_arrow(table, name="t")
        found = [str(row) for row in context.sql(self._sql).to_pylist()]
        return found if "ORDER BY" in self._sql.rsplit(")", 1)[-1] else sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=160)
    parser.add_argument("--only", default="", help="a text of the queries to look at")
    parser.add_argument("--from", type=int, default=0, dest="first", help="queries to leave out")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    table = rows_of(8).slice(0, args.rows)
    found = {}
    for sql in map(total, SHAPES[args.first :]):
        if has_one_result(sql) and args.only in sql:
            found[sql] = asked(sql, table), fewest(sql, table)
            print(*found[sql], sql, flush=True)
    ratios = [(own + 1) / (least + 1) for own, least in found.values()]
    ours, least = (sum(each) for each in zip(*found.values(), strict=True))
    print(f"{len(found)} queries: {ours:,} values, {least:,} of the oracle, {ours / least:.2f}; "
          f"mean of ratios {sum(ratios) / len(ratios):.2f}")  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps(found, indent=0))


if __name__ == "__main__":
    main()
