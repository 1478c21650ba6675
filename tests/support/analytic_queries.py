"""Random queries as analysts write them, in the words that DataFusion and DuckDB share.

The text of a query has a form with plain functions and one with calls in their places, whose
answers (``scripts.spoken``) are those of the functions: ``upper(note)`` and ``llm_text('upper',
note)``. Where a LIMIT stands, the order is total."""

from __future__ import annotations

import datetime
import random
import re
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

_HOLDS = re.compile(r"contains\(([\w.]+), '(\w+)'\)")
_UPPER = re.compile(r"\bupper\(([\w.]+)\)")
_LENGTH = re.compile(r"\blength\(([\w.]+)\)")


class Analytic(NamedTuple):
    """A query: its text with plain functions, and whether its rows have an order."""

    sql: str
    ordered: bool

    @property
    def asking(self) -> str:
        """The same query with calls for the functions of the notes; itself without any."""
        text = _HOLDS.sub(r"llm_filter('holds \2', \1)", self.sql)
        text = _UPPER.sub(r"llm_text('upper', \1)", text)
        return _LENGTH.sub(r"llm_int('length', \1)", text)


def tables(seed: int) -> dict[str, pa.Table]:
    """A small star of sales, items and stores with NULLs, ties and dates at the ends of months."""
    rng = random.Random(f"tables {seed}")

    def some(values: list[object], share: float = 0.15) -> object:
        return None if rng.random() < share else rng.choice(values)

    days = [datetime.date(2023, 12, 31), datetime.date(2024, 1, 31), datetime.date(2024, 2, 29)]
    days += [datetime.date(2024, 1, 1), datetime.date(2024, 3, 15), datetime.date(2025, 1, 1)]
    notes: list[object] = ["red bag", "blue bag", "a red shoe", "hat", "big red hat", "shoe"]
    moments: list[object] = [
        datetime.datetime(2024, 1, 31, 23, 59, 59),
        datetime.datetime(2024, 2, 1),
        datetime.datetime(2024, 2, 29, 12, 30),
        datetime.datetime(2023, 12, 31, 6),
    ]
    n = rng.randint(6, 14)
    sales = {
        "id": pa.array(range(1, n + 1), pa.int64()),
        "item": pa.array([some([1, 2, 3, 4, 9]) for _ in range(n)], pa.int32()),
        "store": pa.array([some([1, 2, 3]) for _ in range(n)], pa.int64()),
        "day": pa.array([some([*days], 0.1) for _ in range(n)], pa.date32()),
        "at": pa.array([some(moments) for _ in range(n)], pa.timestamp("us")),
        "price": pa.array(
            [
                some([Decimal("1.25"), Decimal("19.90"), Decimal("-3.00"), Decimal("0.05")])
                for _ in range(n)
            ],
            pa.decimal128(10, 2),
        ),
        "qty": pa.array([some([0, 1, 2, 3, 7]) for _ in range(n)], pa.int64()),
        "rate": pa.array([some([0.5, 1.5, 2.25, -1.0]) for _ in range(n)], pa.float64()),
        "code": pa.array([some(["07", "7", "12", "x1"]) for _ in range(n)]),
        "note": pa.array([some(notes) for _ in range(n)]),
        "paid": pa.array([some([True, False]) for _ in range(n)]),
    }
    items = {
        "item": pa.array([1, 2, 3, 4], pa.int32()),
        "name": pa.array(["bag", "shoe", "hat", None]),
        "class": pa.array(["A", "B", "A", "C"]),
        "cost": pa.array(
            [Decimal("1.000"), Decimal("2.500"), None, Decimal("0.125")], pa.decimal128(8, 3)
        ),
        "text": pa.array(["red one", "no", None, "a blue one"]),
    }
    stores = {
        "store": pa.array([1, 2, 4], pa.int64()),
        "city": pa.array(["Rome", "Oslo", "Bonn"]),
        "opened": pa.array(
            [datetime.date(2020, 2, 29), None, datetime.date(2024, 1, 31)], pa.date32()
        ),
    }
    return {"sales": pa.table(sales), "items": pa.table(items), "stores": pa.table(stores)}


COLUMNS = {
    "sales": {
        "id": "int",
        "item": "int",
        "store": "int",
        "day": "date",
        "at": "time",
        "price": "dec",
        "qty": "int",
        "rate": "num",
        "code": "text",
        "note": "note",
        "paid": "bool",
    },
    "items": {"item": "int", "name": "text", "class": "text", "cost": "dec", "text": "note"},
    "stores": {"store": "int", "city": "text", "opened": "date"},
}


class Scope(dict[str, list[str]]):
    """The columns in sight, as SQL, by their kinds."""

    def of(self, alias: str, columns: dict[str, str]) -> Scope:
        for name, kind in columns.items():
            self.setdefault(kind, []).append(f"{alias}.{name}")
        return self


