"""Random queries of a grammar."""

from __future__ import annotations

import random

import numpy as np

from blendfusion.models.constraints.grammar import _automaton

_ENDS = 0.3
"""Probability of the end where a query may end."""
_LONGEST = 4_000


def prefix_of(grammar: str, text: str) -> str:
    """The longest beginning of ``text`` that begins a query of the grammar."""
    data = text.encode("utf-8", "replace")
    fits = _automaton(grammar).deep_copy().try_consume_tokens(list(data))
    return data[:fits].decode("utf-8", "ignore")


def walk(grammar: str, dice: random.Random) -> str:
    """A query that ``dice`` writes byte by byte, each with equal odds among those that may follow."""
    automaton = _automaton(grammar).deep_copy()
    written = bytearray()
    while not automaton.is_stopped():
        mask = np.frombuffer(automaton.compute_bitmask(), np.uint8)
        allowed = np.flatnonzero(np.unpackbits(mask, bitorder="little")[:256])
        plain = allowed[allowed < 128]
        ends = len(written) > _LONGEST or dice.random() < _ENDS
        if automaton.is_accepting() and (ends or not len(allowed)):
            break
        byte = int(dice.choice(plain if len(plain) else allowed))
        written.append(byte)
        automaton.consume_token(byte)
    return written.decode()
