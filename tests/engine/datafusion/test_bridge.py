"""Time zones, frames, and whatever else Substrait lacks: queries have DataFusion's own rows."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionConfig, SessionContext, udf
from google.protobuf.message import Message
from scripts import tuples
from substrait.proto import AggregateFunction, AggregateRel, FetchRel, JoinRel, SortField
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Plan as PlanMessage
from substrait.proto import Type as TypeMessage

import blendfusion as bf
from blendfusion.datafusion import bridge
from blendfusion.planner.ir.messages import is_repeated

N = 48
MOMENTS = [datetime.datetime(2024, 3, 30, 12) + datetime.timedelta(hours=i) for i in range(N)]
T = pa.table(
    {
        "id": range(N),
        "g": [i % 3 for i in range(N)],
        "x": [f"v{i % 7}" for i in range(N)],
        "n": pa.array([i * i % 17 for i in range(N)], pa.int32()),
        "u": pa.array([i * 5 % 11 for i in range(N)], pa.uint64()),
        "f": [None if i % 9 == 0 else i * 0.75 for i in range(N)],
        "dec": [Decimal(i % 13) / 4 for i in range(N)],
        "d": [moment.date() for moment in MOMENTS],
        # Not in the hour that Berlin skips, which DataFusion refuses.
        "naive": pa.array([m + datetime.timedelta(days=2) for m in MOMENTS], pa.timestamp("us")),
        "utc": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "berlin": pa.array(MOMENTS, pa.timestamp("ms", "Europe/Berlin")),
    }
)


def answer(request: bf.Request) -> bool | str:
    return True if request.constraint.kind == "boolean" else "w"


@pytest.fixture
def session() -> Iterator[bf.Session]:
    with bf.connect(bf.ScriptedModel(answer), cache=None, progress="off") as made:
        made.from_arrow(T, name="t")
        yield made


def rows(frame: DataFrame) -> tuple[list[pa.DataType], list[tuple[object, ...]]]:
    """Types, and rows in the order of their texts."""
    found = frame.to_arrow_table()
    return found.schema.types, sorted(tuples(found), key=str)


def check(session: bf.Session, query: str, *, planned: bool = True) -> bf.Frame:
    """The query has DataFusion's rows and types, and runs by stages. ``{f}`` in it is a predicate
    that is true on every row."""
    context = SessionContext()
    context.from_arrow(T, name="t")
    frame = session.sql(query.replace("{f}", "llm_filter('q', x)"))
    assert frame.prepared.calls
    assert (frame.prepared.reason is None) == planned, frame.prepared.reason
    assert rows(frame) == rows(context.sql(query.replace("{f}", "x IS NOT NULL")))
    return frame


@pytest.mark.parametrize(
    "condition",
    [
        "CASE t.f > 9 WHEN {f} THEN s.f < 30 WHEN s.n = 4 THEN true ELSE s.n > t.n END",
        "(CASE {f} WHEN s.n > 4 THEN t.n > 3 WHEN t.n > 5 THEN s.n > 3 END) IS NOT FALSE",
        "t.n + s.n > CASE WHEN {f} AND t.n = s.n THEN 4 ELSE 9 END",
    ],
)
def test_a_case_in_a_condition_of_a_join_is_planned(session: bf.Session, condition: str) -> None:
    check(
        session,
        f"SELECT t.id, s.id AS i FROM t JOIN (SELECT id, n, f FROM t) s "
        f"ON t.g = s.id WHERE {condition}",
    )


# --- time zones -----------------------------------------------------------------------------------

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "+05:30", "UTC")
ZONED = {
    "a predicate": "SELECT id FROM t WHERE CAST({z} AS DATE) = DATE '2024-03-31' AND {{f}}",
    "a column": "SELECT id, {z} AS z FROM t WHERE {{f}}",
    "its text": "SELECT id, CAST({z} AS TEXT) AS z FROM t WHERE {{f}}",
    "its hour": "SELECT date_part('hour', {z}) AS h, count(*) AS n FROM t WHERE {{f}} GROUP BY 1",
    "its day": "SELECT date_trunc('day', {z}) AS d, count(*) AS n FROM t WHERE {{f}} GROUP BY 1",
    "days with totals": "SELECT date_trunc('day', {z}) AS d, g, count(*) AS n FROM t WHERE {{f}} "
    "GROUP BY ROLLUP (date_trunc('day', {z}), g)",
    "the last one": "SELECT g, max({z}) AS z FROM t WHERE {{f}} GROUP BY g",
    "a window": "SELECT id, lag({z}) OVER (PARTITION BY CAST({z} AS DATE) ORDER BY id) AS z "
    "FROM t WHERE {{f}}",
    "a key of a join": "SELECT t.id, s.id AS i FROM t JOIN (SELECT id, {z} AS z FROM t) s "
    "ON {z} = s.z WHERE {{f}}",
    "a set operation": "SELECT {z} AS z FROM t WHERE {{f}} UNION SELECT {z} FROM t",
    "a list": "SELECT id, [{z}, {z} + INTERVAL '1 day'] AS z FROM t WHERE {{f}}",
    "a CASE": "SELECT CASE WHEN {{f}} THEN {z} END AS z FROM t",
    "a scalar subquery": "SELECT id FROM t WHERE {z} > (SELECT min({z}) FROM t) AND {{f}}",
    "the next view": "WITH w AS (SELECT id, x, {z} AS z FROM t) SELECT id, CAST(z AS DATE) AS d "
    "FROM w WHERE {{f}}",
}


@pytest.mark.parametrize("form", ZONED)
def test_a_zone_is_that_of_the_query(session: bf.Session, form: str) -> None:
    for zone in ZONES:
        for column in ("naive", "utc", "berlin"):
            zoned = column if zone == "UTC" else f"{column} AT TIME ZONE '{zone}'"
            check(session, ZONED[form].format(z=f"({zoned})"))
    for kind in ('Timestamp(s, "Asia/Tokyo")', 'Timestamp(ns, "-03:00")'):
        check(session, ZONED[form].format(z=f"arrow_cast(utc, '{kind}')"))


@pytest.mark.parametrize(
    "value",
    [
        "TIMESTAMP '2024-03-31 01:30:00' AT TIME ZONE 'Europe/Berlin'",
        "CASE WHEN id > 3 THEN arrow_cast(NULL, 'Timestamp(us, \"Asia/Tokyo\")') END",
        "arrow_cast('2024-03-31T12:00:00', 'Timestamp(ms, \"Asia/Tokyo\")')",
        "utc AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'Asia/Tokyo'",
        "CAST(utc AT TIME ZONE 'Europe/Berlin' AS TEXT) || CAST(utc AT TIME ZONE 'UTC' AS TEXT)",
        "coalesce(berlin, TIMESTAMP '2024-01-01' AT TIME ZONE 'America/New_York')",
        "arrow_try_cast(x, 'Timestamp(us, \"Europe/Berlin\")')",
        "to_char(utc AT TIME ZONE 'Asia/Kathmandu', '%H:%M')",
        "date_bin(INTERVAL '6 hours', utc AT TIME ZONE 'Europe/Berlin')",
    ],
)
def test_literals_and_several_zones(session: bf.Session, value: str) -> None:
    check(session, f"SELECT id, {value} AS z FROM t WHERE {{f}}")
    check(session, f"SELECT {value} AS z, count(*) AS n FROM t WHERE {{f}} GROUP BY 1")


def test_a_zone_inside_a_list_runs_plain_and_says_so(session: bf.Session) -> None:
    value = "[TIMESTAMP '2024-01-01' AT TIME ZONE 'Asia/Tokyo']"
    with pytest.warns(bf.PlanWarning, match="Substrait would change a literal"):
        check(session, f"SELECT id, {value} AS z FROM t WHERE {{f}}", planned=False)


def test_the_zone_of_the_session(session: bf.Session) -> None:
    session.sql("SET datafusion.execution.time_zone = 'Europe/Berlin'")
    context = SessionContext(SessionConfig().set("datafusion.execution.time_zone", "Europe/Berlin"))
    context.from_arrow(T, name="t")
    query = """SELECT id, CAST(CAST(naive AS TEXT) AS TIMESTAMPTZ) AS z,
        TIMESTAMPTZ '2024-03-31 12:00:00' AS l FROM t WHERE {f}"""
    frame = session.sql(query.replace("{f}", "llm_filter('q', x)"))
    assert frame.prepared.reason is None
    assert rows(frame) == rows(context.sql(query.replace("{f}", "x IS NOT NULL")))


def test_a_function_of_the_user_returns_a_zone(session: bf.Session) -> None:
    kind = pa.timestamp("us", "Asia/Tokyo")
    session.register_udf(udf(lambda c: c.cast(kind), [pa.timestamp("us")], kind, "stable", "tokyo"))
    found = session.sql(
        "SELECT CAST(tokyo(naive) AS TEXT) AS z FROM t WHERE id = 0 AND llm_filter('q', x)"
    ).to_pydict()
    assert found == {"z": ["2024-04-01T21:00:00+09:00"]}


def test_the_model_is_shown_the_zoned_text() -> None:
    model = bf.ScriptedModel(answer)
    with bf.connect(model, cache=None, progress="off") as session:
        session.from_arrow(T, name="t")
        query = "SELECT llm_text('q', utc AT TIME ZONE 'Europe/Berlin') AS v FROM t WHERE id = 0"
        frame = session.sql(query)
        assert frame.to_pydict() == {"v": ["w"]}
        assert [call.values for call in model.calls] == [("2024-03-30T13:00:00+01:00",)]
        assert "t.utc AT TIME ZONE 'Europe/Berlin'" in frame.explain_text()


# --- frames ---------------------------------------------------------------------------------------

FRAMES = {
    "id": ("5 PRECEDING AND CURRENT ROW", "CURRENT ROW AND 3 FOLLOWING"),
    "n": ("1 PRECEDING AND 2 FOLLOWING", "3 FOLLOWING AND UNBOUNDED FOLLOWING"),
    "u": ("UNBOUNDED PRECEDING AND 2 PRECEDING", "2 PRECEDING AND 1 PRECEDING"),
    "f": ("1.5 PRECEDING AND CURRENT ROW", "0.75 PRECEDING AND 0.75 FOLLOWING"),
    "dec": ("1 PRECEDING AND CURRENT ROW", "0.25 PRECEDING AND 0.5 FOLLOWING"),
    "d": (
        "INTERVAL '1 day' PRECEDING AND CURRENT ROW",
        "'1 month' PRECEDING AND '1 day' FOLLOWING",
    ),
    "naive": ("INTERVAL '7 hours 30 minutes' PRECEDING AND CURRENT ROW",),
    "utc": ("INTERVAL '1' DAY PRECEDING AND INTERVAL '2' HOUR FOLLOWING",),
    "berlin": ("UNBOUNDED PRECEDING AND INTERVAL '1 day' PRECEDING",),
}
WINDOWED = {
    "sum(id) OVER (ORDER BY {k} RANGE BETWEEN {b})": "SELECT id, {w} AS w FROM t WHERE {{f}}",
    "count(*) OVER (PARTITION BY g ORDER BY {k} DESC RANGE BETWEEN {b})": "SELECT id, {w} + 1 AS w "
    "FROM t WHERE {{f}}",
    "first_value(id) OVER (ORDER BY {k} NULLS FIRST RANGE BETWEEN {b})": "SELECT id FROM t WHERE "
    "{{f}} QUALIFY {w} < 9",
    "max(n) OVER (PARTITION BY g, n % 2 ORDER BY {k} RANGE BETWEEN {b})": "SELECT w.m, count(*) AS c "
    "FROM (SELECT x, {w} AS m FROM t) w WHERE {{f}} GROUP BY w.m",
    "nth_value(id, 2) OVER (ORDER BY {k} RANGE BETWEEN {b})": "SELECT id, {w} AS w FROM t "
    "WHERE {{f}} ORDER BY w, id LIMIT 5",
}


@pytest.mark.parametrize("window", WINDOWED)
@pytest.mark.parametrize("key", FRAMES)
def test_a_frame_is_that_of_the_query(session: bf.Session, key: str, window: str) -> None:
    for bounds in FRAMES[key]:
        made = window.format(k=key, b=bounds)
        check(session, WINDOWED[window].format(w=made))


NAMED = """SELECT id, sum(id) OVER w AS a, avg(n) OVER w AS b, min(f) OVER (ORDER BY n) AS c,
    count(*) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS e
    FROM t WHERE {f} WINDOW w AS (ORDER BY d RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW)"""


def test_named_windows_views_and_created_tables(session: bf.Session) -> None:
    frame = check(session, NAMED)
    assert "RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW" in frame.explain_text(
        verbose=True
    )
    asked = NAMED.replace("{f}", "llm_filter('q', x)")
    session.sql(f"CREATE VIEW v AS {asked}")
    assert rows(session.sql("SELECT * FROM v")) == rows(frame)
    session.sql(f"CREATE TABLE c AS {asked}").collect()
    assert rows(session.sql("SELECT * FROM c")) == rows(frame)


def test_a_frame_below_calls_and_above_them(session: bf.Session) -> None:
    window = "sum(n) OVER (ORDER BY id RANGE BETWEEN 4 PRECEDING AND CURRENT ROW)"
    check(
        session, f"SELECT id, s FROM (SELECT id, x, {window} AS s FROM t) t WHERE s > 9 AND {{f}}"
    )
    check(session, f"SELECT id, {window} AS s FROM (SELECT * FROM t WHERE {{f}}) t")
    check(
        session,
        f"SELECT a.id, b.s FROM t a JOIN (SELECT id AS i, {window} AS s FROM t WHERE {{f}}) b "
        "ON a.id = b.i WHERE a.g = 1",
    )


WINDOWS_OF_DATAFUSION = [
    "sum({a}) OVER (ORDER BY n GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "sum({a}) FILTER (WHERE n > 1) OVER (ORDER BY id)",
    "count(DISTINCT {a}) OVER (ORDER BY id)",
    "count(DISTINCT {a}) OVER (PARTITION BY g)",
    "last_value(nullif({a}, 3)) IGNORE NULLS OVER (ORDER BY id)",
    "lag(nullif({a}, 3)) IGNORE NULLS OVER (PARTITION BY g ORDER BY id DESC)",
    "nth_value(nullif({a}, 3), 2) IGNORE NULLS OVER (ORDER BY id ROWS 3 PRECEDING)",
    "first_value(nullif({a}, 3)) IGNORE NULLS OVER "
    "(ORDER BY id RANGE BETWEEN 4 PRECEDING AND 2 FOLLOWING)",
]
"""What Substrait lacks of windows, of a column or a call ``{a}``."""
AROUND_WINDOWS = [
    "SELECT id, {w} AS s FROM t WHERE {f}",
    "SELECT *, {w} AS s FROM t AS r WHERE r.id > 4 AND {f}",
    "SELECT id, {w} AS s, {v} AS c FROM t WHERE id <> 5",
    "SELECT id, s FROM (SELECT id, x, {w} AS s FROM t) q WHERE {f} AND s > 1",
    "SELECT s FROM (SELECT id, {w} AS s FROM t WHERE {f}) q ORDER BY id LIMIT 5",
    "WITH q AS (SELECT id, g, {w} AS s FROM t WHERE {f}) SELECT g, max(s) FROM q GROUP BY g",
    "SELECT id, {w} AS s FROM t WHERE {f} UNION ALL SELECT id, n FROM t",
]


@pytest.mark.parametrize("window", WINDOWS_OF_DATAFUSION)
def test_windows_that_substrait_lacks_are_planned(session: bf.Session, window: str) -> None:
    for around in AROUND_WINDOWS:
        query = around.replace("{w}", window.format(a="id"))
        context = SessionContext()
        context.from_arrow(T, name="t")
        frame = session.sql(
            query.replace("{f}", "llm_filter('q', x)").replace("{v}", "llm_text('z', x)")
        )
        assert frame.prepared.reason is None, query
        own = query.replace("{f}", "x IS NOT NULL").replace("{v}", "'w'")
        assert rows(frame)[1] == rows(context.sql(own))[1], query


@pytest.mark.parametrize("window", WINDOWS_OF_DATAFUSION)
def test_windows_that_substrait_lacks_of_answers(window: str) -> None:
    """Each answer is the column itself, some are null."""

    def number(request: bf.Request) -> int | None:
        return None if request.values[0] == "7" else int(request.values[0])

    found = []
    for planner in (True, False):
        model = bf.ScriptedModel(number)
        with bf.connect(model, cache=None, progress="off", planner=planner) as session:
            session.from_arrow(T, name="t")
            made = window.format(a="llm_int('i', CAST(id AS TEXT))")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bf.AnswerWarning)
                frame = session.sql(f"SELECT id, {made} AS s FROM t WHERE id < 20 AND id <> 3")
                found.append(rows(frame))
            assert (frame.prepared.reason is None) == planner
            # A planned window asks about the rows of its FILTER.
            of_filter = planner and window.startswith("sum({a}) FILTER (WHERE n > 1) OVER (ORDER")
            assert len(model.calls) == (14 if of_filter else 19)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, {w} AS s, {v} AS c FROM t ORDER BY id LIMIT 3",
        "SELECT id, {w} AS s, {v} AS c FROM t QUALIFY row_number() OVER (ORDER BY id) < 3",
        "SELECT id, c FROM (SELECT id, {w} AS s, {v} AS c FROM t) q WHERE s > 40 AND id < 8",
        "SELECT id, CASE WHEN id < 3 THEN {v} ELSE CAST({w} AS TEXT) END AS c FROM t",
        "SELECT unnest([id, {w}]) AS s, {v} AS c FROM t WHERE id < 5",
    ],
)
@pytest.mark.filterwarnings("ignore:.*cannot be expressed in Substrait:blendfusion.PlanWarning")
def test_answers_beside_such_windows_are_of_rows_that_are_read(query: str) -> None:
    asked, found = [], []
    for planner in (True, False):
        model = bf.ScriptedModel(answer)
        with bf.connect(model, cache=None, progress="off", planner=planner) as session:
            session.from_arrow(T, name="t")
            window = WINDOWS_OF_DATAFUSION[0].format(a="id")
            made = query.replace("{w}", window).replace("{v}", "llm_text('z', CAST(id AS TEXT))")
            found.append(rows(session.sql(made)))
            asked.append(len(model.calls))
    assert found[0] == found[1]
    assert asked[0] <= asked[1]


def test_a_window_that_substrait_lacks_is_shown(session: bf.Session) -> None:
    text = session.sql(
        "SELECT count(DISTINCT g) OVER (ORDER BY id) AS a, lag(n) IGNORE NULLS OVER (ORDER BY id) AS b"
        " FROM t WHERE llm_filter('q', x)"
    ).explain_text(verbose=True)
    assert "count(DISTINCT t.g) OVER (ORDER BY t.id)" in text
    assert "lag(t.n) IGNORE NULLS OVER (ORDER BY t.id)" in text


FRAMES_OF_GROUPS = [
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS 2 PRECEDING",
    "groups between current row and 1 following",
    "GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "GROUPS CURRENT ROW",
]
AROUND_GROUPS = [
    "SELECT t.id, {w} AS s FROM t JOIN (SELECT id FROM t) s ON t.id = s.id WHERE {f}",
    "SELECT t.id, {w}, count(*) OVER (ORDER BY t.id) AS c FROM t, (SELECT max(id) AS m FROM t) WHERE {f}",
    "SELECT t.id, sum(t.id) FILTER (WHERE t.g = 1) OVER (PARTITION BY t.g ORDER BY t.n {frame}) AS s "
    "FROM t LEFT JOIN (SELECT id AS i FROM t WHERE id < 3) ON i = t.id WHERE {f} ORDER BY id LIMIT 3",
    "SELECT t.id, CASE WHEN {f} THEN {w} END AS s FROM t",
    "SELECT t.id FROM t WHERE {f} QUALIFY {w} > 3",
    "SELECT t.id, sum(t.id) OVER w AS s, max(t.id) OVER w AS m FROM t WHERE {f} "
    "WINDOW w AS (PARTITION BY t.g ORDER BY t.n {frame})",
    "SELECT t.id, {w} AS s FROM t WHERE {f} ORDER BY t.n, t.id LIMIT 2",
    "SELECT t.n AS groups, {w} AS s FROM t WHERE {f} AND t.n BETWEEN 1 AND 9",
]


@pytest.mark.parametrize("frame", FRAMES_OF_GROUPS)
@pytest.mark.parametrize("query", AROUND_GROUPS)
def test_frames_of_groups_are_planned(session: bf.Session, query: str, frame: str) -> None:
    window = f"sum(t.id) OVER (ORDER BY t.n {frame})"
    check(session, query.replace("{w}", window).replace("{frame}", frame))


def test_frames_of_groups_in_places_that_are_not_planned(session: bf.Session) -> None:
    window = "sum(id) OVER (ORDER BY n GROUPS 1 PRECEDING)"
    query = f"SELECT id, (SELECT max(s) FROM (SELECT {window} AS s FROM t)) AS m FROM t WHERE {{f}}"
    check(session, query)
    text = session.sql(f"SELECT id, {window} FROM t WHERE llm_filter('q', x)").explain_text(
        verbose=True
    )
    assert "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW" in text


@pytest.mark.parametrize(
    "expression",
    [
        "first_value(n) RESPECT NULLS OVER (ORDER BY id)",
        "lead(n) RESPECT NULLS OVER (ORDER BY id)",
        "nth_value(n, 2) RESPECT NULLS OVER (PARTITION BY g ORDER BY id)",
    ],
)
def test_respect_nulls_is_what_every_window_does(session: bf.Session, expression: str) -> None:
    check(session, f"SELECT id, {expression} AS s FROM t WHERE {{f}}")


def test_respect_nulls_is_what_every_aggregate_does(session: bf.Session) -> None:
    check(
        session,
        "SELECT g, first_value(n ORDER BY id) RESPECT NULLS AS s FROM t WHERE {f} GROUP BY g",
    )


@pytest.mark.parametrize(
    "constant", ["1.0 + 0.5", "0 - -1.5", "0 + 1", "'a' || ''", "NULL", "DATE '2024-01-31'"]
)
@pytest.mark.parametrize("direction", ["", " DESC", " NULLS FIRST"])
def test_a_constant_key_of_a_sort_says_nothing(
    session: bf.Session, constant: str, direction: str
) -> None:
    """Where a column has the same value, DataFusion reads the key back as that column."""
    shown = (
        constant.replace("0 - -1.5", "1.5")
        .replace("1.0 + 0.5", "1.5")
        .replace("0 + 1", "1")
        .replace(" || ''", "")
    )
    for keys in (f"{constant}{direction}, id DESC", f"id DESC, {constant}{direction}"):
        below = f"SELECT {shown} AS c, id AS i FROM t WHERE {{f}} ORDER BY {keys} LIMIT 3"
        check(session, f"SELECT c, i FROM ({below}) q")
        check(session, f"SELECT c FROM ({below} OFFSET 1) q")


# --- the proof ------------------------------------------------------------------------------------


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for part in value if is_repeated(value) else (value,):
                if isinstance(part, Message):
                    yield from _messages(part)


def _literal(part: Any) -> None:
    if part.WhichOneof("literal_type") == "i64":
        part.i64 += 1


def _direction(part: Any) -> None:
    part.direction = SortField.SORT_DIRECTION_DESC_NULLS_LAST


def _rows(part: Any) -> None:
    part.bounds_type = ExpressionMessage.WindowFunction.BOUNDS_TYPE_ROWS


def _type(part: Any) -> None:
    part.type.Clear()
    part.type.i32.nullability = TypeMessage.NULLABILITY_NULLABLE


def _all(part: Any) -> None:
    part.invocation = AggregateFunction.AGGREGATION_INVOCATION_ALL


def _count(part: Any) -> None:
    part.count_expr.literal.i64 = 7


def _outer(part: Any) -> None:
    part.type = JoinRel.JOIN_TYPE_LEFT


AGGREGATES = """SELECT g, count(DISTINCT n) AS c, sum(id) FILTER (WHERE id > 1) AS s,
    string_agg(x, ',' ORDER BY id) AS l FROM t WHERE {f} GROUP BY g"""
LOSSES = {
    "a literal": (ExpressionMessage.Literal, _literal, "SELECT id + 4 AS z FROM t WHERE {f}"),
    "a cast": (ExpressionMessage.Cast, _type, "SELECT CAST(id AS DOUBLE) AS z FROM t WHERE {f}"),
    "a sort": (SortField, _direction, "SELECT id FROM t WHERE {f} ORDER BY n, id"),
    "a limit": (FetchRel, _count, "SELECT id FROM t WHERE {f} ORDER BY id LIMIT 3"),
    "a join": (
        JoinRel,
        _outer,
        "SELECT t.id FROM t JOIN t s ON t.id = s.n WHERE s.g > 0 AND t.{f}",
    ),
    "a window": (
        ExpressionMessage.WindowFunction,
        _rows,
        "SELECT t.id, sum(t.id) OVER (ORDER BY t.n) AS s FROM t JOIN (SELECT id AS i FROM t) s "
        "ON t.id = s.i WHERE t.{f}",
    ),
    "an aggregate": (AggregateFunction, _all, AGGREGATES),
    "the filter of an aggregate": (
        AggregateRel.Measure,
        lambda part: part.ClearField("filter"),
        AGGREGATES,
    ),
    "the filter of an aggregate with a subquery": (
        AggregateRel.Measure,
        lambda part: part.ClearField("filter"),
        AGGREGATES.replace("id > 1", "id > (SELECT min(id) + 1 FROM t)"),
    ),
    "the order of an aggregate": (SortField, _direction, AGGREGATES),
}


def _lose(kind: type[Message], edit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every plan that becomes Substrait from now on loses what ``edit`` takes from its parts."""
    encoded = bridge._encode

    def losing(*arguments: Any) -> bytes:
        message = PlanMessage.FromString(encoded(*arguments))
        for part in _messages(message):
            if isinstance(part, kind):
                edit(part)
        return message.SerializeToString()

    monkeypatch.setattr(bridge, "_encode", losing)


