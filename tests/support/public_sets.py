"""Where the open data sets are that some tests and benchmarks measure on."""

from __future__ import annotations

import os
from pathlib import Path

BESIDE = Path(__file__).parents[3] / "shared" / "data"
"""Where a checkout has them: in a folder ``shared`` beside the repository."""


def datasets() -> Path | None:
    """The folder that BLENDFUSION_DATA names, else ``BESIDE``; None if there is none."""
    named = os.environ.get("BLENDFUSION_DATA")
    folder = Path(named) if named else BESIDE
    return folder if folder.is_dir() else None
