"""How a table is stored changes neither the rows of a query nor the values that it asks about."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import blendfusion as bf


def test_tables_of_pandas_join_as_others_do() -> None:
    """Their schemas carry different metadata, over which DataFusion's join_selection trips."""
    model = bf.ScriptedModel(lambda call: call.values[0].startswith("A"))
    with bf.connect(model, cache=None, progress="off") as session:
        actions = {"symbol": ["A", "B", "C", "D"] * 36, "action": ["dividend", "x", "y", "z"] * 36}
        names = {"symbol": list("ABCDE"), "name": ["Aa", "Bb", "Ac", "Dd", "Ee"]}
        session.from_pandas(pd.DataFrame(actions), name="h")
        session.from_pandas(pd.DataFrame({**names, "sector": list("iiooi")}), name="k")
        rows = session.sql("""
            SELECT h.action, k.name FROM h JOIN k ON h.symbol = k.symbol
            WHERE k.sector = 'i' AND llm_filter('A?', k.name) AND h.action LIKE '%dividend%'""")
        assert len(rows.to_pylist()) == 36
        assert len(model.calls) == 1
        assert session.table("k").schema().metadata is None


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    data = {"id": [1, 2, 3], "x": ["a", "b", None], "n": [1, None, 3], "b": [True, False, None]}
    made.from_pydict(data, name="t")
    return made


@pytest.mark.parametrize(
    "query",
    [
        """SELECT n IS TRUE, count(*) FROM (SELECT b n, x FROM t) WHERE llm_filter('q', x)
           GROUP BY ROLLUP (n IS TRUE, n = TRUE, n)""",
        """SELECT CASE WHEN FALSE THEN n ELSE n END a, n b, count(*) FROM t WHERE llm_filter('q', x)
           GROUP BY ROLLUP (CASE WHEN FALSE THEN n ELSE n END, n)""",
    ],
)
def test_keys_that_become_the_same_expression(query: str, session: bf.Session) -> None:
    rows = session.sql(query).to_pylist()
    plain = session.sql(query.replace("llm_filter('q', x)", "x IS NOT NULL")).to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, plain))


def test_case_over_a_dictionary_with_nulls(session: bf.Session) -> None:
    letters = pa.array(["a", None, "b", "c"] * 25).dictionary_encode()
    session.from_arrow(pa.table({"id": range(100), "x": ["a"] * 100, "d": letters}), name="dd")
    query = """SELECT CASE WHEN llm_filter('q', x) THEN d ELSE CASE id WHEN 2 THEN d WHEN 1 THEN d END END AS y
        FROM dd ORDER BY id LIMIT 50"""
    rows = session.sql(query).to_pydict()["y"]
    assert rows == letters.to_pylist()[:50]


# --- types of columns ----------------------------------------------------------------------------

LETTERS = pa.array(["a", "b", "c", "d"] * 25)
DAYS = pa.array([datetime.date(2020, 1, 1 + i % 4) for i in range(100)], pa.date64())
SPANS = [Decimal(i % 4) for i in range(100)]
SECONDS = pa.array([i % 4 for i in range(100)], pa.duration("s"))
COLUMNS = {
    "dictionary": (LETTERS.dictionary_encode(), "c = 'a'", 25),
    "IN of a dictionary": (LETTERS.dictionary_encode(), "c IN ('a', 'b')", 50),
    "<> of a dictionary": (LETTERS.dictionary_encode(), "c <> 'a'", 75),
    "COALESCE of one": (LETTERS.dictionary_encode(), "coalesce(c, 'none') = 'a'", 25),
    "CASE of one": (LETTERS.dictionary_encode(), "CASE c WHEN 'a' THEN TRUE ELSE FALSE END", 25),
    "numbers in one": (pa.array([1, 2, 3, 4] * 25).dictionary_encode(), "c = 1", 25),
    "run ends": (pc.run_end_encode(pa.array(["a"] * 25 + ["b"] * 75)), "c = 'a'", 25),
    "date64": (DAYS, "c = DATE '2020-01-01'", 25),
    "decimal32": (pa.array(SPANS, pa.decimal32(5, 1)), "c = 1", 25),
    "decimal64": (pa.array(SPANS, pa.decimal64(5, 1)), "c = 1", 25),
    "decimal128": (pa.array(SPANS, pa.decimal128(5, 1)), "c = 1", 25),
    "decimal256": (pa.array(SPANS, pa.decimal256(5, 1)), "c = 1", 25),
    "60 digits": (pa.array(SPANS, pa.decimal256(60, 1)), "c = 1", 25),
    "duration": (SECONDS, "c = arrow_cast(1, 'Duration(Second)')", 25),
    "struct": (pa.array([{"a": i % 4} for i in range(100)]), "c = named_struct('a', 1)", 25),
    "NULL": (pa.nulls(100), "c IS NULL", 100),
}


