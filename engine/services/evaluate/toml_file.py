"""Things that people review and commit, each in a TOML file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.places.whole_file import replacing

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class SavedAsToml(ABC):
    """Something that a TOML file holds."""

    @abstractmethod
    def to_toml(self) -> str:
        """The text of the file: equal things give equal texts."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all. Raises OSError."""
        with replacing(Path(path)) as part:
            part.write_text(self.to_toml(), "utf-8")


def check_name(name: str, kind: str) -> None:
    """Raise ArgumentError for a name that is no plain word; ``kind``: of what it is a name."""
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            f"{name!r} is no name of a {kind}", hint="Letters, digits and underscores."
        )


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a file. Raises ArgumentError, which names it."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as problem:
        raise ArgumentError(f"cannot read '{file}': {problem.strerror}") from None
    except ValueError as problem:
        raise ArgumentError(f"'{file}' cannot be read: {problem}") from None
    except RecursionError:
        raise ArgumentError(f"'{file}' is nested too deeply") from None


def toml_text(text: str) -> str:
    """A basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def with_measured(lines: list[str], measured: Mapping[str, float]) -> str:
    """The text of a file with the table ``measured`` at its end, if there are figures."""
    figures = [f"{name} = {value!r}" for name, value in measured.items()]
    return "\n".join([*lines, *(["", "[measured]", *figures] if figures else [])]) + "\n"


def are_figures(measured: object) -> bool:
    """Whether this is a table of numbers."""
    return isinstance(measured, dict) and all(
        isinstance(figure, int | float) for figure in measured.values()
    )
