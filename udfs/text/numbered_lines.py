"""Numbers texts, so that an answer names some of them."""

from __future__ import annotations

from collections.abc import Sequence


def number_lines(texts: Sequence[str]) -> str:
    """Texts as numbered lines, with line breaks replaced by blanks.

    >>> print(number_lines(["a", "b c"]))
    1. a
    2. b c
    """
    return "\n".join(f"{i}. {' '.join(text.split())}" for i, text in enumerate(texts, 1))
