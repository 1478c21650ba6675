"""The part of a session that compares recorded runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.replay.manifest import Manifest

    Run = Manifest | str | os.PathLike[str]


class Comparing(FrameSources):
    """A context that compares recorded runs."""

    def diff(self, before: Run, now: Run) -> Frame:
        """The rows in which the results of two recorded runs differ, as a frame that one can query.

        ``before`` and ``now`` are manifests, or the paths of their files. A row has ``change``:
        'added', 'removed', or 'changed' where both results have its key (the first column of
        distinct values); ``cause``: 'value' (a table), 'wording' (a text in a call), 'threshold' (a
        number of the query, or a promised accuracy, recall or precision), 'query', 'model',
        'option', or 'answer' where the model gave another one to the same question, and several
        with 'or' where the records do not tell them apart; the changed ``columns``; and the rows
        ``before`` and ``now`` as structs. Nothing is asked. Raises QueryError for a file that is no
        manifest.
        """
        from blendfusion.services.replay.differences import difference

        return self.new_table(difference(_manifest(before), _manifest(now)))


def _manifest(run: Run) -> Manifest:
    from blendfusion.services.replay.manifest import Manifest

    return run if isinstance(run, Manifest) else Manifest.load(run)
