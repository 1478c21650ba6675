"""An OpenAI-compatible server as model: forms, checks, retries and errors, over a real socket."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from loopback import Body, Loopback, Reply, closed_port, form_of, said, serving

import blendfusion as bf
from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, StructField, Task

BOOLEAN = Task("llm_filter", "Is it good?", Constraint("boolean"), ("text",))
TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))
INTEGER = Task("llm_int", "How many?", Constraint("integer"), ("text",))
CHOICE = Task("llm_classify", "Which?", Constraint("choice", options=("Red", "Blue")), ("text",))

DEAD = "http://127.0.0.1:9/v1"

FAST = Retry(attempts=3, base_seconds=0.001)


def model_at(server: Loopback, **changes: object) -> OpenAIModel:
    key = changes.pop("key", None)
    assert key is None or isinstance(key, str)
    return OpenAIModel("tiny", server.url, key, Options().with_(**changes), retry=FAST)


def ask(
    script: Callable[[Body], Reply], task: Task, *texts: str, **changes: object
) -> tuple[list[Answer], Loopback]:
    with serving(script) as server:
        return model_at(server, **changes).answer(task, [(text,) for text in texts]), server


def wrapped(value: object) -> Reply:
    return Reply(json.dumps({"answer": value}))


def accepting(*forms: str, reply: Callable[[Body], Reply]) -> Callable[[Body], Reply]:
    """A server that refuses every structured form but these, as OpenAI refuses unknown fields."""

    def script(body: Body) -> Reply:
        form = form_of(body)
        if form and form not in forms:
            return Reply(status=400, error=f"Unrecognized request argument supplied: {form}")
        return reply(body)

    return script


# ---------------------------------------------------------------- forms of the constraint


def test_the_standard_form_is_tried_first_and_its_reply_unwrapped() -> None:
    answers, server = ask(lambda body: wrapped(True), BOOLEAN, "fine", "good", "nice")
    assert [answer.text for answer in answers] == ["true"] * 3
    assert len(server.bodies) == 3
    schema = server.bodies[0]["response_format"]["json_schema"]
    assert schema["strict"]
    assert schema["schema"]["properties"] == {"answer": {"type": "string", "enum": ["Yes", "No"]}}
    sampling = {name: server.bodies[0][name] for name in ("temperature", "seed", "max_tokens")}
    assert sampling == {"temperature": 0, "seed": 0, "max_tokens": 128}


@pytest.mark.parametrize(
    ("form", "task", "content", "sent"),
    [
        ("structured_outputs", CHOICE, "Red", {"choice": ["Red", "Blue"]}),
        ("structured_outputs", INTEGER, "3", {"regex": "-?(0|[1-9][0-9]{0,17})"}),
        ("guided_choice", CHOICE, "Red", ["Red", "Blue"]),
        ("guided_regex", INTEGER, "3", "-?(0|[1-9][0-9]{0,17})"),
        ("grammar", CHOICE, "Red", 'root ::= "Red" | "Blue"'),
        ("json_schema", INTEGER, '{"answer": 3}', None),
    ],
)
def test_a_refused_form_gives_way_to_the_next_once(
    form: str, task: Task, content: str, sent: object
) -> None:
    script = accepting(form, reply=lambda body: Reply(content))
    with serving(script) as server:
        model = model_at(server)
        first = model.answer(task, [("a",)])
        tried = len(server.bodies)
        second = model.answer(task, [("b",), ("c",)])
    assert {answer.text for answer in [*first, *second]} == {"Red" if task is CHOICE else "3"}
    assert tried > 1
    assert len(server.bodies) == tried + 2
    assert first[0].usage.calls == tried
    if sent is not None:
        assert server.bodies[-1][form] == sent


def test_a_server_without_any_form_gets_the_instruction_alone() -> None:
    answers, server = ask(accepting(reply=lambda body: Reply(" Yes.\n")), BOOLEAN, "a", "b")
    assert [answer.text for answer in answers] == ["true", "true"]
    assert [form_of(body) for body in server.bodies[-2:]] == ["", ""]


def test_a_server_that_silently_ignores_a_form_is_noticed() -> None:
    def script(body: Body) -> Reply:
        if "guided_choice" in body:
            return Reply("Blue")
        return Reply("I would say that it is blue, on the whole.")

    answers, server = ask(script, CHOICE, "sky", "sea", "jeans")
    assert [answer.text for answer in answers] == ["Blue"] * 3
    assert {form_of(body) for body in server.bodies[-2:]} == {"guided_choice"}


def test_a_form_that_only_seemed_to_be_taken_is_dropped_later() -> None:
    def script(body: Body) -> Reply:
        if form_of(body) == "grammar":
            return Reply("Red")
        return Reply("Blue" if "sky" in said(body) else "It looks red to me")

    with serving(script) as server:
        model = model_at(server, concurrency=1)
        answers = model.answer(CHOICE, [("sky",), ("brick",), ("rose",)])
    assert [answer.text for answer in answers] == ["Blue", "Red", "Red"]
    assert form_of(server.bodies[-1]) == "grammar"
    assert answers[2].usage.calls == 1


def test_a_server_error_about_the_form_is_a_refusal_of_it() -> None:
    def script(body: Body) -> Reply:
        if body.get("response_format", {}).get("type") == "json_schema":
            return Reply(status=500, error="validation error: response_format.type: json_schema")
        return wrapped(3) if "response_format" in body else Reply("some")

    answers, server = ask(script, INTEGER, "a", "b")
    assert [answer.text for answer in answers] == ["3", "3"]
    assert server.bodies[-1]["response_format"]["type"] == "json_object"
    assert answers[1].usage.calls == 1


def test_text_is_sent_without_a_constraint() -> None:
    answers, server = ask(lambda body: Reply(" A pear. "), TEXT, "fruit")
    assert answers[0].text == "A pear."
    assert form_of(server.bodies[0]) == ""


def test_a_refusal_of_the_text_is_no_refusal_of_the_form() -> None:
    def script(body: Body) -> Reply:
        if "long" in said(body):
            return Reply(status=400, error="maximum context length is 2048 tokens")
        return wrapped(True)

    with serving(script) as server:
        model = model_at(server)
        answers = model.answer(BOOLEAN, [("short",), ("long",), ("short",)])
    assert [answer.text for answer in answers] == ["true", None, "true"]
    assert "maximum context length" in str(answers[1].error)
    assert len(server.bodies) == 3


def test_fields_of_sampling_that_a_model_does_not_take_are_left_out() -> None:
    def script(body: Body) -> Reply:
        if "max_tokens" in body:
            return Reply(status=400, error="Use 'max_completion_tokens' instead of 'max_tokens'.")
        if "temperature" in body:
            return Reply(status=400, error="'temperature' does not support 0 with this model.")
        return wrapped(True)

    answers, server = ask(script, BOOLEAN, "a", "b")
    assert [answer.text for answer in answers] == ["true", "true"]
    assert "max_completion_tokens" in server.bodies[-1]
    assert len(server.bodies) == 4


def test_shots_reply_in_the_form_that_is_asked_for() -> None:
    def replies(body: Body) -> list[str]:
        return [turn["content"] for turn in body["messages"] if turn["role"] == "assistant"]

    _, server = ask(lambda body: wrapped("Yes"), BOOLEAN, "a", shots=True)
    assert '{"answer": "No"}' in replies(server.bodies[0])
    _, server = ask(accepting(reply=lambda body: Reply("Yes")), BOOLEAN, "a", shots=True)
    assert "No" in replies(server.bodies[-1])


def test_an_estimate_says_how_many_tokens_are_the_same_in_each_request() -> None:
    with bf.connect(f"openai:tiny@{DEAD}", cache=None, progress="off") as session:
        session.from_pydict({"x": ["a", "b"]}, name="t")
        (operator,) = session.sql("SELECT llm_filter('Is it good?', x) FROM t").estimate().operators
    constant = operator.constant_tokens
    assert f"({constant:,} of each request are the same for all values)" in str(operator)
    assert operator.usage is not None
    assert 0 < 2 * constant < operator.usage.prompt_tokens


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *(("tiny", False), ("gpt-5-mini", False), ("qwen2.5-coder-1.5b-instruct", False)),
        *(("mixtral-8x7b", False), ("llama3.2:1b", False), ("gemma-3-27b-it", False)),
        *(("smollm2-135m", True), ("Qwen2.5-0.5B-Instruct", True), ("gemma3:270m", True)),
    ],
)
def test_only_small_models_of_a_server_are_shown_examples(name: str, shown: bool) -> None:
    with serving(lambda body: wrapped("Yes")) as server:
        model = OpenAIModel(name, server.url, None, Options(), retry=FAST)
        assert model.abilities.shots == shown
        model.answer(BOOLEAN, [("a",)])
    roles = [turn["role"] for turn in server.bodies[0]["messages"]]
    assert ("assistant" in roles) == shown


def test_a_choice_may_hold_yes_and_no() -> None:
    task = replace(BOOLEAN, constraint=Constraint("choice", options=("Yes", "No", "Unclear")))
    answers, _ = ask(lambda body: wrapped("Unclear"), task, "a")
    assert answers[0].text == "Unclear"


# ---------------------------------------------------------------- the answer is checked


def test_a_reply_outside_the_constraint_is_asked_for_once_more() -> None:
    def script(body: Body) -> Reply:
        return wrapped(7) if "not a valid answer" in said(body) else wrapped("seven")

    answers, server = ask(script, INTEGER, "a week")
    assert answers[0].text == "7"
    assert answers[0].usage.calls == 2
    assert server.bodies[1]["messages"][-2] == {
        "role": "assistant",
        "content": '{"answer": "seven"}',
    }


def test_a_second_wrong_reply_fails_that_value_alone() -> None:
    def script(body: Body) -> Reply:
        told = " ".join(str(message["content"]) for message in body["messages"][-3:])
        return wrapped("many") if "crowd" in told else wrapped(2)

    answers, _ = ask(script, INTEGER, "pair", "crowd", "twins")
    assert [answer.text for answer in answers] == ["2", None, "2"]
    assert "many" in str(answers[1].error)
    assert answers[1].usage.failed == 1


def test_a_cut_answer_fails_under_a_constraint_and_is_kept_as_text() -> None:
    cut, _ = ask(lambda body: Reply('{"answer": 12', finish="length"), INTEGER, "a")
    assert (cut[0].text, cut[0].error) == (None, "cut off at 128 tokens")
    kept, _ = ask(lambda body: Reply("Once upon a", finish="length"), TEXT, "a")
    assert (kept[0].text, kept[0].finish) == ("Once upon a", "length")


def test_a_refusing_model_fails_the_value() -> None:
    answers, _ = ask(lambda body: Reply(refusal="I cannot help with that."), BOOLEAN, "a")
    assert "I cannot help" in str(answers[0].error)


# ---------------------------------------------------------------- failures and retries


def sequence(*replies: Reply) -> Callable[[Body], Reply]:
    """These replies in turn, then a good one for ever."""
    order = itertools.chain(replies, itertools.repeat(wrapped(True)))
    lock = threading.Lock()

    def script(body: Body) -> Reply:
        with lock:
            return next(order)

    return script


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=429, error="slow down"),
        Reply(status=500, error="oops"),
        Reply(status=503, raw=b"<html>busy</html>"),
        Reply(reset=True),
        Reply(raw=b'{"choices": ['),
        Reply(raw=b"[]"),
    ],
    ids=["429", "500", "503 html", "reset", "cut JSON", "no object"],
)
def test_passing_trouble_is_tried_again(trouble: Reply) -> None:
    answers, server = ask(sequence(trouble, trouble), BOOLEAN, "a")
    assert answers[0].text == "true"
    assert answers[0].usage.calls == len(server.bodies) == 3


def test_lasting_trouble_fails_that_value_alone() -> None:
    def script(body: Body) -> Reply:
        return Reply(status=500, error="boom") if "bad" in said(body) else wrapped(True)

    answers, _ = ask(script, BOOLEAN, "good", "bad", "good")
    assert [answer.text for answer in answers] == ["true", None, "true"]
    assert answers[1].error == "HTTP 500: 'boom' (3 tries)"
    assert (answers[1].usage.values, answers[1].usage.failed, answers[1].usage.calls) == (1, 1, 3)


def test_a_slow_server_is_given_up_after_the_timeout() -> None:
    gate = threading.Event()
    with serving(lambda body: Reply(wait=gate)) as server:
        answers = model_at(server, timeout_seconds=0.5).answer(BOOLEAN, [("a",)])
        gate.set()
    assert answers[0].error == "no reply within 0.5 s (3 tries)"


def test_retry_after_is_honoured() -> None:
    started = time.monotonic()
    limited = Reply(status=429, error="wait", headers={"Retry-After": "0.3"})
    answers, _ = ask(sequence(limited), BOOLEAN, "a")
    assert answers[0].text == "true"
    assert time.monotonic() - started >= 0.3


def test_no_server_fails_the_whole_batch_at_once() -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    model = OpenAIModel("tiny", url)
    for attempt in (lambda: model.answer(BOOLEAN, [("a",)]), model.check):
        with pytest.raises(ModelFailed, match="no server answers") as raised:
            attempt()
        assert url in raised.value.message
        assert not raised.value.retryable
        assert raised.value.hint


def test_refused_access_names_the_variable_and_never_the_key() -> None:
    key = "sk-very-secret"
    with serving(lambda body: Reply(status=401, error=f"Incorrect key: {key}")) as server:
        model = model_at(server, key=key)
        with pytest.raises(ModelFailed, match="OPENAI_API_KEY") as raised:
            model.answer(BOOLEAN, [("a",)])
        server.script = lambda body: Reply(status=500, error=f"Trouble with {key}")
        answers = model.answer(BOOLEAN, [("a",)])
    assert server.keys[0] == f"Bearer {key}"
    assert key not in f"{raised.value}{model!r}{model.info}{model._server.endpoint!r}{answers}"
    assert "Trouble with …" in str(answers[0].error)


def test_an_empty_account_fails_the_batch() -> None:
    broke = Reply(status=429, raw=b'{"error": {"code": "insufficient_quota", "message": "Pay."}}')
    with serving(lambda body: broke) as server, pytest.raises(ModelFailed, match="payment"):
        model_at(server).answer(BOOLEAN, [("a",)])


def test_an_unknown_model_lists_what_the_server_offers() -> None:
    missing = Reply(status=404, error="The model 'tiny' does not exist")
    with serving(lambda body: missing, models=("large", "small")) as server:
        with pytest.raises(ModelNotFound, match="no model tiny") as raised:
            model_at(server).answer(BOOLEAN, [("a",)])
        assert raised.value.hint == "It offers: large, small."
        server.models = None
        with pytest.raises(ModelNotFound, match="nor a list") as raised:
            model_at(server).answer(BOOLEAN, [("a",)])
        assert "/v1" in str(raised.value.hint)


def test_a_wrong_url_is_refused_when_the_model_is_made() -> None:
    for url in ("localhost:8000", "ftp://x/v1", "http://"):
        with pytest.raises(ModelNotFound, match="URL"):
            OpenAIModel("tiny", url)


# ---------------------------------------------------------------- check and info


def test_check_learns_the_window_and_needs_no_chat() -> None:
    with serving(lambda body: wrapped(True)) as server:
        model = model_at(server)
        assert model.info.window == 8192
        model.check()
        assert model.info.window == 2048
        assert server.bodies == []
        server.status = 401
        with pytest.raises(ModelFailed, match="OPENAI_API_KEY"):
            model.check()
        server.status = 503
        with pytest.raises(ModelFailed, match="not ready") as raised:
            model.check()
        assert raised.value.retryable


def test_a_server_without_a_list_of_models_passes_the_check() -> None:
    with serving(lambda body: wrapped(True)) as server:
        server.models = None
        model_at(server).check()


def test_the_fingerprint_follows_what_may_change_an_answer() -> None:
    def fingerprint(name: str, url: str, **options: object) -> str:
        return OpenAIModel(name, url, None, Options().with_(**options)).info.fingerprint

    here = "http://127.0.0.1:1/v1"
    same = fingerprint("m", here)
    assert fingerprint("m", here + "/", concurrency=1) == same
    different = {
        fingerprint("n", here),
        fingerprint("m", "http://127.0.0.1:2/v1"),
        fingerprint("m", here, max_tokens=5),
    }
    assert same not in different
    assert len(different) == 3


# ---------------------------------------------------------------- usage, order, threads


def test_usage_is_what_the_server_states() -> None:
    answers, _ = ask(lambda body: wrapped(True), BOOLEAN, "a")
    usage = answers[0].usage
    assert (usage.values, usage.calls, usage.failed) == (1, 1, 0)
    assert (usage.prompt_tokens, usage.evaluated_tokens, usage.completion_tokens) == (20, 15, 3)


def test_answers_keep_their_order_within_the_bound_on_concurrency() -> None:
    full = threading.Event()

    def script(body: Body) -> Reply:
        number = int(next(word for word in said(body).split() if word.isdigit()))
        if server.in_flight == 4:
            full.set()
        if number > 20:  # by then it is known what the server takes
            full.wait(60)
        time.sleep(0.01 * (number % 3))
        return wrapped(number)

    with serving(script) as server:
        model = model_at(server, concurrency=4)
        answers = model.answer(INTEGER, [(f"box {number} ",) for number in range(30)])
    assert [answer.text for answer in answers] == [str(number) for number in range(30)]
    assert server.most_in_flight == 4
    assert server.connections <= 5


def test_nothing_asked_is_nothing_sent() -> None:
    model = OpenAIModel("tiny", f"http://127.0.0.1:{closed_port()}/v1")
    assert model.answer(BOOLEAN, []) == []


def test_it_works_inside_a_running_event_loop() -> None:
    async def notebook() -> list[Answer]:
        return model.answer(BOOLEAN, [("a",), ("b",)])

    with serving(lambda body: wrapped(True)) as server:
        model = model_at(server)
        assert [answer.text for answer in asyncio.run(notebook())] == ["true", "true"]


def test_no_thread_outlives_a_call_or_an_interrupt() -> None:
    gate = threading.Event()
    arrived = threading.Event()

    def script(body: Body) -> Reply:
        arrived.set()
        return Reply(wait=gate)

    def interrupt() -> None:
        arrived.wait(60)
        signal.raise_signal(signal.SIGINT)

    def ours() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name == "blendfusion-model"]

    with serving(script) as server:
        model = model_at(server)
        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            model.answer(BOOLEAN, [("a",), ("b",)])
        assert time.monotonic() - started < 15, "the server answers after 20"
        assert ours() == []
        interrupter.join()
        gate.set()
        server.script = lambda body: wrapped(True)
        assert model.answer(BOOLEAN, [("a",)])[0].text == "true"
        assert ours() == []


@pytest.mark.parametrize(
    "content",
    ["cut \ud83d", '{"answer": "cut \\ud83d"}', '["cut \\ud83d"]', '{"a": "cut \\ud83d"}'],
)
def test_half_an_emoji_in_a_reply_is_a_sign_of_its_own(content: str) -> None:
    kinds = (
        Constraint(),
        Constraint("integer"),
        Constraint("list", item=Constraint("text")),
        Constraint("struct", fields=(StructField("a", Constraint("text")),)),
    )
    for constraint in kinds:
        task = Task("llm_map", "What is it?", constraint, ("text",))
        answers, _ = ask(lambda body: Reply(content), task, "x")
        text, error = answers[0].text or "", answers[0].error or ""
        assert "\ud83d" not in str(json.loads(text) if text[:1] in ("[", "{") else text) + error


def test_half_an_emoji_in_an_error_is_one_too() -> None:
    answers, _ = ask(lambda body: Reply(status=400, error="no \ud83d"), TEXT, "x")
    (answers[0].error or "").encode()
