"""Text cut so that an operator stays one line of a tree."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE = 120
"""Characters of the text of an operator, outside of VERBOSE."""
_WORTH_SHOWING = 50
"""Characters of a long item of a list below which it is only counted."""
_NEARBY = 12
"""Characters to leave out rather than cut a word."""

_BREAK = re.compile(r"\s*[\n\r]\s*")


def cut(text: str, full: bool) -> str:
    """``text`` on one line and, unless ``full``, without its middle where that is too long."""
    line = _BREAK.sub(" ", text)
    return line if full else _without_middle(line, _LINE)


def listed(items: Sequence[str], full: bool, separator: str = ", ") -> str:
    """The items on one line; unless ``full``, long ones cut, and at the end how many more there are."""
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
    """The room of each of the first ``n`` lines, before a word about the others."""
    tail = len(f"{separator}… {len(lines) - n} more")
    return _room_each(lines[:n], _LINE - tail, separator)


def _room_each(lines: Sequence[str], room: int, separator: str) -> int:
    """How many characters each of some lines may have, short ones leaving theirs to long ones."""
    left = room - len(separator) * (len(lines) - 1)
    for place, length in enumerate(sorted(map(len, lines))):
        if length * (len(lines) - place) > left:
            return left // (len(lines) - place)
        left -= length
    return room


def _without_middle(line: str, room: int) -> str:
    """``line`` in so many characters, cut between words where one ends nearby."""
    if len(line) <= room:
        return line
    at = len(line) - (room - 3) * 2 // 5
    head, tail = line[: room - 3 - (len(line) - at)], line[at:]
    if (space := head.rfind(" ")) > len(head) - _NEARBY:
        head = head[:space]
    if 0 <= (space := tail.find(" ")) < _NEARBY:
        tail = tail[space + 1 :]
    return f"{head} … {tail}"