def _of(column: pa.Array, **options: object) -> tuple[bf.ScriptedModel, bf.Session]:
    model = bf.ScriptedModel(lambda call: True)
    session = bf.connect(model, cache=None, progress="off", **options)  # type: ignore[arg-type]
    session.from_arrow(pa.table({"x": [f"v{i}" for i in range(len(column))], "c": column}), "t")
    session.from_pydict({"y": ["v1", "v2", "v3"]}, name="u")
    return model, session


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM t WHERE {} AND llm_filter('q', x)",
        "SELECT * FROM t WHERE llm_filter('q', x) AND {}",
        "SELECT s.x, u.y FROM t AS s JOIN u ON s.x = u.y WHERE {} AND llm_filter('q', x)",
        "SELECT x, c FROM t WHERE NOT ({} AND x <> 'v0') AND llm_filter('q', x) ORDER BY x",
    ],
)
def test_no_type_changes_rows_or_values(name: str, sql: str) -> None:
    column, condition, rows = COLUMNS[name]
    found = []
    for planner in (True, False):
        model, session = _of(column, planner=planner)
        frame = session.sql(sql.format(condition))
        table = frame.to_arrow_table()
        assert table.schema.types == frame.schema().types
        found.append(sorted(map(str, table.to_pylist())))
        if planner:
            assert frame.prepared.reason is None
            assert len(model.calls) == table.num_rows
    assert found[0] == found[1]
    assert len(found[0]) == rows or not sql.startswith("SELECT x FROM t WHERE {}")


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_stands_below_a_limit(name: str) -> None:
    model, session = _of(COLUMNS[name][0])
    frame = session.sql("SELECT * FROM t WHERE llm_filter('q', x) LIMIT 3")
    assert frame.to_arrow_table().schema.types == frame.schema().types
    assert len(model.calls) == 3


def test_partitions_of_files_are_filters(tmp_path: Path) -> None:
    """Hive partitions are dictionaries."""
    model = bf.ScriptedModel(lambda call: True)
    for k in "ab":
        (tmp_path / f"k={k}").mkdir()
        pq.write_table(
            pa.table({"x": [f"{k}{i}" for i in range(20)]}), tmp_path / f"k={k}/f.parquet"
        )
    with bf.connect(model, cache=None, progress="off") as session:
        session.sql(
            f"CREATE EXTERNAL TABLE h (x TEXT, k TEXT) STORED AS PARQUET PARTITIONED BY (k) "
            f"LOCATION '{tmp_path}/'"
        )
        session.sql("SELECT x FROM h WHERE k = 'a' AND llm_filter('q', x) LIMIT 5").collect()
        assert len(model.calls) == 5


def test_categories_of_pandas_are_filters() -> None:
    data = pd.DataFrame(
        {"x": [f"v{i}" for i in range(100)], "c": pd.Categorical(list("abcd") * 25)}
    )
    model = bf.ScriptedModel(lambda call: True)
    with bf.connect(model, cache=None, progress="off") as session:
        session.from_pandas(data, name="t")
        session.sql("SELECT x FROM t WHERE c = 'a' AND llm_filter('q', x)").collect()
        assert len(model.calls) == 25


def test_a_type_that_switches_planning_off_is_warned_about_once() -> None:
    _, session = _of(pa.array([float(i % 4) for i in range(100)], pa.float16()))
    sql = "SELECT * FROM t WHERE llm_filter('q', x) LIMIT 3"
    with pytest.warns(bf.PlanWarning, match="type"):
        session.sql(sql).collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql(sql).collect()


def test_digits_of_other_decimals_stay_as_they_are() -> None:
    """Arithmetic with 32 bits has other digits than with 128."""
    digits = pa.array([Decimal("1.1"), Decimal("2.3")], pa.decimal32(5, 1))
    found = []
    for planner in (True, False):
        _, session = _of(digits, planner=planner)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.PlanWarning)
            frame = session.sql("SELECT c / 3 > 0.36666 AS y FROM t WHERE llm_filter('q', x)")
            found.append(frame.to_pydict())
    assert found[0] == found[1]


