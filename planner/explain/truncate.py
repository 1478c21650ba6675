"""Cuts text so that an operator stays one line of a tree."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE = 120
"""Maximum characters of an operator's text, except in VERBOSE."""
_WORTH_SHOWING = 50
"""Minimum characters for showing an item of a long list; below, it is only counted."""
_NEARBY = 12
"""Characters to leave out rather than cut a word."""

_BREAK = re.compile(r"\s*[\n\r]\s*")


def cut(text: str, full: bool) -> str:
    """``text`` on one line and, unless ``full``, without its middle if it is too long."""
    line = _BREAK.sub(" ", text)
    return line if full else _without_middle(line, _LINE)


def list_items(items: Sequence[str], full: bool, separator: str = ", ") -> str:
    """The items on one line. Unless ``full``, long items are cut, and a count replaces the last
    ones."""
    lines = [cut(item, full=True) for item in items]
    if full or len(separator.join(lines)) <= _LINE:
        return separator.join(lines)
    n = len(lines)
    more: list[str] = []
    room = _room_each(lines, _LINE, separator)
    if room < _WORTH_SHOWING:
        n = 0
        while (next_room := _room_with_count(lines, n + 1, separator)) >= _WORTH_SHOWING:
            n, room = n + 1, next_room
        more = [f"… {len(lines) - n} more"]
    return separator.join([*(_without_middle(line, room) for line in lines[:n]), *more])


def _room_with_count(lines: Sequence[str], n: int, separator: str) -> int:
    """The room of each of the first ``n`` lines, before the count of the others."""
    tail = len(f"{separator}… {len(lines) - n} more")
    return _room_each(lines[:n], _LINE - tail, separator)


def _room_each(lines: Sequence[str], room: int, separator: str) -> int:
    """The maximum characters of each line; short lines leave their room to long ones."""
    left = room - len(separator) * (len(lines) - 1)
    for place, length in enumerate(sorted(map(len, lines))):
        if length * (len(lines) - place) > left:
            return left // (len(lines) - place)
        left -= length
    return room


def _without_middle(line: str, room: int) -> str:
    """``line`` cut to ``room`` characters, between words if possible."""
    if len(line) <= room:
        return line
    at = len(line) - (room - 3) * 2 // 5
    head, tail = line[: room - 3 - (len(line) - at)], line[at:]
    if (space := head.rfind(" ")) > len(head) - _NEARBY:
        head = head[:space]
    if 0 <= (space := tail.find(" ")) < _NEARBY:
        tail = tail[space + 1 :]
    return f"{head} … {tail}"
