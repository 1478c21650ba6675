"""The labels of numbered paragraphs of DOCX: "3.", "b)", "1.2"."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

_PLACE = re.compile(r"%(\d)")
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l")),
    *((40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST = 100_000
BULLET = "•"


@dataclass(slots=True)
class Level:
    """The numbering of paragraphs at one depth: the format of a number, and the text of a label.
    ``%1`` in the label is the number of the first level."""

    form: str = "decimal"
    text: str = ""
    start: int = 1
    is_legal: bool = False
    """All numbers of its labels are digits."""


@dataclass(slots=True)
class Numbering:
    """Counts the numbers of a document's paragraphs. Several lists may share a definition; each of
    them continues its numbers or starts again."""

    definitions: dict[str, dict[int, Level]] = field(default_factory=lambda: defaultdict(dict))
    lists: dict[str, str] = field(default_factory=dict)
    """The definition of each list."""
    overrides: dict[tuple[str, int], Level] = field(default_factory=dict)
    """The level of a list that states its own."""
    named: dict[str, str] = field(default_factory=dict)
    """The definition of each style of lists,"""
    links: dict[str, str] = field(default_factory=dict)
    """and the style that a definition stands for."""
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    """The first number of a level, where a list states its own."""
    _counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _seen: set[tuple[str, int]] = field(default_factory=set)

    def label(self, number_list: str, depth: int) -> str:
        """The label of the next paragraph of a list."""
        definition = self.lists.get(number_list, "")
        definition = self.named.get(self.links.get(definition, ""), definition)
        levels = self.definitions.get(definition, {})
        level = self.overrides.get((number_list, depth), levels.get(depth))
        if level is None or level.form == "bullet":
            return BULLET
        counts = self._counts[definition]
        stated = self.starts.get((number_list, depth))
        if stated is not None and (number_list, depth) not in self._seen:
            counts[depth] = stated - 1
        self._seen.add((number_list, depth))
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deeper in [other for other in counts if other > depth]:
            del counts[deeper]
        if level.form == "none":
            return ""

        def number(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            own = self.overrides.get((number_list, at))
            other = level if at == depth else own or levels.get(at, level)
            form = "decimal" if level.is_legal and other is not level else other.form
            return in_form(counts.get(at, other.start), form)

        return _PLACE.sub(number, level.text).strip()


def in_form(number: int, form: str) -> str:
    """A number as letters, in Roman numerals, or in digits.

    >>> [in_form(28, form) for form in ("decimal", "lowerLetter", "upperRoman", "decimalZero")]
    ['28', 'bb', 'XXVIII', '28']
    """
    if form.endswith("Letter") and 0 < number < _MOST:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter.upper() if form.startswith("upper") else letter
    if form.endswith("Roman") and 0 < number < _MOST:
        text = ""
        for value, letters in _ROMAN:
            text += letters * (number // value)
            number %= value
        return text.upper() if form.startswith("upper") else text
    return f"{number:02}" if form == "decimalZero" else str(number)
