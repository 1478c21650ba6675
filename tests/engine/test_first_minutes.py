"""Newcomers' mistakes in Python, and what they are shown."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import blendfusion as bf

SALES = "id,name,unit price,text\n1,Ann,3.5,good one\n2,Bo,,bad\n3,Çé 😀,2,\n"


@pytest.fixture
def session(tmp_path: Path) -> bf.Session:
    (tmp_path / "sales.csv").write_text(SALES, "utf-8")
    made = bf.connect(bf.ScriptedModel(lambda call: "good" in str(call.values[0])), cache=None)
    made.register_file(tmp_path / "sales.csv")
    return made


QUERIES = {
    'SELECT * FROM sales WHERE name = "Ann"': "Text is written in single quotes: 'Ann'",
    'SELECT llm_filter("Is it good?", text) FROM sales': "single quotes: llm_filter('Is it good?', …)",
    "SELECT llm_filter(‘Is it good?’, text) FROM sales": "this has curly ones",
    "SELECT unit price FROM sales": 'double quotes: "unit price"',
    "SELECT llm_filter(text, 'Is it good?') FROM sales": "first: llm_filter('Is it good?', text)",
    "SELECT llm_filter('Is {text} good?') FROM sales": "llm_filter(…, text)",
    "SELECT llm_classify(text, 'a', 'b') FROM sales": "one list: ['a', 'b']",
    "SELECT llm_classify(text, 'a, b') FROM sales": "Write ['a', 'b']",
    "SELECT llm_filter('ok?', text, model = 'x') FROM sales": "model => …",
    "SELECT llm_filter('ok?', text, on_error := 'keep') FROM sales": "on_error => 'keep'",
    "SELECT 1; SELECT 2": "Call session.sql for each",
    "": "For example: SELECT",
    "How many sales are there?": "session.ask",
    "SELECT TOP 3 * FROM sales": "LIMIT 3",
    "SELECT nane FROM sales": "Did you mean 'name'?",
    'SELECT "nane" FROM sales': "Did you mean 'name'?",
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_refused_with_what_was_meant(session: bf.Session, query: str) -> None:
    with pytest.raises(bf.QueryError) as raised:
        session.sql(query)
    assert QUERIES[query] in str(raised.value.hint)


CALLS: dict[str, tuple[Any, str]] = {
    "no text": (lambda s: s.sql(None), "a query is text, not NoneType"),
    "a list": (lambda s: s.from_pandas([1, 2]), "from_pylist"),
    "a dict": (lambda s: s.from_polars({"a": [1]}), "from_pydict"),
    "twice": (lambda s: s.from_pydict({"a": [1]}, name="sales"), r"deregister_table\('sales'\)"),
    "zero": (lambda s: s.sql("SELECT 1/0").collect(), "nullif"),
    "cast": (lambda s: s.sql("SELECT name::INT FROM sales").collect(), "TRY_CAST"),
    "option": (lambda s: bf.connect(None, cach=None), "Did you mean 'cache'?"),  # type: ignore[call-arg]
    "gpt": (lambda s: bf.connect("gpt-x"), "Did you mean 'openai:gpt-x'?"),
    "claude": (lambda s: bf.connect("claude-x"), "Did you mean 'anthropic:claude-x'?"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_refused_with_what_was_meant(session: bf.Session, name: str) -> None:
    call, said = CALLS[name]
    with pytest.raises(bf.BlendFusionError, match=said):
        call(session)


def test_a_column_in_single_quotes_is_doubted(session: bf.Session) -> None:
    said = "asks about the text 'text'; the column is text without single quotes"
    with pytest.warns(bf.PlanWarning, match=said):
        session.sql("SELECT llm_filter('Good?', 'text') FROM sales")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql("SELECT llm_filter('Good?', 'some text') FROM sales")


def test_frames_with_anything_in_them_come_through(session: bf.Session) -> None:
    df = pd.DataFrame({"unit price": [1.5, np.nan], "Text 😀": ["good 😀", None], "n": [1, 2]})
    query = """SELECT "unit price", llm_filter('Good?', "Text 😀") AS ok FROM df ORDER BY n"""
    found = session.sql(query).to_pandas()
    assert found["ok"].tolist() == [True, None]
    assert np.isnan(found["unit price"][1])
    assert len(df) == 2
    wide = pd.DataFrame({f"c{i}": [i] for i in range(300)})
    frame = session.sql("SELECT * FROM wide")
    assert frame.to_pandas().shape == wide.shape
    assert "… and 280 more columns" in repr(frame)
    assert "c20" not in repr(frame)
    none = pd.DataFrame({"a": []})
    assert session.sql("SELECT * FROM none WHERE llm_filter('Good?', a)").to_pandas().shape == (
        0,
        1,
    )
    assert none.empty


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_before_anything_is_asked(
    session: bf.Session, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    frame = session.sql("SELECT llm_filter('Good?', text) FROM sales")
    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr("blendfusion.errors.find_spec", lambda name: None)
    with pytest.raises(bf.ArgumentError, match=f"{package} is not installed") as raised:
        getattr(frame, f"to_{package}")()
    assert f"pip install {package}" in str(raised.value.hint)
    assert frame.trace.usage.values == 0
