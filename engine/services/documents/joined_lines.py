"""Lines as one text: words that the end of a line divides are whole again."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_SOFT = "\u00ad"
_HYPHENS = "-\u2010"
_DASHES = "–—/\u2011"
_SUSPENDED = re.compile(r"(and|or|und|oder|bzw|sowie|et|ou|y|o|e|i|en|of|och|og|to|bis)\b")
"""Words before which a hyphen stands for the rest of a word: "pre- and post-war"."""
_LAST = re.compile(r"\S+\Z")
_FIRST = re.compile(r"\w+")
_WITHOUT_BLANKS = re.compile(
    "[\u2e80-\u303f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)


def join_lines(lines: Sequence[str], known: Collection[str] = ()) -> str:
    """Lines as one text; a word that a hyphen divides at the end of a line is whole again.

    A hyphen stays between numbers, before a capital, in a word that has another one, and in a word
    of ``known``, those of the page. Scripts that are written without blanks get none.

    >>> join_lines(["an exam-", "ple of Baden-", "Württemberg, state-of-the-", "art, 10-", "20"])
    'an example of Baden-Württemberg, state-of-the-art, 10-20'
    >>> join_lines(["pre- and post-war, a well-", "known pre-", "and post-war"], {"well-known"})
    'pre- and post-war, a well-known pre- and post-war'
    """
    text = ""
    for line in lines:
        text = _together(text, line, known) if text and line else text or line
    return text


def _together(text: str, line: str, known: Collection[str]) -> str:
    last, first = text[-1], line[0]
    before = text[-2:-1]
    if last == _SOFT:
        return text[:-1] + line
    if _WITHOUT_BLANKS.match(last) and _WITHOUT_BLANKS.match(first):
        return text + line
    if not before.isalnum() or not first.isalnum():
        return f"{text} {line}"
    if last in _DASHES:
        return text + line
    if last not in _HYPHENS or _SUSPENDED.match(line):
        return f"{text} {line}"
    if not (before.isalpha() and first.islower()):
        return text + line
    return text + line if _keeps_hyphen(text, line, known) else text[:-1] + line


def _keeps_hyphen(text: str, line: str, known: Collection[str]) -> bool:
    """Whether the hyphen at the end of ``text`` is one of the word's own."""
    start, rest = _LAST.search(text), _FIRST.match(line)
    assert start is not None
    assert rest is not None
    return "-" in start[0][:-1] or f"{start[0]}{rest[0]}".lower() in known
