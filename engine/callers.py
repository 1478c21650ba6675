"""The code that called BlendFusion, at which warnings point."""

from __future__ import annotations

import sys


def level_of_caller() -> int:
    """The stack level, from the caller of this function, of the first code outside of
    BlendFusion."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        "blendfusion"
    ):
        level, frame = level + 1, frame.f_back
    return level
