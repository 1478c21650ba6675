"""Plans deeper than DataFusion reads, as views upon views.

DataFusion decodes Substrait with a limit of 100 nested messages: some twenty-five relations above
each other. Deeper parts are read first, and the rest refers to them as views, which DataFusion
inlines; so its optimizer sees one plan again, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from datafusion import DataFrame, SessionContext

from blendfusion.datafusion.substrait_io import batches_of, frame_of, relation_of
from blendfusion.planner.ir.nodes import Plan, Rel, Stored
from blendfusion.planner.substrait.write import write

_MOST_RELATIONS = 16
"""Above each other in one message, two levels each; the rest is for expressions."""


def shallow(plan: Plan, view: Callable[[Plan], Stored]) -> Plan:
    """``plan`` with ``view`` of each part that is as deep as may be in place of that part."""
    return _cut(plan, view)[0]


def _cut(plan: Plan, view: Callable[[Plan], Stored]) -> tuple[Plan, int]:
    """(the plan, the number of relations above each other in it)"""
    if not isinstance(plan, Rel):
        return plan, 1
    below = [_cut(p, view) for p in plan.inputs]
    inputs = tuple(view(p) if depth >= _MOST_RELATIONS else p for p, depth in below)
    depth = 1 + max((d for _, d in below if d < _MOST_RELATIONS), default=1)
    same = all(a is b for a, b in zip(inputs, plan.inputs, strict=True))
    return (plan if same else plan.with_inputs(*inputs)), depth


def register_view(
    context: SessionContext, name: str, plan: Plan, stored: dict[int, bytes]
) -> bytes:
    """Make ``plan`` a view called ``name``, and give the bytes of the relation that reads it.

    ``stored`` are the relations of the stages that it reads. Raises what DataFusion raises.
    """
    schema = frame_of(context, write(plan, stored)).schema()
    frame = frame_of(context, write(plan, stored, tuple(_names(schema))))
    # The encoder would write out a view; it is shown an empty table in its place.
    context.register_record_batches(name, [batches_of(frame.schema().empty_table())])
    relation = relation_of(context, name)
    context.deregister_table(name)
    SessionContext.register_view(context, name, DataFrame(frame.df))
    return relation


def _names(schema: pa.Schema) -> Iterator[str]:
    """A name of its own for each column; and those of the fields inside, as Substrait wants
    them."""
    for i, field in enumerate(schema):
        yield str(i)
        yield from _inner_names(field.type)


def _inner_names(kind: pa.DataType) -> Iterator[str]:
    for i in range(kind.num_fields):
        field = kind.field(i)
        if pa.types.is_struct(kind):
            yield field.name
        yield from _inner_names(field.type)
