"""Tells how files were read, where something of them was left out or put together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from blendfusion.errors import FileWarning, level_of_caller

_SHOWN = 3


def note(text: str) -> None:
    """Warn once where a file is read: on the command line, a line on standard error."""
    warnings.warn(text, FileWarning, stacklevel=level_of_caller())


def quote_first(names: Sequence[str]) -> str:
    """The first names of many, in quotes."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + more


def note_columns(
    place: str, files: Sequence[tuple[str, Sequence[str]]], key_of: Callable[[str], str]
) -> None:
    """Warn of columns that some files of a table lack; each file is given by its name and the names
    of its columns."""
    columns: dict[str, str] = {}
    for _, names in files:
        for name in names:
            columns.setdefault(key_of(name), name)
    lacking: dict[tuple[str, ...], list[str]] = {}
    for file, names in files:
        own = set(map(key_of, names))
        missing = tuple(name for key, name in columns.items() if key not in own)
        if missing:
            lacking.setdefault(missing, []).append(file.rpartition("/")[2])
    if lacking:
        which = "; ".join(
            f"{quote_first(missing)} not in {quote_first(f)}" for missing, f in lacking.items()
        )
        note(
            f"'{place}': its files are put together by the names of their columns, with NULL for {which}"
        )
