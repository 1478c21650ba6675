"""llama.cpp's library: its import, its log, its threads, the memory of its GPUs."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from blendfusion.errors import ModelFailed, ModelNotFound, connect_with
from blendfusion.models.services.llama import self_test
from blendfusion.models.services.llama.shared_library import Unfit, bind
from blendfusion.models.services.llama.struct_layout import fit_layout

_GPU_TYPES = (1, 2)
"""GGML_BACKEND_DEVICE_TYPE_GPU and _IGPU."""

_log: deque[str] = deque(maxlen=20)
_LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_ready: list[Any] = []
"""The bindings, once their library is loaded and checked."""
_loading = threading.Lock()


def library() -> Any:
    """llama.cpp, keeping its log to itself. The first call loads it, and checks a prebuilt one.

    Raises ModelNotFound if there is none, or none that can be used here."""
    if not _ready:
        with _loading, _patient_threads():
            if not _ready:
                _ready.append(_check_library(_load()))
    return _ready[0]


def _load() -> Any:
    # A captured CUDA graph ended the process with an illegal instruction where batches have one
    # shape for long (benchmarks/lab.md). The library reads this once.
    os.environ.setdefault("GGML_CUDA_DISABLE_GRAPHS", "1")
    try:
        bind(_log_callback())
        import llama_cpp
    except ImportError as error:
        raise ModelNotFound(
            f"local models need llama-cpp-python, which cannot be imported: {error}",
            hint="pip install 'blendfusion[local]'",
        ) from error
    except (Unfit, AttributeError, FileNotFoundError, RuntimeError) as error:
        raise _unusable(str(error)) from error
    _silence(llama_cpp)
    return llama_cpp


def _check_library(lib: Any) -> Any:
    """``lib``, if it lays its structs out as known and computes what it should."""
    try:
        fit_layout(lib)
        wrong = self_test.differences(log_probabilities(lib))
    except (Unfit, AttributeError, ModelFailed) as error:
        raise _unusable(str(error)) from error
    if wrong:
        raise _unusable(
            f"it computes wrongly: the odds after {wrong} of {len(self_test.KNOWN)} test prompts are others"
        )
    return lib


def log_probabilities(lib: Any) -> list[float]:
    """The log-probabilities of ``WATCHED`` after ``PROMPTS``, as the bindings ``lib`` compute them.

    Raises ModelFailed if it cannot read or compute the model."""
    from blendfusion.models.services.llama.context import LlamaContext, Weights
    from blendfusion.models.services.llama.switch import Switch
    from blendfusion.models.services.llama.token_batch import Batch

    with tempfile.TemporaryDirectory(prefix="blendfusion-") as folder:
        path = Path(folder) / "self-test.gguf"
        path.write_bytes(self_test.model())
        weights = Weights(path, n_gpu_layers=0, switch=Switch(), lib=lib)
        try:
            context = LlamaContext(weights, n_ctx=128, threads=1)
            try:
                batch = Batch()
                for sequence, prompt in enumerate(self_test.PROMPTS, 1):
                    batch.want(batch.add(prompt, 0, sequence)[-1])
                logits = context.decode(batch).astype(np.float64)
                odds = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
                return [float(odds[row, token]) for row, token in enumerate(self_test.WATCHED)]
            finally:
                context.close()
        finally:
            weights.close()


def _unusable(why: str) -> ModelNotFound:
    return ModelNotFound(
        f"llama.cpp's library cannot be used here: {why}",
        hint="Compile it for this machine (docs/install.md):\n"
        "  pip install --force-reinstall --no-cache-dir --no-deps 'llama-cpp-python>=0.3.36,<0.4'\n"
        f"or use a server: {connect_with('openai:NAME@http://HOST:PORT/v1')}",
    )


_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}


@contextmanager
def _patient_threads() -> Iterator[None]:
    """Let llama.cpp's threads spin for some 50 microseconds while they wait for one another, and
    then sleep.

    OpenMP reads this once, when its library is loaded. Threads that only spin collapse as soon as
    another wants a core, such as a query engine's; to wake one that sleeps takes as long as half
    the step of a lone row (benchmarks/lab.md has both). What the user has set is kept."""
    if any(name in os.environ for name in _WAITING):
        yield
        return
    os.environ |= _WAITING
    try:
        yield
    finally:
        for name in _WAITING:
            os.environ.pop(name, None)


def free_gpu_bytes() -> int:
    """Free memory of all GPUs, less where llama.cpp does not tell; 0 if it tells nothing."""
    from llama_cpp._ggml import libggml

    total = 0
    try:
        libggml.ggml_backend_dev_count.restype = ctypes.c_size_t
        libggml.ggml_backend_dev_get.restype = ctypes.c_void_p
        libggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
        libggml.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
        libggml.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p] + 2 * [
            ctypes.POINTER(ctypes.c_size_t)
        ]
        for number in range(libggml.ggml_backend_dev_count()):
            device = libggml.ggml_backend_dev_get(number)
            free, whole = ctypes.c_size_t(), ctypes.c_size_t()
            if libggml.ggml_backend_dev_type(device) in _GPU_TYPES:
                libggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(whole))
            total += free.value
    except (AttributeError, OSError):
        return 0
    return total


def _silence(lib: Any) -> None:
    """Keep llama.cpp's log off the terminal; the last lines are kept for error messages."""
    lib.llama_log_set(_log_callback(), ctypes.c_void_p(0))


@cache
def _log_callback() -> Any:
    def keep(_level: int, text: bytes, _data: object) -> None:
        _log.append(text.decode("utf-8", "replace"))

    return _LOG_CALLBACK(keep)


@contextmanager
def capture_log(log_to: Any) -> Iterator[None]:
    """Capture the log of another of llama.cpp's libraries as well, and discard earlier lines.
    ``log_to``: the function that sets its log callback."""
    log_to(_log_callback(), ctypes.c_void_p(0))
    _log.clear()
    yield


def reason() -> str:
    """The last line of llama.cpp's log that speaks of an error, and says more than that there is
    one."""
    lines = [line.strip() for line in _log]
    speaking = [line for line in lines if re.search("error|fail|invalid", line, re.IGNORECASE)]
    telling = [line for line in speaking if not line.endswith("failed to load model")]
    return (telling or speaking or [""])[-1]


def forget_log() -> None:
    """Forget the lines of llama.cpp's log so far."""
    _log.clear()
