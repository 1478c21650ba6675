"""Spending limits of sessions and queries, and prices of models. A leaf: it imports only leaves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from typing import TypeAlias

from blendfusion.errors import OptionError, close_matches
from blendfusion.types import Usage

_WHOLE = ("calls", "values", "prompt_tokens", "completion_tokens")
_LIMITS = (*_WHOLE, "seconds", "cost")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The spending limits on models; None: no limit. Cached answers are free.

        calls: requests of a server, retries included; in process, batches.
        values: values sent to a model, failed ones included.
        prompt_tokens: tokens of all prompts; a shared prefix counts each time.
        completion_tokens: tokens of all answers.
        seconds: time inside models, waits for a server included.
        cost: in the currency of the session's ``prices``.
        days: the limits hold for all sessions that share the file of stored answers, in any
            process: for what they ask today (UTC) and on the days before, so many together.
        user: the spending is this user's, and the limits hold for that alone; None: it is entered
            under the name of the process's user, and the limits hold for all users together.

    Usage of embedding servers counts, but texts to embed are not values. Each limit is checked
    before a batch, and a running batch may finish: values are exact, and other limits are exceeded
    by at most that batch. Raises OptionError for a limit that is not a number, or below zero.

    >>> Budget(values=1_000, cost=2.5)
    Budget(values=1000, cost=2.5)
    """

    calls: int | None = None
    values: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    days: int | None = None
    user: str | None = None

    def __post_init__(self) -> None:
        if self.days is not None and (type(self.days) is not int or self.days < 1):
            raise OptionError(
                f"Budget(days={self.days!r}) is not possible",
                hint="days is a whole number, from 1 on.",
            )
        if self.user is not None and (not isinstance(self.user, str) or self.days is None):
            raise OptionError(
                f"Budget(user={self.user!r}) is not possible",
                hint="user is a name, beside days: Budget(values=1000, days=1, user='ann').",
            )
        for name, limit in self.limits():
            whole = name in _WHOLE
            if not _is_amount(limit) or (whole and not isinstance(limit, int)):
                kind = "a whole number" if whole else "a number"
                raise OptionError(
                    f"Budget({name}={limit!r}) is not possible",
                    hint=f"{name} is {kind}, at least 0; None sets no limit.",
                )

    def __repr__(self) -> str:
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"Budget({', '.join(f'{name}={v!r}' for name, v in given if v is not None)})"

    def limits(self) -> Iterator[tuple[str, float]]:
        """(name, limit) of each limit that is set."""
        for name in _LIMITS:
            limit = getattr(self, name)
            if limit is not None:
                yield name, limit

    @staticmethod
    def parsed(text: str) -> Budget:
        """A budget from the text of a command line.

        >>> Budget.parsed("values=1000,cost=2.5")
        Budget(values=1000, cost=2.5)
        """
        parts = [part for part in text.split(",") if not part.strip().startswith("user=")]
        users = [part.partition("=")[2].strip() for part in text.split(",") if part not in parts]
        amounts = _amounts(",".join(parts), [*_LIMITS, "days"], "budget")
        return Budget(**amounts, user=users[0] if users else None)  # type: ignore[arg-type]


def checked_budget(given: Budget | None) -> Budget | None:
    """Returns ``given`` unchanged. Raises OptionError for an object that is no Budget."""
    if given is None or isinstance(given, Budget):
        return given
    raise OptionError(
        f"budget={given!r} is not possible", hint="A bf.Budget, for example bf.Budget(values=1000)."
    )


