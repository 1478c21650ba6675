"""Reasons before answers: asked for first, shown beside the answer, never the answer."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Reply, serving

import blendfusion as bf

ASKED = "Do not answer yet"


def replies(answer: object, reason: object = "It says so.") -> bf.ScriptedModel:
    def reply(request: bf.Request) -> Any:
        return reason if ASKED in request.question else answer

    return bf.ScriptedModel(reply)


def connected(model: object, **options: Any) -> bf.Session:
    session = bf.connect(model, cache=None, progress="off", **options)  # type: ignore[arg-type]
    session.from_pydict({"id": [1, 2, 3], "x": ["late again", "in time", None]}, name="t")
    return session


CALLS: dict[str, tuple[str, object, object]] = {
    "llm_filter": ("llm_filter('Is it late?', x, {})", True, True),
    "llm_bool": ("llm_bool('Is it late?', x, {})", True, True),
    "llm_int": ("llm_int('How many?', x, {})", 3, 3),
    "llm_float": ("llm_float('How much?', x, {})", 0.5, 0.5),
    "llm_map": ("llm_map('What?', x, {})", "a", "a"),
    "llm_list": ("llm_list('What?', x, {})", ["a"], ["a"]),
    "llm_score": ("llm_score('How late?', x, {})", 7, 7.0),
    "llm_classify": ("llm_classify(x, ['a', 'b'], {})", "b", "b"),
    "llm_text": ("llm_text('What?', x, {})", "a", "a"),
    "llm_sentiment": ("llm_sentiment(x, {})", "negative", "negative"),
    "llm_extract": ("llm_extract(x, 'n TEXT', {})", {"n": "a"}, {"n": "a"}),
}


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize(("call", "said", "value"), CALLS.values(), ids=[*CALLS])
def test_the_model_writes_a_reason_and_then_answers(
    call: str, said: object, value: object, planner: bool
) -> None:
    model = replies(said)
    session = connected(model, planner=planner)
    shown = call.format("reasoning => 'brief', reasons => true")
    alone = call.format("reasoning => 'brief'")
    query = f"SELECT {shown} AS r, {alone} AS a FROM t ORDER BY id"
    rows = session.sql(query).to_pylist()
    both = {"r": {"value": value, "reason": "It says so."}, "a": value}
    assert rows == [both, both, {"r": None, "a": None}]
    asked = [(ASKED in request.question, request.values) for request in model.calls]
    assert sorted(asked, key=str) == sorted(
        [
            *[(True, (text,)) for text in ("late again", "in time")],
            *[(False, (text, "It says so.")) for text in ("late again", "in time")],
        ],
        key=str,
    )


GROUPS: dict[str, tuple[str, object, object]] = {
    "llm_qa": ("llm_qa('What?', x, {})", "a", "a"),
    "llm_qa with options": ("llm_qa('What?', x, options => ['a', 'b'], {})", "b", "b"),
    "llm_qa of one of its texts": (
        "llm_qa('Which?', x, options => array_agg(x), {})",
        "in time",
        "in time",
    ),
    "llm_validate": ("llm_validate('All is late', x, {})", True, True),
    "llm_answer": ("llm_answer('What?', array_agg(x), {})", "a", "a"),
}


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize(("call", "said", "value"), GROUPS.values(), ids=[*GROUPS])
def test_a_group_has_a_reason_behind_its_texts(
    call: str, said: object, value: object, planner: bool
) -> None:
    model = replies(said)
    session = connected(model, planner=planner)
    shown = call.format("reasoning => 'brief', reasons => true")
    rows = session.sql(f"SELECT {shown} AS r FROM t").to_pylist()
    assert rows == [{"r": {"value": value, "reason": "It says so."}}]
    texts = ("in time", "late again")
    first, second = model.calls
    assert (ASKED in first.question, tuple(sorted(first.values))) == (True, texts)
    assert (ASKED in second.question, second.values[-1]) == (False, "My thought: It says so.")
    assert tuple(sorted(map(str, second.values[:-1]))) == texts
    assert ("none of the texts" in second.question) == (second.task.form == "question")


def test_groups_that_are_equal_reason_once_and_one_without_texts_not_at_all() -> None:
    model = replies(3)
    session = connected(model)
    session.from_pydict({"k": [1, 1, 2, 2, 3], "x": ["a", "b", "b", "a", None]}, name="g")
    call = "llm_qa('How many?', x, returns => 'int', reasoning => 9, reasons => true)"
    rows = session.sql(f"SELECT k, {call} AS r FROM g GROUP BY k ORDER BY k").to_pylist()
    both = {"value": 3, "reason": "It says so."}
    assert [row["r"] for row in rows] == [both, both, None]
    assert len(model.calls) == 2


def test_a_group_without_a_reason_is_asked_about_its_texts_alone() -> None:
    model = replies("a", None)
    call = "llm_qa('What?', x, reasoning => 9, reasons => true)"
    rows = connected(model).sql(f"SELECT {call} AS r FROM t").to_pylist()
    assert rows == [{"r": {"value": "a", "reason": None}}]
    assert [len(request.values) for request in model.calls] == [2, 2]


def test_examples_of_groups_may_have_reasons() -> None:
    model = replies("a")
    call = "llm_qa('What?', x, reasoning => 9, examples => [['a week', 'a', 'It is long.'], ['b', 'c']])"
    connected(model).sql(f"SELECT {call} AS r FROM t").collect()
    first, second = (request.task.examples for request in model.calls)
    assert [(e.values, e.answer) for e in first] == [(("a week",), "It is long.")]
    assert [(e.values, e.answer) for e in second] == [
        (("a week", "My thought: It is long."), "a"),
        (("b",), "c"),
    ]


def test_a_group_that_is_longer_than_the_window_reasons_about_notes() -> None:
    def reply(request: bf.Request) -> Any:
        if ASKED in request.question or "Note in one" in request.question:
            return "It says so."
        return "a"

    model = bf.ScriptedModel(reply)
    session = connected(model)
    session.from_pydict({"x": [f"{n} " + "a long text " * 400 for n in range(9)]}, name="g")
    call = "llm_qa('What?', x, reasoning => 9, reasons => true)"
    [row] = session.sql(f"SELECT {call} AS r FROM g").to_pylist()
    assert row == {"r": {"value": "a", "reason": "It says so."}}
    assert any("Note in one" in request.question for request in model.calls)


def test_the_reason_is_asked_for_within_its_tokens_and_the_answer_within_its_constraint() -> None:
    model = replies("b")
    connected(model).sql("SELECT llm_classify(x, ['a', 'b'], reasoning => 20) FROM t").collect()
    kinds = {(r.constraint.kind, r.constraint.max_tokens) for r in model.calls}
    assert kinds == {("text", 20), ("choice", 0)}


@pytest.mark.parametrize("reason", [None, "", "  ", "https://example.org/a.png"])
def test_an_answer_needs_no_reason(reason: object) -> None:
    session = connected(replies(True, reason))
    call = "llm_filter('Is it late?', x, reasoning => 'brief', reasons => true)"
    rows = session.sql(f"SELECT {call} AS r FROM t WHERE id = 1").to_pylist()
    assert rows == [{"r": {"value": True, "reason": None}}]


def test_a_reason_is_data_and_never_the_answer() -> None:
    rng = random.Random(3)
    words = ["true", "b", "7", '{"answer": "a"}', "Answer: a", "\n- reason: a", "}{", "'"]
    for _ in range(50):
        reason = " ".join(rng.choices(words, k=3))
        model = replies("b", reason)
        call = "llm_classify(x, ['a', 'b'], reasoning => 'brief', reasons => true)"
        [row] = connected(model).sql(f"SELECT {call} AS r FROM t WHERE id = 1").to_pylist()
        assert row["r"] == {"value": "b", "reason": reason.strip()}


def test_reasoning_is_another_question_than_none(tmp_path: Any) -> None:
    model = replies(True)
    session = bf.connect(model, cache=str(tmp_path / "a.sqlite"), progress="off")
    session.from_pydict({"x": ["a"]}, name="t")
    # The reason of nine tokens is the same one, so the question behind it is known.
    for more, calls in (("", 1), (", reasoning => 'brief'", 3), (", reasoning => 9", 4)):
        for _ in range(2):
            frame = session.sql(f"SELECT llm_filter('Is it?', x{more}) AS r FROM t")
            assert frame.to_pylist() == [{"r": True}]
            assert len(model.calls) == calls


def test_the_trace_has_the_reason_and_the_call_its_values() -> None:
    frame = connected(replies(True)).sql(
        "SELECT llm_filter('Is it late?', x, reasoning => 9) FROM t"
    )
    frame.collect()
    said = frame.trace.calls.to_pylist()
    assert [row["answer"] for row in said] == ["It says so."] * 2 + ["true"] * 2
    assert frame.trace.usage_of(frame.prepared.calls[0]).values == 2
    assert frame.trace.values == 4


def test_examples_may_have_reasons() -> None:
    model = replies(True)
    call = (
        "llm_filter('Late?', x, reasoning => 9, examples => "
        "[['a week', 'true', 'A week is long.'], ['at once', 'false']])"
    )
    connected(model).sql(f"SELECT {call} FROM t WHERE id = 1").collect()
    first, second = (request.task.examples for request in model.calls)
    assert [(e.values, e.answer) for e in first] == [(("a week",), "A week is long.")]
    assert [(e.values, e.answer) for e in second] == [
        (("a week", "A week is long."), "true"),
        (("at once", ""), "false"),
    ]


def test_options_of_a_subquery_and_checks_go_with_reasons() -> None:
    model = replies("b")
    session = connected(model)
    session.from_pydict({"name": ["a", "b"]}, name="names")
    call = "llm_map('Which?', x, options => (SELECT name FROM names), reasoning => 9)"
    assert session.sql(f"SELECT {call} AS r FROM t WHERE id = 1").to_pylist() == [{"r": "b"}]
    assert "(a, b)" in model.calls[0].question
    checked = "llm_int('How many?', x, reasoning => 9, check => 'answer < 3')"

    def fewer(request: bf.Request) -> Any:
        if ASKED in request.question:
            return "Many."
        return 2 if "earlier answer" in request.task.columns else 7

    [row] = (
        connected(bf.ScriptedModel(fewer))
        .sql(f"SELECT {checked} AS r FROM t WHERE id = 1")
        .to_pylist()
    )
    assert row == {"r": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("reasons => true", "Write reasoning => 'brief'"),
        ("reasoning => 'long'", "reasoning => 'long' is not possible"),
        ("reasoning => 0", "tokens of a reason"),
        ("reasoning => 'brief', sample => ['a', 'b']", "does not go with sample"),
        ("reasoning => 'brief', model => ['a', 'b'], accuracy => 0.9", "not go with a cascade"),
    ],
)
def test_what_does_not_go_together_is_an_error(options: str, message: str) -> None:
    with pytest.raises(bf.QueryError, match=message):
        connected(replies(True)).sql(f"SELECT llm_filter('q', x, {options}) FROM t")


def test_the_struct_of_a_reason_stands_where_no_answer_is_needed() -> None:
    session = connected(replies(True))
    call = "llm_filter('q', x, reasoning => 9, reasons => true)"
    assert session.sql(f"SELECT id FROM t WHERE {call}['value'] ORDER BY id").to_pydict() == {
        "id": [1, 2]
    }
    with pytest.raises(bf.QueryError, match="reasons => true gives a struct of value and reason"):
        session.sql(f"SELECT id FROM t WHERE {call}")


# --- servers --------------------------------------------------------------------------------------


def script_of(reason: Callable[[], Reply]) -> Callable[[dict[str, Any]], Reply]:
    def script(body: dict[str, Any]) -> Reply:
        return reason() if ASKED in json.dumps(body["messages"]) else Reply("b")

    return script


def thought_apart() -> Reply:
    message = {"role": "assistant", "content": "", "reasoning_content": "It was late."}
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    return Reply(raw=json.dumps({"choices": [choice], "usage": {}}).encode())


REASONS: dict[str, Callable[[], Reply]] = {
    "a text": lambda: Reply("It was late."),
    "cut off": lambda: Reply("It was late.", finish="length"),
    "behind a thought": lambda: Reply("<think>Hm.</think>It was late."),
    "a thought that was cut off": lambda: Reply("<think>It was late.", finish="length"),
    "a thought of its own": thought_apart,
}


@pytest.mark.parametrize("kind", REASONS)
def test_a_server_reasons_as_it_does(kind: str) -> None:
    call = "llm_classify(x, ['a', 'b'], reasoning => 33, reasons => true)"
    with serving(script_of(REASONS[kind])) as server:
        session = connected(f"openai:m@{server.url}")
        frame = session.sql(f"SELECT {call} AS r FROM t WHERE id = 1")
        assert frame.to_pylist() == [{"r": {"value": "b", "reason": "It was late."}}]
        bodies = [body for body in server.bodies if "messages" in body]
    reasons = [body["max_tokens"] for body in bodies if ASKED in json.dumps(body["messages"])]
    assert reasons == [33]
    answers = [json.dumps(b["messages"]) for b in bodies if ASKED not in json.dumps(b["messages"])]
    assert answers
    assert all("It was late." in messages for messages in answers)
    assert frame.trace.cut_off == 0


# --- the packaged model ---------------------------------------------------------------------------


@pytest.mark.local
def test_the_packaged_model_answers_behind_its_reason() -> None:
    session = connected("smollm2")
    call = "llm_classify(x, ['late', 'punctual'], reasoning => 8, reasons => true)"
    frame = session.sql(f"SELECT id, {call} AS r FROM t WHERE id < 3 ORDER BY id")
    rows = frame.to_pylist()
    assert {row["r"]["value"] for row in rows} <= {"late", "punctual"}
    assert all(row["r"]["reason"] for row in rows)
    reasons = [r for r in frame.trace.calls.to_pylist() if ASKED in r["question"]]
    assert all(0 < r["completion_tokens"] <= 9 for r in reasons)
    again = session.sql(f"SELECT id, {call} AS r FROM t WHERE id = 2").to_pylist()
    assert again == rows[1:]
