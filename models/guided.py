"""Answers of open form: greedy decoding in which a token automaton masks what cannot follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from blendfusion.errors import ModelFailed
from blendfusion.models.llama_context import LlamaContext, Logits

Settled: TypeAlias = "Callable[[bytes], bool]"
"""Whether what was written so far is as much of the answer as is wanted."""


def never(_written: bytes) -> bool:
    """For answers that are wanted to their end."""
    return False


class Guide:
    """Makes the automata of one pattern over one model's vocabulary (``vocabulary``: see
    ``LlamaContext.guide``). Raises ModelFailed if the pattern is no regular expression."""

    def __init__(self, context: LlamaContext, vocabulary: Any, pattern: str) -> None:
        from llguidance import LLMatcher

        self._first = LLMatcher(vocabulary, LLMatcher.grammar_from_regex(pattern))
        if self._first.is_error():
            raise ModelFailed(
                f"the pattern {pattern!r} cannot be followed: {self._first.get_error()}",
                hint="Patterns use the syntax of RE2: no look-around, no back-references.",
            )
        self.piece = context.piece
        self.size = context.n_vocab
        self.ends = np.zeros(self.size, np.bool_)
        self.ends[list(context.end_tokens)] = True
        newline = context.tokenize("\n", special=False)
        if len(newline) == 1:
            self.ends[newline[0]] = True

    def writer(self, limit: int, noise: float, settled: Settled = never) -> Writer:
        return Writer(self, self._first.deep_copy(), limit, noise, settled)


class Writer:
    """Writes one answer, as far as it is wanted. ``tokens`` and ``written`` are what was written;
    ``complete``: to its end; ``enough``: it was ``settled`` before. ``tied``: at some token the best
    two were closer than ``noise`` (0 accepts every token), and writing stopped there."""

    def __init__(
        self, guide: Guide, matcher: Any, limit: int, noise: float, settled: Settled
    ) -> None:
        self._guide = guide
        self._matcher = matcher
        self._limit = limit
        self._noise = noise
        self._settled = settled
        self.tokens: list[int] = []
        self.written = b""
        self.tied = False
        self.complete = False
        self.enough = False
        self._allowed = self._mask()

    def step(self, logits: Logits) -> list[int]:
        """Choose the next token; returns it with those that it forces, or nothing at the end."""
        scores = np.where(self._allowed, logits, -np.inf)
        best = int(scores.argmax())
        if self._noise > 0:
            chosen = scores[best]
            scores[best] = -np.inf
            if chosen - scores.max() < self._noise:
                self.tied = True
                return []
        if self._guide.ends[best]:
            self.complete = True
            return []
        self._matcher.consume_token(best)
        added = [best]
        forced = self._matcher.compute_ff_tokens()
        if forced and self._matcher.consume_tokens(forced):
            added += forced
        self.tokens += added
        self.written += b"".join(map(self._guide.piece, added))
        if self._matcher.is_stopped():
            self.complete = True
            return []
        if self._settled(self.written):
            self.enough = True
            return []
        if len(self.tokens) >= self._limit:
            self.complete = bool(self._matcher.is_accepting())
            return []
        self._allowed = self._mask()
        if not (self._allowed & ~self._guide.ends).any():
            self.complete = True
            return []
        return added

    def _mask(self) -> NDArray[np.bool_]:
        packed = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        bits = np.unpackbits(packed, bitorder="little")[: self._guide.size]
        allowed = np.zeros(self._guide.size, np.bool_)
        allowed[: len(bits)] = bits
        return allowed
