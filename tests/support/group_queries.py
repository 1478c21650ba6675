"""Random queries that read something of groups of rows, most of them without showing it."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Sequence

import pyarrow as pa

import blendfusion as bf

_IS_ORDERED = re.compile(r"ORDER BY [^()]*$")
_QUESTION = "llm_filter('f', x)"
_CONDITIONS = (
    _QUESTION,
    f"NOT {_QUESTION}",
    f"({_QUESTION} OR n > 1)",
    f"({_QUESTION} AND n < 2)",
    "llm_classify(x, ['a', 'b', 'c']) = 'a'",
    "llm_score('s', x) > 5",
    "llm_int('i', x) IN (1, 2)",
    f"CASE WHEN n = 1 THEN {_QUESTION} ELSE n = 0 END",
)
_NUMBERS = (
    f"CASE WHEN {_QUESTION} THEN 1 ELSE 0 END",
    f"CASE WHEN {_QUESTION} THEN n END",
    f"CASE WHEN {_QUESTION} THEN m ELSE -1 END",
    f"CASE WHEN {_QUESTION} THEN w ELSE 0.5 END",
    "llm_score('s', x)",
    "llm_score('s', x, low => 0, high => 2)",
    "llm_int('i', x)",
    "llm_score('s', x) * n",
    f"coalesce(CASE WHEN {_QUESTION} THEN n END, 1)",
)
_PLAIN = ("n", "m", "w", "id", "dec")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")


def grouped_rows(source: random.Random) -> pa.Table:
    """A table of a few groups of very different sizes: ``k`` and ``l`` are keys, ``n``, ``m``,
    ``w`` and ``dec`` numbers, ``x`` texts, some of which come several times. All but ``id`` may be
    NULL."""
    size = source.choice([0, 1, 5, 40, 80, 160])
    groups, texts = source.choice([1, 2, 5, 12]), source.choice([6, 60, 10_000])

    def column(values: Callable[[], object], *, null: float = 0.1) -> list[object]:
        return [None if source.random() < null else values() for _ in range(size)]

    columns = {
        "id": [*range(size)],
        "k": column(lambda: min(source.randrange(groups), source.randrange(groups))),
        "l": column(lambda: source.choice("uv")),
        "n": column(lambda: source.randrange(3)),
        "m": column(lambda: source.randrange(-5, 6)),
        "w": column(lambda: source.choice([0.1, 0.25, 1.5, -2.0, 0.0])),
        "dec": column(lambda: f"{source.randrange(500) / 100:.2f}"),
        "x": column(lambda: f"v{source.randrange(texts)}", null=0.05),
    }
    table = pa.table(columns)
    kinds = {"id": "int64", "k": "int64", "l": "string", "n": "int64", "m": "int64", "w": "float64"}
    schema = pa.schema(
        [(name, kinds.get(name, "string")) for name in columns if name != "dec"]
        + [("dec", pa.decimal128(10, 2))]
    )
    return pa.table(
        {name: table.column(name).cast(schema.field(name).type) for name in schema.names}
    )


class GroupQueries:
    """Random queries over ``t``, a table of ``grouped_rows``."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def query(self) -> str:
        """A query whose rows have one order, or none."""
        one = self._source.random
        keys = self._source.choice([["k"], ["k"], ["k"], ["k", "l"], ["l"], []])
        where = [self._source.choice(_CONDITIONS)] if one() < 0.4 else []
        having = [self._test() for _ in range(self._source.choice([0, 1, 1, 1, 2]))]
        shown = [f"{self._shown()} AS v{i}" for i in range(self._source.choice([0, 0, 1, 1, 2]))]
        head = f"SELECT {', '.join([*keys, *shown]) or '1 AS one'}"
        rest = " FROM t"
        rest += f" WHERE {' AND '.join(where)}" if where else ""
        rest += f" GROUP BY {', '.join(keys)}" if keys else ""
        rest += f" HAVING {self._joined(having)}" if having else ""
        if keys and one() < 0.25:
            return self._ranked(head, rest, keys)
        text = head + rest
        if keys and one() < 0.5:
            order = [self._ordered(self._measure()) for _ in range(self._source.choice([0, 1, 1]))]
            order += [self._ordered(key) for key in keys]
            text += f" ORDER BY {', '.join(order)} LIMIT {self._source.choice([1, 2, 3, 20])}"
            text += self._source.choice(["", "", " OFFSET 1"])
        return self._nested(text) if one() < 0.1 else text

    def _ranked(self, head: str, rest: str, keys: Sequence[str]) -> str:
        """The first groups by their number in an order, of all or of each combination of keys."""
        one, name = self._source.random, self._source.choice(("row_number", "rank", "dense_rank"))
        order = [self._ordered(self._measure()) for _ in range(self._source.choice([0, 1, 1, 2]))]
        if name == "row_number" or not order:
            order += [self._ordered(key) for key in keys]
        part = f"PARTITION BY {self._source.choice(keys)} " if one() < 0.3 else ""
        window = f"{name}() OVER ({part}ORDER BY {', '.join(order)})"
        shown = ", ".join((*keys, "r") if one() < 0.5 else keys)
        test = self._source.choice(("r <= 2", "r = 1", "r < 4", "r IN (1, 2)", "r = 2"))
        return f"SELECT {shown} FROM ({head}, {window} AS r{rest}) AS q WHERE {test}"

    def _nested(self, text: str) -> str:
        return f"SELECT count(*) AS n FROM ({text}) AS q"

    def _joined(self, tests: Sequence[str]) -> str:
        return self._source.choice([" AND ", " OR "]).join(tests)

    def _ordered(self, key: str) -> str:
        return (
            f"{key} {self._source.choice(['', 'DESC'])} {self._source.choice(['', 'NULLS FIRST'])}"
        )

    def _shown(self) -> str:
        test, number = self._test(), self._measure()
        return self._source.choice(
            [
                test,
                number,
                f"CASE WHEN {test} THEN 'many' WHEN {self._test()} THEN 'some' END",
                f"least({number}, 3)",
                f"greatest({number}, 2, {self._measure()})",
                f"coalesce({test}, false)",
            ]
        )

    def _test(self) -> str:
        measure, number = self._measure(), self._source.choice(["0", "1", "2", "4", "0.3", "10"])
        return self._source.choice(
            [
                f"{measure} {self._source.choice(_COMPARED)} {number}",
                f"{measure} {self._source.choice(_COMPARED)} {number}",
                f"{measure} {self._source.choice(_COMPARED)} {self._measure()}",
                f"{measure} BETWEEN 1 AND {number}",
                f"{measure} IN (0, {number})",
                f"{measure} {self._source.choice(_COMPARED)} {self._value()}",
                f"{measure} + {self._value()} > {number} * {self._value()}",
                f"2 * {measure} + 1 > {number} * {self._measure()}",
                f"{measure} / 2 < {number}",
                f"{measure} IS NULL",
                f"({measure} > {number}) IS NOT TRUE",
                f"bool_or({self._condition()})",
                f"bool_and({self._condition()}) IS NOT FALSE",
            ]
        )

    def _value(self) -> str:
        """A value of another table, or of other groups."""
        own = self._source.choice(("count(*)", "max(n)", "min(m)", "sum(n)", "max(id) / 9"))
        where = self._source.choice(
            ("", f" WHERE {self._condition()}", " WHERE k = 0", " WHERE id < 0")
        )
        return f"(SELECT {own} FROM t{where})"

    def _condition(self) -> str:
        return self._source.choice(_CONDITIONS)

    def _measure(self) -> str:
        number = self._source.choice((*_NUMBERS, *_NUMBERS, *_PLAIN))
        kept = f" FILTER (WHERE {self._condition()})" if self._source.random() < 0.4 else ""
        return self._source.choice(
            [
                f"count(*){kept}",
                f"count({number}){kept}",
                f"count(DISTINCT {self._source.choice(_PLAIN)}){kept}",
                f"count(DISTINCT {number})",
                f"sum({number}){kept}",
                f"avg({number}){kept}",
                f"min({number}){kept}",
                f"max({number}){kept}",
            ]
        )


