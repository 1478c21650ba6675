"""Blocks, the parts of a document in reading order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal[
    "title", "paragraph", "list", "table", "code", "footnote", "header", "footer", "aside"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

Box = tuple[float, float, float, float]
"""Left, top, right and bottom on the page as it is shown, in points (1/72 inch), from its upper
left corner."""

Ask = Callable[[int], "Collection[int] | None"]
"""Selects pages, given the number of a file's pages (None: all)."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a title, a list, a table and so on; ``box`` only where pages have places."""

    kind: Kind
    text: str
    box: Box | None = None


class Unreadable(Exception):
    """A file, or a page, that cannot be read; its text is the reason, in one line."""


def union(boxes: list[Box]) -> Box:
    """The smallest box around ``boxes``, at least one."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def table_text(rows: list[list[str]]) -> str:
    r"""The text of a table: a line for each row, cells between bars; a bar in a cell is ``\|``.

    >>> print(table_text([["item", "price"], ["tea", "2"]]))
    item | price
    tea | 2
    """
    cells = [[" ".join(cell.split()).replace("|", r"\|") for cell in row] for row in rows]
    return "\n".join(" | ".join(row) for row in cells if any(row))
