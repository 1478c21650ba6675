"""Decides when and how often an HTTP request is retried."""

from __future__ import annotations

import asyncio
import datetime
import email.utils
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from blendfusion.models.protocol.events import request_retried

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

T = TypeVar("T")


class Passing(Exception):
    """A request failed for a reason that may be temporary. Never leaves ``blendfusion.models``.

    ``kind`` is the status of the reply, or ``timeout``, ``connection``, ``reply`` (it was none).
    """

    def __init__(self, message: str, kind: str = "reply") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential backoff with full jitter (M. Brooker, 2015): many waiting requests spread out.

    ``attempts`` counts the first try. ``most_seconds`` bounds one backoff, and how long a server
    that answered before may be away. ``longest_pause_seconds``: a server that asks for a longer one
    (Retry-After) is given up, as coming back earlier than it says is of no use.
    """

    attempts: int = 5
    base_seconds: float = 0.5
    most_seconds: float = 60.0
    longest_pause_seconds: float = 600.0

    @property
    def patient(self) -> bool:
        """Whether failed requests are repeated."""
        return self.attempts > 1

    async def call(self, function: Callable[[], Awaitable[T]], server: str) -> T:
        """The result of ``function``, called until it raises no ``Passing``; the last one is
        raised.

        ``server``: the host that is asked, for logs.
        """
        try:
            return await function()
        except Passing as trouble:
            first: Passing | None = trouble

        async def next_try() -> T:
            nonlocal first
            if first is not None:  # the first try was above, without what only a failure needs
                trouble, first = first, None
                raise trouble
            return await function()

        result: T = await self._tries(server)(next_try)
        return result

    def _tries(self, server: str) -> AsyncRetrying:
        from tenacity import (
            AsyncRetrying,
            retry_if_exception_type,
            stop_after_attempt,
            wait_random_exponential,
        )

        def tell(state: RetryCallState) -> None:
            trouble = state.outcome.exception() if state.outcome is not None else None
            kind = trouble.kind if isinstance(trouble, Passing) else ""
            request_retried(server, state.attempt_number, state.upcoming_sleep, kind)

        return AsyncRetrying(
            stop=stop_after_attempt(self.attempts),
            wait=wait_random_exponential(multiplier=self.base_seconds, max=self.most_seconds),
            retry=retry_if_exception_type(Passing),
            sleep=asyncio.sleep,
            before_sleep=tell,
            reraise=True,
        )


def retry_after_seconds(retry_after: str | None, sent: str | None = None) -> float | None:
    """A Retry-After header (RFC 9110: seconds or an HTTP date) in seconds; None if it says nothing.

    A date counts from ``sent``, the reply's own Date: the clocks of two machines differ.

    >>> retry_after_seconds("1.5"), retry_after_seconds("soon")
    (1.5, None)
    >>> retry_after_seconds("Wed, 21 Oct 2026 07:28:30 GMT", "Wed, 21 Oct 2026 07:28:00 GMT")
    30.0
    """
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        then = _moment(retry_after)
        if then is None:
            return None
        now = _moment(sent or "") or datetime.datetime.now(datetime.UTC)
        seconds = (then - now).total_seconds()
    return max(0.0, seconds) if seconds == seconds else None  # "nan" says nothing


def _moment(text: str) -> datetime.datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC)
