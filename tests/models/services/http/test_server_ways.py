"""Ways of asking a server yes/no questions: by the odds of its tokens, less those behind neutral
texts.

The real server is llama.cpp's own, where the package xllamacpp has it, in another environment
named by BLENDFUSION_XLLAMACPP (its Python): ``pytest tests/models/services/http/test_server_ways.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from local_model import packaged_weights, weights_or_skip
from loopback import Body, Loopback, Reply, is_up, serving

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.errors import ModelFailed
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.tuning.bank import bank
from blendfusion.models.services.verbalizer.calibration_texts import ANY
from blendfusion.models.services.verbalizer.parse_question import question_idea
from blendfusion.models.services.verbalizer.ways import Way, keep_way, server_digest, weights_digest
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

REFUND = Task("llm_filter", "Do they want money?", Constraint("boolean"), ("text",))
WANTED, OTHER = ("Please refund me.",), ("What a lovely day.",)
BIAS = 3.0
"""What the server's model adds to a yes, whatever the text says."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _odds(yes: float) -> dict[str, float]:
    return {"Yes": yes - 5.0, "No": -6.0, "Perhaps": -12.0}


def _says_yes(body: Body) -> float:
    text = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
    return BIAS - 1.0 + 2.0 * ("refund" in text.rpartition("Text:")[2])


def chatting(body: Body) -> Reply:
    """A model that says yes to everything, a little more surely where it is right."""
    if body["max_tokens"] != 1 or "response_format" in body:
        return Reply("Yes", tokens=[("Yes", _odds(_says_yes(body)))])
    return Reply("Yes", finish="length", tokens=[("Yes", _odds(_says_yes(body)))])


def _digest(server: Loopback) -> str:
    return server_digest("openai", server.url, "tiny")


def test_a_bias_for_yes_is_subtracted() -> None:
    with serving(chatting) as server:
        before = OpenAIModel("tiny", server.url, None, Options())
        assert [a.text for a in before.answer(REFUND, [WANTED, OTHER])] == ["true", "true"]
        keep_way(_digest(server), Way("chat", answer=1.0, threshold=1.0), "tiny")
        model = OpenAIModel("tiny", server.url, None, Options())
        server.bodies.clear()

        wanted, other = model.answer(REFUND, [WANTED, OTHER])
        assert (wanted.text, other.text) == ("true", "false")
        assert wanted.logprob == pytest.approx(-0.3133, abs=1e-4)  # odds of e: 2 - 1 above the mean
        assert model.info.fingerprint != before.info.fingerprint

        # Neutral texts are asked once a question, and their requests are counted.
        assert len(server.bodies) == len(ANY) + 2
        assert wanted.usage.calls + other.usage.calls == len(ANY) + 2
        model.answer(REFUND, [("More of it.",)])
        assert len(server.bodies) == len(ANY) + 3
        assert all(body["max_tokens"] == 1 and body["top_logprobs"] for body in server.bodies)


def test_a_sample_moves_the_threshold_and_is_asked_once() -> None:
    """A text that is too long for the server is left out."""

    def script(body: Body) -> Reply:
        if "x" * 1_000 in body["messages"][-1]["content"]:
            return Reply(status=400, error="This model's maximum context length is 512 tokens.")
        return chatting(body)

    with serving(script) as server:
        keep_way(_digest(server), Way("chat", answer=1.0, threshold=1.0), "tiny")
        model = OpenAIModel("tiny", server.url, None, Options())
        [before] = model.answer(REFUND, [WANTED])
        server.bodies.clear()

        task = replace(REFUND, sample=(WANTED, OTHER, ("x" * 1_000,)))
        wanted, other = model.answer(task, [WANTED, OTHER])
        # Odds of 2 and of 0 above the mean, less the threshold: 1 and -1, whose mean is 0.
        assert (wanted.logprob, other.text) == (before.logprob, "false")
        assert len(server.bodies) == wanted.usage.calls + other.usage.calls == 3 + 2
        [moved] = model.answer(replace(REFUND, sample=(WANTED,)), [WANTED])
        assert moved.logprob == pytest.approx(-0.4741, abs=1e-4)  # odds of 1 - 1/2
        assert len(server.bodies) == 5 + 1 + 1
        assert model.abilities.takes_sample(task)
        assert not OpenAIModel("other", server.url, None, Options()).abilities.takes_sample(task)


