"""The methods that services add to frames, as one base of ``Frame``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.run.hooks import BaseFrame
from blendfusion.services import parts

if TYPE_CHECKING:
    from blendfusion.services.approximate.frame import Approximating
    from blendfusion.services.evaluate.frame import Measuring
    from blendfusion.services.independence.frame import Checking
    from blendfusion.services.replay.frame import Replaying

    class FrameMethods(Approximating, Checking, Measuring, Replaying):
        """The methods of all services."""

else:
    FrameMethods = type("FrameMethods", (*parts("frame"), BaseFrame), {})
