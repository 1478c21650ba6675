"""Frames of pandas and Polars, the cell magic, and displays."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.apps.notebooks import accessors


def answer(call: bf.Request) -> Any:
    text = str(call.values[0])
    if call.constraint.kind == "boolean":
        return "good" in text
    if call.constraint.kind == "choice":
        return call.constraint.options[len(text) % 2]
    if call.constraint.kind == "integer":
        return len(text)
    if call.constraint.kind == "struct":
        return {"name": text, "long": True}
    if call.constraint.kind == "text":
        return text.upper()
    return 5


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> bf.Session:
    monkeypatch.setattr(accessors, "_session", None)
    made = bf.connect(bf.ScriptedModel(answer), cache=None)
    bf.add_accessors(made)
    return made


TEXTS = {"n": [1, 2, 3], "text": ["good one", "bad", None]}


def test_a_pandas_frame_is_asked_about_and_keeps_its_index(session: bf.Session) -> None:
    df = pd.DataFrame(TEXTS, index=["a", "b", "c"])
    kept = df.llm.filter("Good?", "text")
    assert list(kept.index) == ["a"]
    assert list(kept.columns) == ["n", "text"]
    assert list(df.llm.filter("Is {text} good?").index) == ["a"]
    assert dict(df.llm.map("How long?", "text", returns="int").dropna()) == {"a": 8, "b": 3}
    assert dict(df.llm.classify("text", ["x", "y"]).dropna()) == {"a": "x", "b": "y"}
    assert list(df.llm.score("How?", "text").index) == ["a", "b", "c"]
    fields = df.llm.extract("text", "name TEXT, long BOOLEAN")
    assert list(fields.columns) == ["name", "long"]
    assert list(fields.index) == ["a", "b", "c"]
    assert list(df.llm.sql("SELECT n FROM $df WHERE n > 1")["n"]) == [2, 3]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", [8, 3, None]),
        ("float", [5.0, 5.0, None]),
        ("bool", [True, False, None]),
        ("text", ["GOOD ONE", "BAD", None]),
    ],
)
def test_a_question_has_a_method_for_each_kind_of_answer(
    kind: str, values: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accessors, "_session", None)
    bf.add_accessors(bf.connect(bf.ScriptedModel(answer), cache=None))
    asked = getattr(pl.DataFrame(TEXTS).llm, kind)("What is it?", "text")  # type: ignore[attr-defined]
    assert asked.to_list() == values
    pandas = getattr(pd.DataFrame(TEXTS, index=["a", "b", "c"]).llm, kind)("What is {text}?")
    assert list(pandas.index) == ["a", "b", "c"]
    assert [v is None or v != v for v in pandas] == [False, False, True]


def test_dates_come_as_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accessors, "_session", None)
    bf.add_accessors(bf.connect(bf.ScriptedModel(lambda call: "2024-05-01"), cache=None))
    table = pl.DataFrame({"text": ["It came on 2024-05-01.", None]})
    asked = table.llm.date("When?", "text").to_list()  # type: ignore[attr-defined]
    assert list(map(str, asked)) == ["2024-05-01", "None"]


def test_a_polars_frame_is_asked_about(session: bf.Session) -> None:
    df = pl.DataFrame(TEXTS)
    assert df.llm.filter("Good?", "text")["n"].to_list() == [1]  # type: ignore[attr-defined]
    lengths = df.llm.map("How long?", "text", returns="int")  # type: ignore[attr-defined]
    assert lengths.to_list() == [8, 3, None]
    found = df.llm.sql("SELECT n FROM $df ORDER BY n DESC")  # type: ignore[attr-defined]
    assert found["n"].to_list() == [3, 2, 1]
    more = pl.DataFrame({"n": [3]})
    found = df.llm.sql("SELECT n FROM $df JOIN more USING (n)")  # type: ignore[attr-defined]
    assert found["n"].to_list() == more["n"].to_list()


def test_a_lazy_polars_frame_is_asked_about_and_stays_lazy(session: bf.Session) -> None:
    lazy: Any = pl.LazyFrame(TEXTS).filter(pl.col("n") < 3)
    kept = lazy.llm.filter("Is {text} good?")
    assert isinstance(kept, pl.LazyFrame)
    assert kept.collect()["n"].to_list() == [1]
    assert lazy.llm.map("How long?", "text", returns="int").to_list() == [8, 3]
    assert lazy.llm.classify("text", ["x", "y"]).to_list() == ["x", "y"]
    fields = lazy.llm.extract("text", "name TEXT, long BOOLEAN")
    assert fields.collect_schema().names() == ["name", "long"]
    found = lazy.llm.sql("SELECT max(n) AS n FROM $df")
    assert found.collect()["n"].to_list() == [2]
    with pytest.raises(bf.QueryError, match="unknown column 'txt'"):
        lazy.llm.filter("Good?", "txt")


def test_frames_without_rows_or_with_numbers_for_names(session: bf.Session) -> None:
    df = pd.DataFrame(TEXTS)
    assert list(df[:0].llm.filter("Good?", "text").columns) == ["n", "text"]
    assert len(df[:0].llm.map("How long?", "text", returns="int")) == 0
    assert pd.DataFrame([["ab", "c"]]).llm.map("Which?", 0).to_list() == ["AB"]
    more: Any = pl.DataFrame(TEXTS)
    assert more.llm.map("Which?", "text").name == ""
    assert more[:0].llm.filter("Good?", "text").columns == ["n", "text"]
    with pytest.raises(bf.ArgumentError, match="by its name, not as Series"):
        df.llm.filter("Good?", df["text"])


def test_many_rows_keep_their_order(session: bf.Session) -> None:
    df = pd.DataFrame({"text": [f"{'x' * (i % 7)}{i}" for i in range(30_000)]})
    lengths = df.llm.map("How long?", "text", returns="int")
    assert list(lengths) == [len(text) for text in df["text"]]


def test_what_an_accessor_cannot_do_is_an_error(session: bf.Session) -> None:
    df = pd.DataFrame(TEXTS)
    with pytest.raises(bf.ArgumentError, match="no column is named"):
        df.llm.filter("Good?")
    with pytest.raises(bf.QueryError, match="unknown column 'txt'") as raised:
        df.llm.filter("Good?", "txt")
    assert "text" in str(raised.value.hint)
    other = bf.connect(bf.ScriptedModel(lambda call: False), cache=None)
    assert len(df.llm.filter("Good?", "text", session=other)) == 0


@pytest.mark.parametrize("first", ["pandas", "blendfusion"])
def test_accessors_are_there_whichever_is_imported_first(first: str) -> None:
    code = (
        f"import {first}, pandas, polars, blendfusion as bf; bf.add_accessors(); "
        "print(*(hasattr(kind, 'llm') for kind in (pandas.DataFrame, polars.DataFrame, polars.LazyFrame)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True"] * 3


@pytest.mark.parametrize(
    "df",
    [
        pd.DataFrame(TEXTS, index=["a", "b", "c"]),
        pl.DataFrame(TEXTS),
        pa.table(TEXTS),
        pa.table(TEXTS).to_reader(),
    ],
    ids=["pandas", "polars", "arrow", "reader"],
)
def test_a_frame_is_a_table_of_a_query_by_its_name(session: bf.Session, df: Any) -> None:
    found = session.sql("SELECT * FROM $df WHERE llm_filter('Good?', text)", df=df)
    assert found.to_pylist() == [{"n": 1, "text": "good one"}]


def test_a_query_needs_no_session_of_its_own(session: bf.Session) -> None:
    df = pl.DataFrame(TEXTS)
    found = bf.sql("SELECT n FROM df WHERE llm_filter('Good?', text)")
    assert found.to_pylist() == [{"n": 1}]
    assert found.session is session
    assert bf.sql("SELECT count(*) AS n FROM $rows", rows=df).to_pylist() == [{"n": 3}]
    import_module(
        "blendfusion.language.query_text.tokenizer"
    )  # whose folder has the name of the function
    assert callable(bf.sql)


def test_a_frame_of_a_query_leaves_no_table_behind(session: bf.Session) -> None:
    frame = session.sql("SELECT * FROM $df WHERE llm_filter('Good?', text)", df=pl.DataFrame(TEXTS))
    with pytest.raises(bf.QueryError):
        session.sql("SELECT missing FROM $df", df=pl.DataFrame(TEXTS))
    assert session.catalog().schema().names() == set()
    assert frame.to_pylist() == [{"n": 1, "text": "good one"}]
    assert frame.filter(bf.col("n") > 1).to_pylist() == []


def test_frames_come_in_as_they_are_meant(session: bf.Session) -> None:
    plain = pd.DataFrame({"a": [1, 2]}, index=[5, 6])
    assert session.from_pandas(plain).columns == ["a"]
    assert session.from_pandas(plain.rename_axis("key")).columns == ["a", "key"]
    assert session.from_polars(pl.LazyFrame({"a": [1]}), "lazy").to_pydict() == {"a": [1]}
    assert session.table("lazy").columns == ["a"]


def test_a_frame_that_is_no_table_says_what_to_do(session: bf.Session) -> None:
    bf.add_accessors(session)
    mixed = pd.DataFrame({"o": ["a", 1, None]}, dtype=object)
    uses = (
        lambda df: session.sql("SELECT * FROM $df", df=df),
        lambda df: session.from_pandas(df, "t"),
        lambda df: df.llm.filter("Good?", df.columns[0]),
    )
    for use in uses:
        with pytest.raises(bf.ArgumentError, match="'o' of the frame holds values of several"):
            use(mixed)
        with pytest.raises(bf.ArgumentError, match="two columns 'a'"):
            use(pd.DataFrame([["x", "y"]], columns=["a", "a"]))
    assert session.from_pandas(mixed.astype({"o": "string"})).to_pydict() == {"o": ["a", "1", None]}


def test_an_error_in_a_notebook_is_two_lines(session: bf.Session) -> None:
    session.from_pydict(TEXTS, name="t")
    with pytest.raises(bf.QueryError) as caught:
        session.sql("SELECT llm_fliter('Good?', text) FROM t")
    assert caught.value._render_traceback_() == [
        "QueryError: unknown function 'llm_fliter'",
        "Hint: Did you mean 'llm_filter'?",
    ]


def test_a_read_only_query_reads_the_frames_that_come_with_it(session: bf.Session) -> None:
    df = pd.DataFrame(TEXTS)
    with pytest.raises(bf.QueryError, match="unknown table 'df'"):
        session.sql("SELECT * FROM df", read_only=True)
    assert session.sql("SELECT count(*) AS n FROM $df", df=df, read_only=True).to_pylist() == [
        {"n": 3}
    ]


def test_the_display_of_a_session_is_a_line(session: bf.Session) -> None:
    assert repr(session) == "Session: scripted; 0 tables"
    session.from_pydict({"x": [1]}, name="t")
    session.from_pydict({"x": [1]})
    assert repr(session) == "Session: scripted; 1 table: t"
    assert "default model" in repr(bf.connect(cache=None))


def test_columns_and_literals_come_with_the_package(session: bf.Session) -> None:
    frame = session.from_pydict(TEXTS)
    assert frame.filter(bf.col("n") > bf.lit(2)).to_pydict()["n"] == [3]


class Shell:
    """What the magic uses of IPython's shell."""

    def __init__(self, **variables: Any) -> None:
        self.user_ns = variables
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics[name] = function


