"""Expressions of every function, type, cast, frame and clause of DataFusion, from its own lists.

``expressions`` gives queries over the table ``t`` with ``{where}`` and ``{call}`` in place of a
predicate that every row passes and of one more column. DataFusion refuses some of them, since the
lists say little about arguments."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
from datafusion import SessionContext
from random_choices import Choices

ROWS = 6
_START = datetime.datetime(2024, 3, 30, 22, 30, 15, 123456)
_MOMENTS = [_START + datetime.timedelta(hours=7 * i) for i in range(4)]
_WHOLE = [moment.replace(microsecond=0) for moment in _MOMENTS]


def _with_nulls(values: list[object]) -> list[object]:
    """The values of six rows: a NULL, the first value twice, and the rest."""
    return [values[0], None, *values[1:4], values[0]]


def _columns() -> dict[str, pa.Array]:
    texts = _with_nulls(["12", "ab cd", "2024-05-06", "x,y"])
    numbers = _with_nulls([3, 1, 2, 7])
    decimals = [Decimal("3.25"), Decimal("1.10"), Decimal("2.00"), Decimal("-7.75")]
    lists = _with_nulls([[1, 2, 3], [], [None, 2], [5]])
    made = {
        "s": pa.array(texts),
        "sv": pa.array(texts, pa.string_view()),
        "sl": pa.array(texts, pa.large_string()),
        "sd": pa.array(texts).dictionary_encode(),
        "b": pa.array([None if v is None else str(v).encode() for v in texts], pa.binary()),
        "o": pa.array(_with_nulls([True, False, True, False])),
        "d": pa.array(_with_nulls([moment.date() for moment in _MOMENTS])),
        "d64": pa.array(_with_nulls([moment.date() for moment in _MOMENTS]), pa.date64()),
        "h": pa.array(_with_nulls([m.time() for m in _MOMENTS]), pa.time64("us")),
        "h32": pa.array(_with_nulls([m.time() for m in _WHOLE]), pa.time32("s")),
        "y": pa.array(_with_nulls([datetime.timedelta(seconds=i * 90) for i in (3, 1, 2, 7)])),
        "dec": pa.array(_with_nulls(list(decimals)), pa.decimal128(10, 2)),
        "big": pa.array(_with_nulls(list(decimals)), pa.decimal256(50, 3)),
        "l": pa.array(lists, pa.list_(pa.int64())),
        "lt": pa.array(_with_nulls([["a", "b"], ["b"], [], ["c", None]]), pa.list_(pa.string())),
        "r": pa.array(_with_nulls([{"p": i, "q": str(i)} for i in range(4)])),
        "m": pa.array(
            _with_nulls([[("a", i)] for i in range(4)]), pa.map_(pa.string(), pa.int64())
        ),
        "v": pa.array(_with_nulls([[1.0, 2.0], [0.5, 1], [3, 4], [2, 2]]), pa.list_(pa.float64())),
    }
    for width in (8, 16, 32, 64):
        made[f"i{width}"] = pa.array(numbers, getattr(pa, f"int{width}")())
        made[f"u{width}"] = pa.array(numbers, getattr(pa, f"uint{width}")())
    for width in (32, 64):
        made[f"f{width}"] = pa.array(_with_nulls([3.5, -1.0, 2.0, 7.25]), f"float{width}")
    for unit in ("s", "ms", "us", "ns"):
        moments = _with_nulls(list(_WHOLE if unit in ("s", "ms") else _MOMENTS))
        made[f"t_{unit}"] = pa.array(moments, pa.timestamp(unit))
    for name, zone in (("utc", "UTC"), ("berlin", "Europe/Berlin"), ("plus", "+05:30")):
        made[f"z_{name}"] = pa.array(_with_nulls(list(_MOMENTS)), pa.timestamp("us", zone))
    return made


def table() -> pa.Table:
    """Six rows with a column of each type, ``id``, ``g`` (two groups) and ``x``, all of them
    different."""
    keys = {"id": list(range(ROWS)), "g": [i % 2 for i in range(ROWS)], "x": list("abcdef")}
    return pa.table({**{name: pa.array(values) for name, values in keys.items()}, **_columns()})


COLUMNS = tuple(_columns())
SQL_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "REAL", "DOUBLE", "DECIMAL(20, 4)"),
    *("TINYINT UNSIGNED", "SMALLINT UNSIGNED", "INT UNSIGNED", "BIGINT UNSIGNED", "VARCHAR"),
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "BYTEA"),
    *("TIMESTAMP WITH TIME ZONE", "INTERVAL", "BIGINT[]"),
)
ARROW_TYPES = (
    *("Utf8", "LargeUtf8", "Utf8View", "Binary", "LargeBinary", "BinaryView", "Date64"),
    *("Time32(s)", "Time32(ms)", "Time64(us)", "Time64(ns)", "Float16", "Decimal256(50, 2)"),
    *("Timestamp(s)", "Timestamp(ns)", 'Timestamp(s, "UTC")', 'Timestamp(us, "Europe/Berlin")'),
    *('Timestamp(ns, "+05:30")', "Duration(s)", "Duration(ns)", "Interval(MonthDayNano)"),
    *("Interval(YearMonth)", "Interval(DayTime)", "Dictionary(Int32, Utf8)", "List(Int64)"),
    *("LargeList(Int64)", "FixedSizeList(2, Float64)", "Decimal32(9, 2)", "Decimal64(18, 3)"),
)
LITERALS = (
    *("1", "2", "0.5", "'a'", "'b'", "'12'", "'day'", "'%Y-%m-%d'", "TRUE", "NULL", "','"),
    *("DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:30:00'", "INTERVAL '1 day 2 hours'"),
    *("[1, 2]", "['a', 'b']", "'Europe/Berlin'", "'2024-05-06'", "'sha256'", "'hex'", "'q'"),
    *("TIMESTAMP '2024-02-29 12:30:00' AT TIME ZONE 'Asia/Tokyo'", "'Int32'", "'p'", "10"),
    *("CAST(2 AS INT)", "INTERVAL '1' MONTH", "X'4142'", "TIME '10:11:12'", "1.25"),
)
FORMS = (
    *("{a} = {b}", "{a} <> {b}", "{a} < {b}", "{a} >= {b}", "{a} + {b}", "{a} - {b}"),
    *("{a} * {b}", "{a} / {b}", "{a} % {b}", "{a} || {b}", "{a} & {b}", "{a} | {b}"),
    *("{a} # {b}", "{a} << {b}", "{a} >> {b}", "{a} ~ {b}", "{a} ~* {b}", "{a} !~ {b}"),
    *("{a} LIKE {b}", "{a} NOT ILIKE {b}", "{a} !~* {b}", "{a} IS DISTINCT FROM {b}"),
    *("{a} IS NOT DISTINCT FROM {b}", "{a} IN ({b}, {b})", "{a} NOT IN ({b}, NULL)"),
    *("{a} BETWEEN {b} AND {b}", "{a} NOT BETWEEN {b} AND {a}", "{a} @> {b}", "{a} <@ {b}"),
    *("CASE WHEN {a} IS NULL THEN {b} END", "CASE {a} WHEN {b} THEN 1 ELSE 2 END"),
    *("CASE WHEN id = 1 THEN {a} ELSE {b} END", "coalesce({a}, {b})", "nullif({a}, {b})"),
    *("{a} = ANY({b})", "{a} AND {b}", "{a} OR NOT {b}", "({a}, {b}) = ({b}, {a})"),
    *("{a} AT TIME ZONE 'America/New_York'", "EXTRACT(DOW FROM {a})", "-({a})", "NOT {a}"),
    *("{a} IS TRUE", "{a} IS NOT FALSE", "{a} IS UNKNOWN", "{a} IS NOT NULL", "{a}[1]"),
    *("{a}[1:2]", "{a}['p']", "SUBSTRING({a} FROM 2 FOR 1)", "POSITION({b} IN {a})"),
    *("TRIM(BOTH 'a' FROM {a})", "OVERLAY({a} PLACING 'z' FROM 1 FOR 1)", "ARRAY[{a}, {b}]"),
    *("{{'k': {a}}}", "struct({a}, {b})", "MAP {{'k': {a}}}", "{a} LIKE 'a!%' ESCAPE '!'"),
    *("(SELECT max({a}) FROM t)", "{a} IN (SELECT {a} FROM t)", "TRY_CAST({a} AS INT)"),
    *("EXTRACT(EPOCH FROM {a})", "{a} > ALL(SELECT {a} FROM t)", "CEIL({a} TO DAY)"),
)
SUBQUERIES = (
    *("(SELECT min({a}) FROM t)", "CAST((SELECT max({a}) FROM t) AS VARCHAR)"),
    *(
        "CASE WHEN (SELECT min({a}) FROM t) IS NULL THEN {b} ELSE {a} END",
        "NOT (SELECT {a} FROM t)",
    ),
    *("coalesce((SELECT min({a}) FROM t WHERE id > 9), {b})", "{a} >= (SELECT min({a}) FROM t)"),
    *("sum(id + (SELECT min(id) FROM t)) OVER (ORDER BY id)", "{a} NOT IN (SELECT {b} FROM t)"),
    *("NOT EXISTS (SELECT 1 FROM t q WHERE q.id > 3 AND q.{a} = {b})", "-(SELECT max({a}) FROM t)"),
    *("EXISTS (SELECT 1 FROM t q WHERE q.{a} = q.{b})", "(SELECT max({a}) FROM t) + 1"),
    *("(SELECT max({a} AT TIME ZONE 'Asia/Tokyo') FROM t)", "(SELECT max({a}) FROM t) LIKE '%a%'"),
    *("(SELECT max({a}) FROM t) BETWEEN {a} AND {b}", "(SELECT max({a}) FROM t) IN ({a}, {b})"),
    "(SELECT max(s) FROM (SELECT sum(id) OVER (ORDER BY i64 RANGE 1 PRECEDING) AS s FROM t))",
    "(SELECT count(DISTINCT {a}) FILTER (WHERE id > 1) FROM t WHERE {a} IS NOT NULL)",
    "(SELECT first_value({a} ORDER BY id DESC NULLS LAST) FROM t)",
)
ORDERS = ("id", "{c}, id", "{c} DESC, id DESC", "{c} NULLS FIRST, id", "g, {c} DESC NULLS LAST, id")
UNITS = ("ROWS", "GROUPS", "RANGE")
BOUNDS = {
    "id": ("1", "2"),
    **dict.fromkeys(("i32", "i64", "u8", "u64", "i8"), ("1", "2")),
    **dict.fromkeys(("f32", "f64", "dec"), ("0.5", "2", "1")),
    **dict.fromkeys(
        ("d", "d64", "t_s", "t_us", "t_ns", "z_utc", "z_berlin"),
        ("INTERVAL '1 day'", "'12 hours'", "INTERVAL '1' MONTH", "INTERVAL '7 hours 30 minutes'"),
    ),
}
STARTS = ("UNBOUNDED PRECEDING", "{n} PRECEDING", "CURRENT ROW", "{n} FOLLOWING")
ENDS = ("{m} PRECEDING", "CURRENT ROW", "{m} FOLLOWING", "UNBOUNDED FOLLOWING")
MODIFIERS = (
    *("{f}({a})", "{f}(DISTINCT {a})", "{f}({a}) FILTER (WHERE id > 1)", "{f}({a} ORDER BY id)"),
    *("{f}({a} ORDER BY {b} DESC NULLS LAST, id)", "{f}({a}) IGNORE NULLS", "{f}({a}, {b})"),
    *(
        "{f}(0.5) WITHIN GROUP (ORDER BY {a})",
        "{f}({a}, ',' ORDER BY id)",
        "{f}({a}, 2 ORDER BY id)",
    ),
    *("{f}(DISTINCT {a}) FILTER (WHERE o)", "{f}({a} ORDER BY id) FILTER (WHERE id < 5)"),
    *("{f}(0.25) WITHIN GROUP (ORDER BY {a} DESC)", "{f}({a}, {b}) FILTER (WHERE id > 0)"),
    *("{f}(1, 0.5) WITHIN GROUP (ORDER BY {a})", "{f}({a} ORDER BY id) IGNORE NULLS", "{f}(*)"),
)
CLAUSES = (
    "SELECT g, {a} AS z, count(*) AS n FROM t WHERE {{where}} GROUP BY ROLLUP (g, {a})",
    "SELECT g, {a} AS z, count(*) AS n FROM t WHERE {{where}} GROUP BY CUBE (g, {a})",
    "SELECT g, {a} AS z, grouping(g) AS n FROM t WHERE {{where}} "
    "GROUP BY GROUPING SETS ((g), ({a}), ())",
    "SELECT {a} AS z, min(id) AS n FROM t WHERE {{where}} GROUP BY {a} HAVING min(id) > 0",
    "SELECT DISTINCT {a} AS z FROM t WHERE {{where}}",
    "SELECT DISTINCT ON (g) g, {a} AS z FROM t WHERE {{where}} ORDER BY g, id",
    "SELECT {a} AS z, id FROM t WHERE {{where}} ORDER BY {a} DESC NULLS LAST, id LIMIT 4 OFFSET 1",
    "SELECT {a} AS z FROM t WHERE {{where}} UNION SELECT {b} FROM t",
    "SELECT {a} AS z FROM t WHERE {{where}} UNION ALL SELECT {b} FROM t",
    "SELECT {a} AS z FROM t WHERE {{where}} EXCEPT SELECT {b} FROM t WHERE id > 2",
    "SELECT {a} AS z FROM t WHERE {{where}} INTERSECT ALL SELECT {b} FROM t",
    "SELECT {a} AS z, id FROM t WHERE {{where}} "
    "QUALIFY row_number() OVER (PARTITION BY g ORDER BY {a}, id) = 1",
    "SELECT id, count({a}) OVER w AS z, max({b}) OVER w AS y FROM t WHERE {{where}} "
    "WINDOW w AS (PARTITION BY g ORDER BY id)",
    "SELECT t.id, q.z FROM t JOIN (SELECT id, {a} AS z FROM t) q ON t.id = q.id AND q.z IS NOT NULL "
    "WHERE {{where}}",
    "SELECT t.id, q.id AS i FROM t LEFT JOIN t q ON t.{a} = q.{b} WHERE {{where}}",
    "SELECT id FROM t WHERE {{where}} AND {a} IN (SELECT {b} FROM t WHERE id > 1)",
    "SELECT id FROM t WHERE {{where}} AND {a} NOT IN (SELECT {b} FROM t WHERE {b} IS NOT NULL)",
    "SELECT id FROM t WHERE {{where}} AND EXISTS (SELECT 1 FROM t q WHERE q.{a} = t.{b})",
    "SELECT id, (SELECT min(q.{a}) FROM t q WHERE q.g = t.g) AS z FROM t WHERE {{where}}",
    "WITH w AS (SELECT id, {a} AS z FROM t WHERE {{where}}) SELECT a.z, b.id FROM w a JOIN w b "
    "ON a.id = b.id",
    "SELECT v.z, t.id FROM t CROSS JOIN (VALUES ({lit}), (NULL)) AS v(z) WHERE {{where}}",
    "SELECT id, unnest(l) AS z, {a} AS y FROM t WHERE {{where}}",
)
ZONES = ("Europe/Berlin", "Asia/Kathmandu", "+02:00", "UTC")


_OF_ORDER = ("array_agg", "string_agg", "first_value", "last_value", "nth_value", "any_value")


class Query(NamedTuple):
    """A query over ``t`` whose kind is one word, for counts."""

    kind: str
    sql: str


def functions(context: SessionContext, kind: str) -> list[str]:
    """The names of the functions of a kind (SCALAR, AGGREGATE, WINDOW) that the engine lists."""
    rows = context.sql(
        "SELECT DISTINCT routine_name AS name FROM information_schema.routines "
        f"WHERE function_type = '{kind}' ORDER BY 1"
    ).to_pydict()
    return [name for name in rows["name"] if not name.startswith(("llm_", "ai_"))]


def scalar(expression: str) -> str:
    return f"SELECT id, {expression} AS z{{call}} FROM t"


def _casts() -> Iterator[Query]:
    for column in COLUMNS:
        yield Query("type", scalar(column))
        for kind in SQL_TYPES:
            yield Query("cast", scalar(f"CAST({column} AS {kind})"))
        for kind in ARROW_TYPES:
            yield Query("cast", scalar(f"arrow_cast({column}, '{kind}')"))
        for zone in ZONES:
            yield Query("zone", scalar(f"{column} AT TIME ZONE '{zone}'"))
    for literal, kind in itertools.product(LITERALS, ARROW_TYPES):
        yield Query("cast", scalar(f"arrow_cast({literal}, '{kind}')"))


def _scalars(context: SessionContext, choices: Choices, times: int) -> Iterator[Query]:
    pool = (*COLUMNS, *LITERALS)
    for name in functions(context, "SCALAR"):
        yield Query("scalar", scalar(f"{name}()"))
        for arity in (1, 2, 3):
            for _ in range(times * arity):
                given = [choices.pick(COLUMNS if i == 0 else pool) for i in range(arity)]
                if choices.chance(20):
                    given[0] = choices.pick(pool)
                yield Query("scalar", scalar(f"{name}({', '.join(given)})"))


def _forms(choices: Choices, times: int) -> Iterator[Query]:
    for form in (*FORMS, *SUBQUERIES):
        for _ in range(times):
            a, b = choices.pick(COLUMNS), choices.pick((*COLUMNS, *LITERALS))
            if choices.chance(30):
                b = a
            kind = "subquery" if form in SUBQUERIES else "form"
            yield Query(kind, scalar(form.format(a=a, b=b)))


def _aggregates(context: SessionContext, choices: Choices, times: int) -> Iterator[Query]:
    for name, form in itertools.product(functions(context, "AGGREGATE"), MODIFIERS):
        if name in _OF_ORDER and "DISTINCT" in form:
            continue  # DataFusion has them in no order
        for _ in range(times):
            z = form.format(f=name, a=choices.pick(COLUMNS), b=choices.pick(COLUMNS))
            keys = choices.pick(("GROUP BY g", ""))
            yield Query(
                "aggregate",
                f"SELECT {'g, ' if keys else ''}{z} AS z FROM t WHERE {{where}} {keys}",
            )


def _frame(choices: Choices, key: str) -> str:
    unit = choices.pick(UNITS)
    bounds = BOUNDS[key] if unit == "RANGE" else ("1", "2")
    start, end = choices.pick(STARTS), choices.pick(ENDS)
    return f"{unit} BETWEEN {start} AND {end}".format(
        n=choices.pick(bounds), m=choices.pick(bounds)
    )


def _windows(context: SessionContext, choices: Choices, times: int) -> Iterator[Query]:
    names = [*functions(context, "WINDOW"), *functions(context, "AGGREGATE")]
    for name in names:
        for i in range(times):
            key = choices.pick(tuple(BOUNDS))
            args = choices.pick(("", "{a}", "{a}", "{a}", "{a}, 2", "{a}, {b}", "2", "*"))
            given = args.format(a=choices.pick(COLUMNS), b=choices.pick(COLUMNS))
            extra = choices.pick(("", "", "", " IGNORE NULLS", " FILTER (WHERE id > 1)"))
            parts = choices.pick(("", "PARTITION BY g ", "PARTITION BY o, g "))
            order = choices.pick(("", f"ORDER BY {key}", f"ORDER BY {key} DESC NULLS LAST"))
            frame = _frame(choices, key) if order and i % 4 else ""
            z = f"{name}({given}){extra} OVER ({parts}{order} {frame})"
            yield Query("window", scalar(z))


def _frames(choices: Choices) -> Iterator[Query]:
    for unit, key, start, end in itertools.product(UNITS, BOUNDS, STARTS, ENDS):
        bounds = BOUNDS[key] if unit == "RANGE" else ("1", "2")
        frame = f"{start} AND {end}".format(n=choices.pick(bounds), m=choices.pick(bounds))
        direction = choices.pick(("", " DESC", " NULLS FIRST"))
        yield Query(
            "frame", scalar(f"sum(id) OVER (ORDER BY {key}{direction} {unit} BETWEEN {frame})")
        )


def _clauses(choices: Choices, times: int) -> Iterator[Query]:
    for clause in CLAUSES:
        for _ in range(times):
            a, b = choices.pick(COLUMNS), choices.pick(COLUMNS)
            if choices.chance(50):
                b = a
            yield Query("clause", clause.format(a=a, b=b, lit=choices.pick(LITERALS)))


def expressions(context: SessionContext, seed: int = 0, times: int = 4) -> list[Query]:
    """Queries of all kinds, in one order for a seed; more of each function for more ``times``."""
    choices = Choices.seeded(seed)
    made = [
        *_casts(),
        *_scalars(context, choices, times),
        *_forms(choices, 2 * times),
        *_aggregates(context, choices, 2),
        *_windows(context, choices, 2 * times),
        *_frames(choices),
        *_clauses(choices, 2 * times),
    ]
    return list(dict.fromkeys(made))


def alone(query: Query) -> str:
    """The query without a call."""
    return query.sql.replace("{where}", "x IS NOT NULL").replace("{call}", "")


def beside_a_call(query: Query) -> str:
    """The query beside a call."""
    asked = query.sql.replace("{where}", "llm_filter('q', x)")
    return asked.replace("{call}", ", llm_text('q', x) AS v")
