"""Cuts a page into columns and bands, in reading order.

The cuts are those of the recursive XY-cut (Nagy and Seth 1984), with one difference: a region is
first cut into bands of lines that share a gutter, so that a gap between paragraphs which happens to
go through both columns does not break the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from blendfusion.services.documents.blocks import union
from blendfusion.services.documents.words import (
    Line,
    Word,
    is_label,
    lengths_by_height,
    lines_of,
    median_height,
    typical_height,
)

_DEEPEST = 12
_SURE_LINES = 6
"""The minimum number of lines that a gap between columns spans."""
_HEIGHT = 10.0
"""The height of words where none tells it, in points."""
_WIDTH = 0.9
"""The least width of a gap between columns, in heights of the words around it."""
_VALUE_WORDS = 3
"""The most words of a value: an amount with its currency, a date."""
_Gap = tuple[float, float]


@dataclass(slots=True)
class Region:
    """Words of one column, or of one table with its cells."""

    words: list[Word]
    rows: list[list[str]] | None = None


def regions(words: Sequence[Word], depth: int = 0) -> list[Region]:
    """The regions of ``words``, in reading order."""
    if len(words) < 2 or depth > _DEEPEST:
        return [Region(list(words))] if words else []
    gutters = _gutters(words)
    if gutters:
        parts = _parts_around_table(words, gutters)
        if len(parts) > 1:
            return [region for part in parts for region in regions(part, depth + 1)]
        columns = _divide(words, gutters)
        rows = _table(columns)
        if rows is not None:
            return [Region(list(words), rows)]
        return [region for column in columns for region in regions(column, depth + 1)]
    strips = _strips(words)
    low = _least_gap(words)
    if all(end - start < low for strip in strips for start, end in _blanks(strip)):
        return [Region(list(words))]  # most pages
    bands = _bands(strips, typical_height(words) or _HEIGHT)
    if len(bands) == 1:
        return [Region(list(words))]
    return [
        region
        for band in bands
        for region in (regions(band, depth + 1) if _gutters(band) else [Region(band)])
    ]


def _gutters(words: Sequence[Word]) -> list[_Gap]:
    """The vertical strips without words, from top to bottom, that divide ``words``."""
    if not _open(words):
        return []
    height = typical_height(words) or _HEIGHT
    lines = len({round(word.middle / max(height, 1.0)) for word in words})
    if lines < 2:
        return []
    least = _WIDTH if lines >= 3 else 2.0
    gaps = _between_columns(_open(words, least), _strips(words))
    return [gap for gap in gaps if lines >= _SURE_LINES or _wide(words, gap, gaps)]


def _between_columns(gaps: Sequence[_Gap], strips: Sequence[Sequence[Word]]) -> list[_Gap]:
    """The gaps that have words on both sides at one height. One without, as between a paragraph and
    a title that is centred above it, has no columns beside it."""
    return [
        (start, end)
        for start, end in gaps
        if any(
            any(word.box[2] <= start + 0.01 for word in strip)
            and any(word.box[0] >= end - 0.01 for word in strip)
            for strip in strips
        )
    ]


def _wide(words: Sequence[Word], gap: _Gap, gaps: Sequence[_Gap]) -> bool:
    """Whether a gap is wider than those between words, which in a few justified lines may stand one
    below the other."""
    between = [
        right.box[0] - left.box[2]
        for line in lines_of(words)
        for left, right in pairwise(line.words)
        if not any(left.box[2] <= end and right.box[0] >= start for start, end in gaps)
    ]
    return len(between) < 2 or gap[1] - gap[0] >= 1.4 * median(between)


def _divide(words: Sequence[Word], gutters: Sequence[_Gap]) -> list[list[Word]]:
    """The columns between gutters, from left to right."""
    columns: list[list[Word]] = [[] for _ in range(len(gutters) + 1)]
    for word in words:
        columns[_column_of(word, gutters)].append(word)
    return columns


def _bands(strips: Sequence[list[Word]], height: float) -> list[list[Word]]:
    """Parts of a region from top to bottom: those with gutters, and those between them."""
    bands: list[_Band] = []
    for strip in strips:
        if not bands:
            bands.append(_Band([strip]))
            continue
        band = bands[-1]
        open_before, open_alone = _between_columns(band.gaps(), band.strips), _open(strip)
        if open_before and not _is_shared(band, open_before, open_alone, strip):
            loose = _loose_end(band.strips, height)
            bands.append(_Band([*loose, strip]))
        elif not open_before and open_alone:
            bands.append(_Band([strip]))
        else:
            band.add(strip)
    found = [[word for part in band.strips for word in part] for band in bands if band.strips]
    return _without_thin(found)


class _Band:
    """Strips one below the other, with the parts of the width that their words cover."""

    def __init__(self, strips: Sequence[list[Word]]) -> None:
        self.strips: list[list[Word]] = []
        self._covered: list[_Gap] = []
        self._lengths: Counter[float] = Counter()
        self._counted = 0
        """The strips whose heights are counted."""
        for strip in strips:
            self.add(strip)

    def add(self, strip: list[Word]) -> None:
        self.strips.append(strip)
        spans = sorted([*self._covered, *[(word.box[0], word.box[2]) for word in strip]])
        covered: list[_Gap] = []
        begin, reach = spans[0]
        for left, right in spans:
            if left > reach:
                covered.append((begin, reach))
                begin, reach = left, right
            elif right > reach:
                reach = right
        self._covered = [*covered, (begin, reach)]

    @property
    def height(self) -> float:
        for strip in self.strips[self._counted :]:
            self._lengths += lengths_by_height(strip)
        self._counted = len(self.strips)
        return median_height(self._lengths) or _HEIGHT

    def gaps(self) -> list[_Gap]:
        """The gaps between words that go through all strips."""
        if len(self._covered) == 1:
            return []
        least = _WIDTH * self.height
        gaps = [(before[1], after[0]) for before, after in pairwise(self._covered)]
        return [(start, end) for start, end in gaps if end - start >= least]


def _open(words: Sequence[Word], least: float = _WIDTH) -> list[_Gap]:
    """The gaps between words that go through all of ``words``, ``least`` heights wide."""
    gaps = _blanks(words)
    low = _least_gap(words)
    if all(end - start < low for start, end in gaps):
        return []
    width = least * (typical_height(words) or _HEIGHT)
    return [(start, end) for start, end in gaps if end - start >= width]


def _blanks(words: Sequence[Word]) -> list[_Gap]:
    """The gaps between words of any width, from left to right."""
    gaps: list[_Gap] = []
    spans = sorted([(word.box[0], word.box[2]) for word in words])
    reach = spans[0][1]
    for left, right in spans:
        if left > reach:
            gaps.append((reach, left))
            reach = right
        elif right > reach:
            reach = right
    return gaps


def _least_gap(words: Sequence[Word]) -> float:
    """No gap of ``words`` that is narrower is open, whatever height is typical of them."""
    return _WIDTH * min(_HEIGHT, min([word.height for word in words]))


def _is_shared(
    band: _Band, before: Sequence[_Gap], alone: Sequence[_Gap], strip: Sequence[Word]
) -> bool:
    """Whether a gutter of the lines above goes on through ``strip``, which may be on one side and
    has the gaps ``alone``."""
    height = band.height
    spare = 0.3 * height
    left = min(word.box[0] for word in strip)
    right = max(word.box[2] for word in strip)
    free = [right <= end - spare or left >= start + spare for start, end in before]
    matched = [
        any(min(end, high) - max(start, low) >= 0.6 * height for low, high in alone)
        for start, end in before
    ]
    if any(matched):
        # Below a paragraph, in whose blanks a gap may happen to stand, a table has gaps of its own.
        step = min(word.box[1] for word in strip) - max(word.box[3] for word in band.strips[-1])
        few = len(alone) <= 2 * len(before)
        return step <= 0.8 * height or (few and 2 * sum(matched) > len(before))
    # A line that a gutter of a table goes through is none of its rows, though it ends before the
    # next one.
    return (
        any(free)
        and bool(alone or all(free))
        and any(
            right <= start + 0.6 * (end - start) or left >= end - 0.6 * (end - start)
            for (start, end), is_free in zip(before, free, strict=True)
            if is_free
        )
    )


def _loose_end(band: list[list[Word]], height: float) -> list[list[Word]]:
    """Takes the last strip off ``band`` if it is a heading of what follows."""
    if len(band) < 2 or _open(band[-1]):
        return []
    above, last = band[-2], band[-1]
    gap = min(word.box[1] for word in last) - max(word.box[3] for word in above)
    if gap > 0.7 * height or typical_height(last) > 1.15 * height:
        return [band.pop()]
    return []


def _strips(words: Sequence[Word]) -> list[list[Word]]:
    """Words between horizontal lines that cross no word, from top to bottom."""
    strips: list[list[Word]] = []
    reach = float("-inf")
    for word in sorted(words, key=lambda word: word.box[1]):
        _, top, _, bottom = word.box
        # Boxes of neighbouring lines may touch: a tenth of the height does not count.
        if top >= reach - 0.15 * word.height:
            strips.append([])
        strips[-1].append(word)
        if bottom > reach:
            reach = bottom
    return strips


def _without_thin(bands: list[list[Word]]) -> list[list[Word]]:
    """Bands without gutters of their own are one with the neighbours that have none."""
    found: list[list[Word]] = []
    plain_before = False
    for band in bands:
        plain = not _gutters(band)
        if plain and plain_before:
            found[-1] += band
        else:
            found.append(band)
        plain_before = plain
    return found


def _table(columns: Sequence[Sequence[Word]]) -> list[list[str]] | None:
    """The cells, if columns are those of a table: their lines stand side by side and are short."""
    by_column = [lines_of(column) for column in columns]
    if any(word.rows is not None for column in columns for word in column):
        return None
    lines = [(line, at) for at, column in enumerate(by_column) for line in column]
    if max(map(len, by_column)) < 2:
        return None
    beside = sum(_has_neighbour(line, at, by_column) for line, at in lines) / len(lines)
    words = sum(_length(line) for line, _ in lines) / len(lines)
    if beside < 0.7 or all(is_label(line.words[0].text) for line, _ in lines):
        return None
    if _are_values(by_column):
        return _cells(by_column)
    filled = median(_filled_share(column) for column in by_column)
    short = words <= 2.5 or (len(columns) > 2 and words <= 4 and filled < 0.8)
    if not short and not (filled < 0.55 and words <= 4):
        return None
    return _cells(by_column)


def _are_values(columns: Sequence[Sequence[Line]]) -> bool:
    """Whether lines have values beside them, as in a ledger: each has one, and one column has at
    most a few words, which mostly are numbers. Numbers of lines are none."""
    if len({len(column) for column in columns}) > 1 or not all(
        _has_neighbour(line, at, columns) for at, column in enumerate(columns) for line in column
    ):
        return False
    if [line.text for line in columns[0]] == [str(n + 1) for n in range(len(columns[0]))]:
        return False
    return any(
        max(map(_length, column)) <= _VALUE_WORDS
        and sum(any(map(str.isdigit, line.text)) for line in column) >= 0.7 * len(column)
        for column in columns
    )


def _parts_around_table(words: Sequence[Word], gutters: Sequence[_Gap]) -> list[list[Word]]:
    """Above, in and below a table without rules, whose gutters go through titles and sentences that
    happen to be as short as its first column. One part where there are none."""
    lines = lines_of(words)
    filled = [{_column_of(word, gutters) for word in line.words} for line in lines]
    rows = [line for line, columns in zip(lines, filled, strict=True) if len(columns) > 1]
    if len(rows) < 2 or _table(_divide([w for row in rows for w in row.words], gutters)) is None:
        return [list(words)]
    body = _Column(
        [word for row in rows for word in row.words if _column_of(word, gutters) == 0],
        min(below.box[3] - above.box[3] for above, below in pairwise(rows)),
        median(row.height for row in rows),
    )
    inside = [len(columns) > 1 for columns in filled]
    first, last = inside.index(True), len(inside) - 1 - inside[::-1].index(True)
    for at in range(len(lines)):
        if not inside[at] and at > first:
            near = lines[at - 1] if inside[at - 1] else None
            inside[at] = filled[at] != {0} or (
                near is not None and body.holds(lines[at], near, at < last)
            )
    parts: list[list[Word]] = []
    for at, line in enumerate(lines):
        if at == 0 or inside[at] != inside[at - 1]:
            parts.append([])
        parts[-1] += line.words
    return parts


@dataclass(slots=True)
class _Column:
    """The first column of a table's rows, the least distance of rows, and their height."""

    words: list[Word]
    step: float
    height: float

    def holds(self, line: Line, above: Line, between: bool) -> bool:
        """Whether a line in this column alone goes on with a cell, or is a row ``between`` rows: it
        is no wider than a cell, and of the same size."""
        left, _, right, _ = union([word.box for word in self.words] or [line.box])
        near = line.box[3] - above.box[3] <= 1.3 * self.step or between
        alike = abs(line.height - self.height) <= 0.1 * self.height
        spare = 0.5 * self.height
        return near and alike and line.box[0] >= left - spare and line.box[2] <= right + spare


