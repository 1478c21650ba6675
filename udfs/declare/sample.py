"""The sample of a question: values without answers that place the threshold of a yes."""

from __future__ import annotations

from collections.abc import Iterable

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import digests

MOST = 20
"""How many values of a sample count (benchmarks/lab.md)."""


def sample_rows(rows: Iterable[Values]) -> tuple[tuple[str, ...], ...]:
    """At most ``MOST`` distinct rows of ``filled_rows``: those with the least digests, sorted by
    digest, so that the order of ``rows`` changes nothing.

    >>> sample_rows([("b",), (None,), ("a",), ("b",), (" ",)]) == sample_rows([("a",), ("b",)])
    True
    """
    distinct = list({*filled_rows(rows)})
    by_digest = dict(zip(digests(distinct), distinct, strict=True))
    return tuple(by_digest[digest] for digest in sorted(by_digest)[:MOST])


def filled_rows(rows: Iterable[Values]) -> list[tuple[str, ...]]:
    """The rows without a NULL or a blank text."""
    texts = ((row, tuple(v for v in row if v and v.strip())) for row in rows)
    return [text for row, text in texts if len(text) == len(row)]