class DistinctQueries(GroupQueries):
    """Random queries whose only aggregate is one number of distinct values, which DataFusion counts
    over distinct rows."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        value = source.choice((*_NUMBERS, *_PLAIN, *_PLAIN))
        self._counted = f"count(DISTINCT {value})"

    def _measure(self) -> str:
        return self._counted

    def _test(self) -> str:
        number = self._source.choice("01234")
        return self._source.choice(
            [
                f"{self._counted} {self._source.choice(_COMPARED)} {number}",
                f"{self._counted} BETWEEN 2 AND {number}",
                f"2 * {self._counted} + 1 > 4",
            ]
        )


def seeded_script(seed: int) -> Callable[[bf.Request], object]:
    """A script whose answers depend on the value and the question alone; some of them fail."""

    def answer(call: bf.Request) -> object:
        own = random.Random(f"{seed} {call.question} {call.values}")
        if own.random() < 0.05:
            return None
        constraint = call.constraint
        if constraint.kind == "boolean":
            return own.random() < random.Random(seed).choice([0.0, 0.1, 0.3, 0.7, 1.0])
        if constraint.kind == "choice":
            return own.choice(constraint.options)
        if constraint.scale is not None:
            return own.randint(*constraint.scale)
        return own.randrange(5)

    return answer


class Remembered:
    """A script that gives the answers of another one, and of what that was never asked those of a
    third one."""

    def __init__(self, script: Callable[[bf.Request], object]) -> None:
        self._script = script
        self.known: dict[tuple[object, ...], object] = {}

    def __call__(self, call: bf.Request) -> object:
        key = call.question, call.values, call.constraint
        if key not in self.known:
            self.known[key] = self._script(call)
        return self.known[key]

    def completed(self, others: Callable[[bf.Request], object]) -> Callable[[bf.Request], object]:
        """The answers so far, and for all other requests those of ``others``."""

        def answer(call: bf.Request) -> object:
            key = call.question, call.values, call.constraint
            return self.known[key] if key in self.known else others(call)

        return answer


def extreme_script(*, high: bool) -> Callable[[bf.Request], object]:
    """A script with the greatest answers that there are, or with the least."""

    def answer(call: bf.Request) -> object:
        constraint = call.constraint
        if constraint.kind == "boolean":
            return high
        if constraint.kind == "choice":
            return constraint.options[-1 if high else 0]
        if constraint.scale is not None:
            return constraint.scale[high]
        return 10**6 if high else -(10**6)

    return answer


def no_answer(call: bf.Request) -> None:
    """A script that never answers."""


class Adversary:
    """A script that keeps every group open as long as it can: of the answers to each question, it
    gives the least one and the greatest one in turn."""

    def __init__(self) -> None:
        self._turn: dict[str, bool] = {}

    def __call__(self, call: bf.Request) -> object:
        turn = self._turn[call.question] = not self._turn.get(call.question, False)
        return extreme_script(high=turn)(call)


def rows_and_values(
    sql: str, table: pa.Table, script: Callable[[bf.Request], object], *, planner: bool
) -> tuple[list[str], int]:
    """(the rows of a query, in its order if it has one, and the values asked)."""
    session = bf.connect(bf.ScriptedModel(script), cache=None, planner=planner)  # type: ignore[arg-type]
    session.from_arrow(table, name="t")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.AnswerWarning)
        frame = session.sql(sql)
        rows = [repr(_rounded(row)) for row in frame.to_pylist()]
    return (rows if _IS_ORDERED.search(sql) else sorted(rows)), frame.trace.usage.values


def _rounded(row: dict[str, object]) -> dict[str, object]:
    """Sums of floating-point numbers depend on the order of rows."""
    return {n: float(f"{v:.9g}") if isinstance(v, float) else v for n, v in row.items()}


def check_rows(sql: str, table: pa.Table, script: Callable[[bf.Request], object]) -> int:
    """Compares the rows of a query with those of all answers, whatever those are that nobody asked
    for. Returns the values asked."""
    remembered = Remembered(script)
    rows, asked = rows_and_values(sql, table, remembered, planner=True)
    for others in (extreme_script(high=True), extreme_script(high=False), no_answer, script):
        plain, _ = rows_and_values(sql, table, remembered.completed(others), planner=False)
        assert rows == plain, sql
    return asked
