"""The first steps of a forked process: it neither uses, closes nor frees what its parent holds."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """An object with locks, threads or connections that a forked process must not use."""

    def after_fork(self) -> None:
        """Begin anew, in the child."""
        ...


INHERITED: list[object] = []
"""Objects that belong to the parent: they are never freed here."""
_HOLDERS: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(holder: Forkable) -> None:
    """Call ``holder.after_fork`` in each forked process, as long as ``holder`` lives."""
    _HOLDERS.add(holder)


def _after_fork() -> None:
    for holder in list(_HOLDERS):
        holder.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
