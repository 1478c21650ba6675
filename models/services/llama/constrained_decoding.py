"""Greedy decoding in which a token automaton masks invalid continuations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.grammar import limits, with_edges
from blendfusion.models.constraints.regex import without_anchors
from blendfusion.models.services.llama.context import LlamaContext, Logits

Settled: TypeAlias = "Callable[[bytes], bool]"
"""Whether the tokens so far are as much of the answer as the query needs."""


def never(_written: bytes) -> bool:
    """For answers that are wanted to their end."""
    return False


_WITHIN_NUMBERS = tuple(bytes([byte]) for byte in b",'0123456789")
"""Characters that may continue a number beyond its pattern: ``1,000``."""


class Guide:
    """Makes the automata of one pattern over one model's vocabulary (``vocabulary``: see
    ``LlamaContext.guide``). ``lead`` begins the answer, ``stop`` may end it. ``is_grammar``: the
    pattern is a grammar in Lark's form.

    Raises ModelFailed, which names the pattern, if nothing can be written under it."""

    def __init__(
        self,
        context: LlamaContext,
        vocabulary: Any,
        pattern: str,
        lead: str = "",
        stop: str = "",
        *,
        is_grammar: bool = False,
    ) -> None:
        from llguidance import LLMatcher

        if is_grammar:
            whole = LLMatcher.grammar_from_lark(with_edges(pattern, lead, stop))
        else:
            behind = f"({stop})?" if stop else ""
            whole = LLMatcher.grammar_from_regex(
                f"{re.escape(lead)}({without_anchors(pattern)}){behind}"
            )
        self.pattern = "the grammar" if is_grammar else f"the regex {pattern!r}"
        self._tokens = partial(context.tokenize, special=False)
        self._lead = lead
        self._first = LLMatcher(vocabulary, whole, log_level=0, limits=limits())
        if not self._first.is_error():
            tried = self._first.deep_copy()
            tried.compute_bitmask()  # what nothing matches shows only here
            self.follows(tried)
        self.follows(self._first)
        self.piece = context.piece
        self.size = context.n_vocab
        ends = np.zeros(self.size, np.bool_)
        ends[list(context.end_tokens)] = True
        self.ends = frozenset(context.end_tokens)
        self.goes_on = np.packbits(~ends, bitorder="little")
        """The tokens that end nothing, as the bits of a mask."""
        stops = context.tokenize(stop, special=False) if stop else []
        self.stop = stops[0] if len(stops) == 1 else None
        """The token that is all of ``stop``."""

    def follows(self, matcher: Any) -> None:
        """Raises ModelFailed if a matcher has lost the pattern."""
        if matcher.is_error():
            reason = matcher.get_error().splitlines()[0]
            raise ModelFailed(
                f"{self.pattern} cannot be followed: {reason}",
                hint="Patterns use the syntax of RE2: no look-around, no back-references.",
            )

    def writer(self, limit: int, noise: float, settled: Settled = never, begun: str = "") -> Writer:
        """A writer of one answer, which has written as much of ``begun`` as may be written."""
        writer = Writer(self, self._first.deep_copy(), limit, noise, settled)
        if begun:
            writer.begin(self._tokens(self._lead + begun))
        return writer


@dataclass(frozen=True, slots=True)
class Tie:
    """A token that was chosen although another was nearer to it than ``noise``."""

    at: int
    """The number of tokens written before."""
    token: int
    matcher: Any


class Writer:
    """Writes one answer, as far as the query needs it. ``tokens`` and ``written``: the answer so
    far; ``ended``: nothing follows; ``complete``: the answer is whole; ``enough``: it was
    ``settled`` before. ``ties``: the tokens that were chosen by less than ``noise``."""

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
        self.complete = False
        self.enough = False
        self.ended = False
        self.ties: list[Tie] = []

    def begin(self, tokens: Sequence[int]) -> None:
        """Write the longest possible prefix of ``tokens`` without its last token, since another
        token may follow there."""
        most = self._matcher.validate_tokens(list(tokens))
        kept = list(tokens[: most if most < len(tokens) else most - 1])
        if kept and self._matcher.consume_tokens(kept):
            self.tokens += kept
            self.written += b"".join(map(self._guide.piece, kept))

    def step(self, logits: Logits) -> list[int]:
        """Choose the next token; returns it with those that it forces, or nothing at the end."""
        best, near = self._choose(self._matcher, logits, self._noise)
        if near:
            self.ties.append(Tie(len(self.tokens), best, self._matcher.deep_copy()))
        added = self._write(best)
        self.ended = not added
        return added

    def choose_token(self, tie: Tie, logits: Logits) -> int:
        """The token that these logits, which no other row has changed, choose in the place of
        ``tie``."""
        best, _ = self._choose(tie.matcher, logits, 0.0)
        return best

    def rewrite(self, tie: Tie, token: int) -> None:
        """Put another token in the place of ``tie``; what was written from there on is gone, with
        the ties in it."""
        self._matcher = tie.matcher
        self.tokens = self.tokens[: tie.at]
        self.written = b"".join(map(self._guide.piece, self.tokens))
        self.ties = [before for before in self.ties if before.at < tie.at]
        self.complete = self.enough = False
        self.ended = not self._write(token)

    def _choose(self, matcher: Any, logits: Logits, noise: float) -> tuple[int, bool]:
        """The best token that may follow, and whether another, with which the answer would go on
        differently, is nearer to it than ``noise``.

        Mostly the best of all tokens may follow, and is far from the second: then nothing else has
        to be known of those that may. Where the answer may end and the model would go on with what
        cannot follow ("5" with " days"), it ends: of what may follow, small models take one digit
        after the other."""
        first = int(logits.argmax())
        fits = matcher.validate_tokens([first]) == 1
        second = first
        if fits:
            if noise <= 0:
                return first, False
            top = logits[first]
            logits[first] = -np.inf
            second = int(logits.argmax())
            logits[first] = top
            if top - logits[second] >= noise:
                return first, False
        allowed = self._allowed_tokens(matcher)
        if not len(allowed):
            return next(iter(self._guide.ends)), False
        scores = logits[allowed]
        place = int(scores.argmax())
        best = int(allowed[place])
        may_end = bool(matcher.is_accepting())
        if not fits and may_end and self._leaves(first):
            return next(iter(self._guide.ends)), bool(logits[first] - scores[place] < noise)
        others = allowed != best
        if best in self._guide.ends:
            others &= ~np.isin(allowed, list(self._guide.ends))
        elif fits and may_end and second not in allowed and self._leaves(second):
            return best, True
        near = noise > 0 and others.any() and scores[place] - scores[others].max() < noise
        return best, bool(near)

    def _leaves(self, token: int) -> bool:
        """Whether an answer that goes on with this token, which cannot follow, is over."""
        return not self._guide.piece(token).startswith(_WITHIN_NUMBERS)

    def _write(self, best: int) -> list[int]:
        if best in self._guide.ends:
            self.complete = True
            return []
        self._matcher.consume_token(best)
        self._guide.follows(self._matcher)
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
        accepting = bool(self._matcher.is_accepting())
        if len(self.tokens) >= self._limit:
            self.complete = accepting
            return []
        if accepting and self._only_ends():
            self.complete = True
            return []
        return added

    def _only_ends(self) -> bool:
        """Whether nothing can follow but an end token, or a stop that nothing can follow."""
        left, stop = self._mask(self._matcher) & self._guide.goes_on, self._guide.stop
        some = np.flatnonzero(left)
        if len(some) != 1 or stop is None or left[some[0]] != 1 << stop % 8 or some[0] != stop // 8:
            return len(some) == 0
        after = self._matcher.deep_copy()
        return bool(after.consume_token(stop) and after.is_stopped())

    def _allowed_tokens(self, matcher: Any) -> NDArray[np.intp]:
        bits = np.unpackbits(self._mask(matcher), count=self._guide.size, bitorder="little")
        return np.flatnonzero(bits)

    def _mask(self, matcher: Any) -> NDArray[np.uint8]:
        """The tokens that may follow, a bit each."""
        mask = np.frombuffer(matcher.compute_bitmask(), np.uint8)
        self._guide.follows(matcher)
        return mask[: len(self._guide.goes_on)]
