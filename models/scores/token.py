"""A token of a server's reply, with its alternatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply, with the log probabilities of the alternatives at its position."""

    text: str
    logprobs: Mapping[str, float]
