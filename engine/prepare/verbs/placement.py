"""Puts a method that is made elsewhere in the place of a function, for its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_place_of(method: T) -> Callable[[Callable[..., None]], T]:
    """Puts ``method`` in the place of a function. Editors take the type of what a class assigns
    from the class that it extends, and that of a decorated function from its decorator."""

    def replace(function: Callable[..., None]) -> T:
        return method

    return replace
