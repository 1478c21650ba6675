"""The part of a frame that checks the independence of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.run.hooks import BaseFrame

if TYPE_CHECKING:
    from blendfusion.services.independence.check import Independence


class Checking(BaseFrame):
    """A frame whose answers can be asked again in other company."""

    def check_independence(self, k: int = 20, *, seed: int = 0) -> Independence:
        """Run this frame, ask ``k`` values of each of its questions again, alone and in other
        company, and compare the answers and their probabilities.

        The company of a decision model is the other questions of one request; of any other model,
        the other values of a batch. The session's first model is asked, whatever is stored, and its
        budget counts. ``seed`` chooses the values. Raises ArgumentError for ``k`` below 1, and
        QueryError if the run asked nothing that can be asked again.
        """
        from blendfusion.services.independence.check import check_independence

        return check_independence(self, k, seed)
