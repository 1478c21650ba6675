"""The trials of CONTRIBUTING.md: a function, a rule, a back end and a service take two or three files
each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
MOST_FILES = 3
_BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def trials() -> dict[str, list[tuple[str, str, str]]]:
    """(language, file, text) of the blocks of each trial, by its first words."""
    chapter = PAGE.split("## Four trials")[1].split("\n## ")[0]
    found = {}
    for part in re.split(r"^\*\*", chapter, flags=re.MULTILINE)[1:]:
        found[part.split("**")[0]] = _BLOCK.findall(part)
    return found


def place(folder: Path, file: str) -> Path:
    """Where a file of the repository stands in an installed package."""
    return folder / file.removeprefix("engine/")


@pytest.mark.parametrize("trial", trials())
def test_a_trial_works_in_a_copy_of_the_package(trial: str, tmp_path: Path) -> None:
    blocks = trials()[trial]
    package = tmp_path / "blendfusion"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "engine", package, ignore=ignored)
    for name in ("planner", "udfs", "models", "native"):
        shutil.copytree(ROOT / name, package / name, ignore=ignored)
    changed = {file for language, file, _ in blocks if file != "check"}
    assert 2 <= len(changed) <= MOST_FILES
    (check,) = (text for _, file, text in blocks if file == "check")

    for language, file, text in blocks:
        if language == "diff":
            edit(place(package, file), text)
        elif file != "check" and not file.startswith("tests/"):
            assert not place(package, file).exists()
            place(package, file).parent.mkdir(exist_ok=True)
            place(package, file).write_text(text, "utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", check],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "BLENDFUSION_PROGRESS": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def edit(path: Path, diff: str) -> None:
    """Apply a diff whose lines without ``+`` occur in the file once, one behind the other."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
    new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
    text = path.read_text("utf-8")
    assert text.count(old) == 1, f"{path.name} does not have once:\n{old}"
    path.write_text(text.replace(old, new), "utf-8")
