"""Chunks: neighbouring blocks together, up to a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blendfusion.services.documents.process import Row

_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")
"""About a token of a model: six letters of a word, or a mark."""
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_SPACE = re.compile(r"\s+")
_MARGINS = ("header", "footer", "aside")


def tokens_in(text: str) -> int:
    """About the number of tokens of a text.

    >>> tokens_in("Extraordinarily good, isn't it?")
    10
    """
    if text.isalnum():
        return -(-len(text) // 6)
    return len(_TOKEN.findall(text))


def cut_chunks(rows: Sequence[Row], most: int) -> list[Row]:
    """Rows of at most ``most`` tokens each, in the same order.

    A chunk begins at a title, unless only titles stand before it, and headers and footers are in
    none unless there is nothing else. A block is divided only where it is longer than a chunk:
    between sentences or lines, else between words.
    """
    found: list[Row] = []
    texts: list[str] = []
    boxes: list[tuple[float, ...] | None] = []
    size, only_titles = 0, True

    def close() -> None:
        nonlocal size, only_titles
        if texts:
            found.append(("chunk", "\n\n".join(texts), _around(boxes)))
        texts.clear()
        boxes.clear()
        size, only_titles = 0, True

    for kind, text, box in _body(rows):
        if kind == "title" and not only_titles:
            close()
        for part in _parts(text, most):
            tokens = tokens_in(part)
            if size + tokens > most:
                close()
            texts.append(part)
            boxes.append(box)
            size += tokens
            only_titles = only_titles and kind == "title"
    close()
    return found


def words_left_out(rows: Sequence[Row]) -> int:
    """The number of words of rows that are in no chunk."""
    words = (len(text.split()) for _, text, _ in rows)
    return sum(words) - sum(len(text.split()) for _, text, _ in _body(rows))


def _body(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that chunks are made of."""
    return [row for row in rows if row[0] not in _MARGINS] or rows


def _parts(text: str, most: int) -> Iterator[str]:
    """A text in parts of at most ``most`` tokens."""
    if tokens_in(text) <= most:
        yield text
        return
    part, size = "", 0
    for piece, gap in _pieces(text, most):
        tokens = tokens_in(piece)
        if part and size + tokens > most:
            yield part
            part, size = "", 0
        part = part + gap + piece if part else piece
        size += tokens
    if part:
        yield part


def _pieces(text: str, most: int) -> Iterator[tuple[str, str]]:
    """Sentences or lines, with the space before each; words where a sentence is too long."""
    for piece, gap in _split(_SENTENCE, text):
        if tokens_in(piece) <= most:
            yield piece, gap
            continue
        for word, space in _split(_SPACE, piece):
            yield from _cut(word, space or gap, most)


def _split(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    end, gap = 0, ""
    for found in pattern.finditer(text):
        if found.start() > end:
            yield text[end : found.start()], gap
            gap = ""
        gap, end = gap + found[0], found.end()
    if end < len(text):
        yield text[end:], gap


def _cut(word: str, gap: str, most: int) -> Iterator[tuple[str, str]]:
    """A word that has more tokens than a chunk, in pieces."""
    while len(word) > most and tokens_in(word) > most:
        ends = [found.end() for found in _TOKEN.finditer(word)]
        yield word[: ends[most - 1]], gap
        word, gap = word[ends[most - 1] :], ""
    yield word, gap


def _around(boxes: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    known = [box for box in boxes if box is not None]
    if not known:
        return None
    lefts, tops, rights, bottoms = zip(*known, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
