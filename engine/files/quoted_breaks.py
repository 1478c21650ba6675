"""Finds line breaks in quoted values of a CSV text: DataFusion may cut a large file at any line's
end, and there, too."""

from __future__ import annotations

from typing import IO

_BLOCK = 1 << 18


def has_quoted_break(content: IO[bytes], quote: str = '"') -> bool:
    """Whether a line of a text breaks behind an odd number of quotes. Without such a break, no
    quoted value holds one; with one, a quote may also stand inside a value that is not quoted."""
    sign = quote.encode()
    others = bytes(set(range(256)) - set(sign) - set(b"\n"))
    is_open = False
    while block := content.read(_BLOCK):
        marks = (sign if is_open else b"") + block.translate(None, others)
        left = marks.replace(sign * 2, b"")  # without quotes that have no break between them
        is_open = sign in left
        if is_open and b"\n" in left[left.index(sign) :]:
            return True
    return False
