"""The requests to servers, and the time, that a batch of values may take yet: a try that is
repeated is a request, too."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from blendfusion.models.protocol.interrupts import check_interrupt
from blendfusion.types import Usage


class OutOfBudgetError(Exception):
    """The budget has nothing left. Never leaves the package: who keeps the budget says it in its
    words."""


class OutOfCallsError(OutOfBudgetError):
    """The budget has no request left."""


class OutOfTimeError(OutOfBudgetError):
    """The budget has no second left."""


class Allowance:
    """Counts the requests of one batch; ``take`` says of each (1) whether it may be made, and hears
    of one that was not made after all (-1). ``is_late`` says whether the time is over."""

    def __init__(
        self, take: Callable[[int], bool], is_late: Callable[[], bool] = lambda: False
    ) -> None:
        self._take = take
        self.is_late = is_late
        self.requests = 0
        """The number of requests made."""
        self.tokens = Usage()
        """The tokens of all replies, as far as they are known before there is an answer."""

    def spend(self) -> None:
        """One request is about to be sent. Raises OutOfCallsError instead."""
        if not self._take(1):
            raise OutOfCallsError
        self.requests += 1

    def rest(self, answered: Usage) -> Usage:
        """The tokens of replies that no answer tells of, and all requests, where the answers took
        ``answered``."""
        return Usage(
            calls=self.requests,
            prompt_tokens=max(0, self.tokens.prompt_tokens - answered.prompt_tokens),
            evaluated_tokens=max(0, self.tokens.evaluated_tokens - answered.evaluated_tokens),
            completion_tokens=max(0, self.tokens.completion_tokens - answered.completion_tokens),
        )

    def give_back(self) -> None:
        """The latest request found no connection."""
        self._take(-1)
        self.requests -= 1


_current: contextvars.ContextVar[Allowance | None] = contextvars.ContextVar(
    "blendfusion_allowance", default=None
)


def spend_request() -> None:
    """To be called before each request that goes to a server. Raises OutOfCallsError where the
    budget allows none; a back end lets it pass."""
    allowance = _current.get()
    if allowance is not None:
        allowance.spend()


def give_request_back() -> None:
    """To be called where a request found no connection: nothing was sent."""
    allowance = _current.get()
    if allowance is not None:
        allowance.give_back()


def note_tokens(usage: Usage) -> None:
    """Count the tokens of a reply of a server, whether or not its value gets an answer."""
    allowance = _current.get()
    if allowance is not None:
        tokens = usage.prompt_tokens, usage.evaluated_tokens, usage.completion_tokens
        allowance.tokens += Usage(0, 0, 0, 0, *tokens)


def check_time() -> None:
    """To be called several times a second by whoever waits for a model. Raises OutOfTimeError where
    the budget allows no more time, and KeyboardInterrupt where this thread was interrupted."""
    check_interrupt()
    allowance = _current.get()
    if allowance is not None and allowance.is_late():
        raise OutOfTimeError


@contextmanager
def allowing(
    take: Callable[[int], bool], is_late: Callable[[], bool] = lambda: False
) -> Iterator[Allowance]:
    """Counts the requests of this context, and of threads that copy it. ``take`` decides whether
    so many more may be sent, and ``is_late`` whether their time is over."""
    allowance = Allowance(take, is_late)
    token = _current.set(allowance)
    try:
        yield allowance
    finally:
        _current.reset(token)
