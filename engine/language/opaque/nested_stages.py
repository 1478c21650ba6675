"""Nested stages: parts of a query below plans that Substrait cannot carry.

A part is a list of stages whose last output is stored. Above it stands a leaf: a DataFusion plan
over the stored rows, which is created for each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.language.opaque.opaque_tables import Leaf, surviving
from blendfusion.planner.ir.builders import table_names
from blendfusion.planner.ir.nodes import Plan, Rel, StoredRows
from blendfusion.planner.ir.traversal import subplans, transform
from blendfusion.planner.stages.split import Stage, StagedPlan


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its stages, the columns of its stored rows, the table that represents them during
    planning, and the leaves that the stages read."""

    staged: StagedPlan
    schema: pa.Schema
    leaf: Leaf
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Above:
    """A leaf over parts. ``plan`` creates its plan over tables, given by name, one per part."""

    leaf: Leaf
    parts: tuple[Part, ...]
    plan: Callable[[Sequence[str]], DataFrame]


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The stages that a run must store for leaves, and the leaves that read them."""

    stored: Mapping[int, Part]
    """Parts by the number of the stage that produces their rows."""
    above: tuple[Above, ...] = ()

    @contextmanager
    def bind(self, tables: Mapping[str, str]) -> Iterator[None]:
        """Within this context, let the leaves whose parts are among ``tables`` (by their leaf's
        name) read those."""
        with ExitStack() as stack:
            for above in self.above:
                names = [part.leaf.name for part in above.parts]
                if all(name in tables for name in names):
                    view, _ = surviving(above.plan([tables[name] for name in names]))
                    stack.enter_context(above.leaf.bind(view))
            yield

    def stages_below(self, plan: Plan) -> list[int]:
        """The stages whose rows the leaves in ``plan`` read."""
        read = {
            table_names(rel)[-1]
            for rel in subplans(plan)
            if isinstance(rel, Rel) and rel.kind == "read" and table_names(rel)
        }
        parts = [p for a in self.above if a.leaf.name in read for p in a.parts]
        return [number for number, part in self.stored.items() if part in parts]


NOTHING = StoredParts({})


def chain(above: tuple[Above, ...], last: StagedPlan) -> tuple[StagedPlan, StoredParts]:
    """The stages of all parts and then of ``last``, with consecutive numbers."""
    stages: list[Stage] = []
    stored: dict[int, Part] = {}
    for part in {id(p): p for a in above for p in a.parts}.values():
        stages += _renumber(part.staged, len(stages))
        stored[stages[-1].number] = part
    stages += _renumber(last, len(stages))
    return StagedPlan(tuple(stages), last.names, frozenset(stored)), StoredParts(stored, above)


def _renumber(staged: StagedPlan, start: int) -> list[Stage]:
    def move(plan: Plan) -> Plan:
        return replace(plan, stage=plan.stage + start) if isinstance(plan, StoredRows) else plan

    return [
        Stage(
            stage.number + start,
            replace(stage.block, source=transform(stage.block.source, move)),
        )
        for stage in staged.stages
    ]
