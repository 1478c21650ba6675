"""Random queries with several questions about a text: as many requests as a count over all
completions of the answers says, no more values than one by one, and equal rows.

Only rows with a text in common may cost a value more: one by one, an expression is asked about all
rows before the next one, so that the answer about a row may spare another row a question. Nothing
can be free of that and of further requests (``SMALLEST``). Let two rows have the texts ``t`` and
``u``; the first asks ``A(t)``, and tests ``B(t) AND C(u)``; the second asks ``C(u)``, and tests
``D(u) AND A(t)``. Two requests are enough for any answers: ``A`` and ``B`` about ``t``, ``C`` and
``D`` about ``u``. One by one, ``A`` and ``C`` come first; then ``B`` is asked only where ``C`` is
true, and ``D`` only where ``A`` is. Whatever the order is, one text comes first, say ``t``. If that
request has ``B``, it has a value too many where ``C`` turns out false; if not, there is a request
too many where ``C`` is true. So in each query the fewest requests count, and the values in all
queries together."""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from zlib import crc32

import pyarrow as pa
import pytest
from decision_server import Decisions
from loopback import serving

import blendfusion as bf

ROWS, COLUMNS = 14, ("a", "b", "c")

Question: TypeAlias = tuple[str, int]
"""A column, and the number of a question about its text."""
Known: TypeAlias = dict[Question, bool]


def odds(state: str, question: str, options: object) -> list[float]:
    yes = 0.9 if crc32(f"{state} {question}".encode()) % 3 else 0.1
    return [yes, 1 - yes]


def yes(value: str, question: int) -> bool:
    return odds(value, f"Is it {question}?", ())[0] > 0.5


@dataclass(frozen=True)
class Expr:
    """An expression: ``ask``, ``not``, ``and``, ``or``, ``case`` or ``equal`` of others."""

    kind: str
    parts: tuple[Expr, ...] = ()
    question: Question = ("", 0)

    @property
    def sql(self) -> str:
        parts = [part.sql for part in self.parts]
        if self.kind == "ask":
            return "llm_filter('Is it {1}?', {0})".format(*self.question)
        if self.kind == "not":
            return f"NOT {parts[0]}"
        if self.kind == "case":
            rest = f" ELSE CAST({parts[2]} AS INT)" if len(parts) > 2 else ""
            return f"(CASE WHEN {parts[0]} THEN CAST({parts[1]} AS INT){rest} END = 1)"
        return "(" + {"and": " AND ", "or": " OR ", "equal": " = "}[self.kind].join(parts) + ")"

    @property
    def questions(self) -> list[Question]:
        if self.kind == "ask":
            return [self.question]
        return [question for part in self.parts for question in part.questions]

    def value(self, known: Known, ask: Callable[[Question], bool]) -> bool | None:
        """The value on a row: a part without an open question comes first, else the next one."""
        if self.kind == "ask":
            if self.question not in known:
                known[self.question] = ask(self.question)
            return known[self.question]
        if self.kind == "not":
            return not self.parts[0].value(known, ask)
        if self.kind == "equal":
            one, other = (part.value(known, ask) for part in self.parts)
            return one == other
        if self.kind == "case":
            if self.parts[0].value(known, ask):
                return self.parts[1].value(known, ask)
            return self.parts[2].value(known, ask) if len(self.parts) > 2 else None
        left, found = [*self.parts], []
        while left:
            part = next((p for p in left if not p.is_open(known)), left[0])
            left.remove(part)
            found.append(part.value(known, ask))
            if found[-1] is (self.kind == "or"):
                return found[-1]
        return None if None in found else self.kind == "and"

    def is_open(self, known: Known) -> bool:
        def refuse(question: Question) -> bool:
            raise KeyError(question)

        try:
            self.value(dict(known), refuse)
        except KeyError:
            return True
        return False


