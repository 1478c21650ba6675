"""The number of cores that this process and its container may use."""

from __future__ import annotations

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_OLD_QUOTA = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
_OLD_PERIOD = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def cores() -> int:
    """Cores that this process may use, at least one: threads beyond them only wait for each
    other."""
    if hasattr(os, "sched_getaffinity"):
        found = len(os.sched_getaffinity(0))
    else:
        found = os.cpu_count() or 1
    quota = _quota()
    return found if quota is None else max(1, min(found, quota))


def _quota() -> int | None:
    """Whole cores that a container's limit allows; None without a limit."""
    try:
        if _QUOTA.is_file():
            allowed, period = _QUOTA.read_text().split()
        else:
            allowed, period = _OLD_QUOTA.read_text().strip(), _OLD_PERIOD.read_text().strip()
        # "max" and -1 are no limit.
        return max(1, int(allowed) // int(period)) if allowed.isdigit() else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
