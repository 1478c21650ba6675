"""The optional fields of a request that a server was found to accept, and its system message.

A server says in its own words what it does not take. Words only give the order: a field is refused
if a request passes without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.prompts.canonical import canonical
from blendfusion.types import Constraint

Message: TypeAlias = dict[str, Json]
Fields: TypeAlias = "dict[str, Json]"
Part: TypeAlias = Literal["logprobs", "seed", "reasoning_effort", "system", "temperature", "limit"]
"""A part of a request without which a server can answer."""

_LIMITS = ("max_tokens", "max_completion_tokens")
_OPTIONAL = frozenset(
    (*_LIMITS, "temperature", "seed", "reasoning_effort", "logprobs", "top_logprobs")
)
_BYTES_PER_TOKEN = 3
MANY_ODDS, FEW_ODDS = 20, 5
"""Numbers of token probabilities per position: OpenAI and vLLM return the first, others the second.
"""
_BY_ODDS = ("score", "boolean", "choice")
"""Kinds of answers of which it matters how likely the others were."""
_MOST_SEARCHES, _MOST_IN_VAIN = 4, 2
"""The searches for refused parts at one server, and of them those that find nothing."""

_NAMED: Mapping[Part, re.Pattern[str]] = {
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
    "reasoning_effort": re.compile(r"\bthinking\b|\breasoning_effort\b", re.IGNORECASE),
    "system": re.compile(
        r"\bsystem\b.{0,30}\b(role|message|prompt|instruction)|\brole\b.{0,20}\bsystem\b"
        r"|\brole\b.{0,40}'system'|developer instruction|roles must alternate|only user and (assistant|model) roles",
        re.IGNORECASE,
    ),
}
"""The words of a refusal that name a part."""


def blames_odds(refusal: str) -> bool:
    """True if a server's words of refusal are about the odds of tokens."""
    return "logprobs" in refusal


_COMPLAINT = re.compile(
    r"unexpected keyword|unrecogni[sz]ed|unknown|unsupported|not supported|extra inputs|not permitted"
    r"|must alternate|only user and",
    re.IGNORECASE,
)


def blames_part(refusal: str) -> bool:
    """True if a server's words of refusal are about an optional part of a request."""
    named = any(words.search(refusal) for words in _NAMED.values())
    return named and _COMPLAINT.search(refusal) is not None


@dataclass(frozen=True, slots=True)
class Parts:
    """The optional parts of requests. ``folds``: the user's first message carries the system's."""

    fields: Fields
    odds: Fields
    folds: bool = False

    def without(self, part: Part) -> Parts | None:
        """The parts less one; None if it is not among them."""
        if part == "logprobs":
            return replace(self, odds={}) if self.odds else None
        if part == "system":
            return None if self.folds else replace(self, folds=True)
        if part == "limit":
            if "max_tokens" not in self.fields:
                return None
            rest = _without(self.fields, "max_tokens")
            return replace(self, fields=rest | {_LIMITS[1]: self.fields["max_tokens"]})
        return replace(self, fields=_without(self.fields, part)) if part in self.fields else None


