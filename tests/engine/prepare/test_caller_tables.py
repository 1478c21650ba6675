"""The frames of a program as tables of its queries: ``SELECT * FROM df``."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.table_names import table_names

ROWS = {"n": [1, 2], "text": ["good one", "bad"]}
FRAMES: dict[str, Callable[[bf.Session], Any]] = {
    "pandas": lambda _: pd.DataFrame(ROWS, index=["a", "b"]),
    "polars": lambda _: pl.DataFrame(ROWS),
    "lazy": lambda _: pl.LazyFrame(ROWS),
    "arrow": lambda _: pa.table(ROWS),
    "batch": lambda _: pa.RecordBatch.from_pydict(ROWS),
    "reader": lambda _: pa.table(ROWS).to_reader(),
    "frame": lambda session: session.from_pydict(ROWS),
}
everywhere = pa.table({"n": [7]})  # a global variable


@pytest.fixture
def session() -> bf.Session:
    def answer(call: bf.Request) -> Any:
        text = str(call.values[0])
        return "good" in text if call.constraint.kind == "boolean" else text.upper()

    return bf.connect(bf.ScriptedModel(answer), cache=None)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_variable_is_a_table(session: bf.Session, kind: str) -> None:
    df = FRAMES[kind](session)
    found = session.sql("SELECT df.n FROM df WHERE llm_filter('Good?', df.text)")
    assert found.to_pylist() == [{"n": 1}]
    assert df is not None
    if kind != "frame":
        assert session.catalog().schema().names() == set()


def test_local_variables_come_before_global_ones(session: bf.Session) -> None:
    assert session.sql("SELECT n FROM everywhere").to_pylist() == [{"n": 7}]

    def inside(everywhere: pa.Table) -> object:
        return session.sql("SELECT n FROM everywhere").to_pylist()

    assert inside(pa.table({"n": [8]})) == [{"n": 8}]
    with pytest.raises(bf.QueryError, match="unknown table 'elsewhere'"):
        _elsewhere(session)


def _elsewhere(session: bf.Session) -> None:
    def with_a_variable() -> None:
        elsewhere = pa.table(ROWS)
        assert elsewhere is not None
        call(session)

    def call(session: bf.Session) -> None:
        session.sql("SELECT * FROM elsewhere")

    with_a_variable()


def test_a_registered_table_has_precedence(session: bf.Session) -> None:
    sales = Sales = pa.table({"n": [1]})  # noqa: N806
    session.from_pydict({"n": [2]}, name="sales")
    for query in ("SELECT n FROM sales", "SELECT n FROM Sales", 'SELECT n FROM "SALES"'):
        assert session.sql(query).to_pylist() == [{"n": 2}]
    assert sales is Sales
    sql = "WITH sales AS (SELECT 3 AS n) SELECT n FROM sales"
    assert session.sql(sql).to_pylist() == [{"n": 3}]


def test_the_frame_is_that_of_the_call(session: bf.Session) -> None:
    df = pa.table({"n": [1]})
    first = session.sql("SELECT n FROM df")
    df = pa.table({"n": [2]})
    second = session.sql("SELECT n FROM df")
    assert df is not None
    assert first.to_pylist() == [{"n": 1}]
    assert second.to_pylist() == [{"n": 2}]


def test_names_match_case_as_names_of_tables_do(session: bf.Session) -> None:
    Df = pd.DataFrame({"Name": ["x"], "N": [1]})  # noqa: N806
    for query in ("SELECT Name FROM Df", "SELECT df.NAME FROM DF", 'SELECT name FROM "df"'):
        assert session.sql(query).to_pylist() == [{"Name": "x"}]
    df = pl.DataFrame({"n": [2]})
    assert session.sql("SELECT n FROM df").to_pylist() == [{"n": 2}]
    dF = df  # noqa: N806
    del df
    with pytest.raises(bf.QueryError, match="'DF' may be") as raised:
        session.sql("SELECT n FROM DF")
    assert raised.value.span == (14, 16)
    exact = bf.connect(None, names_in_any_case=False)
    assert exact.sql('SELECT "N" FROM "Df"').to_pylist() == [{"N": 1}]
    with pytest.raises(bf.QueryError, match="unknown table 'df'"):
        exact.sql("SELECT * FROM Df")
    assert dF is not None
    assert Df is not None


STATEMENTS = {
    "SELECT a.n FROM df a JOIN df AS b ON a.n = b.n ORDER BY 1": [{"n": 1}, {"n": 2}],
    "SELECT count(*) AS n FROM (SELECT * FROM df UNION ALL SELECT * FROM df)": [{"n": 4}],
    "SELECT (SELECT max(n) FROM df) AS n": [{"n": 2}],
    "WITH df AS (SELECT n FROM df WHERE n > 1) SELECT * FROM df": [{"n": 2}],
    "FROM df WHERE n > 1": [{"n": 2, "text": "bad"}],
    "FROM df SELECT max(n) AS n": [{"n": 2}],
    "SELECT {{LLMMap('q', 'df::text')}} AS m FROM df LIMIT 1": [{"m": "GOOD ONE"}],
    "SELECT llm_map('q', d.text) AS m FROM df d ORDER BY n DESC LIMIT 1": [{"m": "BAD"}],
}


@pytest.mark.parametrize("query", STATEMENTS)
def test_a_frame_may_stand_wherever_a_table_does(session: bf.Session, query: str) -> None:
    df = pa.table(ROWS)
    assert df is not None
    assert session.sql(query).to_pylist() == STATEMENTS[query]


def test_statements_read_frames(session: bf.Session, tmp_path: Path) -> None:
    df = pd.DataFrame(ROWS)
    described = session.sql("DESCRIBE df").to_pydict()["column_name"]
    assert described == ["n", "text"]
    session.sql("CREATE TABLE made AS SELECT llm_map('q', text) AS m FROM df")
    session.sql("INSERT INTO made SELECT text FROM df").collect()
    session.sql("CREATE VIEW seen AS SELECT llm_map('q', text) AS m FROM df WHERE n = 1")
    session.sql(f"COPY df TO '{tmp_path}/df.parquet'").collect()
    del df
    gc.collect()
    assert session.table("made").count() == 4
    assert session.sql("SELECT m FROM seen").to_pylist() == [{"m": "GOOD ONE"}]
    assert session.read_parquet(str(tmp_path / "df.parquet")).count() == 2
    with pytest.raises(bf.QueryError):
        session.sql("DELETE FROM df")


def test_other_dialects_read_frames(session: bf.Session) -> None:
    df = pa.table(ROWS)
    assert df is not None
    assert session.sql("SELECT `n` FROM `df` LIMIT 1", dialect="mysql").to_pylist() == [{"n": 1}]
    query = "SELECT AI_FILTER('ok?', text) AS ok FROM df LIMIT 1"
    assert session.sql(query, dialect="snowflake").to_pylist() == [{"ok": True}]


def test_errors_are_about_the_query_as_it_was_written(session: bf.Session) -> None:
    df = pa.table(ROWS)
    assert df is not None
    with pytest.raises(bf.QueryError, match="unknown column 'nothing'") as raised:
        session.sql("SELECT 1, nothing FROM df")
    assert raised.value.span == (10, 17)
    with pytest.raises(bf.QueryError, match="SQL syntax on line 1") as raised:
        session.sql("SELECT FROM df WHERE")
    assert raised.value.hint == "See 'SELECT FROM df WHERE'."
    with pytest.raises(bf.QueryError, match=r"unknown column 'other\.n'") as raised:
        session.sql("SELECT other.n FROM df")
    assert raised.value.hint == "The relations here: df."
    text = session.sql("SELECT * FROM df WHERE llm_filter('Good?', text)").explain_text()
    assert "scan df [n, text]" in text


def test_what_is_no_frame_says_what_to_do(session: bf.Session) -> None:
    rows, fields, series, number = [{"n": 1}], {"n": [1]}, pd.Series([1]), 5
    assert all(value is not None for value in (rows, fields, series, number))
    hints = {
        "rows": "session.from_pylist(rows, 'rows')",
        "fields": "session.from_pydict(fields, 'fields')",
        "series": "series.to_frame()",
        "number": "No table is registered",
        "nothing": "No table is registered",
    }
    for name, hint in hints.items():
        with pytest.raises(bf.QueryError, match=f"unknown table '{name}'") as raised:
            session.sql(f"SELECT * FROM {name}")
        assert hint in str(raised.value.hint)
    mixed = pd.DataFrame({"o": ["a", 1]}, dtype=object)
    with pytest.raises(bf.ArgumentError, match="holds values of several types"):
        session.sql("SELECT * FROM mixed")
    assert mixed is not None


def test_the_option_switches_it_off(session: bf.Session) -> None:
    df = pa.table(ROWS)
    session.sql("SET blendfusion.read_variables = false")
    with pytest.raises(bf.QueryError, match="unknown table 'df'") as raised:
        session.sql("SELECT * FROM df")
    assert "FROM $df', df=df" in str(raised.value.hint)
    assert session.sql("SELECT count(*) AS n FROM $df", df=df).to_pylist() == [{"n": 2}]


def test_a_query_that_the_program_did_not_write_reads_no_variable(session: bf.Session) -> None:
    df = pa.table(ROWS)
    assert df is not None
    with pytest.raises(bf.QueryError, match="unknown table 'df'"):
        session.sql("SELECT * FROM df", read_only=True)
    with pytest.raises(bf.QueryError, match="unknown table 'df'"):
        bf.connect(None, read_only=True).sql("SELECT * FROM df")
    drafting = bf.connect(bf.ScriptedModel(lambda call: "SELECT n FROM df"), cache=None)
    drafting.from_pydict({"m": [1]}, name="known")
    with pytest.raises(bf.QueryError, match=r"unknown table 'df'|no query"):
        drafting.ask("How many?", rounds=0)


def test_the_modules_of_the_package_pass_on_no_variables() -> None:
    """The text of another module was written by somebody else, whatever its variables hold."""
    code = "df = pa.table({'n': [1]})\nsession.sql('SELECT * FROM df')"
    for module in (
        "blendfusion.apps.cli.shell",
        "blendfusion.apps.ui.workspace",
        "blendfusion.services.ask.x",
    ):
        names: dict[str, Any] = {"__name__": module, "pa": pa, "session": bf.connect(None)}
        with pytest.raises(bf.QueryError, match="unknown table 'df'"):
            exec(code, names)
    exec(code, {"__name__": "blendfusion_user", "pa": pa, "session": bf.connect(None)})


def test_names_of_tables_are_those_of_relations() -> None:
    text = """
        WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r JOIN one ON true)
        SELECT extract(year FROM day), df.x FROM r, a.df, "Two" t, range(3), (SELECT * FROM three)
        JOIN LATERAL (SELECT four FROM five) z ON x IN (SELECT six FROM 'seven.csv')
    """
    assert {found.name for found in table_names(Reader(text))} == {"one", "Two", "three", "five"}
    assert [found.name for found in table_names(Reader("SELECT 1 FROM (SELECT"))] == []


def test_a_variable_that_is_deleted_is_freed(session: bf.Session) -> None:
    df = pd.DataFrame(ROWS)
    freed = weakref.ref(df)
    assert session.sql("SELECT count(*) AS n FROM df").to_pylist() == [{"n": 2}]
    del df
    gc.collect()
    assert freed() is None


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_categories_of_polars_are_planned_as_their_texts(kind: str) -> None:
    import polars as pl

    texts = [f"v{number}" for number in range(100)]
    types = {"Categorical": pl.Categorical(), "Enum": pl.Enum(texts)}
    model = bf.ScriptedModel(lambda request: True)
    session = bf.connect(model, cache=None)
    df = pl.DataFrame({"n": range(100), "x": pl.Series(texts, dtype=types[kind])})
    assert len(df) == 100
    frame = session.sql("SELECT n FROM df WHERE llm_filter('q', x) ORDER BY n LIMIT 3")
    assert frame.to_pydict() == {"n": [0, 1, 2]}
    assert len(model.calls) == 3
