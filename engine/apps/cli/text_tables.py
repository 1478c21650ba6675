"""Tables as text: columns side by side, or, where they find no room, by pages of columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import pyarrow as pa
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from blendfusion.apps.page_writers import is_number, rows_of
from blendfusion.files.row_writers import text_of
from blendfusion.redaction import printable

GAP = 3
"""Characters between two columns."""
_READABLE = 12
"""The characters that a wide column has at least, before the table is shown in parts."""
_FEW = 10
"""Rows that are shown value below value where their columns find no room."""
_NULL = "NULL"

Cells = list[str | None]
"""A row as texts; None is NULL."""


def draw_table(table: pa.Table, console: Console, most: int | None) -> None:
    """Draw ``table``. Cells are cut at ``most`` characters, unless it is None."""
    names = [printable(name) for name in table.column_names]
    rows = [[_text(value, most) for value in row] for row in rows_of(table)]
    widths = _widths(names, rows)
    pages = list(_pages(widths, console.width))
    if len(pages) > 1 and len(rows) <= _FEW:
        _draw_records(names, rows, console)
        return
    numeric = [is_number(kind) for kind in table.schema.types]
    for page in pages:
        if len(pages) > 1:
            place = f"columns {page.start + 1}–{page.stop} of {len(names)}"
            console.rule(place, align="left", style="dim", characters="─")
        part = slice(page.start, page.stop)
        shown = _fit(widths[part], console.width)
        for line in _lines(names[part], [row[part] for row in rows], shown, numeric[part], console):
            console.file.write(line)


def _text(value: object, most: int | None) -> str | None:
    """Text without what a terminal obeys, in one line, cut at ``most`` characters."""
    if value is None:
        return None
    if isinstance(value, float):
        return f"{value:.6g}"
    written = repr(value) if isinstance(value, bytes) else text_of(value)
    shown = printable(" ".join(written.split()))
    return shown if most is None or len(shown) <= most else shown[: most - 1] + "…"


def _width(cell: str | None) -> int:
    if cell is None:
        return len(_NULL)
    return len(cell) if cell.isascii() else cell_len(cell)


def _widths(names: list[str], rows: list[Cells]) -> list[int]:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return [
        max([_width(name), *map(_width, cells)]) for name, cells in zip(names, columns, strict=True)
    ]


def _pages(widths: list[int], room: int) -> Iterator[range]:
    """The columns that stand side by side in ``room`` characters, each readable."""
    start, taken = 0, 0
    for place, width in enumerate(widths):
        needed = min(width, _READABLE) + GAP
        if place > start and taken + needed - GAP > room:
            yield range(start, place)
            start, taken = place, 0
        taken += needed
    yield range(start, len(widths))


def _fit(widths: list[int], room: int) -> list[int]:
    """The widths of columns in ``room`` characters: the widest give way first."""
    left = room - GAP * (len(widths) - 1)
    if sum(widths) <= left:
        return widths
    most = min(max(widths), left)
    while most > 1 and sum(min(width, most) for width in widths) > left:
        most -= 1
    return [min(width, most) for width in widths]


def _lines(
    names: list[str], rows: list[Cells], widths: list[int], numeric: list[bool], console: Console
) -> Iterator[str]:
    if not names:
        return
    dim = console.is_terminal and not console.is_dumb_terminal
    gap = " " * GAP
    yield from _row_lines(list(names), widths, numeric, dim=False)
    yield "─" * (sum(widths) + GAP * (len(widths) - 1)) + "\n"
    for cells in rows:
        if all(_width(cell) <= width for cell, width in zip(cells, widths, strict=True)):
            padded = map(_pad, cells, widths, numeric, [dim] * len(cells))
            yield gap.join(padded).rstrip() + "\n"
        else:
            yield from _row_lines(cells, widths, numeric, dim=dim)


def _row_lines(cells: Cells, widths: list[int], numeric: list[bool], *, dim: bool) -> Iterator[str]:
    """The lines of a row, of which a cell is broken between words."""
    parts = [_break_words(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for pieces in zip_longest(*parts, fillvalue=""):
        padded = map(_pad, pieces, widths, numeric, [dim] * len(pieces))
        yield (" " * GAP).join(padded).rstrip() + "\n"


def _break_words(cell: str | None, width: int) -> Cells:
    if cell is None or _width(cell) <= width:
        return [cell]
    lines = Text(cell).wrap(_BREAKER, width, overflow="fold")
    return [line.plain.rstrip() for line in lines]


_BREAKER = Console(width=1_000)


def _pad(cell: str | None, width: int, right: bool, dim: bool) -> str:
    space = " " * (width - _width(cell))
    text = (f"\x1b[2m{_NULL}\x1b[0m" if dim else _NULL) if cell is None else cell
    return space + text if right else text + space


def _draw_records(names: list[str], rows: list[Cells], console: Console) -> None:
    """Draw value below value."""
    dim = console.is_terminal and not console.is_dumb_terminal
    name_width = min(max(map(_width, names)), console.width // 2)
    room = max(1, console.width - name_width - GAP)
    for number, cells in enumerate(rows, 1):
        console.rule(f"row {number:,}", align="left", style="dim", characters="─")
        for name, cell in zip(names, cells, strict=True):
            short = name if _width(name) <= name_width else set_cell_size(name, name_width)
            pieces = _break_words(cell, room)
            widths = [name_width, max(map(_width, pieces))]
            for line in zip_longest([short], pieces, fillvalue=""):
                padded = map(_pad, line, widths, (False, False), (dim, dim))
                console.file.write((" " * GAP).join(padded).rstrip() + "\n")
