"""Chooses the weights to load: those of the named file, or a copy in a type with fast kernels.

On a CPU quantised weights are slow: they are unpacked for every batch, and their activations are
rounded, so that a row's scores depend on the rows beside it. F16 was measured to be 1.4 to 2.6
times as fast (benchmarks/lab.md) and, made of quantised weights, loses nothing. On a GPU it is 1.7
times as fast, and the rows beside a row change its scores by a fourth to a twentieth of what they
change with quantised weights. So a quantised file is copied once to F16, into the user's cache,
where there is room; the copy counts as other weights, which fingerprints tell."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from blendfusion.errors import ModelFailed
from blendfusion.models.protocol.events import weights_converted, weights_kept
from blendfusion.models.protocol.python_packages import cache_folder
from blendfusion.models.services.llama.cpu_cores import cores
from blendfusion.models.services.llama.shared_library import identity as llama_identity
from blendfusion.models.services.weights.gguf import Head, head
from blendfusion.options import Options

VARIABLE = "BLENDFUSION_WEIGHTS"
MOST_BYTES = 2 << 30
"""The largest copy that is made without being asked for, and no more than a quarter of the memory.
"""
MOST_GPU_BYTES = 4 << 30
"""The largest copy for a GPU; most have twice as much memory."""
KEPT_BYTES = 8 << 30
"""Maximum size of all copies together; above it, the least recently used are deleted."""
LEFT_BYTES = 1 << 30
"""Bytes that stay free on the disk."""

_BITS = {"F16": 16.0, "Q8_0": 8.5, "Q4_0": 4.5}
"""Bits a weight of the types that copies are made in."""
_FTYPES = {
    "F16": "LLAMA_FTYPE_MOSTLY_F16",
    "Q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0",
    "Q4_0": "LLAMA_FTYPE_MOSTLY_Q4_0",
}
_ABANDONED_SECONDS = 3600.0


class ConversionFailed(ModelFailed):
    """llama.cpp could not make the copy."""


@dataclass(frozen=True, slots=True)
class WeightsChoice:
    """The weights that answer for a file."""

    source: Path
    type: str = ""
    """'': the file itself; else the type of the copy."""
    copy: Path | None = None
    bytes: int = 0
    """The size of the copy, roughly."""
    says: str = "as in the file"

    @property
    def path(self) -> Path:
        return self.copy or self.source

    def keep_file(self, reason: str) -> WeightsChoice:
        """The file itself instead of a converted copy, for a ``reason`` that is logged."""
        weights_kept(self.source.name, reason)
        return WeightsChoice(self.source, says=f"as in the file: {reason}")


def choose(source: Path, options: Options) -> WeightsChoice:
    """The weights for these options, by what the file is, and whether a copy is there or can be
    made.

    Nothing is made yet. Raises ModelFailed if a copy was asked for that cannot be made.
    """
    wanted = options.weights
    if wanted == "original" or (wanted == "auto" and not _pays(options)):
        return WeightsChoice(source)
    found = _head(source.resolve(), *_state(source))
    if found is None:
        return WeightsChoice(source)
    type_ = "F16" if wanted == "auto" else wanted.upper()
    if found.type == type_ or (wanted == "auto" and not found.is_quantised):
        return WeightsChoice(source, says=f"{found.type}, as in the file")
    chosen = WeightsChoice(source, type_, says=f"{type_}, made of {found.type}")
    chosen = replace(chosen, bytes=found.size(_BITS[type_]))
    problem = _problem(found, chosen.bytes, options) if wanted == "auto" else None
    if problem is None:
        try:
            chosen = replace(chosen, copy=weights_folder() / _name(source, type_))
            problem = None if chosen.path.is_file() else _no_room(chosen)
        except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home
            problem = f"no copy can be kept ({error})"
    if problem is None:
        return chosen
    if wanted != "auto":
        raise ModelFailed(
            f"weights='{wanted}': {problem}",
            hint=f"Let {VARIABLE} name a folder with room, or leave weights='auto'.",
        )
    return chosen.keep_file(problem)


def parameters(source: Path) -> int:
    """The number of weights of a file; 0 if it does not say, or is one of several."""
    found = _head(source.resolve(), *_state(source))
    return found.count if found is not None and found.whole else 0


def ready(chosen: WeightsChoice) -> Path:
    """The file to load; the copy is made if it is not there. Safe with other threads and processes:
    who is last puts an equal copy in the place of another's. Raises ConversionFailed."""
    if chosen.copy is None:
        return chosen.source
    if not chosen.copy.is_file():
        started = time.perf_counter()
        _tidy(chosen.copy.parent, KEPT_BYTES - chosen.bytes)
        _convert(chosen)
        size, seconds = chosen.copy.stat().st_size, time.perf_counter() - started
        weights_converted(chosen.source.name, chosen.says, size, seconds)
    with suppress(OSError):
        # Used just now; its time of change, a part of its identity, stays.
        os.utime(chosen.copy, ns=(time.time_ns(), chosen.copy.stat().st_mtime_ns))
    return chosen.copy


