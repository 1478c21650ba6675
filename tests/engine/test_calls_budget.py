"""``Budget(calls=…)``: no request goes beyond it, whatever a server answers, and each one that went
out counts, as do the tokens of each reply."""

from __future__ import annotations

import json
import random
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress

import pytest
from loopback import Body, Loopback, Reply, said, serving

import blendfusion as bf

VALUES = 40


WAYS = ({}, {}, {"rows_per_prompt": 5}, {"together": True})
QUERIES = (
    "SELECT x FROM t WHERE llm_filter('ok?', x)",
    "SELECT x FROM t WHERE llm_filter('ok?', x, consistency => 3)",
    "SELECT x FROM t WHERE llm_filter('ok?', x) AND llm_filter('good?', x)",
    "SELECT llm_text('what?', x) AS y FROM t",
)


def session(server: Loopback, models: Sequence[str] | None = None, **options: object) -> bf.Session:
    opened = bf.connect(
        models or f"openai:tiny@{server.url}",
        cache=None,
        show_values="off",
        on_error="null",
        **options,
    )
    opened.from_pydict({"x": [f"value {n}" for n in range(VALUES)]}, name="t")
    return opened


class Whims:
    """A server that fails, ignores forms and answers beside the point, as its seed says."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lock = threading.Lock()
        self.failing = self.dice.choice((0.0, 0.0, 0.3, 0.7))
        self.wrong = self.dice.choice((0.0, 0.3, 0.9))
        self.refused = self.dice.sample(
            ("response_format", "guided_choice", "logprobs"), self.dice.randint(0, 3)
        )
        self.ignores = self.dice.random() < 0.4
        self.tokens = [0, 0]
        """Those of all replies, of prompts and of answers."""

    def __call__(self, body: Body) -> Reply:
        reply = self._reply(body)
        if reply.status == 200:
            usage = json.loads(reply.payload())["usage"]
            with self.lock:
                self.tokens[0] += usage["prompt_tokens"]
                self.tokens[1] += usage["completion_tokens"]
        return reply

    def _reply(self, body: Body) -> Reply:
        with self.lock:
            fails, errs = self.dice.random() < self.failing, self.dice.random() < self.wrong
        for name in self.refused:
            if name in body:
                return Reply(status=400, error=f"unknown field {name}")
        if fails:
            return Reply(status=500, error="try again")
        if errs:
            return Reply("It depends, I should say.", finish=self.dice.choice(("stop", "error")))
        if self.ignores or "response_format" not in body:
            return Reply("Yes")
        return Reply(json.dumps({"answer": "Yes"}))


def spend(seed: int) -> None:
    dice = random.Random(seed)
    most, concurrency = dice.choice((1, 2, 5, 17, 33)), dice.choice((1, 4, 16))
    whims, query = Whims(seed), dice.choice(QUERIES)
    with serving(whims) as server:
        limits = {"concurrency": concurrency, "retries": dice.choice((0, 2)), **dice.choice(WAYS)}
        models = [f"openai:{name}@{server.url}" for name in dice.choice((["a"], ["a", "b"]))]
        with session(server, models, timeout_seconds=5, **limits) as opened:
            frame = opened.sql(query, budget=bf.Budget(calls=most))
            with suppress(bf.ModelFailed, bf.BudgetExceeded):
                frame.collect()
            posted = len(server.bodies)
            assert posted <= most, (seed, posted, most)
            for spent in (opened.ledger.usage, frame.trace.usage):
                assert spent.calls == posted, seed
                assert [spent.prompt_tokens, spent.completion_tokens] == whims.tokens, seed


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are tried again at once."""
    import asyncio

    sleep = asyncio.sleep
    monkeypatch.setattr(
        asyncio, "sleep", lambda seconds, result=None: sleep(min(seconds, 0.001), result)
    )
    warnings.simplefilter("ignore", bf.AnswerWarning)