def needed(exprs: Iterable[Expr], known: Known, early: Known) -> set[Question]:
    """The open questions of a row that are asked under every completion of the answers. ``early``:
    those of earlier rounds, which are known from where they would be asked."""
    exprs = [*exprs]
    if not any(expr.is_open(known | early) for expr in exprs):
        return set()
    left = sorted({q for e in exprs for q in e.questions} - {*known} - {*early})
    every = set(left)
    for answers in itertools.product((True, False), repeat=len(left)):
        own = dict(known)
        asked: set[Question] = set()
        given = dict(zip(left, answers, strict=True)) | early

        def ask(question: Question, given: Known = given, asked: set[Question] = asked) -> bool:
            asked.add(question)
            return given[question]

        for expr in exprs:
            expr.value(own, ask)
        every &= asked - {*early}
        if not every:
            break
    return every


def apart(exprs: Sequence[Expr]) -> list[list[Expr]]:
    """The expressions by those that share questions."""
    groups: list[list[Expr]] = []
    for expr in exprs:
        own = {*expr.questions}
        near = [g for g in groups if own & {q for e in g for q in e.questions}]
        groups = [g for g in groups if g not in near]
        groups.append([*(e for g in near for e in g), expr])
    return [[e for e in exprs if e in group] for group in groups]


def ask_of(draw: random.Random, free: list[Question]) -> Expr:
    return Expr("ask", question=free.pop(draw.randrange(len(free))))


def condition(draw: random.Random, free: list[Question]) -> Expr:
    """A question, its negation, or several questions with AND or OR."""
    kind = draw.choice(("ask", "ask", "not", "and", "or"))
    if kind in ("and", "or") and len(free) > 1:
        return Expr(
            kind, tuple(ask_of(draw, free) for _ in range(draw.randint(2, min(3, len(free)))))
        )
    return Expr("not", (ask_of(draw, free),)) if kind == "not" else ask_of(draw, free)


def expression(draw: random.Random, free: list[Question], depth: int = 2) -> Expr:
    kind = draw.choice(("ask", "ask", "case", "or", "and", "equal")) if depth else "ask"
    if kind == "ask" or len(free) < 4:
        return ask_of(draw, free)
    if kind == "case":
        parts = [condition(draw, free)]
        for _ in range(draw.randint(1, 2)):
            if free:
                parts.append(expression(draw, free, depth - 1))
        return Expr("case", tuple(parts)) if len(parts) > 1 else parts[0]
    if kind == "equal":
        return Expr(kind, (ask_of(draw, free), ask_of(draw, free)))
    parts = [expression(draw, free, depth - 1)]
    while free and len(parts) < draw.randint(2, 3):
        parts.append(expression(draw, free, depth - 1))
    return Expr(kind, tuple(parts)) if len(parts) > 1 else parts[0]


