"""The way in which a model answers yes/no questions about no known idea, chosen by measurement.

``ways.txt`` lists the models whose answers were better by the likelihood of the question than by
yes and no, on the part *choose* of benchmarks/bank. Every other model answers by yes and no.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

WAYS = Path(__file__).with_name("ways.txt")
_ENDS = 1 << 16


@dataclass(frozen=True, slots=True)
class ByLikelihood:
    """The weights of a model. ``slope``: log odds per standard deviation of the neutral texts;
    ``shift``: standard deviations above their mean at which yes and no are equally likely."""

    slope: float
    shift: float


def way_of(weights: Path) -> ByLikelihood | None:
    """The way of a GGUF file; None: by yes and no."""
    return _read().get(weights_digest(weights))


def weights_digest(weights: Path) -> str:
    """A digest of a file's size, beginning and end, as ``ways.txt`` names it."""
    state = weights.stat()
    return _digest(weights, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _digest(weights: Path, size: int, changed: int) -> str:
    digest = hashlib.sha256(str(size).encode())
    with weights.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        digest.update(file.read())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _read() -> dict[str, ByLikelihood]:
    lines = WAYS.read_text("utf-8").splitlines()
    rows = [line.split(maxsplit=3) for line in lines if line and not line.startswith("#")]
    return {digest: ByLikelihood(float(slope), float(shift)) for digest, slope, shift, _ in rows}
