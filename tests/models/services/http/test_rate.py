"""Rate limits: no window of a minute holds more than the limits, and no request waits without
need."""

from __future__ import annotations

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Body, Reply, serving

from blendfusion.errors import OptionError
from blendfusion.models.services.http import rate_limit as rates
from blendfusion.models.services.http.embedder import OpenAIEmbedder
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.rate_limit import Load, Rate
from blendfusion.models.services.http.retry import Retry
from blendfusion.options import Options
from blendfusion.types import Task

TASK = Task("llm_map", "What is it?", columns=("text",))


class Clock:
    """A clock that goes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def send(self, rate: Rate, load: Load) -> float:
        """Wait as a request does, and go out: when that was."""
        while (wait := rate.take(load)) > 0:
            self.now += wait
        return self.now


def told(tokens: int) -> dict[str, object]:
    return {"usage": {"prompt_tokens": tokens - 1, "completion_tokens": 1}}


def most_in_a_minute(sent: list[tuple[float, int]]) -> tuple[int, int]:
    """(requests, tokens) in the fullest window of 60 seconds."""
    windows = [[t for at, t in sent if start <= at < start + 60] for start, _ in sent]
    return max(map(len, windows)), max(map(sum, windows))


def test_without_limits_nothing_waits_and_nothing_is_kept() -> None:
    rate = Rate()
    assert [rate.take(rate.load(b"x" * 1_000_000)) for _ in range(10)] == [0.0] * 10
    assert not rate._sent


def test_as_many_requests_as_allowed_go_at_once_and_the_next_after_a_minute() -> None:
    clock = Clock()
    rate = Rate(3, clock=clock)
    assert [clock.send(rate, Load(1)) for _ in range(7)] == [1000.0] * 3 + [1060.0] * 3 + [1120.0]


def test_the_next_request_goes_when_the_first_is_a_minute_ago_not_later() -> None:
    clock = Clock()
    rate = Rate(2, clock=clock)
    clock.send(rate, Load(1))
    clock.now += 50
    clock.send(rate, Load(1))
    assert rate.take(Load(1)) == 10.0
    assert clock.send(rate, Load(1)) == 1060.0
    assert clock.send(rate, Load(1)) == 1110.0


def test_what_waits_takes_nothing() -> None:
    clock = Clock()
    rate = Rate(1, clock=clock)
    clock.send(rate, Load(1))
    assert [rate.take(Load(1)) for _ in range(5)] == [60.0] * 5
    clock.now += 60
    assert rate.take(Load(1)) == 0.0


def test_tokens_are_estimated_from_above_and_settled_by_the_reply() -> None:
    clock = Clock()
    rate = Rate(tokens_per_minute=100, answer_tokens=20, clock=clock)
    first = rate.load(b"x" * 90)
    assert first.tokens == 50
    clock.send(rate, first)
    clock.send(rate, rate.load(b"x" * 90))
    assert rate.take(rate.load(b"x" * 30)) > 0
    rate.settle(first, told(20))
    assert rate.take(rate.load(b"x" * 30)) == 0.0


def test_a_reply_that_tells_no_tokens_leaves_the_estimate() -> None:
    clock = Clock()
    rate = Rate(tokens_per_minute=10, clock=clock)
    load = Load(10)
    clock.send(rate, load)
    for reply in ({}, {"usage": None}, {"usage": {"prompt_tokens": "9"}}):
        rate.settle(load, reply)
        assert rate.take(Load(1)) > 0


def test_a_reply_after_more_than_a_minute_changes_nothing() -> None:
    clock = Clock()
    rate = Rate(tokens_per_minute=10, clock=clock)
    slow = Load(10)
    clock.send(rate, slow)
    clock.now += 61
    clock.send(rate, Load(10))
    rate.settle(slow, told(1))
    assert rate.take(Load(1)) > 0


def test_a_request_larger_than_the_limit_goes_out_alone() -> None:
    clock = Clock()
    rate = Rate(tokens_per_minute=10, clock=clock)
    assert clock.send(rate, Load(1)) == 1000.0
    assert clock.send(rate, Load(50)) == 1060.0
    assert clock.send(rate, Load(1)) == 1120.0


@given(
    st.integers(0, 5),
    st.integers(0, 60),
    st.lists(st.tuples(st.floats(0, 30), st.integers(1, 30), st.floats(0, 1)), max_size=40),
)
def test_no_minute_holds_more_than_the_limits(
    requests: int, tokens: int, plan: list[tuple[float, int, float]]
) -> None:
    """A random pause before each request, a random estimate, a random share of it that it took."""
    clock = Clock()
    rate = Rate(requests, tokens, clock=clock)
    sent: list[tuple[float, int]] = []
    for pause, estimate, share in plan:
        clock.now += pause
        load = Load(estimate)
        at = clock.send(rate, load)
        took = max(1, round(estimate * share))
        rate.settle(load, told(took) if took > 1 else {"usage": {"prompt_tokens": 1}})
        sent.append((at, took))
    if not sent:
        return
    most_requests, most_tokens = most_in_a_minute(sent)
    assert not requests or most_requests <= requests
    assert not tokens or most_tokens <= max(tokens, *(took for _, took in sent))


def test_threads_share_the_limits() -> None:
    rate = Rate(50, clock=lambda: 0.0)
    passed: list[bool] = []

    def work() -> None:
        for _ in range(20):
            passed.append(rate.take(Load(1)) == 0.0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(True) == 50


# ---------------------------------------------------------------- over a real socket


SHORT_MINUTE = 1.0


def limited(url: str, **options: object) -> OpenAIModel:
    retry = Retry(attempts=3, base_seconds=0.001)
    return OpenAIModel("tiny", url, None, Options().with_(**options), retry=retry)


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When requests were let go, where a minute is short. They arrive later: nobody knows how
    much."""
    moments: list[float] = []
    take = Rate.take

    def noted(rate: Rate, load: Load) -> float:
        wait = take(rate, load)
        if load.counts and wait <= 0:
            moments.append(load.sent_at)
        return wait

    monkeypatch.setattr(rates, "_MINUTE", SHORT_MINUTE)
    monkeypatch.setattr(Rate, "take", noted)
    return moments


