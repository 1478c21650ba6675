"""Frames over tables without a name are planned like any other, and leave nothing behind."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import blendfusion as bf
from blendfusion.datafusion.unnamed_tables import HIDDEN_CATALOG, UNNAMED_SCHEMA

ROWS = {"x": ["a", "b", "a", "c"] * 10, "n": [*range(40)]}
TABLE = pa.table(ROWS)

Maker = Callable[[bf.Session, Path], bf.Frame]
MAKERS: dict[str, Maker] = {
    "read_csv": lambda s, folder: s.read_csv(str(folder / "t.csv")),
    "read_parquet": lambda s, folder: s.read_parquet(str(folder / "t.parquet")),
    "read_batches": lambda s, folder: s.read_batches(TABLE.to_batches()),
    "read_batch": lambda s, folder: s.read_batch(TABLE.to_batches()[0]),
    "from_pydict": lambda s, folder: s.from_pydict(ROWS),
    "$pandas": lambda s, folder: s.sql("SELECT * FROM $df AS d", df=pd.DataFrame(ROWS)),
    "$arrow": lambda s, folder: s.sql("SELECT * FROM $df", df=TABLE),
    "$frame": lambda s, folder: s.sql("SELECT * FROM $f", f=s.from_arrow(TABLE, "t").limit(40)),
    "$read": lambda s, folder: s.sql("SELECT * FROM $f", f=s.read_csv(str(folder / "t.csv"))),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(TABLE, tmp_path / "t.csv")
    pyarrow.parquet.write_table(TABLE, tmp_path / "t.parquet")
    return tmp_path


def connected() -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(lambda request: str(request.values[0] != "b").lower())
    return bf.connect(model, cache=None, progress="off"), model


def tables(session: bf.Session) -> set[str]:
    return set(session.catalog(HIDDEN_CATALOG).schema(UNNAMED_SCHEMA).names())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_each_value_is_asked_once_and_cheap_predicates_come_first(
    make: Maker, folder: Path
) -> None:
    session, model = connected()
    frame = make(session, folder).filter(bf.llm_filter("q", "x"), bf.col("n") < 2).select("x", "n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert frame.estimate().total.values == 2
        assert frame.to_pylist() == [{"x": "a", "n": 0}]
    assert len(model.calls) == 2
    assert "Plain plan" not in frame.explain_text()
    assert frame.trace is not None


def test_the_table_of_a_query_lives_as_long_as_frames_over_it(folder: Path) -> None:
    session, _ = connected()
    frame = session.sql("SELECT x FROM $df WHERE n < 9", df=TABLE).filter(bf.llm_filter("q", "x"))
    gc.collect()
    assert len(tables(session)) == 1
    assert frame.count() == 7
    del frame
    gc.collect()
    assert tables(session) == set()
    for _ in range(3):
        session.read_csv(str(folder / "t.csv")).filter(bf.llm_filter("q", "x")).to_pylist()
    gc.collect()
    assert tables(session) == set()


def test_both_sides_of_a_join(folder: Path) -> None:
    session, model = connected()
    left = session.read_csv(str(folder / "t.csv"))
    right = session.read_parquet(str(folder / "t.parquet")).filter(bf.col("n") > 37).select("n")
    joined = left.join(right, on="n").filter(bf.llm_filter("q", "x"))
    assert sorted(row["n"] for row in joined.to_pylist()) == [38, 39]
    assert len(model.calls) == 2


def test_no_table_is_seen() -> None:
    session, _ = connected()
    frame = session.read_batches(TABLE.to_batches())
    assert HIDDEN_CATALOG not in session.catalog_names()
    assert "frame_" not in str(session.sql("SHOW TABLES").to_pylist())
    assert frame.count() == 40


MADE: dict[str, Callable[[bf.Session, str], object]] = {
    "read": lambda s, file: s.register_view("v", s.read_csv(file)),
    "verbs": lambda s, file: s.register_view("v", s.read_csv(file).filter(bf.col("n") < 9)),
    "join": lambda s, file: s.register_view(
        "v", s.read_csv(file).join(s.from_pydict({"n": [1, 2]}), on="n")
    ),
    "budget": lambda s, file: s.register_view("v", s.read_csv(file).with_budget(None)),
    "a view of a frame": lambda s, file: s.register_table("v", s.read_csv(file).into_view()),
    "a query": lambda s, file: s.register_view("v", s.sql("FROM $f", f=s.read_csv(file))),
    "SQL": lambda s, file: s.sql("CREATE VIEW v AS SELECT * FROM $f", f=s.read_csv(file)),
    "stored": lambda s, file: s.register_view("v", s.read_csv(file).cache()),
    "stored answers": lambda s, file: s.register_view(
        "v", s.read_csv(file).filter(bf.llm_filter("q", "x")).cache()
    ),
}


@pytest.mark.parametrize("way", MADE)
def test_a_view_over_a_table_without_a_name_is_planned(way: str, tmp_path: Path) -> None:
    """Its frame is gone by then, which gave the table its name."""
    file = tmp_path / "rows.csv"
    file.write_text("x,n\n" + "".join(f"a{n},{n}\n" for n in range(6)))
    model = bf.ScriptedModel(lambda call: True)
    with bf.connect(model, cache=None, progress="off") as session:
        MADE[way](session, str(file))
        gc.collect()
        model.calls.clear()
        frame = session.sql("SELECT x FROM v WHERE llm_filter('other', x) AND n = 1")
        assert frame.to_pydict() == {"x": ["a1"]}
        assert [call.values for call in model.calls] == [("a1",)]
        assert "Plain plan" not in frame.explain_text()
        session.deregister_table("v")
        session.register_view("v", session.from_pydict({"x": ["b"], "n": [1]}))
        assert session.sql("SELECT x FROM v WHERE llm_filter('q', x)").to_pydict() == {"x": ["b"]}
