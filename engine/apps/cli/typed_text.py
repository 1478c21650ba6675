"""The place of a mistake in what a person types, and the editor of their choice."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.cells import cell_len

from blendfusion.errors import BlendFusionError, ExecutionError, QueryError
from blendfusion.redaction import printable

_AROUND = 60
"""The most characters that are shown before and behind the mistake."""


@contextmanager
def pointed_at(text: str) -> Iterator[None]:
    """Give an error within this context the lines that point at its place in ``text``."""
    try:
        yield
    except BlendFusionError as error:
        span = error.span if isinstance(error, QueryError | ExecutionError) else None
        error.excerpt = "" if span is None else excerpt(text, *span)
        raise


def excerpt(text: str, start: int, stop: int) -> str:
    """The line that holds the characters from ``start`` to ``stop``, and carets below them.

    >>> print(excerpt("SELECT prodcut FROM t", 7, 14))
      SELECT prodcut FROM t
             ^^^^^^^
    """
    if not 0 <= start < len(text):
        return ""
    first = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    stop = max(start + 1, min(stop, end))
    left, right = max(first, start - _AROUND), min(end, stop + _AROUND)
    before = ("…" if left > first else "") + _flat(text[left:start]).lstrip()
    line = before + _flat(text[start:right]) + ("…" if right < end else "")
    return f"  {line}\n  {' ' * cell_len(before)}{'^' * max(1, cell_len(_flat(text[start:stop])))}"


def _flat(text: str) -> str:
    return printable(text.replace("\t", " ").replace("\r", " "))


def edit_text(text: str) -> str:
    """``text`` as the user leaves it in $VISUAL or $EDITOR, else in vi. Raises QueryError if the
    editor cannot be run, or fails."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "query.sql")
        file.write_text(f"{text}\n" if text else "", "utf-8")
        try:
            status = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
        except (OSError, ValueError) as problem:
            raise QueryError(
                f"cannot run the editor {command!r}: {problem}",
                hint="Name one in the variable EDITOR.",
            ) from problem
        if status:
            raise QueryError(f"the editor {command!r} ended with status {status}")
        return file.read_text("utf-8", "replace").rstrip()
