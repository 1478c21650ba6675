"""Random queries over corners of SQL: constant and equal keys, NaN and signed zeros, limits of
nothing, empty groups, grouping sets, frames of windows, correlated subqueries, outer joins, sets,
orders by answers."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa

_TERMS = (
    "llm_filter('f', x)",
    "NOT llm_filter('f', x)",
    "(llm_filter('f', x) OR n = 1)",
    "(llm_filter('f', x) AND b)",
    "llm_score('s', x) > 5",
    "llm_classify(x, ['a', 'b', 'c']) = 'a'",
    "(llm_filter('f', x) IS NULL)",
    "(llm_int('i', x) > n)",
    "coalesce(llm_filter('f', x), b)",
)
_PLAIN = ("b", "n > 0", "z > 0", "z <> z", "NULL", "false", "true", "random() >= 0", "id % 2 = 0")
_ANSWERS = (
    *("llm_int('i', x)", "llm_score('s', x)", "llm_filter('f', x)"),
    "llm_classify(x, ['a', 'b', 'c'])",
    "CASE WHEN llm_filter('f', x) THEN n END",
    "CASE WHEN llm_filter('f', x) THEN z ELSE 0.0 END",
    "llm_int('i', x) * z",
)
_KEYS = ("k", "n", "z", "b", "s", "tiny", "big", "7", "'a'", "n % 1", "abs(k)")
_NUMBERS = ("n", "z", "tiny", "big", "id")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_ENDS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST")


def corner_rows(source: random.Random) -> pa.Table:
    """A table of few values: ``k`` and ``n`` whole numbers, ``z`` with NaN, infinities and both
    zeros, ``tiny`` of 8 bits and ``big`` of 64 at their ends, ``b`` truth values, ``s`` texts. All
    but ``id`` may be NULL."""
    size = source.choice([0, 1, 2, 12, 40, 90])
    texts, null = source.choice([3, 20, 10_000]), source.choice([0.0, 0.15, 0.5])
    reals = source.choice([[0.0, -0.0, 1.0], [0.0, -0.0, float("nan"), float("inf"), -1.5, 2.0]])
    whole = source.choice([[2**53, 2**53 + 1, -(2**53) - 1], [2**62, -(2**62), 2**63 - 1, 5]])

    def column(values: Callable[[], object]) -> list[object]:
        return [None if source.random() < null else values() for _ in range(size)]

    kinds = {"k": pa.int64(), "n": pa.int64(), "z": pa.float64(), "tiny": pa.int8()}
    kinds |= {"big": pa.int64(), "b": pa.bool_(), "s": pa.string(), "x": pa.string()}
    values: dict[str, Callable[[], object]] = {
        "k": lambda: source.randrange(4),
        "n": lambda: source.randrange(-1, 3),
        "z": lambda: source.choice(reals),
        "tiny": lambda: source.choice([127, -128, 100, 1]),
        "big": lambda: source.choice(whole),
        "b": lambda: source.random() < 0.5,
        "s": lambda: source.choice(["", "a", "A", "é"]),
        "x": lambda: f"v{source.randrange(texts)}",
    }
    columns = {name: pa.array(column(values[name]), kind) for name, kind in kinds.items()}
    return pa.table({"id": pa.array(range(size), pa.int64())} | columns)


class CornerQueries:
    """Queries over ``corner_rows``, each with one right result. Without the planner, DataFusion
    loses rows of right joins, and of offsets without a limit below an order: there are none."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def query(self) -> str:
        ways = (
            *(self._ordered, self._distinct, self._groups, self._groups, self._sets),
            *(self._framed, self._subquery, self._joined, self._set_of, self._first_value),
            *(self._ranked, self._by_answers, self._compared_groups),
        )
        return self._source.choice(ways)()

    def _one(self, *options: str) -> str:
        return self._source.choice(options)

    def _term(self) -> str:
        term = self._one(*_TERMS)
        if self._source.random() < 0.25:
            term = f"{term} {self._one('AND', 'OR')} {self._one(*_PLAIN)}"
        return term

    def _rows(self, name: str = "t") -> str:
        """Some rows with all columns, each of them once."""
        kept = f"(SELECT * FROM {name} WHERE {self._term()})"
        other = f"(SELECT * FROM {name} WHERE {self._one(*_PLAIN)})"
        few = (
            f"(SELECT * FROM {name} WHERE {self._term()} ORDER BY {self._order()} {self._limit()})"
        )
        halves = (
            f"(SELECT * FROM {name} WHERE id < 9 AND {self._term()} "
            f"UNION ALL SELECT * FROM {name} WHERE id >= 9)"
        )
        return self._one(kept, kept, kept, other, few, halves, name)

    def _limit(self) -> str:
        offset = self._one("", "", " OFFSET 0", " OFFSET 1", " OFFSET 3", " OFFSET 1000")
        count = self._one("0", "1", "2", "5", "1000")
        return f"LIMIT {count}{offset}"

    def _order(self, *, total: bool = True, answers: float = 0.0) -> str:
        source = self._source
        keys = source.sample(_KEYS, source.randrange(0 if total else 1, 4))
        keys = [source.choice(_ANSWERS) if source.random() < answers else key for key in keys]
        keys = [key for key in dict.fromkeys(keys) if key not in ("7", "'a'")] or [
            "n"
        ]  # 7 is a place
        ordered = [f"{key}{source.choice(_ENDS)}" for key in keys]
        return ", ".join([*ordered, f"id{source.choice(_ENDS)}"] if total else ordered)

    def _partition(self) -> str:
        keys = self._source.sample(_KEYS, self._source.randrange(3))
        return f"PARTITION BY {', '.join(keys)} " if keys else ""

    def _ordered(self) -> str:
        shown = self._one("*", "id, z", f"id, {self._one(*_ANSWERS)} AS v", "id, 7 AS c")
        inner = f"(SELECT {shown} FROM {self._rows()} a ORDER BY {self._order()} {self._limit()})"
        if self._source.random() < 0.5:
            return inner[1:-1]
        return f"SELECT * FROM {inner} c ORDER BY id{self._one(*_ENDS)} {self._limit()}"

    def _by_answers(self) -> str:
        """An order by answers, of rows, in windows, or of groups."""
        order = self._order(answers=0.5)
        kind = self._one("row_number", "rank", "dense_rank", "first_value", "ntile")
        args = {"first_value": "id", "ntile": "3"}.get(kind, "")
        window = f"{kind}({args}) OVER ({self._partition()}ORDER BY {order})"
        key = self._one(*_ANSWERS)
        return self._one(
            f"SELECT id FROM {self._rows()} a ORDER BY {order} {self._limit()}",
            f"SELECT id, {window} AS r FROM {self._rows()} a",
            f"SELECT id FROM (SELECT id, {window} AS r FROM {self._rows()} a) c WHERE r <= 2",
            f"SELECT k, count(*) AS c FROM {self._rows()} a GROUP BY k, {key}",
            f"SELECT k, {key} AS v, count(*) AS c FROM {self._rows()} a GROUP BY k, {key} "
            f"HAVING count(*) > 1",
            f"SELECT k, first_value(id ORDER BY {order}) AS v FROM {self._rows()} a GROUP BY k",
            f"SELECT DISTINCT ON (k) k, id FROM {self._rows()} a ORDER BY k, {self._without_k(order)}",
        )

    def _without_k(self, order: str) -> str:
        """An order without ``k``: DataFusion fails where a key comes twice in an aggregate."""
        return ", ".join(key for key in order.split(", ") if not key.startswith("k"))

    def _distinct(self) -> str:
        keys = self._source.sample(_KEYS, self._source.randrange(1, 4))
        named = [f"{key} AS c{i}" for i, key in enumerate(keys)]
        order = ", ".join(f"c{i}{self._one(*_ENDS)}" for i in range(len(keys)))
        query = f"SELECT DISTINCT {', '.join(named)} FROM {self._rows()} a"
        if self._source.random() < 0.6:
            query += f" ORDER BY {order} {self._limit()}"
        if self._source.random() < 0.3:
            return f"SELECT count(*) AS n, count(c0) AS m FROM ({query}) q"
        return query

    def _measure(self) -> str:
        number = self._one(*_NUMBERS, *_ANSWERS[:2], *_ANSWERS[4:])
        kept = self._one("", "", f" FILTER (WHERE {self._term()})", " FILTER (WHERE NULL)")
        kept = self._one(kept, kept, " FILTER (WHERE b)")
        few = self._one("n", "k", "z", "b")
        return self._one(
            *(f"count(*){kept}", f"count({number}){kept}", f"count(DISTINCT {few}){kept}"),
            *(f"max({number}){kept}", f"min({number}){kept}", f"max({self._one('s', 'z')}){kept}"),
            *(f"sum({self._one('n', 'id')}){kept}", f"avg({self._one('n', 'id', 'k')}){kept}"),
            *(f"bool_or({self._term()}){kept}", f"bool_and({self._term()}){kept}"),
            f"first_value({number} ORDER BY {self._order()}){kept}",
            f"last_value(id ORDER BY {self._order()})",
            f"nth_value(id, {self._one('1', '2', '-1')} ORDER BY {self._order()})",
            f"array_agg(id ORDER BY {self._order()}){kept}",
            f"array_agg(id ORDER BY {self._order()})[{self._one('1', '2', '-1')}]",
            f"max({self._one('tiny', 'big')}){kept} + min({self._one('tiny', 'big')})",
        )

    def _number(self) -> str:
        kept = self._one("", f" FILTER (WHERE {self._term()})", " FILTER (WHERE NULL)")
        number = self._one(*_NUMBERS, *_ANSWERS[:2], *_ANSWERS[4:])
        narrow = self._one("tiny", "tiny", "n", "big", "z")
        return self._one(
            *(f"count(*){kept}", f"count({number}){kept}", f"count(DISTINCT n){kept}"),
            *(f"max({number}){kept}", f"min({number}){kept}", f"sum(n){kept}", f"avg(n){kept}"),
            f"max({narrow}){kept} {self._one('+', '-', '*')} min({narrow}){kept}",
            f"-max({narrow}){kept}",
            f"abs(min(n){kept})",
            f"CAST(max({self._one('n', 'z')}){kept} AS {self._one('INT', 'DOUBLE', 'BIGINT')})",
            f"max(z){kept} / count(*)",
            f"nullif(max({narrow}){kept}, 1)",
            f"sum({self._one('z', 'big', 'tiny')}){kept}",
        )

    def _test(self) -> str:
        number = self._one("0", "1", "2", "-128", "127", "0.0", "-0.0", "'NaN'::double", "NULL")
        return self._one(
            f"{self._number()} {self._one(*_COMPARED)} {number}",
            f"{self._number()} {self._one(*_COMPARED)} {self._number()}",
            f"{self._number()} {self._one('NOT BETWEEN', 'BETWEEN')} 0 AND {self._number()}",
            f"{self._number()} {self._one('IN', 'NOT IN')} (0, 1, NULL)",
            f"{self._number()} IS {self._one('', 'NOT ')}NULL",
            f"bool_{self._one('or', 'and')}({self._term()}) IS {self._one('TRUE', 'NOT TRUE', 'NULL')}",
            f"max(s) FILTER (WHERE {self._term()}) {self._one('=', '<>', '>', '<')} 'a'",
        )

    def _grouping(self, keys: list[str]) -> str:
        listed = ", ".join(keys)
        if not keys or self._source.random() < 0.65:
            return f" GROUP BY {listed}" if keys else ""
        return " GROUP BY " + self._one(
            f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ())",
            f"GROUPING SETS (({keys[0]}), ({listed}))",
        )  # fmt: skip

    def _groups(self) -> str:
        keys = self._source.sample(_KEYS, self._source.randrange(3))
        keys = [key for key in keys if key not in ("7", "'a'")]
        named = [f"{key} AS c{i}" for i, key in enumerate(keys)]
        measures = [
            self._one(self._measure(), self._test()) for _ in range(self._source.choice((1, 1, 2)))
        ]
        shown = [f"{own} AS v{i}" for i, own in enumerate(measures)]
        if named and self._source.random() < 0.3:
            shown = []
        grouping = self._grouping(keys)
        query = f"SELECT {', '.join([*named, *shown])} FROM {self._rows()} a{grouping}"
        if self._source.random() < 0.6:
            query += f" HAVING {self._test()}"
        if keys and self._source.random() < 0.5 and not any(w in grouping for w in "(["):
            by = [f"{self._number()}{self._one(*_ENDS)}"] if self._source.random() < 0.5 else []
            by += [f"c{i}{self._one(*_ENDS)}" for i in range(len(keys))]
            query += f" ORDER BY {', '.join(by)} {self._limit()}"
        return query

    def _compared_groups(self) -> str:
        """Groups, or all rows, compared with a value of another relation."""
        value = self._one("count(*)", "max(n)", "min(id)", "max(z)", "sum(n)", "max(tiny)")
        other = f"(SELECT {value} FROM {self._rows()} u)"
        key = self._one("", "", "k", "z", "s")
        shown = self._one("count(*) AS c", "1 AS one", "max(n) AS m") if not key else f"{key} AS c0"
        group = f" GROUP BY {key}" if key else ""
        return (
            f"SELECT {shown} FROM {self._rows()} a{group} "
            f"HAVING {self._number()} {self._one(*_COMPARED)} {other}"
        )

    def _sets(self) -> str:
        word = self._one("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        key = self._one("k", "z", "n, s", "id", "k, 7 AS c", "b")
        one, other = (f"SELECT {key} FROM {self._rows()} a" for _ in range(2))
        text = f"{one} {word} {other}"
        if self._source.random() < 0.4:
            return f"SELECT count(*) AS n FROM ({text}) q"
        return text

    def _window(self) -> str:
        bound = self._one("UNBOUNDED PRECEDING", "1 PRECEDING", "CURRENT ROW", "2 PRECEDING")
        end = self._one("CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING", "1 PRECEDING")
        if bound in ("1 PRECEDING", "CURRENT ROW") and end == "1 PRECEDING":
            end = "CURRENT ROW"
        frame = self._one(
            "", f" ROWS BETWEEN {bound} AND {end}", f" GROUPS BETWEEN {bound} AND {end}"
        )
        own = self._one(
            *(
                "count(*)",
                "sum(n)",
                "max(z)",
                "min(s)",
                "avg(n)",
                "first_value(n)",
                "last_value(n)",
            ),
            *("nth_value(n, 2)", "lag(n)", "lag(n, 2, 9)", "lead(n)", "lead(n, 1, 0)", "ntile(2)"),
            *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()"),
            *("lag(n, 0)", "lag(n, -1)", "count(DISTINCT n)", "first_value(s)"),
        )
        if self._source.random() < 0.15 and own.split("(")[0] in ("count", "sum", "max", "avg"):
            own += f" FILTER (WHERE {self._one('b', 'n > 0')})"
        elif self._source.random() < 0.2 and own.split("(")[0].endswith(("value", "lag", "lead")):
            own += " IGNORE NULLS"
        return f"{own} OVER ({self._partition()}ORDER BY {self._order()}{frame})"

    def _framed(self) -> str:
        rows = f"SELECT id, k, n, {self._window()} AS v FROM {self._rows()} a"
        if self._source.random() < 0.5:
            number = f"row_number() OVER ({self._partition()}ORDER BY {self._order()})"
            rows = f"SELECT id, k, n, {self._window()} AS v, {number} AS r FROM {self._rows()} a"
            return f"SELECT id, v FROM ({rows}) c WHERE r {self._one('<= 2', '= 1', '= 2', '< 1')}"
        own = self._one("id", "k, id", "n DESC, id", "v, id", "v DESC NULLS LAST, id")
        return f"{rows} ORDER BY {own} {self._limit()}"

    def _ranked(self) -> str:
        kind = self._one("row_number", "rank", "dense_rank")
        over = f"{self._partition()}ORDER BY {self._order(total=kind == 'row_number')}"
        test = self._one("r <= 2", "r = 1", "r < 1", "r <= 0", "r = 2", "r IN (1, 2)", "NOT r > 2")
        rows = f"SELECT *, {kind}() OVER ({over}) AS r FROM {self._rows()} a"
        query = f"SELECT id, k, r FROM ({rows}) c WHERE {test}"
        if self._source.random() < 0.5:
            query += f" ORDER BY {self._one('k', 'r', 'k, r', 'k DESC')}, id {self._limit()}"
        return query

    def _first_value(self) -> str:
        ignore = self._one("", "", " IGNORE NULLS")
        own = self._one(*_NUMBERS, "s", "b", *_ANSWERS)
        name = self._one("first_value", "last_value")
        key = self._one("k", "z", "s", "b")
        return (
            f"SELECT {key} AS c0, {name}({own} ORDER BY {self._order()}){ignore} AS v "
            f"FROM {self._rows()} a GROUP BY {key}"
        )

    def _subquery(self) -> str:
        inner = f"{self._one('u.k = t.k', 'u.n = t.n', 'u.z = t.z')}"
        inner += self._one("", " AND u.id <> t.id", " AND u.n >= t.k", "")
        kept = self._one("llm_filter('f', u.x)", "u.b", "llm_int('i', u.x) > 1")
        also = self._one("", f" AND {self._term()}")
        word = self._one("EXISTS", "NOT EXISTS")
        key = self._one("k", "n", "z")
        tests = (
            f"{word} (SELECT 1 FROM t u WHERE {inner} AND {kept})",
            f"t.{key} {self._one('IN', 'NOT IN')} (SELECT u.{key} FROM t u WHERE {kept})",
            f"t.{key} {self._one('IN', 'NOT IN')} (SELECT u.{key} FROM t u WHERE {inner} AND {kept})",
            f"(SELECT count(*) FROM t u WHERE {inner} AND {kept}) {self._one('=', '>', '<')} 1",
            f"(SELECT max(u.n) FROM t u WHERE {inner} AND {kept}) {self._one('=', '>', '<>')} t.n",
            f"(SELECT bool_or({kept}) FROM t u WHERE {inner}) IS NOT TRUE",
        )
        test = self._one(*tests)
        test = self._one(test, test, f"({test} OR t.n = 1)")
        query = f"SELECT t.id FROM t WHERE {test}{also}"
        if self._source.random() < 0.5:
            query += f" ORDER BY t.{self._one('z', 'n DESC', 'k')}, t.id {self._limit()}"
        return query

    def _joined(self) -> str:
        word = self._one(
            "LEFT JOIN", "LEFT JOIN", "FULL JOIN", "JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"
        )
        on = self._one(
            "a.k = c.k",
            "a.n = c.n AND a.k = c.k",
            "a.z = c.z",
            "a.id = c.id",
            "a.s = c.s AND a.id < c.id",
        )
        more = self._one(
            "",
            "",
            " AND a.n > 0",
            " AND c.b",
            " AND llm_filter('f', c.x)",
            " AND llm_filter('f', a.x)",
        )
        query = f"{self._rows()} a {word} {self._rows()} c ON {on}{more}"
        half = "SEMI" in word or "ANTI" in word
        shown = "a.id AS i" if half else "a.id AS i, c.id AS j"
        where = self._one("", "", " WHERE a.n IS NULL", " WHERE llm_filter('f', a.x)")
        if not half:
            where = self._one(where, " WHERE c.id IS NULL", " WHERE llm_filter('g', c.x)",
                              " WHERE llm_filter('g', c.x) IS NOT TRUE", " WHERE a.id IS NULL OR c.b")  # fmt: skip
        text = f"SELECT {shown} FROM {query}{where}"
        if self._source.random() < 0.3:
            return f"SELECT {'i' if half else 'j'} AS key, count(*) AS n FROM ({text}) q GROUP BY 1"
        if self._source.random() < 0.6:
            by = "i" if half else self._one("i, j", "j DESC, i", "j NULLS FIRST, i NULLS FIRST")
            return f"{text} ORDER BY {by} {self._limit()}"
        return text

    def _set_of(self) -> str:
        """First rows of branches with constants."""
        one = f"SELECT id, n, 'one' AS tag, 1 AS c FROM {self._rows()} a"
        other = f"SELECT id, n, 'other' AS tag, {self._one('1', 'n', 'NULL')} AS c FROM {self._rows()} a"
        order = self._one(
            "n, id, tag", "tag, id", "c, tag DESC, id", "c DESC, n NULLS FIRST, id, tag"
        )
        text = f"SELECT * FROM ({one} UNION ALL {other}) q"
        return self._one(
            f"{text} ORDER BY {order} {self._limit()}",
            f"SELECT DISTINCT n, tag FROM ({text}) p ORDER BY tag, n {self._limit()}",
            f"SELECT tag, max(n) AS m FROM ({text}) p GROUP BY tag HAVING count(*) > 1",
            f"SELECT id, tag FROM (SELECT *, row_number() OVER (PARTITION BY {self._one('tag', 'c', 'n')} "
            f"ORDER BY id, tag) AS r FROM ({text}) p) w WHERE r = 1",
        )
