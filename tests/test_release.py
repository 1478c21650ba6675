"""The wheel, installed as README says, answers README's first query in an environment without compilers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cmake", "ninja")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all programs of this machine but compilers."""
    folder = tmp_path_factory.mktemp("tools")
    for place in os.environ["PATH"].split(os.pathsep)[::-1]:
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            if not re.fullmatch(
                rf"(.*-)?({'|'.join(map(re.escape, COMPILERS))})(-[\d.]+)?", program.name
            ):
                (folder / program.name).unlink(missing_ok=True)
                (folder / program.name).symlink_to(program)
    assert not any(shutil.which(name, path=str(folder)) for name in COMPILERS)
    return folder


def run(command: list[str], tools: Path, folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PATH": str(tools),
            "CMAKE_ARGS": "",
            "XDG_CACHE_HOME": str(folder / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.local
@pytest.mark.skipif(sys.platform != "linux", reason="a wheel for Linux")
def test_the_wheel_answers_without_a_compiler(tools: Path, tmp_path: Path) -> None:
    pytest.importorskip("build")
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(
        ".*", "build", "dist", "tests", "benchmarks", "*.so", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=ignored)
    wheels = tmp_path / "wheels"
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "-o",
        str(wheels),
        str(source),
    ]
    run(build, tools, tmp_path)
    (wheel,) = wheels.glob("*.whl")

    run([sys.executable, "-m", "venv", str(tmp_path / "env")], tools, tmp_path)
    bin_ = tmp_path / "env" / "bin"
    (line,) = re.findall(r"`pip (install .*'blendfusion\[local\]')`", README)
    install = line.replace("'blendfusion[local]'", f"{wheel}[local]").replace(
        "prebuilt.txt", str(ROOT / "prebuilt.txt")
    )
    run([str(bin_ / "python"), "-m", "pip", *install.split()], tools, tmp_path)

    found = re.search(
        r'\$ blendfusion query "(.*?)" \\\n    --table .*?\n(.*?)```', README, re.DOTALL
    )
    assert found is not None
    query, shown = found[1].replace("\\\n", " "), found[2]
    table = ["--table", f"reviews={ROOT / 'examples' / 'reviews.csv'}"]
    answered = run([str(bin_ / "blendfusion"), "query", query, *table], tools, tmp_path)
    rows = re.compile(r"^(P\d+)\s+(\d+)", re.MULTILINE)  # a pipe gets tab-separated values
    assert rows.findall(answered) == rows.findall(shown) != []
