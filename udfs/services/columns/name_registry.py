"""Mappings of names to what the queries of a session keep, and files of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from blendfusion.errors import ArgumentError, close_matches

T = TypeVar("T")


class NameRegistry(Mapping[str, T], Generic[T]):
    """A mapping of names; ``del`` removes one, so that the next query builds it again."""

    noun = "things"
    """The noun of errors."""
    maker = ""
    """The call that keeps something, with ``{}`` for its name."""

    def __init__(self) -> None:
        self._kept: dict[str, T] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> T:
        if name not in self._kept:
            near = close_matches(name, self._kept)
            raise KeyError(f"the session has no {self.noun} called '{name}'. {near}".strip())
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __delitem__(self, name: str) -> None:
        with self._lock:
            self._of(name)
            del self._kept[name]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {self._size(self._kept[name]):,}" for name in self)
        return f"{type(self).__name__}({shown})"

    def save(self, name: str, path: str | os.PathLike[str]) -> None:
        """Write those called ``name`` to a JSON file. Raises ArgumentError, OSError."""
        held = self._to_json(self._of(name))
        Path(path).write_text(json.dumps(held, ensure_ascii=False, indent=1) + "\n", "utf-8")

    def load(self, name: str, path: str | os.PathLike[str]) -> T:
        """Keep as ``name`` what ``save`` wrote to a file, and return it. Raises ArgumentError,
        which names the file."""
        file = Path(path)
        try:
            found = self._from_json(json.loads(file.read_text("utf-8")))
        except OSError as problem:
            raise ArgumentError(f"cannot read '{file}': {problem.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ArgumentError(
                f"'{file}' holds no {self.noun}",
                hint=f"session.{self.noun}.save(name, path) writes such a file.",
            ) from None
        with self._lock:
            self._kept[name] = found
        return found

    def _of(self, name: str) -> T:
        if name not in self._kept:
            near = close_matches(name, self._kept)
            raise ArgumentError(
                f"the session has no {self.noun} called '{name}'",
                hint=near or f"{self.maker.format(name)} makes some.",
            )
        return self._kept[name]

    def _size(self, kept: T) -> int:
        raise NotImplementedError

    def _to_json(self, kept: T) -> dict[str, Any]:
        raise NotImplementedError

    def _from_json(self, held: dict[str, Any]) -> T:
        """Raises ValueError, TypeError, KeyError or AttributeError for what ``_to_json`` does not
        give."""
        raise NotImplementedError


def check_same(noun: str, name: str, parameters: Mapping[str, tuple[object, object]]) -> None:
    """Raises ArgumentError if a call describes the ``noun`` kept as ``name`` in another way.
    ``parameters``: the argument of the call and that of those kept; None: not given."""
    for parameter, (given, own) in parameters.items():
        if given is not None and given != own:
            how = (
                f"without {parameter}"
                if own is None
                else f"with {parameter} => {own!r}, not {given!r}"
            )
            raise ArgumentError(
                f"the {noun} '{name}' were made {how}",
                hint=f"Leave out {parameter}, choose another name, or forget them: "
                f"del session.{noun}['{name}'].",
            )


def texts_in(*held: object) -> list[str]:
    """The given texts. Raises ValueError for a value that is no text, or blank."""
    found = [text for text in held if isinstance(text, str) and text.strip()]
    if len(found) != len(held):
        raise ValueError
    return found
