"""What a server of embeddings takes counts, in a query's budget and in its session's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import Body, Loopback, Reply, embeddings, serving
from scripts import spoken

import blendfusion as bf
from blendfusion.models.embedders.cache import VectorCounts

PRICE = bf.Price(prompt=1.0, completion=1.0)
TEXTS = [f"text {i:04}" for i in range(1_000)]
"""Of two tokens each; requests have 64 texts, batches here no more than one request."""
QUERY = "SELECT x FROM t WHERE llm_similarity(x, 'word') > -2"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(embeddings) as loopback:
        yield loopback


def connected(server: Loopback, **options: object) -> bf.Session:
    session = bf.connect(
        bf.ScriptedModel(spoken),
        cache=None,
        progress="off",
        embedder=f"openai:tiny@{server.url}",
        **{"prices": PRICE, "concurrency": 1} | options,  # type: ignore[arg-type]
    )
    session.from_pydict({"x": TEXTS}, name="t")
    return session


def embedded(server: Loopback) -> int:
    """How many texts the server saw; none of them twice."""
    texts = [text for body in server.bodies for text in body["input"]]
    assert len(texts) == len(set(texts))
    return len(texts)


# A text takes 2 tokens (the literal 1), a request 64 texts.
LIMITS: dict[str, tuple[bf.Budget, Callable[[bf.Trace], float], float]] = {
    "calls": (bf.Budget(calls=5), lambda t: t.vectors.usage.calls, 0),
    "prompt_tokens": (bf.Budget(prompt_tokens=500), lambda t: t.vectors.usage.prompt_tokens, 128),
    "cost": (bf.Budget(cost=500e-6), lambda t: t.cost or 0.0, 128e-6),
    "seconds": (bf.Budget(seconds=0.01), lambda t: t.vectors.usage.seconds, 10.0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_ends_a_query_and_a_larger_budget_goes_on(server: Loopback, name: str) -> None:
    budget, spent, more = LIMITS[name]
    session = connected(server)
    frame = session.sql(QUERY, budget=budget)
    with pytest.raises(bf.BudgetExceeded, match=f"the query's budget is spent: {name}=") as caught:
        frame.collect()
    limit = getattr(budget, name)
    assert limit <= spent(frame.trace) <= limit + more
    done = embedded(server)
    assert caught.value.pending == len(TEXTS) + 1 - done
    assert f"Still to be asked: {caught.value.pending:,} text(s) to embed" in str(caught.value)
    assert session.sql(QUERY).to_arrow_table().num_rows == len(TEXTS)
    assert embedded(server) == len(TEXTS) + 1  # those that were embedded before are remembered


def test_a_run_tells_what_its_vectors_took(server: Loopback) -> None:
    session = connected(server)
    frame = session.sql(QUERY)
    text = frame.explain_text(analyze=True)
    took = frame.trace.vectors.usage
    assert (took.calls, took.prompt_tokens, took.values) == (17, 2_001, 0)
    assert took.seconds > 0
    assert "vectors: 1,001 embedded (17 requests, 2,001 tokens)" in text
    assert frame.trace.cost == pytest.approx(2_001e-6)
    assert session.ledger.usage == took
    assert session.ledger.cost == frame.trace.cost
    again = session.sql(QUERY)
    again.collect()
    assert again.trace.vectors == VectorCounts(remembered=1_001)
    assert again.trace.cost == 0


def test_values_are_those_of_models(server: Loopback) -> None:
    session = connected(server)
    query = QUERY.replace("x FROM", "llm_int('length', x) FROM") + " LIMIT 3"
    frame = session.sql(query, budget=bf.Budget(values=3))
    assert frame.to_arrow_table().num_rows == 3
    assert session.ledger.usage.values == 3


def test_embedders_in_this_process_spend_nothing() -> None:
    session = bf.connect(
        bf.ScriptedModel(spoken),
        cache=None,
        embedder=bf.ScriptedEmbedder(lambda texts: [[1.0, float(len(t))] for t in texts]),
        budget=bf.Budget(calls=0, prompt_tokens=0, cost=0, seconds=0),
        prices=PRICE,
    )
    session.from_pydict({"x": TEXTS}, name="t")
    assert session.sql(QUERY).to_arrow_table().num_rows == len(TEXTS)


def test_an_embedder_without_a_price_is_not_asked_under_a_budget_of_cost(server: Loopback) -> None:
    session = connected(server, prices={"scripted": PRICE}, budget=bf.Budget(cost=1.0))
    with pytest.raises(bf.OptionError, match="needs the price of the model 'openai:tiny@"):
        session.sql(QUERY).collect()
    assert server.bodies == []


def test_each_has_its_own_price(server: Loopback) -> None:
    prices = {"scripted": PRICE, "tiny": bf.Price(prompt=0.5, completion=0.0)}
    session = connected(server, prices=prices)
    frame = session.sql(QUERY + " AND llm_filter('holds 7', x)")
    frame.collect()
    tokens = frame.trace.vectors.usage.prompt_tokens
    assert frame.trace.cost == pytest.approx(PRICE.of(frame.trace.usage) + 0.5e-6 * tokens)


def test_cost_is_unknown_if_the_embedder_has_no_price(server: Loopback) -> None:
    session = connected(server, prices={"scripted": PRICE})
    frame = session.sql(QUERY)
    frame.collect()
    assert frame.trace.cost is None


def test_requests_that_fail_count() -> None:
    def script(body: Body) -> Reply:
        return Reply(status=503, headers={"retry-after": "0"})

    with serving(script) as loopback:
        session = connected(loopback, retries=2)
        frame = session.sql(QUERY)
        with pytest.raises(bf.ModelFailed, match="gives no vectors"):
            frame.collect()
        assert session.ledger.usage.calls == len(loopback.bodies) == 3
        assert frame.trace.vectors.usage.calls == 3
        assert frame.trace.vectors.embedded == 0


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is tried again at once."""
    sleep = asyncio.sleep
    monkeypatch.setattr(
        asyncio, "sleep", lambda seconds, result=None: sleep(min(seconds, 0.001), result)
    )


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("calls", [1, 2, 5, 20, 40])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_retries_never_exceed_a_budget_of_calls(calls: int, concurrency: int) -> None:
    seen: list[Body] = []

    def script(body: Body) -> Reply:
        seen.append(body)
        failing = len(seen) % 3 != 0
        return Reply(status=503, headers={"retry-after": "0"}) if failing else embeddings(body)

    with serving(script) as loopback:
        session = connected(loopback, retries=9, concurrency=concurrency)
        frame = session.sql(QUERY, budget=bf.Budget(calls=calls))
        with pytest.raises(bf.BudgetExceeded, match=f"calls={calls}.* text") as caught:
            frame.collect()
        assert frame.trace.vectors.usage.calls == len(loopback.bodies) == calls
        assert 0 < caught.value.pending <= len(TEXTS) + 1
        assert session.ledger._requests_in_flight == 0
        session.sql(QUERY).collect()
        assert session.ledger.usage.calls == len(loopback.bodies)


