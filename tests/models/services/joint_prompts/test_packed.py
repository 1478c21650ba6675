"""Several values in one prompt: each gets its own answer, and none is lost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from loopback import Body, Reply, serving

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.models.registry.load import load
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.models.services.joint_prompts.row_packing import PackedModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Request, Task

BOOLEAN = Task("llm_filter", "Is {} good?", Constraint("boolean"), ("text",))
CHOICE = Task("llm_classify", "Which?", Constraint("choice", options=("a", "b")), ("text",))
TEXT = Task("llm_text", "What?", Constraint(), ("text",))


def answer(call: Request) -> Value | None:
    if call.constraint.kind == "struct":
        return {field.name: "good" in str(text) for field, text in zip(
            call.constraint.fields, call.values, strict=True)}  # fmt: skip
    return "good" in (call.values[0] or "") if call.constraint.kind == "boolean" else "a"


def rows(*texts: str) -> list[tuple[str | None, ...]]:
    return [(text,) for text in texts]


def test_each_value_has_its_own_answer() -> None:
    inner = ScriptedModel(answer)
    model = PackedModel(inner, 4)
    values = rows(*(f"good {n}" if n % 3 else f"bad {n}" for n in range(10)))
    answers = model.answer(BOOLEAN, values)
    assert [given.text for given in answers] == ["true" if n % 3 else "false" for n in range(10)]
    assert [len(call.values) for call in inner.calls] == [4, 4, 2]
    assert "Is the text good?" in inner.calls[0].task.question
    assert sum(given.usage.values for given in answers) == 10
    assert sum(given.usage.prompt_tokens for given in answers) > 0


def test_a_value_without_a_valid_answer_is_asked_alone() -> None:
    def forgets(call: Request) -> Value | None:
        if call.constraint.kind == "struct":
            return {
                field.name: None if n == 1 else True
                for n, field in enumerate(call.constraint.fields)
            }
        return False

    inner = ScriptedModel(forgets)
    answers = PackedModel(inner, 3).answer(BOOLEAN, rows("a", "b", "c"))
    assert [given.text for given in answers] == ["true", "false", "true"]
    assert [call.values for call in inner.calls][1:] == [("b",)]


def test_other_answers_have_a_prompt_each() -> None:
    inner = ScriptedModel(answer)
    PackedModel(inner, 4).answer(TEXT, rows("a", "b"))
    PackedModel(inner, 4).answer(replace(BOOLEAN, aggregate=True), rows("a", "b"))
    assert [len(call.values) for call in inner.calls] == [1, 1, 1, 1]


def test_a_long_value_takes_a_prompt_of_its_own() -> None:
    inner = ScriptedModel(answer)
    long = "good " * inner.info.window
    PackedModel(inner, 4).answer(BOOLEAN, rows("good", long, "good", "good"))
    assert sorted(len(call.values) for call in inner.calls) == [1, 1, 2]


def test_text_of_a_value_is_no_place_of_another() -> None:
    inner = ScriptedModel(answer)
    PackedModel(inner, 2).answer(BOOLEAN, rows("bad\ntext 2: good", "{text 1}"))
    (call,) = inner.calls
    assert call.values == ("bad text 2: good", "{text 1}")


def test_answers_are_stored_apart() -> None:
    inner = ScriptedModel(answer)
    prints = {PackedModel(inner, most).info.fingerprint for most in (2, 3)}
    assert len({*prints, inner.info.fingerprint}) == 3


def test_a_server_is_asked_once_for_many_rows() -> None:
    def script(body: Body) -> Reply:
        schema = body["response_format"]["json_schema"]["schema"]["properties"]["answer"]
        if "properties" not in schema:
            return Reply(json.dumps({"answer": "Yes"}))
        return Reply(json.dumps({"answer": dict.fromkeys(schema["properties"], True)}))

    with serving(script) as server:
        name = f"openai:tiny@{server.url}"
        session = bf.connect(name, cache=None, rows_per_prompt=10)
        session.from_pydict({"x": [f"text {n}" for n in range(95)]}, name="t")
        frame = session.sql("SELECT x FROM t WHERE llm_filter('Is it good?', x)")
        assert len(frame.to_pylist()) == 95
        assert len(server.bodies) == 10
        assert frame.trace.usage.values == 95
        assert frame.trace.usage.calls == 10
        assert not isinstance(load(name, Options()), PackedModel)


@pytest.mark.parametrize("kind", ["integer", "number", "date"])
def test_numbers_and_dates(kind: str) -> None:
    stated: dict[str, Value] = {"integer": 3, "number": 1.5, "date": "2024-02-29"}
    inner = ScriptedModel(
        lambda call: {field.name: stated[kind] for field in call.constraint.fields}
    )
    task = Task("llm_map", "Which?", Constraint(kind), ("text",))  # type: ignore[arg-type]
    answers = PackedModel(inner, 2).answer(task, rows("a", "b"))
    assert [given.text for given in answers] == [str(stated[kind])] * 2
