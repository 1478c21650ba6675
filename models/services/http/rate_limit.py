"""Limits requests and tokens per minute."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.images import IMAGE_TOKENS

_MINUTE = 60.0
_INLINE_IMAGE = re.compile(rb'data:image/\w+;base64,[^"]*')
_BYTES_PER_TOKEN = 3
"""The minimum estimate of tokens in a request: it errs on the high side."""
_LOOK_AGAIN_SECONDS = 1.0
"""A reply may tell sooner than a minute is over that a request took fewer tokens than estimated."""


@dataclass(slots=True, eq=False)
class Load:
    """One request on its way, with its share of the limits."""

    tokens: int
    sent_at: float = 0.0
    counts: bool = False
    """Whether it was sent less than a minute ago."""


class Rate:
    """At most so many requests and tokens in any 60 seconds; 0: any number. Safe to use from
    threads.

    A request counts with the tokens that its reply reports. Before the reply it counts with its
    upper bound: one token for every three bytes, and ``answer_tokens``. A request above the limit
    is sent alone.

    ``clock``: seconds that never go back.
    """

    def __init__(
        self,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
        *,
        answer_tokens: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._answer_tokens = answer_tokens
        self._clock = clock
        self._sent: deque[Load] = deque()
        self._tokens_sent = 0
        self._lock = threading.Lock()

    def load(self, request: bytes, images: int = 0) -> Load:
        """The load of a request with this body, before it is sent. ``images``: the number of images
        in it, whose bytes are no text."""
        text = len(_INLINE_IMAGE.sub(b"", request)) if images else len(request)
        return Load(-(-text // _BYTES_PER_TOKEN) + images * IMAGE_TOKENS + self._answer_tokens)

    def take(self, load: Load) -> float:
        """0.0: the request may go out, and counts from now on. Else the seconds after which to ask
        again: nothing was taken."""
        if not (self._requests or self._tokens):
            return 0.0
        with self._lock:
            now = self._clock()
            while self._sent and now - self._sent[0].sent_at >= _MINUTE:
                over = self._sent.popleft()
                over.counts = False
                self._tokens_sent -= over.tokens
            wait = max(self._wait_for_requests(now), self._wait_for_tokens(now, load.tokens))
            if wait <= 0:
                load.sent_at, load.counts = now, True
                self._sent.append(load)
                self._tokens_sent += load.tokens
            return wait

    def settle(self, load: Load, reply: dict[str, Json]) -> None:
        """From here on ``load`` takes what ``reply`` tells of its tokens, if it does."""
        tokens = _tokens_of(reply)
        if tokens is None:
            return
        with self._lock:
            if load.counts:
                self._tokens_sent += tokens - load.tokens
            load.tokens = tokens

    def _wait_for_requests(self, now: float) -> float:
        too_many = len(self._sent) - self._requests + 1
        if not self._requests or too_many <= 0:
            return 0.0
        return self._sent[too_many - 1].sent_at + _MINUTE - now

    def _wait_for_tokens(self, now: float, tokens: int) -> float:
        too_many = self._tokens_sent + tokens - self._tokens
        if not self._tokens or too_many <= 0:
            return 0.0
        wait = 0.0  # where the request is larger than the limit: until nothing else counts
        for load in self._sent:
            wait = load.sent_at + _MINUTE - now
            too_many -= load.tokens
            if too_many <= 0:
                break
        return min(wait, _LOOK_AGAIN_SECONDS)


def _tokens_of(reply: dict[str, Json]) -> int | None:
    """The tokens of the prompt and the answer, as the server counts them; None if it does not
    say."""
    usage = reply.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    return sum(n for n in counts if isinstance(n, int) and n > 0) or None
