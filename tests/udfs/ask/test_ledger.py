"""A ledger: how large the next batch may be, and that no limit is exceeded by more than one
batch."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.budget import Budget, Prices, lowest
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import Values
from blendfusion.models.registry.model_names import model_for
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.ask.observer import NullObserver

TASK = Task("llm_map", "What is it?", columns=("text",))
PRICE = bf.Price(prompt=1.0, completion=2.0)


@dataclass
class Told:
    """A model whose answers cost what ``usages`` says, in turn."""

    usages: Sequence[Usage] = (Usage(values=1, prompt_tokens=10, completion_tokens=2),)
    batch_size: int = 8
    at_once: int = 4
    call_per_value: bool = False
    seconds: float = 0.0
    batches: list[int] = field(default_factory=list)
    info: ModelInfo = ModelInfo("told", "told", 4096)  # noqa: RUF009 - frozen

    @property
    def abilities(self) -> Abilities:
        return Abilities(at_once=self.at_once, call_per_value=self.call_per_value)

    def count_tokens(self, text: str) -> int:
        return len(text)

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        done = sum(self.batches)
        self.batches.append(len(values))
        used = [self.usages[(done + i) % len(self.usages)] for i in range(len(values))]
        if not self.call_per_value:
            used[0] = used[0] + Usage(calls=1)
        return [Answer(row[0], usage=usage) for row, usage in zip(values, used, strict=True)]

    def close(self) -> None:
        pass


def dispatcher(model: Told, budget: Budget, above: Ledger | None = None) -> Dispatcher:
    above = above or Ledger(prices=Prices(PRICE))
    cached = CachedModel(model, MemoryStore())
    return Dispatcher(lambda: cached, NullObserver(), ledger=above.for_query(budget))


def rows(n: int) -> list[Values]:
    return [(str(i),) for i in range(n)]


def spent(model: Told, budget: Budget, n: int) -> Dispatcher:
    """A dispatcher that has asked until the budget was spent."""
    made = dispatcher(model, budget)
    with pytest.raises(bf.BudgetExceeded):
        made.ask(TASK, rows(n))
    return made


# ---------------------------------------------------------------- how large a batch is


def test_without_a_budget_batches_are_the_model_s() -> None:
    model = Told()
    dispatcher(model, Budget()).ask(TASK, rows(20))
    assert model.batches == [8, 8, 4]


def test_values_are_exact() -> None:
    model = Told()
    spent(model, Budget(values=11), 20)
    assert model.batches == [8, 3]


def test_calls_are_batches_of_a_model_in_process() -> None:
    model = Told()
    spent(model, Budget(calls=2), 20)
    assert model.batches == [8, 8]


def test_calls_are_values_of_a_server() -> None:
    model = Told([Usage(values=1, calls=1)], call_per_value=True)
    spent(model, Budget(calls=11), 20)
    assert model.batches == [4, 7]  # the first by what the model answers at once


def test_calls_that_are_tried_again_make_batches_smaller() -> None:
    model = Told([Usage(values=1, calls=2)], call_per_value=True)
    made = spent(model, Budget(calls=20), 20)
    assert model.batches == [4, 6]
    assert made.ledger.usage.calls == 20


def test_a_value_that_is_asked_in_several_ways_is_several_calls() -> None:
    model = Told([Usage(values=1, calls=1)], call_per_value=True)
    made = dispatcher(model, Budget(calls=11))
    with pytest.raises(bf.BudgetExceeded):
        made.ask(replace(TASK, consistency=3), rows(20))
    assert model.batches == [3, 3, 3, 1, 1, 1]


def test_tokens_begin_with_one_value_and_end_with_what_fits() -> None:
    model = Told()
    made = spent(model, Budget(prompt_tokens=100), 20)
    assert model.batches == [1, 8, 1]
    assert made.ledger.usage.prompt_tokens == 100


def test_completion_tokens_and_cost_are_limited_alike() -> None:
    model = Told()
    spent(model, Budget(completion_tokens=20), 20)
    assert model.batches == [1, 8, 1]
    model = Told()
    made = spent(model, Budget(cost=145e-6), 20)
    # A value costs 14e-6: what is left for a part of one is spent.
    assert model.batches == [1, 8, 1, 1]
    assert made.ledger.cost == pytest.approx(154e-6)


def test_other_tasks_have_other_sizes() -> None:
    model = Told([Usage(values=1, prompt_tokens=10)])
    made = dispatcher(model, Budget(prompt_tokens=10_000))
    made.ask(TASK, rows(12))
    made.ask(Task("llm_map", "What else?", columns=("text",)), rows(12))
    assert model.batches == [1, 8, 3, 1, 8, 3]


def test_what_a_session_has_seen_of_a_task_its_next_query_knows() -> None:
    model, session = Told(), Ledger()
    dispatcher(model, Budget(prompt_tokens=1_000), session).ask(TASK, rows(4))
    model.batches.clear()
    dispatcher(model, Budget(prompt_tokens=1_000), session).ask(TASK, rows(8))
    assert model.batches == [8]


def test_a_model_that_tells_no_usage_is_limited_in_values_and_calls() -> None:
    model = Told([Usage()])
    made = spent(model, Budget(values=11), 20)
    assert (made.ledger.usage.values, made.ledger.usage.calls) == (11, 2)


def test_values_that_were_sent_in_vain_count() -> None:
    session = Ledger(Budget(values=10))
    ledger = session.for_query()
    cached = CachedModel(Told(), MemoryStore())
    first = ledger.admit(TASK, 6, cached)
    ledger.settle(TASK, first, [Answer("a", usage=Usage(1, calls=1))], 0.1, Usage(calls=4))
    assert session.usage.values == 4
    assert ledger.admit(TASK, 10, cached) == 6


def test_seconds_are_those_inside_the_model() -> None:
    ledger = Ledger(Budget(seconds=10)).for_query()
    cached = CachedModel(Told(), MemoryStore())
    assert ledger.admit(TASK, 100, cached) == 4
    ledger.settle(TASK, 4, [Answer("a")] * 4, 6.0)
    assert ledger.admit(TASK, 100, cached) == 2
    ledger.settle(TASK, 2, [Answer("a")] * 2, 4.5)
    with pytest.raises(bf.BudgetExceeded, match="the session's budget is spent: seconds=10"):
        ledger.admit(TASK, 94, cached)


# ---------------------------------------------------------------- what the error says


def test_the_error_says_which_limit_what_was_done_and_what_remains() -> None:
    made = dispatcher(Told(), Budget(values=11, cost=5.0))
    with pytest.raises(bf.BudgetExceeded) as raised:
        made.ask(TASK, rows(20))
    error = raised.value
    assert error.message == (
        "the query's budget is spent: values=11. Used: values=11, calls=3, prompt_tokens=110, "
        f"completion_tokens=22, seconds={error.usage.seconds:.1f}, cost=0.000154. "
        "Still to be asked: 9 value(s) of this step."
    )
    assert error.hint == (
        "Answers so far are kept: with a larger budget the same query goes on from here."
    )
    assert (error.limit, error.allowed, error.pending) == ("values", 11, 9)
    assert error.usage.values == 11
    assert error.cost == pytest.approx(154e-6)


def test_what_was_expected_of_the_whole_run_is_told_where_it_is_more() -> None:
    made = dispatcher(Told(), Budget(values=10))
    made.ledger.expected = 1_250
    with pytest.raises(bf.BudgetExceeded, match=r"10 value\(s\) of this step, about 1,240 of the"):
        made.ask(TASK, rows(20))


def test_a_session_s_budget_is_named_as_such_and_counts_every_query() -> None:
    session = Ledger(Budget(values=10), Prices(PRICE))
    model = Told()
    dispatcher(model, Budget(values=6), session).ask(TASK, rows(6))
    with pytest.raises(bf.BudgetExceeded, match="the session's budget is spent: values=10"):
        dispatcher(model, Budget(values=6), session).ask(TASK, rows(6))
    assert model.batches == [6, 4]
    assert session.usage.values == 10
    assert session.cost == pytest.approx(10 * 14e-6)


def test_nothing_is_asked_under_a_budget_of_nothing() -> None:
    for field_ in fields(Budget)[:6]:
        model = Told()
        made = spent(model, Budget(**{field_.name: 0}), 1)
        assert model.batches == []
        assert made.ledger.usage == Usage()


# ---------------------------------------------------------------- cost


def test_a_cost_without_a_price_is_an_error_before_any_call() -> None:
    model = Told()
    made = dispatcher(model, Budget(cost=1.0), Ledger(prices=Prices({"tolb": PRICE})))
    with pytest.raises(bf.OptionError) as raised:
        made.ask(TASK, rows(3))
    assert raised.value.message == "a budget of cost needs the price of the model 'told'"
    assert raised.value.hint == (
        "Did you mean 'tolb'? State the price of a million tokens: prices={'told': bf.Price(prompt=…, "
        "completion=…)}, or --price prompt=…,completion=…."
    )
    assert model.batches == []


def test_without_a_price_the_cost_is_unknown() -> None:
    made = dispatcher(Told(), Budget(), Ledger())
    assert made.ledger.cost == 0.0
    made.ask(TASK, rows(1))
    assert made.ledger.cost is None


@pytest.mark.parametrize(
    "name", ["openai:gpt-x@https://api.openai.com/v1", "openai:gpt-x", "gpt-x"]
)
def test_a_price_is_found_by_any_form_of_a_name(name: str) -> None:
    assert Prices({name: PRICE}).of("openai:gpt-x@https://api.openai.com/v1") == PRICE
    assert Prices({name: PRICE}).of("openai:gpt-y@https://api.openai.com/v1") is None


def test_the_longest_form_of_a_name_counts() -> None:
    other = bf.Price(prompt=9.0, completion=9.0)
    prices = Prices({"gpt-x": other, "openai:gpt-x": PRICE})
    assert prices.of("openai:gpt-x@http://localhost:1/v1") == PRICE


@pytest.mark.parametrize("given_", [0.5, {"gpt-x": 0.5}, {"gpt-x": (1, 2)}])
def test_what_is_no_price_is_refused(given_: object) -> None:
    with pytest.raises(bf.OptionError, match="prices="):
        Prices(given_)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, True, "1", None])
def test_a_price_is_an_amount(bad: object) -> None:
    with pytest.raises(bf.OptionError, match=r"Price\(completion="):
        bf.Price(prompt=1.0, completion=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [field_.name for field_ in fields(Budget)])
@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, True, "1"])
def test_a_limit_is_an_amount(name: str, bad: object) -> None:
    with pytest.raises(bf.OptionError, match=rf"Budget\({name}="):
        Budget(**{name: bad})  # type: ignore[arg-type]


def test_what_is_counted_is_whole() -> None:
    with pytest.raises(bf.OptionError, match="values is a whole number, at least 0"):
        Budget(values=1.5)  # type: ignore[arg-type]


def test_the_lowest_of_each_limit_holds() -> None:
    assert lowest([]) is None
    assert lowest([None]) is None
    assert lowest([Budget(), None]) == Budget()
    both = lowest([Budget(values=3, cost=0), Budget(values=2, calls=9), None])
    assert both == Budget(calls=9, values=2, cost=0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "unknown part '' of the budget ''"),
        ("valeus=3", "Did you mean 'values'?"),
        ("values", "has no number for 'values'"),
        ("values=many", "has no number for 'values'"),
        ("values=1.5", "values is a whole number"),
        ("cost=-1", "cost is a number, at least 0"),
        ("cost=nan", "cost is a number, at least 0"),
    ],
)
def test_the_text_of_a_budget_is_checked(text: str, words: str) -> None:
    with pytest.raises(bf.OptionError) as raised:
        Budget.parsed(text)
    assert words in str(raised.value)


def test_the_text_of_a_price_is_checked() -> None:
    with pytest.raises(bf.OptionError, match="is not complete"):
        bf.Price.parsed("prompt=1")
    with pytest.raises(bf.OptionError, match="unknown part 'input' of the price"):
        bf.Price.parsed("input=1")


def test_what_a_fallback_model_costs_decides_how_many_are_asked() -> None:
    """The first model is free and fails, the second costs 1 a value."""
    free = bf.ScriptedModel(lambda call: None, name="free", batch_size=8)
    paid = bf.ScriptedModel(lambda call: "yes", name="paid", batch_size=8)
    prices = {
        "free": bf.Price(prompt=0, completion=0),
        "paid": bf.Price(prompt=0, completion=1e6),
    }
    model = model_for([free, paid], Options(), MemoryStore())
    ledger = Ledger(Budget(cost=5), Prices(prices))
    made = Dispatcher(lambda: model, NullObserver(), ledger=ledger)
    with pytest.raises(bf.BudgetExceeded):
        made.ask(TASK, rows(20))
    assert (len(free.calls), len(paid.calls)) == (5, 5)
    assert ledger.cost == 5.0
    for missing in prices:
        some = Ledger(Budget(cost=5), Prices({n: p for n, p in prices.items() if n != missing}))
        with pytest.raises(bf.OptionError, match=f"needs the price of the model '{missing}'"):
            Dispatcher(lambda: model, NullObserver(), ledger=some).ask(TASK, rows(20))


# ---------------------------------------------------------------- always


USAGES = st.builds(
    Usage,
    values=st.just(1),
    failed=st.integers(0, 1),
    calls=st.integers(0, 3),
    prompt_tokens=st.integers(0, 50),
    completion_tokens=st.integers(0, 20),
)
BUDGETS = st.builds(
    Budget,
    calls=st.none() | st.integers(0, 30),
    values=st.none() | st.integers(0, 30),
    prompt_tokens=st.none() | st.integers(0, 600),
    completion_tokens=st.none() | st.integers(0, 200),
    cost=st.none() | st.floats(0, 1e-3),
)


def amounts(ledger: Ledger) -> dict[str, float]:
    usage = ledger.usage
    names = ("calls", "values", "prompt_tokens", "completion_tokens")
    return {**{n: getattr(usage, n) for n in names}, "cost": ledger.cost or 0.0}


@given(
    usages=st.lists(USAGES, min_size=1, max_size=30),
    batch_size=st.integers(1, 20),
    at_once=st.integers(1, 20),
    call_per_value=st.booleans(),
    query=BUDGETS,
    session=BUDGETS,
    asks=st.lists(st.integers(0, 40), min_size=1, max_size=5),
)
def test_no_limit_is_exceeded_by_more_than_the_batch_in_flight(
    usages: list[Usage],
    batch_size: int,
    at_once: int,
    call_per_value: bool,
    query: Budget,
    session: Budget,
    asks: list[int],
) -> None:
    model = Told(usages, batch_size, at_once, call_per_value)
    above = Ledger(session, Prices(PRICE))
    made = dispatcher(model, query, above)
    before: list[dict[str, float]] = []
    answer = model.answer

    def noted(task: Task, values: Sequence[Values]) -> list[Answer]:
        before.append({"query": amounts(made.ledger), "session": amounts(above)})  # type: ignore[dict-item]
        return answer(task, values)

    model.answer = noted  # type: ignore[method-assign]
    asked, stopped = 0, None
    for n in asks:
        try:
            made.ask(TASK, [(f"{asked + i}",) for i in range(n)])
        except bf.BudgetExceeded as error:
            stopped = error
            break
        asked += n
    # Before each batch every limit had room, so none was exceeded by more than the last batch.
    for budget, whose in ((query, "query"), (session, "session")):
        for name, limit in budget.limits():
            assert all(b[whose][name] < limit for b in before)  # type: ignore[index]
    for ledger in (made.ledger, above):
        assert ledger.budget.values is None or ledger.usage.values <= ledger.budget.values
    assert made.ledger.usage.values == sum(model.batches)
    assert made.ledger._values_in_flight == above._batches_in_flight == 0
    # And it stopped only where one was reached.
    if stopped is not None:
        reached = [
            amounts(ledger)[name] >= limit
            for ledger in (made.ledger, above)
            for name, limit in ledger.budget.limits()
        ]
        assert any(reached)
        assert stopped.pending > 0
    else:
        assert sum(model.batches) == sum(asks)


@pytest.mark.parametrize("call_per_value", [True, False])
def test_threads_together_ask_no_more_than_the_session_may(call_per_value: bool) -> None:
    usage = Usage(values=1, calls=1) if call_per_value else Usage(values=1)
    model = Told([usage], batch_size=3, call_per_value=call_per_value)
    limits = {"values": 50, "calls": 50 if call_per_value else 40}
    session = Ledger(Budget(**limits))  # type: ignore[arg-type]
    exceeded: list[bf.BudgetExceeded] = []
    start = threading.Barrier(6)

    def work(number: int) -> None:
        start.wait()
        try:
            dispatcher(model, Budget(), session).ask(TASK, [(f"{number}-{i}",) for i in range(30)])
        except bf.BudgetExceeded as error:
            exceeded.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exceeded
    assert session.usage.values == 50
    assert session.usage.calls <= limits["calls"]


def test_a_batch_that_fails_is_not_in_flight_any_more() -> None:
    def fail(call: bf.Request) -> str:
        if call.values == ("3",):
            raise RuntimeError("the model broke")
        return "fine"

    model = bf.ScriptedModel(fail)
    above = Ledger(Budget(values=10))
    cached = CachedModel(model, MemoryStore())
    broken = Dispatcher(lambda: cached, NullObserver(), ledger=above.for_query())
    with pytest.raises(RuntimeError):
        broken.ask(TASK, rows(5))
    assert (above._values_in_flight, above._batches_in_flight) == (0, 0)
    assert above.admit(TASK, 100, cached) == 10 - above.usage.values
