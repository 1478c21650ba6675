"""The sample of a question: values without answers that place the threshold of a yes."""

from __future__ import annotations

from collections.abc import Iterable

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import digests

MOST = 20
"""How many values of a sample count (docs/lab.md)."""


def sampled(rows: Iterable[Values]) -> tuple[tuple[str, ...], ...]:
    """The distinct rows of ``filled``, those ``MOST`` with the least digests in the order of
    digests: the same for any order of ``rows``.

    >>> sampled([("b",), (None,), ("a",), ("b",), (" ",)]) == sampled([("a",), ("b",)])
    True
    """
    distinct = list({*filled(rows)})
    by_digest = dict(zip(digests(distinct), distinct, strict=True))
    return tuple(by_digest[digest] for digest in sorted(by_digest)[:MOST])


def filled(rows: Iterable[Values]) -> list[tuple[str, ...]]:
    """The rows without a NULL or a blank text."""
    texts = ((row, tuple(v for v in row if v and v.strip())) for row in rows)
    return [text for row, text in texts if len(text) == len(row)]
