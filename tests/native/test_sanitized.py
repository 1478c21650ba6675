"""Attention touches no memory that is not its own: the sanitizers of the compiler watch them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
SUPPORT = Path(__file__).parents[1] / "support"
SCRIPT = Path(__file__).with_name("sanitized.py")
WATCHED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]


def library(compiler: str, name: str) -> str:
    """Where the compiler has a runtime library; skips the test where it has none."""
    found = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip(f"{compiler} has no {name}")
    return found


@pytest.mark.long
def test_attention_stays_within_its_memory(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no g++ on Linux, whose sanitizers can be loaded into a finished Python")
    preload = " ".join(library(compiler, name) for name in ("libasan.so", "libubsan.so"))
    command = [compiler, *WATCHED, "-std=c++17", "-pthread", "-shared", "-fPIC", "-Wno-psabi"]
    command.append(f"-I{sysconfig.get_paths()['include']}")
    built = str(tmp_path / "_attention.so")
    subprocess.run([*command, str(NATIVE / "attention.cpp"), "-o", built], check=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(SUPPORT),
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0",  # of the interpreter, which does not clean up
    }

    watched = subprocess.run(
        [sys.executable, str(SCRIPT), built, str(NATIVE)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert watched.returncode == 0, watched.stderr[-4000:]
    assert watched.stdout == "compared\n"
