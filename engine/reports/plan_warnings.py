"""The warning that a type switches planning off."""

from __future__ import annotations

import re
import warnings

from blendfusion.errors import PlanWarning
from blendfusion.reports.trace import level_of_caller

_OF_TYPES = re.compile(r"\b(?<!node of )(type|literal|decimals)\b")


def warn_of_type(reason: str | None, known: set[str]) -> None:
    """Warn once for each ``reason`` that names a type or a literal; ``known`` holds the earlier
    ones."""
    if reason is not None and _OF_TYPES.search(reason) and reason not in known:
        known.add(reason)
        warnings.warn(
            f"This query runs without the planner and may ask more values than it needs: {reason}. "
            "A cast of the column in a view, CAST(… AS …), plans it.",
            PlanWarning,
            stacklevel=level_of_caller(),
        )