def _column_of(word: Word, gutters: Sequence[_Gap]) -> int:
    return sum(word.box[0] >= right - 0.01 for _, right in gutters)


def _length(line: Line) -> int:
    return len(line.text.split())


def _has_neighbour(line: Line, at: int, columns: Sequence[Sequence[Line]]) -> bool:
    middle = (line.box[1] + line.box[3]) / 2
    return any(
        abs((other.box[1] + other.box[3]) / 2 - middle) < 0.4 * line.height
        for place, column in enumerate(columns)
        if place != at
        for other in column
    )


def _filled_share(column: Sequence[Line]) -> float:
    """The part of the column's width that its typical line has."""
    left, _, right, _ = union([line.box for line in column])
    return median((line.box[2] - line.box[0]) / max(right - left, 1.0) for line in column)


def _cells(columns: Sequence[Sequence[Line]]) -> list[list[str]]:
    """The rows of a table without rules. A line without a first cell goes on with the row above,
    unless it has a number below another one, as a total has."""
    lines = lines_of([word for column in columns for line in column for word in line.words])
    edges = [min(line.box[0] for line in column) for column in columns]
    rows: list[list[str]] = []
    for line in lines:
        cells: list[list[str]] = [[] for _ in edges]
        for word in line.words:
            at = max(sum(word.box[0] >= edge - 0.5 for edge in edges) - 1, 0)
            cells[at].append(word.text)
        texts = [" ".join(cell) for cell in cells]
        goes_on = bool(rows) and not texts[0] and sum(map(bool, texts)) < max(2, len(texts) - 1)
        if goes_on and not any(map(_are_numbers, rows[-1], texts)):
            rows[-1] = [" ".join(filter(None, both)) for both in zip(rows[-1], texts, strict=True)]
        else:
            rows.append(texts)
    return rows


def _are_numbers(*texts: str) -> bool:
    """Whether texts are numbers, of which none goes on in another line; a currency may stand by."""
    return all(
        any(map(str.isdigit, text)) and sum(map(str.isalpha, text)) <= 3 and len(text.split()) <= 2
        for text in texts
    )