@pytest.mark.long
def test_calls_are_never_exceeded_whatever_a_server_does(cases: int) -> None:
    """So many cases by 20; 300 servers are ``--cases 6000``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.AnswerWarning)
        for seed in range(cases // 20):
            spend(seed)


def test_the_first_values_of_a_question_are_as_many_as_the_concurrency() -> None:
    with serving(lambda body: Reply("Yes")) as server, session(server, concurrency=4) as opened:
        frame = opened.sql("SELECT x FROM t WHERE llm_filter('ok?', x)", budget=bf.Budget(calls=39))
        with pytest.raises(bf.BudgetExceeded):
            frame.collect()
        assert len(frame.trace.batches[0][1]) == 4
        assert len(server.bodies) == 39


def test_a_run_that_ends_at_its_first_request_reports_it() -> None:
    def refusing(body: Body) -> Reply:
        return Reply(status=401)

    with serving(refusing) as server, session(server) as opened:
        frame = opened.sql("SELECT x FROM t WHERE llm_filter('ok?', x)")
        with pytest.raises(bf.ModelFailed):
            frame.collect()
        assert (len(server.bodies), frame.trace.usage.calls, opened.ledger.usage.calls) == (1, 1, 1)


def test_searches_for_a_form_and_corrections_count() -> None:
    def chatty(body: Body) -> Reply:
        return Reply("Well, I would think so." if "value 0" in said(body) else "Yes")

    with serving(chatty) as server, session(server, concurrency=1) as opened:
        frame = opened.sql("SELECT x FROM t WHERE llm_filter('ok?', x)", budget=bf.Budget(calls=3))
        with pytest.raises(bf.BudgetExceeded, match=r"calls=3\. Used: values=\d+, calls=3,"):
            frame.collect()
        assert len(server.bodies) == 3


def test_threads_of_one_session_share_what_is_left() -> None:
    def failing(body: Body) -> Reply:
        return Reply(status=500, error="no") if hash(said(body)) % 3 == 0 else Reply("Yes")

    limits = {"concurrency": 4, "budget": bf.Budget(calls=50), "retries": 2}
    with serving(failing) as server, session(server, **limits) as opened:

        def work(number: int) -> None:
            query = f"SELECT x FROM t WHERE llm_filter('ok {number}?', x)"
            with pytest.raises(bf.BudgetExceeded):
                opened.sql(query).collect()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.bodies) == opened.ledger.usage.calls == 50


FORMS = ("response_format", "structured_outputs", "guided_", "regex", "grammar", "json_schema")


@pytest.mark.parametrize("owner", ["", "vllm", "sglang", "llamacpp", "me"])
@pytest.mark.parametrize("taken", range(len(FORMS) + 1))
def test_an_estimate_bounds_the_requests_that_find_a_form(owner: str, taken: int) -> None:
    """The server refuses all forms before ``taken``; a run of both questions, whose constraints
    have one form, takes no more than the estimate says."""

    def picky(body: Body) -> Reply:
        sent = [name for name in FORMS if any(field.startswith(name) for field in body)]
        if any(name in FORMS[:taken] for name in sent):
            return Reply(status=400, error=f"{sent[0]} is not supported")
        if "zebra" in json.dumps(body):
            return Reply("zebra")
        return Reply(json.dumps({"answer": "Yes"}) if "response_format" in body else "Yes")

    query = "SELECT llm_filter('ok?', x), llm_classify(x, ['Yes', 'No']) FROM t"
    with serving(picky) as server, session(server) as opened:
        server.models = {"data": [{"id": "tiny", "owned_by": owner}]}
        frame = opened.sql(query)
        first = frame.estimate()
        assert [op.form_search for op in first.operators] == [first.form_search, 0]
        assert first.form_search >= len(FORMS)
        words = f"up to {first.form_search} requests more to find the form that the server takes"
        assert words in str(first)
        assert len(frame.to_pylist()) == VALUES
        assert 2 * VALUES <= len(server.bodies) <= first.total.calls + first.form_search
        assert frame.trace.usage.calls == len(server.bodies)
        assert frame.trace.failed == 0
        again = opened.sql(query.replace("ok?", "good?").replace("'Yes'", "'Maybe', 'Yes'"))
        assert again.estimate().form_search == 0
