"""Servers that do not take a part of a request are asked without it, whatever they call it."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Body, Loopback, Reply, said, serving
from provider_refusals import REFUSALS, Refusal, system

import blendfusion as bf
from blendfusion.models.services.http.sampling import fold_instruction
from blendfusion.run.reports.trace import AnswerWarning

HANDFUL = 8
"""The requests that a server may cost beyond one a value."""
ROWS = ["the box broke", "it came late", "fine", "as new"]
SAMPLING = {"temperature", "seed", "max_tokens", "logprobs", "top_logprobs"}
FILTER = "llm_filter('Is it broken?', x)"


def answered(body: Body) -> Reply:
    if "response_format" in body:
        return Reply('{"answer": "Yes"}')
    return Reply("Yes")


def query(
    script: Callable[[Body], Reply], expression: str = FILTER, **options: Any
) -> tuple[list[object], Loopback, list[str]]:
    """The answers to a question about ``ROWS``, the server, and the warnings."""
    with serving(script) as server, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, retries=0, **options)
        session.from_pydict({"x": ROWS}, name="t")
        rows = session.sql(f"SELECT {expression} AS z FROM t").to_pylist()
    shown = [str(one.message) for one in told if one.category is AnswerWarning]
    return [row["z"] for row in rows], server, shown


def refusing(refuses: Callable[[Body], bool], status: int, payload: Any) -> Any:
    raw = json.dumps(payload).encode()
    return lambda body: Reply(status=status, raw=raw) if refuses(body) else answered(body)


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("expression", [FILTER, "llm_text('What is it?', x)"])
def test_a_provider_is_asked_without_what_it_refuses(name: str, expression: str) -> None:
    refusal = REFUSALS[name]
    script = refusing(refusal.refuses, refusal.status, refusal.payload)
    values, server, told = query(script, expression, concurrency=1)
    assert values == [expression == FILTER or "Yes"] * len(ROWS)
    assert told == []
    assert len(server.bodies) <= len(ROWS) + HANDFUL
    last = server.bodies[-1]
    assert not refusal.refuses(last)
    kept = {part for part in SAMPLING if not refusal.refuses({part: 0, "messages": [{"role": ""}]})}
    if expression == FILTER and "max_tokens" in kept:
        assert kept - {"top_logprobs"} <= {*last}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("show", ["auto", "off"])
def test_the_servers_own_sentence_reaches_the_person(name: str, show: str) -> None:
    refusal: Refusal = REFUSALS[name]
    always = refusing(lambda body: True, refusal.status, refusal.payload)
    values, _, [told] = query(always, show_values=show)
    assert values == [None] * len(ROWS)
    assert (refusal.words in told) == (show == "auto" or refusal.words == f"HTTP {refusal.status}")
    assert "broke" not in told


PARTS: dict[str, Callable[[Body], bool]] = {
    **{part: lambda body, part=part: part in body for part in SAMPLING},  # type: ignore[misc]
    "response_format": lambda body: "response_format" in body,
    "system": system,
}


def test_any_parts_may_be_refused_without_a_word_about_them() -> None:
    dice = random.Random(11)
    for _ in range(40):
        refused = dice.sample(sorted(PARTS), dice.choice((1, 1, 2, 3)))

        def script(body: Body, refused: list[str] = refused) -> Reply:
            if any(PARTS[part](body) for part in refused):
                return Reply(status=dice.choice((400, 422)), error="No.")
            return answered(body)

        values, server, _ = query(script)
        assert values == [True] * len(ROWS), refused
        assert len(server.bodies) <= len(ROWS) + 2 * HANDFUL, refused
        if len(refused) == 1:
            assert len(server.bodies) <= len(ROWS) + HANDFUL
            innocent = {"temperature", "seed", "logprobs", "system"} - {*refused}
            if refused != ["top_logprobs"]:
                assert all(PARTS[part](server.bodies[-1]) for part in innocent), refused


def test_what_was_found_out_is_remembered() -> None:
    script = refusing(lambda body: "seed" in body, 400, {})
    with serving(script) as server:
        session = bf.connect(f"openai:tiny@{server.url}", cache=None)
        session.from_pydict({"x": ROWS}, name="t")
        for question in ("Is it a?", "Is it b?", "Is it c?"):
            sent = len(server.bodies)
            session.sql(f"SELECT llm_filter('{question}', x) AS z FROM t").to_pylist()
    assert len(server.bodies) - sent == len(ROWS)


def test_a_refused_value_costs_nothing_of_the_others() -> None:
    def script(body: Body) -> Reply:
        if "late" in said(body):
            return Reply(status=400, error="Not that one.")
        return answered(body)

    values, server, _ = query(script, concurrency=1)
    assert values == [True, None, True, True]
    assert len(server.bodies) == len(ROWS)
    assert {*server.bodies[-1]} >= SAMPLING


def test_a_server_that_refuses_everything_is_not_asked_for_ever() -> None:
    values, server, [told] = query(lambda body: Reply(status=400, error="Go away."))
    assert values == [None] * len(ROWS)
    assert len(server.bodies) <= len(ROWS) + 2 * HANDFUL
    assert "HTTP 400: 'Go away.'" in told


def test_the_systems_message_begins_the_first_of_the_user() -> None:
    turns = [("system", "Be brief."), ("user", "a"), ("assistant", "b"), ("user", "c")]
    messages = fold_instruction([{"role": role, "content": content} for role, content in turns])
    assert messages == [
        {"role": "user", "content": "Be brief.\n\na"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    assert fold_instruction(
        [{"role": "system", "content": "x"}, {"role": "user", "content": [image]}]
    ) == [{"role": "user", "content": [{"type": "text", "text": "x"}, image]}]


@pytest.mark.parametrize("status", [400, 403, 404, 405, 429, 500, 501])
@pytest.mark.parametrize("key", [True, False])
def test_a_server_need_not_list_its_models(
    status: int, key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scoped-key" * key)
    with serving(answered) as server:
        server.status = status
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, retries=0)
        session.from_pydict({"x": ROWS}, name="t")
        assert len(session.sql(f"SELECT x FROM t WHERE {FILTER}").to_pylist()) == len(ROWS)


def test_a_key_that_may_chat_and_not_list_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answered) as server:
        server.status = 401
        monkeypatch.setenv("OPENAI_API_KEY", "sk-scoped-key")
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, retries=0)
        session.from_pydict({"x": ROWS}, name="t")
        assert len(session.sql(f"SELECT x FROM t WHERE {FILTER}").to_pylist()) == len(ROWS)
        server.script = lambda body: Reply(status=401, error="sk-scoped-key was revoked on Monday")
        with pytest.raises(bf.ModelFailed, match="refused access") as raised:
            session.sql("SELECT llm_int('How many?', x) AS z FROM t").to_pylist()
        assert "was revoked on Monday" in str(raised.value)
        assert "sk-scoped" not in str(raised.value)


@pytest.mark.parametrize("status", [301, 401, 402, 403, 404, 429])
def test_an_error_that_ends_the_run_repeats_no_value(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scoped-key")

    def repeat(body: Body) -> Reply:
        words = f"insufficient_quota: {json.dumps(body['messages'])}"
        return Reply(status=status, error=words)

    secrets = [f"Ms Lovelace of row {n} owes money" for n in range(3)]
    with serving(repeat) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, retries=0)
        session.from_pydict({"x": secrets}, name="t")
        with pytest.raises(bf.ModelError) as raised:
            session.sql("SELECT llm_int('How many?', x) AS z FROM t").to_pylist()
        assert "Lovelace" not in str(raised.value)
