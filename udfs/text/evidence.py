"""Finds the span of a text that states a value: its number, its date, its words."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from blendfusion.types import Constraint, ConstraintKind
from blendfusion.udfs.text.numerals import MONTHS, other_numbers

Part: TypeAlias = "str | int | float | bool | list[Part] | dict[str, Part] | None"
"""A value of JSON: a scalar as the canonical answer has it."""

COPIED: frozenset[ConstraintKind] = frozenset(
    {"text", "regex", "integer", "number", "date", "timestamp"}
)
"""The kinds whose values a text states. A boolean, a choice or a score is a judgement of it."""
_FACTS: frozenset[ConstraintKind] = frozenset({"integer", "number", "date", "timestamp"})
"""The kinds whose values a text states in any wording."""

_CURRENCIES = (
    "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF INR JPY KRW MXN NOK NZD PLN SEK SGD USD ZAR"
)
_BEHIND = "|".join(rf"(?<=\b{code})" for code in _CURRENCIES.split())
_DIGITS = re.compile(
    rf"(?:(?<![\w.,])(?<![^\W\d_][-/_])|{_BEHIND})[+\-−]?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?!\d)"
)
"""The digits of a number, not those of a name behind letters: A37889, INV-2024. A currency may
precede them."""
_WORD = re.compile(r"[A-Za-z]+")
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "couple": 2, "dozen": 12}
_NUMBERS = {word: n for n, word in enumerate(_UNITS)}
_NUMBERS |= {word: 10 * n for n, word in enumerate(_TENS, 2)}

_MONTH = f"(?:{'|'.join(MONTHS)})\\.?"
_DATES = re.compile(
    r"(?<!\d)(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?!\d)"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|er|º)?(?:\s+(?:of|de))?[\s,./-]+{_MONTH}(?:[\s,./-]+'?\d{{2,4}})?\b"
    rf"|\b{_MONTH}[\s,./-]+\d{{1,2}}(?:st|nd|rd|th)?(?:[\s,./-]+'?\d{{4}})?\b",
    re.IGNORECASE,
)
"""Dates as texts have them."""


class Span(NamedTuple):
    """Characters of a text, from ``start`` up to ``end``."""

    start: int
    end: int


class FoundPart(NamedTuple):
    """The part of a value that a text states, and where; ``missing``: the parts that it does
    not."""

    value: Part
    span: Span | None
    missing: tuple[str, ...] = ()


def ground(constraint: Constraint, value: Part, text: str) -> FoundPart:
    """The part of ``value`` that ``text`` states.

    A number is stated by its digits or words, a date by its day, month and year, a text by its
    words in their order, whatever the letter case and the blanks. Of a list the items that are
    stated are left, of a struct the fields; the span reaches from the first to the last. A
    judgement is left as it is, with a span where its word stands in the text.

    >>> ground(Constraint("integer"), 4, "A table for four")
    FoundPart(value=4, span=Span(start=12, end=16), missing=())
    >>> ground(Constraint("integer"), 7, "A table for four")
    FoundPart(value=None, span=None, missing=('7',))
    """
    if value is None:
        return FoundPart(None, None)
    if isinstance(value, list):
        parts = [ground(constraint.item or Constraint(), item, text) for item in value]
        kept: list[Part] = [part.value for part in parts if part.value is not None]
        return _whole(kept or None, parts)
    if isinstance(value, dict):
        fields = {f.name: ground(f.constraint, value.get(f.name), text) for f in constraint.fields}
        stated: dict[str, Part] = {name: part.value for name, part in fields.items()}
        return _whole(
            stated if any(v is not None for v in stated.values()) else None, [*fields.values()]
        )
    span = span_of(constraint, value, text)
    if span is None and constraint.kind in COPIED:
        return FoundPart(None, None, (str(value),))
    return FoundPart(value, span)


def has_facts(constraint: Constraint) -> bool:
    """Whether the answers of a constraint contain numbers, dates or timestamps."""
    item = constraint.item
    parts = [field.constraint for field in constraint.fields]
    parts += [] if item is None else [item]
    return constraint.kind in _FACTS or any(map(has_facts, parts))


def facts_of(constraint: Constraint, value: Part, text: str) -> Part:
    """``value`` without the numbers and dates that ``text`` does not state: fields are None, items
    are left out. Texts and judgements are as they were.

    >>> facts_of(Constraint("list", item=Constraint("integer")), [4, 7], "A table for four")
    [4]
    """
    if isinstance(value, list):
        item = constraint.item or Constraint()
        pairs = ((one, facts_of(item, one, text)) for one in value)
        return [kept for one, kept in pairs if kept is not None or one is None]
    if isinstance(value, dict):
        return {f.name: facts_of(f.constraint, value.get(f.name), text) for f in constraint.fields}
    if value is None or constraint.kind not in _FACTS:
        return value
    return value if span_of(constraint, value, text) is not None else None


def ground_among(
    constraint: Constraint, value: Part, texts: Sequence[str]
) -> tuple[FoundPart, int | None]:
    """The part of ``value`` that any of ``texts`` states (at least one is given). The span is in
    the first of those that state most of it, whose place, from 0, is beside it; None without a
    span.

    >>> ground_among(Constraint("integer"), 4, ["no table", "a table for four"])
    (FoundPart(value=4, span=Span(start=12, end=16), missing=()), 1)
    """
    each = [ground(constraint, value, text) for text in texts]
    stating = [place for place, found in enumerate(each) if found.span is not None]
    place = min(stating, key=lambda at: len(each[at].missing), default=None)
    first = each[0 if place is None else place]
    if not isinstance(value, list):
        return first, place
    item = constraint.item or Constraint()
    parts = [ground_among(item, one, texts)[0] for one in value]
    kept: list[Part] = [part.value for part in parts if part.value is not None]
    missing = tuple(name for part in parts for name in part.missing)
    return FoundPart(kept or None, first.span, missing), place


def _whole(value: Part, parts: list[FoundPart]) -> FoundPart:
    spans = [part.span for part in parts if part.span is not None]
    missing = tuple(name for part in parts for name in part.missing)
    if value is None or not spans:
        return FoundPart(value, None, missing)
    return FoundPart(value, Span(min(s.start for s in spans), max(s.end for s in spans)), missing)


def span_of(constraint: Constraint, value: Part, text: str) -> Span | None:
    """The first span of ``text`` that states a scalar; None if none does."""
    kind = constraint.kind
    if kind in ("integer", "number") and not isinstance(value, bool):
        wanted = Fraction(str(value))
        spans = (span for number, span in numbers_in(text) if number == wanted)
        # A whole number may be a year or a day; an amount is no part of a date.
        dates = [found.span() for found in _DATES.finditer(text)] if kind == "number" else []
        return next((s for s in spans if not any(a <= s.start < b for a, b in dates)), None)
    if kind == "date":
        return _date(datetime.date.fromisoformat(str(value)), text)
    if kind == "timestamp":
        return _timestamp(datetime.datetime.fromisoformat(str(value)), text)
    if kind in ("boolean", "score"):
        return None
    return _words(str(value), text)


def numbers_in(text: str) -> Iterator[tuple[Fraction, Span]]:
    """The numbers that a text states in digits, then those in English words, each in order, then
    those in other words and forms.

    >>> [(int(number), span.start) for number, span in numbers_in("1,200 and twenty-five")]
    [(1200, 0), (25, 10)]
    """
    for found in _DIGITS.finditer(text):
        digits = found[0].replace(",", "").replace("−", "-")
        yield Fraction(digits), Span(*found.span())
        if digits[0] in "+-":  # a hyphen before a number is mostly no sign
            yield Fraction(digits[1:]), Span(found.start() + 1, found.end())
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        number, stop = _number_in_words(text, words, at)
        if number is not None:
            yield Fraction(number), Span(words[at].start(), words[stop - 1].end())
        at = max(stop, at + 1)
    for spoken, span in other_numbers(text):
        yield spoken, Span(*span)


def _number_in_words(text: str, words: list[re.Match[str]], at: int) -> tuple[int | None, int]:
    """The number that words from ``at`` on say, and where it stops."""
    first = words[at][0].lower()
    if first in _ORDINALS:
        return _ORDINALS[first], at + 1
    total, group, stop, last = 0, None, at, 1_000
    while stop < len(words):
        if stop > at and not re.fullmatch(
            r"[\s-]+", text[words[stop - 1].end() : words[stop].start()]
        ):
            break
        word = words[stop][0].lower()
        if word in _NUMBERS and (group is None or _NUMBERS[word] < last):
            number = _NUMBERS[word]
            group = (group or 0) + number
            last = 10 if number >= 20 else 0
        elif word in _SCALES and group:
            group *= _SCALES[word]
            last = 100
            if _SCALES[word] > 100:
                total, group, last = total + group, None, 1_000
        elif word != "and" or stop == at or group is None or last != 100:
            break
        stop += 1
    while stop > at and words[stop - 1][0].lower() == "and":
        stop -= 1
    return (None, at + 1) if stop == at else (total + (group or 0), stop)


def _date(day: datetime.date, text: str) -> Span | None:
    d, m, y = rf"0?{day.day}", rf"0?{day.month}", rf"(?:{day.year}|'?{day.year % 100:02})"
    month = rf"(?:{MONTHS[day.month - 1]})\.?"
    nth, sep = rf"{d}(?:st|nd|rd|th|er|º|\.)?", r"(?:[\s,./-]+(?:de\s+|del\s+)?)"
    forms = (
        rf"{day.year:04}[-/.]{m}[-/.]{d}(?:T[\d:.]+Z?)?",
        rf"{day.year:04}{day.month:02}{day.day:02}",
        rf"{day.year}\s*[年년]\s*{m}\s*[月월]\s*{d}\s*[日일]",
        rf"{d}[-/.]{m}[-/.]{y}",
        rf"{m}[-/.]{d}[-/.]{y}",
        rf"{nth}(?:\s+of)?{sep}{month}{sep}{y}",
        rf"{month}{sep}{nth}{sep}{y}",
    )
    return _first(forms, text)


def _timestamp(moment: datetime.datetime, text: str) -> Span | None:
    day = _date(moment.date(), text)
    if day is None or moment.time() == datetime.time():
        return day
    hour, minute = moment.hour, moment.minute
    twelve = f"{(hour - 1) % 12 + 1}"
    half = "[ap]\\.?m" if hour == 12 else "p\\.?m" if hour > 12 else "a\\.?m"
    minutes = rf"[:.h]{minute:02}" if minute else "(?:[:.h]00)?"
    forms = (
        rf"0?{hour}[:.h]{minute:02}(?:[:.]{moment.second:02})?",
        rf"0?{twelve}{minutes}\s*{half}\b",
    )
    time = _first(forms, text)
    return None if time is None else Span(min(day.start, time.start), max(day.end, time.end))


def _first(forms: tuple[str, ...], text: str) -> Span | None:
    spans = [Span(*found.span()) for form in forms if (found := _pattern(form).search(text))]
    return min(spans, default=None)


@lru_cache(maxsize=4_096)
def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){form}(?![^\W_])", re.IGNORECASE)


def _words(value: str, text: str) -> Span | None:
    """Where the words of ``value`` stand: as they are, else whatever the case, blanks and outer
    marks."""
    value = value.strip()
    at = text.find(value) if value else -1
    if at >= 0:
        return Span(at, at + len(value))
    words = value.strip(" \t\n.,;:!?\"'()").split()
    if not words:
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
    return None if found is None else Span(*found.span())