def lowest(budgets: Iterable[Budget | None]) -> Budget | None:
    """The lowest of each limit over all budgets; None without any budget.

    >>> lowest([Budget(values=10, seconds=60), None, Budget(values=5)])
    Budget(values=5, seconds=60)
    """
    low: dict[str, float] = {}
    given = [budget for budget in budgets if budget is not None]
    for name, limit in chain.from_iterable(budget.limits() for budget in given):
        low[name] = min(limit, low.get(name, limit))
    return Budget(**low) if given else None  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model for a million tokens of prompts and of answers, in any currency.

    Discounts for tokens that a server has cached are not modelled, so a cost is an upper bound.
    Raises OptionError for a price that is not a number, or below zero.

    >>> Price(prompt=0.15, completion=0.6).of(Usage(prompt_tokens=2_000_000, completion_tokens=500_000))
    0.6
    """

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name, price in (("prompt", self.prompt), ("completion", self.completion)):
            if not _is_amount(price):
                raise OptionError(
                    f"Price({name}={price!r}) is not possible",
                    hint="The price of a million tokens: a number, at least 0.",
                )

    def of(self, usage: Usage) -> float:
        """The cost of ``usage``."""
        spent = usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion
        return spent / _MILLION

    @staticmethod
    def parsed(text: str) -> Price:
        """A price from the text of a command line.

        >>> Price.parsed("prompt=0.15,completion=0.6")
        Price(prompt=0.15, completion=0.6)
        """
        amounts = _amounts(text, ["prompt", "completion"], "price")
        if len(amounts) < 2:
            raise OptionError(
                f"the price {text!r} is not complete", hint="Write prompt=0.15,completion=0.6."
            )
        return Price(**amounts)


PriceList: TypeAlias = "Price | Mapping[str, Price | str] | str | None"


class Prices:
    """Prices of models: one for every model of a session, or by name.

    A name is that of ``ModelInfo``, ``openai:gpt-x@https://…``, with or without the URL or the back
    end: ``openai:gpt-x``, ``gpt-x``. The longest form with a price counts. Raises OptionError for
    invalid prices. ``listed`` are those of models that have no other.
    """

    def __init__(
        self, given: PriceList = None, *, listed: Mapping[str, Price] | None = None
    ) -> None:
        self._listed = dict(listed or {})
        self._any = given if isinstance(given, Price) else None
        named = {} if given is None or self._any is not None else given
        if not isinstance(named, Mapping) or not all(isinstance(p, Price) for p in named.values()):
            raise OptionError(
                f"prices={given!r} is not possible",
                hint="A bf.Price(prompt=…, completion=…), a dict of prices by the names of models, or "
                "'listed'.",
            )
        self._named: dict[str, Price] = dict(named)  # type: ignore[arg-type]  # all are prices

    def __bool__(self) -> bool:
        return self._any is not None or bool(self._named) or bool(self._listed)

    def of(self, model: str) -> Price | None:
        """The price of the model with this name; None if unknown."""
        own = next((self._named[n] for n in _forms(model) if n in self._named), self._any)
        return self._listed.get(model) if own is None else own

    def require(self, model: str) -> Price:
        """The price of the model with this name. Raises OptionError if unknown."""
        price = self.of(model)
        if price is None:
            near = close_matches(_forms(model)[-1], self._named)
            raise OptionError(
                f"a budget of cost needs the price of the model '{model}'",
                hint=f"{near} State the price of a million tokens: prices={{'{_forms(model)[-1]}': "
                "bf.Price(prompt=…, completion=…)}, or --price prompt=…,completion=….".strip(),
            )
        return price


def _forms(model: str) -> list[str]:
    """The names under which a price may be given, the longest first.

    >>> _forms("openai:gpt-x@https://api.openai.com/v1")
    ['openai:gpt-x@https://api.openai.com/v1', 'openai:gpt-x', 'gpt-x']
    """
    without_url = model.partition("@http")[0]
    return list(dict.fromkeys([model, without_url, without_url.partition(":")[2] or without_url]))


def money(cost: float) -> str:
    """An amount with two decimals, or with as many as a small amount needs.

    >>> money(12.3456), money(0.000153), money(0.0)
    ('12.35', '0.000153', '0')
    """
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.6f}".rstrip("0").rstrip(".")


def _amounts(text: str, names: list[str], what: str) -> dict[str, float]:
    """The numbers of ``name=number,…``. Raises OptionError for anything else."""
    amounts: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (side.strip() for side in part.partition("="))
        if name not in names:
            hint = f"{close_matches(name, names)} Write for example {names[0]}=100,{names[1]}=100."
            raise OptionError(f"unknown part '{name}' of the {what} {text!r}", hint=hint.strip())
        try:
            amounts[name] = int(number) if number.isdecimal() else float(number)
        except ValueError:
            raise OptionError(
                f"the {what} {text!r} has no number for '{name}'", hint=f"Write {name}=100."
            ) from None
    return amounts


def _is_amount(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0
