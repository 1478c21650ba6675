"""What reasoning models think is never an answer: as servers send it, whole, repeated or cut off."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import pytest
from loopback import Loopback, Reply, serving

import blendfusion as bf
from blendfusion.models.prompts.thoughts import behind_thoughts, without_thoughts
from blendfusion.models.services.http.completion import read_completion
from blendfusion.run.reports.trace import AnswerWarning

CHANNELS = (
    "<|channel|>analysis<|message|>Oslo? No.<|end|><|start|>assistant"
    "<|channel|>final<|message|>Rome<|return|>"
)
WHOLE = {
    "DeepSeek, Qwen": "<think>\nOslo? No.\n</think>\n\nRome",
    "an empty thought": "<think>\n\n</think>\n\nRome",
    "the beginning in the prompt": "Oslo? No.\n</think>\n\nRome",
    "several": "<think>Oslo?</think>\n<think>No.</think>\nRome",
    "an end too many": "<think>Oslo?</think> No.</think>Rome",
    "behind the answer": "Rome<think>or Oslo?</think>",
    "large letters": "<THINK>Oslo?</THINK>Rome",
    "thinking": "<thinking>Oslo? No.</thinking>Rome",
    "Exaone": "<thought>\nOslo?\n</thought>\n\nRome",
    "Seed": "<seed:think>Oslo?</seed:think>Rome",
    "reasoning": "<reasoning>Oslo?</reasoning>\nRome",
    "Hunyuan": "<think>\nOslo?\n</think>\n<answer>\nRome\n</answer>",
    "Magistral": "[THINK]Oslo? No.[/THINK]Rome",
    "Kimi": "◁think▷Oslo?◁/think▷Rome",
    "Cohere": "<|START_THINKING|>Oslo?<|END_THINKING|><|START_RESPONSE|>Rome<|END_RESPONSE|>",
    "Sky-T1": "<|begin_of_thought|>\nOslo?\n<|end_of_thought|>\n\n<|begin_of_solution|>Rome<|end_of_solution|>",
    "MedGemma": "<unused94>thought\nOslo?<unused95>Rome",
    "Gemma": "<|channel>thought\nOslo?<channel|>Rome",
    "gpt-oss": CHANNELS,
    "gpt-oss, thoughts and comments": CHANNELS.replace(
        "<|start|>assistant<|channel|>final",
        "<|channel|>commentary<|message|>Hm.<|end|><|start|>assistant<|channel|>final",
    ),
    "gpt-oss under a schema": CHANNELS.replace("final<", "final <|constrain|>json<"),
    "gpt-oss without its marks": "analysisOslo? No.assistantfinalRome",
    "Granite": "Here is my thought process:\n\nOslo? No.\n\nHere is my response:\n\nRome",
}
CUT = {
    "within": "<think>\nOkay, the user asks",
    "within the second": "<think>a</think><think>Okay, the user",
    "behind some words": "Rome. <think>Or is it",
    "thinking": "<thinking>Okay",
    "Magistral": "[THINK]Okay, the user",
    "Kimi": "◁think▷Okay",
    "Cohere": "<|START_THINKING|>Okay",
    "gpt-oss": "<|channel|>analysis<|message|>The user asks",
    "gpt-oss, between messages": "<|channel|>analysis<|message|>The user asks<|end|><|start|>assist",
    "gpt-oss without its marks": "analysisThe user asks",
    "Granite": "Here is my thought process: the user",
}


@pytest.mark.parametrize("reply", WHOLE.values(), ids=WHOLE)
def test_what_is_said_remains(reply: str) -> None:
    assert without_thoughts(reply) == "Rome"
    assert "Oslo" not in reply[behind_thoughts(reply) :] or reply.startswith("Rome")


@pytest.mark.parametrize("reply", CUT.values(), ids=CUT)
def test_a_reply_that_ends_within_a_thought_says_nothing(reply: str) -> None:
    assert without_thoughts(reply) is None


@pytest.mark.parametrize(
    "text",
    [*("", " Rome\n", "analysis of the text", "I think so.", "[think] of it", "a < b > c", "</b>")],
)
def test_a_reply_without_a_thought_is_unchanged(text: str) -> None:
    assert without_thoughts(text) == text


def test_of_any_mixture_of_marks_nothing_within_a_thought_is_left() -> None:
    dice = random.Random(5)
    begins, ends = ("<think>", "[THINK]", "<thinking>", "◁think▷"), ("</think>", "[/THINK]")
    for _ in range(2_000):
        parts, within = [], False
        for number in range(dice.randint(1, 12)):
            mark = dice.choice((*begins, *ends, ""))
            within = (within or mark in begins) and mark not in ends
            parts += [mark, f" {'thought' if within else 'said'}{number} "]
        said = without_thoughts("".join(parts))
        assert (said is None) == within
        assert "thought" not in (said or "")


def served(expression: str, reply: Reply | bytes) -> tuple[object, list[str], bf.Frame, Loopback]:
    """The value of an expression over one text that a server answers so, and the warnings."""
    made = reply if isinstance(reply, Reply) else Reply(raw=reply)
    with serving(lambda body: made) as server, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, retries=0)
        session.from_pydict({"x": ["the box broke"]}, name="t")
        frame = session.sql(f"SELECT {expression} AS z FROM t")
        [row] = frame.to_pylist()
    shown = [str(one.message) for one in told if one.category is AnswerWarning]
    return row["z"], shown, frame, server


@pytest.mark.parametrize(
    "question", ["llm_text('Which city?', x)", "llm_classify(x, ['Rome', 'Oslo'])"]
)
@pytest.mark.parametrize("form", WHOLE)
def test_a_query_has_what_was_said(form: str, question: str) -> None:
    value, told, _, _ = served(question, Reply(WHOLE[form]))
    assert (value, told) == ("Rome", [])


@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize("form", CUT)
@pytest.mark.parametrize("question", ["llm_text('Which city?', x)", "llm_int('How many?', x)"])
def test_a_query_tells_what_was_cut_off(form: str, finish: str, question: str) -> None:
    value, told, frame, _ = served(question, Reply(CUT[form], finish=finish))
    assert value is None
    assert frame.trace.usage.failed == 1
    reason = "ended within a thought" if finish == "stop" else "cut off within a thought at 128"
    assert reason in told[0]


def message(**fields: Any) -> bytes:
    finish = fields.pop("finish", "stop")
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **fields}}
    return json.dumps({"choices": [choice]}).encode()


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_a_field_of_thoughts_is_never_read(name: str) -> None:
    said = served("llm_text('q', x)", message(content="Rome", **{name: "Oslo"}))
    assert (said[0], said[1]) == ("Rome", [])
    for content in (None, ""):
        fields = {"content": content, name: "Oslo", "finish": "length"}
        value, told, _, _ = served("llm_text('q', x)", message(**fields))
        assert value is None
        assert "cut off within a thought at 128 tokens" in told[0]


def test_a_part_that_is_a_thought_is_never_read() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Oslo"}]},
        {"type": "reasoning", "text": "Oslo"},
        {"type": "text", "text": "Rome"},
    ]
    assert read_completion(json.loads(message(content=parts))).text == "Rome"


def test_a_text_that_was_cut_off_is_marked_counted_and_told() -> None:
    value, told, frame, _ = served("llm_text('q', x)", Reply("The box fell off", finish="length"))
    assert value == "The box fell off"
    assert told == [
        "1 answer was cut off at max_tokens: only its beginning is in the result. "
        "frame.trace.calls marks it (cut_off). A larger max_tokens lets models finish."
    ]
    assert frame.trace.cut_off == 1
    assert frame.trace.calls["cut_off"].to_pylist() == [True]


def test_a_cut_text_is_told_again_where_it_comes_from_the_cache() -> None:
    with serving(lambda body: Reply("The box", finish="length")) as server:
        session = bf.connect(f"openai:tiny@{server.url}", cache="memory", retries=0)
        session.from_pydict({"x": ["the box broke"]}, name="t")
        for cached in (0, 1):
            frame = session.sql("SELECT llm_text('q', x) AS z FROM t")
            with pytest.warns(AnswerWarning, match="1 answer was cut off"):
                frame.to_pylist()
            assert frame.trace.usage.cached == cached


def test_a_model_that_thinks_keeps_the_standard_form() -> None:
    """What it says behind its thought shows that the form was taken."""

    def script(body: Any) -> Reply:
        wrapped = '{"answer": "Yes"}' if "response_format" in body else "Yes"
        return Reply(f"<think>Hm.</think>{wrapped}")

    with serving(script) as server:
        session = bf.connect(f"openai:tiny@{server.url}", cache=None)
        session.from_pydict({"x": ["a", "b", "c"]}, name="t")
        rows = session.sql("SELECT x FROM t WHERE llm_filter('q?', x)").to_pylist()
    assert len(rows) == 3
    assert all("response_format" in body for body in server.bodies)
    assert len(server.bodies) == 3
