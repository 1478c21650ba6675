"""The cells of a table that is given row by row, some of which span rows and columns."""

from __future__ import annotations

from blendfusion.services.documents.blocks import table_text

WIDEST = 1000
"""The columns that a cell may span, as in HTML."""


class CellGrid:
    """Rows of cells. Where a cell spans several places, its text stands in the first."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._at = 0
        self._covered: set[int] = set()
        """The columns of this row that a cell above spans,"""
        self._below: dict[int, int] = {}
        """and the rows below in which a column is spanned."""

    def begin_row(self) -> None:
        self._covered = set(self._below)
        self._below = {column: rows - 1 for column, rows in self._below.items() if rows > 1}
        self._rows.append([])

    def end_group(self) -> None:
        """No cell spans rows below."""
        self._below = {}

    def begin_cell(self, down: int = 1, across: int = 1) -> None:
        if not self._rows:
            self.begin_row()
        row = self._rows[-1]
        while len(row) in self._covered:
            row.append("")
        self._at = len(row)
        row.append("")
        self.widen(across)
        if down > 1:
            self._below.update(dict.fromkeys(range(self._at, len(row)), down - 1))

    def widen(self, across: int) -> None:
        """Let the current cell span ``across`` columns."""
        if self._rows:
            self._rows[-1] += [""] * min(across - 1, WIDEST)

    def add(self, text: str) -> bool:
        """Put a text into the cell that has begun, if there is one."""
        if not self._rows or not self._rows[-1]:
            return False
        row = self._rows[-1]
        row[self._at] = f"{row[self._at]} {text}".strip()
        return True

    @property
    def text(self) -> str:
        return table_text(self._rows)
