"""Sessions and frames are DataFusion's, with models in them: the same results, fewer questions."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from datafusion import DataFrame, SessionContext, col, lit, udf
from datafusion import functions as f
from scripts import Counted, hashed, spoken, tuples, unordered

import blendfusion as bf

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "x": ["good tea", "bad tea", None, "good milk", "good tea", " "],
        "n": [3, 1, 4, 1, 5, 9],
    }
)
QUERY = "SELECT id, x, llm_int('length', x) AS l FROM t WHERE llm_filter('holds good', x) AND n < 5"
ROWS = [(1, "good tea", 8), (4, "good milk", 9)]


@pytest.fixture
def db() -> Counted:
    return Counted(spoken).add("t", TABLE)


@pytest.fixture
def frame(db: Counted) -> bf.Frame:
    made = db.session.sql(QUERY)
    assert db.model.calls == [], "building a frame asked the model"
    return made


def _frames_of(owner: type) -> set[str]:
    """The public methods of a class of DataFusion's whose annotation says that they give a
    frame."""
    found = set()
    for name, member in inspect.getmembers(owner, inspect.isfunction):
        annotation = str(inspect.signature(member).return_annotation)
        if annotation.split(".")[-1].strip("'") in ("DataFrame", "Self") and (
            not name.startswith("_") or name == "__getitem__"
        ):
            found.add(name)
    return found


def test_a_session_is_a_context_and_a_frame_is_a_data_frame(frame: bf.Frame, db: Counted) -> None:
    assert isinstance(db.session, SessionContext)
    assert isinstance(frame, DataFrame)


# ``transform`` gives what the function that it is given gives.
@pytest.mark.parametrize("name", sorted(_frames_of(DataFrame) - {"transform"}))
def test_every_verb_of_a_data_frame_is_overridden_to_give_a_frame(name: str) -> None:
    assert getattr(bf.Frame, name) is not getattr(DataFrame, name)


@pytest.mark.parametrize("name", sorted(_frames_of(SessionContext)))
def test_every_source_of_a_context_is_overridden_to_give_a_frame(name: str) -> None:
    assert getattr(bf.Session, name) is not getattr(SessionContext, name)


VERBS: dict[str, Callable[[Any], Any]] = {
    "select": lambda d: d.select("id", col("l")),
    "select_exprs": lambda d: d.select_exprs("id", "l + 1"),
    "getitem": lambda d: d["id", "l"],
    "drop": lambda d: d.drop("x"),
    "filter": lambda d: d.filter(col("l") > 8),
    "with_column": lambda d: d.with_column("m", col("l") * 2),
    "with_columns": lambda d: d.with_columns(m=col("l") * 2),
    "with_column_renamed": lambda d: d.with_column_renamed("l", "m"),
    "aggregate": lambda d: d.aggregate([], [f.sum(col("l"))]),
    "sort": lambda d: d.sort(col("l").sort(ascending=False)),
    "limit": lambda d: d.limit(1),
    "distinct": lambda d: d.distinct(),
    "union": lambda d: d.union(d),
    "intersect": lambda d: d.intersect(d),
    "except_all": lambda d: d.except_all(d.limit(0)),
    "join": lambda d: d.join(d.select(col("id").alias("id2")), left_on="id", right_on="id2"),
    "cast": lambda d: d.cast({"l": pa.string()}),
    "repartition": lambda d: d.repartition(2),
    "fill_null": lambda d: d.fill_null(0),
    "alias": lambda d: d.alias("q"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_gives_a_frame_with_the_rows_of_the_plain_path(verb: str, db: Counted) -> None:
    plain = Counted(spoken, planner=False).add("t", TABLE)
    made = VERBS[verb](db.session.sql(QUERY))
    assert isinstance(made, bf.Frame)
    assert db.model.calls == []
    expected = VERBS[verb](plain.session.sql(QUERY)).to_arrow_table()
    assert unordered(tuples(made.to_arrow_table())) == unordered(tuples(expected))
    assert made.to_arrow_table().schema == expected.schema


def _streamed(frame: bf.Frame) -> list[tuple[object, ...]]:
    return [r for b in frame.execute_stream() for r in tuples(pa.table(b.to_pyarrow()))]


async def _awaited(frame: bf.Frame) -> list[tuple[object, ...]]:
    return [r async for b in frame for r in tuples(pa.table(b.to_pyarrow()))]


WAYS_OUT: dict[str, Callable[[bf.Frame], list[tuple[object, ...]]]] = {
    "collect": lambda d: tuples(pa.Table.from_batches(d.collect())),
    "collect_partitioned": lambda d: tuples(
        pa.Table.from_batches([b for part in d.collect_partitioned() for b in part])
    ),
    "to_arrow_table": lambda d: tuples(d.to_arrow_table()),
    "to_pandas": lambda d: list(d.to_pandas().itertuples(index=False, name=None)),
    "to_polars": lambda d: d.to_polars().rows(),
    "to_pydict": lambda d: list(zip(*d.to_pydict().values(), strict=True)),
    "to_pylist": lambda d: [tuple(row.values()) for row in d.to_pylist()],
    "execute_stream": _streamed,
    "execute_stream_partitioned": lambda d: [
        r
        for stream in d.execute_stream_partitioned()
        for b in stream
        for r in tuples(pa.table(b.to_pyarrow()))
    ],
    "iteration": lambda d: [r for b in d for r in tuples(pa.table(b.to_pyarrow()))],
    "async iteration": lambda d: asyncio.run(_awaited(d)),
    "arrow stream": lambda d: tuples(pa.table(d)),
    "polars from the frame": lambda d: pl.DataFrame(pa.table(d)).rows(),
    "cache": lambda d: tuples(d.cache().to_arrow_table()),
    "head": lambda d: tuples(d.head(5).to_arrow_table()),
    "tail": lambda d: tuples(d.tail(5).to_arrow_table()),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_way_out_gives_the_rows_and_asks_each_distinct_value_once(
    way: str, frame: bf.Frame, db: Counted
) -> None:
    assert WAYS_OUT[way](frame) == ROWS
    # Three distinct values pass n < 5 ("good tea", "bad tea", "good milk"), two of them the filter.
    assert len(db.model.calls) == 5


def test_a_column_can_be_collected_alone(frame: bf.Frame, db: Counted) -> None:
    assert frame.collect_column("id").to_pylist() == [1, 4]
    assert {c.question for c in db.model.calls} == {"holds good"}


def test_counting_asks_only_what_decides_rows(frame: bf.Frame, db: Counted) -> None:
    assert frame.count() == 2
    assert {c.question for c in db.model.calls} == {"holds good"}
    assert frame.trace.usage.values == 3


def test_describe_and_show_and_repr_work(
    frame: bf.Frame, db: Counted, capfd: pytest.CaptureFixture[str]
) -> None:
    assert frame.describe().to_arrow_table().num_rows > 0
    frame.show()
    assert "good milk" in capfd.readouterr().out
    assert "good milk" in repr(frame)
    assert "good milk" in frame._repr_html_()
    assert len(db.model.calls) == 5


def test_showing_asks_only_for_what_is_shown() -> None:
    db = Counted(spoken).add("t", {"x": [f"v{i}" for i in range(1000)]})
    db.session.sql("SELECT llm_int('length', x) FROM t").show(20)
    assert len(db.model.calls) <= 32
    db.session.clear_cache()
    db.model.calls.clear()
    db.session.sql("SELECT llm_int('length', x) FROM t").head(3).collect()
    assert len(db.model.calls) == 3


def test_files_are_written(frame: bf.Frame, tmp_path: Path, db: Counted) -> None:
    frame.write_parquet(str(tmp_path / "a.parquet"))
    assert tuples(pq.read_table(tmp_path / "a.parquet")) == ROWS
    frame.write_csv(str(tmp_path / "b.csv"), with_header=True)
    frame.write_json(str(tmp_path / "c.json"))
    csv = pa.concat_tables([pyarrow.csv.read_csv(p) for p in _parts(tmp_path / "b.csv")])
    json = pa.concat_tables([pyarrow.json.read_json(p) for p in _parts(tmp_path / "c.json")])
    assert tuples(csv) == ROWS
    assert tuples(json) == ROWS
    assert len(db.model.calls) == 5


def _parts(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


def test_a_frame_becomes_a_view(frame: bf.Frame, db: Counted) -> None:
    db.session.register_view("seen", frame)
    assert db.rows("SELECT * FROM seen") == ROWS
    assert db.asked("SELECT id FROM seen WHERE id > 1") == 2
    db.session.register_table("again", frame.into_view())
    assert db.rows("SELECT id FROM again ORDER BY id") == [(1,), (4,)]


# --- expressions ---------------------------------------------------------------------------------


def test_expressions_equal_sql() -> None:
    db = Counted(hashed).add("t", TABLE)
    t = db.session.table("t")
    labels = ["tea", "milk"]
    made = t.filter(bf.llm_filter("q", col("x"))).select(
        "id",
        bf.llm_map("m", "x", returns="int").alias("m"),
        bf.llm_classify(col("x"), labels).alias("c"),
    )
    assert db.model.calls == []
    sql = (
        "SELECT id, llm_map('m', x, returns => 'int') AS m, llm_classify(x, ['tea', 'milk']) AS c "
        "FROM t WHERE llm_filter('q', x)"
    )
    assert tuples(made.to_arrow_table()) == db.rows(sql)
    assert db.session.sql(sql).trace.usage.values == 0
    db.model.calls.clear()
    db.rows(sql)
    assert db.model.calls == [], "the expression and the SQL are different questions"


def test_aggregate_expressions_equal_sql() -> None:
    db = Counted(spoken).add("t", TABLE)
    t = db.session.table("t")
    made = t.aggregate(
        [col("n")],
        [
            bf.llm_qa("join", "x", order_by="id").alias("a"),
            bf.llm_qa("size", "x", returns="int", where=col("id") > 1).alias("s"),
        ],
    )
    sql = (
        "SELECT n, llm_qa('join', x ORDER BY id) AS a, "
        "llm_qa('size', x, returns => 'int') FILTER (WHERE id > 1) AS s FROM t GROUP BY n"
    )
    assert unordered(tuples(made.to_arrow_table())) == unordered(db.rows(sql))
    assert (1, "bad tea|good milk", 2) in db.rows(sql)


@pytest.mark.parametrize("planner", [True, False])
def test_an_aggregate_sees_its_rows_in_the_order_that_the_query_says(planner: bool) -> None:
    db = Counted(spoken, planner=planner).add("t", TABLE)
    rows = db.rows("SELECT llm_qa('join', x ORDER BY id DESC) FROM t WHERE id IN (1, 2, 4)")
    assert rows == [("good milk|bad tea|good tea",)]


# --- sources -------------------------------------------------------------------------------------


def test_tables_come_from_every_source(tmp_path: Path) -> None:
    db = Counted(spoken)
    s = db.session
    pq.write_table(TABLE, tmp_path / "t.parquet")
    pyarrow.csv.write_csv(TABLE.select(["id", "x"]), tmp_path / "t.csv")
    (tmp_path / "t.json").write_text('{"id": 1, "x": "good tea"}\n{"id": 2, "x": "bad tea"}\n')
    s.from_arrow(TABLE, name="arrow")
    s.from_pandas(pd.DataFrame({"id": [1], "x": ["good"]}), name="pandas")
    s.from_polars(pl.DataFrame({"id": [1], "x": ["good"]}), name="polars")
    s.from_pylist([{"id": 1, "x": "good"}], name="pylist")
    s.register_parquet("parquet", str(tmp_path / "t.parquet"))
    s.register_csv("csv", str(tmp_path / "t.csv"))
    s.register_json("json", str(tmp_path / "t.json"))
    s.register_record_batches("batches", [TABLE.to_batches()])
    s.register_view("view", s.sql("SELECT * FROM arrow WHERE id < 4"))
    names = ["arrow", "pandas", "polars", "pylist", "parquet", "csv", "json", "batches", "view"]
    for name in names:
        rows = db.rows(f"SELECT id FROM {name} WHERE llm_filter('holds good', x) ORDER BY id")
        assert rows[0] == (1,), name
    assert set(names) <= set(s.catalog().schema().names())


def test_the_schema_is_that_of_the_plain_path_for_parquet_text(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    schemas = []
    for planner in (True, False):
        db = Counted(spoken, planner=planner)
        db.session.register_parquet("t", str(tmp_path / "t.parquet"))
        frame = db.session.sql(
            "SELECT x, upper(x) AS u, id FROM t WHERE llm_filter('holds good', x)"
        )
        assert frame.to_arrow_table().schema == frame.schema()
        assert next(iter(frame)).to_pyarrow().schema == frame.schema()
        schemas.append(frame.schema())
        assert tuples(frame.to_arrow_table())[0] == ("good tea", "GOOD TEA", 1)
    assert schemas[0] == schemas[1]
    assert schemas[0].field("x").type == pa.string_view()


def test_users_functions_work_around_and_inside_calls(db: Counted) -> None:
    double = udf(lambda a: pc.multiply(a, 2), [pa.int64()], pa.int64(), "immutable", "double")
    shout = udf(lambda a: pc.utf8_upper(a), [pa.string()], pa.string(), "immutable", "shout")
    db.session.register_udf(double)
    db.session.register_udf(shout)
    sql = (
        "SELECT double(llm_int('length', shout(x))) FROM t "
        "WHERE llm_filter('holds GOOD', shout(x)) AND double(n) < 8"
    )
    assert unordered(db.rows(sql)) == [(16,), (18,)]


def test_columns_are_called_as_they_were_written(db: Counted) -> None:
    frame = db.session.sql("SELECT llm_int('length', x), id + 1 FROM t")
    assert frame.schema().names[0] == "llm_int('length', x)"
    made = db.session.table("t").select(bf.llm_int("length", col("x")))
    assert made.schema().names == ["llm_int('length', x)"]


# --- ingredients of users ------------------------------------------------------------------------


def test_an_ingredient_is_usable_the_next_line(db: Counted) -> None:
    @bf.ingredient
    def twice_as_long(model: bf.UserModel, x: pa.StringArray, n: pa.Int64Array) -> pa.Int64Array:
        return pc.add(pc.multiply(model.ask("length", x, returns="int"), 2), n)

    rows = db.rows("SELECT twice_as_long(x, n) FROM t WHERE id IN (1, 5)")
    assert rows == [(19,), (21,)]
    assert len(db.model.calls) == 1
    made = db.session.table("t").filter(col("id") == lit(1)).select(twice_as_long("x", "n"))
    assert tuples(made.to_arrow_table()) == [(19,)]


def test_an_ingredient_may_return_another_type(db: Counted) -> None:
    @bf.ingredient(name="is_long", returns=pa.bool_())
    def anything(model: bf.UserModel, x: pa.StringArray):  # type: ignore[no-untyped-def]
        return pc.greater(model.ask("length", x, returns="int"), 8)

    assert db.rows("SELECT id FROM t WHERE is_long(x)") == [(4,)]


def test_an_ingredient_that_returns_too_few_values_says_so(db: Counted) -> None:
    @bf.ingredient
    def lossy(model: bf.UserModel, x: pa.StringArray) -> pa.StringArray:
        return x[:1]

    with pytest.raises(bf.ArgumentError, match="lossy returned 1 values for 4 rows"):
        db.rows("SELECT lossy(x) FROM t")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM many WHERE counted_length(x) > 3 LIMIT 12",
        "SELECT x, counted_length(x) FROM many WHERE counted_length(x) > 3 AND llm_int('length', x) > 1",
    ],
)
def test_an_ingredient_sees_a_row_of_values_once(sql: str, db: Counted) -> None:
    seen: list[str] = []

    @bf.ingredient
    def counted_length(model: bf.UserModel, x: pa.StringArray) -> pa.Int64Array:
        seen.extend(x.to_pylist())
        return pc.cast(pc.utf8_length(x), pa.int64())

    db.session.from_pydict({"x": ["aaaa", "bbbbb", "cc", "dddddd"] * 35}, name="many")
    db.rows(sql)
    assert sorted(seen) == sorted(set(seen))


# --- other threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", [True, False])
def test_two_sessions_in_two_threads_do_not_disturb_each_other(planner: bool) -> None:
    answers: dict[str, set[object]] = {}

    def work(word: str) -> None:
        db = Counted(lambda call: word, planner=planner).add("t", TABLE)
        made: set[object] = set()
        for i in range(15):
            made |= {r[0] for r in db.rows(f"SELECT llm_map('q{i}', x) FROM t WHERE id = 1")}
            t = db.session.table("t").filter(col("id") == lit(1))
            made |= {r[0] for r in tuples(t.select(bf.llm_map(f"e{i}", "x")).to_arrow_table())}
        answers[word] = made

    threads = [threading.Thread(target=work, args=(word,)) for word in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {"one": {"one"}, "two": {"two"}}


# --- explaining and tracing ----------------------------------------------------------------------


def test_explain_shows_the_plan_and_asks_nothing(db: Counted) -> None:
    text = "\n".join(str(r[0]) for r in db.rows(f"EXPLAIN {QUERY}"))
    assert "filter 1: llm_filter('holds good'" in text
    assert "→ boolean" in text
    assert db.model.calls == []
    assert db.session.sql(QUERY).explain_text() == text


def test_explain_analyze_counts(db: Counted) -> None:
    text = "\n".join(str(r[0]) for r in db.rows(f"EXPLAIN ANALYZE {QUERY}"))
    assert "3 values asked" in text
    assert "2 values asked" in text
    assert "Total: 5 values asked" in text


def test_the_trace_tells_what_was_asked(frame: bf.Frame) -> None:
    assert frame.trace.usage == bf.Usage()
    frame.collect()
    assert frame.trace.usage.values == 5
    calls = frame.trace.calls
    assert calls.num_rows == 5
    assert set(calls["ingredient"].to_pylist()) == {"llm_filter", "llm_int"}
    assert calls["values"].to_pylist()[0] == ["good tea"]
    frame.collect()
    assert frame.trace.usage.values == 0
    assert frame.trace.usage.cached == 5


def test_a_failed_value_is_null_with_one_warning() -> None:
    db = Counted(lambda call: None if "bad" in (call.values[0] or "") else 1).add("t", TABLE)
    frame = db.session.sql("SELECT id, llm_int('q', x) AS v FROM t WHERE id < 3")
    with pytest.warns(bf.AnswerWarning, match="1 value"):
        assert tuples(frame.to_arrow_table()) == [(1, 1), (2, None)]
    assert frame.trace.errors.num_rows == 1


@pytest.mark.parametrize("planner", [True, False])
def test_a_failed_value_raises_where_the_call_says_so(planner: bool) -> None:
    db = Counted(lambda call: None, planner=planner, show_values="on").add("t", TABLE)
    with pytest.raises(bf.AnswerError, match="no valid answer for 'good tea'"):
        db.rows("SELECT llm_int('q', x, on_error => 'raise') FROM t WHERE id = 1")


def test_options_of_a_call_reach_the_model(db: Counted) -> None:
    db = Counted(hashed).add("t", TABLE)
    db.rows(
        "SELECT llm_map('a', x, regex => '[a-g]'), llm_map('b', x, returns => 'date'), "
        "llm_map('c', x, examples => [['tea', 'hot']]), llm_map('d', x, options => ['u', 'v']) "
        "FROM t WHERE id = 1"
    )
    said = {c.question: c.task for c in db.model.calls}
    assert said["a"].constraint.pattern == "[a-g]"
    assert said["b"].constraint.kind == "date"
    assert said["c"].examples[0].answer == "hot"
    assert said["d"].constraint.options == ("u", "v")


# --- what cannot be rewritten, and what needs nothing --------------------------------------------


def test_a_view_with_a_call_is_planned_where_it_is_used(db: Counted) -> None:
    db.session.sql("CREATE VIEW good AS SELECT id, x FROM t WHERE llm_filter('holds good', x)")
    assert db.model.calls == []
    assert db.rows("SELECT id FROM good WHERE id > 3 LIMIT 1") == [(4,)]
    assert db.asked("SELECT id FROM good WHERE id > 4") == 1


def test_a_table_is_created_from_a_query(db: Counted) -> None:
    db.session.sql(f"CREATE TABLE made AS {QUERY}")
    assert unordered(db.rows("SELECT * FROM made")) == ROWS


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t WHERE 1 = 0 AND llm_filter('q', x)",
        "SELECT llm_map('q', x) FROM t LIMIT 0",
        "WITH w AS (SELECT llm_map('q', x) FROM t) SELECT count(*) FROM t",
        "SELECT id FROM t WHERE id < 3",
    ],
)
def test_what_needs_no_answer_needs_no_model(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLENDFUSION_MODEL", "no-such-model.gguf")
    session = bf.connect(progress="off")
    session.from_arrow(TABLE, name="t")
    session.sql(sql).collect()


def test_no_rows_ask_nothing(db: Counted) -> None:
    assert db.rows("SELECT id, llm_map('q', x) FROM t WHERE id > 99 AND llm_filter('q', x)") == []
    assert db.model.calls == []
