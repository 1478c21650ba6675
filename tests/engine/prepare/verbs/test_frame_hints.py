"""A method that pandas has and a frame has not: the error says what to write, and that runs."""

from __future__ import annotations

import pytest
from datafusion import col, functions, lit

import blendfusion as bf
from blendfusion.prepare.verbs import hints as frame_hints


@pytest.fixture(scope="module")
def frame() -> bf.Frame:
    model = bf.ScriptedModel(lambda call: 1)
    session = bf.connect(model, cache=None, progress="off")
    rows = {
        "id": [1, 2],
        "product": ["a", "b"],
        "stars": [1, 5],
        "text": ["x", None],
        "old": [0, 0],
        "tags": [["a"], []],
    }
    session.from_pydict({"id": [1, 2], "price": [1, 2]}, name="prices")
    return session.from_pydict(rows, name="t")


@pytest.mark.parametrize("names", frame_hints._FORMS)
def test_a_verb_of_pandas_has_a_form_here(
    frame: bf.Frame, names: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    forms = frame_hints._FORMS[names]
    for name in names.split():
        with pytest.raises(AttributeError) as raised:
            getattr(frame, name)
        assert str(raised.value) == f"a frame has no attribute '{name}'\nHint: Write {forms}."
    known = {
        "frame": frame,
        "other": frame.session.table("prices"),
        "bf": bf,
        "col": col,
        "lit": lit,
        "functions": functions,
    }
    eval(f"[{forms}]", known)  # our own forms


def test_columns_and_what_pandas_alone_does(frame: bf.Frame) -> None:
    for name, hint in {
        "stars": "The column is frame['stars'] as a frame, col('stars') in an expression.",
        "iloc": "frame.to_pandas() has it, after a run.",
        "filtre": "Did you mean 'filter'?",
        "zzz": "If pandas has it, frame.to_pandas() has it, after a run.",
    }.items():
        with pytest.raises(AttributeError, match="a frame has no attribute") as raised:
            getattr(frame, name)
        assert str(raised.value).endswith(f"Hint: {hint}")
        assert not hasattr(frame, name)


def test_other_attributes_are_as_they_were(frame: bf.Frame) -> None:
    assert not hasattr(frame, "__dataframe__")
    with pytest.raises(AttributeError, match="no attribute '_private'"):
        frame._private  # noqa: B018 - the attribute is the test
    with pytest.raises(AttributeError):
        object.__new__(type(frame)).origin  # noqa: B018 - a frame that was not made


def test_an_expression_is_no_truth_value(frame: bf.Frame) -> None:
    """``and`` of Python would be its second side alone: rows, and questions, without the first."""
    asked, stars = bf.llm_int("How many?", "text"), bf.col("stars")
    for wrong in (
        lambda: (stars < 3) and asked > 1,
        lambda: asked > 1 and stars < 3,
        lambda: asked > 1 or stars < 3,
        lambda: not bf.llm_filter("Good?", "text"),
        lambda: 1 < asked < 3,
        lambda: asked.cast(str) in ["a", "b"],
        lambda: bool(bf.col.stars.is_null()),
    ):
        with pytest.raises(bf.ArgumentError, match="an expression has no truth value") as raised:
            wrong()
        assert "& for and" in str(raised.value.hint)
    both = frame.filter((col("stars") < 3) & (asked > 0) & (lit(True) | stars.is_null()))
    assert both.to_pydict()["id"] == [1]


def test_a_value_on_the_left_of_an_operator_stays_there(frame: bf.Frame) -> None:
    """DataFusion takes ``10 - column`` for ``column - 10``."""
    stars, asked = bf.col("stars"), bf.llm_int("How many?", "text")
    found = frame.limit(1).select(
        (10 - stars).alias("a"),
        (lit(7) - asked).alias("b"),
        (col("stars") + asked).alias("c"),
        (9 % (asked + 3)).alias("d"),
        (8 / (stars + 1)).alias("e"),
        ((stars < 2) & (asked >= 1)).alias("f"),
    )
    assert found.to_pylist() == [{"a": 9, "b": 6, "c": 2, "d": 1, "e": 4, "f": True}]


def test_brackets_take_names_of_columns(frame: bf.Frame) -> None:
    for key in (0, slice(2), bf.col("stars") < 3):
        with pytest.raises(bf.QueryError, match="in brackets stand the names") as raised:
            frame[key]  # type: ignore[index]
        assert "frame.filter(" in str(raised.value.hint)


def test_a_file_that_cannot_be_written_is_named_as_the_trouble(frame: bf.Frame) -> None:
    with pytest.raises(bf.ExecutionError, match="the rows could not be written"):
        frame.write_csv("/dev/full")


def test_lists_of_other_libraries_are_literals() -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    expected = str(bf.llm_classify("text", ["a", "b"]))
    for made in (numpy.array, pandas.Series, polars.Series, pyarrow.array):
        assert str(bf.llm_classify("text", made(["a", "b"]))) == expected
    for wrong in (bf.ScriptedModel(lambda call: 1), int, {"a", "b"}):
        with pytest.raises(bf.QueryError, match="is neither a column nor a literal") as raised:
            bf.llm_map("How many?", "text", options=wrong)  # type: ignore[arg-type]
        assert "returns='int'" in str(raised.value.hint)
