"""Tells kinds of Arrow types apart, whatever their layout, and finds names that repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

types = pa.types


def is_text(kind: pa.DataType) -> bool:
    """A type of texts.

    >>> is_text(pa.large_string()), is_text(pa.binary())
    (True, False)
    """
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """A type of bytes of any length."""
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """A type of lists of any length."""
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind))


def lists_bytes(kind: pa.DataType) -> bool:
    """A type of lists of bytes, or of lists of such."""
    while is_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
        if is_bytes(kind):
            return True
    return False


def first_repeat(names: Iterable[str]) -> str | None:
    """The first name that stands more than once among ``names``; None if there is none.

    >>> first_repeat(["a", "b", "a"]), first_repeat(["a", "A"])
    ('a', None)
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)
