"""Words of a page with their places, and lines of such words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from blendfusion.services.documents.blocks import Box, union

_LABEL = re.compile(r"[•▪●◦‣∙·*–—-]|\(?(\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]")
_REFERENCE = re.compile(r"\[[A-Za-z+]{0,6}\d{1,4}[a-z]?\]")
"""The label before the text of a list's item."""

LEFTWARD = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
"""A letter of a script that is written from right to left, as Hebrew and Arabic."""


@dataclass(slots=True)
class Word:
    """A word, or a piece that is not cut further: ``rows`` has the cells of a table. ``raised``
    are digits in it that stand higher and may refer to a note; ``behind`` characters follow them.
    ``leftward``: it is one of a page that is written from right to left, whose places are those in
    a mirror. ``fixed``: the letters of its font have one width."""

    text: str
    box: Box
    bold: bool = False
    raised: str = ""
    behind: int = 0
    rows: list[list[str]] | None = None
    leftward: bool = False
    fixed: bool = False
    height: float = field(init=False, repr=False, compare=False)
    middle: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        top, bottom = self.box[1], self.box[3]
        self.height, self.middle = bottom - top, (top + bottom) / 2


@dataclass
class Line:
    """Words side by side, from left to right. They are complete before anything else is read."""

    words: list[Word]

    @cached_property
    def box(self) -> Box:
        return union([word.box for word in self.words])

    @cached_property
    def text(self) -> str:
        texts = [word.text for word in self.words]
        leftward = self.words[0].leftward
        if leftward or LEFTWARD.search("".join(texts)):
            texts = _as_spoken(texts, leftward)
        return " ".join(texts)

    @cached_property
    def height(self) -> float:
        return median([word.height for word in self.words])

    @cached_property
    def bold(self) -> bool:
        return all(word.bold for word in self.words)

    @property
    def rows(self) -> list[list[str]] | None:
        """The cells, if the line is a table."""
        return self.words[0].rows if len(self.words) == 1 else None


def _as_spoken(texts: list[str], leftward: bool) -> list[str]:
    """The words of a line in the order in which they are spoken: those side by side that are
    written against the direction of their page, with what stands between them, are turned round.

    >>> _as_spoken(["he", "said", "\u05d2\u05d3", "5", "\u05d0\u05d1", "twice"], False)[2:]
    ['\u05d0\u05d1', '5', '\u05d2\u05d3', 'twice']
    """
    found: list[str] = []
    run: list[str] = []
    against = 0
    for text in texts:
        way = _way(text)
        if way is not None and way != leftward:
            run.append(text)
            against = len(run)
        elif way is None and run:
            run.append(text)
        else:
            found += [*reversed(run[:against]), *run[against:], text]
            run, against = [], 0
    return [*found, *reversed(run[:against]), *run[against:]]


def _way(text: str) -> bool | None:
    """Whether a word is written from right to left; None for one without letters."""
    if LEFTWARD.search(text):
        return True
    return False if any(map(str.isalpha, text)) else None


def is_label(text: str) -> bool:
    """Whether a word may stand before an item of a list."""
    return _LABEL.fullmatch(text) is not None


def _is_hanging(text: str) -> bool:
    """Whether a word may stand before a part of its own: an item, or a work that is referred to."""
    return is_label(text) or _REFERENCE.fullmatch(text) is not None


def names_work(text: str) -> bool:
    """Whether a line begins with the label of a work in a list of references."""
    return _REFERENCE.fullmatch(text.partition(" ")[0]) is not None


def is_item(text: str) -> bool:
    """Whether a line begins an item of a list."""
    first, _, rest = text.partition(" ")
    return bool(rest) and is_label(first)


def typical_height(words: Iterable[Word]) -> float:
    """The height of most characters; 0 without words."""
    return median_height(lengths_by_height(words))


def lengths_by_height(words: Iterable[Word]) -> Counter[float]:
    """The number of characters of each height."""
    found: dict[float, int] = {}
    for word in words:
        if word.rows is None:
            found[word.height] = found.get(word.height, 0) + len(word.text)
    return Counter(found)


def median_height(lengths: Counter[float]) -> float:
    """The median height of the characters: ``lengths`` has the number of characters of each height.
    0 if there are none."""
    half = lengths.total() / 2
    for height in sorted(lengths):
        half -= lengths[height]
        if half <= 0:
            return height
    return 0.0


def lines_of(words: Sequence[Word]) -> list[Line]:
    """Words in lines, from top to bottom."""
    lines: list[list[Word]] = []
    tangled: list[list[Word]] = []
    middle, height = 0.0, 0.0
    order = sorted([(word.middle, word.box[0], at) for at, word in enumerate(words)])
    for _, left, at in order:
        word = words[at]
        near = 0.5 * (height if height < word.height else word.height)
        if lines and abs(word.middle - middle) < near and word.rows is lines[-1][0].rows is None:
            line = lines[-1]
            if left < line[-1].box[0]:
                tangled.append(line)
            line.append(word)
        else:
            lines.append([word])
            middle, height = word.middle, word.height
    for line in tangled:
        line.sort(key=lambda word: word.box[0])
    return [Line(line) for line in lines]


def joined_labels(lines: Sequence[Line]) -> list[Word]:
    """The words of ``lines`` with the labels of items joined to the words behind them, so that no
    column is found between the two."""
    found: list[Word] = []
    for line in lines:
        before: Word | None = None
        waiting: Word | None = None
        for word in line.words:
            if waiting is not None:
                if word.box[0] - waiting.box[2] < 3 * word.height and not _is_hanging(word.text):
                    word = Word(
                        f"{waiting.text} {word.text}",
                        union([waiting.box, word.box]),
                        word.bold,
                        raised=word.raised,
                        behind=word.behind,
                        leftward=word.leftward,
                        fixed=word.fixed,
                    )
                else:
                    found.append(waiting)
                waiting = None
            starts = before is None or word.box[0] - before.box[2] > 1.5 * word.height
            if starts and word.rows is None and _is_hanging(word.text):
                waiting = word
            else:
                found.append(word)
            before = word
        if waiting is not None:
            found.append(waiting)
    return found
