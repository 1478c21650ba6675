"""Results to files and screens, for the command."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Literal, get_args

import pyarrow as pa
from rich.console import Console

import blendfusion as bf
from blendfusion.apps.cli.screens import SCREEN_ROWS, Rows, first_screen, reporting, tables_of
from blendfusion.apps.cli.text_tables import GAP, draw_table
from blendfusion.apps.page_writers import WRITERS
from blendfusion.errors import QueryError
from blendfusion.files.formats import module_for
from blendfusion.files.row_writers import flat
from blendfusion.places.whole_file import replacing
from blendfusion.redaction import printable
from blendfusion.run.observe.progress import count_noun

Format = Literal[
    "table", "csv", "tsv", "json", "markdown", "html", "line", "arrow", "parquet", "xlsx"
]
FORMATS: tuple[Format, ...] = get_args(Format)

_CELL_CHARACTERS = 60
"""The most characters of a cell, unless a screen has room for more."""
_PIPE_WIDTH = 160
"""Characters a line where there is no terminal to ask."""
_FILE_WIDTH = 100_000
"""Characters a line in a file: no line is broken."""

_FORMAT_OF: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".ndjson": "json",
    ".jsonl": "json",
    ".md": "markdown",
    ".html": "html",
    ".arrow": "arrow",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".txt": "table",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_COMPRESSED: frozenset[Format] = frozenset({"csv", "tsv", "json"})
_NEEDS_FILE: frozenset[Format] = frozenset({"arrow", "parquet", "xlsx"})


def named_format(name: str) -> str:
    """A format by its name, or by the ending of its files: ``jsonl`` is json."""
    return _FORMAT_OF.get(f".{name}", name)


def format_for(output: Path | None) -> Format:
    """The format that the name of the output file asks for, as o.csv or o.csv.gz; a table for
    screens, and tab-separated values for a pipe.

    Raises QueryError for an extension that no format has.
    """
    if output is None:
        return "tsv" if is_pipe(sys.stdout) else "table"
    compression = _compression(output)
    plain = output if compression is None else output.with_suffix("")
    style = _FORMAT_OF.get(plain.suffix.lower())
    if style is None or (compression and style not in _COMPRESSED):
        extension = "".join(output.suffixes[-2:] if compression else output.suffixes[-1:])
        raise QueryError(
            f"--output {output}: how to write '{extension or output.name}'?",
            hint=f"The extensions known are {', '.join(_FORMAT_OF)}; --format says it, too. "
            f"Text can be compressed: .csv.gz, .jsonl.zst.",
        )
    return style


def _compression(output: Path) -> str | None:
    return _COMPRESSIONS.get(output.suffix.lower())


def check_output(style: Format, output: Path | None) -> None:
    """Raise QueryError if nothing in this format can be written there, before anything is asked."""
    if output is None:
        if style in _NEEDS_FILE:
            raise QueryError(f"{style} needs a file", hint="Name one with --output FILE.")
    elif output.is_dir() or not output.parent.is_dir():
        raise QueryError(f"cannot write '{output}': no file can be there", hint="Name a file.")
    elif _compression(output) and style not in _COMPRESSED:
        raise QueryError(
            f"{style} is not compressed as '{output.suffix}'", hint=f"Name it {output.stem}."
        )


def write(
    rows: Rows,
    style: Format,
    output: Path | None,
    *,
    full_cells: bool = False,
    most_rows: int = SCREEN_ROWS,
) -> int:
    """Write ``rows`` to the file ``output``, or to standard output if it is None; returns their
    number.

    The rows of a frame are written as they come, except spreadsheets and tables of a file. A file
    is written whole or not at all. A table on a screen has its first ``most_rows`` rows (0: all),
    and says how many follow. ``full_cells`` shows the whole text of each cell of a table that is
    drawn; files have it anyway. Raises QueryError if the file cannot be written, and the errors of
    the frame."""
    check_output(style, output)
    if output is None:
        return _print(rows, style, full_cells, most_rows)
    try:
        with replacing(output) as part:
            return _write_file(rows, style, part, _compression(output))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise QueryError(f"cannot write '{output}': {error.strerror or error}") from error


def page_of(table: pa.Table, *, full_cells: bool = False, last: str | None = None) -> str:
    """The text that shows ``table`` on a terminal. ``last`` replaces the number of rows in the line
    below it; "" leaves that line out."""
    text = io.StringIO()
    width = shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns
    _draw(table, text, full_cells, width)
    if last != "" and not is_plan(table):
        text.write(f"{last or count_noun(len(table), 'row')}\n")
    return text.getvalue()


def _print(rows: Rows, style: Format, full_cells: bool, most_rows: int) -> int:
    if style not in WRITERS or (style == "tsv" and is_plan(rows)):
        return _show(rows, full_cells, 0 if is_pipe(sys.stdout) else most_rows)
    if sys.stdout.isatty():
        rows = _whole(rows)  # first, since the line of progress is on the same screen
    sys.stdout.flush()
    if not isinstance(rows, bf.Frame) or _is_file(sys.stdout):
        return _write_rows(rows, style, sys.stdout.buffer)
    # What reads the pipe may draw on the screen, as a pager does: the line ends with the first row.
    with reporting(rows) as reporter:
        return _write_rows(rows, style, sys.stdout.buffer, begin=reporter.close)


def _show(rows: Rows, full_cells: bool, most_rows: int) -> int:
    def draw(part: pa.Table) -> None:
        _draw(part, sys.stdout, full_cells)
        sys.stdout.flush()

    if is_plan(rows):
        draw(_whole(rows))
        return 0
    screens = first_screen(rows, most_rows, draw)
    print(screens.following("--rows 0 shows all, --output FILE keeps them"))
    return len(screens.held)


def is_pipe(stream: IO[str]) -> bool:
    """Whether another program or a file takes what is written: nothing is drawn for it. A stream of
    this process is none."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return not stream.isatty() and not stat.S_ISCHR(mode)


