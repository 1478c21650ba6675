"""``bf.decide``: several questions about one text, or about each row of a frame."""

from __future__ import annotations

from typing import Any

import pytest
from datafusion import col
from decision_server import Decisions
from hypothesis import given
from hypothesis import strategies as st
from loopback import serving

import blendfusion as bf
from blendfusion.errors import ArgumentError
from blendfusion.udfs.declare.decision_questions import question_by_shape, read_questions

QUESTIONS = {
    "angry": "Is the writer angry?",
    "team": {"question": "Which team?", "options": ["billing", "bugs"]},
    "urgency": {"question": "How urgent?", "levels": ["low", "high"]},
}


def weigh(request: bf.Request) -> Any:
    if request.constraint.kind == "boolean":
        return {True: 0.9, False: 0.1}
    return "bugs" if request.constraint.kind == "choice" else {0: 1, 1: 3}


@pytest.fixture
def reviews() -> bf.Frame:
    session = bf.connect(bf.ScriptedModel(weigh), progress="off", cache=None)
    return session.from_pydict({"Id": [1, 2], "text": ["It crashes!", None]}, "reviews")


def test_all_answers_are_one_struct(reviews: bf.Frame) -> None:
    rows = reviews.select("text", bf.decide("text", QUESTIONS)).to_pydict()
    answered = {"angry": 0.9, "team": "bugs", "urgency": 0.75}
    assert rows["decision"] == [answered, dict.fromkeys(answered)]


def test_a_frame_gets_a_column(reviews: bf.Frame) -> None:
    rows = bf.decide(reviews, QUESTIONS, name="d").to_pylist()
    assert [list(row) for row in rows] == [["Id", "text", "d"]] * 2
    assert rows[1]["d"] == {"angry": 0.9, "team": "bugs", "urgency": 0.75}


def test_fields_filter_and_sort(reviews: bf.Frame) -> None:
    frame = reviews.select("Id", bf.decide(col("text"), QUESTIONS, name="d"))
    assert frame.filter(col("d")["angry"] > 0.5).select('"Id"').to_pydict() == {"Id": [1]}


def test_the_json_of_a_decision_model_is_read(reviews: bf.Frame) -> None:
    questions = (
        '{"late": {"type": "noul", "instructions": "Late?", "criteria": {"true": "after Monday"}},'
        ' "team": {"type": "choice", "criteria": {"billing": "money", "bugs": null}}}'
    )
    frame = reviews.limit(1).select(bf.decide(["Id", "text"], questions))
    assert frame.to_pydict() == {"decision": [{"late": 0.9, "team": "bugs"}]}


def test_a_decision_model_reads_the_text_once() -> None:
    decisions = Decisions(
        lambda state, question, options: [0.8] + [0.2 / (len(options) - 1)] * (len(options) - 1)
    )
    with serving(decisions.systemone) as server:
        name = f"systemone:jev-latest@{server.url.removesuffix('/v1')}"
        session = bf.connect(name, cache=None, progress="off")
        frame = session.from_pydict({"text": ["one", "two", "three"]})
        rows = frame.select(bf.decide("text", QUESTIONS)).to_pydict()["decision"]
        readings = [len(body["questions"]) for body in server.bodies]
    assert rows[0] == {"angry": 0.8, "team": "billing", "urgency": pytest.approx(0.2)}
    assert sorted(readings) == [3, 3, 3]  # fmt: skip


@pytest.mark.parametrize(
    "questions",
    [{}, "", "[]", "{", 3, None, {"": "x"}, {"a": 3}, {"a": {}}, {"a": {"kind": "noul"}},
     {"a": {"type": "box", "question": "Where?"}}, {"a": {"type": "choice", "question": "Which?"}},
     {"a": {"question": "Which?", "options": []}}, {"a": {"question": "Which?", "options": ["x", "x"]}},
     {"a": {"question": "How?", "levels": ["one"]}}, {"a": {"question": "How?", "levels": "low"}},
     '{"a": "x", "a": "y"}'],
)  # fmt: skip
def test_other_questions_are_refused_before_anything_is_asked(questions: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        bf.decide("text", questions)
    assert "Write {" in str(caught.value)


def test_a_frame_without_columns_is_refused() -> None:
    session = bf.connect(bf.ScriptedModel(weigh), progress="off", cache=None)
    with pytest.raises(ArgumentError, match="no column"):
        bf.decide(session.from_pydict({"a": [1]}).select(), QUESTIONS)


def test_criteria_alone_tell_the_kind() -> None:
    kinds = [
        question_by_shape("a", criteria).kind
        for criteria in ({"true": "yes"}, {"true": "x", "other": "y"}, ["low", "high"])
    ]
    assert kinds == ["yes_no", "choice", "score"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_any_object_is_questions_or_a_clear_error(given_object: Any) -> None:
    try:
        questions = read_questions({"a": given_object})
    except ArgumentError:
        return
    assert questions[0].text or questions[0].options