class Maker:
    """Makes one query from a source of random choices."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"analytic {seed}")
        self.depth = 0

    def one(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    # --- expressions ---------------------------------------------------------------------------

    def column(self, scope: Scope, kind: str) -> str | None:
        return self.rng.choice(scope[kind]) if scope.get(kind) else None

    def expr(self, scope: Scope, kind: str, depth: int = 2) -> str:
        column = self.column(scope, kind)
        if column is not None and (depth <= 0 or self.maybe(0.4)):
            return column
        if depth <= 0:
            return self.literal(kind)
        sub = lambda k: self.expr(scope, k, depth - 1)  # noqa: E731
        forms = {
            "int": lambda: self.one(
                f"({sub('int')} + {sub('int')})",
                f"({sub('int')} * 2)",
                f"abs({sub('int')})",
                f"coalesce({sub('int')}, 0)",
                f"nullif({sub('int')}, 2)",
                f"CASE WHEN {sub('bool')} THEN {sub('int')} ELSE {sub('int')} END",
                f"CAST(extract(year FROM {sub('date')}) AS BIGINT)",
                f"CAST(date_part('month', {sub('date')}) AS BIGINT)",
                f"CAST(date_part('dow', {sub('date')}) AS BIGINT)",
                f"CAST(date_part('quarter', {sub('time')}) AS BIGINT)",
                f"length({self.column(scope, 'note')})" if scope.get("note") else "1",
                f"strpos({sub('text')}, 'a')",
                f"({sub('int')} % 3)",
                f"CAST({sub('num')} > 1 AS INT)",
                f"CAST(floor({sub('num')}) AS BIGINT)",
                f"greatest({sub('int')}, {sub('int')})",
            ),
            "num": lambda: self.one(
                f"({sub('num')} + {sub('num')})",
                f"({sub('num')} * {sub('int')})",
                f"CAST({sub('int')} AS DOUBLE)",
                f"CAST({sub('dec')} AS DOUBLE)",
                f"round({sub('num')}, 1)",
                f"({sub('num')} / 4)",
                f"coalesce({sub('num')}, 0.0)",
                f"CAST({sub('int')} AS DOUBLE) / nullif({sub('int')}, 0)",
                f"abs({sub('num')})",
                f"power({sub('num')}, 2)",
                f"ceil({sub('num')})",
            ),
            "dec": lambda: self.one(
                f"({sub('dec')} + {sub('dec')})",
                f"({sub('dec')} * 2)",
                f"CAST({sub('int')} AS DECIMAL(12, 2))",
                f"coalesce({sub('dec')}, 0)",
                f"CASE WHEN {sub('bool')} THEN {sub('dec')} ELSE 0 END",
                f"({sub('dec')} - 1.5)",
                f"abs({sub('dec')})",
                f"({sub('dec')} * {sub('int')})",
                f"CAST({sub('dec')} AS DECIMAL(8, 1))",
            ),
            "text": lambda: self.one(
                f"upper({self.column(scope, 'note')})" if scope.get("note") else "'k'",
                f"({sub('text')} || '-' || {sub('text')})",
                f"lower({sub('text')})",
                f"substr({sub('text')}, 1, 2)",
                f"coalesce({sub('text')}, 'none')",
                f"replace({sub('text')}, 'a', 'o')",
                f"concat({sub('text')}, '/', {sub('text')})",
                f"CAST({sub('int')} AS VARCHAR)",
                f"CAST({sub('date')} AS VARCHAR)",
                f"CASE WHEN {sub('bool')} THEN {sub('text')} ELSE 'other' END",
                f"CASE {sub('text')} WHEN 'A' THEN 'first' WHEN 'B' THEN 'second' END",
                f"trim({sub('text')})",
                f"left({sub('text')}, 1)",
                f"right({sub('text')}, 2)",
                f"reverse({sub('text')})",
                f"lpad({sub('text')}, 4, '*')",
                f"split_part({sub('text')}, ' ', 1)",
                f"nullif({sub('text')}, 'A')",
                f"CAST({sub('dec')} AS VARCHAR)",
            ),
            "note": lambda: column or "'red'",
            "date": lambda: self.one(
                f"CAST({sub('time')} AS DATE)",
                f"CAST(date_trunc('month', {sub('date')}) AS DATE)",
                f"CAST({sub('date')} + INTERVAL '1 month' AS DATE)",
                f"CAST({sub('date')} - INTERVAL '10 days' AS DATE)",
                f"coalesce({sub('date')}, DATE '2024-01-01')",
                f"CAST(date_trunc('quarter', {sub('date')}) AS DATE)",
                f"CAST(date_trunc('week', {sub('date')}) AS DATE)",
            ),
            "time": lambda: self.one(
                f"date_trunc('hour', {sub('time')})",
                f"({sub('time')} + INTERVAL '90 minutes')",
                f"CAST({sub('date')} AS TIMESTAMP)",
                f"date_trunc('day', {sub('time')})",
            ),
            "bool": lambda: self.predicate(scope, depth - 1),
        }
        return forms[kind]()

    def literal(self, kind: str) -> str:
        return {
            "int": self.one("1", "2", "7"),
            "num": self.one("0.5e0", "2.0e0"),
            "dec": self.one("1.25", "0.50"),
            "text": self.one("'A'", "'bag'", "'7'"),
            "note": "'red hat'",
            "date": self.one("DATE '2024-01-31'", "DATE '2024-03-01'"),
            "time": "TIMESTAMP '2024-02-01 00:00:00'",
            "bool": self.one("TRUE", "FALSE"),
        }[kind]

    def predicate(self, scope: Scope, depth: int = 1) -> str:
        sub = lambda k: self.expr(scope, k, max(0, depth - 1))  # noqa: E731
        forms = [
            lambda: f"{sub('int')} {self.one('<', '>=', '=', '<>')} {sub('int')}",
            lambda: f"{sub('num')} {self.one('<', '>=')} {sub('num')}",
            lambda: f"{sub('dec')} {self.one('<', '>=', '=')} {sub('dec')}",
            lambda: f"{sub('date')} BETWEEN DATE '2024-01-01' AND {sub('date')}",
            lambda: f"{sub('date')} >= DATE '2024-02-01' - INTERVAL '1 month'",
            lambda: f"{sub('text')} IN ('A', 'bag', 'Rome')",
            lambda: f"{sub('text')} LIKE '%a%'",
            lambda: f"{sub('text')} NOT LIKE 'b%'",
            lambda: f"{self.column(scope, self.any_kind(scope))} IS {self.one('', 'NOT ')}NULL",
            lambda: f"{sub('int')} NOT IN (1, 3)",
            lambda: f"{sub('text')} IS DISTINCT FROM {sub('text')}",
            lambda: self.column(scope, "bool") or "TRUE",
        ]
        if scope.get("note"):
            word = self.one("red", "bag", "a")
            forms += [lambda: f"contains({self.column(scope, 'note')}, '{word}')"] * 4
        if depth > 0:
            forms += [
                lambda: (
                    f"({self.predicate(scope, depth - 1)} AND {self.predicate(scope, depth - 1)})"
                ),
                lambda: (
                    f"({self.predicate(scope, depth - 1)} OR {self.predicate(scope, depth - 1)})"
                ),
                lambda: f"NOT ({self.predicate(scope, depth - 1)})",
                lambda: f"({self.predicate(scope, 0)}) IS {self.one('TRUE', 'NOT TRUE')}",
            ]
        return self.rng.choice(forms)()

    def any_kind(self, scope: Scope) -> str:
        return self.rng.choice([k for k in scope if k != "note" and scope[k]] or [*scope])

    # --- relations -----------------------------------------------------------------------------

    def source(self) -> tuple[str, Scope]:
        scope = Scope().of("s", COLUMNS["sales"])
        kind = self.rng.randrange(7)
        if kind <= 1:
            return "sales AS s", scope
        if kind == 2:
            join = self.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
            return f"sales AS s {join} items AS i ON s.item = i.item", scope.of(
                "i", COLUMNS["items"]
            )
        if kind == 3:
            join = self.one("JOIN", "LEFT JOIN")
            scope.of("i", COLUMNS["items"]).of("p", COLUMNS["stores"])
            return (
                f"sales AS s {join} items AS i ON s.item = i.item "
                f"{self.one('JOIN', 'LEFT JOIN')} stores AS p ON p.store = s.store",
                scope,
            )
        if kind == 4:
            where = self.predicate(scope)
            return f"(SELECT * FROM sales AS s WHERE {where}) AS s", scope
        if kind == 5:
            inner = Scope().of("s", COLUMNS["sales"])
            extra = {"total": "dec", "times": "int"}
            scope.of("g", extra)
            return (
                "sales AS s JOIN (SELECT s.store, sum(s.price) AS total, count(*) AS times FROM sales AS s "
                f"WHERE {self.predicate(inner)} GROUP BY s.store) AS g ON g.store = s.store",
                scope,
            )
        return "sales AS s, items AS i", scope.of("i", COLUMNS["items"])

    def condition(self, scope: Scope) -> str:
        """A predicate of WHERE, perhaps with a subquery."""
        inner = Scope().of("x", COLUMNS["sales"])
        kind = self.rng.randrange(12)
        if kind == 0:
            return f"s.item IN (SELECT x.item FROM items AS x WHERE {self.predicate(Scope().of('x', COLUMNS['items']))})"
        if kind == 1:
            return f"{self.one('', 'NOT ')}EXISTS (SELECT 1 FROM sales AS x WHERE x.store = s.store AND x.id < s.id AND {self.predicate(inner)})"
        if kind == 2:
            return f"s.price > (SELECT avg(x.price) FROM sales AS x WHERE x.store = s.store AND {self.predicate(inner)})"
        if kind == 3:
            return "s.item NOT IN (SELECT x.item FROM items AS x WHERE x.item > 2)"
        if kind == 4:
            return f"s.qty >= (SELECT min(x.qty) FROM sales AS x WHERE {self.predicate(inner)})"
        return self.predicate(scope, 2)

    def where(self, scope: Scope) -> str:
        return f" WHERE {self.condition(scope)}" if self.maybe(0.7) else ""

    # --- queries -------------------------------------------------------------------------------

    def aggregate(self, scope: Scope) -> str:
        form = self.one(
            "count(*)",
            f"count({self.expr(scope, self.any_kind(scope), 1)})",
            f"count(DISTINCT {self.expr(scope, self.one('int', 'text', 'date'), 1)})",
            f"sum({self.expr(scope, self.one('int', 'dec', 'num'), 1)})",
            f"avg({self.expr(scope, self.one('int', 'num'), 1)})",
            f"min({self.expr(scope, self.one('int', 'text', 'date', 'dec'), 1)})",
            f"max({self.expr(scope, self.one('int', 'text', 'time', 'num'), 1)})",
            f"sum(CASE WHEN {self.predicate(scope)} THEN 1 ELSE 0 END)",
            f"bool_or({self.predicate(scope)})",
            "stddev_samp(s.rate)",
            "string_agg(s.code, ',' ORDER BY s.id)",
            f"sum(DISTINCT {self.expr(scope, 'int', 1)})",
        )
        if self.maybe(0.2):
            form += f" FILTER (WHERE {self.predicate(scope)})"
        return form

    def key(self, scope: Scope) -> str:
        return self.expr(scope, self.one("int", "text", "date", "text", "dec", "num"), 1)

    def keys(self, scope: Scope) -> list[str]:
        """Keys of groups; some are the cast of another one."""
        found = [self.key(scope) for _ in range(self.rng.randint(1, 3))]
        if self.maybe(0.35):
            column, to = self.rng.choice(
                [
                    ("s.qty", "DOUBLE"),
                    ("s.code", "VARCHAR"),
                    ("s.day", "VARCHAR"),
                    ("s.day", "TIMESTAMP"),
                    ("s.qty", "VARCHAR"),
                    ("s.price", "DOUBLE"),
                    ("s.item", "BIGINT"),
                    ("s.at", "DATE"),
                ]
            )
            found = [column, f"CAST({column} AS {to})", *found[:1]]
        return list(dict.fromkeys(found))

    def grouped(self) -> Analytic:
        source, scope = self.source()
        keys = self.keys(scope)
        shown = [f"{k} AS k{n}" for n, k in enumerate(keys)]
        aggregates = [self.aggregate(scope) for _ in range(self.rng.randint(1, 3))]
        measures = [f"{a} AS m{n}" for n, a in enumerate(aggregates)]
        style = self.rng.randrange(8)
        ordinals = ", ".join(str(n + 1) for n in range(len(keys)))
        listed = ", ".join(keys)
        if style == 0:
            by = f"ROLLUP ({listed})"
        elif style == 1:
            by = f"CUBE ({listed})"
        elif style == 2:
            by = f"GROUPING SETS (({listed}), ({keys[0]}), ())"
        elif style <= 5:
            by = ordinals
        else:
            by = listed
        if style <= 2 and self.maybe(0.3):
            measures.append(f"grouping({keys[0]}) AS g")
        having = (
            f" HAVING {self.one('count(*) > 1', 'sum(s.qty) > 2', 'count(*) < 4', 'max(s.id) > 3')}"
            if self.maybe(0.3)
            else ""
        )
        text = f"SELECT {', '.join([*shown, *measures])} FROM {source}{self.where(scope)} GROUP BY {by}{having}"
        return self.ended(text, [f"k{n}" for n in range(len(keys))], total=style > 2)

    def ended(self, text: str, names: list[str], *, total: bool) -> Analytic:
        """The text with an ORDER BY, and a LIMIT where the order is total."""
        if not self.maybe(0.5):
            return Analytic(text, False)
        ways = [self.one("", " DESC") + self.one(" NULLS FIRST", " NULLS LAST") for _ in names]
        text += " ORDER BY " + ", ".join(n + w for n, w in zip(names, ways, strict=True))
        if total and self.maybe(0.6):
            text += f" LIMIT {self.rng.randint(1, 5)}" + (" OFFSET 1" if self.maybe(0.3) else "")
        return Analytic(text, total)

    def rows(self) -> Analytic:
        source, scope = self.source()
        distinct = self.maybe(0.25)
        # DataFusion fails on DISTINCT of ``(a > b) IS TRUE``, whose NULLs it sees in two ways.
        last = "num" if distinct else "bool"
        kinds = [
            self.one("int", "text", "date", "dec", "num", last, "time")
            for _ in range(self.rng.randint(1, 4))
        ]
        exprs = [f"{self.expr(scope, k)} AS c{n}" for n, k in enumerate(kinds)]
        text = f"SELECT {'DISTINCT ' if distinct else 's.id AS r, '}{', '.join(exprs)} FROM {source}{self.where(scope)}"
        names = [f"c{n}" for n in range(len(kinds))]
        if distinct:
            return self.ended(text, names, total=True)
        total = source == "sales AS s" or source.startswith("(SELECT")
        return self.ended(text, ["r"] if total else ["r", *names], total=total)

    def windowed(self) -> Analytic:
        source, scope = (
            ("sales AS s", Scope().of("s", COLUMNS["sales"])) if self.maybe(0.6) else self.source()
        )
        over = f"PARTITION BY {self.one('s.store', 's.item', self.key(scope))} ORDER BY {self.one('s.id', 's.day NULLS LAST, s.id', 's.qty NULLS FIRST, s.id')}"
        frame = self.one(
            "",
            " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        )
        ties = source not in ("sales AS s",)
        if ties:
            over, frame = f"PARTITION BY s.store, {self.key(scope)}", ""
        number = self.expr(scope, self.one("int", "dec"), 1)
        functions = [
            f"sum({number}) OVER ({over}{frame})",
            f"count(*) OVER ({over}{frame})",
            f"max({number}) OVER ({over})",
        ]
        if not ties:
            functions += [
                f"row_number() OVER ({over})",
                f"lag({number}) OVER ({over})",
                f"lead({number}, 1, 0) OVER ({over})",
                f"first_value({self.expr(scope, 'text', 1)}) OVER ({over})",
                f"rank() OVER ({over})",
                "dense_rank() OVER (PARTITION BY s.store ORDER BY s.qty NULLS LAST)",
                f"ntile(2) OVER ({over})",
                f"avg({self.expr(scope, 'num', 1)}) OVER ({over}{frame})",
                "sum(s.qty) OVER (ORDER BY s.id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
                f"{number} - lag({number}) OVER ({over})",
            ]
        chosen = self.rng.sample(functions, min(len(functions), self.rng.randint(1, 3)))
        shown = ", ".join(f"{f} AS w{n}" for n, f in enumerate(chosen))
        text = f"SELECT s.id AS r, {shown} FROM {source}{self.where(scope)}"
        if not ties and self.maybe(0.4):
            text += f" QUALIFY {self.one(f'row_number() OVER ({over}) <= 2', 'count(*) OVER (PARTITION BY s.store) > 1', f'rank() OVER ({over}) = 1')}"
        return self.ended(text, ["r"], total=not ties)

    def united(self) -> Analytic:
        operator = self.one(
            "UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"
        )
        kinds = [self.one("int", "text", "date") for _ in range(self.rng.randint(1, 2))]

        def side() -> str:
            source, scope = self.source()
            exprs = [f"{self.expr(scope, k, 1)} AS c{n}" for n, k in enumerate(kinds)]
            return f"SELECT {', '.join(exprs)} FROM {source}{self.where(scope)}"

        text = f"{side()} {operator} {side()}"
        if self.maybe(0.3):
            text = f"SELECT c0, count(*) AS m FROM ({text}) AS u GROUP BY 1"
            return self.ended(text, ["c0"], total=True)
        names = [f"c{n}" for n in range(len(kinds))]
        return self.ended(text, names, total=True)

    def first_of_each(self) -> Analytic:
        scope = Scope().of("s", COLUMNS["sales"])
        key = self.one("s.store", "s.item", "s.code", "CAST(s.day AS VARCHAR)")
        ways = self.one(" NULLS LAST", " NULLS FIRST", " DESC NULLS LAST")
        text = (
            f"SELECT DISTINCT ON ({key}) {key} AS k, s.id AS r, {self.expr(scope, 'text', 1)} AS c "
            f"FROM sales AS s{self.where(scope)} ORDER BY {key}{ways}, s.qty DESC NULLS LAST, s.id"
        )
        return Analytic(text, True)

    def common(self) -> Analytic:
        """CTEs: monthly sums, and a comparison of each with another month or with the whole."""
        scope = Scope().of("s", COLUMNS["sales"])
        month = self.one(
            "date_trunc('month', s.day)", "extract(year FROM s.day)", "CAST(s.day AS VARCHAR)"
        )
        where = self.where(scope)
        head = (
            f"WITH base AS (SELECT s.id, s.store, {month} AS m, s.price, s.qty, s.note FROM sales AS s{where}), "
            "sums AS (SELECT store, m, sum(price) AS total, count(*) AS n FROM base GROUP BY store, m)"
        )
        tail = self.one(
            "SELECT store AS k0, m AS k1, total, total * 100 / nullif(sum(total) OVER (), 0) > 10 AS big FROM sums",
            "SELECT a.store AS k0, a.m AS k1, b.total FROM sums AS a LEFT JOIN sums AS b ON a.store = b.store AND a.m < b.m",
            "SELECT store AS k0, max(total) AS k1, sum(n) AS s FROM sums GROUP BY 1",
            "SELECT store AS k0, m AS k1, total FROM sums AS a WHERE total = (SELECT max(total) FROM sums AS b WHERE b.store = a.store)",
            "SELECT store AS k0, m AS k1, rank() OVER (PARTITION BY store ORDER BY total DESC NULLS LAST) AS w FROM sums",
            "SELECT b.store AS k0, b.m AS k1, count(*) AS n FROM base AS b JOIN sums AS s ON s.store = b.store AND s.m = b.m WHERE contains(b.note, 'red') GROUP BY b.store, b.m",
        )
        return self.ended(f"{head} {tail}", ["k0", "k1"], total=False)

    # --- everyday shapes -----------------------------------------------------------------------

    def nested_windows(self) -> Analytic:
        """Windows over aggregates: shares of the whole, ranks of sums, running sums of months."""
        scope = Scope().of("s", COLUMNS["sales"])
        key = self.one("s.store", "s.item", "date_trunc('month', s.day)", "s.code", "upper(s.note)")
        amount = self.one(
            "sum(s.price)", "sum(s.qty)", "count(*)", "max(s.price)", "sum(length(s.note))"
        )
        window = self.one(
            f"sum({amount}) OVER ()",
            f"rank() OVER (ORDER BY {amount} DESC NULLS LAST)",
            f"sum({amount}) OVER (ORDER BY {key} NULLS FIRST)",
            f"lag({amount}) OVER (ORDER BY {key} NULLS LAST)",
            f"100.0 * {amount} / sum({amount}) OVER ()",
            f"max({amount}) OVER (PARTITION BY {key} IS NULL)",
            f"row_number() OVER (ORDER BY {amount}, {key} NULLS LAST)",
            f"avg(CAST({amount} AS DOUBLE)) OVER ()",
        )
        text = f"SELECT {key} AS k, {amount} AS m, {window} AS w FROM sales AS s{self.where(scope)} GROUP BY {self.one('1', key)}"
        if self.maybe(0.3):
            text += f" HAVING {self.one('count(*) > 1', 'sum(s.qty) > (SELECT avg(x.qty) FROM sales AS x)')}"
        if self.maybe(0.2):
            text += f" QUALIFY row_number() OVER (ORDER BY count(*) DESC, {key} NULLS LAST) <= 2"
        return self.ended(text, ["k"], total=True)

    def named_windows(self) -> Analytic:
        scope = Scope().of("s", COLUMNS["sales"])
        order = self.one("s.id", "s.day NULLS LAST, s.id", "s.price DESC NULLS LAST, s.id")
        text = (
            f"SELECT s.id AS r, sum({self.expr(scope, 'dec', 1)}) OVER w AS a, lag({self.expr(scope, 'text', 1)}, 2, 'none') OVER w AS b, "
            f"{self.one('last_value(s.code) OVER w', 'first_value(s.code) OVER w', 'nth_value(s.code, 2) OVER w', 'count(s.code) OVER w', 'percent_rank() OVER w', 'cume_dist() OVER w')} AS c "
            f"FROM sales AS s{self.where(scope)} WINDOW w AS (PARTITION BY {self.one('s.store', 's.paid')} ORDER BY {order})"
        )
        return self.ended(text, ["r"], total=True)

    def ranges(self) -> Analytic:
        frame = self.one(
            "s.day RANGE BETWEEN INTERVAL '30 days' PRECEDING AND CURRENT ROW",
            "s.day RANGE BETWEEN INTERVAL '1 month' PRECEDING AND INTERVAL '1 day' FOLLOWING",
            "s.qty RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            "s.at RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW",
            "s.day",
            "s.qty ROWS BETWEEN CURRENT ROW AND CURRENT ROW",
        )
        where = " WHERE s.day IS NOT NULL AND s.at IS NOT NULL AND s.qty IS NOT NULL"
        if self.maybe(0.5):
            where += f" AND {self.predicate(Scope().of('s', COLUMNS['sales']))}"
        return Analytic(
            f"SELECT s.id, sum(s.id) OVER (PARTITION BY s.paid ORDER BY {frame}) AS w FROM sales AS s{where}",
            False,
        )

    def scalars(self) -> Analytic:
        """Subqueries in the select list, ANY, ALL, rows as values, USING, lists of columns."""
        scope = Scope().of("s", COLUMNS["sales"])
        inner = Scope().of("x", COLUMNS["sales"])
        form = self.rng.randrange(12)
        where = self.where(scope)
        p = self.predicate(inner)
        if form == 0:
            text = f"SELECT s.id AS r, (SELECT count(*) FROM sales AS x WHERE x.store = s.store AND {p}) AS n FROM sales AS s{where}"
        elif form == 1:
            text = f"SELECT s.id AS r, CASE WHEN EXISTS (SELECT 1 FROM sales AS x WHERE x.item = s.item AND {p}) THEN 'yes' ELSE 'no' END AS e FROM sales AS s{where}"
        elif form == 2:
            text = f"SELECT s.id AS r FROM sales AS s WHERE s.qty {self.one('= ANY', '> ALL', '<> ALL', '< ANY')} (SELECT x.qty FROM sales AS x WHERE x.qty IS NOT NULL AND {p})"
        elif form == 3:
            text = "SELECT s.id AS r FROM sales AS s WHERE (s.store, s.paid) IN ((1, TRUE), (2, FALSE))"
        elif form == 4:
            text = "SELECT store, count(*) AS n, max(city) AS c FROM sales JOIN stores USING (store) GROUP BY store"
        elif form == 5:
            text = f"SELECT t.a AS r, t.b FROM (SELECT s.id, {self.expr(scope, 'text')} FROM sales AS s{where}) AS t(a, b)"
        elif form == 6:
            text = f"SELECT a.id AS r, b.id AS o FROM sales AS a JOIN sales AS b ON a.store = b.store AND a.id < b.id AND a.qty IS DISTINCT FROM b.qty{self.one('', ' WHERE contains(b.note, ' + chr(39) + 'red' + chr(39) + ')')}"
        elif form == 7:
            text = f"SELECT v.k AS r, count(s.id) AS n FROM (VALUES (1, 'one'), (2, 'two'), (5, 'five')) AS v(k, w) LEFT JOIN sales AS s ON s.store = v.k AND {self.predicate(scope)} GROUP BY 1"
        elif form == 8:
            text = f"WITH RECURSIVE months AS (SELECT DATE '2023-12-01' AS m UNION ALL SELECT CAST(m + INTERVAL '1 month' AS DATE) FROM months WHERE m < DATE '2024-04-01') SELECT m AS r, count(s.id) AS n, sum(s.price) AS p FROM months LEFT JOIN sales AS s ON date_trunc('month', s.day) = m AND {self.predicate(scope)} GROUP BY 1"
        elif form == 9:
            text = f"SELECT s.id AS r, s.rate - (SELECT avg(x.rate) FROM sales AS x WHERE {p}) AS d FROM sales AS s{where}"
        elif form == 10:
            text = "SELECT s.id AS r FROM sales AS s WHERE NOT EXISTS (SELECT 1 FROM items AS x WHERE x.item = s.item) AND s.store NOT IN (SELECT y.store FROM stores AS y WHERE y.opened IS NULL)"
        else:
            text = f"SELECT i.item AS r, i.name, count(s.id) AS n, coalesce(sum(s.qty), 0) AS q FROM items AS i LEFT JOIN sales AS s ON s.item = i.item AND {self.predicate(scope)} GROUP BY i.item, i.name"
        return Analytic(text, False)

    def statistics(self) -> Analytic:
        scope = Scope().of("s", COLUMNS["sales"])
        shown = self.rng.sample(
            [
                "median(s.rate)",
                "var_pop(s.rate)",
                "stddev_pop(s.qty)",
                "covar_samp(s.qty, s.rate)",
                "round(avg(s.rate), 2)",
                "bool_and(s.paid)",
                "100.0 * count(s.note) / count(*)",
                "count(DISTINCT s.code) FILTER (WHERE s.qty > 0)",
                "array_agg(s.id ORDER BY s.id DESC)",
                "array_agg(DISTINCT s.store ORDER BY s.store NULLS LAST)",
                "min(s.at)",
                "string_agg(DISTINCT s.code, '|' ORDER BY s.code)",
                "sum(CAST(s.paid AS INT))",
                "avg(CAST(s.paid AS INT))",
                "max(upper(s.note))",
                "count(*) FILTER (WHERE contains(s.note, 'bag'))",
                "sum(s.price * s.qty)",
                "avg(s.qty)",
                "first_value(s.code ORDER BY s.id)",
                "quantile_cont(s.rate, 0.5)",
                "percentile_cont(0.25) WITHIN GROUP (ORDER BY s.rate)",
                "sum(s.price) FILTER (WHERE s.paid) - sum(s.price) FILTER (WHERE NOT s.paid)",
                "sum(s.qty), sum(CAST(s.qty AS DOUBLE))",
                "max(s.code), max(TRY_CAST(s.code AS INT))",
                "min(s.day), min(CAST(s.day AS VARCHAR))",
            ],
            self.rng.randint(1, 4),
        )
        by = self.one("", " GROUP BY s.store", " GROUP BY ALL", " GROUP BY k")
        key = "s.store AS k, " if by else ""
        named = ", ".join(f"{part} AS {self.alias()}" for one in shown for part in _apart(one))
        text = f"SELECT {key}{named} FROM sales AS s{self.where(scope)}{by}"
        if self.maybe(0.2):
            text += " HAVING count(*) > 1"
        return Analytic(text, False)

    def alias(self) -> str:
        self.aliases = getattr(self, "aliases", 0) + 1
        return f"a{self.aliases}"

    def texts(self) -> Analytic:
        scope = Scope().of("s", COLUMNS["sales"])
        shown = self.rng.sample(
            [
                "position('a' IN s.code)",
                "concat_ws('-', s.code, s.note)",
                "regexp_replace(s.note, 'r.d', 'X')",
                "repeat(s.code, 2)",
                "translate(s.code, '07', 'ab')",
                "ascii(s.code)",
                "char_length(s.note)",
                "ltrim(s.code, '0')",
                "rtrim(s.note, 't')",
                "s.note ILIKE '%RED%'",
                "s.note LIKE 'a%' OR s.code LIKE '_2'",
                "starts_with(s.code, '0')",
                "md5(s.code)",
                "TRY_CAST(s.code AS INT)",
                "substring(s.note FROM 2 FOR 3)",
                "substr(s.note, 2)",
                "trim(BOTH 'r' FROM s.note)",
                "upper(s.note) || coalesce(s.code, '')",
                "nullif(trim(s.code), '')",
                "length(s.note) > 4",
                "extract(month FROM s.day)",
                "extract(doy FROM s.day)",
                "extract(week FROM s.day)",
                "extract(isodow FROM s.day)",
                "extract(hour FROM s.at)",
                "s.day + INTERVAL '1 month'",
                "s.day - INTERVAL '1 year'",
                "s.at + INTERVAL '2 days 3 hours'",
                "date_trunc('year', s.at)",
                "s.day >= '2024-02-01'",
                "s.at < s.day",
                "CAST('2024-02-30' AS VARCHAR)",
                "TRY_CAST(s.code AS DATE)",
                "round(s.price, 1)",
                "round(s.rate)",
                "floor(s.price)",
                "s.price % 2",
                "s.qty / 2.0",
                "s.price * 1.1",
                "-s.price",
                "s.qty % 2 = 0",
                "sqrt(abs(s.rate))",
                "ln(s.qty + 1)",
                "log10(s.qty + 1)",
                "least(s.qty, s.store, 2)",
                "greatest(s.day, DATE '2024-02-01')",
                "CASE WHEN s.qty > 1 THEN 1 WHEN s.qty > 0 THEN 0.5 END",
                "coalesce(s.qty, s.rate)",
                "s.paid = TRUE",
                "s.paid IS NOT TRUE",
                "NOT s.paid",
                "s.store BETWEEN 1 AND 2",
                "s.qty IN (1, NULL)",
                "s.code IN (SELECT x.code FROM sales AS x WHERE x.id < 4)",
                "s.qty::varchar || 'x'",
                "(s.qty + s.store) * 2",
                "s.qty & 1",
                "s.store | 4",
                "CAST(s.price AS DECIMAL(5, 1)) * CAST(s.price AS DECIMAL(8, 3))",
                "s.price > s.qty",
                "s.rate = s.qty",
                "date_part('year', s.at)",
            ],
            self.rng.randint(2, 5),
        )
        named = ", ".join(f"{one} AS {self.alias()}" for one in shown)
        text = f"SELECT s.id AS r, {named} FROM sales AS s{self.where(scope)}"
        tail = self.one(
            "",
            "",
            " ORDER BY r OFFSET 2",
            " ORDER BY r LIMIT 3 OFFSET 1",
            " ORDER BY s.code NULLS FIRST, s.qty NULLS LAST, r LIMIT 4",
        )
        return Analytic(text + tail, bool(tail))

    def several_sets(self) -> Analytic:
        """Grouping sets beside other keys, sets of pairs, HAVING and ORDER BY of GROUPING."""
        scope = Scope().of("s", COLUMNS["sales"])
        a, b, c = self.rng.sample(
            [
                "s.store",
                "s.item",
                "s.code",
                "s.paid",
                "CAST(s.day AS VARCHAR)",
                "upper(s.note)",
                "s.qty > 1",
            ],
            3,
        )
        by = self.one(
            f"{a}, ROLLUP ({b}, {c})",
            f"ROLLUP (({a}, {b}), {c})",
            f"GROUPING SETS (({a}, {b}), ({b}, {c}), ())",
            f"CUBE ({a}, {b}), {c}",
            f"GROUPING SETS (({a}), ({a}, {b}), ({c}))",
            f"ROLLUP ({a}), ROLLUP ({b})",
            f"GROUPING SETS (({a}), ({a}))",
        )
        keys = [k for k in (a, b, c) if k in by]
        shown = [f"{k} AS k{n}" for n, k in enumerate(keys)]
        text = f"SELECT {', '.join(shown)}, count(*) AS n, sum(s.qty) AS q, {self.aggregate(scope)} AS m FROM sales AS s{self.where(scope)} GROUP BY {by}"
        if self.maybe(0.3):
            text += f" HAVING {self.one(f'grouping({keys[0]}) = 0', 'count(*) > 1')}"
        return Analytic(text, False)

    def chained_sets(self) -> Analytic:
        kind = self.one("int", "text", "date")

        def side() -> str:
            source, scope = self.source()
            text = f"SELECT {self.expr(scope, kind, 1)} AS c FROM {source}{self.where(scope)}"
            return (
                f"({text} ORDER BY 1 NULLS LAST LIMIT {self.rng.randint(1, 4)})"
                if self.maybe(0.25)
                else text
            )

        operators = [
            self.one("UNION ALL", "UNION", "EXCEPT", "UNION ALL")
            for _ in range(self.rng.randint(1, 3))
        ]
        text = side() + "".join(f" {operator} {side()}" for operator in operators)
        if self.maybe(0.4):
            text = f"SELECT DISTINCT c, count(*) OVER (PARTITION BY c) AS n FROM ({text}) AS u"
            return self.ended(text, ["c"], total=True)
        return self.ended(text, ["c"], total=True)

    def query(self) -> Analytic:
        makers = [self.grouped] * 4 + [self.rows] * 3 + [self.windowed] * 2 + [self.united] * 2
        makers += [
            self.first_of_each,
            self.common,
            self.common,
            self.nested_windows,
            self.nested_windows,
        ]
        makers += [
            self.named_windows,
            self.ranges,
            self.scalars,
            self.scalars,
            self.statistics,
            self.statistics,
        ]
        makers += [self.texts, self.texts, self.several_sets, self.chained_sets]
        return self.rng.choice(makers)()


def _apart(text: str) -> list[str]:
    """The items of a part of a select list: a comma between parentheses is none."""
    depth, start, found = 0, 0, []
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def analytic_query(seed: int) -> Analytic:
    return Maker(seed).query()
