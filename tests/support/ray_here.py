"""Ray, where it is installed, with workers that get their share of a busy machine."""

from __future__ import annotations

from typing import Any

import pytest


def ray_or_skip(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module ``ray``. Its workers would be as nice as they can be, and wait for everybody."""
    monkeypatch.setenv("RAY_worker_niceness", "0")
    return pytest.importorskip("ray", reason="the extra 'ray' is not installed")