def ok(body: Body) -> Reply:
    return Reply("ok")


def test_requests_wait_their_turn_over_all_threads_of_a_model(let_go: list[float]) -> None:
    with serving(ok) as server:
        model = limited(server.url, requests_per_minute=4, concurrency=8)
        model.check()  # is no question, and does not count
        threads = [
            threading.Thread(target=model.answer, args=(TASK, [(f"{n}{i}",) for i in range(5)]))
            for n in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    let_go.sort()
    assert len(let_go) == len(server.bodies) == 10
    assert all(b - a >= SHORT_MINUTE for a, b in zip(let_go, let_go[4:], strict=False))


def test_the_first_requests_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that are allowed in a minute are answered, where a minute never ends."""
    monkeypatch.setattr(rates, "_MINUTE", 1e9)
    with serving(ok) as server:
        limited(server.url, requests_per_minute=4, concurrency=8).answer(
            TASK, [(f"{i}",) for i in range(4)]
        )
    assert len(server.bodies) == 4


def test_a_request_that_is_tried_again_counts_again(let_go: list[float]) -> None:
    replies = iter([Reply(status=503), Reply(status=503), Reply("ok")])
    with serving(lambda body: next(replies)) as server:
        model = limited(server.url, requests_per_minute=2)
        assert [a.text for a in model.answer(TASK, [("a",)])] == ["ok"]
    assert let_go[2] - let_go[0] >= SHORT_MINUTE


def test_tokens_wait_for_what_replies_tell(let_go: list[float]) -> None:
    """The loopback's replies tell 23 tokens: next to two of them a third estimate has room."""
    with serving(ok) as server:
        limited(server.url).answer(TASK, [("0",)])
        sent = json.dumps(server.bodies.pop(), separators=(",", ":")).encode()
        estimate = Rate(answer_tokens=128).load(sent).tokens
        let_go.clear()
        model = limited(server.url, tokens_per_minute=estimate + 2 * 23, concurrency=1)
        model.answer(TASK, [(f"{i}",) for i in range(4)])
    assert let_go[3] - let_go[0] >= SHORT_MINUTE


def test_a_third_request_has_room_next_to_two_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MINUTE", 1e9)
    with serving(ok) as server:
        limited(server.url).answer(TASK, [("0",)])
        sent = json.dumps(server.bodies.pop(), separators=(",", ":")).encode()
        estimate = Rate(answer_tokens=128).load(sent).tokens
        model = limited(server.url, tokens_per_minute=estimate + 2 * 23, concurrency=1)
        model.answer(TASK, [(f"{i}",) for i in range(3)])
    assert len(server.bodies) == 3


def test_a_server_of_embeddings_is_sent_no_more_either(let_go: list[float]) -> None:
    def script(body: Body) -> Reply:
        data = [{"index": i, "embedding": [1.0, 0.0]} for i in range(len(body["input"]))]
        return Reply(raw=json.dumps({"data": data}).encode())

    with serving(script) as server:
        options = Options().with_(requests_per_minute=2)
        OpenAIEmbedder("tiny", server.url, None, options).embed([str(i) for i in range(3 * 64)])
    assert len(server.bodies) == 3
    assert max(let_go) - min(let_go) >= SHORT_MINUTE


def test_a_batch_takes_about_a_minute_at_most() -> None:
    assert limited("http://127.0.0.1:1/v1", requests_per_minute=10).batch_size == 10
    assert limited("http://127.0.0.1:1/v1").batch_size == 128


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
def test_a_limit_is_a_whole_number(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is a whole number, at least 0"):
        Options().with_(**{name: -1})
