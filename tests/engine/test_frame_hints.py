"""A method that pandas has and a frame has not: the error says what to write, and that runs."""

from __future__ import annotations

import pytest
from datafusion import col, functions, lit

import blendfusion as bf
from blendfusion import frame_hints


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
