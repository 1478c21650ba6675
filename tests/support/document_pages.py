"""PDF files whose words are numbered in reading order."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reportlab.lib.colors import black
from reportlab.lib.pagesizes import A4, LETTER
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Table

_FIRST, _SECOND = "bcdfghjklmnprstvwz", "aeiou"
_ENDINGS = ("", "", "n", "t", "s", "ring", "ment", "rable")
_WORD = re.compile(r"[a-z]{4,9}")
LAYOUTS = (
    "one",
    "two",
    "three",
    "headline",
    "mixed",
    "tables",
    "tables in columns",
    "lists",
    "turned",
    "sideways",
)


@dataclass
class Made:
    """A file, and the numbers of the words of each of its blocks, page by page."""

    path: Path
    pages: list[list[tuple[int, int]]] = field(default_factory=list)
    edges: list[tuple[int, str, str]] = field(default_factory=list)
    """Page, kind and text of each header and footer."""


class _Writer:
    def __init__(self, path: Path, layout: str, seed: int) -> None:
        self.random = random.Random(f"{layout} {seed}")
        self.layout = layout
        self.made = Made(path)
        self.count = 0
        self.size = self.random.choice([8, 9, 10, 11, 12])
        self.font = self.random.choice(["Helvetica", "Times-Roman", "Courier"])
        self.style = ParagraphStyle(
            "text",
            fontName=self.font,
            fontSize=self.size,
            leading=self.size * self.random.uniform(1.1, 1.4),
            alignment=self.random.choice([0, 0, 4]),
            firstLineIndent=self.random.choice([0, 0, 12]),
        )
        bold = {
            "Helvetica": "Helvetica-Bold",
            "Times-Roman": "Times-Bold",
            "Courier": "Courier-Bold",
        }
        self.title = ParagraphStyle(
            "title", fontName=bold[self.font], fontSize=self.size * 1.4, leading=self.size * 1.8
        )
        self.width, self.height = self.random.choice([A4, LETTER])
        if layout == "sideways":
            self.width, self.height = self.height, self.width
        self.canvas = Canvas(os.fspath(path), (self.width, self.height), invariant=True)
        self.edge = self.random.choice([50, 60, 72])
        self.gutter = self.random.choice([14, 18, 24, 30])

    def words(self, count: int) -> str:
        found = []
        for _ in range(count):
            self.count += 1
            found.append(_word(self.count) + self.random.choice(_ENDINGS))
        return " ".join(found)

    def write(self, pages: int) -> Made:
        for number in range(1, pages + 1):
            self.made.pages.append([])
            self.decorate(number)
            self.fill()
            if self.layout == "turned":
                self.canvas.setPageRotation([0, 90, 180, 270][number % 4])
            self.canvas.showPage()
        self.canvas.save()
        return self.made

    def decorate(self, number: int) -> None:
        header, footer = "The yearly report of the mill", f"Page {number}"
        self.canvas.setFont(self.font, 9)
        self.canvas.drawString(self.edge, self.height - 32, header)
        self.canvas.drawCentredString(self.width / 2, 25, footer)
        self.made.edges += [(number, "header", header), (number, "footer", footer)]

    def frames(self, top: float, bottom: float, columns: int) -> list[tuple[float, ...]]:
        width = (self.width - 2 * self.edge - (columns - 1) * self.gutter) / columns
        return [(self.edge + i * (width + self.gutter), top, bottom, width) for i in range(columns)]

    def fill(self) -> None:
        top, bottom = self.height - 60, 55.0
        layout = self.layout
        if layout in ("one", "tables", "lists", "turned", "sideways"):
            columns = 1 if layout != "turned" else self.random.choice([1, 2])
            self.flow(self.frames(top, bottom, columns))
        elif layout in ("two", "tables in columns"):
            self.flow(self.frames(top, bottom, 2))
        elif layout == "three":
            self.flow(self.frames(top, bottom, 3))
        else:
            top = self.draw(self.heading(), self.frames(top, bottom, 1)[0]) - 14
            if layout == "headline":
                self.flow(self.frames(top, bottom, 2))
                return
            middle = top - self.random.uniform(0.3, 0.45) * (top - bottom)
            self.flow(self.frames(top, middle, 2))
            line = self.frames(middle - 16, bottom, 1)[0]
            below = self.draw(self.paragraph(40), line) - 16
            self.flow(self.frames(below, bottom, self.random.choice([2, 3])))

    def heading(self) -> tuple[Any, tuple[int, int]]:
        first = self.count + 1
        text = Paragraph(self.words(self.random.randint(2, 5)), self.title)
        return text, (first, self.count)

    def paragraph(self, words: int) -> tuple[Any, tuple[int, int]]:
        first = self.count + 1
        return Paragraph(self.words(words), self.style), (first, self.count)

    def items(self) -> tuple[Any, tuple[int, int]]:
        first = self.count + 1
        label = self.random.choice(["•", "-", "1."])
        style = ParagraphStyle("item", parent=self.style, firstLineIndent=0, leftIndent=16)
        text = self.words(self.random.randint(4, 18))
        return Paragraph(text, style, bulletText=label), (first, self.count)

    def table(self, width: float) -> tuple[Any, tuple[int, int]]:
        first = self.count + 1
        columns = self.random.randint(3, 4) if width > 300 else 3
        rows = [[self.words(1) for _ in range(columns)] for _ in range(self.random.randint(3, 6))]
        drawn: list[tuple[Any, ...]] = [
            ("FONT", (0, 0), (-1, -1), self.font, min(self.size, 8 if width < 300 else 10))
        ]
        if self.random.random() < 0.5:
            drawn.append(("GRID", (0, 0), (-1, -1), 0.5, black))
        return Table(rows, style=drawn), (first, self.count)

    def draw(self, what: tuple[Any, tuple[int, int]], frame: Sequence[float]) -> float:
        """Draw at the top of a frame; where its end is."""
        left, top, _, width = frame
        flowable, numbers = what
        _, height = flowable.wrapOn(self.canvas, width, 10_000)
        flowable.drawOn(self.canvas, left, top - height)
        self.made.pages[-1].append(numbers)
        return float(top - height)

    def flow(self, frames: Sequence[Sequence[float]]) -> None:
        for left, top, bottom, width in frames:
            place = top
            while True:
                before = self.count, self.random.getstate()
                what = self.next(width)
                height = what[0].wrapOn(self.canvas, width, 10_000)[1]
                if place - height < bottom or what[0].minWidth() > width + 1:
                    self.count = before[0]
                    self.random.setstate(before[1])
                    self.random.random()
                    break
                place = self.draw(what, (left, place, bottom, width))
                place -= self.size * (0.7 if isinstance(what[0], Paragraph) else 1.3)

    def next(self, width: float) -> tuple[Any, tuple[int, int]]:
        chance = self.random.random()
        if chance < 0.12:
            return self.heading()
        if self.layout.startswith("tables") and chance < 0.4:
            return self.table(width)
        if self.layout == "lists" and chance < 0.7:
            return self.items()
        return self.paragraph(self.random.randint(8, 70))


def make(folder: Path, layout: str, seed: int, pages: int = 3) -> Made:
    """A PDF of a layout, which ``seed`` varies."""
    return _Writer(folder / f"{layout} {seed}.pdf", layout, seed).write(pages)


def _word(number: int) -> str:
    """Four letters for a number below 8,100."""
    syllables = [(c, v) for c in _FIRST for v in _SECOND]
    return "".join((*syllables[number // 90], *syllables[number % 90]))


def numbers_in(text: str) -> list[int]:
    """The numbers of the words in a text."""
    syllables = {c + v: at for at, (c, v) in enumerate((c, v) for c in _FIRST for v in _SECOND)}
    return [
        90 * syllables[word[:2]] + syllables[word[2:4]]
        for word in _WORD.findall(text)
        if word[:2] in syllables and word[2:4] in syllables
    ]
