"""Random queries of at most 17 rows and three calls, whose fewest values value_bound computes."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from random_choices import Choices

COLUMNS = {"a": ("id", "k", "x", "y"), "b": ("id", "k", "x"), "c": ("id", "k", "x")}
_MOST_ROWS = {"a": 8, "b": 6, "c": 3}
_TEXTS = {"x": ("u", "v", "w", "z"), "y": ("i", "j", "m", "n")}
MOST_CALLS = 3


class Bounded(NamedTuple):
    """A template (see value_bound); ``ordered``: its rows have one order."""

    template: str
    ordered: bool


_JOIN_ON_ANSWERS = re.compile(r" ON c\d\([^()]*\) = c\d\(")
_KINDS = (
    *((f" {word} ", word) for word in ("EXCEPT", "INTERSECT", "UNION", "HAVING", "GROUP BY")),
    *(("SELECT DISTINCT", "DISTINCT"), ("SELECT max(", "max"), ("SELECT count(", "count")),
    (" LIMIT ", "LIMIT"),
)
EXCESS = {
    "EXCEPT": "both branches ask, and the one that comes first turns out to be in vain",
    "INTERSECT": "both branches ask, and the second one turns out to lack the row",
    "UNION": "both branches ask, and the second one turns out to have the row",
    "HAVING": "a group turns out to be too small, or large enough, before all of its rows are asked",
    "GROUP BY": "the row changes no number of its group",
    "DISTINCT": "another row of equal values turns out to pass",
    "max": "another row turns out to have the largest value",
    "count": "the number is the same with and without the row: outer joins, NULLs",
    "LIMIT": "earlier rows are enough, which only their answers tell",
    "rows": "conditions of several calls, or on pairs, turn out to leave no row of some values",
}
"""Why a query of each kind may ask more values than could matter in the order taken."""


def kind_of(template: str) -> tuple[str, bool]:
    """(a kind of ``EXCESS``, whether the query joins on answers)."""
    found = next((kind for text, kind in _KINDS if text in template), "rows")
    return found, _JOIN_ON_ANSWERS.search(template) is not None


def small_tables(seed: int) -> dict[str, pa.Table]:
    """Three tables, together of at most 17 rows."""
    source = random.Random(seed)
    tables = {}
    for name, columns in COLUMNS.items():
        n = source.randint(0 if seed % 7 == 0 else 1, _MOST_ROWS[name])
        data: dict[str, pa.Array] = {"id": pa.array(range(n), pa.int64())}
        data["k"] = pa.array([source.choice([0, 1, 2, None]) for _ in range(n)], pa.int64())
        for column in columns[2:]:
            pool = [*source.sample(_TEXTS[column], source.randint(1, 3)), None]
            data[column] = pa.array([source.choice(pool) for _ in range(n)], pa.string())
        tables[name] = pa.table(data)
    return tables


def bounded_query(choices: Choices) -> Bounded:
    """A query with at least one call."""
    while True:
        writer = _Writer(choices)
        query = writer.query()
        if writer.calls:
            return query


def limited_query(choices: Choices) -> Bounded:
    """A query with at least one call, of which a limit, a comparison or an order leaves few rows:
    counts that are compared, the first rows of groups, the first groups, neighbours."""
    while True:
        writer = _Writer(choices)
        query = writer.limited()
        if writer.calls:
            return query


@dataclass
class _Source:
    sql: str
    columns: list[str]
    key: list[str]


@dataclass
class _Writer:
    choices: Choices
    calls: int = 0
    names: int = 0

    def query(self) -> Bounded:
        source = self._source()
        where = self._where(source)
        choices = self.choices
        key = ", ".join(source.key)
        way = choices.weighted(
            rows=12, count=5, groups=4, distinct=2, by_answer=3, sets=2, limit=4, any=1
        )
        if way == "count":
            return Bounded(f"SELECT count(*) AS n FROM {source.sql}{where}", False)
        if way == "groups":
            column = choices.pick([c for c in source.columns if not c.endswith(".id")])
            having = choices.pick(["", "", " HAVING count(*) > 1"])
            measure = choices.pick(["count(*)", f"count({choices.pick(source.columns)})"])
            text = f"SELECT {column} AS g, {measure} AS n FROM {source.sql}{where}"
            return Bounded(f"{text} GROUP BY {column}{having}", False)
        if way == "distinct":
            columns = ", ".join(choices.some(source.columns, 2))
            return Bounded(f"SELECT DISTINCT {columns} FROM {source.sql}{where}", False)
        if way == "by_answer":
            answer = self._call(source.columns)
            text = f"SELECT {answer} AS g, count(*) AS n FROM {source.sql}{where}"
            return Bounded(f"{text} GROUP BY {answer}", False)
        if way == "sets":
            other = self._source()
            word = choices.pick(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            column, second = (_text(s, choices) for s in (source, other))
            left = f"SELECT {column} AS g FROM {source.sql}{where}"
            right = f"SELECT {second} AS g FROM {other.sql}{self._where(other)}"
            return Bounded(f"{left} {word} {right}", False)
        if way == "limit":
            keys = ", ".join(f"{name} NULLS LAST" for name in source.key)
            order = f" ORDER BY {keys} LIMIT {choices.pick([1, 2, 3])}"
            return Bounded(f"SELECT {key} FROM {source.sql}{where}{order}", True)
        if way == "any":
            condition = self._boolean(source.columns, 2)
            text = f"SELECT max(CASE WHEN {condition} THEN 1 ELSE 0 END) AS n"
            return Bounded(f"{text} FROM {source.sql}{where}", False)
        shown = key
        if choices.chance(40):
            shown += f", {self._value(source.columns)} AS v"
        return Bounded(f"SELECT {shown} FROM {source.sql}{where}", False)

    def limited(self) -> Bounded:
        source, choices = self._source(), self.choices
        column = choices.pick([c for c in source.columns if not c.endswith(".id")])
        first = choices.pick(source.columns)
        total = ", ".join(f"{name} NULLS LAST" for name in source.key)
        order = f"{first}{choices.pick(['', ' DESC'])} NULLS LAST"
        condition = self._boolean(source.columns, 1)
        count = choices.pick(["count(*)", f"count(*) FILTER (WHERE {condition})",
                              f"sum(CASE WHEN {condition} THEN 1 ELSE 0 END)"])  # fmt: skip
        test = f"{count} {choices.pick(['> 0', '> 1', '>= 2', '= 0', '= 1', '< 2'])}"
        rows = f"FROM {source.sql}{self._where(source)}"
        way = choices.weighted(
            counted=2, having=3, extreme=3, beside=2, groups=3, neighbours=3, ties=3
        )
        if way == "counted":
            return Bounded(f"SELECT CASE WHEN {test} THEN 1 ELSE 0 END AS n {rows}", False)
        if way == "having":
            return Bounded(f"SELECT {column} AS g {rows} GROUP BY {column} HAVING {test}", False)
        if way in ("extreme", "beside"):
            name = choices.pick(["min", "max"])
            shown = f"{name}({first}) FILTER (WHERE {condition}) AS n"
            if way == "beside":
                shown += choices.pick([", count(*) AS m", f", {name}({column}) AS m"])
            if choices.chance(30):
                return Bounded(f"SELECT {shown} {rows}", False)
            return Bounded(f"SELECT {column} AS g, {shown} {rows} GROUP BY {column}", False)
        if way == "groups":
            limit = f"ORDER BY {column} NULLS LAST LIMIT {choices.pick([1, 2])}"
            shown = choices.pick([column, f"{column}, count(*) AS n"])
            return Bounded(f"SELECT {shown} {rows} GROUP BY {column} {limit}", True)
        answer, key = self._value(source.columns), ", ".join(source.key)
        if way == "neighbours":
            window = f"{choices.pick(['lag', 'lead'])}({answer}) OVER (ORDER BY {total})"
            limit = f"ORDER BY {total} LIMIT {choices.pick([1, 2])}"
            return Bounded(f"SELECT {key}, {window} AS v {rows} {limit}", True)
        window = f"(PARTITION BY {column} ORDER BY {order}, {answer} NULLS LAST, {total})"
        chosen = f"first_value({source.key[0]}) OVER {window}"
        return Bounded(f"SELECT {key}, {chosen} AS v {rows}", False)

    # --- FROM ------------------------------------------------------------------------------------

    def _relation(self, table: str) -> _Source:
        self.names += 1
        name = f"{table}{self.names}"
        columns = [f"{name}.{column}" for column in COLUMNS[table]]
        if self.choices.chance(12):
            condition = self._boolean(columns, 1)
            return _Source(f"(SELECT * FROM {table} AS {name} WHERE {condition}) AS {name}",
                           columns, [f"{name}.id"])  # fmt: skip
        return _Source(f"{table} AS {name}", columns, [f"{name}.id"])

    def _source(self) -> _Source:
        source = self._relation(self.choices.pick(["a", "a", "b"]))
        for _ in range(self.choices.pick([0, 0, 0, 1, 1, 2])):
            other = self._relation(self.choices.pick(["b", "c", "a"]))
            columns = [*source.columns, *other.columns]
            word = self.choices.weighted(JOIN=20, LEFT=8, CROSS=4, FULL=1)
            word = word if word == "JOIN" else f"{word} JOIN"
            if word == "CROSS JOIN":
                joined = f"{source.sql} {word} {other.sql}"
            else:
                joined = f"{source.sql} {word} {other.sql} ON {self._on(source, other)}"
            source = _Source(joined, columns, [*source.key, *other.key])
        return source

    def _on(self, left: _Source, right: _Source) -> str:
        choices = self.choices
        name = choices.pick(["k", "k", "x"])
        x = choices.pick([c for c in left.columns if c.endswith(f".{name}")])
        y = next(c for c in right.columns if c.endswith(f".{name}"))
        condition = f"{x} = {y}"
        if choices.chance(25) and self.calls < MOST_CALLS - 1:
            return f"{self._choice(left.columns)} = {self._choice(right.columns)}"
        if choices.chance(25):
            condition += f" AND {self._boolean([*left.columns, *right.columns], 1)}"
        return condition

    # --- expressions -----------------------------------------------------------------------------

    def _where(self, source: _Source) -> str:
        if self.choices.chance(15):
            return ""
        conditions = [self._boolean(source.columns, 2)]
        while self.choices.chance(35):
            conditions.append(self._boolean(source.columns, 1))
        if self.choices.chance(30):
            conditions.append(self._subquery(source.columns))
        if self.choices.chance(50):
            conditions.reverse()
        return f" WHERE {' AND '.join(conditions)}"

    def _subquery(self, outer: list[str]) -> str:
        inner = self._relation(self.choices.pick(["b", "c"]))
        word = self.choices.pick(["", "NOT "])
        if self.choices.chance(50):
            name = self.choices.pick(["k", "x"])
            left = self.choices.pick([c for c in outer if c.endswith(f".{name}")])
            right = next(c for c in inner.columns if c.endswith(f".{name}"))
            where = f" WHERE {self._boolean(inner.columns, 1)}" if self.choices.chance(60) else ""
            if word:
                more = f"{right} IS NOT NULL"
                where = f"{where} AND {more}" if where else f" WHERE {more}"
                left = f"{left} IS NOT NULL AND {left}"
            return f"({left} {word}IN (SELECT {right} FROM {inner.sql}{where}))"
        name = self.choices.pick(["k", "x"])
        left = self.choices.pick([c for c in outer if c.endswith(f".{name}")])
        right = next(c for c in inner.columns if c.endswith(f".{name}"))
        where = f"{left} = {right}"
        if self.choices.chance(60):
            scope = self.choices.pick([inner.columns, [*inner.columns, *outer]])
            where += f" AND {self._boolean(scope, 1)}"
        return f"({word}EXISTS (SELECT 1 FROM {inner.sql} WHERE {where}))"

    def _boolean(self, columns: list[str], depth: int) -> str:
        choices = self.choices
        if depth <= 0 or choices.chance(45):
            return self._predicate(columns)
        form = choices.weighted(both=5, either=5, negated=3, case=2, truth=2, coalesced=1)
        if form in ("both", "either"):
            word = " AND " if form == "both" else " OR "
            return f"({word.join(self._boolean(columns, depth - 1) for _ in range(2))})"
        if form == "negated":
            return f"(NOT {self._boolean(columns, depth - 1)})"
        if form == "case":
            tested, one, two = (self._boolean(columns, depth - 1) for _ in range(3))
            return f"(CASE WHEN {tested} THEN {one} ELSE {two} END)"
        if form == "coalesced":
            one, two = (self._boolean(columns, depth - 1) for _ in range(2))
            return f"COALESCE({one}, {two})"
        return f"(({self._boolean(columns, depth - 1)}) IS {choices.pick(['TRUE', 'NOT TRUE', 'FALSE'])})"

    def _predicate(self, columns: list[str]) -> str:
        choices = self.choices
        if self.calls < MOST_CALLS and choices.chance(55):
            return self._call(columns)
        column = choices.pick(columns)
        if choices.chance(20):
            return f"({column} IS {choices.pick(['NOT ', ''])}NULL)"
        if column.endswith((".x", ".y")):
            texts = [c for c in columns if c.endswith(column[-2:]) and c != column]
            literals = ("'u'", "'v'") if column.endswith(".x") else ("'i'", "'j'")
            other = choices.pick([*texts, *literals])
            return f"({column} {choices.pick(['=', '<>'])} {other})"
        return f"({column} {choices.pick(['=', '<>', '<', '>'])} {choices.below(3)})"

    def _call(self, columns: list[str]) -> str:
        if self.choices.chance(25):
            return f"({self._choice(columns)} {self.choices.pick(['=', '<>'])} 'r')"
        self.calls += 1
        texts = [c for c in columns if c.endswith((".x", ".y"))]
        values = self.choices.pick(texts)
        if self.choices.chance(12):
            other = self.choices.pick(texts)
            values = values if other == values else f"{values}, {other}"
        return f"q{1 + self.choices.below(3)}({values})"

    def _choice(self, columns: list[str]) -> str:
        self.calls += 1
        texts = [c for c in columns if c.endswith((".x", ".y"))]
        return f"c{1 + self.choices.below(2)}({self.choices.pick(texts)})"

    def _value(self, columns: list[str]) -> str:
        if self.calls < MOST_CALLS and self.choices.chance(50):
            return self._call(columns)
        return f"CASE WHEN {self._boolean(columns, 1)} THEN 1 ELSE 0 END"


def _text(source: _Source, choices: Choices) -> str:
    return choices.pick([c for c in source.columns if c.endswith(".x")])
