"""Stores that outlive a process, of every kind, for tests that hold for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_server import new_database

from blendfusion.models.stores.memory import AnswerStore
from blendfusion.models.stores.store_names import store_for

KINDS = (
    pytest.param("file", id="file"),
    pytest.param("segments", id="segments"),
    pytest.param("postgres", id="postgres", marks=pytest.mark.xdist_group("postgres")),
)
TIMED_KINDS = (
    "file",
    pytest.param("segments", marks=pytest.mark.slow),
    pytest.param("postgres", marks=[pytest.mark.slow, pytest.mark.xdist_group("postgres")]),
)
"""For tests that take long: `make check` runs them on files only."""


def place(kind: str, folder: Path) -> str:
    """A new place for answers, as ``connect(cache=…)`` takes it."""
    if kind == "postgres":
        return new_database()
    if kind == "segments":
        return (folder / "segments").as_uri()
    return str(folder / "folder" / "answers.sqlite")


def opened(place: str) -> AnswerStore:
    """A store there."""
    return store_for(place, 1024)
