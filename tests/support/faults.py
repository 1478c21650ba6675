"""A chat server that fails some of its requests, in many ways; which ones is known beforehand."""

from __future__ import annotations

import email.utils
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable

from loopback import Body, Reply

FAULTS: dict[str, Callable[[threading.Event], Reply]] = {
    "too many requests": lambda end: Reply(
        status=429, error="slow down", headers={"Retry-After": "0.02"}
    ),
    "outside the constraint": lambda end: Reply("Some, I would say."),
    "server error": lambda end: Reply(status=500, error="out of memory"),
    "bad gateway": lambda end: Reply(status=502, raw=b"<html><h1>502 Bad Gateway</h1></html>"),
    "reset": lambda end: Reply(reset=True),
    "half a reply": lambda end: Reply('{"answer": 1}', half=True),
    "silence": lambda end: Reply(wait=end),
    "overloaded": lambda end: Reply(
        status=503, error="later", headers={"Retry-After": email.utils.formatdate(usegmt=True)}
    ),
    "nothing": lambda end: Reply(""),
    "cut JSON": lambda end: Reply(raw=b'{"choices": [{"message": {"content": "{'),
    "a list": lambda end: Reply(raw=b"[1, 2, 3]"),
    "an error that is called fine": lambda end: Reply(raw=b'{"error": {"message": "upstream"}}'),
    "broken off": lambda end: Reply("12", finish="error"),
}


def asked_number(body: Body) -> int:
    """The number in the text that is asked about: "box 7 of many"."""
    told = " ".join(str(message["content"]) for message in body["messages"])
    return int(re.findall(r"box (\d+) of", told)[-1])


class FaultyServer:
    """Answers with the number in the text; a share of its requests fails, each way as often.

    Whether the n-th request about a number fails depends on ``seed``, the number and n alone, so
    that neither threads nor load change it. ``seen`` counts the faults by name.
    """

    def __init__(self, seed: int, share: float, healthy: int = 0) -> None:
        self.seen: Counter[str] = Counter()
        self.asked: Counter[int] = Counter()
        self.end = threading.Event()
        """Lets go of the requests that are kept waiting."""
        self._seed, self._share, self._healthy = seed, share, healthy
        self._lock = threading.Lock()

    def fault(self, number: int, nth: int) -> str | None:
        """How the ``nth`` request (from 0) about ``number`` fails; numbers below ``healthy`` never
        do."""
        drawn = hashlib.blake2s(f"{self._seed} {number} {nth}".encode(), digest_size=8).digest()
        if number < self._healthy or int.from_bytes(drawn, "big") / 2**64 >= self._share:
            return None
        names = list(FAULTS)
        return names[(number + nth) % len(names)]

    def script(self, body: Body) -> Reply:
        number = asked_number(body)
        with self._lock:
            name = self.fault(number, self.asked[number])
            self.asked[number] += 1
            if name is not None:
                self.seen[name] += 1
                return FAULTS[name](self.end)
        time.sleep(0.001)
        return Reply(json.dumps({"answer": number}))
