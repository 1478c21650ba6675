"""The part of a frame that records runs and compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.run.hooks import BaseFrame

if TYPE_CHECKING:
    from blendfusion.services.replay.changes import Change
    from blendfusion.services.replay.manifest import Manifest
    from blendfusion.services.replay.row_changes import RowChanges


class Replaying(BaseFrame):
    """A frame whose runs can be recorded."""

    def manifest(self) -> Manifest:
        """Run this frame, and record its query, options, versions, models, inputs, answers and
        result: ``save`` writes them, ``blendfusion replay`` repeats the run without a model.

        Values that earlier runs asked are not asked again. Raises QueryError for a frame with
        parameters, and for one that reads more than registered tables (docs/reproduce.md).
        """
        from blendfusion.services.replay.record import record

        return record(self)

    def changes(self, manifest: Manifest) -> tuple[list[Change], RowChanges]:
        """The differences from a recorded run: of inputs, options, models and versions, and of the
        rows of the result. Runs this frame; only values without a stored answer are asked."""
        from blendfusion.services.replay.compare import compare

        return compare(self, manifest)
