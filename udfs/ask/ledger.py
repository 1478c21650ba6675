"""Records the spending against a budget, and bounds the next batch."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Literal, Protocol

from blendfusion.budget import Budget, Price, Prices, checked_budget, money
from blendfusion.errors import BudgetExceeded, OptionError, by_surface
from blendfusion.models.embedders.embedder import MeteredEmbedder
from blendfusion.models.guarantees.vector_classifier import EMBEDDING
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, Task, Usage

Whose = Literal["query", "session", "context"]


_NOTHING = Usage()


class DailyLimits(Protocol):
    """The limits of a budget over days, which sessions of many processes share. A batch is reserved
    before it is asked, and settled afterwards on the same thread."""

    def reserve(self, values: int, calls: int) -> tuple[int, str]:
        """How many of ``values`` the next batch may have, and the limit that says so; ``calls`` are
        those of a model in process. 0 if a limit is reached."""
        ...

    def take_calls(self, more: int) -> bool:
        """Whether a batch that was reserved may send ``more`` further requests to a server."""
        ...

    def settle(self, requests: int, spent: Usage, cost: float | None, *, is_batch: bool) -> None:
        """A batch that was reserved has ended, or texts are embedded (not ``is_batch``), which
        spent this; ``requests`` were taken."""
        ...


class Ledger:
    """Counts what models are asked and servers embed, and says before each batch how large it may
    be.

    A query's ledger has its session's ``above`` it: both budgets hold, and both count. Safe to use
    from threads: a batch in flight counts as spent.

    A batch is made smaller where it would go beyond a limit: exactly for values; for calls, tokens,
    seconds and cost by what the values of this task took so far. As long as none of a task has been
    seen, one value shows what it takes of tokens and cost; of calls and seconds, no more are asked
    than the model answers at once. Besides, each request of a server is
    allowed or not before it is sent, so that no try, no search for a form and no correction goes
    beyond ``calls``. Texts to be embedded are no values, and count with what they take of a server.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        prices: Prices | None = None,
        *,
        whose: Whose = "session",
        above: Ledger | None = None,
    ) -> None:
        self.budget = checked_budget(budget) or Budget()
        self.prices: Prices = above.prices if above is not None else prices or Prices()
        self.usage = Usage()
        """The spending so far. Values from the cache count as ``cached`` alone."""
        self.expected: int | None = None
        """Values that the whole run was expected to ask, if that is known."""
        self.daily: DailyLimits | None = None
        """Limits that other sessions share."""
        self._whose = whose
        self._above = above
        self._cost: float | None = 0.0
        self._price: Price | None = None
        """The price of the first model."""
        self._values_in_flight = 0
        self._batches_in_flight = 0
        self._begun = 0.0
        """The sum of the times at which the batches in flight began."""
        self._requests_in_flight = 0
        """Requests of batches that have not been settled."""
        self._by_task: dict[Task | str, Usage] = above._by_task if above is not None else {}
        """The usage of each task, and of each embedder by its name."""
        self._cost_by_task: dict[Task | str, float] = (
            above._cost_by_task if above is not None else {}
        )
        self._lock: threading.Lock = above._lock if above is not None else threading.Lock()

    def for_query(self, budget: Budget | None = None) -> Ledger:
        """A ledger for one run, which counts here too."""
        if budget is not None and budget.days is not None:
            raise OptionError(
                "a budget over days is that of a session",
                hint=by_surface("bf.connect(budget=…).", "Give it by --budget."),
            )
        return Ledger(budget, whose="query", above=self)

    @property
    def _own_limits(self) -> Budget:
        """The limits of what this ledger counts: those over days count what others spend, too."""
        return self.budget if self.daily is None else Budget()

    @property
    def cost(self) -> float | None:
        """The spending in money; None if a model that was asked has no price."""
        return self._cost

    def usage_of(self, task: Task) -> Usage | None:
        """The usage of the values of ``task`` so far, in all runs of the session; None before the
        first. Values that turned out to be images count, too."""
        tasks = {task, replace(task, images=True)}
        used = [self._by_task[one] for one in tasks if one in self._by_task]
        return Usage.total(used) if used else None

    def open(self, model: CachedModel, *, first: bool = True) -> None:
        """From here on ``model`` is asked; not the ``first``: its answers say whose they are.
        Raises OptionError if a cost is limited and it has no price, or one of several that may be
        asked has none."""
        limited = any(ledger.budget.cost is not None for ledger in self._chain())
        if limited or self.prices:
            find = self.prices.require if limited else self.prices.of
            # What a classifier of vectors takes is the embedder's.
            prices = [find(name) for name in model.names if name != EMBEDDING]
            if first:
                self._price = prices[0]

    def admit(self, task: Task, pending: int, model: CachedModel) -> int:
        """How many of ``pending`` values of ``task`` the next batch may have: at least one.

        ``settle`` must follow. Raises BudgetExceeded if a limit is reached.
        """
        with self._lock:
            most = self._allowance(
                pending,
                model.batch_size,
                lambda ledger, name, limit: ledger._fitting(name, limit, task, model),
                self._remaining(pending),
            )
            most = self._reserve(most, model, pending)
            for ledger in self._chain():
                ledger._values_in_flight += most
                ledger._batches_in_flight += 1
                ledger._begun += monotonic()
        return most

    def _reserve(self, most: int, model: CachedModel, pending: int) -> int:
        """How many of ``most`` values the budgets over days allow."""
        for ledger in self._chain():
            if ledger.daily is not None:
                calls = int(not model.abilities.call_per_value)
                most, name = ledger.daily.reserve(most, calls)
                if not most:
                    limit = getattr(ledger.budget, name)
                    raise ledger._excess_error(name, limit, pending, self._remaining(pending))
        return most

    def take_request(self, more: int) -> bool:
        """Whether a batch that was admitted may send ``more`` further requests; if so, they count
        as spent."""
        with self._lock:
            for ledger in self._chain():
                limit = ledger._own_limits.calls
                spent = ledger.usage.calls + ledger._requests_in_flight
                if limit is not None and spent + more > max(limit, spent):
                    return False
                if ledger.daily is not None and not ledger.daily.take_calls(more):
                    return False
            for ledger in self._chain():
                ledger._requests_in_flight += more
        return True

    def is_late(self) -> bool:
        """Whether the batches in flight have taken all seconds that a budget leaves them."""
        with self._lock:
            return any(ledger._seconds_left() < 0 for ledger in self._chain())

    def out_of_time(self, pending: int) -> BudgetExceeded:
        """The error of a batch that was ended, as ``is_late``."""
        with self._lock:
            ledger = min(self._chain(), key=Ledger._seconds_left)
            limit = ledger.budget.seconds
            assert limit is not None
            return ledger._excess_error("seconds", limit, pending, self._remaining(pending))

    def _seconds_left(self) -> float:
        limit = self._own_limits.seconds
        if limit is None:
            return math.inf
        return limit - self.usage.seconds - self._seconds_in_flight()

    def _seconds_in_flight(self) -> float:
        return self._batches_in_flight * monotonic() - self._begun

    def out_of_calls(self, pending: int) -> BudgetExceeded:
        """The error of a batch that a request was refused to."""
        return self._out_of_calls(pending, self._remaining(pending))

    def out_of_texts(self, pending: int) -> BudgetExceeded:
        """The error for a server of embeddings whose calls exceed the budget."""
        return self._out_of_calls(pending, f"{pending:,} text(s) to embed")

    def _out_of_calls(self, pending: int, remains: str) -> BudgetExceeded:
        with self._lock:
            spent = [
                (left, ledger, limit)
                for ledger in self._chain()
                if (limit := ledger.budget.calls) is not None
                for left in [limit - ledger.usage.calls]
            ]
            _, ledger, limit = min(spent, key=lambda found: found[0])
            return ledger._excess_error("calls", limit, pending, remains)

    def settle(
        self,
        task: Task,
        admitted: int,
        answers: Sequence[Answer],
        seconds: float,
        rest: Usage = _NOTHING,
    ) -> Usage:
        """A batch of ``admitted`` values has ended after ``seconds``, with these answers: what it
        spent. So many calls of ``rest`` went to a server, more perhaps than the answers tell of:
        one may have ended the batch. The tokens of ``rest`` are those of values without an answer.
        Such values count, too, one for each request that no answer tells of."""
        spent, requests = _usage_of(answers, seconds), rest.calls
        in_vain = min(admitted - len(answers), max(0, requests - spent.calls))
        spent = replace(spent + replace(rest, calls=0), calls=max(spent.calls, requests))
        cost = self._cost_of([*answers, Answer(None, usage=rest)]) if self.prices else None
        with self._lock:
            for ledger in self._chain():
                ledger._values_in_flight -= admitted
                ledger._batches_in_flight -= 1
                ledger._begun -= monotonic() - seconds
                if not ledger._batches_in_flight:
                    ledger._begun = 0.0
                ledger._requests_in_flight -= requests
            if spent.values:
                self._note(task, spent, cost)
            spent = replace(spent, values=spent.values + in_vain)
            self._add(spent, cost)
            for ledger in self._chain():
                if ledger.daily is not None:
                    ledger.daily.settle(requests, spent, cost, is_batch=True)
        return spent

    def admit_texts(self, embedder: MeteredEmbedder, pending: int) -> int:
        """How many of ``pending`` texts the next batch for a server of embeddings may have: at
        least one, and no more than one request until their usage is known.

        ``settle_texts`` must follow. Raises BudgetExceeded if a limit is reached, and OptionError
        if a cost is limited and the embedder has no price."""
        if any(ledger.budget.cost is not None for ledger in self._chain()):
            self.prices.require(embedder.name)
        with self._lock:
            return self._allowance(
                pending,
                embedder.batch_size,
                lambda ledger, name, limit: ledger._fitting_texts(name, limit, embedder),
                f"{pending:,} text(s) to embed",
            )

    def settle_texts(
        self, embedder: MeteredEmbedder, texts: int, spent: Usage, requests: int
    ) -> None:
        """So many texts were embedded, or not, and took ``spent``; ``requests`` were taken."""
        price = self.prices.of(embedder.name)
        cost = None if price is None else price.of(spent)
        with self._lock:
            for ledger in self._chain():
                ledger._requests_in_flight -= requests
            self._note(embedder.name, replace(spent, values=texts), cost)
            self._add(spent, cost)
            for ledger in self._chain():
                if ledger.daily is not None:
                    ledger.daily.settle(requests, spent, cost, is_batch=False)

    def _note(self, what: Task | str, spent: Usage, cost: float | None) -> None:
        self._by_task[what] = self._by_task.get(what, Usage()) + spent
        self._cost_by_task[what] = self._cost_by_task.get(what, 0.0) + (cost or 0.0)

    def _add(self, spent: Usage, cost: float | None) -> None:
        for ledger in self._chain():
            ledger.usage += spent
            if (spent.values or spent.calls) and ledger._cost is not None:
                ledger._cost = None if cost is None else ledger._cost + cost

    def _cost_of(self, answers: Sequence[Answer]) -> float | None:
        """The cost of answers, each at the prices of its model; None without a price."""
        by_model: dict[str, list[Usage]] = {}
        for answer in answers:
            for name, usage in answer.spent or (("", answer.usage),):
                by_model.setdefault(name, []).append(usage)
        cost = 0.0
        for name, usages in by_model.items():
            price = self.prices.of(name) if name else self._price
            spent = Usage.total(usages)
            if price is None and spent.values:
                return None
            cost += price.of(spent) if price is not None else 0.0
        return cost

    def _chain(self) -> Iterator[Ledger]:
        yield self
        if self._above is not None:
            yield self._above

    def _allowance(
        self,
        pending: int,
        batch_size: int,
        fitting: Callable[[Ledger, str, float], int],
        remains: str,
    ) -> int:
        """The number of ``pending`` values that every limit allows in one batch; ``fitting`` gives
        it for each limit."""
        most = min(pending, max(1, batch_size))
        for ledger in self._chain():
            for name, limit in ledger._own_limits.limits():
                fits = fitting(ledger, name, limit)
                if fits < 1:
                    raise ledger._excess_error(name, limit, pending, remains)
                most = min(most, fits)
        return most

    def _fitting(self, name: str, limit: float, task: Task, model: CachedModel) -> int:
        """How many more values of ``task`` one limit allows; less than 1 if it is reached."""
        left = limit - self._amount_spent(name)
        if left <= 0:
            return 0
        flying, seen = self._values_in_flight, self._by_task.get(task)
        if name == "values":
            return int(left) - flying
        if name == "calls":
            if not model.abilities.call_per_value:
                return model.batch_size if left > self._batches_in_flight else 0
            if left <= flying:
                return 0
            if seen is None:
                return max(1, min(model.abilities.at_once, int((left - flying) / task.consistency)))
            return max(1, int((left - flying) / max(1.0, seen.calls / seen.values)))
        if seen is None:
            return model.abilities.at_once if name == "seconds" else 1
        each = self._each(name, task, seen)
        return max(1, int(left / each) - flying) if each else model.batch_size

    def _fitting_texts(self, name: str, limit: float, embedder: MeteredEmbedder) -> int:
        """How many more texts one limit allows; less than 1 if it is reached."""
        if name == "values":
            return embedder.batch_size
        left = limit - self._amount_spent(name)
        if left <= 0:
            return 0
        if name == "calls":
            return int(left - self._requests_in_flight) * embedder.texts_a_request
        seen = self._by_task.get(embedder.name)
        if seen is None:
            return embedder.texts_a_request
        each = self._each(name, embedder.name, seen)
        return max(1, int(left / each)) if each else embedder.batch_size

    def _each(self, name: str, what: Task | str, seen: Usage) -> float:
        """The mean usage of one value so far."""
        amount = self._cost_by_task[what] if name == "cost" else getattr(seen, name)
        return float(amount / seen.values)

    def _amount_spent(self, name: str) -> float:
        return (self._cost or 0.0) if name == "cost" else float(getattr(self.usage, name))

    def _remaining(self, pending: int) -> str:
        remains = f"{pending:,} value(s) of this step"
        if self.expected is not None and self.expected - self.usage.values > pending:
            remains += f", about {self.expected - self.usage.values:,} of the query"
        return remains

    def _excess_error(self, name: str, limit: float, pending: int, remains: str) -> BudgetExceeded:
        error = BudgetExceeded(
            f"the {self._whose}'s budget{self._days_text()} is spent: {name}={limit}. Used: {self._progress_text()}. "
            f"Still to be asked: {remains}.",
            hint="Answers so far are kept: with a larger budget the same query goes on from here.",
        )
        error.limit, error.allowed, error.pending = name, limit, pending
        error.usage, error.cost = self.usage, self._cost
        return error

    def _days_text(self) -> str:
        days, user = self.budget.days, self.budget.user
        if days is None:
            return ""
        return f" of {days} day{'s' * (days > 1)}{'' if user is None else f' of {user}'}"

    def _progress_text(self) -> str:
        names = ("values", "calls", "prompt_tokens", "completion_tokens")
        done = [f"{name}={getattr(self.usage, name)}" for name in names]
        done.append(f"seconds={self.usage.seconds + self._seconds_in_flight():.1f}")
        return ", ".join(done + ([f"cost={money(self._cost)}"] if self._cost else []))


def _usage_of(answers: Sequence[Answer], seconds: float) -> Usage:
    """The usage of a batch. If a model reports none, each answered value is one request."""
    counted = Usage.total(a.usage for a in answers) if answers else Usage()
    values = max(counted.values, len(answers) - counted.cached)
    return replace(
        counted, values=values, calls=max(counted.calls, min(1, values)), seconds=seconds
    )