def test_the_magic_runs_a_cell(session: bf.Session, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(session=session, df=pd.DataFrame(TEXTS))
    bf.load_ipython_extension(shell)
    run = shell.magics["blendfusion"]
    query = "SELECT n FROM $df WHERE llm_filter('Good?', text)"
    assert run("", query).to_pylist() == [{"n": 1}]
    assert run("kept", query) is None
    assert shell.user_ns["kept"].to_pylist() == [{"n": 1}]
    assert run("--explain", query) is None
    assert "llm_filter('Good?'" in capsys.readouterr().out
    assert run("", query.replace("$", "")).to_pylist() == [{"n": 1}]
    for line, cell in (("", "SELECT nothing FROM df"), ("--dialekt x", query), ("a b", query)):
        assert run(line, cell) is None
        assert capsys.readouterr().err.startswith("error: ")


def test_a_notebook_runs_the_magic_and_shows_progress() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import time, pandas as pd, blendfusion as bf\n%load_ext blendfusion",
        "def answer(call):\n    time.sleep(0.02 * len(call.values))\n    return 'good' in call.values[0]\n"
        "session = bf.connect(bf.ScriptedModel(answer), cache=None)\n"
        "df = pd.DataFrame({'text': [f'good {i}' for i in range(40)] + ['bad']})\nsession",
        "%%blendfusion\nSELECT count(*) AS n FROM $df WHERE llm_filter('Good?', text)",
        "%%blendfusion\nSELECT nothing FROM df",
        "bf.add_accessors(session)\ndf.llm.filter('Good?', 'text').shape",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [str(cell.outputs) for cell in notebook.cells]
    assert "Session: scripted" in shown[1]
    assert "<td" in shown[2]
    assert ">40<" in shown[2]
    assert "unknown column 'nothing'" in shown[3]
    assert "Traceback" not in shown[3]
    assert "(40, 1)" in shown[4]
