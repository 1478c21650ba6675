"""Binds a session to its process: DataFusion's threads do not survive a fork.

A child that used them would wait for ever, so sessions and frames refuse there. Neither can be
pickled, since their state is in the memory of their process.
"""

from __future__ import annotations

import os
from typing import NoReturn

from blendfusion.errors import ProcessError

_first: int | None = None
"""The process in which the first session was opened; a forked child inherits the number."""


def this_process() -> int:
    """The number of this process, in which a session is opened. Raises ProcessError in a fork of a
    process that had one: DataFusion would not run here."""
    global _first
    if _first is None:
        _first = os.getpid()
    check_process(_first)
    return _first


def check_process(opened_in: int) -> None:
    """Raise ProcessError unless this is the process ``opened_in``."""
    if os.getpid() != opened_in:
        raise ProcessError(
            f"this process was forked from {opened_in}, which had opened a session: "
            "DataFusion's threads are there, not here",
            hint="Open sessions in the child only (bf.connect), or start processes by 'spawn' or "
            "'forkserver': multiprocessing.get_context('spawn').",
        )


def no_pickle(kind: str) -> NoReturn:
    """Say what to send instead of an object that lives in its process."""
    raise ProcessError(
        f"a {kind} cannot be pickled: its model and tables are in the memory of this process",
        hint="Send the names of model and files and open a session there (bf.connect); "
        "send results as Arrow tables (frame.to_arrow_table()).",
    )
