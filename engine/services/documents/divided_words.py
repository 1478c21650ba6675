"""Words that the end of a column or of a page divides are whole again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from blendfusion.services.documents.blocks import Block
from blendfusion.services.documents.joined_lines import join_lines

_BESIDE = ("header", "footer", "footnote", "aside", "table")
"""Blocks that may stand between the two parts of a word."""
_GO_ON = ("paragraph", "list")


def mend_columns(blocks: Sequence[Block], known: Collection[str]) -> list[Block]:
    """The blocks of a page, with the rest of a word that a column divides in the block where it
    begins. ``known`` has the words with a hyphen."""
    found = list(blocks)
    for at, block in enumerate(found):
        if is_divided(block):
            after = first_of(found[at + 1 :])
            if after is not None:
                found[at], rest = move_rest(block, found[at + 1 + after], known)
                found[at + 1 + after] = rest
    return [block for block in found if block.text]


def is_divided(block: Block) -> bool:
    """Whether a block ends within a word, as far as it can tell."""
    return block.kind in _GO_ON and block.text[-1:] in "-\u2010" and block.text[-2:-1].isalpha()


def first_of(blocks: Sequence[Block]) -> int | None:
    """The place of the block with which the text goes on, if it goes on within a word."""
    at = next((at for at, block in enumerate(blocks) if block.kind not in _BESIDE), None)
    is_rest = at is not None and blocks[at].kind == "paragraph" and blocks[at].text[:1].islower()
    return at if is_rest else None


def last_of(blocks: Sequence[Block]) -> int | None:
    """The place of the block with which the text ends, if it ends within a word."""
    at = next((n for n in reversed(range(len(blocks))) if blocks[n].kind not in _BESIDE), None)
    return at if at is not None and is_divided(blocks[at]) else None


def move_rest(block: Block, after: Block, known: Collection[str]) -> tuple[Block, Block]:
    """The two blocks with the word that they share in the first; unchanged if they share none.

    >>> one, other = Block("paragraph", "The provi-"), Block("paragraph", "sional rent")
    >>> [block.text for block in move_rest(one, other, ())]
    ['The provisional', 'rent']
    """
    first, _, rest = after.text.partition(" ")
    text = join_lines([block.text, first], known)
    if text == f"{block.text} {first}":
        return block, after
    return replace(block, text=text), replace(after, text=rest)
