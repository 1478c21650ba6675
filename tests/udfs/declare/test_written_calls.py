"""What tells two calls apart is in their text, and what a call's text says can be written."""

from __future__ import annotations

import gc

import pytest
from garbage import after_collection

import blendfusion as bf
from blendfusion.udfs.declare.call_registry import CALLS


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: None), cache=None, progress="off")
    made.from_pydict({"x": ["a"]}, name="t")
    return made


DIFFERENT = [
    {},
    {"regex": "[a-z]+"},
    {"regex": "[0-9]+"},
    {"returns": "int"},
    {"returns": "float"},
    {"returns": "list[int]"},
    {"returns": "list[date]"},
    {"options": ["a", "b"]},
    {"examples": [["v", "it's"]]},
    {"consistency": 3},
]


def test_calls_that_differ_in_one_option_can_be_selected_together(session: bf.Session) -> None:
    frame = session.table("t").select(*(bf.llm_map("q", "x", **given) for given in DIFFERENT))
    assert len(set(frame.schema().names)) == len(DIFFERENT)


def test_the_name_of_a_column_is_a_call_that_can_be_written(session: bf.Session) -> None:
    for given in DIFFERENT:
        (name,) = session.table("t").select(bf.llm_map("q", "x", **given)).schema().names
        (again,) = session.sql(f"SELECT {name} FROM t").schema().names
        assert again == name


def test_explain_tells_patterns_and_examples_apart(session: bf.Session) -> None:
    query = """SELECT llm_map('q', x, regex => '[a-z]+') AS a, llm_map('q', x, regex => '[0-9]+') AS b,
        llm_map('q', x, examples => [['v', 'w']]) AS c FROM t"""
    text = session.sql(query).explain_text(estimates=False)
    for shown in ("regex => '[a-z]+'", "regex => '[0-9]+'", "examples => [['v', 'w']]"):
        assert f"ask llm_map('q', t.x, {shown})" in text


@pytest.mark.long
def test_calls_go_with_the_session_that_made_them() -> None:
    gc.collect()
    before = len(CALLS)
    with bf.connect(bf.ScriptedModel(lambda call: 1), cache=None, progress="off") as session:
        session.from_pydict({"x": ["a"]}, name="t")
        for number in range(300):
            session.sql(f"SELECT llm_int('question {number}', x) FROM t").collect()
            session.table("t").select(bf.llm_int(f"another {number}", "x")).collect()
        assert len(CALLS) > before
    del session
    assert after_collection(lambda: len(CALLS) <= before)
