"""Random SQL expressions of a wanted kind over the columns in scope, with calls in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from random_choices import Choices

KINDS = ("text", "int", "num", "bool", "date")


class Column(NamedTuple):
    """Something that has a value in every row of a scope: a column, or an aggregate."""

    sql: str
    kind: str


Scope = Sequence[Column]

_LITERALS = {
    "text": ["'a'", "'b'", "'x'", "'P'", "'bb'", "''", "'12'"],
    "int": ["1", "2", "0", "3", "5", "-1"],
    "num": ["1.5", "0.25", "-1.5", "8.75"],
    "bool": ["TRUE", "FALSE"],
    "date": ["DATE '2024-01-09'", "DATE '2024-01-20'", "DATE '2024-02-09'"],
}
_TYPES = {"text": "VARCHAR", "int": "BIGINT", "num": "DOUBLE", "bool": "BOOLEAN", "date": "DATE"}
_WRITTEN = {
    "text": [
        "upper({text})",
        "('z' || {text})",
        "CAST({int} AS VARCHAR)",
        "trim({text})",
        "CAST({bool} AS VARCHAR)",
        "CAST({date} AS VARCHAR)",
    ],
    "int": ["({int} + 1)", "length({text})", "abs({int})", "({int} * 2)", "(2 - {int})"],
    "num": ["({num} + {int})", "CAST({int} AS DOUBLE)", "(0 - {num})"],
    "date": ["CAST({date} AS DATE)"],
}
"""What may be written around an expression, to make one of the kind."""
_COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
_CALLS = {
    "bool": ["llm_filter('q1', {})", "llm_filter('q2', {})", "llm_bool('q1', {})"],
    "text": [
        "llm_map('m1', {})",
        "llm_text('m2', {})",
        "llm_classify({}, ['x', 'y'])",
        "llm_map('m3', {}, options => ['P', 'x', 'a'])",
    ],
    "int": ["llm_int('i1', {})", "llm_int('i2', {})", "llm_map('m4', {}, returns => 'int')"],
    "num": ["llm_float('f1', {})", "llm_score('s1', {})"],
    "date": ["llm_date('d1', {})"],
}
_OF_ONE_VALUE = "llm_classify"
_TYPED_BY_PLACE = [
    "llm_map('m5', {}) > 2",
    "llm_map('m5', {}) = 'a'",
    "llm_map('m6', {}) IN ('P', 'x')",
    "llm_map('m7', {}) < DATE '2024-01-20'",
    "llm_map('m5', {}) BETWEEN 1 AND 4",
    "llm_map('m1', {}) LIKE 'a%'",
]


class Expressions:
    """Writes expressions. ``subquery`` writes one that gives a boolean or a value, if any may."""

    def __init__(
        self, choices: Choices, subquery: Callable[[str, Scope], str | None] | None = None
    ) -> None:
        self.choices = choices
        self.subquery = subquery
        self.dear_percent = 45
        """How many leaves are calls."""

    def of(self, kind: str, scope: Scope, depth: int = 2, *, subqueries: bool = False) -> str:
        """An expression of a kind; with ``subqueries``, also in places where DataFusion can."""
        if subqueries and self.subquery is not None and self.choices.chance(12):
            written = self.subquery(kind, scope)
            if written is not None:
                return written
        if depth <= 0 or self.choices.chance(30):
            return self.leaf(kind, scope)
        if kind == "bool":
            return self._boolean(scope, depth - 1, subqueries)
        return self._value(kind, scope, depth - 1)

    def leaf(self, kind: str, scope: Scope) -> str:
        if scope and self.choices.chance(self.dear_percent):
            return self.call(kind, scope)
        columns = [c.sql for c in scope if c.kind == kind]
        if columns:
            return self.choices.pick(columns)
        if kind == "bool" and scope:
            return self._plain_predicate(scope)
        return self._literal(kind)

    def call(self, kind: str, scope: Scope) -> str:
        """A call of a kind over one or two columns in scope, or over expressions with them."""
        if kind == "bool" and self.choices.chance(30):
            return "(" + self.choices.pick(_TYPED_BY_PLACE).format(self._argument(scope)) + ")"
        template = self.choices.pick(_CALLS[kind])
        arguments = self._argument(scope)
        if not template.startswith(_OF_ONE_VALUE) and self.choices.chance(25):
            arguments += ", " + self._argument(scope)
        return template.format(arguments)

    def _argument(self, scope: Scope) -> str:
        texts = [c.sql for c in scope if c.kind == "text"]
        way = self.choices.weighted(text=12, any=4, written=1, nested=1)
        if way == "written" and texts:
            return f"upper({self.choices.pick(texts)})"
        if way == "nested" and texts:
            return f"llm_map('m1', {self.choices.pick(texts)})"
        if way == "text" and texts:
            return self.choices.pick(texts)
        return self.choices.pick(scope).sql

    def _literal(self, kind: str) -> str:
        if self.choices.chance(10):
            return f"CAST(NULL AS {_TYPES[kind]})"
        return self.choices.pick(_LITERALS[kind])

    def _plain_predicate(self, scope: Scope) -> str:
        column = self.choices.pick(scope)
        if self.choices.chance(25):
            return f"({column.sql} IS {self.choices.pick(['NOT ', ''])}NULL)"
        comparison = self.choices.pick(_COMPARISONS[:6])
        return f"({column.sql} {comparison} {self._literal(column.kind)})"

    def _boolean(self, scope: Scope, depth: int, subqueries: bool) -> str:
        choices = self.choices
        form = choices.weighted(
            both=6, either=6, negated=3, compared=5, case=2, asked=2, coalesced=1,
            within=2, between=1, null=2, nullif=1, like=1,
        )  # fmt: skip

        def inner(kind: str = "bool") -> str:
            return self.of(kind, scope, depth)

        def part() -> str:
            return self.of("bool", scope, depth, subqueries=subqueries)

        if form in ("both", "either"):
            word = " AND " if form == "both" else " OR "
            return "(" + word.join(part() for _ in range(2 + choices.below(2))) + ")"
        if form == "negated":
            return f"(NOT {part()})"
        if form == "case":
            return self._case("bool", scope, depth)
        if form == "asked":
            truth = choices.pick(["TRUE", "FALSE", "NULL", "NOT TRUE", "NOT FALSE", "NOT NULL"])
            return f"({inner()} IS {truth})"
        if form == "coalesced":
            return f"COALESCE({inner()}, {inner()})"
        if form == "nullif":
            return f"NULLIF({inner()}, {inner()})"
        if form == "like":
            return f"({inner('text')} {choices.pick(['', 'NOT '])}LIKE {choices.pick(_PATTERNS)})"
        kind = choices.pick(["int", "text", "num", "date", "int", "text"])
        if form == "null":
            return f"({inner(kind)} IS {choices.pick(['', 'NOT '])}NULL)"
        word = choices.pick(["", "NOT "])
        if form == "within":
            literals = choices.some(_LITERALS[kind], 3)
            if choices.chance(15):
                literals.append("NULL")
            return f"({inner(kind)} {word}IN ({', '.join(literals)}))"
        if form == "between":
            return f"({inner(kind)} {word}BETWEEN {self._literal(kind)} AND {inner(kind)})"
        other = self.of(kind, scope, 0, subqueries=subqueries)
        return f"({inner(kind)} {choices.pick(_COMPARISONS)} {other})"

    def _value(self, kind: str, scope: Scope, depth: int) -> str:
        choices = self.choices

        def inner(kind: str = kind) -> str:
            return self.of(kind, scope, depth)

        form = choices.weighted(case=3, coalesced=2, nullif=1, written=4)
        if form == "case":
            return self._case(kind, scope, depth)
        if form == "coalesced":
            return f"COALESCE({inner()}, {inner()})"
        if form == "nullif":
            return f"NULLIF({inner()}, {inner()})"
        template = choices.pick(_WRITTEN[kind])
        return template.format(**{k: inner(k) for k in KINDS if f"{{{k}}}" in template})

    def _case(self, kind: str, scope: Scope, depth: int) -> str:
        base, tested = "", "bool"
        if self.choices.chance(25):
            tested = self.choices.pick(["int", "text", "bool"])
            base = self.of(tested, scope, depth) + " "
        branches = " ".join(
            f"WHEN {self.of(tested, scope, depth)} THEN {self.of(kind, scope, depth)}"
            for _ in range(1 + self.choices.below(2))
        )
        otherwise = f" ELSE {self.of(kind, scope, depth)}" if self.choices.chance(70) else ""
        return f"(CASE {base}{branches}{otherwise} END)"


_PATTERNS = ["'a%'", "'%b%'", "'_'", "''", "'%'"]
