"""The concrete models behind names of decision models, as they answered last: a file in the user's
cache folder. So stored answers are found again before the first reply names the model."""

from __future__ import annotations

import contextlib
import json
import os
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from blendfusion.models.protocol.python_packages import cache_folder

_LARGEST = 1 << 20


def version_of(url: str, name: str) -> str:
    """The model that answered last under this name; '' if none is known."""
    found = _read().get(_key(url, name))
    return found if isinstance(found, str) else ""


def keep_version(url: str, name: str, version: str) -> None:
    """Keep which model answered. A folder that cannot be written to is no error: the first reply
    says it again."""
    held = _read() | {_key(url, name): version}
    with contextlib.suppress(OSError):
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as made:
            json.dump(held, made)
        os.replace(made.name, file)


def _file() -> Path:
    return cache_folder() / "decision_models.json"


def _key(url: str, name: str) -> str:
    return sha256(f"{url}\n{name}".encode()).hexdigest()[:32]


def _read() -> dict[str, object]:
    try:
        with _file().open("rb") as file:
            found = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
