"""DOCX: the paragraphs, lists, tables, notes and comments of its XML."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from blendfusion.services.documents.archives import WORD, Attributes, open_archive, parse_part
from blendfusion.services.documents.blocks import Block, Kind, Unreadable
from blendfusion.services.documents.cell_grid import CellGrid
from blendfusion.services.documents.docx_math import MATH, Equation
from blendfusion.services.documents.docx_numbers import BULLET, Level, Numbering
from blendfusion.services.documents.docx_parts import OtherParts, relations
from blendfusion.services.documents.exponents import write_raised

_SPACES = (
    *WORD,
    *MATH,
    "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "urn:schemas-microsoft-com:vml",
)
"""The elements of a text, and of what stands within it."""
_MARGINS = re.compile(r"word/(header|footer)\d*\.xml")
_MARKS = ("footnote", "endnote", "comment")
_OTHERS = {"relIds": ("diagram", "dm"), "chart": ("chart", "id"), "altChunk": ("document", "id")}
"""Elements that refer to other parts, and the attribute that names one."""
_OFF = ("0", "false", "off", "none")
_DEEPEST = 8
_INDENT = "  "


def main_part(archive: zipfile.ZipFile) -> str | None:
    """The name of the text in the archive of a DOCX file; None: it is no such archive."""
    names = archive.namelist()
    if "word/document.xml" in names:
        return "word/document.xml"
    stated = (name for kind, name in relations(archive, "").values() if kind == "officeDocument")
    return next((name for name in stated if name.startswith("word/") and name in names), None)


def docx_pages(path: str) -> Iterator[tuple[None, list[Block] | str]]:
    """The blocks of a document, and why a part of it cannot be read. Raises Unreadable."""
    with open_archive(path) as archive:
        blocks, problems = _read(archive, 0)
    yield None, blocks
    yield from ((None, problem) for problem in dict.fromkeys(problems))


def _read(archive: zipfile.ZipFile, depth: int) -> tuple[list[Block], list[str]]:
    """The headers, the body with its notes, and the footers; what cannot be read."""
    names = archive.namelist()
    main = main_part(archive)
    if main is None:
        raise Unreadable("it is no DOCX file")
    targets = relations(archive, main)
    parts = {kind: name for kind, name in targets.values() if name in names}

    def part(kind: str) -> str:
        """The name of the only part of this kind; "" where there is none."""
        usual = f"word/{kind}.xml"
        return parts.get(kind) or (usual if usual in names else "")

    styles = _styles(archive, part("styles")) if part("styles") else {}
    numbering = _numbering(archive, part("numbering")) if part("numbering") else Numbering()
    edges: dict[str, list[Block]] = {"header": [], "footer": []}
    for name in sorted(filter(_MARGINS.fullmatch, names)):
        kind: Kind = "header" if "header" in name else "footer"
        found = _Body(styles, Numbering(), {})
        parse_part(archive, name, found.start, found.end, found.text, _SPACES)
        text = "\n".join(dict.fromkeys(block.text for block in found.finish()))
        if text:
            edges[kind].append(Block(kind, text))
    notes = {
        (kind, number): text
        for kind in _MARKS
        if part(f"{kind}s")
        for number, text in _notes(archive, part(f"{kind}s"), kind).items()
    }
    others = OtherParts(archive, targets, _read, depth)
    body = _Body(styles, numbering, notes, others)
    parse_part(archive, main, body.start, body.end, body.text, _SPACES)
    headers, footers = (list(dict.fromkeys(edges[k])) for k in ("header", "footer"))
    return headers + body.finish() + footers, others.problems


@dataclass(slots=True)
class _Style:
    """The kind of a style's paragraphs: whether they are titles, and how they are numbered."""

    is_title: bool = False
    numbers: dict[str, str] = field(default_factory=dict)
    based_on: str = ""


def _styles(archive: zipfile.ZipFile, part: str) -> dict[str, _Style]:
    """The paragraph styles, by their ids."""
    styles: dict[str, _Style] = {}
    style = _Style()

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal style
        value = attributes.get("val", "")
        if tag == "style":
            style = styles.setdefault(attributes.get("styleId", ""), _Style())
        elif tag == "name":
            name = value.lower()
            style.is_title |= name.startswith("heading") or name in ("title", "subtitle")
        elif tag == "outlineLvl":
            style.is_title |= (value or "9") != "9"
        elif tag == "basedOn":
            style.based_on = value
        elif tag in ("numId", "ilvl"):
            style.numbers[tag] = value

    parse_part(archive, part, start)
    for own in styles.values():
        above, seen = own, 0
        while above.based_on in styles and seen < len(styles):
            above, seen = styles[above.based_on], seen + 1
            own.numbers = {**above.numbers, **own.numbers}
    return styles


