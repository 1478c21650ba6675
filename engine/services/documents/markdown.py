"""Markdown, by markdown-it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from blendfusion.services.documents.blocks import Block, Kind, table_text
from blendfusion.services.documents.exponents import write_raised
from blendfusion.services.documents.html import decode, html_blocks

_HTML_TAG = re.compile(r"<(/?)(br|sup)\b", re.IGNORECASE)
_BAR = re.compile(r"(?<!\\)\|")
_FRONT = re.compile(r"\A(---|\+\+\+)\n(.{0,20000}?)\n(?:\1|\.\.\.)(?:\n|\Z)", re.DOTALL)
_NOTE = re.compile(r"\[\^([^\]\s]{1,80})\]:[ \t]*")
_REFERENCE = re.compile(r"\[\^([^\]\s]{1,80})\]")


def markdown_blocks(data: bytes) -> list[Block]:
    """The blocks of a Markdown text; its front matter is an aside."""
    text = decode(data).replace("\r\n", "\n")
    front = _FRONT.match(text)
    found = _Markdown().read(text[front.end() :] if front else text)
    return [Block("aside", front[2]), *found] if front and front[2].strip() else found


def _read_note(state: Any, start: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it for notes, which it would take for the places of links: "[^1]: text"
    and the lines that go on, those behind blank lines only if they are indented."""
    found = _NOTE.match(state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]])
    if not found or state.sCount[start] - state.blkIndent >= 4:
        return False
    if silent:
        return True
    line = last = start + 1
    while line < end:
        is_empty, indent = state.isEmpty(line), state.sCount[line] - state.blkIndent
        begins = state.bMarks[line] + state.tShift[line]
        if not is_empty and indent < 4 and (line > last or _NOTE.match(state.src, begins)):
            break
        line += 1
        last = last if is_empty else line
    text = state.getLines(start, last, state.blkIndent, False).lstrip()
    state.push("note_open", "", 1).info = found[1]
    inline = state.push("inline", "", 0)
    inline.content, inline.children = text[found.end() :].strip(), []
    state.push("note_close", "", -1)
    state.line = last
    return True


class _Markdown:
    """Puts together the blocks of a text from markdown-it's tokens."""

    def __init__(self) -> None:
        from markdown_it import MarkdownIt

        self._parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
        self._parser.block.ruler.before(
            "reference", "note", _read_note, {"alt": ["paragraph", "reference", "blockquote"]}
        )
        self._blocks: list[Block] = []
        self._source: list[str] = []
        self._items: list[str] = []
        self._numbers: list[int | None] = []
        """The next number of each open list; None: it has none."""
        self._label = ""
        self._rows: list[list[str]] | None = None
        self._line = ""
        """The row of the table as it is written."""
        self._kind: Kind = "paragraph"
        self._note = ""
        self._labels: set[str] = set()
        self._notes: dict[str, str] = {}
        """The notes that no block has referred to yet, by their labels."""
        self._referred: list[str] = []
        """The labels of notes to which the next block refers."""

    def read(self, text: str) -> list[Block]:
        self._source = text.split("\n")
        tokens = self._parser.parse(text)
        self._labels = {token.info for token in tokens if token.type == "note_open"}
        for token, content in pairwise(tokens):
            if token.type == "note_open":
                self._notes[token.info] = self._inline(content)
        self._referred.clear()
        for token in tokens:
            self._read(token)
        self._add_notes([*self._notes])
        return self._blocks

    def _read(self, token: Any) -> None:
        kind = token.type
        if kind.endswith("list_open"):
            start = token.attrs.get("start", 1) if token.attrs else 1
            self._numbers.append(int(start) if kind.startswith("ordered") else None)
        elif kind.endswith("list_close"):
            self._numbers.pop()
            if not self._numbers:
                self._end_list()
        elif kind == "list_item_open":
            number = self._numbers[-1]
            self._label = "• " if number is None else f"{number}. "
            self._numbers[-1] = None if number is None else number + 1
        elif kind in ("heading_open", "heading_close"):
            self._kind = "title" if kind == "heading_open" else "paragraph"
        elif kind in ("note_open", "note_close"):
            self._note = token.info
        elif kind == "inline" and not self._note:
            self._text(self._inline(token))
        elif kind in ("fence", "code_block") and token.content.strip():
            if self._numbers:
                self._items.append(token.content.rstrip())
            else:
                self._append(Block("code", token.content.rstrip()))
        elif kind == "html_block":
            for block in html_blocks(token.content.encode()):
                self._append(block)
        else:
            self._cell(kind, token)

    def _cell(self, kind: str, token: Any) -> None:
        if kind == "table_open":
            self._rows = []
        elif kind == "tr_open" and self._rows is not None:
            self._rows.append([])
            self._line = self._source[token.map[0]].strip(" \t>") if token.map else ""
        elif kind == "tr_close" and self._rows:
            beyond = _cells(self._line)[len(self._rows[0]) :]  # which the parser drops
            self._rows[-1] += [self._inline(self._parser.parseInline(c)[0]) for c in beyond]
        elif kind == "table_close" and self._rows is not None:
            self._append(Block("table", table_text(self._rows)))
            self._rows = None

    def _text(self, words: str) -> None:
        if self._rows is not None:
            self._rows[-1].append(words)
        elif self._numbers:
            self._items.append(f"{'  ' * (len(self._numbers) - 1)}{self._label}{words}")
            self._label = ""
        elif words:
            self._append(Block(self._kind, words))

    def _append(self, block: Block) -> None:
        """Add a block, behind the items before it, and the notes to which it refers."""
        self._end_list()
        self._blocks.append(block)
        self._add_notes(self._referred)
        self._referred.clear()

    def _end_list(self) -> None:
        if self._items:
            items, self._items = self._items, []
            self._append(Block("list", "\n".join(items)))

    def _add_notes(self, labels: list[str]) -> None:
        for label in labels:
            text = self._notes.pop(label, None)
            if text is not None:
                self._blocks.append(Block("footnote", f"[{label}] {text}"))

    def _inline(self, token: Any) -> str:
        """The text of a line without its marks."""
        parts: list[str] = []
        raised = 0
        for child in token.children or ():
            tag = _HTML_TAG.match(child.content) if child.type == "html_inline" else None
            if child.type in ("text", "code_inline", "image"):
                parts.append(child.content)
            elif child.type == "softbreak":
                parts.append(" ")
            elif child.type == "hardbreak" or (tag and tag[2].lower() == "br"):
                parts.append("\n")
            elif tag and not tag[1]:
                raised = len(parts)
            elif tag and raised:
                before, text = "".join(parts[:raised]), "".join(parts[raised:])
                parts = [before, write_raised(before, text)]
                raised = 0
        return _REFERENCE.sub(self._refer, "".join(parts).strip())

    def _refer(self, found: re.Match[str]) -> str:
        if found[1] not in self._labels:
            return found[0]
        self._referred.append(found[1])
        return f"[{found[1]}]"


def _cells(line: str) -> list[str]:
    """The cells of a row as it is written."""
    cells = [cell.strip() for cell in _BAR.split(line.removeprefix("|"))]
    return cells if cells[-1] else cells[:-1]
