"""Parses and compares opening hours without a model.

The supported forms are days with spans of time, ``Mon-Fri 9:00-17:00, Sat 10am-2pm; Sun closed``,
spans alone, which hold every day, and the two JSON forms of Yelp: ``{"Monday": "11:0-22:0"}`` and
lists of ``{"day": 0, "start": "1700", "end": "0200"}``. A span that ends no later than it begins
ends on the next day. If one of two times has am or pm, the other is the nearest matching one.
Ambiguous texts such as ``10-2`` and ``10-2am`` are rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY = 24 * 60
_WEEK = 7 * _DAY

_CLOCK_24 = "([01][0-9]|2[0-3]):[0-5][0-9]"
PATTERN = rf"({'|'.join(DAYS)}) {_CLOCK_24}-({_CLOCK_24}|24:00)"
"""One span of one day, in a form that ``read`` accepts."""


class Span(NamedTuple):
    """Minutes since Monday began; ``end`` is after it, and may lie in the next week."""

    start: int
    end: int


def read(text: str) -> list[Span] | None:
    """The spans in a text, none if it is always closed; None if the text is unreadable.

    >>> read("Tue 11:30-11:45")
    [Span(start=2130, end=2145)]
    >>> read("Sunday 1700-0200")
    [Span(start=9660, end=10200)]
    >>> read("ask at the bar") is None
    True
    """
    text = text.strip()
    if text[:1] in ("[", "{"):
        try:
            return list(_in_json(json.loads(text)))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
    return _in_words(text)


def during(hours: str, times: str) -> bool | None:
    """Whether the hours include some of the times; None if one of the texts is unreadable."""
    open_at, wanted = read(hours), read(times)
    return None if open_at is None or wanted is None else overlap(open_at, wanted)


def overlap(some: Iterable[Span], others: Iterable[Span]) -> bool:
    """Whether both have a minute in common."""
    others = list(others)
    return any(
        max(a.start, b.start + shift) < min(a.end, b.end + shift)
        for a in some
        for b in others
        for shift in (-_WEEK, 0, _WEEK)
    )


def _span(day: int, start: int, end: int) -> Span:
    return Span(day * _DAY + start, day * _DAY + (end if end > start else end + _DAY))


# -- words -----------------------------------------------------------------------------------------

_CLOCK = (
    r"(?:(\d{1,2})[:.](\d{1,2})|(\d{2})(\d{2})|(\d{1,2})|(noon)|(midnight))\s*(?:([ap])\.?m\b\.?)?"
)
_TOKEN = re.compile(
    rf"(?P<span>{_CLOCK}\s*(?:-|–|—|to|until)\s*{_CLOCK})"
    r"|(?P<all>(?:open )?24\s*hours|all day|24/7)"
    r"|(?P<closed>closed)"
    r"|(?P<daily>daily|every ?day|weekdays|weekends)"
    r"|(?P<day>(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?\b\.?)"
    r"|(?P<through>-|–|—|to\b|through\b)"
    r"|(?P<nothing>[\s,;:|/&]+|and\b|from\b|open\b)",
    re.IGNORECASE,
)
_GROUPS = {"weekdays": range(5), "weekends": range(5, 7)}


def _in_words(text: str) -> list[Span] | None:
    found: list[Span] = []
    days: list[int] = []
    has_hours, through, at = False, False, 0
    """Whether the current days have hours; whether the next day ends a range of days."""
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        kind, word = token.lastgroup, token[0].lower()
        if kind == "nothing":
            continue
        if kind == "through":
            if has_hours or not days:
                return None
            through = True
            continue
        if kind in ("day", "daily"):
            if has_hours:
                days, has_hours = [], False
            if through:
                if kind == "daily":
                    return None
                last = _number(word)
                days += [d % 7 for d in range(days[-1] + 1, last + 1 + 7 * (last <= days[-1]))]
                through = False
            else:
                daily = _GROUPS.get(word.replace(" ", ""), range(7))
                days += [_number(word)] if kind == "day" else daily
            continue
        if through:
            return None
        has_hours = True
        for day in days or range(7):
            if kind == "all":
                found.append(Span(day * _DAY, (day + 1) * _DAY))
            elif kind == "span":
                clock = _clocks(token)
                if clock is None:
                    return None
                found.append(_span(day, *clock))
    return found if has_hours and not through else None


def _number(day: str) -> int:
    return next(i for i, name in enumerate(DAYS) if name.lower().startswith(day[:3]))


def _clocks(token: re.Match[str]) -> tuple[int, int] | None:
    """The two times of a span in minutes; None for an invalid time."""
    parts = token.groups()[1:17]
    first, second = _clock(*parts[:8]), _clock(*parts[8:])
    if first is None or second is None:
        return None
    (start, half), (end, other) = first, second
    bare = parts[4] is not None and parts[12] is not None and not (half or other)
    if bare and max(start, end) <= 12 * 60:
        return None
    if half is None and other is not None and start < 12 * 60:
        # "5-9pm" begins in the afternoon, "9-5pm" in the morning.
        start += 12 * 60 if other == "p" and start + 12 * 60 < end else 0
    if half is None and other == "a" and end <= start < 13 * 60:
        return None
    if half is not None and other is None and 60 <= end < 13 * 60:
        # "9am-5" ends in the afternoon, "10pm-6" in the morning.
        end = start + ((end - start) % (12 * 60) or 12 * 60)
    return start, end % (24 * 60)


def _clock(
    hour: str | None,
    minute: str | None,
    hour4: str | None,
    minute4: str | None,
    alone: str | None,
    noon: str | None,
    midnight: str | None,
    half: str | None,
) -> tuple[int, str | None] | None:
    if noon or midnight:
        return (12 * 60 if noon else 0), "p" if noon else "a"
    h, m = int(hour or hour4 or alone or 0), int(minute or minute4 or 0)
    half = half.lower() if half else None
    if m > 59 or h > 24 or (h == 24 and m) or (half and not 1 <= h <= 12):
        return None
    if half:
        h = h % 12 + (12 if half == "p" else 0)
    return h * 60 + m, half


# -- JSON ------------------------------------------------------------------------------------------


def _in_json(given: object) -> Iterator[Span]:
    """Raises ValueError, TypeError or KeyError for another form."""
    if isinstance(given, list):
        for item in given:
            yield from _in_json(item)
    elif isinstance(given, Mapping) and "open" in given:
        yield from _in_json(given["open"])
    elif isinstance(given, Mapping) and "day" in given:
        day = int(given["day"])
        clocks = _TOKEN.fullmatch(f"{given['start']}-{given['end']}")
        times = _clocks(clocks) if clocks and clocks["span"] else None
        if times is None or not 0 <= day < 7:
            raise ValueError
        yield _span(day, *times)
    elif isinstance(given, Mapping):
        for name, hours in given.items():
            spans = _in_words(f"{name} {hours}")
            if spans is None:
                raise ValueError
            yield from spans
    else:
        raise TypeError