def _numbering(archive: zipfile.ZipFile, part: str) -> Numbering:
    found = Numbering()
    definition = number_list = ""
    depth = 0
    level = Level()

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal definition, number_list, depth, level
        value = attributes.get("val", "")
        if tag == "abstractNum":
            definition, number_list = attributes.get("abstractNumId", ""), ""
        elif tag == "num":
            number_list = attributes.get("numId", "")
        elif tag == "abstractNumId" and number_list:
            found.lists[number_list] = value
        elif tag in ("lvl", "lvlOverride"):
            depth = _whole(attributes.get("ilvl", ""))
            level = Level()
            if tag == "lvl" and number_list:
                found.overrides[number_list, depth] = level
            elif tag == "lvl":
                found.definitions[definition][depth] = level
        elif tag == "isLgl":
            level.is_legal = value not in _OFF
        elif tag == "styleLink":
            found.named[value] = definition
        elif tag == "numStyleLink":
            found.links[definition] = value
        elif tag == "start":
            level.start = _whole(value, 1)
        elif tag == "numFmt":
            level.form = value
        elif tag == "lvlText":
            level.text = value
        elif tag == "startOverride" and number_list:
            found.starts[number_list, depth] = _whole(value, 1)

    parse_part(archive, part, start)
    return found


def _notes(archive: zipfile.ZipFile, part: str, kind: str) -> dict[str, str]:
    """The texts of the foot- or endnotes, or comments after the names of who wrote them, by their
    ids."""
    found: dict[str, str] = {}
    number = author = ""
    body = _Body({}, Numbering(), {})

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal number, author, body
        if tag == kind:
            number, body = attributes.get("id", ""), _Body({}, Numbering(), {})
            author = attributes.get("author", "")
        else:
            body.start(tag, attributes)

    def end(tag: str) -> None:
        if tag != kind:
            body.end(tag)
        elif blocks := body.finish():
            text = "\n".join(block.text for block in blocks)
            found[number] = f"{author}: {text}" if author else text

    def text(text: str) -> None:
        body.text(text)

    parse_part(archive, part, start, end, text, _SPACES)
    return found


def _whole(text: str, default: int = 0) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


@dataclass(slots=True)
class _Paragraph:
    """An open paragraph; a text box stands within one."""

    kind: Kind = "paragraph"
    parts: list[str] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    """Its list and its depth in it."""
    listed: bool = False
    goes_on: bool = False
    """Its end is deleted, so that the next one goes on in it."""


@dataclass(slots=True)
class _Run:
    """An open run of a paragraph, which has ``begins`` parts before it."""

    begins: int
    is_hidden: bool = False
    is_raised: bool = False


@dataclass(slots=True)
class _OldField:
    """A box or a choice of a form as Word had them before content controls: its value is in no
    text."""

    values: dict[str, str] = field(default_factory=dict)
    entries: list[str] = field(default_factory=list)
    is_box: bool = False

    def text(self) -> str:
        if self.is_box:
            checked = self.values.get("checked", self.values.get("default", "0"))
            return "☐" if checked in _OFF else "☒"
        at = _whole(self.values.get("result", self.values.get("default", "")))
        return self.entries[at] if at < len(self.entries) else ""


