"""The part of a frame that takes aggregates from samples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from blendfusion.errors import ArgumentError
from blendfusion.run.hooks import BaseFrame
from blendfusion.services.approximate.within import Within

if TYPE_CHECKING:
    from blendfusion.language.opaque.prepared_frame import PreparedFrame
    from blendfusion.services.approximate.estimates import EstimatedGroups


class Approximating(BaseFrame):
    """A frame whose counts, sums and averages may come from a sample of each group."""

    def approximately(self, within: Within) -> Self:
        """This frame with counts, sums and averages over answers from a sample of each group, as
        large as ``within`` needs; frames derived from it have the same.

        ``show`` and ``bounds`` give the bounds, EXPLAIN ANALYZE the samples. Other aggregates, and
        groups of few rows, ask about all rows. Raises ArgumentError for another type.
        """
        if not isinstance(within, Within):
            raise ArgumentError(
                f"approximate={within!r} says no accuracy", hint="Write bf.Within(0.02)."
            )
        made = self.with_budget(self.budget)
        made.within = within
        return made

    def bounds(self) -> pa.Table:
        """The bounds of the latest run: for each group and each aggregate that a sample gave, the
        keys of the group, the ``aggregate``, ``low``, ``value`` and ``high``, the rows that were
        ``asked`` about and the ``rows`` that could have been. No row before a run, or where all
        rows were asked about."""
        tables = [_bounds(own, names) for own, names in self._groups()]
        return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})

    def _with_samples(self, prepared: PreparedFrame, within: Any) -> PreparedFrame:
        """A plan with samples where they say something; the same one where they do not."""
        from blendfusion.services.approximate.plan import sampled_plan

        if prepared.staged is None or prepared.fed is not None:
            return prepared
        if not isinstance(within, Within):
            within = Within(float(within))
        return replace(prepared, staged=sampled_plan(prepared.staged, within))

    def _groups(self) -> list[tuple[EstimatedGroups, list[str]]]:
        """The groups with estimates, and the names of their columns."""
        from blendfusion.planner.explain.plan_text import names_of
        from blendfusion.services.approximate.estimates import EstimatedGroups

        staged = self.prepared.staged
        found: list[tuple[EstimatedGroups, list[str]]] = []
        names: dict[int, list[str]] = {}
        for stage in staged.stages if staged is not None else ():
            names[stage.number] = names_of(stage.block, names)
            own = staged.operators.get(stage.number) if staged is not None else None
            if isinstance(own, EstimatedGroups):
                found.append((own, names[stage.number]))
        return found

    def _bounds_text(self) -> str:
        """The bounds of the latest run, a line for each group and aggregate, and with which
        certainty groups were chosen."""
        lines = []
        for own, names in self._groups():
            lines += own.lines(names)
        return "\n".join(lines) or "All rows were asked about: the values are exact."


def _bounds(own: EstimatedGroups, names: list[str]) -> pa.Table:
    """The bounds of the groups of one aggregate."""
    if own.table is None:
        return pa.table({})
    n_keys = own.sample.need.n_keys
    parts = []
    for i, bounds in own.bounds.items():
        some = np.flatnonzero(own.rows[0] < own.rows[1])
        columns = {names[k]: own.table.column(k).take(pa.array(some)) for k in range(n_keys)}
        columns["aggregate"] = pa.array([names[i]] * len(some), pa.string())
        numbers = {"low": bounds.low, "value": bounds.value, "high": bounds.high}
        columns |= {name: pa.array(part[some]) for name, part in numbers.items()}
        columns |= {"asked": pa.array(own.rows[0][some]), "rows": pa.array(own.rows[1][some])}
        parts.append(pa.table(columns))
    return pa.concat_tables(parts) if parts else pa.table({})
