"""The container file: its install command works in a plain folder, and its program is the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()


def commands(instruction: str) -> list[str]:
    return [
        line.removeprefix(f"{instruction} ") for line in LINES if line.startswith(f"{instruction} ")
    ]


def test_it_runs_without_root_and_holds_no_secret() -> None:
    assert commands("USER") == ["blendfusion"]
    assert LINES.index("USER blendfusion") < LINES.index('ENTRYPOINT ["blendfusion"]')
    assert not re.search(r"^(ENV|ARG) .*(KEY|TOKEN|SECRET)", "\n".join(LINES), re.MULTILINE)


@pytest.mark.long
def test_its_install_command_works_in_a_plain_folder(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").split()
    names = [name.removeprefix("**/") for name in ignored]
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*names, "*.so", ".*_cache"))
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    (install,) = [command for command in commands("RUN") if "pip" in command]
    install = install.replace("/source", str(source))
    path = f"{tmp_path / 'env' / 'bin'}{os.pathsep}/bin"
    environment = os.environ | {"PATH": path, "CC": "/nowhere/cc", "CXX": "/nowhere/c++"}
    subprocess.run(["/bin/sh", "-ec", install], cwd=source, env=environment, check=True)
    assert list(source.glob("[!.]*")) == []

    (entry,) = commands("ENTRYPOINT")
    program = [str(tmp_path / "env" / "bin" / part) for part in json.loads(entry)]
    done = subprocess.run(
        [*program, "query", "SELECT 6 * 7 AS answer", "--format", "json"],
        cwd=tmp_path,
        env=environment | {"BLENDFUSION_MODEL": "openai:m@http://127.0.0.1:9/v1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"answer": 42}
