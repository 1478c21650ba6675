"""Random queries of relations that read relations, up to four deep: groups, first rows, ranks,
windows, distinct rows, unions, semi joins, subqueries of one value, joins."""

from __future__ import annotations

import random

DEPTH = 4
_ROW_TERMS = (
    "llm_filter('f', x)",
    "NOT llm_filter('f', x)",
    "(llm_filter('f', x) OR n = 1)",
    "llm_filter('f', x) AND n < 2",
    "llm_score('s', x) > 5",
    "llm_classify(x, ['a', 'b', 'c']) IN ('a', 'c')",
    "llm_int('i', x) BETWEEN 1 AND 3",
    "CASE WHEN n > 0 THEN llm_filter('g', x) ELSE n IS NULL END",
    *("n > 0", "k IS NOT NULL", "id % 3 <> 1"),
)
_NUMBERS = (
    *("n", "m", "1"),
    "CASE WHEN llm_filter('f', x) THEN n END",
    "CASE WHEN llm_filter('f', x) THEN 1 ELSE 0 END",
    "llm_score('s', x, low => 0, high => 4)",
)
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")


class ComposedQueries:
    """Queries over ``grouped_rows``, each with one right result. Each relation has the columns
    ``id`` (another one in each row, never NULL), ``k``, ``n`` and ``m`` (whole numbers) and ``x``."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._names = 0

    def query(self) -> str:
        """A query with a call."""
        while True:
            text = self._shown(self._relation(self._source.randrange(1, DEPTH + 1)))
            if "llm_" in text:
                return text

    def _shown(self, rows: str) -> str:
        source = self._source
        if source.random() < 0.2:
            measure = self._measure(of_one_key=False)
            return f"SELECT {measure} AS v, count(*) > 2 AS w FROM {rows} {self._name()}"
        text = f"SELECT {source.choice(('id, k, n', 'id', 'id, m, x'))} FROM {rows} {self._name()}"
        return f"{text} {self._first()}" if source.random() < 0.5 else text

    def _name(self) -> str:
        self._names += 1
        return f"r{self._names}"

    def _relation(self, depth: int) -> str:
        """A relation in parentheses."""
        if not depth:
            return self._rows()
        ways = (
            *(self._filtered, self._limited, self._ranked, self._grouped, self._grouped),
            *(self._distinct, self._union, self._semi_join, self._compared, self._windows),
            *(self._best_groups, self._greatest_groups, self._joined, self._of_first),
        )
        return f"({self._source.choice(ways)(depth - 1)})"

    def _rows(self) -> str:
        shown = "SELECT id, k, n, m, x FROM t"
        if self._source.random() < 0.3:
            return f"({shown})"
        return f"({shown} WHERE {self._source.choice(_ROW_TERMS)})"

    def _filtered(self, depth: int) -> str:
        term = self._source.choice(_ROW_TERMS)
        return f"SELECT * FROM {self._relation(depth)} {self._name()} WHERE {term}"

    def _limited(self, depth: int) -> str:
        return f"SELECT * FROM {self._relation(depth)} {self._name()} {self._first()}"

    def _first(self) -> str:
        offset = self._source.choice(("", "", " OFFSET 1"))
        return f"ORDER BY {self._order()} LIMIT {self._source.randrange(1, 7)}{offset}"

    def _order(self, *, total: bool = True) -> str:
        source = self._source
        keys = source.sample(("n", "m", "k"), source.randrange(0 if total else 1, 3))
        ends = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        ordered = [f"{key}{source.choice(ends)}" for key in keys]
        return ", ".join([*ordered, "id"] if total else ordered)

    def _partition(self) -> str:
        return self._source.choice(("", "PARTITION BY k ", "PARTITION BY n "))

    def _number(self) -> tuple[str, str]:
        """(a window that numbers rows, a test of these numbers)"""
        source = self._source
        kind = source.choice(("row_number()", "rank()", "dense_rank()", "ntile(3)"))
        total = kind in ("row_number()", "ntile(3)")
        window = f"{kind} OVER ({self._partition()}ORDER BY {self._order(total=total)})"
        return window, source.choice(
            ("r = 1", "r <= 2", "r < 4", "r IN (1, 2)", "r BETWEEN 2 AND 3")
        )

    def _ranked(self, depth: int) -> str:
        window, test = self._number()
        rows = f"SELECT *, {window} AS r FROM {self._relation(depth)} {self._name()}"
        return f"SELECT id, k, n, m, x FROM ({rows}) {self._name()} WHERE {test}"

    def _windows(self, depth: int) -> str:
        own = self._source.choice(
            ("count(*)", "sum(m)", "max(m)", "rank()", "first_value(n)", "lag(n)", "lead(n)")
        )
        window = f"{own} OVER ({self._partition()}ORDER BY {self._order()})"
        return f"SELECT id, k, {window} AS n, m, x FROM {self._relation(depth)} {self._name()}"

    def _measure(self, *, of_one_key: bool = True) -> str:
        """A whole number of a group, in which ``k`` has one value, if so."""
        source, term = self._source, self._source.choice(_ROW_TERMS)
        kept = f" FILTER (WHERE {term})" if source.random() < 0.4 else ""
        number = source.choice(_NUMBERS)
        return source.choice(
            (
                *(f"count(*){kept}", f"count({number}){kept}", f"count(DISTINCT {number})"),
                *(f"sum({number}){kept}", f"min({number}){kept}", f"max({number}){kept}"),
                f"CAST(floor(4 * avg({number}){kept}) AS BIGINT)",
                f"CASE WHEN bool_or({term}) THEN 1 ELSE 0 END",
                f"CASE WHEN bool_and({term}) THEN 2 ELSE 1 END",
                f"least(count(*){kept}, 3)",
                f"greatest(sum({number}){kept}, 2)",
                f"(array_agg(n ORDER BY {self._order()}))[1]",
                f"first_value(m ORDER BY {self._order()}){kept}",
                f"{'any_value' if of_one_key else 'max'}(coalesce(k, 0))",
            )
        )

    def _test(self) -> str:
        source, measure = self._source, self._measure()
        number = source.choice(("0", "1", "2", "4", "10"))
        return source.choice(
            (
                f"{measure} {source.choice(_COMPARED)} {number}",
                f"{measure} {source.choice(_COMPARED)} {self._measure()}",
                f"{measure} BETWEEN 1 AND {number}",
                f"{measure} IN (0, {number})",
                f"CASE WHEN {measure} > {number} THEN count(*) > 2 ELSE count(*) < 3 END",
                f"{measure} {source.choice(_COMPARED)} {self._value(0)}",
            )
        )

    def _value(self, depth: int) -> str:
        """A subquery of one value."""
        own = self._source.choice(("count(*)", "max(n)", "min(m)", "sum(n)"))
        return f"(SELECT {own} FROM {self._relation(depth)} {self._name()})"

    def _groups(self, depth: int) -> str:
        having = f" HAVING {self._test()}" if self._source.random() < 0.6 else ""
        return (
            f"SELECT coalesce(k, -1) AS id, k, {self._measure()} AS n, {self._measure()} AS m, "
            f"concat('group ', k) AS x FROM {self._relation(depth)} {self._name()} "
            f"GROUP BY k{having}"
        )

    def _grouped(self, depth: int) -> str:
        return self._groups(depth)

    def _best_groups(self, depth: int) -> str:
        """The first groups by what is measured."""
        groups = f"({self._groups(depth)}) {self._name()}"
        if self._source.random() < 0.5:
            return f"SELECT * FROM {groups} ORDER BY n DESC NULLS LAST, id {self._few()}"
        kind = self._source.choice(("row_number", "rank", "dense_rank"))
        last = ", id" if kind == "row_number" else ""
        rows = f"SELECT *, {kind}() OVER (ORDER BY n DESC NULLS LAST{last}) AS r FROM {groups}"
        return f"SELECT id, k, n, m, x FROM ({rows}) {self._name()} WHERE r <= 2"

    def _greatest_groups(self, depth: int) -> str:
        """The groups with the greatest or the least value of all, or of those with an equal key."""
        source = self._source
        having = f" HAVING {self._test()}" if source.random() < 0.3 else ""
        rows = f"{self._relation(depth)} {self._name()}"
        groups = f"(SELECT k, n AS j, {self._measure()} AS v FROM {rows} GROUP BY k, n{having})"
        extreme, own, other = source.choice(("max", "min")), self._name(), self._name()
        beyond, up_to = (">", "<=") if extreme == "min" else ("<", ">=")
        key = source.choice(("", "", "PARTITION BY k", "PARTITION BY j"))
        value = f"(SELECT {extreme}(v) FROM {groups} {other})"
        kept = source.choice(
            (
                f"{groups} {own} WHERE v {source.choice(('=', up_to))} {value}",
                f"(SELECT *, {extreme}(v) OVER ({key}) AS b FROM {groups} {other}) {own} "
                f"WHERE v {source.choice(('=', '=', up_to, '<>'))} b",
                f"{groups} {own} WHERE NOT EXISTS "
                f"(SELECT 1 FROM {groups} {other} WHERE {own}.v {beyond} {other}.v)",
                f"{groups} {own} WHERE v {up_to} ALL (SELECT v FROM {groups} {other})",
                f"(SELECT k, k AS j, {extreme}(v) AS v FROM {groups} {other} GROUP BY k) {own}",
                f"{groups} {own} WHERE v > 0.1 * (SELECT count(*) FROM t)",
            )
        )
        number = "100003 * coalesce(k, -1) + coalesce(j, -99991)"
        return f"SELECT {number} AS id, k, v AS n, j AS m, concat('best ', k) AS x FROM {kept}"

    def _few(self) -> str:
        return f"LIMIT {self._source.randrange(1, 4)}"

    def _of_first(self, depth: int) -> str:
        """Groups of the first rows of each."""
        window, test = self._number()
        rows = f"SELECT *, {window} AS r FROM {self._relation(depth)} {self._name()}"
        return (
            f"SELECT coalesce(k, -1) AS id, k, count(*) AS n, max(m) AS m, max(x) AS x "
            f"FROM ({rows}) {self._name()} WHERE {test} GROUP BY k"
        )

    def _distinct(self, depth: int) -> str:
        rows = f"SELECT DISTINCT k, n FROM {self._relation(depth)} {self._name()}"
        own = "100003 * coalesce(k, -1) + coalesce(n, -99991)"
        return f"SELECT {own} AS id, k, n, n AS m, concat('pair ', k) AS x FROM ({rows}) {self._name()}"

    def _union(self, depth: int) -> str:
        one, other = self._relation(depth), self._relation(self._source.randrange(depth + 1))
        return (
            f"SELECT 2 * id AS id, k, n, m, x FROM {one} {self._name()} UNION ALL "
            f"SELECT 2 * id + 1 AS id, k, n, m, x FROM {other} {self._name()}"
        )

    def _semi_join(self, depth: int) -> str:
        own, other = self._name(), self._name()
        inner = self._relation(self._source.randrange(depth + 1))
        rows = f"SELECT {own}.* FROM {self._relation(depth)} {own} WHERE "
        if self._source.random() < 0.5:
            return f"{rows}{own}.k IN (SELECT {other}.k FROM {inner} {other})"
        word = self._source.choice(("EXISTS", "NOT EXISTS"))
        return (
            f"{rows}{word} (SELECT 1 FROM {inner} {other} WHERE {other}.k = {own}.k "
            f"AND {other}.n >= 1)"
        )

    def _compared(self, depth: int) -> str:
        """Rows compared with a value of another relation."""
        number = self._source.choice(("n", "m"))
        test = f"{number} {self._source.choice(_COMPARED)} {self._value(depth)}"
        if self._source.random() < 0.3:
            test = f"{self._value(depth)} > 2"
        return f"SELECT * FROM {self._relation(depth)} {self._name()} WHERE {test}"

    def _joined(self, depth: int) -> str:
        """Each row beside a group."""
        own, other = self._name(), self._name()
        word = self._source.choice(("JOIN", "LEFT JOIN"))
        return (
            f"SELECT {own}.id, {own}.k, {own}.n, {other}.n AS m, {own}.x FROM {self._relation(depth)} "
            f"{own} {word} ({self._groups(self._source.randrange(depth + 1))}) {other} "
            f"ON {own}.k = {other}.k"
        )
