"""Stores of answers that machines share: PostgreSQL, folders, object stores."""

from __future__ import annotations

from blendfusion.models.stores.memory import AnswerStore


def _postgres(address: str) -> AnswerStore:
    from blendfusion.models.services.shared_stores.postgres import PostgresStore

    return PostgresStore(address)


def _segments(address: str) -> AnswerStore:
    from blendfusion.models.services.shared_stores.segments import SegmentStore

    return SegmentStore(address)


STORES = {"postgresql": _postgres, "postgres": _postgres, "*": _segments}
"""By the schemes of their addresses; ``*``: of any other."""