def test_an_index_and_its_searches_count_in_the_session(server: Loopback, tmp_path: Path) -> None:
    pytest.importorskip("lance", reason="needs the extra 'search'")
    session = connected(server, budget=bf.Budget(calls=3))
    with pytest.raises(bf.BudgetExceeded, match="the session's budget is spent: calls=3"):
        session.index("docs", "t", columns="x", path=tmp_path / "docs")
    session.budget = bf.Budget(calls=16)
    session.index("docs", "t", columns="x", path=tmp_path / "docs")
    assert session.ledger.usage.prompt_tokens == 2_000
    assert embedded(server) == len(TEXTS)
    session.budget = bf.Budget(calls=17)
    assert session.search("docs", "another one").to_arrow_table().num_rows == 5
    assert session.ledger.usage.prompt_tokens == 2_002
    with pytest.raises(bf.BudgetExceeded, match=r"calls=17\. .* 1 text\(s\) to embed"):
        session.search("docs", "a third").to_arrow_table()


def test_labelled_rows_that_are_picked_by_their_vectors_count(server: Loopback) -> None:
    session = connected(server)
    labelled = [{"text": f"labelled {i}", "label": str(i % 2 == 0)} for i in range(40)]
    session.from_pylist(labelled, name="labelled")
    query = "SELECT llm_filter('holds 7', x, examples => (SELECT text, label FROM labelled)) FROM t LIMIT 1"
    with pytest.raises(bf.BudgetExceeded, match="40 text"):
        session.sql(query, budget=bf.Budget(calls=0)).collect()
    frame = session.sql(query)
    frame.collect()
    assert session.ledger.usage.calls == 1 + frame.trace.usage.calls


def test_the_page_of_a_trace_tells_what_vectors_took(server: Loopback) -> None:
    frame = connected(server).sql(QUERY)
    frame.collect()
    text = " ".join(re.sub(r"<[^>]+>", " ", frame.trace.to_html()).split())
    assert "Texts embedded 1,001 in 17 requests, 2,001 tokens" in text
