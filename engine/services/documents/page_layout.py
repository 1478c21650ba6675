"""The blocks of a page, in reading order, from its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from blendfusion.services.documents.blocks import Block, Box, union
from blendfusion.services.documents.code_lines import has_code
from blendfusion.services.documents.columns import regions
from blendfusion.services.documents.divided_words import mend_columns
from blendfusion.services.documents.initials import join_initials
from blendfusion.services.documents.margins import Edge, edges_of, margins
from blendfusion.services.documents.paragraphs import blocks_of, notes_of
from blendfusion.services.documents.ruled_tables import with_tables
from blendfusion.services.documents.words import (
    LEFTWARD,
    Line,
    Word,
    joined_labels,
    lengths_by_height,
    lines_of,
    median_height,
)

_MARKS = ".,;:!?()[]{}\"'„“”‚‘’«»"


@dataclass
class Page:
    """The words and rules of a page as it is shown, by the direction in which words are read: in
    quarter turns counterclockwise. ``width`` and ``height`` are in points. Words and rules are
    complete before anything else is read of it."""

    width: float
    height: float
    words: dict[int, list[Word]] = field(default_factory=dict)
    rules: list[Box] = field(default_factory=list)
    comments: list[Block] = field(default_factory=list)
    """Comments on the page."""
    letters: int = 0
    unmapped: int = 0
    """The letters that the file maps to no character."""
    doubt: str | None = None
    """The part of its text that is left out, and why."""

    @cached_property
    def turn(self) -> int:
        """The direction of most characters."""
        if not self.words:
            return 0
        return max(self.words, key=lambda turn: sum(len(w.text) for w in self.words[turn]))

    @cached_property
    def upright(self) -> Sequence[Word]:
        """The words of the main direction, turned so that they are read from left to right; a page
        that is written from right to left is mirrored."""
        words = self.words.get(self.turn, [])
        found = words if not self.turn else [self._upright(word, self.turn) for word in words]
        if not self.leftward:
            return join_initials(found)
        return [replace(w, box=self._mirror(w.box), leftward=True) for w in found]

    @cached_property
    def leftward(self) -> bool:
        """Whether most letters of the main direction are written from right to left."""
        text = "".join(word.text for word in self.words.get(self.turn, []))
        return 2 * len(LEFTWARD.findall(text)) > sum(map(str.isalpha, text))

    def _mirror(self, box: Box) -> Box:
        """A box of the turned page, and back, as a mirror shows it."""
        width = self.height if self.turn % 2 else self.width
        return (width - box[2], box[1], width - box[0], box[3])

    @property
    def upright_height(self) -> float:
        """The height of the page, turned in the same way."""
        return self.width if self.turn % 2 else self.height

    @cached_property
    def edges(self) -> dict[Edge, list[Word]]:
        """The lines at its edges, for ``blocks`` of neighbouring pages."""
        return edges_of(self.lines, self.upright_height)

    @cached_property
    def lines(self) -> list[Line]:
        """The lines of the main direction."""
        return lines_of(self.upright)

    @cached_property
    def compounds(self) -> set[str]:
        """The hyphenated words of the page: one that a line end divides keeps its hyphen."""
        hyphened = [word.text for word in self.upright if "-" in word.text]
        return {text.strip(_MARKS).lower() for text in hyphened if "-" in text[1:-1]}

    @cached_property
    def heights(self) -> Counter[float]:
        """The number of characters of each height."""
        return lengths_by_height(self.upright)

    def _upright(self, word: Word, turn: int) -> Word:
        return replace(word, box=turned_box(word.box, turn, self.width, self.height))

    def back(self, box: Box | None) -> Box | None:
        """A box of the turned page as it is on the page that is shown."""
        if box is not None and self.leftward:
            box = self._mirror(box)
        if box is None or not self.turn:
            return box
        width, height = self.width, self.height
        if self.turn % 2:
            width, height = height, width
        return turned_box(box, -self.turn % 4, width, height)

    def blocks(self, number: int, neighbours: Mapping[int, Page]) -> list[Block]:
        """The blocks in reading order: header, body, footer, and text in another direction.
        ``neighbours`` are the pages around this one, by their numbers."""
        edges = {other: page.edges for other, page in neighbours.items()}
        header, body, footer = margins(self.upright, self.edges, number, edges)
        size = median_height(sum((page.heights for page in neighbours.values()), self.heights))
        known = self.compounds.union(*(page.compounds for page in neighbours.values()))
        rules = [turned_box(rule, self.turn, self.width, self.height) for rule in self.rules]
        if self.leftward:
            rules = [self._mirror(rule) for rule in rules]
        found: list[Block] = []
        if header:
            found.append(_line_block("header", header))
        whole = not (header or footer or rules)
        lines = self.lines if whole else lines_of(with_tables(body, rules, known))
        parts = regions(joined_labels(lines))
        notes = notes_of(parts, {word.raised for word in body if word.raised}, size)
        code = has_code(body)
        for region in parts:
            found += blocks_of(region, size, known, notes, code)
        found = mend_columns(found, known)
        if footer:
            found.append(_line_block("footer", footer))
        found = [replace(block, box=self.back(block.box)) for block in found]
        for turn, words in self.words.items():
            if turn != self.turn and words:
                turned = lines_of([self._upright(word, turn) for word in words])
                text = "\n".join(line.text for line in turned)
                found.append(Block("aside", text, union([word.box for word in words])))
        return found + self.comments


def _line_block(kind: str, words: Sequence[Word]) -> Block:
    text = "\n".join(line.text for line in lines_of(words))
    box = union([word.box for word in words])
    return Block("header" if kind == "header" else "footer", text, box)


def turned_box(box: Box, turn: int, width: float, height: float) -> Box:
    """A box of a page of this width and height after ``turn`` quarter turns clockwise."""
    left, top, right, bottom = box
    if turn == 1:
        return height - bottom, left, height - top, right
    if turn == 2:
        return width - right, height - bottom, width - left, height - top
    if turn == 3:
        return top, width - right, bottom, width - left
    return box
