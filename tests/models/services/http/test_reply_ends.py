"""How replies end, in the words of every provider: what was not written to its end is no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from loopback import Body, Reply, serving

import blendfusion as bf
from blendfusion.models.services.http.api import APIS
from blendfusion.models.services.http.completion import Completion, read_completion
from blendfusion.models.services.http.retry import Passing

CUT, BLOCKED, BROKEN_OFF, WHOLE = "length", "content_filter", "broken off", "whole"
ENDS = {
    "openai": {
        CUT: ("length", "model_length", "max_tokens", "MAX_TOKENS", "max_output_tokens"),
        BLOCKED: ("content_filter", "SAFETY", "safety", "RECITATION", "refusal"),
        BROKEN_OFF: (
            *("error", "abort", "aborted", "cancelled", "canceled", "timeout", "timed_out"),
            *("incomplete", "interrupted", "insufficient_system_resource", "ERROR"),
        ),
        WHOLE: (
            *("stop", "eos", "eos_token", "stop_sequence", "end_turn", "STOP", "COMPLETE"),
            *("tool_calls", "function_call", "finished", "", None),
        ),
    },
    "anthropic": {
        CUT: ("max_tokens", "model_context_window_exceeded"),
        BROKEN_OFF: ("pause_turn",),
        WHOLE: ("end_turn", "stop_sequence", "tool_use"),
    },
    "gemini": {
        CUT: ("MAX_TOKENS",),
        BLOCKED: (
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
            "IMAGE_SAFETY",
        ),
        BROKEN_OFF: (
            *("OTHER", "MALFORMED_FUNCTION_CALL", "FINISH_REASON_UNSPECIFIED"),
            "UNEXPECTED_TOOL_CALL",
        ),
        WHOLE: ("STOP",),
    },
}


def openai(text: str, end: str | None) -> Body:
    return {"choices": [{"message": {"content": text}, "finish_reason": end}]}


def anthropic(text: str, end: str | None) -> Body:
    """A text in two blocks, as after a citation."""
    blocks = [{"type": "text", "text": part} for part in (text[:1], text[1:])]
    return {"content": blocks, "stop_reason": end}


def gemini(text: str, end: str | None) -> Body:
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": end}]}


REPLIES: dict[str, Callable[[str, str | None], Body]] = {
    "openai": openai,
    "anthropic": anthropic,
    "gemini": gemini,
}
CASES = [(api, kind, end) for api, kinds in ENDS.items() for kind in kinds for end in kinds[kind]]


def read(api: str, reply: Body) -> Completion:
    return read_completion(APIS[api].reply(reply))


@pytest.mark.parametrize(("api", "kind", "end"), CASES)
def test_the_end_of_a_reply_is_known(api: str, kind: str, end: str | None) -> None:
    reply = REPLIES[api]("12", end)
    if kind == BROKEN_OFF:
        with pytest.raises(Passing, match="broke the answer off"):
            read(api, reply)
        return
    completion = read(api, reply)
    assert completion.text == "12"
    assert completion.whole is (kind == WHOLE)
    assert kind in (WHOLE, completion.finish)


FUNCTIONS: dict[str, Any] = {
    "llm_int('Which?', t)": ("123", 123),
    "llm_text('Which?', t)": ("Once upon a time.", "Once upon a time."),
    "llm_classify(t, ['alpha', 'alphabet'])": ("alphabet", "alphabet"),
}


@pytest.mark.parametrize("call", FUNCTIONS)
def test_a_part_of_an_answer_is_none(call: str) -> None:
    """A server whose every first reply ends in the middle, in a way of its own."""
    said, answer = FUNCTIONS[call]
    ends = [end for kind, end in ((k, e) for a, k, e in CASES if a == "openai") if kind != WHOLE]
    seen: dict[int, int] = {}

    def script(body: Body) -> Reply:
        if any(field in body for field in ("response_format", "structured_outputs", "grammar")):
            return Reply(status=400, error="response_format and grammar are not supported")
        told = body["messages"][-1]["content"].rpartition("story ")[2]
        number = int("".join(letter for letter in told[:3] if letter.isdigit()) or 0)
        seen[number] = seen.get(number, 0) + 1
        half = len(said) // 2 + 1
        return Reply(said[:half], finish=str(ends[number])) if seen[number] == 1 else Reply(said)

    with serving(script) as server:
        spec = f"openai:tiny@{server.url}"
        with bf.connect(spec, cache=None, progress="off", retries=1) as session:
            stories = [f"story {n} of many" for n in range(len(ends))]
            session.from_pydict({"t": stories}, name="stories")
            frame = session.sql(f"SELECT t, {call} AS a FROM stories")
            with pytest.warns(bf.AnswerWarning):
                rows = frame.to_pydict()
    cut = [end for end in ends if end in ENDS["openai"][CUT]]
    kept = said[: len(said) // 2 + 1] if "llm_text" in call else None
    of_kind = {end: kind for api, kind, end in CASES if api == "openai"}
    expected = {CUT: kept, BLOCKED: None, BROKEN_OFF: answer}
    assert rows["a"] == [expected[of_kind[end]] for end in ends]
    assert frame.trace.cut_off == (len(cut) if kept else 0)


@pytest.mark.parametrize("place", ["reply", "choice"])
def test_an_error_beside_a_part_of_the_answer_counts(place: str) -> None:
    """Routers send what has come until a provider failed, and its error beside it."""
    reply = openai("12", None)
    where = reply if place == "reply" else reply["choices"][0]
    where["error"] = {"message": "the provider is gone", "code": 502}
    with pytest.raises(Passing, match="broke the answer off"):
        read("openai", reply)
    for nothing in (None, {}, "", False):
        where["error"] = nothing
        assert read("openai", reply).text == "12"
