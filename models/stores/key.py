"""The cache key of an answer: a digest of everything that can change it, equal in every process.

What is digested is written out in full, with the length or the quotes that keep its parts apart; it
depends on no hash of Python's, no order of a dictionary and no ``repr``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import TypeAlias

from blendfusion.models.protocol.model import Values
from blendfusion.types import Task

KEY_VERSION = 1
"""A part of every digest. Raise it when the digested data, or the meaning of answers, changes."""
MODEL_BYTES = 4
TASK_BYTES = 4
VALUES_BYTES = 16
KEY_BYTES = MODEL_BYTES + TASK_BYTES + VALUES_BYTES

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


class Keys:
    """The keys of one model's answers to one task.

    A key begins with four bytes of the model and four of the task, so that answers which are read
    together lie together. The sixteen that follow are a digest of everything: those alone tell two
    answers apart.

    >>> keys = Keys("model", Task("llm_filter", "Is it red?"))
    >>> len(keys.of(("apple",))), keys.of(("apple",)) == keys.of(("apple", None))
    (24, False)
    """

    def __init__(self, fingerprint: str, task: Task) -> None:
        text = json.dumps([KEY_VERSION, fingerprint, noun_json(task)], sort_keys=True)
        self.prefix = model_prefix(fingerprint) + _digest(text, TASK_BYTES)
        self._begun = blake2b(_digest(text, 64), digest_size=VALUES_BYTES)

    def of(self, values: Values) -> bytes:
        """The key of one tuple of values."""
        digest = self._begun.copy()
        digest.update(_parts(values))
        return self.prefix + digest.digest()

    def of_each(self, values: Iterable[Values]) -> dict[bytes, Values]:
        """The values by their keys."""
        prefix, begun = self.prefix, self._begun
        found = {}
        for v in values:
            digest = begun.copy()
            digest.update(_parts(v))
            found[prefix + digest.digest()] = v
        return found


def model_prefix(fingerprint: str) -> bytes:
    """The beginning of the keys of all answers of a model."""
    return _digest(json.dumps([KEY_VERSION, fingerprint]), MODEL_BYTES)


def noun_json(noun: object) -> Json:
    """A noun as JSON: a dataclass with the name of every field that makes two of them differ.

    Raises TypeError for what has no form of its own there: a new kind of field needs a decision.

    >>> noun_json(Constraint("choice", options=("a",)))["options"]
    ['a']
    """
    if noun is None or isinstance(noun, str | bool | int | float):
        return noun
    if isinstance(noun, tuple):
        return [noun_json(part) for part in noun]
    if is_dataclass(noun) and not isinstance(noun, type):
        members = ((f, getattr(noun, f.name)) for f in fields(noun) if f.compare)
        return {
            f.name: noun_json(v)
            for f, v in members
            if not ("added" in f.metadata and v == f.default)
        }
    raise TypeError(f"{type(noun).__name__} has no canonical form")


def digests(values: Iterable[Values]) -> Iterator[bytes]:
    """A digest of ``VALUES_BYTES`` for each tuple of values, in order."""
    return (blake2b(_parts(v), digest_size=VALUES_BYTES).digest() for v in values)


def _parts(values: Values) -> bytes:
    """The values one behind the other, each with its length before it; NULL is no text."""
    encoded = b""
    for value in values:
        if value is None:
            encoded += b"n"
        else:
            # Text of Python's may hold half of a surrogate pair, which UTF-8 has no bytes for.
            text = value.encode("utf-8", "surrogatepass")
            encoded += b"%d:" % len(text) + text
    return encoded


def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode(), digest_size=size).digest()