class Sampling:
    """The sampling fields of a request: greedy, less what the server does not take.

    ``odds`` are those that ask how likely other answers were.
    """

    def __init__(
        self, max_tokens: int, more: Mapping[str, Json] | None = None, *, odds: bool = True
    ) -> None:
        fields: Fields = {"temperature": 0, "seed": 0, "max_tokens": max_tokens, **(more or {})}
        wanted: Fields = {"logprobs": True, "top_logprobs": MANY_ODDS} if odds else {}
        self._parts = Parts(fields, wanted)
        self._taken: set[frozenset[str]] = set()
        """The names in requests that the server took."""
        self._searches = self._in_vain = 0
        self._fewer: Parts | None = None
        """The parts with which a request passed, without all that had been left out."""
        self.searching = False
        """Whether a search is under way: what it leaves out may come back."""

    @property
    def parts(self) -> Parts:
        """The optional parts of requests: another object whenever they change."""
        return self._parts

    @property
    def fields(self) -> Fields:
        """The fields of every request."""
        return self._parts.fields

    @property
    def odds(self) -> Fields:
        """The fields that ask for odds; empty where the server tells none."""
        return self._parts.odds

    def of(self, constraint: Constraint) -> Fields:
        """The fields for an answer under a constraint; what a struct repeats is no part of the
        tokens that it may have."""
        if constraint.kind in _BY_ODDS:
            return self.fields | self.odds
        most = {name: self.fields[name] for name in _LIMITS if name in self.fields}
        if constraint.max_tokens:
            return self.fields | dict.fromkeys(most, constraint.max_tokens)
        if constraint.kind != "struct":
            return self.fields
        more = -(-len(canonical({}, constraint).encode()) // _BYTES_PER_TOKEN)
        return self.fields | {
            name: count + more for name, count in most.items() if isinstance(count, int)
        }

    def messages(self, turns: Sequence[Json]) -> list[Json]:
        """The messages of a chat as the server takes them."""
        return fold_instruction(turns) if self._parts.folds else list(turns)

    def accept(self, body: Mapping[str, Json]) -> None:
        """The server took a request with these fields."""
        self._taken.add(frozenset(body))

    @property
    def refuses_all(self) -> bool:
        """Whether the server took no request yet, not even one without any optional part."""
        return self._in_vain > 0 and not self._taken

    def adapt(self, refusal: str, sent: Mapping[str, Json]) -> bool:
        """Leave out what ``refusal`` of a request names; False if it names nothing.

        Reasoning models of OpenAI, for one, take only their own temperature and call max_tokens
        otherwise.
        """
        current = self.fields | self.odds
        named_so_far = _OPTIONAL & {*sent}
        if any(name not in current or _is_other(name, sent, current) for name in named_so_far):
            return True  # another request was refused in the meantime
        if blames_odds(refusal) and "logprobs" in sent:
            many = self.odds["top_logprobs"] == MANY_ODDS
            fewer = self.odds | {"top_logprobs": FEW_ODDS} if many else {}
            self._parts = replace(self._parts, odds=fewer)
            return True
        named: list[Part] = ["limit"] if "max_completion_tokens" in refusal else []
        named += [part for part, words in _NAMED.items() if words.search(refusal)]
        for part in named:
            less = self._parts.without(part)
            if less is not None and (part != "system" or _has_system(sent)):
                self._parts = less
                return True
        return False

    def differs(self, sent: Mapping[str, Json], constraint: Constraint) -> bool:
        """Whether a request would be another one by now."""
        now = self.of(constraint)
        folds = self._parts.folds and _has_system(sent)
        return folds or any(sent.get(name) != now.get(name) for name in {*_OPTIONAL, *now})

    @contextmanager
    def search(self, sent: Mapping[str, Json]) -> Iterator[Search | None]:
        """A search for the part of a refused request that the server does not take, within a block;
        None if it took all of them before, or was searched often enough."""
        ended = self._searches >= _MOST_SEARCHES or self._in_vain >= _MOST_IN_VAIN
        if frozenset(sent) in self._taken or ended:
            yield None
            return
        self._searches += 1
        self.searching = True
        search = Search(self, sent)
        try:
            yield search
        finally:
            self.searching = False
            search.end()


class Search:
    """Leaves out optional parts of a request, one after the other, until the server accepts it."""

    def __init__(self, of: Sampling, sent: Mapping[str, Json]) -> None:
        self._of, self._before = of, of._parts
        self._kept, self._found = self._before, False
        order: list[Part] = ["logprobs", "seed", "reasoning_effort", "temperature", "limit"]
        if _has_system(sent):
            order.insert(3, "system")
        if "logprobs" not in sent:
            order.remove("logprobs")
        self._order = order
        self._last: Part | None = None

    def next(self) -> bool:
        """Leave out one part more; False if there is none. Where one part was not all that the
        server refuses, all go that were out when a request passed."""
        if self._of._fewer is not None:
            self._of._parts, self._of._fewer = self._of._fewer, None
            self._last, self._order = None, []
            return True
        while self._order:
            self._last = self._order.pop(0)
            less = self._of._parts.without(self._last)
            if less is not None:
                self._of._parts = less
                return True
        return False

    def confirm(self) -> None:
        """A request passed without the part that was left out last."""
        of, last = self._of, self._last
        of._fewer = None if last is None else of._parts
        one_less = None if last is None else self._before.without(last)
        self._kept = one_less or of._parts
        self._found = True

    def confirm_form(self) -> None:
        """A request passed with all parts, without the form of its constraint."""
        self._found = True

    def end(self) -> None:
        """Put all parts back but the one that was found."""
        self._of._parts = self._kept
        self._of._in_vain += not self._found


def fold_instruction(turns: Sequence[Json]) -> list[Json]:
    """The messages of a chat whose first user's message begins with the system's."""
    instruction: list[str] = []
    messages: list[Json] = []
    for turn in turns:
        assert isinstance(turn, dict)
        if turn["role"] == "system":
            instruction.append(str(turn["content"]))
            continue
        if instruction and turn["role"] == "user":
            turn = {**turn, "content": _behind("\n\n".join(instruction), turn["content"])}
            instruction.clear()
        messages.append(turn)
    return messages


def _behind(text: str, content: Json) -> Json:
    """A content, a text or a list of parts, behind a text."""
    if isinstance(content, list):
        return [{"type": "text", "text": text}, *content]
    return f"{text}\n\n{content}"


def _has_system(sent: Mapping[str, Json]) -> bool:
    turns = sent.get("messages")
    first = turns[0] if isinstance(turns, list) and turns else None
    return isinstance(first, dict) and first.get("role") == "system"


def _without(fields: Fields, name: str) -> Fields:
    return {other: value for other, value in fields.items() if other != name}


def _is_other(name: str, sent: Mapping[str, Json], current: Mapping[str, Json]) -> bool:
    return name not in _LIMITS and sent[name] != current[name]