class _Body:
    """Puts together blocks from the elements of a part."""

    def __init__(
        self,
        styles: dict[str, _Style],
        numbering: Numbering,
        notes: dict[tuple[str, str], str],
        others: OtherParts | None = None,
    ) -> None:
        self.blocks: list[Block] = []
        self._styles, self._numbering, self._notes = styles, numbering, notes
        self._others, self._equation = others, Equation()
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[CellGrid] = []
        """The open tables; one may stand in a cell of another."""
        self._in_text = self._deleted = self._in_old_style = self._in_mark = 0
        self._n_texts = 0
        """The number of texts so far."""
        self._alternatives: list[int] = []
        """For each open choice of forms, the number of texts before it."""
        self._left_out: list[bool] = []
        """For each open form for older programs, whether it is left out, since another form has
        text."""
        self._carried: list[str] = []
        """The text of a paragraph whose end is deleted."""
        self._field = _OldField()
        self._runs: list[_Run] = []
        self._reading = 0
        """The number of parts before the reading of a character."""
        self._list = ""
        """The list of the last block."""
        self._referred: list[Block] = []
        """Notes that stand behind the block that refers to them."""
        self._counts = {"footnote": 0, "endnote": 0}

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "p":
            self._paragraphs.append(_Paragraph(parts=self._carried))
            self._carried = []
        elif tag == "pPr":
            self._in_mark += 1
        elif tag == "AlternateContent":
            self._alternatives.append(self._n_texts)
        elif tag == "Fallback":
            self._left_out.append(self._alternatives[-1:] != [self._n_texts])
            self._deleted += self._left_out[-1]
        elif tag == "r":
            self._runs.append(_Run(len(self._paragraphs[-1].parts) if self._paragraphs else 0))
        elif tag == "t":
            self._in_text += 1
        elif tag in ("del", "moveFrom"):
            self._deleted += not self._in_mark
            if self._in_mark and self._paragraphs:
                self._paragraphs[-1].goes_on = True
        elif tag in ("pPrChange", "rPrChange"):
            self._in_old_style += 1
        elif tag == "tbl":
            self._end_carried()
            self._tables.append(CellGrid())
        elif tag == "tr" and self._tables:
            self._tables[-1].begin_row()
        elif tag == "tc" and self._tables:
            self._tables[-1].begin_cell()
        elif tag == "gridBefore" and self._tables:
            self._tables[-1].begin_cell(across=_whole(attributes.get("val", ""), 1))
        elif tag == "gridSpan" and self._tables:
            self._tables[-1].widen(_whole(attributes.get("val", ""), 1))
        elif tag in _OTHERS:
            self._embed(*_OTHERS[tag], attributes)
        elif self._paragraphs and not self._in_old_style:
            self._inside(tag, attributes, self._paragraphs[-1])

    def _inside(self, tag: str, attributes: Attributes, paragraph: _Paragraph) -> None:
        value = attributes.get("val", "")
        if tag == "pStyle":
            self._set_style(paragraph, value)
        elif tag in ("numId", "ilvl"):
            paragraph.numbers[tag] = value
        elif tag == "numPr":
            paragraph.listed = True
        elif tag == "vanish" and self._runs:
            self._runs[-1].is_hidden = value not in _OFF
        elif tag == "vertAlign" and self._runs:
            self._runs[-1].is_raised = value == "superscript"
        elif tag.removesuffix("Reference") in _MARKS:
            self._refer(tag.removesuffix("Reference"), attributes.get("id", ""), paragraph)
        elif self._is_seen():
            self._equation.start(tag, attributes.get("val"), paragraph.parts)
            self._note_field(tag, attributes)
            paragraph.parts += _SIGNS.get(tag, ())
            if tag == "sym":
                paragraph.parts += _symbol(attributes.get("char", ""))
            elif tag == "textpath":
                paragraph.parts.append(attributes.get("string", ""))
            elif tag == "rt":
                self._reading = len(paragraph.parts)
            elif tag == "rubyBase":  # the reading stands before its characters
                reading = "".join(paragraph.parts[self._reading :])
                paragraph.parts[self._reading :] = [f"({reading})"]

    def _set_style(self, paragraph: _Paragraph, name: str) -> None:
        style = self._styles.get(name)
        if style.is_title if style else re.match(r"(Heading\d|Title|Subtitle)$", name):
            paragraph.kind = "title"
        elif name.startswith("List"):
            paragraph.listed = True
        if style and style.numbers:
            paragraph.numbers = {**style.numbers, **paragraph.numbers}

    def _refer(self, kind: str, number: str, paragraph: _Paragraph) -> None:
        text = self._notes.get((kind, number))
        if text is None or self._deleted:
            return
        if kind == "comment":
            self._referred.append(Block("aside", text))
            return
        self._counts[kind] += 1
        label = f"[{self._counts[kind]}]" if kind == "footnote" else f"[e{self._counts[kind]}]"
        paragraph.parts.append(label)
        self._referred.append(Block("footnote", f"{label} {text}"))

    def _note_field(self, tag: str, attributes: Attributes) -> None:
        if tag == "ffData":
            self._field = _OldField()
        elif tag == "checkBox":
            self._field.is_box = True
        elif tag == "listEntry":
            self._field.entries.append(attributes.get("val", ""))
        elif tag in ("checked", "default", "result"):
            self._field.values[tag] = attributes.get("val", "1")

    def _embed(self, kind: str, name: str, attributes: Attributes) -> None:
        """Add what stands in another part, behind the block that refers to it."""
        if self._others is None or not self._is_seen():
            return
        found = self._others.blocks(kind, attributes.get(name, ""))
        self._n_texts += len(found)
        self._referred += found
        self._add_referred()

    def _is_seen(self) -> bool:
        return not self._deleted and not any(run.is_hidden for run in self._runs[-1:])

    def text(self, text: str) -> None:
        if self._in_text and self._paragraphs and self._is_seen():
            self._paragraphs[-1].parts.append(text)
            self._n_texts += 1

    def end(self, tag: str) -> None:
        if tag == "t":
            self._in_text -= 1
        elif tag == "r" and self._runs:
            self._end_run(self._runs.pop())
        elif tag == "pPr":
            self._in_mark -= 1
        elif tag in ("del", "moveFrom"):
            self._deleted -= not self._in_mark
        elif tag == "AlternateContent" and self._alternatives:
            self._alternatives.pop()
        elif tag == "Fallback":
            self._deleted -= self._left_out.pop()
        elif tag in ("pPrChange", "rPrChange"):
            self._in_old_style -= 1
        elif tag == "p" and self._paragraphs:
            self._add(self._paragraphs.pop())
        elif tag == "tc":
            self._end_carried()
        elif tag == "tbl" and self._tables:
            text = self._tables.pop().text
            if self._tables:
                self._tables[-1].add(text)
            elif text:
                self._append(Block("table", text))
        elif self._paragraphs and self._is_seen():
            parts = self._paragraphs[-1].parts
            self._equation.end(tag, parts)
            if tag == "rubyBase" and len(parts) > self._reading:
                parts.append(parts.pop(self._reading))
            if tag == "ffData":
                self._paragraphs[-1].parts.append(self._field.text())

    def _end_run(self, run: _Run) -> None:
        if run.is_raised and self._paragraphs:
            parts = self._paragraphs[-1].parts
            before, raised = "".join(parts[: run.begins]), "".join(parts[run.begins :])
            parts[run.begins :] = [write_raised(before, raised)]

    def _end_carried(self) -> None:
        if self._carried:
            self._add(_Paragraph(parts=self._carried))
            self._carried = []

    def _add(self, paragraph: _Paragraph) -> None:
        if paragraph.goes_on:
            self._carried = paragraph.parts
            return
        text = "".join(paragraph.parts).strip()
        if not text:
            self._add_referred()
            return
        numbers = paragraph.numbers.get("numId", "")
        listed = paragraph.listed or bool(numbers)
        label = ""
        if listed and numbers != "0":
            depth = min(_whole(paragraph.numbers.get("ilvl", "")), _DEEPEST)
            label = self._numbering.label(numbers, depth) if numbers else BULLET
            if paragraph.kind == "title" and label == BULLET:
                label = ""
            text = f"{label} {text}".strip()
            if paragraph.kind == "paragraph":
                paragraph.kind = "list"
                text = _INDENT * depth + text
        if self._tables:
            self._tables[-1].add(text.strip())
            return
        goes_on = paragraph.kind == "list" and self.blocks and self.blocks[-1].kind == "list"
        if goes_on and numbers == self._list and not self._referred:
            self.blocks[-1] = Block("list", f"{self.blocks[-1].text}\n{text}")
        else:
            self._list = numbers
            self._append(Block(paragraph.kind, text))

    def _append(self, block: Block) -> None:
        """Add a block of the body, and the notes that it refers to."""
        self.blocks.append(block)
        self.blocks += self._referred
        self._referred = []

    def _add_referred(self) -> None:
        """Add what was referred to, outside of paragraphs and tables."""
        if not self._paragraphs and not self._tables:
            self.blocks += self._referred
            self._referred = []

    def finish(self) -> list[Block]:
        self._end_carried()
        return self.blocks + self._referred


_SIGNS = {
    "tab": (" ",),
    "ptab": (" ",),
    "br": ("\n",),
    "cr": ("\n",),
    "noBreakHyphen": ("-",),
    "softHyphen": (),
}


def _symbol(code: str) -> tuple[str, ...]:
    """The character of a symbol font, in hexadecimal."""
    try:
        number = int(code[:5], 16)
    except ValueError:
        return ()
    return (chr(number),) if 32 <= number < 0xD800 or 0xE000 <= number < 0x10000 else ()
