"""Stages below a limit's join, DISTINCT or IN run no further than it needs, unless that is off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import Counted

import blendfusion as bf

LABELS = ["pos", "neg"]


def by_number(call: bf.Request) -> str | bool:
    """Odd numbers are positive, even ones negative; yes, if all of several numbers are less than
    7."""
    if call.constraint.kind == "boolean":
        return all(int((value or "x9")[1:]) < 7 for value in call.values)
    return LABELS[1 - int((call.values[0] or "x0")[1:]) % 2]


def tables(
    script: Callable[[bf.Request], object] = by_number, *, a: int = 400, **options: str
) -> Counted:
    db = Counted(script, cache=None, **options)
    db.add("a", {"x": [f"a{i}" for i in range(a)]})
    db.add("b", {"y": [f"b{i}" for i in range(300)]})
    db.add("c", {"name": ["pos", "other"]})
    return db


def asked(db: Counted) -> Counter[str]:
    """How many values of each table the model was asked."""
    return Counter((call.values[0] or "")[0] for call in db.model.calls)


JOIN = (
    "SELECT x, y FROM a JOIN b ON llm_classify(x, ['pos', 'neg']) = llm_classify(y, ['pos', 'neg'])"
)


@pytest.mark.parametrize(
    ("query", "rows", "values"),
    [
        (f"{JOIN} LIMIT 5", 5, {"a": 3, "b": 3}),
        (f"{JOIN} LIMIT 5 OFFSET 20", 5, {"a": 10, "b": 5}),
        (f"{JOIN} LIMIT 300", 300, {"a": 38, "b": 16}),
        (
            "SELECT x, y FROM a JOIN b ON llm_join(x, y, how => 'same mood', "
            "labels => ['pos', 'neg'], match => 'same') LIMIT 5",
            5,
            {"a": 3, "b": 3},
        ),
        (f"{JOIN} AND llm_filter('{{}} {{}}?', x, y) LIMIT 5", 5, {"a": 3 + 5, "b": 3}),
        (f"{JOIN} AND x < y LIMIT 5", 5, {"a": 3, "b": 3}),
        ("SELECT x, name FROM a JOIN c ON llm_map('Mood?', x) = name LIMIT 4", 4, {"a": 8}),
        ("SELECT x FROM a WHERE llm_map('Mood?', x) IN (SELECT name FROM c) LIMIT 4", 4, {"a": 8}),
        ("SELECT DISTINCT llm_map('Mood?', x) FROM a LIMIT 2", 2, {"a": 2}),
        ("SELECT DISTINCT llm_map('Mood?', x) FROM a LIMIT 3", 2, {"a": 400}),
        (
            "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE llm_map('Mood?', y) = "
            "llm_map('Mood?', x)) LIMIT 5",
            5,
            {"a": 5, "b": 3},
        ),
        (f"{JOIN} ORDER BY x, y LIMIT 5", 5, {"a": 400, "b": 300}),
        (f"SELECT count(*) FROM ({JOIN}) LIMIT 1", 1, {"a": 400, "b": 300}),
        (JOIN, 60_000, {"a": 400, "b": 300}),
    ],
)
def test_how_many_values_are_asked(query: str, rows: int, values: dict[str, int]) -> None:
    db = tables()
    assert len(db.session.sql(query).to_arrow_table()) == rows
    assert asked(db) == values


INNER = f"({JOIN} LIMIT 5) AS s"


@pytest.mark.parametrize(
    ("query", "rows", "values"),
    [
        (f"SELECT count(*) FROM {INNER}", 1, 6),
        (f"SELECT llm_qa('Sum up', x) FROM {INNER}", 1, 7),
        (f"SELECT * FROM {INNER} ORDER BY x", 5, 6),
        (f"SELECT x FROM {INNER} UNION ALL SELECT name FROM c", 7, 6),
        (f"SELECT x FROM a WHERE x IN (SELECT x FROM {INNER})", 3, 6),
        (f"SELECT count(*) FROM {INNER} WHERE llm_classify(y, ['pos', 'neg']) = 'pos'", 1, 6),
        ("SELECT count(*) FROM (SELECT DISTINCT llm_map('Mood?', x) FROM a LIMIT 2)", 1, 2),
    ],
)
def test_a_limit_may_stand_anywhere(query: str, rows: int, values: int) -> None:
    db = tables()
    frame = db.session.sql(query)
    expected = frame.estimate()
    assert len(frame.to_arrow_table()) == rows
    assert asked(db).total() == values
    assert (expected.total.values, expected.exact) == (values, False)


@pytest.mark.parametrize(
    "third",
    [
        "c ON llm_map('Mood?', y) = name",
        "c ON llm_map('Mood?', x) = name AND llm_map('Mood?', y) = name",
        "a AS o ON llm_map('Mood?', y) = llm_map('Mood?', o.x)",
        "a AS o ON llm_map('Mood?', y) = llm_map('Mood?', o.x) AND o.x > y",
    ],
)
def test_a_third_side_reads_what_the_first_two_have_by_then(third: str) -> None:
    """Which pairs a join gives first is DataFusion's affair: the third side asks about some of
    them."""
    db = tables()
    query = f"SELECT a.x AS x, y FROM ({JOIN}) AS a JOIN {third} LIMIT 5"
    rows = db.session.sql(query).to_pylist()
    matching = [row for row in rows if (int(row["x"][1:]) - int(row["y"][1:])) % 2 == 0]
    if "o.x > y" in third:
        assert (rows, asked(db).total()) == ([], 0)  # no pair satisfies the cheap part
    else:
        assert (len(rows), len(matching)) == (5, 5)
        assert asked(db).total() <= 100


def test_the_rule_can_be_off() -> None:
    db = tables()
    db.session.sql("SET blendfusion.rules_off = 'limited_stages'")
    frame = db.session.sql(f"{JOIN} LIMIT 5")
    assert "in turn" not in frame.explain_text()
    assert len(frame.to_pylist()) == 5
    assert asked(db) == {"a": 400, "b": 300}


def test_explain_says_so_and_the_estimate_knows() -> None:
    db = tables()
    frame = db.session.sql(f"{JOIN} LIMIT 5")
    text = frame.explain_text()
    assert "in turn with stage 2 until the limit of stage 3 is reached (stops early)" in text
    assert "in turn with stage 1 until the limit of stage 3 is reached (stops early)" in text
    expected = frame.estimate()
    assert (expected.total.values, expected.exact) == (6, False)
    frame.to_pylist()
    assert "in turn with stage 2 until the limit of stage 3" in frame.trace.to_html()
    by_place = {place: usage.values for (place, _, _), usage in frame.trace.run.by_operator.items()}
    assert by_place == {1: 3, 2: 3}
    analyzed = db.session.sql(f"EXPLAIN ANALYZE {JOIN} LIMIT 5").to_pylist()
    assert "rows in 3, out 3, chunks 1" in str(analyzed)


def test_an_estimate_is_exact_where_the_limit_cannot_be_reached() -> None:
    db = tables(a=30)
    frame = db.session.sql("SELECT DISTINCT llm_map('Mood?', x) FROM a LIMIT 30")
    assert (frame.estimate().total.values, frame.estimate().exact) == (30, True)


def test_a_side_that_must_be_whole_is() -> None:
    db = tables()
    query = (
        "SELECT x FROM a WHERE llm_map('Mood?', x) NOT IN "
        "(SELECT llm_map('Mood?', y) FROM b WHERE y <> 'b1') LIMIT 5"
    )
    assert db.session.sql(query).to_pylist() == []
    assert asked(db)["b"] == 299


def test_a_side_without_labels_leaves_the_other_alone() -> None:
    db = tables(lambda call: call.constraint.kind != "boolean" and by_number(call))
    query = f"{JOIN} AND llm_filter('{{}} is odd', x) LIMIT 5"
    assert db.session.sql(query).to_pylist() == []
    assert asked(db) == {"a": 400}


def test_few_matches_are_found() -> None:
    """The only pairs are among the last rows: everything is asked, once."""
    db = tables(lambda call: "pos" if call.values[0] in ("a399", "b298", "b299") else "neg")
    query = f"{JOIN} AND llm_classify(x, ['pos', 'neg']) = 'pos' LIMIT 5"
    rows = {(row["x"], row["y"]) for row in db.session.sql(query).to_pylist()}
    assert rows == {("a399", "b298"), ("a399", "b299")}
    assert asked(db) == {"a": 400, "b": 300}


def test_rows_that_are_kept_may_lie_in_files() -> None:
    db = tables()
    db.session.sql("SET blendfusion.spill_above = 0")
    assert len(db.session.sql(f"{JOIN} LIMIT 500").to_pylist()) == 500


def test_a_failure_in_one_side_ends_both() -> None:
    def script(call: bf.Request) -> object:
        if call.values[0] == "b7":
            raise bf.ModelFailed("the model is gone")
        return by_number(call)

    db = tables(script, on_error="raise", show_values="on")
    with pytest.raises(bf.AnswerError, match="the model is gone"):
        db.session.sql(f"{JOIN} LIMIT 100").to_pylist()
    assert db.session.sql("SELECT x FROM a LIMIT 1").to_pylist() == [{"x": "a0"}]


def test_a_query_that_runs_again_asks_nothing() -> None:
    db = Counted(by_number)
    db.add("a", {"x": [f"a{i}" for i in range(400)]})
    db.add("b", {"y": [f"b{i}" for i in range(300)]})
    first = db.session.sql(f"{JOIN} LIMIT 40").to_pylist()
    before = len(db.model.calls)
    assert len(db.session.sql(f"{JOIN} LIMIT 40").to_pylist()) == len(first)
    assert len(db.model.calls) == before


def test_a_sort_above_an_offset_loses_no_rows() -> None:
    """DataFusion by itself gives 2, 3: it sorts first, keeps three rows, and skips one of them."""
    db = Counted(lambda call: call.values[0])
    db.add("d", {"y": [5, 3, 9, 1, 7, 2]})
    some = "(SELECT y FROM d LIMIT 3 OFFSET 1) AS s"
    query = f"SELECT y, llm_map('Say it', y::text) AS said FROM {some} ORDER BY y"
    assert [row["y"] for row in db.session.sql(query).to_pylist()] == [1, 3, 9]
    ranked = f"SELECT y, row_number() OVER (ORDER BY y) AS n FROM {some} WHERE llm_map('Say it', y::text) > '0'"
    assert sorted(row["n"] for row in db.session.sql(ranked).to_pylist()) == [1, 2, 3]


MOOD = "llm_map('Mood?', {})"
BODIES = [
    "SELECT a.x AS p, b.y AS q FROM a {join} JOIN b ON {l} = {r}",
    "SELECT a.x AS p, {l} AS q FROM a {join} JOIN b ON {l} = {r} WHERE {l} = 'pos'",
    "SELECT a.x AS p, b.y AS q FROM a JOIN b ON {l} = {r} AND llm_filter('{{}} {{}}?', a.x, b.y)",
    "SELECT DISTINCT {l} AS p, b.k AS q FROM a {join} JOIN b ON {l} = {r} AND a.k <> b.k",
    "SELECT a.x AS p, a.k AS q FROM a WHERE {l} IN (SELECT {r} FROM b WHERE k > 0)",
    "SELECT a.x AS p, a.k AS q FROM a WHERE {l} NOT IN (SELECT {r} FROM b WHERE k > 1)",
    "SELECT a.x AS p, a.k AS q FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {l} = {r})",
    "SELECT {l} AS p, a.k AS q FROM a UNION ALL SELECT {r}, b.k FROM b",
    "SELECT DISTINCT p, q FROM (SELECT {l} AS p, a.k AS q FROM a UNION ALL SELECT {r}, b.k FROM b)",
    "SELECT a.x AS p, c.name AS q FROM a {join} JOIN c ON {l} = c.name",
    "SELECT a.x AS p, o.x AS q FROM a JOIN a AS o ON {l} = llm_map('Mood?', o.x) AND a.k < o.k",
    "SELECT a.x AS p, b.y AS q FROM a JOIN b ON {l} = {r} JOIN c ON {r} = c.name",
    "SELECT a.x AS p, b.y AS q FROM a LEFT JOIN (SELECT * FROM b JOIN c ON {r} = c.name) AS b "
    "ON {l} = b.name",
    "SELECT a.x AS p, d.y AS q FROM a JOIN b ON {l} = {r} JOIN b AS d ON {r} = llm_map('Mood?', d.y)",
    "SELECT a.x AS p, d.y AS q FROM a {join} JOIN b ON {l} = {r} AND a.k < b.k "
    "LEFT JOIN b AS d ON llm_map('Again?', a.x) = llm_map('Mood?', d.y)",
    "SELECT a.x AS p, b.y AS q FROM a JOIN b ON {l} = {r} AND a.k < b.k",
    "SELECT a.x AS p, c.name AS q FROM a JOIN b ON {l} = {r} JOIN c ON llm_map('Both?', a.x, b.y) = c.name",
    "SELECT p, count(*) AS q FROM (SELECT {l} AS p FROM a JOIN b ON {l} = {r}) GROUP BY p",
]
KINDS = ["", "LEFT", "RIGHT", "FULL"]
COLUMN = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=12)


@pytest.mark.long
@given(
    body=st.sampled_from(BODIES),
    kind=st.sampled_from(KINDS),
    left=COLUMN,
    right=COLUMN,
    bounds=st.tuples(st.integers(0, 8), st.integers(0, 3)),
    first=st.sampled_from([1, 2, 16]),
    around=st.sampled_from(["{}", "SELECT * FROM ({}) AS s ORDER BY p", "{} UNION ALL {}"]),
)
@settings(max_examples=150)
def test_any_rows_of_the_whole_result_will_do(
    body: str,
    kind: str,
    left: list[int | None],
    right: list[int | None],
    bounds: tuple[int, int],
    first: int,
    around: str,
) -> None:
    """As many as the limit says, none more often than without it, and nobody is asked more."""
    query = body.format(join=kind, l=MOOD.format("a.x"), r=MOOD.format("b.y"))
    whole, part = Counted(by_number), Counted(by_number, first_chunk_rows=first)
    for db in (whole, part):
        for name, text, numbers in (("a", "x", left), ("b", "y", right)):
            texts = [None if n is None else f"{name}{n}" for n in numbers]
            keys = [None if n is None else n % 3 for n in numbers]
            # With types: what has a column of the type NULL runs plain.
            typed = {text: pa.array(texts, pa.string()), "k": pa.array(keys, pa.int64())}
            db.add(name, pa.table(typed))
        db.add("c", {"name": ["pos", "other", "pos"]})
    every = Counter(tuple(row.items()) for row in whole.session.sql(query).to_pylist())
    limit, offset = bounds
    bounded = f"SELECT * FROM ({query} LIMIT {limit} OFFSET {offset}) AS r"
    frame = part.session.sql(around.format(*2 * [bounded]))
    some = Counter(tuple(row.items()) for row in frame.to_pylist())
    times = around.count("{}")
    assert some <= Counter({row: times * count for row, count in every.items()})
    assert some.total() == times * max(0, min(limit, every.total() - offset))
    assert len(part.model.calls) <= len(whole.model.calls)


def test_a_limit_counts_in_the_order_of_its_sort() -> None:
    """Also where rows without any partner are dropped before they are asked about."""
    db = Counted(lambda call: True)
    db.add("w", {"k": ["c", "ab", None, "c", "b"], "v": [0, 2, 1, 0, 1]})
    db.add("u", {"id": [1, 2, 3]})
    first = "SELECT k, v FROM w WHERE llm_filter('q', k) ORDER BY k DESC, v LIMIT {}"
    assert db.rows(f"SELECT * FROM ({first.format(2)}) s JOIN u ON s.v = u.id") == []
    assert db.rows(f"SELECT k FROM ({first.format(3)}) s JOIN u ON s.v = u.id") == [("b",)]
