"""HTML: its titles, paragraphs, lists and tables, without scripts and styles."""

from __future__ import annotations

import codecs
import re
from html.parser import HTMLParser

from blendfusion.services.documents.blocks import Block, Kind
from blendfusion.services.documents.cell_grid import CellGrid

_HIDDEN = {
    *("script", "style", "template", "noscript", "svg", "iframe", "object", "select"),
    *("annotation", "annotation-xml"),
}
"""Elements that are not read; the last two repeat a formula in another language."""
_BREAKS = {
    *("p", "div", "section", "article", "main", "blockquote", "figure", "figcaption", "form"),
    *("address", "dl", "dt", "dd", "fieldset", "details", "summary", "hr", "body", "html", "head"),
    *("ul", "ol", "li", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "title", "caption"),
    *("header", "footer", "nav", "aside", "center"),
}
_TITLES = {"h1", "h2", "h3", "h4", "h5", "h6", "title"}
_DEEPEST_INDENT = 20
_EDGES: dict[str, Kind] = {
    "header": "header",
    "footer": "footer",
    "nav": "aside",
    "aside": "aside",
}
_NOTE = re.compile(r"\b(doc-)?(foot|end|rear)note\b")
"""The part that an element states to have, in books and on pages."""
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{2,40})", re.IGNORECASE)
_WIDER = {
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
}
_SPACE = re.compile(r"\s+")

Attributes = dict[str, str | None]


def html_blocks(data: bytes | str) -> list[Block]:
    """The blocks of a page."""
    reader = _Reader()
    reader.feed(data if isinstance(data, str) else decode(data))
    reader.close()
    reader.flush()
    return reader.blocks


def decode(data: bytes) -> str:
    """Text by its byte order mark, by the charset that it states, or as UTF-8, even if some of it
    is damaged, else as Windows' Western European."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    stated = _CHARSET.search(data[:4096])
    text = decode_as(data, stated[1].decode("ascii")) if stated else None
    if text is not None:
        return text
    text = data.decode("utf-8-sig", "replace")
    damaged = text.count("\ufffd")
    whole = sum(letter > "\x7f" for letter in text) - damaged
    return data.decode("cp1252", "replace") if damaged > whole else text


def decode_as(data: bytes, charset: str) -> str | None:
    """Text in a charset that is stated, or in the wider one that programs write under its name.
    None: there is no such charset, or its text is UTF-8 in fact, or may be."""
    try:
        name = codecs.lookup(charset).name
        text = data.decode(_WIDER.get(name, name))
    except LookupError:
        return None
    except ValueError:
        return None if name in ("utf-8", "ascii") else _decode_damaged(data, name)
    return None if name == "ascii" else text


def _decode_damaged(data: bytes, name: str) -> str | None:
    try:
        return data.decode("utf-8")
    except ValueError:
        return data.decode(_WIDER.get(name, name), "replace")


class _Reader(HTMLParser):
    """Puts together blocks from tags; nothing here depends on how deep they are nested."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self._text: list[str] = []
        self._hidden: str | None = None
        """The tag up to whose end nothing is read."""
        self._hidden_depth = 0
        self._titles = self._items = self._code = 0
        self._edges: list[tuple[str, Kind]] = []
        """The tags of open parts that are not of the text, and their kinds."""
        self._tables: list[CellGrid] = []
        self._item = ""
        """The tag of the innermost list."""
        self._lists: list[tuple[str, int, int]] = []
        """The tag of each open list, its last number, and the items open around it."""
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden:
            self._hidden_depth += tag == self._hidden
            return
        if tag in _HIDDEN:
            self._hidden, self._hidden_depth = tag, 1
            return
        if tag == "br":
            self._text.append("\n")
        elif tag in ("table", "tr", "td", "th"):
            self._open_cell(tag, dict(attrs))
        elif tag in _BREAKS:
            self.flush()
            self._open(tag, dict(attrs))

    def _open(self, tag: str, attributes: Attributes) -> None:
        if tag in _TITLES:
            self._titles += 1
        elif tag in ("ul", "ol"):
            self._lists.append((tag, _number(attributes, "start", 1) - 1, self._items))
        elif tag == "li":
            kind, before, around = self._lists[-1] if self._lists else ("ul", 0, 0)
            number = _number(attributes, "value", before + 1)
            if self._lists:
                self._lists[-1] = kind, number, around
            self._items = around + 1  # the item before may have no end
            indent = "  " * min(len(self._lists) - 1, _DEEPEST_INDENT)
            self._label = indent + (f"{number}. " if kind == "ol" else "• ")
        elif tag == "pre":
            self._code += 1
        elif tag in _EDGES:
            part = " ".join(attributes.get(name) or "" for name in ("epub:type", "role"))
            self._edges.append((tag, "footnote" if _NOTE.search(part) else _EDGES[tag]))

    def _open_cell(self, tag: str, attributes: Attributes) -> None:
        if tag == "table":
            if not self._tables:
                self.flush()
            else:
                self._into_cell()
            self._tables.append(CellGrid())
        elif self._tables:
            self._into_cell()
            if tag == "tr":
                self._tables[-1].begin_row()
            else:
                spans = (_number(attributes, name, 1) for name in ("rowspan", "colspan"))
                self._tables[-1].begin_cell(*spans)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._hidden_depth -= tag == self._hidden
            if not self._hidden_depth:
                self._hidden = None
            return
        if tag == "table" and self._tables:
            self._into_cell()
            text = self._tables.pop().text
            if self._tables:
                self._text.append(f" {text} ")
                self._into_cell()
            elif text:
                self.blocks.append(Block("table", text))
        elif tag in ("td", "th", "tr"):
            self._into_cell()
        elif tag in _BREAKS:
            self.flush()
            self._shut(tag)

    def _shut(self, tag: str) -> None:
        if tag in _TITLES:
            self._titles = max(0, self._titles - 1)
        elif tag in ("ul", "ol") and self._lists:
            self._items = self._lists.pop()[2]
        elif tag == "li":
            self._items = max(0, self._items - 1)
        elif tag == "pre":
            self._code = max(0, self._code - 1)
        elif any(tag == open_tag for open_tag, _ in self._edges):
            while self._edges.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(data if self._code else _SPACE.sub(" ", data))

    def flush(self) -> None:
        """The text so far is a block."""
        if self._tables:
            self._text.append(" ")
            return
        raw, self._text = "".join(self._text), []
        text = raw.strip("\n") if self._code else _single_spaces(raw)
        if not text.strip():
            return
        kind = self._kind()
        if kind == "list":
            text, self._label = self._label + text, ""
            if self.blocks and self.blocks[-1].kind == "list":
                text = f"{self.blocks.pop().text}\n{text}"
        self.blocks.append(Block(kind, text))

    def _kind(self) -> Kind:
        if self._titles:
            return "title"
        if self._edges:
            return self._edges[-1][1]
        if self._code:
            return "code"
        return "list" if self._items else "paragraph"

    def _into_cell(self) -> None:
        text, self._text = _single_spaces("".join(self._text)), []
        if not text:
            return
        if not self._tables[-1].add(text):  # a caption, or text beside the cells
            self.blocks.append(Block("paragraph", text))


def _number(attributes: Attributes, name: str, default: int) -> int:
    text = (attributes.get(name) or "").strip()[:6]
    return int(text) if text.isascii() and text.isdigit() else default


def _single_spaces(text: str) -> str:
    """Text with single spaces; its line breaks are those of the page."""
    lines = (_SPACE.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(filter(None, lines))
