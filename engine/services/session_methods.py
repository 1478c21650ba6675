"""The methods that services add to sessions, as one base of ``Session``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.prepare.frame_sources import FrameSources
from blendfusion.services import parts

if TYPE_CHECKING:
    from blendfusion.services.ask.session import Asking
    from blendfusion.services.cluster.session import Clustering
    from blendfusion.services.dialects.session import Translating
    from blendfusion.services.documents.session import DocumentReading
    from blendfusion.services.evaluate.session import Evaluations
    from blendfusion.services.lakes.session import LakeReading
    from blendfusion.services.meanings.session import Meanings
    from blendfusion.services.replay.session import Comparing
    from blendfusion.services.scans.session import DatasetReading
    from blendfusion.services.search.session import Searching
    from blendfusion.services.sources.session import Attaching
    from blendfusion.services.usage.session import Accounting
    from blendfusion.services.views.session import ViewKeeping

    class SessionMethods(
        Accounting,
        Asking,
        Attaching,
        Clustering,
        Comparing,
        Translating,
        DatasetReading,
        DocumentReading,
        Evaluations,
        LakeReading,
        Meanings,
        Searching,
        ViewKeeping,
    ):
        """The methods of all services."""

else:
    SessionMethods = type("SessionMethods", (*parts("session"), FrameSources), {})
