"""What requests to one server share: pauses, outages, giving up; and what errors repeat of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable

import pytest
from loopback import Body, Loopback, Reply, closed_port, form_of, said, serving

import blendfusion as bf
from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.services.http.circuit_breaker import Line
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.rate_limit import Rate
from blendfusion.models.services.http.retry import Retry, retry_after_seconds
from blendfusion.models.services.http.server_errors import quote_error
from blendfusion.models.services.http.task_group import for_each
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))
INTEGER = Task("llm_int", "How many?", Constraint("integer"), ("text",))
FAST = Retry(attempts=3, base_seconds=0.001, most_seconds=0.3)


def model_at(server: Loopback, retry: Retry = FAST, **options: object) -> OpenAIModel:
    return OpenAIModel("tiny", server.url, "key", Options().with_(**options), retry=retry)


def texts(*names: str) -> list[tuple[str | None, ...]]:
    return [(name,) for name in names]


def numbered(count: int) -> list[tuple[str | None, ...]]:
    return texts(*(f"text {number}" for number in range(count)))


# ---------------------------------------------------------------- pauses


def test_a_pause_that_the_server_asks_for_is_kept_by_all_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrived: list[float] = []
    requests = itertools.count()
    paused = threading.Event()
    pause = Line.pause

    def noted(line: Line, seconds: float) -> None:
        pause(line, seconds)
        paused.set()

    def script(body: Body) -> Reply:
        arrived.append(time.monotonic())
        if next(requests) == 0:
            return Reply(status=429, error="slow down", headers={"Retry-After": "0.5"})
        return Reply("fine", wait=paused)

    monkeypatch.setattr(Line, "pause", noted)
    with serving(script) as server:
        answers = model_at(server, concurrency=4).answer(TEXT, numbered(16))
    assert [answer.text for answer in answers] == ["fine"] * 16
    # After those in flight with the first, which are answered when the pause has begun.
    late = [moment - arrived[0] for moment in sorted(arrived)[4:]]
    assert len(late) == 13
    assert min(late) >= 0.5


def test_a_pause_that_is_too_long_ends_the_run_and_keeps_what_was_answered() -> None:
    def script(body: Body) -> Reply:
        if "text 5" in said(body):
            return Reply(status=429, error="Daily limit.", headers={"Retry-After": "40000"})
        return Reply("fine")

    with serving(script) as server:
        cached = CachedModel(model_at(server, concurrency=1), MemoryStore())
        with pytest.raises(ModelFailed, match=r"pause of 40000 s .*Daily limit") as raised:
            cached.answer(TEXT, numbered(10))
    assert raised.value.retryable
    assert list(cached.known_answers(TEXT, numbered(10))) == numbered(5)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("12", 12.0),
        ("-3", 0.0),
        ("nan", None),
        ("", None),
        ("soon", None),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("Wed, 21 Oct 2026 09:28:10 +0200", 10.0),
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", None),
        ("Wed, 21 Oct 2026 07:28:00 +99999999999999999", None),
    ],
)
def test_retry_after_is_read(header: str, seconds: float | None) -> None:
    assert retry_after_seconds(header, "Wed, 21 Oct 2026 07:28:00 GMT") == seconds


# ---------------------------------------------------------------- servers that are away or useless


def line(retry: Retry) -> Line:
    return Line(retry, Rate())


def test_a_server_that_is_away_is_given_up_after_some_time_only() -> None:
    away = line(Retry(attempts=5, base_seconds=0.001, most_seconds=0.2))
    started = time.monotonic()
    while not away.note_failure(time.monotonic()):
        asyncio.run(away.free())
    assert 0.2 <= time.monotonic() - started < 30
    away.note_reply()
    assert not away.note_failure(time.monotonic())


def test_without_retries_five_connections_in_a_row_may_fail() -> None:
    away = line(Retry(attempts=1))
    assert [away.note_failure(0.0) for _ in range(4)] == [False] * 4
    away.note_reply()
    assert [away.note_failure(0.0) for _ in range(5)] == [False] * 4 + [True]


def test_requests_that_were_under_way_together_lengthen_no_pause() -> None:
    away = line(Retry(attempts=5, base_seconds=0.05, most_seconds=600))
    sent_at = time.monotonic()
    for _ in range(50):
        away.note_failure(sent_at)
    started = time.monotonic()
    asyncio.run(away.free())
    assert time.monotonic() - started < 30, "75 s at least, had each doubled it"


def test_a_server_that_answers_nobody_is_given_up() -> None:
    def script(body: Body) -> Reply:
        number = int(said(body).split("text ")[-1].split()[0])
        return Reply("fine") if number < 5 else Reply(status=502, error="upstream is down")

    with serving(script) as server:
        cached = CachedModel(model_at(server, concurrency=4), MemoryStore())
        cached.answer(TEXT, numbered(5))  # a good answer that comes late would begin the row anew
        with pytest.raises(ModelFailed, match=r"none of 32 values in a row.*upstream") as raised:
            cached.answer(TEXT, numbered(1000))
        assert raised.value.retryable
        assert len(server.bodies) <= 5 + 3 * (32 + 4)
        # The next run begins to count anew.
        answers = cached.answer(TEXT, numbered(10))
    assert [answer.error is None for answer in answers] == [True] * 5 + [False] * 5


def test_values_that_always_fail_do_not_condemn_a_server_that_answers_others() -> None:
    def script(body: Body) -> Reply:
        return Reply(status=500, error="boom") if "odd" in said(body) else Reply("fine")

    names = [f"{'odd' if number % 2 else 'even'} {number}" for number in range(120)]
    with serving(script) as server:
        answers = model_at(server, concurrency=4).answer(TEXT, texts(*names))
    assert [answer.text for answer in answers] == ["fine", None] * 60


def test_a_query_says_how_it_ended_when_the_server_answers_nobody() -> None:
    with serving(lambda body: Reply(status=503, error="no worker")) as server:
        model = model_at(server)
        with bf.connect(model, cache=None, progress="off") as session:
            session.from_pydict({"t": [f"text {n}" for n in range(100)]}, name="notes")
            with pytest.raises(ModelFailed, match="no worker"):
                session.sql("SELECT llm_map('What?', t) FROM notes").collect()


def test_a_server_that_is_too_slow_for_all_is_told_from_one_that_is_gone() -> None:
    gate = threading.Event()
    with serving(lambda body: Reply(wait=gate)) as server:
        model = model_at(server, Retry(attempts=1), timeout_seconds=1.0)
        with pytest.raises(ModelFailed, match=r"no reply within 1 s") as raised:
            model.answer(TEXT, numbered(100))
        gate.set()
    assert "timeout_seconds" in str(raised.value.hint)


# ---------------------------------------------------------------- one value's own trouble


def test_a_403_among_answers_is_about_one_value() -> None:
    def script(body: Body) -> Reply:
        if "text 3" in said(body):
            return Reply(status=403, error="Your input was flagged.")
        return Reply("fine")

    with serving(script) as server:
        answers = model_at(server, concurrency=1).answer(TEXT, numbered(6))
        assert answers[3].error == "HTTP 403: 'Your input was flagged.'"
        assert [answer.text for answer in answers].count("fine") == 5
        assert len(server.bodies) == 6
        with pytest.raises(ModelFailed, match="OPENAI_API_KEY"):
            model_at(server).answer(TEXT, texts("text 3"))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            Reply("I was go", finish="content_filter"),
            "the server's content filter stopped the answer",
        ),
        (Reply('{"answer": 12', finish="length"), "cut off at 128 tokens"),
        (Reply(refusal="No.\nNever."), "the model refused: 'No. Never.'"),
        (Reply(status=413, error="Too large."), "HTTP 413: 'Too large.'"),
        (Reply(status=302, raw=b"", headers={"Location": "/"}), "HTTP 302: Found"),
    ],
    ids=["content filter", "length", "refusal", "413", "redirect"],
)
def test_what_would_come_again_is_not_tried_again(reply: Reply, reason: str) -> None:
    with serving(lambda body: Reply('{"answer": 1}')) as server:
        model = model_at(server)
        model.answer(INTEGER, texts("first"))
        server.script = lambda body: reply
        before = len(server.bodies)
        answer = model.answer(INTEGER, texts("second"))[0]
        assert (answer.text, answer.error) == (None, reason)
        assert len(server.bodies) == before + 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, you requested 9000."),
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "Requested tokens (600) exceed context window of 512"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "Please reduce the length of the messages or completion."),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000"),
        (
            429,
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31000.",
        ),
        (500, "The decoder prompt (length 3000) is longer than the maximum model length of 2048."),
        (413, "Payload"),
    ],
)
def test_what_is_too_long_is_known_as_such_and_not_tried_again(status: int, words: str) -> None:
    with serving(lambda body: Reply(status=status, error=words)) as server:
        answer = model_at(server).answer(INTEGER, texts("much"))[0]
    assert answer.too_long
    assert answer.error == f"HTTP {status}: {words!r}"
    assert len(server.bodies) == 1


def test_what_only_takes_long_is_not_too_long() -> None:
    reply = Reply(status=504, error="The upstream server took too long to answer.")
    with serving(lambda body: reply) as server:
        answer = model_at(server).answer(TEXT, texts("much"))[0]
    assert not answer.too_long
    assert len(server.bodies) == 3


def test_a_group_that_a_server_finds_too_long_is_read_in_parts() -> None:
    def script(body: Body) -> Reply:
        if len(said(body)) > 2000:
            return Reply(status=400, error="This exceeds the model's context length.")
        return Reply("a note")

    with serving(script) as server:
        server.models = None  # so that the session does not know the window
        with bf.connect(model_at(server), cache=None, progress="off") as session:
            rows = [f"Row {n} says this and that and a little more." for n in range(200)]
            session.from_pydict({"t": rows}, name="notes")
            query = "SELECT llm_summarize(t) AS s FROM notes"
            assert session.sql(query).to_pydict() == {"s": ["a note"]}


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource"])
def test_an_answer_that_the_server_broke_off_is_asked_for_again(finish: str) -> None:
    replies = iter([Reply("Onc", finish=finish)])
    with serving(lambda body: next(replies, Reply("Once."))) as server:
        answer = model_at(server).answer(TEXT, texts("tale"))[0]
    assert (answer.text, answer.usage.calls) == ("Once.", 2)


def test_without_retries_a_value_is_asked_once() -> None:
    with serving(lambda body: Reply('{"answer": 1}')) as server:
        spec = f"openai:tiny@{server.url}"
        with bf.connect(spec, cache=None, progress="off", retries=0) as session:
            session.from_pydict({"t": ["a", "b"]}, name="notes")
            session.sql("SELECT llm_int('Warm?', t) AS n FROM notes").collect()
            for script in (
                lambda body: Reply(status=500, error="boom"),
                lambda body: Reply('{"answer": "many"}'),
                lambda body: Reply(""),
            ):
                server.script = script
                before = len(server.bodies)
                with pytest.warns(bf.AnswerWarning):
                    session.sql("SELECT llm_int('How many?', t) AS n FROM notes").collect()
                assert len(server.bodies) == before + 2
    with pytest.raises(bf.OptionError, match="retries=-1"):
        bf.connect(spec, retries=-1)


# ---------------------------------------------------------------- what was found out stays


def test_one_slip_does_not_cost_a_server_its_form() -> None:
    def script(body: Body) -> Reply:
        slip = "text 9" in said(body) and form_of(body) == "response_format"
        return Reply("Nine!") if slip else Reply('{"answer": 1}')

    with serving(script) as server:
        answers = model_at(server, concurrency=1).answer(INTEGER, numbered(20))
    assert [answer.text for answer in answers] == ["1"] * 20
    assert {form_of(body) for body in server.bodies} == {"response_format"}
    assert answers[9].usage.calls == 2


def test_requests_that_are_refused_together_for_a_field_all_leave_it_out() -> None:
    together = threading.Barrier(4)

    def script(body: Body) -> Reply:
        if "max_tokens" in body:
            together.wait(60)
            return Reply(status=400, error="Use 'max_completion_tokens' instead of 'max_tokens'.")
        return Reply("fine")

    with serving(script) as server:
        answers = model_at(server, concurrency=4).answer(TEXT, numbered(4))
    assert [answer.text for answer in answers] == ["fine"] * 4


# ---------------------------------------------------------------- what errors show


@pytest.mark.parametrize(
    "payload",
    [
        {"detail": [{"msg": "Input is too odd", "input": "{0}"}]},
        {"detail": [{"type": "odd", "input": {"messages": [{"content": "{0}"}]}}]},
        {"error": {"message": "Cannot read: {0}"}},
        {"error": "Cannot read '{0}'", "request": "{0}"},
        {"message": "Cannot read {0}"},
        {"object": "error", "was": "{0}"},
    ],
)
def test_errors_repeat_no_prompt(payload: dict[str, object]) -> None:
    secret = "My card number is 4929 1234\nand my name is Ada."
    filled = json.dumps(payload).replace("{0}", json.dumps(secret)[1:-1])
    with serving(lambda body: Reply(status=422, raw=filled.encode())) as server:
        error = str(model_at(server).answer(TEXT, texts(secret))[0].error)
    assert error.startswith("HTTP 422: ")
    for part in ("4929", "Ada", "card"):
        assert part not in error


def test_words_of_a_server_are_short_and_of_a_proxy_its_status() -> None:
    with serving(lambda body: Reply(status=422, error="x" * 10_000)) as server:
        model = model_at(server)
        assert len(str(model.answer(TEXT, texts("a"))[0].error)) == len("HTTP 422: ''") + 300
        server.script = lambda body: Reply(status=502, raw=b"<html>much of it</html>")
        assert model.answer(TEXT, texts("a"))[0].error == "HTTP 502: Bad Gateway (3 tries)"


def test_short_values_and_common_words_stay_readable() -> None:
    said_by_server = "The maximum context length is 2048 tokens."
    assert quote_error(said_by_server, None, ["a", "is", "Write the maximum"]) == repr(
        said_by_server
    )


def test_a_key_from_a_file_may_end_in_a_line_break_but_holds_none() -> None:
    with serving(lambda body: Reply("fine")) as server:
        OpenAIModel("tiny", server.url, "sk-1\n").check()
    assert server.keys == ["Bearer sk-1"]
    for key in ("sk-1\nsk-2", "sk-ü"):
        with pytest.raises(ModelNotFound, match="OPENAI_API_KEY") as raised:
            OpenAIModel("tiny", f"http://127.0.0.1:{closed_port()}/v1", key)
        assert "sk-" not in str(raised.value)


def test_check_survives_passing_trouble_and_reports_what_lasts() -> None:
    with serving(lambda body: Reply("fine")) as server:
        model = model_at(server)
        server.first_statuses = [503, 503, 503]
        patient = OpenAIModel(
            "tiny", server.url, retry=Retry(attempts=5, base_seconds=0.001, most_seconds=0.01)
        )
        patient.check()
        assert len(server.keys) == 4
        server.status = 503
        with pytest.raises(ModelFailed, match="not ready: HTTP 503"):
            model.check()


# ---------------------------------------------------------------- workers


def run_each(items: int, at_once: int, work: Callable[[int], object]) -> list[int]:
    done: list[int] = []

    async def one(item: int) -> None:
        await asyncio.sleep(0.01)
        work(item)
        done.append(item)

    async def main() -> None:
        await for_each(range(items), at_once, one)

    try:
        asyncio.run(main())
    except ZeroDivisionError:
        done.append(-1)
    return done


def test_workers_end_what_they_began_when_one_fails() -> None:
    def work(item: int) -> None:
        if item == 1:
            raise ZeroDivisionError

    done = run_each(100, 4, work)
    assert done[-1] == -1
    assert sorted(done[:-1]) == [0, 2, 3, 4], "4 had begun when 1 failed"


def test_workers_do_every_item_and_may_have_none() -> None:
    assert sorted(run_each(10, 3, lambda item: None)) == list(range(10))
    assert run_each(0, 3, lambda item: None) == []


def test_workers_that_are_cancelled_end_at_once() -> None:
    async def main() -> float:
        task = asyncio.create_task(for_each(range(5), 2, lambda item: asyncio.sleep(60)))
        await asyncio.sleep(0.01)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - started

    assert asyncio.run(main()) < 30
