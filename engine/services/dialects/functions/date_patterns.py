"""Patterns of dates of other systems as DataFusion's, which are those of chrono's strftime.

A pattern becomes parts: a pattern of ours, and what is made of its text (``upper``, ``padded``). A
letter that no table has is refused: it would be taken literally."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Part(NamedTuple):
    """A pattern of ours, and our SQL around ``{0}``, its text."""

    pattern: str
    around: str = "{0}"


@dataclass(frozen=True, slots=True)
class Patterns:
    """The elements of a system's patterns, as ours. ``elements`` finds the next element or text."""

    names: Mapping[str, str | Part]
    elements: re.Pattern[str]
    any_case: bool = False

    def parts(self, pattern: str) -> list[Part] | str:
        """The pattern in parts, or the element that has no equal."""
        found: list[Part] = []
        for match in self.elements.finditer(pattern):
            element = match[0]
            if match.lastgroup == "text":
                found.append(Part(_plain(match["text"])))
                continue
            known = self.names.get(element.upper() if self.any_case else element)
            if known is None and any(map(str.isalnum, element)):
                return element
            known = _plain(element) if known is None else known
            found.append(known if isinstance(known, Part) else Part(known))
        return _join(found)


def _plain(text: str) -> str:
    return text.replace("%", "%%")


def _join(parts: Sequence[Part]) -> list[Part]:
    """Neighbours with nothing around them are one."""
    found: list[Part] = []
    for part in parts:
        if found and found[-1].around == part.around == "{0}":
            found[-1] = Part(found[-1].pattern + part.pattern)
        else:
            found.append(part)
    return found


