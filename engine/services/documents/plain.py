"""Plain text, whose paragraphs blank lines divide."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blendfusion.services.documents.blocks import Block
from blendfusion.services.documents.html import decode
from blendfusion.services.documents.words import is_item

_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


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
