"""The compiled attention knows the layout of ggml's tensors: the compiler compares it with ggml.h."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "native" / "attention.cpp"


def compiled(headers: Path) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    command = [compiler, "-std=c++17", "-fsyntax-only", "-Wno-psabi", f"-I{headers}"]
    command += [f"-I{sysconfig.get_paths()['include']}", str(SOURCE)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def header() -> Path:
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        pytest.skip("llama-cpp-python is not installed")
    path = Path(spec.origin).parents[1] / "include" / "ggml.h"
    if not path.is_file():
        pytest.skip("llama-cpp-python has installed no ggml.h")
    return path


def test_the_layout_is_that_of_the_installed_header(header: Path) -> None:
    done = compiled(header.parent)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("declared", "instead"),
    [
        ("int64_t ne[GGML_MAX_DIMS];", "int64_t other; int64_t ne[GGML_MAX_DIMS];"),
        ("struct ggml_tensor * view_src;", ""),
        ("int32_t flags;", "int64_t flags[2];"),
    ],
)
def test_another_layout_is_not_compiled(
    header: Path, tmp_path: Path, declared: str, instead: str
) -> None:
    text = header.read_text("utf-8")
    struct = text.index("struct ggml_tensor {")
    changed = text[:struct] + text[struct:].replace(declared, instead, 1)
    assert changed != text
    (tmp_path / "ggml.h").write_text(changed, "utf-8")
    done = compiled(tmp_path)
    assert done.returncode != 0
    assert "ggml" in done.stderr
