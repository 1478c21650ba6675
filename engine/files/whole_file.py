"""Writes files whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """The path to write to, beside ``file``: it takes the place of ``file`` at the end, and is
    removed after an exception. A pipe or a device has no place beside it, and is written to."""
    if file.exists() and not file.is_file():
        yield file
        return
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
