"""The plan of a frame, before it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blendfusion.language.opaque.nested_stages import StoredParts
    from blendfusion.language.opaque.opaque_tables import Leaf
    from blendfusion.planner.driver import Rewrite
    from blendfusion.planner.stages.split import StagedPlan
    from blendfusion.udfs.declare.call import Call


@dataclass(frozen=True, slots=True)
class PreparedFrame:
    """How a frame will run: ``staged`` by the planner, else plain, for a ``reason`` (if any)."""

    calls: tuple[Call, ...] = ()
    staged: StagedPlan | None = None
    rewrites: tuple[Rewrite, ...] = ()
    reason: str | None = None
    unfinished: bool = False
    """Whether the planner's rules had too little time, and left the staged plan as it was."""
    leaves: tuple[Leaf, ...] = ()
    """The opaque tables that the staged plan reads; their names exist while these are held."""
    fed: StoredParts | None = None
    """The stages whose rows the opaque tables read."""

    @property
    def shape(self) -> PreparedFrame:
        """A copy for display, which holds none of the tables that a run reads."""
        return replace(self, leaves=(), fed=None)
