"""Every error of a user's, as a page: raised before any model call, names the place and a
remedy."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import col
from golden import FOLDER, check

import blendfusion as bf

REVIEWS = pa.table({"id": [1, 2], "text": ["fine", "poor"], "stars": [5, 1]})


def _said(error: bf.BlendFusionError) -> str:
    return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("page", ["queries", "arguments"])
def test_a_wrong_query_is_explained_before_any_model_call(page: str, update_golden: bool) -> None:
    model = bf.ScriptedModel(lambda call: True)

    def comes_out(sql: str) -> str:
        session = bf.connect(model, progress="off")
        session.from_arrow(REVIEWS, name="reviews")
        try:
            session.sql(sql)
        except bf.BlendFusionError as error:
            return _said(error)
        return "no error"

    check(FOLDER / "errors" / f"{page}.txt", comes_out, update=update_golden)
    assert model.calls == []


@pytest.mark.local
def test_a_model_that_cannot_be_had_is_explained(
    update_golden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"not a model")
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "BLENDFUSION_MODEL"):
        monkeypatch.delenv(name, raising=False)

    def ask(spec: str) -> None:
        session = bf.connect(spec, progress="off", timeout_seconds=2.0, on_error="raise")
        session.from_arrow(REVIEWS, name="reviews")
        session.sql("SELECT id FROM reviews WHERE llm_filter('Is it good?', text)").collect()

    def comes_out(spec: str) -> str:
        with pytest.raises(bf.BlendFusionError) as raised:
            ask(spec)
        return _said(raised.value).replace(str(tmp_path), "<folder>")

    check(FOLDER / "errors" / "models.txt", comes_out, update=update_golden)


def test_an_unknown_option_is_explained() -> None:
    with pytest.raises(bf.OptionError, match=r"unknown option 'chunk_row'\nHint: Did you mean"):
        bf.connect("auto", chunk_row=3)


def test_the_table_method_explains_too() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), progress="off")
    session.from_arrow(REVIEWS, name="reviews")
    with pytest.raises(bf.QueryError, match="Did you mean 'reviews'"):
        session.table("review")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            "llm_filter('Good?', s)",
            "llm_filter: a value of type STRUCT is no text\nHint: Write what",
        ),
        ("llm_int('Many?', t, m)", "llm_int: a value of type MAP is no text\nHint: Write what"),
        (
            "llm_members(t, (SELECT t FROM u))",
            "llm_members: a list of texts is needed, not one value\nHint: array_agg",
        ),
        ("llm_qa('Good?', l)", "llm_qa: a value of type LIST is no text\nHint: Write what"),
        ("llm_vqa('Good?', s)", "llm_vqa: a value of type STRUCT is no image\nHint: An image is"),
        (
            "llm_filter('Good?', *)",
            "llm_filter: * is not a value\nHint: Write the names of the columns.",
        ),
    ],
)
def test_an_argument_that_is_no_value_is_explained(call: str, said: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    columns = {
        "t": pa.array(["a"]),
        "s": pa.array([{"a": 1}]),
        "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "l": pa.array([[{"a": 1}]]),
        "b": pa.array([b"\xff"]),
    }
    session.from_arrow(pa.table(columns), name="u")
    for query in (f"SELECT {call} FROM u", f"CREATE TABLE v AS SELECT {call} AS x FROM u"):
        with pytest.raises(bf.BlendFusionError) as failed:
            session.sql(query).collect()
        assert str(failed.value).startswith(said)
    with pytest.raises(bf.QueryError, match="llm_filter: a value of type STRUCT is no text"):
        session.table("u").filter(bf.llm_filter("Good?", col("s"))).collect()


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("n LIKE '1%'", "CAST(column AS TEXT) LIKE"),
        ("llm_list('Which parts?', t) = 'lid'", "array_has(list, 'a')"),
        ("t ~ '('", "behind a backslash"),
        ("regexp_replace(t, '(', '') = ''", "behind a backslash"),
        ("llm_date('When?', t) > 'yesterday'", "TRY_CAST"),
        ("n = 'one'", "TRY_CAST"),
        ("n = (SELECT n FROM u)", "LIMIT 1"),
    ],
)
def test_what_the_engine_refuses_has_a_remedy_and_costs_nothing(condition: str, hint: str) -> None:
    model = bf.ScriptedModel(lambda call: True)
    session = bf.connect(model, cache=None)
    session.from_pydict({"t": ["a", "b"], "n": [1, 2]}, name="u")
    with pytest.raises(bf.BlendFusionError) as failed:
        session.sql(f"SELECT t FROM u WHERE {condition} AND llm_filter('Good?', t)").collect()
    assert hint in (failed.value.hint or "")
    assert "DataFusion" not in str(failed.value)
    assert model.calls == []


def test_lines_on_a_terminal_break_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = bf.QueryError(
        "one two three four\nfive", hint="a/path/that/is/longer/than/a/line of text"
    )
    monkeypatch.setenv("COLUMNS", "20")
    error.print()
    assert capsys.readouterr().err == f"error: {error.message}\nHint: {error.hint}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    error.print()
    lines = [
        "error: one two three",
        "four",
        "five",
        "Hint:",
        "a/path/that/is/longer/than/a/line",
        "of text",
    ]
    assert capsys.readouterr().err.splitlines() == lines


def test_known_columns_are_no_aggregates() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: 1), cache=None)
    session.from_pydict({"stars": [1], "text": ["a"], "a.b": [2]}, name="reviews")
    with pytest.raises(bf.QueryError) as raised:
        session.sql("SELECT avg(stars), sum(stars + 1) FROM reviews GROUP BY category")
    assert raised.value.hint == "Known: a.b, stars, text."
