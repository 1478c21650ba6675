"""Random tables and random queries with calls, for properties over all of them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

# --- tables --------------------------------------------------------------------------------------

TEXTS = [None, "", "  ", "a", "b", "bb", "Zürich", "東京", "it's", "x; y", "NULL", "12"]
_DAYS = [None, *(datetime.date(2024, month, 29) for month in (1, 2, 3))]
_TIMES = [None, *(datetime.datetime(2024, 1, 1, hour) for hour in (0, 7, 12))]

T_COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "a": (pa.string(), list(TEXTS)),
    "b": (pa.string_view(), list(TEXTS)),
    "l": (pa.large_string(), list(TEXTS)),
    "n": (pa.int64(), [None, 0, 1, 2, 3, 4]),
    "f": (pa.float64(), [None, -1.5, 0.0, 0.25, 2.0]),
    "flag": (pa.bool_(), [None, True, False]),
    "d": (pa.date32(), list(_DAYS)),
    "ts": (pa.timestamp("us"), list(_TIMES)),
    "dec": (pa.decimal128(8, 2), [None, Decimal("1.50"), Decimal("2.00"), Decimal("-3.25")]),
}
U_COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "ref": (pa.int64(), [None, 0, 1, 2, 3]),
    "s": (pa.string(), [*TEXTS[:8], "c"]),
    "m": (pa.int32(), [None, 1, 2, 3]),
}


@st.composite
def tables(draw: st.DrawFn, columns: dict[str, tuple[pa.DataType, list[object]]], key: str):  # type: ignore[no-untyped-def]
    """A table of 0 to 24 rows in batches of any sizes; ``key`` numbers the rows."""
    n = draw(st.integers(0, 24))
    data = {key: pa.array(range(n), pa.int64())}
    for name, (kind, pool) in columns.items():
        indices = draw(st.lists(st.integers(0, len(pool) - 1), min_size=n, max_size=n))
        data[name] = pa.array([pool[i] for i in indices], kind)
    table = pa.table(data)
    cut = draw(st.integers(0, n))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])


# --- expressions ---------------------------------------------------------------------------------

CHEAP_T = [
    "n > 1",
    "a IS NOT NULL",
    "flag",
    "f < 1.5",
    "d >= DATE '2024-02-01'",
    "b LIKE 'b%'",
    "n IN (1, 3)",
    "dec > 1.75",
    "id % 2 = 0",
    "l <> 'a'",
    "ts IS NULL",
    "(n IS NULL OR f > 0)",
]
DEAR_T = [
    "llm_filter('q1', a)",
    "llm_filter('q2', b)",
    "llm_filter('q3', a, n)",
    "llm_filter('q4 {a} or {l}', a, l)",
    "llm_filter('q5', upper(b))",
    "llm_bool('q6', d)",
    "llm_classify(a, ['x', 'y']) = 'x'",
    "llm_int('i1', b) > 3",
    "llm_map('m1', a) = 'CA'",
    "llm_map('m2', n) > 2",
    "llm_date('m3', l, evidence => false) > DATE '2024-01-20'",
    "llm_map('m4', a) IN ('P', 'Q')",
    "llm_float('f1', ts) BETWEEN 2 AND 9",
    "llm_map('m5', a, b) IS NULL",
    "llm_filter('q7', llm_map('m6', a))",
    "llm_compare(a, '<', l)",
    "llm_compare('b', '<>', a)",
    "llm_int('i1', b) < n",
    "llm_map('m7', f) < DATE '2024-01-20'",
    "llm_score('s1', a) > 3",
    "llm_extract(a, 'n INT, ok BOOLEAN', evidence => false)['ok']",
    "llm_extract(a, 'n INT, ok BOOLEAN', evidence => false)['n'] > 2",
    "llm_similarity(a, 'bb') > 0.2",
    "(llm_similarity(b, a) < 0.1 OR llm_filter('q1', a))",
]
CHEAP_U = ["m > 1", "s IS NOT NULL", "ref < 2", "s <> 'a'", "uid % 3 > 0"]
DEAR_U = [
    "llm_filter('q1', s)",
    "llm_int('i2', s) > 2",
    "llm_classify(s, ['x', 'y']) = 'y'",
    "llm_filter('q8', s, ref)",
]
BOTH = [
    "llm_filter('q9', a, s)",
    "llm_int('i1', b) = ref",
    "llm_map('m8', a) = s",
    "llm_compare(a, '=', s)",
    "llm_similarity(a, s) > 0.1",
    "id < uid",
]

VALUES_T = [
    "llm_int('i1', b)",
    "llm_map('t1', a)",
    "llm_classify(a, ['x', 'y', 'z'])",
    "llm_list('l1', a)",
    "llm_float('f1', ts)",
    "llm_date('m3', l, evidence => false)",
    "llm_filter('q1', a)",
    "CASE WHEN llm_filter('q1', a) THEN llm_map('t1', a) WHEN n > 1 THEN 'cheap' END",
    "CASE WHEN n > 1 THEN 'cheap' ELSE llm_map('t1', a) END",
    "COALESCE(l, llm_map('t1', a), 'none')",
    "COALESCE(llm_map('t2', b), a)",
    "llm_int('i1', b) + n",
    "length(llm_map('t1', a)) * 2",
    "a || '/' || llm_map('t1', a)",
    "llm_map('t3', llm_map('t1', a), b)",
    "llm_map('t4', dec)",
    "NOT llm_filter('q1', a)",
    "nullif(llm_map('t1', a), 'b')",
    "llm_compare(b, '>=', a)",
    "llm_score('s1', a, low => 1, high => 5)",
    "llm_extract(a, 'n INT, w TEXT[], d STRUCT(x DATE)', evidence => false)",
    "llm_extract(a, 'n INT, w TEXT[], d STRUCT(x DATE)', evidence => false)['d']['x']",
    "llm_extract(b, 'n INT', evidence => false, on_error => 'keep')['value']['n'] + n",
    "llm_similarity(a, b)",
    "llm_embed(l)",
]
KEYS_T = [
    "llm_classify(a, ['x', 'y'])",
    "llm_int('i1', b)",
    "llm_filter('q1', a)",
    "llm_score('s1', a)",
    "n",
    "flag",
]


def predicates(cheap: list[str], dear: list[str]) -> st.SearchStrategy[str]:
    """Boolean expressions over cheap predicates and calls."""
    leaves = st.sampled_from(cheap) | st.sampled_from(dear)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} AND {} AND {})".format, inner, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("(NOT {})".format, inner),
            st.builds("(CASE WHEN {} THEN {} ELSE {} END)".format, inner, inner, inner),
            st.builds("(CASE WHEN {} THEN {} END)".format, inner, inner),
            st.builds("COALESCE({}, {})".format, inner, inner),
            st.builds("(({}) IS TRUE)".format, inner),
        ),
        max_leaves=5,
    )


P_T = predicates(CHEAP_T, DEAR_T)
P_U = predicates(CHEAP_U, DEAR_U)
P_BOTH = predicates(CHEAP_T + CHEAP_U, DEAR_T + DEAR_U + BOTH)
VALUE_T = st.sampled_from(VALUES_T)


# --- queries -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    sql: str
    ordered: bool = False


@st.composite
def _filter(draw: st.DrawFn) -> Query:
    return Query(f"SELECT id, a, {draw(VALUE_T)} AS v FROM t WHERE {draw(P_T)}")


@st.composite
def _select(draw: st.DrawFn) -> Query:
    return Query(f"SELECT {draw(VALUE_T)}, id, {draw(VALUE_T)} AS v FROM t")


@st.composite
def _join(draw: st.DrawFn) -> Query:
    kind = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]))
    on = draw(st.sampled_from(["n = ref", "n = ref AND a = s", "n = ref AND id < uid"]))
    items = draw(st.sampled_from(["id, uid", "id, uid, llm_map('t1', a) AS v", "uid, s, a"]))
    return Query(f"SELECT {items} FROM t {kind} u ON {on} WHERE {draw(P_BOTH)}")


@st.composite
def _join_on_call(draw: st.DrawFn) -> Query:
    condition = draw(st.sampled_from(BOTH[:3]))
    extra = draw(st.sampled_from(["", " AND n = ref", " AND llm_filter('q1', a)", " AND m > 1"]))
    kind = draw(st.sampled_from(["JOIN", "JOIN", "LEFT JOIN"]))
    if kind == "LEFT JOIN":
        condition, extra = "n = ref", draw(st.sampled_from([" AND llm_filter('q1', s)", ""]))
    return Query(f"SELECT id, uid FROM t {kind} u ON {condition}{extra}")


@st.composite
def _cross(draw: st.DrawFn) -> Query:
    return Query(f"SELECT id, uid FROM t CROSS JOIN u WHERE {draw(P_T)} AND {draw(P_U)}")


_SELF_JOIN = st.just(
    Query(
        "SELECT x.id, y.id, llm_int('i1', y.b) FROM t AS x JOIN t AS y ON x.n = y.id "
        "WHERE llm_filter('q1', x.a) AND llm_filter('q1', y.a)"
    )
)


@st.composite
def _subquery(draw: st.DrawFn) -> Query:
    inner = draw(P_U)
    condition = draw(
        st.sampled_from(
            [
                f"id IN (SELECT uid FROM u WHERE {inner})",
                f"n NOT IN (SELECT ref FROM u WHERE {inner})",
                f"n NOT IN (SELECT ref FROM u WHERE ref IS NOT NULL AND {inner})",
                f"EXISTS (SELECT 1 FROM u WHERE ref = n AND {inner})",
                f"NOT EXISTS (SELECT 1 FROM u WHERE ref = n AND {inner})",
                f"a IN (SELECT llm_map('t1', s) FROM u WHERE {inner})",
                f"llm_map('t1', a) IN (SELECT s FROM u WHERE {inner})",
                f"n > (SELECT min(ref) FROM u WHERE {inner})",
                f"llm_int('i1', b) > (SELECT max(llm_int('i2', s)) FROM u WHERE {inner})",
                f"n = (SELECT count(*) FROM u WHERE ref = n AND {inner})",
                f"(EXISTS (SELECT 1 FROM u WHERE ref = n AND {inner}) OR flag)",
                f"(id IN (SELECT uid FROM u WHERE {inner}) OR llm_filter('q1', a))",
            ]
        )
    )
    return Query(f"SELECT id, a FROM t WHERE {condition} AND {draw(P_T)}")


@st.composite
def _derived(draw: st.DrawFn) -> Query:
    outer = draw(st.sampled_from(["x", "x AND n > 1", "x OR flag", "NOT x", "n > 1 OR x"]))
    return Query(
        f"SELECT id, v FROM (SELECT id, n, flag, {draw(VALUE_T)} AS v, {draw(P_T)} AS x FROM t "
        f"WHERE {draw(P_T)}) AS s WHERE {outer}"
    )


@st.composite
def _common(draw: st.DrawFn) -> Query:
    return Query(
        f"WITH w AS (SELECT id, a, n, {draw(VALUE_T)} AS v FROM t WHERE {draw(P_T)}) "
        + draw(
            st.sampled_from(
                [
                    "SELECT id, v FROM w WHERE llm_filter('q1', a)",
                    "SELECT x.id, y.id, x.v FROM w AS x JOIN w AS y ON x.n = y.n",
                    "SELECT id, v FROM w WHERE id > (SELECT min(id) FROM w)",
                    "SELECT id FROM t WHERE n IN (SELECT n FROM w)",
                    "SELECT count(*) FROM w",
                    "SELECT id FROM t WHERE n > 1",
                ]
            )
        )
    )


@st.composite
def _view(draw: st.DrawFn) -> Query:
    return Query(f"SELECT id, v, y FROM seen WHERE {draw(st.sampled_from(CHEAP_T[:3]))} AND y")


@st.composite
def _group(draw: st.DrawFn) -> Query:
    key = draw(st.sampled_from(KEYS_T))
    aggregates = draw(
        st.sampled_from(
            [
                "count(*), sum(n)",
                "sum(llm_int('i1', b)), count(llm_map('t1', a))",
                "max(llm_map('t1', a)), count(DISTINCT llm_map('t1', a))",
                "avg(llm_float('f1', ts)), min(id)",
                "count(*) FILTER (WHERE llm_filter('q1', a)), sum(id)",
                "bool_or(llm_filter('q1', a)), string_agg(llm_map('t1', a), '' ORDER BY id)",
            ]
        )
    )
    having = draw(
        st.sampled_from(
            [
                "",
                " HAVING count(*) > 1",
                f" HAVING min(id) < 9 AND {key} IS NOT NULL",
                " HAVING sum(llm_int('i1', b)) > 3",
                " HAVING llm_filter('h', count(*))",
            ]
        )
    )
    return Query(f"SELECT {key} AS k, {aggregates} FROM t WHERE {draw(P_T)} GROUP BY {key}{having}")


@st.composite
def _whole(draw: st.DrawFn) -> Query:
    return Query(f"SELECT count(*), sum(llm_int('i1', b)), max(a) FROM t WHERE {draw(P_T)}")


@st.composite
def _grouping_sets(draw: st.DrawFn) -> Query:
    sets = draw(st.sampled_from(["ROLLUP(k, n)", "CUBE(k, n)", "GROUPING SETS ((k), (n), ())"]))
    return Query(
        f"SELECT k, n, count(*) FROM (SELECT n, {draw(st.sampled_from(KEYS_T[:3]))} AS k FROM t) "
        f"AS s GROUP BY {sets}"
    )


@st.composite
def _ordered(draw: st.DrawFn) -> Query:
    key = draw(
        st.sampled_from(
            [
                "id DESC",
                "n, id",
                "n DESC NULLS LAST, id",
                "llm_int('i1', b), id",
                "llm_map('t1', a) DESC, id DESC",
                "llm_filter('q1', a), llm_int('i1', b) DESC, id",
            ]
        )
    )
    bounds = draw(st.sampled_from(["", " LIMIT 3", " LIMIT 5 OFFSET 2", " OFFSET 4", " LIMIT 0"]))
    where = draw(st.sampled_from(["", " WHERE {}"])).format(draw(P_T))
    return Query(f"SELECT id, {draw(VALUE_T)} AS v FROM t{where} ORDER BY {key}{bounds}", True)


@st.composite
def _top_then_ask(draw: st.DrawFn) -> Query:
    return Query(
        f"SELECT id, {draw(VALUE_T)} AS v FROM (SELECT * FROM t WHERE {draw(P_T)} ORDER BY id "
        f"LIMIT 6 OFFSET 1) AS s WHERE {draw(P_T)}"
    )


@st.composite
def _set_operation(draw: st.DrawFn) -> Query:
    word = draw(
        st.sampled_from(
            ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"]
        )
    )
    return Query(
        f"SELECT n, a FROM t WHERE {draw(P_T)} {word} SELECT ref, llm_map('t1', s) FROM u "
        f"WHERE {draw(P_U)}"
    )


@st.composite
def _union_limited(draw: st.DrawFn) -> Query:
    return Query(
        f"SELECT * FROM (SELECT id, a FROM t WHERE {draw(P_T)} UNION ALL "
        f"SELECT uid + 100, s FROM u WHERE {draw(P_U)}) AS x ORDER BY id LIMIT 4",
        True,
    )


@st.composite
def _distinct(draw: st.DrawFn) -> Query:
    return Query(f"SELECT DISTINCT {draw(VALUE_T)} AS v, n FROM t WHERE {draw(P_T)}")


@st.composite
def _distinct_on(draw: st.DrawFn) -> Query:
    key = draw(st.sampled_from(KEYS_T))
    return Query(f"SELECT DISTINCT ON ({key}) id, a FROM t WHERE {draw(P_T)} ORDER BY {key}, id")


@st.composite
def _window(draw: st.DrawFn) -> Query:
    window = draw(
        st.sampled_from(
            [
                "row_number() OVER (PARTITION BY llm_classify(a, ['x', 'y']) ORDER BY id)",
                "sum(llm_int('i1', b)) OVER (ORDER BY id)",
                "lag(llm_map('t1', a)) OVER (ORDER BY id)",
                "rank() OVER (ORDER BY llm_int('i1', b), id) + n",
                "count(*) OVER (PARTITION BY n)",
                "sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            ]
        )
    )
    outer = draw(st.sampled_from(["", " WHERE w > 1 AND llm_filter('q1', a)", " WHERE x"]))
    if "lag" in window:
        outer = ""
    return Query(
        f"SELECT id, w, x FROM (SELECT id, a, {window} AS w, llm_filter('q1', a) AS x FROM t "
        f"WHERE {draw(P_T)}) AS s{outer}"
    )


@st.composite
def _aggregate_call(draw: st.DrawFn) -> Query:
    key = draw(st.sampled_from([*KEYS_T, "n"]))
    extra = draw(st.sampled_from(["", " FILTER (WHERE n > 1)", " FILTER (WHERE flag)"]))
    call = draw(
        st.sampled_from(
            [
                "llm_qa('qa1', a)",
                "llm_validate('v1', a, n)",
                "llm_summarize(b)",
                "llm_qa('qa3', a, options => ['x', 'y'])",
                "llm_qa('qa4', llm_map('t1', a))",
                "llm_qa('qa5', l)",
            ]
        )
    )
    having = draw(st.sampled_from(["", f" HAVING {call} IS NOT NULL", " HAVING count(*) > 1"]))
    if draw(st.booleans()):
        return Query(
            f"SELECT {key} AS k, {call}{extra}, count(*) FROM t WHERE {draw(P_T)} GROUP BY {key}{having}"
        )
    return Query(f"SELECT {call}{extra}, sum(n) FROM t WHERE {draw(P_T)}")


SHAPES: dict[str, st.SearchStrategy[Query]] = {
    "filter": _filter(),
    "select": _select(),
    "join": _join(),
    "join_on_call": _join_on_call(),
    "cross": _cross(),
    "self_join": _SELF_JOIN,
    "subquery": _subquery(),
    "derived": _derived(),
    "common": _common(),
    "view": _view(),
    "group": _group(),
    "whole": _whole(),
    "grouping_sets": _grouping_sets(),
    "ordered": _ordered(),
    "top_then_ask": _top_then_ask(),
    "set_operation": _set_operation(),
    "union_limited": _union_limited(),
    "distinct": _distinct(),
    "distinct_on": _distinct_on(),
    "window": _window(),
    "aggregate_call": _aggregate_call(),
}