def identity(path: Path) -> str:
    """A digest that another file's weights do not have: of size, change time, head and tail."""
    size, changed = _state(path)
    digest = hashlib.sha256(f"{size} {changed} {llama_identity()}".encode())
    with path.open("rb") as file:
        digest.update(file.read(1 << 16))
        file.seek(max(0, size - (1 << 16)))
        digest.update(file.read())
    return digest.hexdigest()


def _pays(options: Options) -> bool:
    """Where F16 was measured to be faster. Metal was not measured."""
    if options.n_gpu_layers:
        return platform.system() != "Darwin"
    return platform.machine().lower() in ("x86_64", "amd64")


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@lru_cache(maxsize=64)
def _head(path: Path, _size: int, _changed: int) -> Head | None:
    return head(path)


def weights_folder() -> Path:
    """Where copies are kept, and marks of files that loaded well. Raises RuntimeError for a user
    without a home."""
    named = os.environ.get(VARIABLE, "").strip()
    return Path(named).expanduser() if named else cache_folder() / "weights"


def _name(source: Path, type_: str) -> str:
    return f"{source.stem[:80]}-{type_}-{identity(source)[:16]}.gguf"


def _problem(found: Head, size: int, options: Options) -> str | None:
    """The reason against an automatic copy, wherever it would lie; None if there is none."""
    if not found.whole:
        return "it is one of several files"
    most = MOST_GPU_BYTES if options.n_gpu_layers else MOST_BYTES
    most = min(most, (memory_bytes() or most * 4) // 4)
    if size > most:
        return f"F16 would take {_gb(size)}, more than {_gb(most)}"
    return None


def _no_room(chosen: WeightsChoice) -> str | None:
    """The reason against a copy in this place; None if there is none. Raises OSError."""
    folder = chosen.path.parent
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"no right to write {chosen.type} weights to {folder}"
    if shutil.disk_usage(folder).free < chosen.bytes + LEFT_BYTES:
        return f"no room for {_gb(chosen.bytes)} of {chosen.type} weights in {folder}"
    return None


def memory_bytes() -> int | None:
    """Bytes of memory of this machine, where that is known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _convert(chosen: WeightsChoice) -> None:
    from blendfusion.models.services.llama.library import library

    assert chosen.copy is not None
    lib = library()
    params = lib.llama_model_quantize_default_params()
    params.ftype = getattr(lib, _FTYPES[chosen.type])
    params.allow_requantize = True
    params.nthread = cores()
    try:
        chosen.copy.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=chosen.copy.parent, prefix="making-", suffix=".gguf")
        os.close(handle)
    except OSError as error:
        raise ConversionFailed(f"no copy of {chosen.source.name} can be made: {error}") from error
    made = Path(name)
    try:
        code = lib.llama_model_quantize(
            os.fsencode(chosen.source), os.fsencode(made), ctypes.byref(params)
        )
        if code != 0 or made.stat().st_size < chosen.bytes:
            raise ConversionFailed(
                f"llama.cpp could not make {chosen.type} weights of {chosen.source.name}"
            )
        with made.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(made, chosen.copy)
    except OSError as error:
        raise ConversionFailed(f"no copy of {chosen.source.name} can be made: {error}") from error
    finally:
        made.unlink(missing_ok=True)


def _tidy(folder: Path, most: int) -> None:
    """Delete copies until at most ``most`` bytes are left, and all parts of copies that no process
    is writing."""
    copies: list[tuple[float, int, Path]] = []
    with suppress(OSError):
        for path in folder.glob("*.gguf"):
            with suppress(OSError):
                state = path.stat()
                if not path.name.startswith("making-"):
                    copies.append((state.st_atime, state.st_size, path))
                elif time.time() - state.st_mtime > _ABANDONED_SECONDS:
                    path.unlink()
    total = sum(size for _, size, _ in copies)
    for _, size, path in sorted(copies):
        if total <= most:
            break
        with suppress(OSError):  # on Windows a file in use stays
            path.unlink()
            total -= size
