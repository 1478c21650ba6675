"""The measured rates of models in earlier sessions."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from hashlib import sha256
from pathlib import Path

from blendfusion.models.protocol.python_packages import cache_folder
from blendfusion.types import Usage

_LEAST_SECONDS = 1.0
"""Less work says nothing about a model."""
_MOST_MODELS = 100
"""Models in the file: the latest."""


class EarlierRates:
    """Seconds per token of the models of earlier runs on this machine: ``throughput.json`` in the
    user's cache folder, by a digest of the model's fingerprint. A file that cannot be read or
    written is ignored."""

    def __init__(self) -> None:
        self._spent: dict[str, Usage] = {}
        self._lock = threading.Lock()

    def of(self, fingerprint: str) -> float | None:
        """Seconds per evaluated or generated token; None for a model that is not known."""
        rate = _read().get(_digest(fingerprint))
        return rate if isinstance(rate, float) and rate > 0 else None

    def add(self, fingerprint: str, spent: Usage) -> None:
        """Record the usage of one batch, to be kept."""
        with self._lock:
            self._spent[fingerprint] = self._spent.get(fingerprint, Usage()) + spent

    def keep(self) -> None:
        """Write the rates of this run, in place of earlier ones of the same models."""
        with self._lock:
            spent, self._spent = self._spent, {}
        rates = {
            _digest(fingerprint): usage.seconds / tokens
            for fingerprint, usage in spent.items()
            if (tokens := usage.evaluated_tokens + usage.completion_tokens)
            and usage.seconds >= _LEAST_SECONDS
        }
        if not rates:
            return
        known = {name: rate for name, rate in _read().items() if name not in rates} | rates
        part = _file().with_suffix(f".{os.getpid()}.part")
        with contextlib.suppress(OSError):
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(dict([*known.items()][-_MOST_MODELS:])), "utf-8")
            part.replace(_file())


def _file() -> Path:
    return cache_folder() / "throughput.json"


def _digest(fingerprint: str) -> str:
    return sha256(fingerprint.encode()).hexdigest()[:16]


def _read() -> dict[str, object]:
    try:
        known = json.loads(_file().read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}
