"""A frame that is displayed asks nothing: rows where all answers are stored, else the plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import browser, opened
from scripts import Counted, spoken

import blendfusion as bf

QUERY = "SELECT x, llm_int('length', x) AS letters FROM t WHERE llm_filter('holds e', x)"


@pytest.fixture
def db() -> Counted:
    return Counted(spoken).add("t", {"x": ["tea", "two", "<b>seven</b>"], "n": [1, 2, 3]})


@pytest.mark.parametrize("planner", [True, False])
def test_what_has_not_run_shows_its_plan_and_asks_nothing(db: Counted, planner: bool) -> None:
    db.session.options = db.session.options.with_(planner=planner)
    frame = db.session.sql(QUERY)
    text, html = repr(frame), frame._repr_html_()
    assert text.startswith(
        "Frame [x: string, letters: int64], not run: it asks a model. Its rows: "
    )
    assert ("Expected: about 5 values" in text) is planner
    assert ("Stage 1 → result" in text) is planner
    assert "ask llm_filter(&#x27;holds e&#x27;, " in html
    assert db.model.calls == []
    assert frame.trace.usage == bf.Usage()


def test_what_has_run_shows_its_rows_and_keeps_its_trace(db: Counted) -> None:
    frame = db.session.sql(QUERY)
    frame.collect()
    asked, trace = len(db.model.calls), frame.trace
    assert "| tea          | 3       |" in repr(frame)
    html = frame._repr_html_()
    assert "<bdi>&lt;b&gt;seven&lt;/b&gt;</bdi>" in html
    assert "<script" not in html
    assert len(db.model.calls) == asked
    assert frame.trace is trace


def test_rows_are_shown_if_those_that_are_shown_are_known() -> None:
    db = Counted(spoken).add("t", {"x": [f"v{i:03}" for i in range(100)]})
    db.session.sql("SELECT llm_int('length', x) FROM (SELECT x FROM t LIMIT 50)").collect()
    asked = len(db.model.calls)
    assert "Data truncated" in repr(db.session.sql("SELECT x, llm_int('length', x) FROM t"))
    assert "not run" in repr(
        db.session.sql("SELECT x, llm_int('length', x) FROM t WHERE x > 'v06'")
    )
    assert len(db.model.calls) == asked


def test_a_value_that_failed_is_not_asked_again() -> None:
    db = Counted(lambda call: None).add("t", {"x": ["a"]})
    frame = db.session.sql("SELECT llm_int('q', x) FROM t")
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    assert "not run" in repr(frame)
    assert len(db.model.calls) == 1


def test_aggregates_and_options_from_data_ask_nothing(db: Counted) -> None:
    for query in (
        "SELECT llm_qa('join', x) FROM t",
        "SELECT llm_classify(x, (SELECT llm_map('upper', x) FROM t)) FROM t",
    ):
        assert "not run" in repr(db.session.sql(query))
    assert db.model.calls == []


def test_a_frame_that_writes_does_not_write(db: Counted) -> None:
    db.session.sql("CREATE TABLE kept (x TEXT)")
    frame = db.session.sql("INSERT INTO kept SELECT llm_map('upper', x) FROM t")
    assert "not run" in repr(frame)
    assert db.session.sql("SELECT count(*) AS n FROM kept").to_pydict() == {"n": [0]}
    assert db.model.calls == []


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO kept VALUES ('a')", "COPY t TO '{}/t.csv'", "INSERT INTO kept SELECT x FROM t"],
)
def test_a_display_writes_nothing_without_calls_either(
    db: Counted, statement: str, tmp_path: Path
) -> None:
    """A notebook displays a frame as text and as HTML, which would insert the rows twice."""
    db.session.sql("CREATE TABLE kept (x TEXT)")
    frame = db.session.sql(statement.format(tmp_path))
    assert "not run: it writes" in repr(frame)
    assert "it writes, and a display writes nothing" in frame._repr_html_()
    assert db.session.sql("SELECT count(*) AS n FROM kept").to_pydict() == {"n": [0]}
    assert not [*tmp_path.iterdir()]


def test_no_model_is_loaded_and_no_server_called(tmp_path: Path) -> None:
    with bf.connect("openai:none@http://127.0.0.1:9/v1", cache=None, progress="off") as session:
        session.from_pydict({"x": ["a"]}, name="t")
        assert "Expected: 1 value" in repr(session.sql("SELECT llm_int('q', x) FROM t"))
        assert "not run" in repr(session.sql("SELECT llm_qa('q', x) FROM t"))


def test_without_a_model_the_plan_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLENDFUSION_MODEL", "openai:")
    with bf.connect(cache=None) as session:
        session.from_pydict({"x": ["a"]}, name="t")
        assert "ask llm_int" in repr(session.sql("SELECT llm_int('q', x) FROM t"))


def test_a_frame_without_calls_is_datafusion_s_in_a_terminal(db: Counted) -> None:
    frame = db.session.sql("SELECT n FROM t ORDER BY n")
    assert repr(frame).startswith("DataFrame()\n+---+\n| n |")


def test_values_are_text_in_a_notebook_whether_a_model_is_asked_or_not(db: Counted) -> None:
    html = db.session.table("t")._repr_html_()
    assert "<bdi>&lt;b&gt;seven&lt;/b&gt;</bdi>" in html
    assert '<td class="n"><bdi>3</bdi></td>' in html
    assert "3 rows" in html
    many = db.session.from_pydict({"x": [None, *map(str, range(30))]})
    assert "The first 20 rows" in many._repr_html_()
    assert '<span class="mute">NULL</span>' in many._repr_html_()


@pytest.mark.skipif(browser() is None, reason="needs Chromium on the PATH")
def test_a_browser_shows_what_notebooks_get(db: Counted, tmp_path: Path) -> None:
    frame = db.session.sql(QUERY)
    before = frame._repr_html_()
    frame.collect()
    page = tmp_path / "notebook.html"
    page.write_text(f"<!doctype html>{before}{frame.trace._repr_html_()}", encoding="utf-8")
    shown = opened(page)
    assert shown.console == []
    assert shown.dom.count("Stage 1 → result") == 2