def test_a_window_that_substrait_would_change_stands_above_a_stage(
    session: bf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT id, sum(id) OVER (ORDER BY n) AS s FROM t WHERE llm_filter('q', x)"
    expected = rows(session.sql(query))
    _lose(ExpressionMessage.WindowFunction, _rows, monkeypatch)
    frame = session.sql(query)
    assert rows(frame) == expected
    assert frame.prepared.reason is None
    assert "run as it is" in frame.explain_text()


def test_a_window_among_distinct_rows_in_a_subquery_is_planned(session: bf.Session) -> None:
    """DataFusion gives one of two equal columns of the copy another name."""
    check(
        session,
        """WITH c AS (SELECT DISTINCT {f} AS y, count(x) OVER (ORDER BY n DESC) AS m
        FROM t) SELECT id FROM t WHERE (SELECT min(m) FROM c) < 40 AND {f}""",
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_what_substrait_would_change_is_not_trusted(
    session: bf.Session, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, edit, query = LOSSES[loss]
    query = query.replace("t.{f}", "llm_filter('q', t.x)").replace("{f}", "llm_filter('q', x)")
    expected = rows(session.sql(query))
    _lose(kind, edit, monkeypatch)
    frame = session.sql(query)
    with pytest.warns(bf.PlanWarning, match="Substrait would change") as caught:
        assert rows(frame) == expected
    assert len(caught) == 1
    assert frame.prepared.reason.startswith("Substrait would change")
    assert frame.explain_text().startswith("Plain plan: Substrait would change")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert rows(session.sql(query)) == expected


def test_a_part_that_substrait_would_change_is_a_table_of_its_own(session: bf.Session) -> None:
    """A literal with a zone inside of a list, in a subquery without a call."""
    query = """SELECT t.id, s.z FROM t JOIN (SELECT id, [TIMESTAMP '2024-01-01' AT TIME ZONE
        'Asia/Tokyo'] AS z FROM t) s ON t.id = s.id WHERE {f}"""
    frame = check(session, query)
    assert "run as it is" in frame.explain_text()


SUBQUERIES = (
    *("n = (SELECT max(n) FROM t)", "n > (SELECT min(n) FROM t) OR id = 3"),
    *("(SELECT count(*) FROM t) = 48", "(SELECT max(g) FROM t) IS NULL"),
    "n IN (1, (SELECT max(n) FROM t))",
    *("{a} > (SELECT min(g) FROM t)", "n = (SELECT max(n) FROM t) AND {a} > 2"),
)
CONDITIONAL = (
    "SELECT count(id) FILTER (WHERE {c}) AS k, max({a}) AS z FROM t",
    "SELECT g, sum({a}) FILTER (WHERE {c}) AS z FROM t GROUP BY g",
    "SELECT g, count(*) FILTER (WHERE {c}) AS k, count(*) FILTER (WHERE {a} > 4) AS z FROM t "
    "WHERE {a} < 7 GROUP BY g HAVING count(*) FILTER (WHERE {c}) > 0",
)


@pytest.mark.parametrize("query", CONDITIONAL)
@pytest.mark.parametrize("condition", SUBQUERIES)
def test_aggregates_with_subqueries_in_their_conditions(query: str, condition: str) -> None:
    """The name of such an aggregate, and of its column above, looks like a subquery."""
    call = "llm_int('Which?', x)"
    sql = query.replace("{c}", condition).replace("{a}", call)
    found = []
    for planner in (True, False):
        model = bf.ScriptedModel(lambda request: int(request.values[0][1:]))
        with bf.connect(model, cache=None, progress="off", planner=planner) as session:
            session.from_arrow(T, name="t")
            with warnings.catch_warnings():
                warnings.simplefilter("error", bf.PlanWarning)
                found.append(rows(session.sql(sql)))
    assert found[0] == found[1]
