"""Tables that are drawn: cells between horizontal and vertical rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from blendfusion.services.documents.blocks import Box, union
from blendfusion.services.documents.joined_lines import join_lines
from blendfusion.services.documents.words import Word, lines_of

_NEAR = 2.5
_MOST_RULES = 4000


def with_tables(
    words: Sequence[Word], rules: Sequence[Box], known: Collection[str] = ()
) -> list[Word]:
    """``words``, those of each drawn table as one. ``rules`` are lines, as thin boxes, and the
    frames of rectangles; ``known`` has the words with a hyphen."""
    rest = list(words)
    tables: list[Word] = []
    for group in _connect(rules[:_MOST_RULES]):
        across = _places([rule[1] for rule in group if _is_across(rule)])
        down = _places([rule[0] for rule in group if _is_down(rule)])
        if len(across) < 3 or len(down) < 3:
            continue
        box = union(list(group))
        inside = [word for word in rest if _is_inside(word, box)]
        if len(inside) < 2:
            continue
        gone = {id(word) for word in inside}
        rest = [word for word in rest if id(word) not in gone]
        tables.append(Word("", box, rows=_cells(inside, across, down, known)))
    return rest + tables


def sides(box: Box) -> list[Box]:
    """The rules that a drawn rectangle is or has: itself where it is thin, else its four sides."""
    left, top, right, bottom = box
    if right - left < _NEAR or bottom - top < _NEAR:
        return [box]
    return [
        (left, top, right, top),
        (left, bottom, right, bottom),
        (left, top, left, bottom),
        (right, top, right, bottom),
    ]


def _is_across(rule: Box) -> bool:
    return rule[3] - rule[1] < _NEAR <= rule[2] - rule[0]


def _is_down(rule: Box) -> bool:
    return rule[2] - rule[0] < _NEAR <= rule[3] - rule[1]


def _connect(rules: Sequence[Box]) -> list[list[Box]]:
    """Rules in groups of those that touch."""
    groups: list[tuple[Box, list[Box]]] = []
    for rule in sorted(rules, key=lambda rule: (rule[1], rule[0])):
        touching = [group for group in groups if _touch(group[0], rule)]
        members = [rule, *(other for group in touching for other in group[1])]
        kept = {id(group[1]) for group in touching}
        groups = [group for group in groups if id(group[1]) not in kept]
        groups.append((union([rule, *(group[0] for group in touching)]), members))
    return [members for _, members in groups]


def _touch(one: Box, other: Box) -> bool:
    return (
        one[0] - _NEAR <= other[2]
        and other[0] - _NEAR <= one[2]
        and one[1] - _NEAR <= other[3]
        and other[1] - _NEAR <= one[3]
    )


def _places(values: Sequence[float]) -> list[float]:
    """Different places, ascending."""
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > _NEAR:
            found.append(value)
    return found


def _is_inside(word: Word, box: Box) -> bool:
    across = (word.box[0] + word.box[2]) / 2
    return box[0] - _NEAR <= across <= box[2] + _NEAR and box[1] <= word.middle <= box[3]


def _cells(
    words: Sequence[Word], across: Sequence[float], down: Sequence[float], known: Collection[str]
) -> list[list[str]]:
    cells: list[list[list[Word]]] = [[[] for _ in down[1:]] for _ in across[1:]]
    for word in words:
        row = _between(word.middle, across)
        column = _between((word.box[0] + word.box[2]) / 2, down)
        cells[row][column].append(word)
    return [
        [join_lines([line.text for line in lines_of(cell)], known) for cell in row] for row in cells
    ]


def _between(value: float, places: Sequence[float]) -> int:
    return min(max(sum(value >= place for place in places) - 1, 0), len(places) - 2)
