"""The time that a process waits for a CPU."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_NANOSECONDS = 1e-9


def waited_seconds(process: int) -> float:
    """How long the threads of a process, which are ready to compute, have waited for a CPU by now,
    all together; 0 where the system does not tell. A process that is stopped, frozen, or waits for
    a disk is not ready."""
    waited = 0
    for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # a thread may end meanwhile
            waited += int(file.read_text().split()[1])
    return waited * _NANOSECONDS
