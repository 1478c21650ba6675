"""HTML: its titles, paragraphs, lists and tables, without scripts and styles."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from html.parser import HTMLParser

from blendfusion.services.documents.blocks import Block, Kind
from blendfusion.services.documents.cell_grid import WIDEST, CellGrid
from blendfusion.services.documents.docx_numbers import in_form
from blendfusion.services.documents.exponents import write_raised

_HIDDEN = {
    *("script", "style", "template", "noscript", "svg", "iframe", "object", "datalist"),
    *("annotation", "annotation-xml", "rp"),
}
"""Elements that are not read; annotations repeat a formula in another language."""
_BREAKS = {
    *("p", "div", "section", "article", "main", "blockquote", "figure", "figcaption", "form"),
    *("address", "dl", "dt", "dd", "fieldset", "details", "summary", "hr", "body", "html", "head"),
    *("ul", "ol", "li", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "title", "caption"),
    *("header", "footer", "nav", "aside", "center", "dialog", "hgroup", "search", "menu", "dir"),
    *("legend", "listing", "xmp", "noframes"),
}
_BOXES = {"button", "textarea", "select", "input", "label", "output"}
"""Elements that stand apart from the text around them, though in its line."""
_LISTS = ("ul", "ol", "menu", "dir")
_UNSEEN_INPUTS = ("hidden", "password", "file", "image", "color", "range")
_FORMS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
"""The labels of an ordered list of each type."""
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


@dataclass(slots=True)
class _List:
    """An open list: its last number, how far the next one is from it, and how labels are written;
    the items open around it."""

    tag: str
    around: int
    number: int
    step: int
    form: str


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
        self._lists: list[_List] = []
        self._label = ""
        self._raised: int | None = None
        """The number of texts before an open raised one."""
        self._refers = False
        """Whether that one is a link within the page, as to a note."""
        self._unchosen = self._in_reading = False
        """Whether an option that is not chosen, and the reading of a character, is open."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden:
            self._hidden_depth += tag == self._hidden
            return
        if tag in _HIDDEN:
            self._hidden, self._hidden_depth = tag, 1
            return
        if tag == "br":
            self._text.append("\n")
        elif tag in ("table", "tr", "td", "th", "thead", "tbody", "tfoot"):
            self._open_cell(tag, dict(attrs))
        elif tag in _BREAKS:
            self.flush()
            self._open(tag, dict(attrs))
        else:
            self._open_inline(tag, dict(attrs))

    def _open_inline(self, tag: str, attributes: Attributes) -> None:
        if tag in _BOXES:
            self._text.append(" ")
        if tag == "input":
            self._text.append(f"{_value(attributes)} ")
        elif tag == "img":
            shown = attributes.get("alt") or ""
            self._text.append(shown if len(shown) == 1 else f" {shown} ")
        elif tag == "option":
            self._unchosen = "selected" not in attributes
            self._text.append(" ")
        elif tag == "sup":
            self._raised, self._refers = len(self._text), False
        elif tag == "a" and self._raised is not None:
            self._refers = (attributes.get("href") or "").startswith("#")
        elif tag == "rt":
            self._end_reading()
            self._in_reading = True
            self._text.append("(")

    def _shut_inline(self, tag: str) -> None:
        if tag in _BOXES:
            self._text.append(" ")
        if tag in ("option", "select"):
            self._unchosen = False
        elif tag in ("rt", "ruby"):
            self._end_reading()
        elif tag == "sup" and self._raised is not None:
            before, raised = (
                "".join(part) for part in (self._text[: self._raised], self._text[self._raised :])
            )
            if self._refers and raised.strip().isalnum():
                raised = f"[{raised.strip()}]"
            self._text = [before, write_raised(before, raised)]
            self._raised = None

    def _end_reading(self) -> None:
        if self._in_reading:
            self._text.append(")")
        self._in_reading = False

    def _open(self, tag: str, attributes: Attributes) -> None:
        if tag in _TITLES:
            self._titles += 1
        elif tag in _LISTS:
            form = _FORMS.get(attributes.get("type") or "", "decimal") if tag == "ol" else "bullet"
            step = -1 if "reversed" in attributes else 1
            if step < 0 and "start" not in attributes:
                form = "bullet"  # its first number is that of its items, which are not known
            first = _number(attributes, "start", 1)
            self._lists.append(_List(tag, self._items, first - step, step, form))
        elif tag == "li":
            inner = self._lists[-1] if self._lists else _List("ul", 0, 0, 1, "bullet")
            inner.number = _number(attributes, "value", inner.number + inner.step)
            self._items = inner.around + 1  # the item before may have no end
            label = "•" if inner.form == "bullet" else f"{in_form(inner.number, inner.form)}."
            indent = "  " * min(len(self._lists) - 1, _DEEPEST_INDENT)
            self._label = f"{indent}{label} "
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
            elif tag in ("td", "th"):
                down = _number(attributes, "rowspan", 1) or WIDEST  # 0: all rows of its group
                self._tables[-1].begin_cell(down, _number(attributes, "colspan", 1))
            else:
                self._tables[-1].end_group()

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
        else:
            self._shut_inline(tag)

    def _shut(self, tag: str) -> None:
        if tag in _TITLES:
            self._titles = max(0, self._titles - 1)
        elif tag in _LISTS and self._lists:
            self._items = self._lists.pop().around
        elif tag == "li":
            self._items = max(0, self._items - 1)
        elif tag == "pre":
            self._code = max(0, self._code - 1)
        elif any(tag == open_tag for open_tag, _ in self._edges):
            while self._edges.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._hidden and not self._unchosen:
            self._text.append(data if self._code else _SPACE.sub(" ", data))

    def unknown_decl(self, data: str) -> None:
        """A text that may have signs of tags, in XHTML."""
        if data.startswith("CDATA["):
            self.handle_data(data.removeprefix("CDATA["))

    def flush(self) -> None:
        """The text so far is a block."""
        self._raised = None
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


def _value(attributes: Attributes) -> str:
    """The text that a field of a form shows."""
    kind = (attributes.get("type") or "text").lower()
    if kind in ("checkbox", "radio"):
        return "☒" if "checked" in attributes else ""
    return "" if kind in _UNSEEN_INPUTS else attributes.get("value") or ""


def _number(attributes: Attributes, name: str, default: int) -> int:
    text = (attributes.get(name) or "").strip()[:6]
    return int(text) if text.isascii() and text.isdigit() else default


def _single_spaces(text: str) -> str:
    """Text with single spaces; its line breaks are those of the page."""
    lines = (_SPACE.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(filter(None, lines))
