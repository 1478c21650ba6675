"""Plain text, whose paragraphs blank lines divide, and Markdown by markdown-it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from blendfusion.services.documents.blocks import Block, table_text
from blendfusion.services.documents.html import decode, html_blocks
from blendfusion.services.documents.words import is_item

_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_LINE_BREAK = re.compile(r"<br\b", re.IGNORECASE)
_BAR = re.compile(r"(?<!\\)\|")
_FRONT = re.compile(r"\A---\n.{0,20000}?\n(?:---|\.\.\.)\n", re.DOTALL)


def text_pages(data: bytes | str) -> list[list[Block]]:
    """The blocks of each page; form feeds divide pages."""
    text = data if isinstance(data, str) else decode(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return [list(_paragraphs(page)) for page in text.split("\f")]


def _paragraphs(text: str) -> Iterator[Block]:
    for part in _BLANK.split(text):
        part = part.strip("\n").rstrip()
        if part.strip():
            items = [is_item(line.strip()) for line in part.split("\n")]
            kind = items[0] and (len(items) == 1 or any(items[1:]))
            yield Block("list" if kind else "paragraph", part.strip())


def markdown_blocks(data: bytes) -> list[Block]:
    """The blocks of a Markdown text, without its front matter."""
    from markdown_it import MarkdownIt

    text = _FRONT.sub("", decode(data).replace("\r\n", "\n"), count=1)
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    source = text.split("\n")
    found: list[Block] = []
    lists: list[list[str]] = []
    rows: list[list[str]] | None = None
    title = False
    items, numbers = list[str](), list[int]()
    label = line = ""
    for token in parser.parse(text):
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            lists.append([])
            start = token.attrs.get("start", 1) if token.attrs else 1
            numbers.append(int(start) if kind.startswith("ordered") else 0)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            lists.pop()
            numbers.pop()
            if not lists and items:
                found.append(Block("list", "\n".join(items)))
                items = []
        elif kind == "list_item_open":
            label = f"{numbers[-1]}. " if numbers[-1] else "• "
            numbers[-1] += bool(numbers[-1])
        elif kind == "heading_open":
            title = True
        elif kind == "heading_close":
            title = False
        elif kind == "table_open":
            rows = []
        elif kind == "tr_open" and rows is not None:
            rows.append([])
            line = source[token.map[0]].strip(" \t>") if token.map else ""
        elif kind == "tr_close" and rows:
            beyond = _cells(line)[len(rows[0]) :]  # which the parser drops
            rows[-1] += [_inline(parser.parseInline(cell)[0]) for cell in beyond]
        elif kind == "table_close" and rows is not None:
            found.append(Block("table", table_text(rows)))
            rows = None
        elif kind == "inline":
            words = _inline(token)
            if rows is not None:
                rows[-1].append(words)
            elif lists:
                items.append(f"{'  ' * (len(lists) - 1)}{label}{words}")
                label = ""
            elif words:
                found.append(Block("title" if title else "paragraph", words))
        elif kind in ("fence", "code_block") and token.content.strip():
            if lists:
                items.append(token.content.rstrip())
            else:
                found.append(Block("code", token.content.rstrip()))
        elif kind == "html_block":
            found += html_blocks(token.content.encode())
    return found


def _cells(line: str) -> list[str]:
    """The cells of a row as it is written."""
    cells = [cell.strip() for cell in _BAR.split(line.removeprefix("|"))]
    return cells if cells[-1] else cells[:-1]


def _inline(token: Any) -> str:
    """The text of a line without its marks."""
    parts: list[str] = []
    for child in token.children or ():
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type == "softbreak":
            parts.append(" ")
        elif child.type == "hardbreak" or _LINE_BREAK.match(child.content):
            parts.append("\n")
        elif child.type == "image":
            parts.append(child.content)
    return "".join(parts).strip()
