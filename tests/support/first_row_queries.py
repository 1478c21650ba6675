"""Random queries that read the first rows of an order, of groups, of a limit, and of what stands
above these."""

from __future__ import annotations

import random

_TERMS = (
    "llm_filter('f', x)",
    "(llm_filter('f', x) OR n = 1)",
    "llm_filter('f', x) AND n < 2",
    "llm_score('s', x) > 5",
    "llm_classify(x, ['a', 'b', 'c']) = 'a'",
)
_KEYS = ("n", "m", "w", "l", "k", "dec")


class FirstRowQueries:
    """Queries over ``grouped_rows``. Each has one right result: orders end with ``id``, but those
    of ranks."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def query(self) -> str:
        return self._source.choice(
            (
                *(self._ranked, self._ranked, self._windows, self._groups, self._distinct),
                *(self._nested, self._limit_of_limit),
            )
        )()

    def _rows(self, *, once: bool = False) -> str:
        """Some rows; each of them ``once``, if equal rows would have windows in any order."""
        source, term = self._source, self._source.choice(_TERMS)
        if source.random() < 0.2 and not once:
            return f"(SELECT * FROM t WHERE {term} UNION ALL SELECT * FROM t WHERE {term})"
        if source.random() < 0.1:
            return f"(SELECT * FROM t WHERE {term} ORDER BY n, id LIMIT {source.randrange(1, 30)})"
        return f"(SELECT * FROM t WHERE {term})"

    def _order(self, *, total: bool) -> str:
        source = self._source
        keys = source.sample(_KEYS, source.randrange(0 if total else 1, 3))
        ends = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        ordered = [f"{key}{source.choice(ends)}" for key in keys]
        return ", ".join([*ordered, "id"] if total else ordered)

    def _partition(self) -> str:
        return self._source.choice(("", "PARTITION BY k ", "PARTITION BY k ", "PARTITION BY k, l "))

    def _first(self) -> str:
        """The first rows of each partition, with their number as r."""
        kind = self._source.choice(("row_number", "rank", "dense_rank"))
        over = f"{self._partition()}ORDER BY {self._order(total=kind == 'row_number')}"
        more = f", {self._window(over)} AS v" if self._source.random() < 0.4 else ""
        test = self._source.choice(("r <= 2", "r = 1", "r < 4", "r IN (1, 2)", "r = 2"))
        also = " AND id > 3" if self._source.random() < 0.2 else ""
        rows = f"SELECT *, {kind}() OVER ({over}) AS r{more} FROM {self._rows()} a"
        return f"(SELECT * FROM ({rows}) b WHERE {test}{also})"

    def _window(self, over: str) -> str:
        frame = " ROWS UNBOUNDED PRECEDING" if self._source.random() < 0.3 and "id" in over else ""
        own = self._source.choice(
            ("count(*)", "sum(m)", "max(m)", "rank()", "first_value(n)", "lag(n)", "min(n)")
        )
        framed = frame if own.split("(")[0] not in ("rank", "lag") else ""
        if own in ("first_value(n)", "lag(n)") and not over.endswith("id"):
            own = "count(*)"
        return f"{own} OVER ({over}{framed})"

    def _limit(self) -> str:
        offset = self._source.choice(("", "", " OFFSET 1"))
        return f"LIMIT {self._source.randrange(1, 6)}{offset}"

    def _ranked(self) -> str:
        shown = self._source.choice(("*", "id, k, r", "id"))
        query = f"SELECT {shown} FROM {self._first()} c"
        if self._source.random() < 0.6:
            keys = self._source.choice(("k", "k, r", "r", "k, l", "n", "k, n", "r, k"))
            repeated = ", r" if "UNION ALL" in query else ""  # rows that are equal but for r
            query += f" ORDER BY {keys}, id{repeated} {self._limit()}"
        return query

    def _windows(self) -> str:
        own = self._order(total=True)
        over = f"{self._partition()}ORDER BY {self._source.choice((own, self._order(total=True)))}"
        whole = f"sum(n) OVER ({self._partition()})"
        window = whole if self._source.random() < 0.2 else self._window(over)
        keys = self._source.choice((own, f"k, {own}", f"k, l, {own}", "v, id"))
        return f"SELECT id, {window} AS v FROM {self._rows(once=True)} a ORDER BY {keys} {self._limit()}"

    def _groups(self) -> str:
        key = self._source.choice(("k", "l", "k, l"))
        order = self._order(total=True)
        own = self._source.choice(
            (
                f"first_value(id ORDER BY {order})",
                f"last_value(id ORDER BY {order})",
                f"array_agg(id ORDER BY {order})[1]",
                f"nth_value(id, 2 ORDER BY {order})",
                *("max(id)", "min(m)", "max(dec)", "min(l)", "max(n), min(n)"),
                "count(*)",
            )
        )
        query = f"SELECT {key}, {own} AS v FROM {self._rows()} a GROUP BY {key}"
        if self._source.random() < 0.6:
            by = self._source.choice(("", "v, ", "v DESC, ", "v DESC NULLS LAST, "))
            query += f" ORDER BY {by}{key} {self._limit()}"
        return query

    def _distinct(self) -> str:
        key = self._source.choice(("k", "n", "k, n"))
        query = f"SELECT DISTINCT {key} FROM {self._rows()} a"
        return f"{query} ORDER BY {key} {self._limit()}" if self._source.random() < 0.7 else query

    def _limit_of_limit(self) -> str:
        """First rows of first rows, in the same order, in a longer one, or in another one."""
        own = self._order(total=True)
        inner = self._source.choice((own, own, self._order(total=True)))
        shown = self._source.choice(("*", "id, n AS v, k"))
        first = f"SELECT * FROM {self._rows()} a ORDER BY {inner} LIMIT {self._source.randrange(9)}"
        if self._source.random() < 0.3:
            first += " OFFSET 2"
        if shown != "*":
            return f"SELECT {shown} FROM ({first}) b ORDER BY id {self._limit()}"
        return f"SELECT * FROM ({first}) b ORDER BY {own} {self._limit()}"

    def _nested(self) -> str:
        first = self._first()
        return self._source.choice(
            (
                f"SELECT k, count(*) AS c FROM {first} d GROUP BY k ORDER BY k {self._limit()}",
                f"SELECT id FROM t WHERE k IN (SELECT k FROM {first} d) ORDER BY id",
                f"SELECT t.id, d.id AS other FROM t LEFT JOIN {first} d ON t.id = d.k "
                f"ORDER BY t.id, d.id {self._limit()}",
                f"SELECT d.id, t.n FROM {first} d LEFT JOIN t ON t.id = d.k ORDER BY d.k, d.id "
                f"{self._limit()}",
                f"SELECT max(id) AS m FROM {first} d",
            )
        )