# --- metadata of schemas -------------------------------------------------------------------------


class _Stream:
    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self._table.__arrow_c_stream__(schema)


class _AskedForNothing(_Stream):
    """As relations of DuckDB before 1.2."""

    columns = ("a",)

    def __arrow_c_stream__(self) -> object:  # type: ignore[override]
        return self._table.__arrow_c_stream__()


Register = Callable[[bf.Session, str, pa.Table], object]
WAYS: dict[str, Register] = {
    "a reader": lambda s, name, t: s.from_arrow(t.to_reader(), name=name),
    "a stream": lambda s, name, t: s.from_arrow(_Stream(t), name=name),
    "a stream without a schema": lambda s, name, t: s.from_arrow(_AskedForNothing(t), name=name),
    "batches": lambda s, name, t: s.register_record_batches(name, [t.to_batches()]),
    "a batch": lambda s, name, t: s.register_batch(name, t.to_batches()[0]),
    "a frame": lambda s, name, t: s.create_dataframe([t.to_batches()], name=name),
    "a view": lambda s, name, t: s.register_view(name, s.create_dataframe([t.to_batches()])),
}


@pytest.mark.parametrize("way", WAYS)
def test_metadata_of_a_schema_does_not_matter(way: str) -> None:
    model = bf.ScriptedModel(lambda call: True)
    actions = pd.DataFrame({"symbol": list("ABCD") * 36, "v": range(144)})
    names = pd.DataFrame({"symbol": list("ABCDE"), "name": list("ABCDE"), "sector": list("iiooi")})
    with bf.connect(model, cache=None, progress="off") as session:
        WAYS[way](session, "h", pa.Table.from_pandas(actions))
        WAYS[way](session, "k", pa.Table.from_pandas(names))
        rows = session.sql("""SELECT h.v, k.name FROM h JOIN k ON h.symbol = k.symbol
            WHERE k.sector = 'i' AND llm_filter('A?', k.name) AND h.symbol LIKE '%A%'""")
        assert len(rows.to_pylist()) == 36
        assert len(model.calls) == 1


def test_a_stream_without_a_schema_is_a_table_of_a_query() -> None:
    given = _AskedForNothing(pa.table({"a": [1, 2]}))
    rows = bf.connect(None, cache=None).sql("SELECT sum(a) AS a FROM given").to_pylist()
    assert (rows, type(given)) == ([{"a": 3}], _AskedForNothing)


NUMBERS = [[1.0, 1.0], [1.0, float("nan")], [float("inf"), float("nan")], [0.5, None]]


@pytest.mark.parametrize("way", ["file", "folder", "pattern", "register", "read", "query"])
def test_not_a_number_beside_one_number_stays_what_it_is(way: str, tmp_path: Path) -> None:
    """The statistics of a Parquet file leave it out: DataFusion takes the column for a constant."""
    for number, values in enumerate(NUMBERS):
        column = pa.array(values, pa.float64())
        names = [f"{number}a", f"{number}b"]
        pq.write_table(pa.table({"k": names, "v": column}), tmp_path / f"{number}.parquet")
    model = bf.ScriptedModel(lambda call: True)
    with bf.connect(model, cache=None, progress="off", read_files="local") as session:
        place = tmp_path / "1.parquet" if way == "file" else tmp_path
        if way == "register":
            session.register_parquet("t", str(tmp_path))
        elif way == "read":
            session.register_view("t", session.read_parquet(tmp_path))
        elif way != "query":
            session.register_file(f"{tmp_path}/*.parquet" if way == "pattern" else place, "t")
        source = f"'{tmp_path}/1.parquet'" if way == "query" else "t"
        for query in ("SELECT k, v FROM {}", "SELECT k, v FROM {} WHERE llm_filter('q', k)"):
            found = {row["k"]: row["v"] for row in session.sql(query.format(source)).to_pylist()}
            assert str(found["1a"]) == "1.0"
            assert str(found["1b"]) == "nan"
            assert way in ("file", "query") or str(found["2b"]) == "nan"
            assert len(found) == (2 if way in ("file", "query") else 8)


def test_statistics_count_where_they_hide_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": [1.0, 1.0]}), tmp_path / "t.parquet")
    with bf.connect(None, cache=None) as session:
        session.register_file(tmp_path / "t.parquet")
        (shown,) = session.sql("SHOW datafusion.execution.collect_statistics").to_pylist()
        assert shown["value"] == "true"
