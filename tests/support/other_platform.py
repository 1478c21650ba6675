"""Python without what Windows lacks: ``hide()`` removes it from this process, and a folder with this
module as ``sitecustomize`` from every process that finds it in PYTHONPATH."""

from __future__ import annotations

import builtins
import os
import select
import signal
import sys
import time
from contextlib import suppress
from types import ModuleType
from typing import Any

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "readline")
ATTRIBUTES: dict[ModuleType, tuple[str, ...]] = {
    os: (
        *(
            "fork",
            "register_at_fork",
            "sched_getaffinity",
            "sysconf",
            "geteuid",
            "getuid",
            "killpg",
        ),
        *(
            "setsid",
            "getpgid",
            "wait4",
            "mkfifo",
            "statvfs",
            "chown",
            "nice",
            "getloadavg",
        ),
    ),
    signal: (
        *("SIGHUP", "SIGALRM", "SIGPROF", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGQUIT", "SIGCHLD"),
        *("alarm", "setitimer", "ITIMER_REAL", "ITIMER_PROF", "pthread_sigmask", "sigwait"),
    ),
    select: ("poll", "epoll"),
    time: ("tzset", "clock_gettime"),
}

_NEEDED = ("SIGKILL",)
"""The standard library itself needs them here; its part for Windows does not."""


def hide() -> None:
    """Remove what Windows lacks: modules for the package's own code, and attributes for all."""
    import multiprocessing.connection  # the standard library itself is not what is tried
    import subprocess  # noqa: F401

    find = builtins.__import__

    def guarded(name: str, around: Any = None, *rest: Any, **named: Any) -> ModuleType:
        who = str((around or named.get("globals") or {}).get("__name__", ""))
        if name in MODULES and who.startswith("blendfusion"):
            raise ImportError(f"No module named '{name}'", name=name)
        return find(name, *([] if around is None else [around]), *rest, **named)

    builtins.__import__ = guarded
    for module, names in ATTRIBUTES.items():
        for name in set(names).difference(_NEEDED):
            with suppress(AttributeError):
                delattr(module, name)
    del multiprocessing


if __name__ == "sitecustomize" or sys.argv[0:1] == ["hide"]:
    hide()
