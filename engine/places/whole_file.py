"""Writes files whole or not at all."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """The path to write to, beside ``file``: it takes the place of ``file`` at the end, and is
    removed after an exception. A pipe or a device has no place beside it, and is written to.
    Several threads and processes may write one file: the last one wins."""
    if file.exists() and not file.is_file():
        yield file
        return
    _remove_leftovers(file)
    part = file.with_name(
        f".{file.name[:80]}.{os.getpid()}.{_machine()}{secrets.token_hex(4)}.part"
    )
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _machine() -> str:
    """A digest of this machine's name."""
    return sha256(platform.node().encode()).hexdigest()[:8]


def _remove_leftovers(file: Path) -> None:
    """Remove what writers of ``file`` on this machine left that were killed."""
    start = f".{file.name[:80]}."
    with suppress(OSError):
        for name in os.listdir(file.parent):
            pid, _, rest = name.removeprefix(start).partition(".")
            ours = name.startswith(start) and name.endswith(".part") and rest.startswith(_machine())
            if ours and pid.isdecimal() and not _runs(int(pid)):
                Path(file.parent, name).unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    """Whether there is a process of this number, or may be."""
    if os.name == "nt":  # there, a signal ends it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whatever was in its place. Raises OSError."""
    with replacing(file) as part:
        owned = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(owned, "wb") as stream:
            stream.write(content)


def hide(folder: Path) -> None:
    """Give everything in a folder the permissions of the folder itself, so that only users who may
    read the folder can read its files. What cannot be changed keeps its permissions."""
    allowed = folder.stat().st_mode & 0o777
    for place, folders, files in os.walk(folder):
        for name, bits in [
            *((f, allowed) for f in folders),
            *((f, allowed & 0o666) for f in files),
        ]:
            with suppress(OSError):
                Path(place, name).chmod(bits)
