"""A hundred documents of known text: eight formats, and in PDF what loses words easily."""

from __future__ import annotations

import os
import random
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from html import escape
from pathlib import Path
from typing import Any

import reportlab
from document_files import SPACE, paragraph, write_docx, write_epub
from document_pages import _word
from pptx import Presentation
from pptx.util import Pt
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    ListFlowable,
    ListItem,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
)

COMMON = (
    "the provisional rent of every tenant is payable in September and remains administrative "
    "responsibility under international agreement while environmental consideration of the mill "
    "continues without interruption between office and waffle flour"
).split()
_WORD = re.compile(r"\w+")


@dataclass
class Known:
    """A file, its words in reading order, and rows that must be whole."""

    path: Path
    words: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.path.stem.rstrip("0123456789 ")


@dataclass(frozen=True)
class Found:
    """How much of a known text was read."""

    recall: float
    """The share of its words."""
    order: float
    """The share of the words that occur once which are in the right order."""
    lost_rows: int


def compare(known: Known, text: str) -> Found:
    """``text``, which a reader found, beside what the file says."""
    words = _WORD.findall(text)
    expected, found = Counter(known.words), Counter(words)
    recall = (expected & found).total() / max(expected.total(), 1)
    places = {word: at for at, word in enumerate(known.words) if expected[word] == 1}
    order = [places[word] for word in words if word in places and found[word] == 1]
    flat = " ".join(_WORD.findall(text))
    lost = sum(" ".join(_WORD.findall(row)) not in flat for row in known.rows)
    return Found(recall, _longest_rise(order) / max(len(order), 1), lost)


def _longest_rise(numbers: Sequence[int]) -> int:
    """The length of the longest subsequence that rises."""
    ends: list[int] = []
    for number in numbers:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
    return len(ends)


class Author:
    """Writes texts whose words it remembers; every other word is new."""

    def __init__(self, kind: str, seed: int) -> None:
        self.chance = random.Random(f"{kind} {seed}")
        self.words: list[str] = []
        self.rows: list[str] = []
        self._count = self.chance.randrange(500)

    def text(self, low: int, high: int = 0) -> str:
        found = []
        for number in range(self.chance.randint(low, high or low)):
            self._count += number % 2
            found.append(_word(self._count) if number % 2 else self.chance.choice(COMMON))
        return self.keep(" ".join(found))

    def keep(self, text: str) -> str:
        self.words += _WORD.findall(text)
        return text

    def table(self, columns: int, rows: int) -> list[list[str]]:
        return [[self.text(2) for _ in range(columns)] for _ in range(rows)]

    def ledger(self) -> str:
        number, amount = self.chance.randrange(10**6), self.chance.uniform(1, 999)
        self._count += 1
        row = self.keep(f"Transfer {number:06} to {_word(self._count)}   {amount:.2f} EUR")
        self.rows.append(row)
        return row


Make = Callable[[Path, Author], None]


def _story(author: Author, parts: int, style: ParagraphStyle, columns: int = 3) -> list[Any]:
    """Titles, paragraphs and tables without rules (of no ``columns``: none)."""
    title = ParagraphStyle("title", fontName="Helvetica-Bold", fontSize=15, leading=20)
    found: list[Any] = []
    for part in range(parts):
        found += [Paragraph(author.text(3, 6), title), Spacer(1, 6)]
        for _ in range(author.chance.randint(1, 3)):
            found += [Paragraph(author.text(25, 70), style), Spacer(1, 8)]
        if part % 2 and columns:
            found += [Table(author.table(columns, author.chance.randint(3, 7))), Spacer(1, 10)]
    return found


def _style(author: Author) -> ParagraphStyle:
    size = author.chance.choice([9, 10, 11, 12])
    font = author.chance.choice(["Helvetica", "Times-Roman", "Courier"])
    alignment = author.chance.choice([0, 4])
    return ParagraphStyle(
        "text", fontName=font, fontSize=size, leading=size * 1.25, alignment=alignment
    )


