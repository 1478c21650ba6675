"""A folder of links to chosen files: DataFusion reads one folder, or one file, as a table."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from blendfusion.places.folders import File


def link_files(files: Iterable[File], folder: Path, extension: str) -> None:
    """Fill ``folder`` with links to ``files``, in order, below folders of their partitions."""
    for number, file in enumerate(files):
        inner = folder.joinpath(*(f"{p.name}={p.written}" for p in file.partitions))
        inner.mkdir(parents=True, exist_ok=True)
        _link(os.path.realpath(file.url), inner / f"{number:06}{extension}")


def _link(target: str, place: Path) -> None:
    try:
        place.symlink_to(target)
    except OSError:  # a system where links need a permission
        try:
            os.link(target, place)
        except OSError:  # or another disk
            shutil.copyfile(target, place)