def test_sql_budgets_and_explain_know_the_way() -> None:
    with serving(chatting) as server:
        keep_way(_digest(server), Way("chat", answer=1.0, threshold=1.0, area=0.9), "tiny")
        with bf.connect(f"openai:tiny@{server.url}", cache=None) as session:
            session.from_pydict({"text": [WANTED[0], OTHER[0]]}, name="mails")
            query = "SELECT text FROM mails WHERE llm_filter('Do they want money?', text)"
            frame = session.sql(query)
            assert frame.to_pydict() == {"text": [WANTED[0]]}
            assert frame.trace.usage.calls == len(ANY) + 2
            assert "yes against no behind the text" in frame.explain_text()
            server.bodies.clear()
            other = query.replace("they", "people")
            with pytest.raises(bf.BudgetExceeded):
                session.sql(other, budget=bf.Budget(calls=5)).collect()
            assert len(server.bodies) <= 5


@pytest.mark.parametrize("form", ["lists", "content"])
def test_running_text(form: str) -> None:
    """vLLM and llama-cpp-python list tokens in columns, llama-server as in chats."""

    def script(body: Body) -> Reply:
        odds = _odds(_says_yes(body))
        logprobs: Body = {
            "tokens": ["Yes"],
            "token_logprobs": [odds["Yes"]],
            "top_logprobs": [odds],
            "text_offset": [len(body["prompt"])],
        }
        if form == "content":
            top = [{"token": token, "logprob": odds[token]} for token in odds]
            logprobs = {"content": [{**top[0], "top_logprobs": top}]}
        choice = {"text": "Yes", "index": 0, "logprobs": logprobs, "finish_reason": "length"}
        return Reply(raw=json.dumps({"choices": [choice]}).encode())

    with serving(script) as server:
        keep_way(_digest(server), Way("text", answer=1.0, threshold=1.0), "tiny")
        model = OpenAIModel("tiny", server.url, None, Options())
        assert [a.text for a in model.answer(REFUND, [WANTED, OTHER])] == ["true", "false"]
        prompt = server.bodies[-1]["prompt"]
        assert prompt.endswith("\nQuestion: Do they want money?\nAnswer:")
        assert model.can_ask(Way("text", answer=1.0))
        assert not model.can_ask(Way("text", likelihood=1.0))


@pytest.mark.parametrize("shift", [0, 1])
def test_the_likelihood_of_a_question_in_an_echoed_prompt(shift: int) -> None:
    """A word is a token here. ``shift``: the server tells the odds of each token in the place behind
    it, as llama-cpp-python's does without a token that begins a text."""

    def script(body: Body) -> Reply:
        words = [*body["prompt"].split(" "), "five"] if body["echo"] else ["five"]
        told = [-0.1 * (len(word) % 7) - 0.1 for word in words]
        if shift and body["echo"]:
            told = [logprob - 5.0 for logprob in told]
        if body["echo"] and "refund" in body["prompt"]:
            told = [logprob / 2 for logprob in told]
        offsets = [0]
        for word in words[:-1]:
            offsets.append(offsets[-1] + len(word) + 1)
        logprobs = {
            "tokens": [f" {word}" for word in words],
            "token_logprobs": [None, *told[1:]] if body["echo"] else told,
            "top_logprobs": [{f" {word}": p} for word, p in zip(words, told, strict=True)],
            "text_offset": [max(0, offset - 1) for offset in offsets],
        }
        if not body["echo"]:
            logprobs["text_offset"] = [len(body["prompt"])]
        choice = {"text": " five", "index": 0, "logprobs": logprobs, "finish_reason": "length"}
        return Reply(raw=json.dumps({"choices": [choice]}).encode())

    with serving(script) as server:
        keep_way(_digest(server), Way("text", likelihood=1.0, threshold=1.0), "tiny")
        model = OpenAIModel("tiny", server.url, None, Options())
        assert model.can_ask(Way("text", likelihood=1.0)) == (not shift)
        if shift:
            with pytest.raises(ModelFailed, match="tells no odds of a prompt") as raised:
                model.answer(REFUND, [WANTED, OTHER])
            assert "blendfusion tune" in str(raised.value.hint)
        else:
            assert [a.text for a in model.answer(REFUND, [WANTED, OTHER])] == ["true", "false"]


