"""Compares two texts without a model: numbers, amounts, dates and times.

Only unambiguous texts are read. ``03/04/2020`` is a date in March or in April, ``12 apples`` may be
compared by more than its number, and ``5 GB`` has two definitions: such texts are not read.
Libraries read number words, dates and units (the extra ``compare``); without them, those texts are
not read either.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from blendfusion.models.vectors.tfidf import normalize

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(rf"([+\-−]?)({_DIGITS})(?:[eE]([+\-]?\d{{1,3}}))?")
_LEADING_ZERO = re.compile(r"0\d")
"""``007`` is a name rather than a number."""
_MOST_DIGITS = 60
_LONGEST = 80
"""Maximum characters of a number, an amount or a date."""
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_CURRENCIES = "$€£¥₹"
_ROUNDED = Fraction(1, 10)
"""Amounts whose units are not whole multiples of each other may be rounded; within this share of
each other, their order is unknown."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with a unit: '' for a bare number, ``%``, a currency's sign, or a unit of
    measure."""

    number: Fraction
    unit: str = ""


Reading: TypeAlias = Amount | date
"""A timestamp is a ``datetime``, which is a subclass of ``date`` in Python."""


def order(a: str, b: str) -> int | None:
    """-1, 0 or 1 as ``a`` is less than, equal to or greater than ``b``; None if the texts alone do
    not determine it.

    >>> order("1,234", "1.3e3"), order("5 km", "5000 m"), order("12", "12 apples")
    (-1, 0, None)
    """
    if same_text(a, b):
        return 0
    first, second = reading(a), reading(b)
    if isinstance(first, Amount) and isinstance(second, Amount):
        return _amounts(first, second)
    if isinstance(first, date) and isinstance(second, date):
        return _times(first, second)
    return None


def same_text(a: str, b: str) -> bool:
    """Whether the texts differ only in blanks, or, for texts of letters, only in case, accents and
    marks.

    >>> same_text("Café Noir", "cafe noir."), same_text("5 MW", "5 mW"), same_text("C++", "C")
    (True, False, False)
    """
    a, b = " ".join(a.split()), " ".join(b.split())
    return a == b or (_is_prose(a) and _is_prose(b) and normalize(a) == normalize(b) != "")


def _is_prose(text: str) -> bool:
    """Whether a text has only letters and insignificant marks."""
    return all(c.isalpha() or c in " .,;:!?'\"’“”()" for c in text)


@lru_cache(maxsize=65_536)
def reading(text: str) -> Reading | None:
    """The quantity that ``text`` as a whole denotes; None if it is ambiguous."""
    text = " ".join(text.split())
    if not text or len(text) > _LONGEST:
        return None
    return _amount(text) or _moment(text) or _date(text)


# --- numbers and amounts --------------------------------------------------------------------------


def _amount(text: str) -> Amount | None:
    sign = next((c for c in _CURRENCIES if text.startswith(c)), "")
    found = _NUMBER.match(text, len(sign))
    if found is None:
        return None if sign else _in_words(text)
    number = _number(found)
    rest = text[found.end() :].strip()
    if number is None:
        return None
    word, _, behind = rest.partition(" ")
    if word.lower() in _SCALES:
        number, rest = number * _SCALES[word.lower()], behind
    if sign or not rest:
        return Amount(number, sign) if not rest else None
    if rest == "%":
        return Amount(number, "%")
    return Amount(number, _UNITS[rest]) if rest in _UNITS else None


def _number(found: re.Match[str]) -> Fraction | None:
    sign, digits, exponent = found.groups()
    if len(digits) > _MOST_DIGITS or _LEADING_ZERO.match(digits):
        return None
    number = Fraction(digits.replace(",", "")) * Fraction(10) ** int(exponent or 0)
    return -number if sign in ("-", "−") else number


def _in_words(text: str) -> Amount | None:
    """An amount in number words: ``twelve``, ``five hundred km``."""
    number = _words(text)
    if number is not None:
        return Amount(number)
    words, _, unit = text.rpartition(" ")
    number = _words(words) if unit in _UNITS else None
    return Amount(number, _UNITS[unit]) if number is not None else None


def _words(text: str) -> Fraction | None:
    text2num = _library("text_to_num", "text2num")
    if text2num is None or len(text) < 3 or not text.replace(" ", "").replace("-", "").isalpha():
        return None
    try:
        return Fraction(text2num(text.lower(), "en"))
    except ValueError:
        return None


def _amounts(a: Amount, b: Amount) -> int | None:
    if a.unit == b.unit:
        return _sign(a.number, b.number)
    factor = _factor(b.unit, a.unit)
    if factor is None:
        return None
    other = b.number * factor
    exact = factor.denominator == 1 or factor.numerator == 1
    near = abs(a.number - other) <= _ROUNDED * max(abs(a.number), abs(other))
    if near and not exact and a.number != other:
        return None
    return _sign(a.number, other)


@lru_cache(maxsize=1024)
def _factor(unit: str, to: str) -> Fraction | None:
    """The number of ``to`` in one ``unit``; None for incompatible units."""
    if _library("pint", "UnitRegistry") is None or unit not in _NAMES or to not in _NAMES:
        return None
    registry = _registry()
    one, other = registry.parse_units(unit), registry.parse_units(to)
    if one.dimensionality != other.dimensionality:
        return None
    return Fraction(registry.Quantity(Fraction(1), one).to(other).magnitude)


@lru_cache(maxsize=1)
def _registry() -> Any:
    return import_module("pint").UnitRegistry(non_int_type=Fraction)


def _spellings() -> dict[str, str]:
    """Unambiguous spellings of units, with pint's names.

    It leaves out units that differ between countries (gallons, tons, cups), and bytes, with their
    factors of 1,000 or 1,024.
    """
    symbols = {
        "kilometer": "km",
        "meter": "m",
        "centimeter": "cm",
        "millimeter": "mm",
        "mile": "mi",
        "yard": "yd",
        "foot": "ft feet",
        "inch": "in inches",
        "kilogram": "kg",
        "gram": "g",
        "milligram": "mg",
        "pound": "lb lbs",
        "ounce": "oz",
        "hour": "h hr hrs",
        "minute": "min mins",
        "second": "s sec secs",
        "day": "",
        "week": "",
        "month": "",
        "year": "yr yrs",
        "liter": "l L",
        "milliliter": "ml mL",
        "hectare": "ha",
        "acre": "",
        "kilometer_per_hour": "km/h kph",
        "mile_per_hour": "mph",
        "kilowatt": "kW",
        "megawatt": "MW",
        "watt": "W",
        "kilowatt_hour": "kWh",
    }
    found: dict[str, str] = {}
    for name, short in symbols.items():
        one, per, other = name.replace("_", " ").partition(" per ")
        heads = [one, f"{one}s"]
        if one.endswith(("meter", "liter")):
            heads += [f"{one[:-2]}re", f"{one[:-2]}res"]
        for head in heads:
            found |= {f"{head}{per}{other}": name, f"{head.capitalize()}{per}{other}": name}
        found |= dict.fromkeys(short.split(), name)
    return found


_UNITS = _spellings()
_NAMES = frozenset(_UNITS.values())


# --- dates and times ------------------------------------------------------------------------------

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_DATE_WORDS = {
    *_MONTHS,
    *(m[:3] for m in _MONTHS),
    "sept",
    *_DAYS,
    *(d[:3] for d in _DAYS),
    *("st", "nd", "rd", "th", "of"),
}
_DATE_TEXT = re.compile(r"\w[\w ,./\-]*")
_YEAR_FIRST = re.compile(r"\d{4}\b")
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")


def _date(text: str) -> date | None:
    """A complete date: day, month and a year of four digits."""
    parse = _library("dateutil.parser", "parse")
    words = [w.lower() for w in re.findall(r"[^\W\d_]+", text)]
    numbers = re.findall(r"\d+", text)
    months = [w for w in words if w[:3] in {m[:3] for m in _MONTHS}]
    if parse is None or not _DATE_TEXT.fullmatch(text) or not set(words) <= _DATE_WORDS:
        return None
    if len(months) + len(numbers) != 3 or len(months) > 1 or len(_YEAR.findall(text)) != 1:
        return None
    try:
        month_first = parse(text).date()
        day_first = month_first if _YEAR_FIRST.match(text) else parse(text, dayfirst=True).date()
    except (ValueError, OverflowError):
        return None
    weekday = _DAYS[month_first.weekday()][:3]
    weekdays = [w[:3] for w in words if w[:3] in {d[:3] for d in _DAYS}]
    in_full = f"{month_first.year:04}" in text and set(weekdays) <= {weekday}
    return month_first if month_first == day_first and in_full else None


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)


def _moment(text: str) -> date | None:
    """A date, or a time without a zone, in SQL notation."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(text) if found[1] else date.fromisoformat(text)
    except ValueError:
        return None


def _times(a: date, b: date) -> int | None:
    if isinstance(a, datetime) == isinstance(b, datetime):
        return _sign(a, b)
    # A timestamp on a given day is neither before nor after that day.
    days = [t.date() if isinstance(t, datetime) else t for t in (a, b)]
    return _sign(*days) or None


def _sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


@lru_cache(maxsize=8)
def _library(module: str, name: str) -> Callable[..., Any] | None:
    """A function of an optional library; None if it is missing."""
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except ImportError:
        return None
    return found
