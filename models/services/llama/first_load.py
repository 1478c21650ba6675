"""Tries the first load of an unknown GGUF file in a child process.

A damaged file can end the process in which llama.cpp loads it, or keep it busy for ever. So its
structure is checked first, and then a child loads it and computes one token, for a limited time.
Files that loaded well are remembered by their identity; packaged weights are known by their digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from blendfusion.errors import ModelError, ModelFailed
from blendfusion.models.protocol.events import weights_tried
from blendfusion.models.protocol.python_packages import PACKAGED_SHA256
from blendfusion.models.services.llama.context import LlamaContext, Weights
from blendfusion.models.services.llama.library import reason as llama_reason
from blendfusion.models.services.llama.switch import Switch
from blendfusion.models.services.llama.token_batch import Batch
from blendfusion.models.services.llama.weights import identity, memory_bytes, weights_folder
from blendfusion.models.services.weights.gguf import BrokenFile, check

LIMIT_SECONDS = 120.0
BYTES_PER_SECOND = 20e6
"""How fast a file is read and laid out at least, beyond ``LIMIT_SECONDS``."""
_SLOW = "damage, a slow disk or a busy machine: try once more, then download it again"
REMEDY = "Download the file again, or name another one."
PROJECTOR_REMEDY = (
    "Name the file that belongs to these weights: connect(…, projector='mmproj….gguf')."
)
_REFUSED = 3
"""Exit status of a child to which llama.cpp gave a reason."""
_POLL_SECONDS = 0.05
_PROGRAM = f"from {__name__} import main; main()"


def ensure_loads(files: Sequence[Path], n_ctx: int, go_on: Callable[[], None]) -> None:
    """Return if llama.cpp loads the last of ``files`` safely: weights, or a projector of the
    weights before it. ``go_on`` is called often; an exception from it ends the wait.

    Raises ModelFailed, which names the file and the damage."""
    try:
        if is_known(*files):
            return
        check(files[-1])
    except (BrokenFile, OSError) as problem:
        raise _load_error(files, str(problem)) from None
    started = time.perf_counter()
    if _try(files, n_ctx, go_on):
        weights_tried(files[-1].name, time.perf_counter() - started)
        remember(*files)


def is_known(*files: Path) -> bool:
    """Whether these files loaded well before, together, or are packaged weights."""
    mark = _mark(files)
    if mark is not None and mark.exists():
        return True
    if len(files) > 1 or files[0].name not in PACKAGED_SHA256:
        return False
    with files[0].open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    known = digest == PACKAGED_SHA256[files[0].name]
    if known:
        remember(*files)
    return known


def remember(*files: Path) -> None:
    """Remember that these files load well, where there is a folder for that."""
    mark = _mark(files)
    if mark is not None:
        with contextlib.suppress(OSError):
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()


def _mark(files: Sequence[Path]) -> Path | None:
    """The empty file that says so; None without a home."""
    name = hashlib.sha256(" ".join(map(identity, files)).encode()).hexdigest()
    try:
        return weights_folder() / "loaded" / name[:32]
    except RuntimeError:
        return None


def _try(files: Sequence[Path], n_ctx: int, go_on: Callable[[], None]) -> bool:
    """Load the files in a child; False where none can be started. Raises ModelFailed."""
    size = sum(file.stat().st_size for file in files)
    limit = LIMIT_SECONDS + size / BYTES_PER_SECOND
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(limit), str(n_ctx), *map(str, files)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
                "CUDA_VISIBLE_DEVICES": "",
                "GGML_NO_BACKTRACE": "1",
            },
        )
    except (OSError, ValueError):  # a sandbox that starts no processes, a program without Python
        return False
    deadline = time.monotonic() + limit
    with child:
        try:
            while True:
                try:
                    output, _ = child.communicate(timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    go_on()
                    if time.monotonic() > deadline:
                        reason = f"llama.cpp had not loaded it after {limit:.0f} seconds ({_SLOW})"
                        raise _load_error(files, reason) from None
        finally:
            child.kill()
    if child.returncode != 0:
        raise _load_error(files, _reason(child.returncode, output.decode("utf-8", "replace")))
    return True


def _reason(status: int, output: str) -> str:
    last = (output.strip().splitlines() or [""])[-1]
    last = last[max(0, last.find("GGML_ASSERT")) :][:300]
    if status == _REFUSED:
        return last
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        return f"llama.cpp ended the process that tried to load it ({name}). {last}".strip()
    return f"the process that tried to load it ended with status {status}. {last}".strip()


def _load_error(files: Sequence[Path], reason: str) -> ModelFailed:
    hint = REMEDY if len(files) == 1 else PROJECTOR_REMEDY
    return ModelFailed(f"the model file '{files[-1]}' cannot be used: {reason}", hint=hint)


def main() -> None:
    """The child: load the files of the command line, and compute one token."""
    limit, n_ctx, weights_file, *projectors = sys.argv[1:]
    _limit_itself(float(limit))
    try:
        weights = Weights(Path(weights_file), n_gpu_layers=0, switch=Switch())
        context = LlamaContext(weights, n_ctx=int(n_ctx), threads=0)
        context.chat_template()
        batch = Batch()
        batch.want(batch.add(context.tokenize("a", special=False)[:1] or [0], 0, 0)[0])
        if np.isnan(context.decode(batch)).any():
            raise ModelFailed("what it computes are no numbers")
        for projector in projectors:
            from blendfusion.models.services.llama.image_encoder import Projector

            Projector(Path(projector), weights, gpu=False, threads=0).close()
    except ModelError as error:
        words = error.message if projectors else llama_reason() or error.message
        print(" ".join(words.split()))
        sys.stdout.flush()
        os._exit(_REFUSED)
    os._exit(0)  # not through what frees the model


def _limit_itself(seconds: float) -> None:
    """The parent ends a child in time; here in case that the parent is gone, or memory runs out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "win32":
        return
    import resource

    signal.alarm(int(seconds) + 5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = memory_bytes()
    if most is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
