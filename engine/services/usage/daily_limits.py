"""Budgets over days: limits that all sessions of a store share, whatever process they are in."""

from __future__ import annotations

import threading
from dataclasses import replace

from blendfusion.budget import Budget
from blendfusion.services.usage.book import (
    Amounts,
    Statements,
    UsageBook,
    add_spent,
    amounts_of,
    spent_since,
)
from blendfusion.types import Usage

_NAMES = {"values": "number"}
"""The names of amounts that are others than those of limits."""


class SharedLimits:
    """The limits of a budget over days, which a book counts.

    Values and calls are entered in the book before they are asked, in one transaction with the
    look at what was spent: no number of processes exceeds them. Tokens, seconds and cost are known
    afterwards: each process may exceed them by the batch that it is asking.
    """

    def __init__(self, book: UsageBook, budget: Budget, user: str) -> None:
        self._book, self._budget, self._user = book, budget, user
        self._batch = threading.local()

    def _total(self, statements: Statements) -> Amounts:
        days = self._budget.days or 1
        first = self._book.today(before=days - 1)
        return spent_since(statements, first, self._budget.user)

    def reserve(self, values: int, calls: int) -> tuple[int, str]:
        """Enter a batch of up to ``values`` values, and ``calls`` of a model in this process.
        Returns the number of values that it may have, and the limit that caused it; 0 if a limit is
        reached."""
        with self._book.writing() as statements:
            most, reason, spent = values, "", self._total(statements)
            for name, limit in self._budget.limits():
                left = limit - getattr(spent, _NAMES.get(name, name))
                if left <= 0 and not (name == "calls" and not calls):
                    return 0, name
                if name == "values" and left < most:
                    most, reason = int(left), name
            entered = Amounts(number=most, calls=calls)
            add_spent(statements, self._book.today(), self._user, entered)
        self._batch.entered = entered
        return most, reason

    def take_calls(self, more: int) -> bool:
        """Enter requests of a server, if the limit of calls leaves so many."""
        limit = self._budget.calls
        with self._book.writing() as statements:
            if limit is not None and self._total(statements).calls + more > limit:
                return False
            add_spent(statements, self._book.today(), self._user, Amounts(calls=more))
        return True

    def settle(self, requests: int, spent: Usage, cost: float | None, *, is_batch: bool) -> None:
        """Replace what was entered for the batch of this thread by what it took; ``requests`` were
        entered one by one."""
        entered = Amounts()
        if is_batch:
            entered = getattr(self._batch, "entered", entered)
            self._batch.entered = Amounts()
        change = replace(
            amounts_of(spent, cost),
            number=spent.values - entered.number,
            calls=spent.calls - entered.calls - requests,
        )
        with self._book.writing() as statements:
            add_spent(statements, self._book.today(), self._user, change)
