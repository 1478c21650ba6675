"""Lance tables as tables of a session: the same rows, columns and filters in Lance's scan."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import pyarrow as pa
import pytest
from scripts import unordered

import blendfusion as bf
from blendfusion.apps.cli.main import main

lance = pytest.importorskip("lance", reason="needs the extra 'search'")

ROWS = pa.table(
    {
        "id": range(10),
        "A name": [f"x{i}" for i in range(10)],
        "day": [datetime.date(2020, 1, 1 + i) for i in range(10)],
        "share": [None if i % 3 == 0 else i / 2 for i in range(10)],
        "kind": pa.array(["a", "b"] * 5).dictionary_encode(),
        "amount": pa.array(range(10), pa.decimal128(5, 2)),
        "vector": pa.array([[i, 1] for i in range(10)], pa.list_(pa.float32(), 2)),
        "tags": [["t"] * (i % 3) for i in range(10)],
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of two fragments."""
    place = tmp_path / "things.lance"
    lance.write_dataset(ROWS.slice(0, 6), place)
    lance.write_dataset(ROWS.slice(6), place, mode="append")
    return place


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(lambda call: int(call.values[0][1:]) % 2 == 0)


@pytest.fixture
def session(path: Path, model: bf.ScriptedModel) -> bf.Session:
    session = bf.connect(model, cache=None)
    session.register_lance("things", path)
    session.from_arrow(ROWS, "memory")
    return session


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "WHERE id > 7",
        "WHERE id BETWEEN 2 AND 4 OR share IS NULL",
        "WHERE \"A name\" IN ('x1', 'x8') AND share IS NOT NULL",
        "WHERE day >= DATE '2020-01-05' AND lower(\"A name\") <> 'x7'",
        # What Lance cannot be told is done beside its scan.
        "WHERE kind = 'a'",
        "WHERE amount = 3 OR kind = 'b'",
        "WHERE id > 100",
    ],
)
def test_rows_are_those_of_the_table(session: bf.Session, rest: str) -> None:
    for columns in ("*", "id", 'share, "A name"', "count(*)"):
        both = [
            session.sql(f"SELECT {columns} FROM {name} {rest}").to_arrow_table()
            for name in ("things", "memory")
        ]
        assert both[0].schema.names == both[1].schema.names
        assert unordered(both[0].to_pylist()) == unordered(both[1].to_pylist())


def test_columns_and_filters_go_into_the_scan(session: bf.Session) -> None:
    frame = session.sql("SELECT day FROM things WHERE id = 3")
    plan = frame.execution_plan().display_indent()
    assert "DatasetExec: number_of_fragments=2, filter_expr=(id == 3), projection=[day]" in plan


def test_a_model_sees_what_is_left(session: bf.Session, model: bf.ScriptedModel) -> None:
    frame = session.sql(
        "SELECT id, vector FROM things WHERE id > 5 AND llm_filter('Even?', \"A name\") ORDER BY id"
    )
    assert frame.to_pydict() == {"id": [6, 8], "vector": [[6.0, 1.0], [8.0, 1.0]]}
    assert len(model.calls) == 4


def test_a_limit_reads_on_no_longer_than_it_must(session: bf.Session) -> None:
    assert session.sql("SELECT id FROM things WHERE id > 3 ORDER BY id LIMIT 2").to_pydict() == {
        "id": [4, 5]
    }


def test_a_query_reads_the_latest_version(session: bf.Session, path: Path) -> None:
    frame = session.sql("SELECT count(*) AS n FROM things")
    assert frame.to_pydict() == {"n": [10]}
    lance.dataset(path).delete("id < 5")
    assert frame.to_pydict() == {"n": [5]}


def test_what_is_no_lance_table_is_an_error(session: bf.Session, path: Path) -> None:
    with pytest.raises(bf.QueryError, match=r"Did you mean 'things\.lance'\?"):
        session.register_lance("t", path.with_name("thing.lance"))
    empty = path.with_name("empty.lance")
    empty.mkdir()
    with pytest.raises(bf.QueryError, match="is not a Lance table"):
        session.register_lance("t", empty)


def test_on_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT id FROM t WHERE id < 2 ORDER BY id"
    assert main(["query", query, "--table", f"t={path}", "--format", "csv"]) == 0
    assert capsys.readouterr().out == '"id"\n0\n1\n'


OTHERS: dict[str, pa.Array] = {
    "time": pa.array([datetime.time(1), None, datetime.time(3)], pa.time64("us")),
    "large": pa.array(["a", "", None], pa.large_string()),
    "seconds": pa.array([0, None, 5], pa.timestamp("s")),
    "zoned": pa.array([0, None, 5], pa.timestamp("us", "UTC")),
    "unsigned": pa.array([1, 2, None], pa.uint64()),
    "small": pa.array([1, 2, None], pa.uint8()),
    "nothing": pa.nulls(3),
    "number": pa.array([math.nan, 1.5, None]),
    "struct": pa.array([{"a": 1}, None, {"a": None}]),
    "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
}


@pytest.mark.parametrize("other", OTHERS)
def test_filters_beside_columns_of_any_type(tmp_path: Path, other: str) -> None:
    """Lance pushes no filter into a table with a column of some types: rows are filtered here."""
    rows = pa.table({"id": range(3), "f": [math.nan, 2.5, None], "other": OTHERS[other]})
    lance.write_dataset(rows, tmp_path / "t.lance")
    session = bf.connect(bf.ScriptedModel(lambda call: call.values[0] != "2"), cache=None)
    session.register_lance("t", tmp_path / "t.lance")
    session.from_arrow(rows, "memory")
    for test in (
        "other IS NULL",
        "other IS NOT NULL AND id < 5",
        "f > 1.5",
        "f <> 2.5 OR id IN (2)",
        "NOT f < 9",
        "id = 1 AND id = 2",
        "llm_filter('q', CAST(id AS TEXT)) AND f >= 2",
    ):
        for shown in ("*", "count(*) AS n", "id", "max(f) AS most"):
            query = f"SELECT {shown} FROM {{}} WHERE {test}"
            found = session.sql(query.format("t")).to_pylist()
            assert str(found) == str(session.sql(query.format("memory")).to_pylist()), query