class Case:
    """A random query of one to eight questions on one to three columns, and its count of requests:
    round by round, one for each text about which some row needs an answer whatever the others
    are."""

    def __init__(self, draw: random.Random) -> None:
        columns = COLUMNS[: draw.randint(1, 3)]
        every = [(column, n) for column in columns for n in range(6)]
        pool = draw.sample(every, min(len(every), draw.randint(1, 8)))
        apart = draw.random() < 0.5  # no question stands in two expressions
        self.exprs = []
        left = [*pool]
        for _ in range(draw.randint(1, 4)):
            self.exprs.append(expression(draw, left if apart else [*pool]))
            if not left:
                break
        self.where: list[Expr] = []
        free = [*pool]  # a contradiction, or a condition twice, asks nothing
        for _ in range(draw.choice((0, 0, 1, 1, 2))):
            term = condition(draw, free) if free else Expr("and")
            self.where += term.parts if term.kind == "and" else [term]  # as a plan divides them
        self.cheap = draw.randint(0, ROWS)
        self.limit = draw.randint(1, ROWS) if draw.random() < 0.3 else None
        self.joins = not self.limit and draw.random() < 0.3
        self.groups = not self.limit and draw.random() < 0.3

    @property
    def options(self) -> dict[str, int]:
        """Under a limit, one row at a time, so that it is known which rows are read."""
        return {"chunk_rows": 1, "first_chunk_rows": 1} if self.limit else {}

    @property
    def sql(self) -> str:
        where = " AND ".join([f"id < {self.cheap}", *(f"({e.sql})" for e in self.where)])
        source = "t JOIN twice ON id = k" if self.joins else "t"
        shown = ", ".join(f"{e.sql} AS x{i}" for i, e in enumerate(self.exprs))
        text = f"FROM {source} WHERE {where}"
        if self.groups:
            sums = ", ".join(f"sum(CAST(x{i} AS INT)) AS s{i}" for i in range(len(self.exprs)))
            return f"SELECT g, {sums} FROM (SELECT id % 3 AS g, {shown} {text}) AS held GROUP BY g ORDER BY g"
        if self.limit:
            return f"SELECT id, {shown} {text} LIMIT {self.limit}"
        return f"SELECT id, {shown} {text} ORDER BY id"

    def requests(self, table: Mapping[str, list[str]]) -> int:
        self.known: dict[tuple[str, int], bool] = {}
        self.memo: dict[object, set[Question]] = {}
        rows = [i for i in range(ROWS) if i < self.cheap]
        if not self.limit:
            return self.of_rows(rows, table)[0]
        count, passed = 0, 0
        for row in rows:
            if passed < self.limit:
                own, left = self.of_rows([row], table)
                count, passed = count + own, passed + left
        return count

    def of_rows(self, rows: list[int], table: Mapping[str, list[str]]) -> tuple[int, int]:
        """(the requests about some rows that are read together, the number of those that pass)"""
        count = 0
        for term in self.where:
            count += self.rounds(rows, table, [term])
            rows = [row for row in rows if term.value(self.known_of(row, table), lambda q: False)]
        return count + self.rounds(rows, table, self.exprs), len(rows)

    def rounds(self, rows: list[int], table: Mapping[str, list[str]], exprs: list[Expr]) -> int:
        count = 0
        early: dict[int, set[Question]] = {row: set() for row in rows}
        groups = apart(exprs)
        while True:
            open_ = set()
            for row in rows:
                known = self.known_of(row, table)
                own = {q: known.pop(q) for q in early[row]}
                found = {q for group in groups for q in self.needed(group, known, own)}
                early[row] |= found
                open_ |= {(table[column][row], n) for column, n in found}
            if not open_:
                return count
            count += len({text for text, _ in open_})
            self.known |= {(text, n): yes(text, n) for text, n in open_}

    def needed(self, exprs: list[Expr], known: Known, early: Known) -> set[Question]:
        key = (*exprs, *sorted(known.items()), "early", *sorted(early.items()))
        if key not in self.memo:
            self.memo[key] = needed(exprs, known, early)
        return self.memo[key]

    def known_of(self, row: int, table: Mapping[str, list[str]]) -> Known:
        every = {q for e in (*self.where, *self.exprs) for q in e.questions}
        texts = {q: (table[q[0]][row], q[1]) for q in every}
        return {q: self.known[text] for q, text in texts.items() if text in self.known}


