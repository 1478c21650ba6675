"""The calls in use, by the names of the functions that stand for them in plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from weakref import ReferenceType, ref

from blendfusion.udfs.declare.call import Call


class CallRegistry:
    """The calls in use, by name. A name is a digest, so an entry never changes.

    A call is held by its users: the functions of a session, its frames, an expression. Entries of
    calls that are gone are dropped as others come. No callback drops them: it could swallow a
    Ctrl-C.
    """

    def __init__(self) -> None:
        self._calls: dict[str, ReferenceType[Call]] = {}
        self._most = _FEW

    def __len__(self) -> int:
        return sum(call() is not None for call in list(self._calls.values()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str) -> Call | None:
        known = self._calls.get(name)
        return None if known is None else known()

    def add(self, call: Call) -> Call:
        """Register ``call``, and return it; returns an equal call instead if there is one."""
        known = self.get(call.name)
        if known is not None:
            return known
        self._calls[call.name] = ref(call)
        if len(self._calls) > self._most:
            alive = {name: kept for name, kept in list(self._calls.items()) if kept() is not None}
            self._calls, self._most = alive, max(_FEW, 2 * len(alive))
        return call


_FEW = 256
CALLS = CallRegistry()

_NAME = re.compile(r"\b[A-Za-z_]\w*_[0-9a-f]{12}\b")


def remember(call: Call) -> Call:
    """Make ``call`` known by its name; returns the one known already, if equal."""
    return CALLS.add(call)


def is_call_name(name: str, ingredients: Iterable[str]) -> bool:
    """Whether ``name`` is that of a call of one of ``ingredients``, known or not."""
    return _NAME.fullmatch(name) is not None and name.rpartition("_")[0] in set(ingredients)


def calls_in(text: str) -> list[Call]:
    """The known calls whose names occur in ``text`` (of a plan, or an error), each once."""
    names = dict.fromkeys(_NAME.findall(text))
    return [call for call in map(CALLS.get, names) if call is not None]


def readable(text: str, written: Mapping[str, str] | None = None) -> str:
    """``text`` with the names of calls, and the arguments after them, as SQL.

    ``written`` says, by name, how the user wrote a call.
    """
    for call in calls_in(text):
        shown = (written or {}).get(call.name, call.text)
        start = 0
        while (at := text.find(call.name, start)) >= 0:
            end = after_call(text, at + len(call.name))
            text = text[:at] + shown + text[end:]
            start = at + len(shown)
    return text


def without_digests(text: str) -> str:
    """``text`` with the functions of calls by the names that the user knows; behind them in a box,
    blanks keep its width."""
    for call in calls_in(text):
        name, found = call.ingredient.name, 1
        blanks = " " * (len(call.name) - len(name))
        while found:
            text, found = re.subn(rf"{call.name}([^│\n]*)│", rf"{name}\1{blanks}│", text)
        text = text.replace(call.name, name)
    return text


def after_call(text: str, start: int) -> int:
    """One past the bracket that closes the one at ``start``; ``start`` if it stays open."""
    if start >= len(text) or text[start] != "(":
        return start
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    return start
