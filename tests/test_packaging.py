"""What is installed: the listed packages, nothing else, without a compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from importlib import resources
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
SHIPPED = (".py", ".pyi", "py.typed", ".css", ".html", ".js", ".txt")


def files_of(folder: Path) -> list[Path]:
    return [f for f in folder.rglob("*") if f.is_file() and f.name.endswith(SHIPPED)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of the sources, built apart, so that nothing is left beside them."""
    pytest.importorskip("build")
    source = tmp_path_factory.mktemp("source")
    out = tmp_path_factory.mktemp("wheel")
    for name in (*FOLDERS.values(), "pyproject.toml", "README.md", "LICENSE", "setup.py"):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run(
        [*command, str(source)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nowhere", "CC": "/nowhere/cc", "CXX": "/nowhere/c++"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_every_folder_with_code_is_a_package() -> None:
    for folder in FOLDERS.values():
        for file in files_of(ROOT / folder):
            assert (file.parent / "__init__.py").is_file(), f"{file.parent} has no __init__.py"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"blendfusion", f"blendfusion-{version('blendfusion')}.dist-info"}


def test_the_wheel_holds_every_module_once(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if name.startswith("blendfusion/")}
    wanted = set()
    for package, folder in FOLDERS.items():
        place = Path(*package.split("."))
        for file in files_of(ROOT / folder):
            wanted.add((place / file.relative_to(ROOT / folder)).as_posix())
    assert held == wanted
    assert "blendfusion/py.typed" in held


def test_the_wheel_says_what_it_is(metadata: Message) -> None:
    project = PYPROJECT["project"]
    assert metadata["Name"] == "blendfusion"
    assert metadata["Version"] == project["version"]
    assert metadata["Summary"] == project["description"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).startswith("# BlendFusion")


def test_every_extra_is_offered(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "local",
        "gemma",
        "hub",
        "outlines",
        "http2",
        "search",
        "xlsx",
        "all",
        "docs",
        "compare",
        "dev",
    }


def test_versions_agree() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)", changes, re.MULTILINE)
    assert released[0] == PYPROJECT["project"]["version"] == version("blendfusion")


def test_the_installed_package_is_typed() -> None:
    assert (resources.files("blendfusion") / "py.typed").is_file()


def test_nothing_else_of_ours_can_be_imported(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, sys\n"
        f"print([n for n in {sorted(FOLDERS.values())!r} if u.find_spec(n) is not None])"
    )
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"
