"""Limits a call that ranks values to the ranks that a query wants."""

from __future__ import annotations

import json
from dataclasses import replace

from blendfusion.udfs.declare.arguments import sql_literal
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.call_registry import remember
from blendfusion.udfs.declare.kinds import ColumnQuestion


def with_ranks(call: Call, wanted: int) -> Call | None:
    """The call for the first ``wanted`` ranks, or for the last ones if it is negative; None for a
    call that does not rank, or says itself how many ranks it wants."""
    kind = call.ingredient.kind
    name = kind.ranks if isinstance(kind, ColumnQuestion) else ""
    literals = json.loads(call.literals) if name else {}
    if not name or literals[name] is not None:
        return None
    shown = {**dict(call.shown), name: sql_literal(wanted)}
    order = [p.name for p in call.ingredient.parameters if p.name in shown]
    return remember(
        replace(
            call,
            literals=json.dumps({**literals, name: wanted}),
            shown=tuple((own, shown[own]) for own in order),
        )
    )