def test_a_server_without_odds_says_what_to_do() -> None:
    def script(body: Body) -> Reply:
        if "logprobs" in body:
            return Reply(status=400, error="logprobs is not supported")
        return Reply("Yes")

    with serving(script) as server:
        keep_way(_digest(server), Way("chat", answer=1.0), "tiny")
        model = OpenAIModel("tiny", server.url, None, Options())
        with pytest.raises(ModelFailed, match="tells no odds of tokens"):
            model.answer(REFUND, [WANTED])


def test_hostile_odds_never_raise() -> None:
    for logprobs in ("x", [1], {"content": 3}, {"content": [{"token": 1}]}, {"tokens": [1, "a"]}):

        def script(body: Body, logprobs: object = logprobs) -> Reply:
            message = {"role": "assistant", "content": "Yes"}
            choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"}
            return Reply(raw=json.dumps({"choices": [choice]}).encode())

        with serving(script) as server:
            keep_way(_digest(server), Way("chat", answer=1.0), "tiny")
            model = OpenAIModel("tiny", server.url, None, Options())
            try:
                answers = model.answer(REFUND, [WANTED])
            except ModelFailed:
                continue
            assert answers[0].text in ("true", "false")


@pytest.mark.long
def test_the_command_tunes_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    right = {
        (question.question, text): yes
        for question in (*bank("choose", 4), *bank("report", 4))
        for text, yes in zip(question.texts, question.yes, strict=True)
    }

    def script(body: Body) -> Reply:
        if "messages" not in body:
            return Reply(status=404, error="no such path")
        shown = body["messages"][-1]["content"].removeprefix("Text: ")
        text, _, question = shown.partition("\nQuestion: ")
        yes = BIAS + (1.0 if right.get((question, text)) else -1.0)
        return Reply("Yes", tokens=[("Yes", _odds(yes - 1.0))])

    with serving(script) as server:
        assert main(["tune", f"openai:tiny@{server.url}", "--rows", "4"]) == 0
        printed = capsys.readouterr().out
        assert "chosen: yes/no by answer; chat template (area 1.00" in printed
        model = OpenAIModel("tiny", server.url, None, Options())
        [question] = [
            q
            for q in bank("report", 4)
            if all(v in right for v in [(q.question, t) for t in q.texts])
        ][:1]
        task = Task("llm_filter", question.question, Constraint("boolean"), ("text",))
        answers = model.answer(task, [(text,) for text in question.texts])
        assert [answer.text == "true" for answer in answers] == [*question.yes]


@pytest.fixture
def llama_server(tmp_path: Path) -> Iterator[str]:
    python = os.environ.get("BLENDFUSION_XLLAMACPP")
    if not python:
        pytest.skip("BLENDFUSION_XLLAMACPP names no Python that has xllamacpp")
    script = (
        "import sys, time, xllamacpp\n"
        "params = xllamacpp.CommonParams()\n"
        "params.model.path, params.port = sys.argv[1], 0\n"
        "params.n_ctx, params.n_parallel = 8192, 4\n"
        "server = xllamacpp.Server(params)\n"
        "print(server.listening_address, flush=True)\n"
        "time.sleep(3600)\n"
    )
    command = [python, "-c", script, str(packaged_weights())]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        url = f"{process.stdout.readline().strip()}/v1"
        for _ in range(600):
            if is_up(url):
                break
            time.sleep(0.1)
        yield url
    finally:
        process.kill()  # SIGTERM only stops its listening
        process.wait(60)


@pytest.mark.local
@pytest.mark.parametrize("prompt", ["chat", "text"])
def test_llama_server_answers_as_the_same_file_in_process(llama_server: str, prompt: str) -> None:
    weights = weights_or_skip()
    way = Way(prompt, answer=1.0, threshold=0.5)  # type: ignore[arg-type]
    keep_way(weights_digest(weights), way, "in process")
    keep_way(server_digest("openai", llama_server, "smollm2"), way, "server")
    behind = OpenAIModel("smollm2", llama_server, None, Options())
    inside = LlamaModel(weights, Options())
    same = total = 0
    try:
        tasks = [
            (Task("llm_filter", one.question, Constraint("boolean"), ("text",)), one)
            for one in bank("report", 12)
        ]
        # In process, words of known ideas are scored as well.
        for task, question in [(t, one) for t, one in tasks if question_idea(t) is None][:6]:
            values = [(text,) for text in question.texts]
            pairs = zip(inside.answer(task, values), behind.answer(task, values), strict=True)
            for one, other in pairs:
                same += one.text == other.text
                total += 1
    finally:
        inside.close()
    print(f"{same} of {total} answers agree")
    assert same >= 0.95 * total
