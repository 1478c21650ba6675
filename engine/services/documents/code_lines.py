"""Lines of code on a page: in a font whose letters have one width, beside text in others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from blendfusion.services.documents.words import Line, Word

_FULL = 0.75
"""The least part of the longest line that lines of running text have, but for the last."""


def has_code(words: Sequence[Word]) -> bool:
    """Whether most of a page is in other fonts, so that what is in one of equal widths is code."""
    fixed = sum([len(word.text) for word in words if word.fixed])
    return bool(fixed) and 2 * fixed < sum([len(word.text) for word in words])


def code_runs(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """The first line of each run that is code, and the line behind its last."""
    found = []
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and _goes_on(lines, start, end):
            end += 1
        if end > start + 1 and not _is_text(lines[start:end]):
            found.append((start, end))
        start = max(end, start + 1)
    return found


def _goes_on(lines: Sequence[Line], start: int, at: int) -> bool:
    line = lines[at]
    if line.rows is not None or not all(word.fixed for word in line.words):
        return False
    return at == start or line.box[3] - lines[at - 1].box[3] <= 2.6 * line.height


def _is_text(lines: Sequence[Line]) -> bool:
    """Whether a hyphen divides a word, or all lines begin at one place and are full, as those of a
    paragraph."""
    ends = [line.words[-1].text for line in lines[:-1]]
    if any(end[-1] in "-\u2010" and end[-2:-1].isalpha() for end in ends):
        return True
    left, right = min(ln.box[0] for ln in lines), max(ln.box[2] for ln in lines)
    return all(
        ln.box[0] < left + ln.height and ln.box[2] - left >= _FULL * (right - left)
        for ln in lines[:-1]
    )


def code_text(lines: Sequence[Line]) -> str:
    """The lines as they stand, with their indents, and an empty one where a line is free."""
    words = [word for line in lines for word in line.words]
    width = median((w.box[2] - w.box[0]) / len(w.text) for w in words)
    left = min(line.box[0] for line in lines)
    steps = [below.box[3] - above.box[3] for above, below in pairwise(lines)]
    usual = median(steps)
    text = ""
    for line, step in zip(lines, [0.0, *steps], strict=True):
        text += "\n" * (0 if not text else 2 if step > 1.6 * usual else 1)
        end = left
        for word in line.words:
            blanks = round((word.box[0] - end) / width) if width else 1
            text += " " * max(blanks, int(end > left)) + word.text
            end = word.box[2]
    return text
