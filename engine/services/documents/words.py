"""Words of a page with their places, and lines of such words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from blendfusion.services.documents.blocks import Box, union

_LABEL = re.compile(r"[•▪●◦‣∙·*–—-]|\(?(\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]")
"""The label before the text of a list's item."""


@dataclass(slots=True)
class Word:
    """A word, or a piece that is not cut further: ``rows`` has the cells of a table. ``raised``
    are the digits at its end that stand higher and may refer to a note."""

    text: str
    box: Box
    bold: bool = False
    rows: list[list[str]] | None = None
    raised: str = ""
    height: float = field(init=False, repr=False, compare=False)
    middle: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        top, bottom = self.box[1], self.box[3]
        self.height, self.middle = bottom - top, (top + bottom) / 2


@dataclass(slots=True)
class Line:
    """Words side by side, from left to right."""

    words: list[Word]

    @property
    def box(self) -> Box:
        return union([word.box for word in self.words])

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def height(self) -> float:
        return median(word.height for word in self.words)

    @property
    def bold(self) -> bool:
        return all(word.bold for word in self.words)

    @property
    def rows(self) -> list[list[str]] | None:
        """The cells, if the line is a table."""
        return self.words[0].rows if len(self.words) == 1 else None


def is_label(text: str) -> bool:
    """Whether a word may stand before an item of a list."""
    return _LABEL.fullmatch(text) is not None


def is_item(text: str) -> bool:
    """Whether a line begins an item of a list."""
    first, _, rest = text.partition(" ")
    return bool(rest) and is_label(first)


def typical_height(words: Iterable[Word]) -> float:
    """The height of most characters; 0 without words."""
    return median_height(lengths_by_height(words))


def lengths_by_height(words: Iterable[Word]) -> Counter[float]:
    """The number of characters of each height."""
    found: Counter[float] = Counter()
    for word in words:
        if word.rows is None:
            found[word.height] += len(word.text)
    return found


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
    lines: list[Line] = []
    middle, height = 0.0, 0.0
    for word in sorted(words, key=lambda word: (word.middle, word.box[0])):
        near = lines and abs(word.middle - middle) < 0.5 * min(height, word.height)
        if near and word.rows is None and lines[-1].words[0].rows is None:
            lines[-1].words.append(word)
        else:
            lines.append(Line([word]))
            middle, height = word.middle, word.height
    for line in lines:
        line.words.sort(key=lambda word: word.box[0])
    return lines


def joined_labels(words: Sequence[Word]) -> list[Word]:
    """``words`` with the labels of items joined to the words behind them, so that no column is
    found between the two."""
    found: list[Word] = []
    for line in lines_of(words):
        before: Word | None = None
        waiting: Word | None = None
        for word in line.words:
            if waiting is not None:
                if word.box[0] - waiting.box[2] < 3 * word.height and not is_label(word.text):
                    word = Word(
                        f"{waiting.text} {word.text}",
                        union([waiting.box, word.box]),
                        word.bold,
                        raised=word.raised,
                    )
                else:
                    found.append(waiting)
                waiting = None
            starts = before is None or word.box[0] - before.box[2] > 1.5 * word.height
            if starts and word.rows is None and is_label(word.text):
                waiting = word
            else:
                found.append(word)
            before = word
        if waiting is not None:
            found.append(waiting)
    return found