@pytest.mark.slow
@pytest.mark.parametrize("in_common", [False, True])
def test_requests_are_as_many_as_a_count_by_hand(cases: int, in_common: bool) -> None:
    """``--cases 100000`` runs 5,000 queries; ``FUSED_FROM`` draws others. ``in_common``: rows have
    texts in common; without these, no query asks a value more."""
    decisions = Decisions(odds)
    draw = random.Random(int(os.environ.get("FUSED_FROM", 45)))
    more: list[int] = []
    with serving(decisions.systemone) as server:
        url = server.url.removesuffix("/v1")
        for number in range(max(40, cases // 40)):
            case = Case(draw)
            # Texts of one column are no texts of another, which may be read at the same time.
            numbers = {
                c: [draw.randrange(6) if in_common else n for n in range(ROWS)] for c in COLUMNS
            }
            table = {c: [f"{c} {n}" for n in of_rows] for c, of_rows in numbers.items()}
            given = {"cache": None, "progress": "off", "rules_off": "predicate_order"}
            session = bf.connect(f"systemone:jev@{url}", **given, **case.options)
            plain = bf.connect(
                bf.ScriptedModel(lambda call: yes(str(call.values[0]), int(call.question[6]))),
                **given,
                **case.options,
            )
            for opened in (session, plain):
                opened.from_arrow(pa.table({"id": [*range(ROWS)], **table}), name="t")
                opened.from_arrow(pa.table({"k": [*range(ROWS)] * 2}), name="twice")
            one_by_one = plain.sql(case.sql)
            before = len(server.bodies)
            frame = session.sql(case.sql)
            assert frame.to_pylist() == one_by_one.to_pylist(), case.sql
            more.append(frame.trace.values - one_by_one.trace.values)
            assert len(server.bodies) - before == case.requests(table), (number, case.sql)
            assert in_common or more[-1] <= 0, (number, case.sql)
    assert sum(more) <= 0
    assert sum(n > 0 for n in more) <= 0.002 * len(more)


SMALLEST = """SELECT CASE WHEN n = 1 THEN A ELSE C END AS x,
    CASE WHEN n = 1 AND B AND C THEN 1 WHEN n = 2 AND D AND A THEN 2 END AS y FROM r"""


@pytest.mark.parametrize("truth", [True, False])
def test_the_smallest_query_that_costs_values_more(truth: bool) -> None:
    columns = dict(zip("ABCD", "ttuu", strict=True))
    words = _spaced(SMALLEST)
    query = "".join(f"llm_filter('Is it {w}?', {columns[w]})" if w in columns else w for w in words)
    found = []
    with serving(Decisions(lambda *_: [0.9, 0.1] if truth else [0.1, 0.9]).systemone) as server:
        jev = f"systemone:jev@{server.url.removesuffix('/v1')}"
        for model in (jev, bf.ScriptedModel(lambda call: truth)):
            session = bf.connect(model, cache=None, progress="off", rules_off="predicate_order")
            session.from_pydict({"n": [1, 2], "t": ["t", "t"], "u": ["u", "u"]}, "r")
            frame = session.sql(query)
            found.append((frame.to_pylist(), frame.trace.values))
        assert len(server.bodies) == 2
    (rows, values), (one_by_one, fewest) = found
    assert rows == one_by_one
    assert (values, fewest) == (4, 4 if truth else 2)


WHICH = "llm_map('Is it 9?', a, options => ['p', 'q', 'r'])"
FORMS = (
    "(CASE WHEN A THEN B END) IS NULL OR C, D AND C",
    "(CASE WHEN A THEN 1 ELSE 2 END) < 2 OR C, A AND C",
    "W = 'p' OR C, CASE WHEN W = 'q' THEN C ELSE D END",
    "W IN ('p', 'q') AND C, coalesce(C, D), n > 3 AND D",
    "CASE WHEN n > 5 AND A THEN C WHEN n < 3 THEN B ELSE D END, B OR D",
    "concat(CASE WHEN A THEN W ELSE 'z' END, CASE WHEN B THEN 'u' END), NOT A AND B",
    "nullif(A, B), C IS NOT TRUE OR B",
    "(A AND n > 4) OR (B AND n <= 4), A = (n > 2)",
    "CASE WHEN (A AND B) OR (NOT A AND C) THEN D ELSE B END, A OR D",
)


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_have_equal_rows_and_no_more_values(form: str) -> None:
    def shares(state: str, question: str, options: list[str]) -> list[float]:
        first, second = odds(state, question, options)
        return [first, second, *[0.0] * (len(options) - 2)]

    def answer(call: bf.Request) -> object:
        says_yes = odds(str(call.values[0]), call.question, ())[0] > 0.5
        kinds = {"choice": ("p", "q"), "boolean": (True, False)}
        return kinds[call.constraint.kind][not says_yes]

    names = {name: f"llm_filter('Is it {n}?', a)" for n, name in enumerate("ABCD")} | {"W": WHICH}
    shown = "".join(names.get(sign, sign) for sign in _spaced(form))
    found = []
    with serving(Decisions(shares).systemone) as server:
        url = server.url.removesuffix("/v1")
        for model in (f"systemone:jev@{url}", bf.ScriptedModel(answer)):
            session = bf.connect(model, cache=None, progress="off", rules_off="predicate_order")
            texts = [None, *(f"text {n}" for n in range(20))]
            session.from_pydict({"a": texts, "n": [n % 8 for n in range(21)]}, "t")
            frame = session.sql(f"SELECT {shown} FROM t")
            rows = [tuple(row.values()) for row in frame.to_pylist()]
            found.append((rows, frame.trace.values))
    (rows, values), (one_by_one, most) = found
    assert rows == one_by_one
    assert values <= most


def _spaced(form: str) -> list[str]:
    """The words and signs of a form, so that a name is a word of its own."""
    return re.findall(r"\w+|\W", form)
