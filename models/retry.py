"""How long to wait before the same HTTP request is tried again."""

from __future__ import annotations

import datetime
import email.utils
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential backoff with full jitter (M. Brooker, 2015): many waiting requests spread out.

    ``attempts`` counts the first try. A server's own Retry-After wins over the backoff,
    up to ``most_seconds``.
    """

    attempts: int = 5
    base_seconds: float = 0.5
    most_seconds: float = 60.0

    def delay_seconds(self, attempt: int, retry_after: str | None = None) -> float:
        """Seconds to wait after the failed try number ``attempt`` (from 0)."""
        asked = seconds_asked(retry_after)
        if asked is not None:
            return min(asked, self.most_seconds)
        return random.uniform(0, min(self.base_seconds * 2**attempt, self.most_seconds))


def seconds_asked(retry_after: str | None) -> float | None:
    """A Retry-After header (RFC 9110: seconds or an HTTP date) in seconds; None if it says nothing.

    >>> seconds_asked("1.5"), seconds_asked("soon")
    (1.5, None)
    """
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            when = email.utils.parsedate_to_datetime(retry_after)
        except ValueError:
            return None
        zone = when.tzinfo or datetime.UTC
        seconds = (when.replace(tzinfo=zone) - datetime.datetime.now(datetime.UTC)).total_seconds()
    return max(0.0, seconds) if seconds == seconds else None  # "nan" says nothing
