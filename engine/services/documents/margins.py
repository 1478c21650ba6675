"""Headers and footers: lines at the edges of a page that neighbouring pages repeat, but for numbers
that count with the page. A line whose like stands in the body of the page is none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from blendfusion.services.documents.words import Line, Word

_EDGE = 0.13
"""The part of a page's height that is its upper or lower edge."""
_MOST = 3
"""The lines of a header."""
_FARTHEST = 2.5
"""The heights of a line that the next line of a paragraph or a ledger is away, at most."""
_PAGE = re.compile(
    r"[-–—\s]*+((page|p\.|seite|s\.|página|pagina|blatt|стр\.)\s*+)?(#)(\s*+(of|/|von|de|sur|di)\s*+#)?[-–—\s]*+",
    re.IGNORECASE,
)
"""The shape of a page's number alone."""
_DIGITS = re.compile(r"\d+")
_ROMAN = re.compile(r"[-–—\s]*+(x{0,3})(ix|iv|v?i{0,3})[-–—\s]*+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Edge:
    """A line at the edge of a page: whether it is at the top, its text with a sign for each number,
    and the numbers."""

    top: bool
    shape: str
    numbers: tuple[int, ...]


def edges_of(lines: Sequence[Line], height: float) -> dict[Edge, list[Word]]:
    """The lines at the edges of a page that no other line of it is like."""
    shapes = [_shape(line.text) for line in lines]
    above = {at for at, line in enumerate(lines[:_MOST]) if line.box[3] < _EDGE * height}
    below = {
        at
        for at in range(max(len(lines) - _MOST, 0), len(lines))
        if at not in above and lines[at].box[1] > (1 - _EDGE) * height
    }
    found: dict[Edge, list[Word]] = {}
    for top, places, opposite in ((True, above, below), (False, below, above)):
        like = Counter(shape for at, (shape, _) in enumerate(shapes) if at not in opposite)
        for at in sorted(places):
            shape, numbers = shapes[at]
            if like[shape] == 1 and not (numbers and _is_attached(lines, at, 1 if top else -1)):
                found[Edge(top, shape, numbers)] = lines[at].words
    return found


def _is_attached(lines: Sequence[Line], at: int, step: int) -> bool:
    """Whether a line stands no farther from the next towards the body than lines of the body do."""
    if _PAGE.fullmatch(_shape(lines[at].text)[0]) or not 0 <= at + 2 * step < len(lines):
        return False
    line, near = lines[at], lines[at + step]
    steps = [below.box[3] - above.box[3] for above, below in pairwise(lines)]
    gap = abs(near.box[3] - line.box[3])
    most = min(1.1 * median(steps), _FARTHEST * line.height)
    return gap <= most and abs(line.height - near.height) < 0.15 * line.height


def margins(
    words: Sequence[Word],
    edges: Mapping[Edge, Sequence[Word]],
    number: int,
    others: Mapping[int, Collection[Edge]],
) -> tuple[list[Word], list[Word], list[Word]]:
    """The words of the header, of the body and of the footer of the page ``number`` with the
    ``edges``. ``others``: the edges of the pages around it, by their numbers."""
    header: list[Word] = []
    footer: list[Word] = []
    for edge, found in edges.items():
        if _is_repeated(edge, number, others) or _is_number(edge, number, others):
            (header if edge.top else footer).extend(found)
    gone = {id(word) for word in (*header, *footer)}
    body = [word for word in words if id(word) not in gone]
    return (header, body, footer) if body else ([], list(words), [])


def _is_repeated(edge: Edge, number: int, others: Mapping[int, Collection[Edge]]) -> bool:
    return any(
        _counts(edge.numbers, other.numbers, page - number)
        for page, edges in others.items()
        for other in edges
        if (other.top, other.shape) == (edge.top, edge.shape)
    )


def _counts(numbers: Iterable[int], others: Iterable[int], steps: int) -> bool:
    """Whether the numbers of a line ``steps`` pages on are equal, or have counted the pages."""
    return all(there - here in (0, steps) for here, there in zip(numbers, others, strict=True))


def _is_number(edge: Edge, number: int, others: Mapping[int, Collection[Edge]]) -> bool:
    """Whether a line is the number of its page, or of one of as many pages as there are."""
    found = _PAGE.fullmatch(edge.shape)
    if found is None:
        return False
    return found[1] is not None or found[4] is not None or edge.numbers[0] == number


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    text = text.strip()
    roman = _ROMAN.fullmatch(text)
    if roman and (roman[1] or roman[2]):
        return "#", (_roman(roman[1] + roman[2]),)
    numbers = tuple(int(found[:18]) for found in _DIGITS.findall(text))
    return _DIGITS.sub("#", text), numbers


def _roman(text: str) -> int:
    values = [{"i": 1, "v": 5, "x": 10}[letter] for letter in text.lower()]
    return sum(
        -value if any(later > value for later in values[at + 1 :]) else value
        for at, value in enumerate(values)
    )
