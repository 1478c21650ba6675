"""One question put in several ways: what most of the answers say."""

from __future__ import annotations

from math import exp, log

import pytest

import blendfusion as bf
from blendfusion.models.services.prompts.prompt import render
from blendfusion.models.wrappers.self_consistency import majority
from blendfusion.types import Answer, Constraint, Task, Usage

AB = ("a", "b")


def test_what_most_say_counts() -> None:
    assert majority([Answer("x"), Answer("y"), Answer("y")]).text == "y"


def test_of_equals_the_usual_way_counts() -> None:
    assert majority([Answer("y"), Answer("x")]).text == "y"


def test_a_sure_answer_outweighs_two_unsure_ones() -> None:
    given = [Answer("a", logprob=log(0.99)), *[Answer("b", logprob=log(0.6))] * 2]
    answer = majority(given, AB)
    assert answer.text == "a"
    assert answer.logprob is not None
    assert exp(answer.logprob) == pytest.approx((0.99 + 0.4 + 0.4) / 3)


def test_without_probabilities_the_share_of_the_answers_is_one() -> None:
    answer = majority([Answer("a"), Answer("b"), Answer("a")], AB)
    assert answer.logprob == pytest.approx(log(2 / 3))


def test_failed_answers_do_not_count_unless_all_are() -> None:
    failed = Answer.failed("no", Usage(values=1, failed=1, prompt_tokens=5))
    answer = majority([failed, Answer("x", usage=Usage(values=1, prompt_tokens=7))])
    assert (answer.text, answer.usage) == ("x", Usage(values=1, prompt_tokens=12))
    assert majority([failed, failed]).error == "no"
    assert majority([failed, failed]).usage == Usage(values=1, failed=1, prompt_tokens=10)


def test_the_ways_differ_in_the_order_of_examples_and_options() -> None:
    task = Task("llm_classify", "", Constraint("choice", options=("a", "b", "c")), ("text",))
    ways = [render(in_the_way(task, way)) for way in range(3)]
    assert len({way.question for way in ways}) == 3
    assert len({way.shots for way in ways}) == 3
    assert len({frozenset(way.shots) for way in ways}) == 1
    assert ways[0] == render(task)


def in_the_way(task: Task, way: int) -> Task:
    return Task(task.ingredient, task.question, task.constraint, task.columns, variant=way)


@pytest.mark.parametrize("planner", [True, False])
def test_a_value_is_asked_as_often_as_wanted_and_counts_once(planner: bool) -> None:
    model = bf.ScriptedModel(lambda call: call.task.variant > 0)
    session = bf.connect(model, planner=planner)
    session.from_pydict({"text": ["x", "y", "x"]}, name="t")
    frame = session.sql("SELECT llm_filter('Is it?', text, consistency => 3) AS f FROM t")
    assert frame.to_pydict()["f"] == [True] * 3
    assert frame.trace.usage.values == 2
    assert sorted(call.task.variant for call in model.calls) == [0, 0, 1, 1, 2, 2]
    assert {call.task.consistency for call in model.calls} == {1}
    again = session.sql("SELECT llm_filter('Is it?', text, consistency => 3) AS f FROM t")
    again.collect()
    assert again.trace.usage.cached == 2


def test_the_usual_way_is_the_question_itself_and_is_asked_once() -> None:
    model = bf.ScriptedModel(lambda call: True)
    session = bf.connect(model)
    session.from_pydict({"text": ["x", "y"]}, name="t")
    session.sql("SELECT llm_filter('Is it?', text) FROM t WHERE text = 'x'").collect()
    assert len(model.calls) == 1
    frame = session.sql("SELECT llm_filter('Is it?', text, consistency => 3) FROM t")
    frame.collect()
    assert len(model.calls) == 1 + 2 + 3
    assert (frame.trace.usage.values, frame.trace.usage.cached) == (2, 0)
    session.sql("SELECT llm_filter('Is it?', text) FROM t").collect()
    assert len(model.calls) == 6


def test_no_way_is_asked_again_after_a_run_that_was_interrupted() -> None:
    def answers(call: bf.Request) -> bool:
        if call.task.variant == 2 and not working:
            raise KeyboardInterrupt
        return True

    working: list[bool] = []
    model = bf.ScriptedModel(answers)
    session = bf.connect(model)
    session.from_pydict({"text": [f"text {i}" for i in range(20)]}, name="t")
    frame = session.sql("SELECT llm_filter('Is it?', text, consistency => 3) AS f FROM t")
    with pytest.raises(KeyboardInterrupt):
        frame.collect()
    working.append(True)
    asked = len(model.calls)
    assert frame.to_pydict()["f"] == [True] * 20
    assert len(model.calls) == asked + 20


@pytest.mark.parametrize("wrong", ["0", "10", "'3'", "TRUE", "2.5"])
def test_the_number_of_ways_is_checked(wrong: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True))
    session.from_pydict({"text": ["x"]}, name="t")
    with pytest.raises(bf.QueryError, match="consistency =>"):
        session.sql(f"SELECT llm_filter('Is it?', text, consistency => {wrong}) FROM t").collect()


@pytest.mark.long
@pytest.mark.local
def test_a_local_model_answers_by_all_ways() -> None:
    call = "llm_filter('Is this review positive?', text, consistency => 3, confidence => 'keep')"
    with bf.connect("smollm2", cache=None) as session:
        session.from_pydict({"text": ["I loved it.", "It broke on the first day."]}, name="t")
        rows = session.sql(f"SELECT {call} AS f FROM t").to_pydict()["f"]
    assert [row["value"] for row in rows] == [True, False]
    assert all(0.5 <= row["confidence"] <= 1 for row in rows)
