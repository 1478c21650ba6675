"""DOCX: the paragraphs, lists, tables and notes of its XML."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field

from blendfusion.services.documents.archives import Attributes, open_archive, parse_part
from blendfusion.services.documents.blocks import Block, Kind
from blendfusion.services.documents.cell_grid import CellGrid
from blendfusion.services.documents.docx_numbers import BULLET, Level, Numbering

_MARGINS = re.compile(r"word/(header|footer)\d*\.xml")
_OFF = ("0", "false", "off", "none")
_DEEPEST = 8
_INDENT = "  "


def docx_blocks(path: str) -> list[Block]:
    """The blocks of a document: headers, body with its notes, footers. Raises Unreadable."""
    with open_archive(path) as archive:
        return _read(archive)


def _read(archive: zipfile.ZipFile) -> list[Block]:
    names = archive.namelist()
    styles = _styles(archive) if "word/styles.xml" in names else {}
    numbering = _numbering(archive) if "word/numbering.xml" in names else Numbering()
    edges: dict[str, list[Block]] = {"header": [], "footer": []}
    for name in sorted(filter(_MARGINS.fullmatch, names)):
        kind: Kind = "header" if "header" in name else "footer"
        found = _Body(styles, Numbering(), {})
        parse_part(archive, name, found.start, found.end, found.text)
        text = "\n".join(dict.fromkeys(block.text for block in found.blocks))
        if text:
            edges[kind].append(Block(kind, text))
    notes = {
        (kind, number): text
        for kind in ("footnote", "endnote")
        if f"word/{kind}s.xml" in names
        for number, text in _notes(archive, kind).items()
    }
    body = _Body(styles, numbering, notes)
    parse_part(archive, "word/document.xml", body.start, body.end, body.text)
    headers, footers = (list(dict.fromkeys(edges[k])) for k in ("header", "footer"))
    return headers + body.finish() + footers


@dataclass(slots=True)
class _Style:
    """The kind of a style's paragraphs: whether they are titles, and how they are numbered."""

    is_title: bool = False
    numbers: dict[str, str] = field(default_factory=dict)
    based_on: str = ""


def _styles(archive: zipfile.ZipFile) -> dict[str, _Style]:
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

    parse_part(archive, "word/styles.xml", start)
    for own in styles.values():
        above, seen = own, 0
        while above.based_on in styles and seen < len(styles):
            above, seen = styles[above.based_on], seen + 1
            own.numbers = {**above.numbers, **own.numbers}
    return styles


def _numbering(archive: zipfile.ZipFile) -> Numbering:
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
            if tag == "lvl" and not number_list:
                found.definitions[definition][depth] = level
        elif tag == "start":
            level.start = _whole(value, 1)
        elif tag == "numFmt":
            level.form = value
        elif tag == "lvlText":
            level.text = value
        elif tag == "startOverride" and number_list:
            found.starts[number_list, depth] = _whole(value, 1)

    parse_part(archive, "word/numbering.xml", start)
    return found


def _notes(archive: zipfile.ZipFile, kind: str) -> dict[str, str]:
    """The texts of the foot- or endnotes, by their ids."""
    found: dict[str, str] = {}
    number, body = "", _Body({}, Numbering(), {})

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal number, body
        if tag == kind:
            number, body = attributes.get("id", ""), _Body({}, Numbering(), {})
        else:
            body.start(tag, attributes)

    def end(tag: str) -> None:
        if tag != kind:
            body.end(tag)
        elif body.blocks:
            found[number] = "\n".join(block.text for block in body.blocks)

    def text(text: str) -> None:
        body.text(text)

    parse_part(archive, f"word/{kind}s.xml", start, end, text)
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


class _Body:
    """Puts together blocks from the elements of a part."""

    def __init__(
        self,
        styles: dict[str, _Style],
        numbering: Numbering,
        notes: dict[tuple[str, str], str],
    ) -> None:
        self.blocks: list[Block] = []
        self._styles, self._numbering, self._notes = styles, numbering, notes
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[CellGrid] = []
        """The open tables; one may stand in a cell of another."""
        self._in_text = self._deleted = self._in_old_style = 0
        self._runs: list[bool] = []
        """Whether each open run is hidden."""
        self._list = ""
        """The list of the last block."""
        self._referred: list[Block] = []
        """Notes that stand behind the block that refers to them."""
        self._counts = {"footnote": 0, "endnote": 0}

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "p":
            self._paragraphs.append(_Paragraph())
        elif tag == "r":
            self._runs.append(False)
        elif tag == "t":
            self._in_text += 1
        elif tag in ("del", "moveFrom"):
            self._deleted += 1
        elif tag in ("pPrChange", "rPrChange"):
            self._in_old_style += 1
        elif tag == "tbl":
            self._tables.append(CellGrid())
        elif tag == "tr" and self._tables:
            self._tables[-1].begin_row()
        elif tag == "tc" and self._tables:
            self._tables[-1].begin_cell()
        elif tag == "gridSpan" and self._tables:
            self._tables[-1].widen(_whole(attributes.get("val", ""), 1))
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
            self._runs[-1] = value not in _OFF
        elif tag in ("footnoteReference", "endnoteReference"):
            self._refer(tag.removesuffix("Reference"), attributes.get("id", ""), paragraph)
        elif self._is_seen():
            paragraph.parts += _SIGNS.get(tag, ())
            if tag == "sym":
                paragraph.parts += _symbol(attributes.get("char", ""))

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
        self._counts[kind] += 1
        label = f"[{self._counts[kind]}]" if kind == "footnote" else f"[e{self._counts[kind]}]"
        paragraph.parts.append(label)
        self._referred.append(Block("footnote", f"{label} {text}"))

    def _is_seen(self) -> bool:
        return not self._deleted and not (self._runs and self._runs[-1])

    def text(self, text: str) -> None:
        if self._in_text and self._paragraphs and self._is_seen():
            self._paragraphs[-1].parts.append(text)

    def end(self, tag: str) -> None:
        if tag == "t":
            self._in_text -= 1
        elif tag == "r" and self._runs:
            self._runs.pop()
        elif tag in ("del", "moveFrom"):
            self._deleted -= 1
        elif tag in ("pPrChange", "rPrChange"):
            self._in_old_style -= 1
        elif tag == "p" and self._paragraphs:
            self._add(self._paragraphs.pop())
        elif tag == "tbl" and self._tables:
            text = self._tables.pop().text
            if self._tables:
                self._tables[-1].add(text)
            elif text:
                self._append(Block("table", text))

    def _add(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.parts).strip()
        if not text:
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

    def finish(self) -> list[Block]:
        return self.blocks + self._referred


_SIGNS = {
    "tab": (" ",),
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
