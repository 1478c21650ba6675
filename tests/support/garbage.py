"""Waits until objects that nobody holds are gone."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TIME_LIMIT_SECONDS = 60


def after_collection(holds: Callable[[], bool]) -> bool:
    """Whether ``holds`` comes true as garbage is collected. DataFusion's threads drop a plan, and
    with it a session, some time after its last row was read, so one collection is not enough."""
    end = time.monotonic() + TIME_LIMIT_SECONDS
    while time.monotonic() < end:
        gc.collect()
        if holds():
            return True
        time.sleep(0.01)
    return False
