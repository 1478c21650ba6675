"""Random queries with several questions about a text: as many requests as a count by hand says, no
more values than one by one, and equal rows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from zlib import crc32

import pyarrow as pa
import pytest
from decision_server import Decisions
from loopback import serving

import blendfusion as bf

ROWS, COLUMNS = 14, ("a", "b", "c")


def odds(state: str, question: str, options: object) -> list[float]:
    yes = 0.9 if crc32(f"{state} {question}".encode()) % 3 else 0.1
    return [yes, 1 - yes]


def yes(value: str, question: int) -> bool:
    return odds(value, f"Is it {question}?", ())[0] > 0.5


class Case:
    """A random query, and its count of requests: for each text one for a predicate that asks, and
    one for all other questions that every row with the text needs."""

    def __init__(self, draw: random.Random) -> None:
        self.asked = [(draw.choice(COLUMNS), draw.randrange(6)) for _ in range(draw.randint(1, 8))]
        self.cheap = draw.randint(0, ROWS)
        self.predicate = (draw.choice(COLUMNS), draw.randrange(6)) if draw.random() < 0.5 else None
        self.limit = draw.randint(1, ROWS) if draw.random() < 0.3 else None
        self.joins = draw.random() < 0.3
        self.groups = not self.limit and draw.random() < 0.3

    @property
    def sql(self) -> str:
        calls = [f"llm_filter('Is it {n}?', {column})" for column, n in self.asked]
        where = [f"id < {self.cheap}"] if not self.limit else []
        if self.predicate and not self.limit:
            where.append("llm_filter('Is it {1}?', {0})".format(*self.predicate))
        source = "t JOIN twice ON id = k" if self.joins else "t"
        text = f" FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        if self.groups:
            sums = [f"sum(CASE WHEN x{i} THEN 1 ELSE 0 END) AS s{i}" for i in range(len(calls))]
            inner = ", ".join(f"{call} AS x{i}" for i, call in enumerate(calls))
            return f"SELECT {', '.join(sums)} FROM (SELECT id, {inner}{text}) AS held"
        shown = ", ".join(f"{call} AS x{i}" for i, call in enumerate(calls))
        if not self.limit:
            return f"SELECT id, {shown}{text} ORDER BY id"
        return f"SELECT id, {shown} FROM (SELECT *{text} ORDER BY id LIMIT {self.limit}) AS first"

    def requests(self, table: Mapping[str, list[str]]) -> int:
        count, ids = 0, range(ROWS)
        known: set[tuple[str, int]] = set()
        if self.limit:
            rows = [i for i in ids for _ in range(1 + self.joins)][: self.limit]
        else:
            rows = [i for i in ids if i < self.cheap]
        if self.predicate and not self.limit:
            column, n = self.predicate
            values = {table[column][i] for i in rows}
            known |= {(value, n) for value in values}
            count += len(values)
            rows = [i for i in rows if yes(table[column][i], n)]
        open_about: dict[tuple[str, str], set[int]] = defaultdict(set)
        for column, n in self.asked:
            for i in rows:
                if (table[column][i], n) not in known:
                    open_about[column, table[column][i]].add(n)
        return count + len(open_about)


@pytest.mark.slow
def test_requests_are_as_many_as_a_count_by_hand(cases: int) -> None:
    """``--cases 100000`` runs 5,000 queries."""
    decisions = Decisions(odds)
    draw = random.Random(45)
    with serving(decisions.systemone) as server:
        url = server.url.removesuffix("/v1")
        for number in range(max(40, cases // 20)):
            case = Case(draw)
            # Texts of one column are no texts of another, which may be read at the same time.
            table = {c: [f"{c} {draw.randrange(6)}" for _ in range(ROWS)] for c in COLUMNS}
            session = bf.connect(f"systemone:jev@{url}", cache=None, progress="off")
            plain = bf.connect(
                bf.ScriptedModel(lambda call: yes(str(call.values[0]), int(call.question[6]))),
                cache=None,
                progress="off",
            )
            for opened in (session, plain):
                opened.from_arrow(pa.table({"id": [*range(ROWS)], **table}), name="t")
                opened.from_arrow(pa.table({"k": [*range(ROWS)] * 2}), name="twice")
            one_by_one = plain.sql(case.sql)
            before = len(server.bodies)
            frame = session.sql(case.sql)
            assert frame.to_pylist() == one_by_one.to_pylist(), case.sql
            assert frame.trace.values <= one_by_one.trace.values, case.sql
            assert len(server.bodies) - before == case.requests(table), (number, case.sql)
