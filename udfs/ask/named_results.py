"""Stores of a session for what its queries keep by names, such as groups and entities."""

from __future__ import annotations

from typing import TypeVar, cast

T = TypeVar("T")


class NamedResults:
    """One store of each kind, made when it is first asked for."""

    def __init__(self) -> None:
        self._stores: dict[type, object] = {}

    def of(self, kind: type[T]) -> T:
        """The store of this kind."""
        if kind not in self._stores:
            self._stores[kind] = kind()
        return cast("T", self._stores[kind])