def _longest(names: Iterable[str], *, any_case: bool = False) -> re.Pattern[str]:
    """Finds the longest element, or a text in quotes."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    flags = re.IGNORECASE | re.DOTALL if any_case else re.DOTALL
    return re.compile(rf'{known}|"(?P<text>[^"]*)"|[A-Za-z]+|.', flags)


_UPPER, _LOWER = "upper({0})", "lower({0})"
_POSTGRES: dict[str, str | Part] = {
    "YYYY": "%Y",
    "YY": "%y",
    "MM": "%m",
    "DD": "%d",
    "DDD": "%j",
    "HH24": "%H",
    "HH12": "%I",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MS": "%3f",
    "US": "%6f",
    "IYYY": "%G",
    "IW": "%V",
    "ID": "%u",
    "Q": "%q",
    "AM": "%p",
    "PM": "%p",
    "am": "%P",
    "pm": "%P",
    "Mon": "%b",
    "Dy": "%a",
    "FMMonth": "%B",
    "FMDay": "%A",
    "FMDD": "%-d",
    "FMMM": "%-m",
    "FMYYYY": "%Y",
    "FMHH24": "%-H",
    "FMHH12": "%-I",
    "FMHH": "%-I",
    "FMMI": "%-M",
    "FMSS": "%-S",
    "FMDDD": "%-j",
    "FMMon": "%b",
    "FMDy": "%a",
    "MON": Part("%b", _UPPER),
    "mon": Part("%b", _LOWER),
    "DY": Part("%a", _UPPER),
    "dy": Part("%a", _LOWER),
    "FMMONTH": Part("%B", _UPPER),
    "FMmonth": Part("%B", _LOWER),
    "FMDAY": Part("%A", _UPPER),
    "FMday": Part("%A", _LOWER),
    "Month": Part("%B", "rpad({0}, 9)"),
    "MONTH": Part("%B", "rpad(upper({0}), 9)"),
    "month": Part("%B", "rpad(lower({0}), 9)"),
    "Day": Part("%A", "rpad({0}, 9)"),
    "DAY": Part("%A", "rpad(upper({0}), 9)"),
    "day": Part("%A", "rpad(lower({0}), 9)"),
}
for _name in ("YYYY", "YY", "MM", "DD", "DDD", "HH24", "HH12", "HH", "MI", "SS", "MS", "US"):
    _POSTGRES[_name.lower()] = _POSTGRES[_name]
_OTHER_POSTGRES = ("SSSS", "SSSSS", "ssss", "sssss", "IDDD", "iddd")
"""Elements without an equal that begin with one that has an equal."""
_SNOWFLAKE: dict[str, str | Part] = {
    "YYYY": "%Y",
    "YY": "%y",
    "MM": "%m",
    "MON": "%b",
    "MMMM": "%B",
    "DD": "%d",
    "DY": "%a",
    "HH24": "%H",
    "HH12": "%I",
    "AM": "%p",
    "PM": "%p",
    "MI": "%M",
    "SS": "%S",
    "FF3": "%3f",
    "FF6": "%6f",
    "FF9": "%9f",
    "FF": "%9f",
}
_OTHER_SNOWFLAKE = tuple(f"FF{digits}" for digits in (0, 1, 2, 4, 5, 7, 8))
_JAVA: dict[str, str | Part] = {
    "y": "%Y",
    "yyyy": "%Y",
    "yy": "%y",
    "M": "%-m",
    "MM": "%m",
    "MMM": "%b",
    "MMMM": "%B",
    "d": "%-d",
    "dd": "%d",
    "E": "%a",
    "EE": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "H": "%-H",
    "HH": "%H",
    "h": "%-I",
    "hh": "%I",
    "m": "%-M",
    "mm": "%M",
    "s": "%-S",
    "ss": "%S",
    "SSS": "%3f",
    "SSSSSS": "%6f",
    "a": "%p",
    "D": "%-j",
    "DDD": "%j",
    "q": "%q",
    "Q": "%q",
}
_PERCENTS = re.compile(r"%E?.|(?P<text>[^%]+)", re.DOTALL)
_MYSQL: dict[str, str | Part] = {
    "%Y": "%Y",
    "%y": "%y",
    "%m": "%m",
    "%c": "%-m",
    "%d": "%d",
    "%e": "%-d",
    "%H": "%H",
    "%k": "%-H",
    "%h": "%I",
    "%I": "%I",
    "%l": "%-I",
    "%i": "%M",
    "%s": "%S",
    "%S": "%S",
    "%f": "%6f",
    "%p": "%p",
    "%M": "%B",
    "%b": "%b",
    "%W": "%A",
    "%a": "%a",
    "%j": "%j",
    "%w": "%w",
    "%T": "%H:%M:%S",
    "%r": "%I:%M:%S %p",
    "%v": "%V",
    "%x": "%G",
    "%U": "%U",
    "%%": "%%",
}
_STRFTIME: Mapping[str, str | Part] = {
    f"%{letter}": f"%{letter}" for letter in "YymdeHIMSpPBbAajuwVGgUWFTDRCh%ntsklQ"
} | {"%Q": "%q", "%r": "%I:%M:%S %p", "%X": "%H:%M:%S", "%x": "%D"}
_SQLITE: dict[str, str | Part] = {
    **{f"%{letter}": f"%{letter}" for letter in "YmdeFGgHIjklMpPRsSTuUVwW%"},
    "%f": "%S%.3f",
}

POSTGRES = Patterns(_POSTGRES, _longest((*_POSTGRES, *_OTHER_POSTGRES)))
SNOWFLAKE = Patterns(
    _SNOWFLAKE, _longest((*_SNOWFLAKE, *_OTHER_SNOWFLAKE), any_case=True), any_case=True
)
JAVA = Patterns(_JAVA, re.compile(r"'(?P<text>[^']*)'|([A-Za-z])\2*|.", re.DOTALL))
MYSQL = Patterns(_MYSQL, _PERCENTS)
BIGQUERY = Patterns(_STRFTIME, _PERCENTS)
SQLITE = Patterns(_SQLITE, _PERCENTS)