def _is_file(stream: IO[str]) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # a stream of this process only
        return False


def _whole(rows: Rows) -> pa.Table:
    return rows.to_arrow_table() if isinstance(rows, bf.Frame) else rows


def _write_rows(
    rows: Rows, style: Format, file: IO[bytes], *, begin: Callable[[], None] | None = None
) -> int:
    """Write ``rows`` and return their number; ``begin`` is called before the first."""
    count = 0

    def pass_on(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        nonlocal count
        for table in tables:
            if begin is not None and not count:
                begin()
            count += len(table)
            yield table
            if begin is not None:
                file.flush()

    with closing(tables_of(rows)) as tables:
        WRITERS[style](pass_on(tables), file)
    return count


def _write_file(rows: Rows, style: Format, file: Path, compression: str | None) -> int:
    if style in WRITERS:
        with _open(file, compression) as sink:
            return _write_rows(rows, style, sink)
    table = _whole(rows)
    if style == "xlsx":
        module_for("xlsx").write_sheet(flat(table), file)
    else:
        with file.open("w", encoding="utf-8", newline="") as text:
            _draw(table, text, full_cells=True, screen_width=_FILE_WIDTH)
            if not is_plan(table):
                text.write(count_noun(len(table), "row") + "\n")
    return len(table)


def _open(file: Path, compression: str | None) -> IO[bytes]:
    if compression is None:
        return file.open("wb")
    compressed: IO[bytes] = pa.CompressedOutputStream(str(file), compression)
    return compressed


def is_plan(rows: Rows) -> bool:
    """Whether the rows are those of EXPLAIN, whose lines are a tree."""
    names = rows.columns if isinstance(rows, bf.Frame) else rows.column_names
    return names in (["plan"], ["plan_type", "plan"])


def _draw(
    table: pa.Table, file: IO[str], full_cells: bool, screen_width: int | None = None
) -> None:
    """``screen_width``: the characters of a line of the screen that shows ``file``."""
    if is_plan(table):
        _write_plan(table, file)
        return
    width = screen_width or (None if file.isatty() else _PIPE_WIDTH)
    console = _Console(file=file, width=width, highlight=False)
    most: int | None = None
    if not full_cells:
        room = console.width // max(1, table.num_columns) - GAP
        most = max(_CELL_CHARACTERS, room if file.isatty() or screen_width else 0)
    draw_table(table, console, most)


def _write_plan(table: pa.Table, file: IO[str]) -> None:
    """Writes the rows of EXPLAIN unchanged: their lines are a tree."""
    for row in table.to_pylist():
        kind = row.get("plan_type")
        file.write((f"{kind}:\n" if kind else "") + printable(row["plan"].rstrip("\n")) + "\n")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves the error to the command, which ends quietly."""
        raise
