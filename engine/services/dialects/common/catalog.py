"""The facts of a session that a translation may use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from blendfusion.errors import BlendFusionError


def _nothing(query: str) -> pa.Schema | None:
    return None


def _no_problem(query: str) -> BlendFusionError | None:
    return None


def _no_value(query: str) -> object:
    return None


@dataclass(frozen=True)
class SessionFacts:
    """``schema`` gives the schema of a query that is written in the dialect; None if it has
    none."""

    ingredients: Collection[str] = ()
    schema: Callable[[str], pa.Schema | None] = _nothing
    problem: Callable[[str], BlendFusionError | None] = _no_problem
    """Why a query has no schema."""
    ours: Callable[[str], pa.Schema | None] = _nothing
    """The schema of a query that is written in our SQL; None if it has none."""
    first: Callable[[str], object] = _no_value
    """The first value of a query that asks no model; None if the query has no rows."""
    enums: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The columns with semantic equality, by table."""
    parameters: Sequence[object] | None = None
    """The values of ``?``, in order."""
