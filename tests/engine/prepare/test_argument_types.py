"""Arguments that DataFusion casts: images, and every other type of column.

No cast that must not run hides an argument, wherever DataFusion would compute it: below two calls
of one query, in a plain plan, in unnest and in recursion."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from datafusion import col, lit
from datafusion import functions as f
from scripts import Counted, tuples, unordered

import blendfusion as bf

PNG = b"\x89PNG\r\n\x1a\n"
IMAGES = [PNG + b"1", None, PNG + b"2", PNG + b"1", b"a text"]
BYTES = {
    "binary": pa.array(IMAGES, pa.binary()),
    "large_binary": pa.array(IMAGES, pa.large_binary()),
    "binary_view": pa.array(IMAGES, pa.binary()).cast(pa.binary_view()),
    "dictionary": pa.array(IMAGES, pa.binary()).dictionary_encode(),
}
QUERIES = {
    "select": "SELECT id, llm_text('a', p) AS a, llm_text('b', p) AS b FROM t",
    "one": "SELECT id, llm_text('a', p) AS a FROM t",
    "where": "SELECT id FROM t WHERE llm_filter('a', p) AND llm_text('b', p) <> 'x'",
    "beside": "SELECT id, llm_text('a', p, name) AS a, llm_text('b', p, name) AS b FROM t",
    "case": "SELECT llm_text('a', CASE WHEN id > 1 THEN p END) AS a, "
    "llm_text('b', CASE WHEN id > 1 THEN p END) AS b FROM t",
    "made": "SELECT llm_text('a', decode(encode(p, 'hex'), 'hex')) AS a, "
    "llm_text('b', decode(encode(p, 'hex'), 'hex')) AS b FROM t",
    "order": "SELECT id FROM t ORDER BY llm_text('a', p), llm_text('b', p), id",
    "group": "SELECT llm_text('a', p) AS k, count(*) AS n FROM t WHERE llm_filter('b', p) "
    "GROUP BY llm_text('a', p) HAVING count(*) > 0",
    "aggregates": "SELECT count(llm_text('a', p)) AS a, count(llm_text('b', p)) AS b, "
    "count(*) FILTER (WHERE llm_filter('c', p)) AS c FROM t",
    "window": "SELECT id, row_number() OVER (ORDER BY llm_text('a', p), llm_text('b', p), id) AS n "
    "FROM t",
    "join": "SELECT l.id FROM t AS l JOIN t AS r ON l.id = r.id AND llm_filter('a', l.p, r.p) "
    "AND llm_filter('b', l.p, r.p)",
    "left join": "SELECT l.id, r.id AS other FROM t AS l LEFT JOIN t AS r ON l.id = r.id "
    "AND llm_filter('a', r.p) AND llm_filter('b', r.p)",
    "exists": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t AS r WHERE r.id = t.id + 1 "
    "AND llm_filter('a', r.p) AND llm_filter('b', r.p))",
    "union": "SELECT llm_text('a', p) AS k FROM t UNION ALL SELECT llm_text('a', name) FROM t",
    "cte": "WITH c AS (SELECT p AS q, id FROM t) "
    "SELECT llm_text('a', q) AS a, llm_text('b', q) AS b FROM c ORDER BY id LIMIT 2",
    "unnest": "SELECT id, unnest([llm_text('a', p), llm_text('b', p)]) AS a FROM t",
    "recursion": "WITH RECURSIVE r AS (SELECT 1 AS n, llm_text('a', p) AS a FROM t UNION ALL "
    "SELECT r.n + 1, llm_text('b', t.p) FROM r JOIN t ON t.id = r.n WHERE r.n < 3) SELECT * FROM r",
    "nested": "SELECT llm_text('a', llm_text('b', p)) AS a, llm_text('c', llm_text('b', p)) AS b "
    "FROM t",
    "parameter": "SELECT llm_text('a', p) AS a, llm_text('b', p) AS b FROM t WHERE id > $least",
}


def echo(call: bf.Request) -> str | bool:
    """The question and the values of a call, or whether these are many characters."""
    said = f"{call.question}: {call.values}"
    return len(said) % 2 == 0 if call.constraint.kind == "boolean" else said


def session_of(column: pa.Array, *, planner: bool) -> Counted:
    rows = len(column)
    names = pa.array([f"n{i}" for i in range(rows)])
    table = pa.table({"id": pa.array(range(1, rows + 1)), "name": names, "p": column})
    return Counted(echo, planner=planner).add("t", table)


def rows_of(db: Counted, query: str) -> list[tuple[object, ...]]:
    given = {"least": 0} if "$least" in query else {}
    return unordered(tuples(db.session.sql(query, **given).to_arrow_table()))


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_images(kind: str, query: str) -> None:
    """Every layout gives the answers about the same images, planned or plain."""
    plain = rows_of(session_of(BYTES["binary"], planner=False), query)
    db = session_of(BYTES[kind], planner=True)
    assert rows_of(db, query) == plain
    assert rows_of(session_of(BYTES[kind], planner=False), query) == plain
    if "image" in str(plain):
        assert "image/png, 9 bytes" in str(plain)
    if "$" not in query:
        db.session.clear_cache()
        frame = db.session.sql(query)
        assert "Arrow error" not in str(frame.estimate())
        assert "AS TEXT)" not in frame.explain_text()


def test_equal_images_are_asked_about_once() -> None:
    for planner in (True, False):
        db = session_of(BYTES["binary"], planner=planner)
        assert db.asked("SELECT llm_text('a', p), llm_text('b', p) FROM t") == 6


FRAMES: dict[str, Callable[[bf.Frame], bf.Frame]] = {
    "select": lambda t: t.select(
        bf.llm_text("a", col("p")).alias("a"), bf.llm_text("b", col("p")).alias("b")
    ),
    "filter": lambda t: t.filter(
        bf.llm_filter("a", col("p")) & bf.llm_filter("b", col("p"), col("name"))
    ).select("id"),
    "computed": lambda t: t.select(
        bf.llm_text("a", f.coalesce(col("p"), col("p"))).alias("a"),
        bf.llm_text("b", f.coalesce(col("p"), col("p"))).alias("b"),
    ),
    "sort": lambda t: t.sort(
        bf.llm_text("a", col("p")).sort(), bf.llm_text("b", col("p")).sort(), col("id").sort()
    ).select("id"),
    "aggregate": lambda t: t.aggregate(
        [bf.llm_text("a", col("p")).alias("k")], [f.count(bf.llm_text("b", col("p"))).alias("n")]
    ),
    "column": lambda t: (
        t.with_column("a", bf.llm_text("a", col("p")))
        .filter(bf.llm_filter("b", col("p")) | (col("id") > lit(3)))
        .select("id", "a")
    ),
}


@pytest.mark.parametrize("made", FRAMES.values(), ids=FRAMES)
def test_images_in_frames(made: Callable[[bf.Frame], bf.Frame]) -> None:
    found = []
    for column in BYTES.values():
        db = session_of(column, planner=True)
        frame = made(db.session.table("t"))
        assert "Arrow error" not in str(frame.estimate())
        found.append(unordered(frame.to_pylist()))
        assert frame.prepared.reason is None
    assert found[1:] == found[:-1]


OTHERS = {
    "int": pa.array([1, None, 2]),
    "unsigned": pa.array([1, None, 2], pa.uint64()),
    "float": pa.array([1.5, None, 2.0]),
    "decimal": pa.array([Decimal("1.50"), None, Decimal(2)], pa.decimal128(6, 2)),
    "boolean": pa.array([True, None, False]),
    "date": pa.array([datetime.date(2020, 1, 2), None, datetime.date(2021, 1, 2)]),
    "time": pa.array([datetime.time(1, 2), None, datetime.time(3)]),
    "timestamp": pa.array([datetime.datetime(2020, 1, 2, 3), None, None], pa.timestamp("us")),
    "zoned": pa.array([datetime.datetime(2020, 1, 2, 3), None, None], pa.timestamp("us", "+02:00")),
    "duration": pa.array([datetime.timedelta(hours=1), None, None]),
    "text": pa.array(["a", None, "b"]),
    "large_text": pa.array(["a", None, "b"], pa.large_string()),
    "text_view": pa.array(["a", None, "b"]).cast(pa.string_view()),
    "category": pa.array(["a", None, "b"]).dictionary_encode(),
    "number_category": pa.array([1, None, 2]).dictionary_encode(),
    "list": pa.array([["a", None], None, []], pa.list_(pa.string())),
    "list_of_numbers": pa.array([[1, 2], None, [3]]),
    "large_list": pa.array([["a"], None, ["b"]], pa.large_list(pa.string())),
    "fixed_bytes": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "struct": pa.array([{"a": 1}, None, {"a": 2}]),
    "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64(), 2)),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
}
REFUSED = {"fixed_bytes": "FIXEDSIZEBINARY", "struct": "STRUCT", "map": "MAP"}
REFUSED |= {"vector": "FIXEDSIZELIST"}
TWICE = "SELECT llm_text('a', p) AS a, llm_text('b', p) AS b, CAST(p AS VARCHAR) AS said FROM t"
CHOSEN = "SELECT id FROM t WHERE llm_filter('a', p) AND llm_text('b', p) > 'a'"


@pytest.mark.parametrize("kind", OTHERS)
def test_other_types(kind: str) -> None:
    """A value of another type is the text that DataFusion casts it to, or refused by its type
    before anything is asked."""
    plain, db = (session_of(OTHERS[kind], planner=planner) for planner in (False, True))
    if kind in REFUSED:
        for asked in (plain, db):
            with pytest.raises(bf.QueryError, match=f"of type {REFUSED[kind]}"):
                rows_of(asked, TWICE)
            assert not asked.model.calls
        return
    expected = rows_of(plain, TWICE)
    assert rows_of(db, TWICE) == expected
    assert rows_of(db, CHOSEN) == rows_of(plain, CHOSEN)
    for a, b, said in expected:
        blank = said in (None, "[]")
        assert (a, b) == ((None, None) if blank else (f"a: ({said!r},)", f"b: ({said!r},)"))