def _build(
    path: Path, story: list[Any], columns: int = 1, margins: bool = False, size: Any = A4
) -> None:
    width, height = size
    gutter, edge = 24, 60
    each = (width - 2 * edge - (columns - 1) * gutter) / columns
    frames = [
        Frame(edge + n * (each + gutter), 60, each, height - 130, 0, 0, 0, 0)
        for n in range(columns)
    ]

    def decorate(canvas: Any, document: Any) -> None:
        if margins:
            canvas.setFont("Helvetica", 8)
            canvas.drawString(edge, height - 35, "Yearly report, confidential")
            canvas.drawRightString(width - edge, 30, f"Page {document.page} of it")

    template = PageTemplate(frames=frames, onPage=decorate)
    document = BaseDocTemplate(os.fspath(path), pagesize=size, invariant=1)
    document.addPageTemplates(template)
    document.build(story)


def hyphens(path: Path, author: Author) -> None:
    """Justified by hand: words are divided wherever a line is full."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    for _ in range(2):
        top, font = 780.0, author.chance.choice(["Helvetica", "Times-Roman"])
        for _ in range(6):
            for line in divided(author.text(60, 90), author.chance.randint(40, 80)):
                canvas.setFont(font, 10)
                canvas.drawString(60, top, line)
                top -= 13
            top -= 12
            if top < 180:
                break
        canvas.showPage()
    canvas.save()


def divided(text: str, width: int) -> Iterator[str]:
    """Lines of at most ``width`` characters, whose last words are divided where that fills them."""
    line = ""
    for word in text.split():
        if len(line) + 1 + len(word) <= width:
            line = f"{line} {word}".strip()
            continue
        room = width - len(line) - 2
        if len(word) >= 7 and 3 <= room <= len(word) - 3:
            yield f"{line} {word[:room]}-"
            line = word[room:]
        else:
            yield line
            line = word
    yield line


def pdf_lines(
    canvas: Canvas,
    lines: Sequence[str],
    left: float,
    top: float,
    font: str = "Times-Roman",
    size: float = 11,
) -> None:
    """Draw lines below each other; blanks at their beginning are indents."""
    for number, line in enumerate(lines):
        canvas.setFont(font, size)
        indent = canvas.stringWidth(line[: len(line) - len(line.lstrip())])
        canvas.drawString(left + indent, top - 1.25 * size * number, line.lstrip())


def ligatures(path: Path, author: Author) -> None:
    font = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"
    pdfmetrics.registerFont(TTFont("Vera", os.fspath(font)))
    style = ParagraphStyle("text", fontName="Vera", fontSize=10, leading=13)
    texts = [author.text(30, 60) for _ in range(6)]
    joined = [text.replace("fi", "\ufb01").replace("fl", "\ufb02") for text in texts]
    _build(path, [part for t in joined for part in (Paragraph(t, style), Spacer(1, 8))])


def columns(path: Path, author: Author) -> None:
    count = author.chance.choice([2, 2, 3])
    _build(path, _story(author, 6, _style(author), 2 if count == 2 else 0), count)


def ledgers(path: Path, author: Author) -> None:
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    header, step = author.chance.random() < 0.7, author.chance.choice([14, 18, 25])
    for page in range(1, 5):
        canvas.setFont("Courier", 9)
        if header:
            canvas.drawString(60, 805, "Bank of the Mill")
            canvas.drawString(400, 20, f"Page {page}")
        for number in range(720 // step):
            canvas.drawString(60, 780 - step * number, author.ledger())
        canvas.showPage()
    canvas.save()


def tables(path: Path, author: Author) -> None:
    """Without rules, with a grid, and with a rule below the head."""
    found: list[Any] = []
    styles: tuple[list[Any], ...] = (
        [],
        [("GRID", (0, 0), (-1, -1), 0.5, "black")],
        [("LINEBELOW", (0, 0), (-1, 0), 1, "black")],
    )
    for number in range(5):
        found += [Paragraph(author.text(8, 20), _style(author)), Spacer(1, 8)]
        rows = author.table(author.chance.randint(3, 4), author.chance.randint(3, 8))
        author.rows += [" ".join(row) for row in rows]
        found += [Table(rows, style=styles[number % 3]), Spacer(1, 8)]
    _build(path, found)


def margins(path: Path, author: Author) -> None:
    _build(path, _story(author, 9, _style(author)), margins=True)


def footnotes(path: Path, author: Author) -> None:
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    style = ParagraphStyle("text", fontName="Times-Roman", fontSize=11, leading=14)
    small = ParagraphStyle("note", fontName="Times-Roman", fontSize=8, leading=10)
    for page in range(1, 3):
        top = 780.0
        for number in range(4):
            mark = f"<super>{page * 2 + number // 2 - 1}</super>" if number % 2 else ""
            text = Paragraph(f"{author.text(40, 70)}{mark}", style)
            top -= text.wrapOn(canvas, 470, 800)[1]
            text.drawOn(canvas, 60, top)
            top -= 10
        canvas.line(60, 112, 200, 112)
        for number in range(2):
            note = Paragraph(f"<super>{page * 2 + number - 1}</super> {author.text(8, 14)}", small)
            note.wrapOn(canvas, 470, 100)
            note.drawOn(canvas, 60, 95 - 16 * number)
        canvas.showPage()
    canvas.save()


def lists(path: Path, author: Author) -> None:
    style = _style(author)

    def item(depth: int) -> ListItem:
        inner: list[Any] = [Paragraph(author.text(5, 25), style)]
        if depth and author.chance.random() < 0.5:
            inner.append(ListFlowable([item(depth - 1) for _ in range(2)], bulletType="bullet"))
        return ListItem(inner)

    found: list[Any] = []
    for number in range(3):
        found += [Paragraph(author.text(20, 40), style), Spacer(1, 6)]
        kind = ("1", "bullet", "a")[number]
        found += [ListFlowable([item(1) for _ in range(5)], bulletType=kind), Spacer(1, 6)]
    _build(path, found)


def forms(path: Path, author: Author) -> None:
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    for number in range(8):
        canvas.setFont("Helvetica", 11)
        canvas.drawString(60, 760 - 40 * number, author.text(2) + ":")
        canvas.acroForm.textfield(
            name=f"f{number}",
            value=author.text(2),
            x=240,
            y=752 - 40 * number,
            width=250,
            height=22,
        )
    canvas.showPage()
    canvas.save()


def sideways(path: Path, author: Author) -> None:
    _build(path, _story(author, 4, _style(author)), 2, size=landscape(A4))


def _parts(author: Author, count: int) -> Iterator[tuple[str, Any]]:
    """Titles, paragraphs, lists of (depth, text), and tables, for formats with structure."""
    for number in range(count):
        yield "title", author.text(3, 5)
        yield "paragraph", author.text(20, 60)
        if number % 2:
            depths = [0, 0, 1, 1, 0]
            yield "list", [(depth, author.text(4, 12)) for depth in depths]
        else:
            rows = author.table(3, author.chance.randint(3, 6))
            author.rows += [" ".join(row) for row in rows]
            yield "table", rows


def _html(author: Author, count: int) -> str:
    found = []
    for kind, what in _parts(author, count):
        if kind == "list":
            items, before = "", 0
            for depth, text in what:
                items += "<ul>" * (depth - before) + "</ul>" * (before - depth)
                items += f"<li>{escape(text)}"
                before = depth
            found.append(f"<ol>{items}{'</ul>' * before}</ol>")
        elif kind == "table":
            cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in what)
            found.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
        else:
            tag = "h2" if kind == "title" else "p"
            found.append(f"<{tag}>{escape(what)}</{tag}>")
    return "\n".join(found)


def html(path: Path, author: Author) -> None:
    path.write_text(f"<html><body>{_html(author, 6)}</body></html>", encoding="utf-8")


def markdown(path: Path, author: Author) -> None:
    found = []
    for kind, what in _parts(author, 6):
        if kind == "list":
            found.append("\n".join(f"{'    ' * depth}- {text}" for depth, text in what))
        elif kind == "table":
            rows = [" | ".join(row) for row in what]
            found.append("\n".join([rows[0], " | ".join("---" for _ in what[0]), *rows[1:]]))
        else:
            found.append(f"## {what}" if kind == "title" else what)
    path.write_text("\n\n".join(found), encoding="utf-8")


def text(path: Path, author: Author) -> None:
    pages = ["\n\n".join(author.text(20, 60) for _ in range(5)) for _ in range(2)]
    path.write_text("\f".join(pages), encoding="utf-8")


def docx(path: Path, author: Author) -> None:
    body: list[str] = []
    notes: list[str] = []
    for kind, what in _parts(author, 6):
        if kind == "list":
            for depth, item in what:
                numbers = f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="1"/></w:numPr>'
                body.append(f"<w:p><w:pPr>{numbers}</w:pPr><w:r><w:t>{item}</w:t></w:r></w:p>")
        elif kind == "table":
            cells = ("".join(f"<w:tc>{paragraph(c)}</w:tc>" for c in row) for row in what)
            body.append(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>")
        elif kind == "title":
            body.append(paragraph(what, "Heading1"))
        else:
            number = len(notes) + 1
            mark = f'<w:r><w:footnoteReference w:id="{number}"/></w:r>'
            body.append(f'<w:p><w:r><w:t xml:space="preserve">{what} </w:t></w:r>{mark}</w:p>')
            note = paragraph(author.text(6, 10))
            notes.append(f'<w:footnote w:id="{number}">{note}</w:footnote>')
    footnotes = f'<w:footnotes xmlns:w="{SPACE}">{"".join(notes)}</w:footnotes>'
    write_docx(path, "".join(body), footnotes=footnotes)


def slides(path: Path, author: Author) -> None:
    deck = Presentation()
    for number in range(6):
        slide = deck.slides.add_slide(deck.slide_layouts[1 if number % 2 else 5])
        slide.shapes.title.text = author.text(3, 5)
        if number % 2:
            frame = slide.placeholders[1].text_frame
            frame.text = author.text(5, 9)
            for depth in (0, 1, 1):
                item = frame.add_paragraph()
                item.text, item.level = author.text(5, 9), depth
            slide.notes_slide.notes_text_frame.text = author.text(10, 20)
        else:
            rows = author.table(3, 4)
            author.rows += [" ".join(row) for row in rows]
            shape = slide.shapes.add_table(4, 3, Pt(60), Pt(150), Pt(600), Pt(160))
            for at, row in enumerate(rows):
                for column, cell in enumerate(row):
                    shape.table.cell(at, column).text = cell
            for left in (60, 380):
                box = slide.shapes.add_textbox(Pt(left), Pt(360), Pt(280), Pt(80))
                box.text_frame.word_wrap = True
                box.text_frame.text = author.text(10, 16)
    deck.save(os.fspath(path))


def emails(path: Path, author: Author) -> None:
    mail = EmailMessage()
    mail["Subject"], mail["From"] = author.text(4), "ann@mill.example"
    if author.chance.random() < 0.5:
        mail.set_content("Please look at the other form.")
        mail.add_alternative(_html(author, 3), subtype="html")
    else:
        mail.set_content("\n\n".join(author.text(20, 50) for _ in range(4)))
    mail.add_attachment(b"x" * 100, maintype="image", subtype="png", filename="a.png")
    path.write_bytes(mail.as_bytes())


def books(path: Path, author: Author) -> None:
    write_epub(path, {f"c{number}.xhtml": _html(author, 2) for number in range(4)})


KINDS: dict[Make, tuple[str, int]] = {
    hyphens: ("pdf", 7),
    ligatures: ("pdf", 4),
    columns: ("pdf", 7),
    ledgers: ("pdf", 8),
    tables: ("pdf", 8),
    margins: ("pdf", 6),
    footnotes: ("pdf", 4),
    lists: ("pdf", 4),
    forms: ("pdf", 2),
    sideways: ("pdf", 2),
    docx: ("docx", 10),
    html: ("html", 10),
    markdown: ("md", 8),
    text: ("txt", 6),
    slides: ("pptx", 6),
    emails: ("eml", 4),
    books: ("epub", 4),
}
"""The ending, and the number of files, of each kind: 100 together."""


def make_corpus(folder: Path, seed: int = 0) -> list[Known]:
    """The files, with their text."""
    found = []
    for make, (ending, count) in KINDS.items():
        for number in range(count):
            author = Author(make.__name__, 1000 * seed + number)
            path = folder / f"{make.__name__} {number}.{ending}"
            make(path, author)
            found.append(Known(path, author.words, author.rows))
    return found
