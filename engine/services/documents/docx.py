"""DOCX: the paragraphs, lists and tables of its XML, with limits against archives that explode."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from xml.parsers import expat

from blendfusion.services.documents.blocks import Block, Kind, Unreadable, table_text

MOST_BYTES = 256 << 20
"""The most bytes that a part of the archive may have, unpacked."""
_BLOCK = 1 << 20
_DEEPEST = 500
_WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_MARGINS = re.compile(r"word/(header|footer)\d*\.xml")

Attributes = dict[str, str]


def docx_blocks(path: str) -> list[Block]:
    """The blocks of a document: headers, body, footers. Raises Unreadable."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "word/document.xml" not in names:
                raise Unreadable("it is a ZIP archive, and no DOCX file")
            titles = _title_styles(archive) if "word/styles.xml" in names else {}
            edges: dict[str, list[Block]] = {"header": [], "footer": []}
            for name in sorted(filter(_MARGINS.fullmatch, names)):
                kind: Kind = "header" if "header" in name else "footer"
                found = _Body(titles)
                _parse(archive, name, found.start, found.end, found.text)
                text = "\n".join(dict.fromkeys(block.text for block in found.blocks))
                if text:
                    edges[kind].append(Block(kind, text))
            body = _Body(titles)
            _parse(archive, "word/document.xml", body.start, body.end, body.text)
            headers, footers = (list(dict.fromkeys(edges[k])) for k in ("header", "footer"))
            return headers + body.blocks + footers
    except Unreadable:
        raise
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, OSError, NotImplementedError):
        raise Unreadable("its archive is damaged") from None
    except RuntimeError:  # zipfile's, for an archive with a password
        raise Unreadable("its archive needs a password") from None
    except Exception as problem:
        if type(problem).__module__ == "zlib":
            raise Unreadable("its archive is damaged") from None
        raise


def _parse(
    archive: zipfile.ZipFile,
    name: str,
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
) -> None:
    """Read one part. Document types are refused: they define entities, which could explode."""
    parser = expat.ParserCreate(namespace_separator=" ")
    depth = 0

    def refuse(*_: object) -> None:
        raise Unreadable("its XML has a document type, which is refused")

    def opened(tag: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise Unreadable(f"its XML is nested deeper than {_DEEPEST} levels")
        space, _, local = tag.rpartition(" ")
        if space in (_WORDS, _STRICT):
            start(local, {key.rpartition(" ")[2]: value for key, value in attributes.items()})

    def closed(tag: str) -> None:
        nonlocal depth
        depth -= 1
        space, _, local = tag.rpartition(" ")
        if space in (_WORDS, _STRICT):
            end(local)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    parser.CharacterDataHandler = text
    parser.buffer_text = True
    size = 0
    try:
        with archive.open(name) as part:
            while block := part.read(_BLOCK):
                size += len(block)
                if size > MOST_BYTES:
                    raise Unreadable(f"'{name}' is larger than {MOST_BYTES >> 20} MB unpacked")
                parser.Parse(block, False)
            parser.Parse(b"", True)
    except expat.ExpatError:
        raise Unreadable(f"'{name}' is not well-formed XML") from None


def _title_styles(archive: zipfile.ZipFile) -> dict[str, bool]:
    """Whether a paragraph style, by its id, is one of titles."""
    titles: dict[str, bool] = {}
    style = ""

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal style
        if tag == "style":
            style = attributes.get("styleId", "")
        elif tag == "name":
            name = attributes.get("val", "").lower()
            titles[style] = name.startswith("heading") or name in ("title", "subtitle")
        elif tag == "outlineLvl" and style:
            titles[style] = attributes.get("val", "9") != "9"

    _parse(archive, "word/styles.xml", start, lambda tag: None, lambda text: None)
    return titles


class _Body:
    """Puts together blocks from the elements of a part."""

    def __init__(self, titles: dict[str, bool]) -> None:
        self.blocks: list[Block] = []
        self._titles = titles
        self._paragraph: list[list[str]] = []
        """The texts of open paragraphs; a text box stands within one."""
        self._kinds: list[Kind] = []
        self._tables: list[list[list[str]]] = []
        """The rows of open tables; a table may stand in a cell."""
        self._in_text = self._deleted = 0
        self._in_old_style = 0

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "p":
            self._paragraph.append([])
            self._kinds.append("paragraph")
        elif tag == "t":
            self._in_text += 1
        elif tag in ("del", "moveFrom"):
            self._deleted += 1
        elif tag == "pPrChange":
            self._in_old_style += 1
        elif tag == "tbl":
            self._tables.append([])
        elif tag == "tr" and self._tables:
            self._tables[-1].append([])
        elif tag == "tc" and self._tables and self._tables[-1]:
            self._tables[-1][-1].append("")
        elif self._kinds and not self._in_old_style:
            self._inside(tag, attributes)

    def _inside(self, tag: str, attributes: Attributes) -> None:
        if tag == "pStyle":
            style = attributes.get("val", "")
            if self._titles.get(style, re.match(r"(Heading\d|Title|Subtitle)$", style)):
                self._kinds[-1] = "title"
            elif style.startswith("List"):
                self._kinds[-1] = "list"
        elif tag == "numPr" and self._kinds[-1] == "paragraph":
            self._kinds[-1] = "list"
        elif tag == "tab":
            self._paragraph[-1].append(" ")
        elif tag in ("br", "cr"):
            self._paragraph[-1].append("\n")

    def text(self, text: str) -> None:
        if self._in_text and self._paragraph and not self._deleted:
            self._paragraph[-1].append(text)

    def end(self, tag: str) -> None:
        if tag == "t":
            self._in_text -= 1
        elif tag in ("del", "moveFrom"):
            self._deleted -= 1
        elif tag == "pPrChange":
            self._in_old_style -= 1
        elif tag == "p" and self._paragraph:
            self._add(self._kinds.pop(), "".join(self._paragraph.pop()).strip())
        elif tag == "tbl" and self._tables:
            text = table_text(self._tables.pop())
            if self._tables:
                self._into_cell(text)
            elif text:
                self.blocks.append(Block("table", text))

    def _add(self, kind: Kind, text: str) -> None:
        if not text:
            return
        if self._tables:
            self._into_cell(text)
        elif kind == "list" and self.blocks and self.blocks[-1].kind == "list":
            self.blocks[-1] = Block("list", f"{self.blocks[-1].text}\n• {text}")
        else:
            self.blocks.append(Block(kind, f"• {text}" if kind == "list" else text))

    def _into_cell(self, text: str) -> None:
        rows = self._tables[-1]
        if rows and rows[-1]:
            rows[-1][-1] = f"{rows[-1][-1]} {text}".strip()
