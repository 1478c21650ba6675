"""The package runs where Python has no more than on Windows, and where it must not fork, as on
macOS: what other platforms lack is listed in tests/support/other_platform.py."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from other_platform import ATTRIBUTES, MODULES

import blendfusion as bf

SUPPORT = Path(__file__).parent / "support"
PACKAGE = Path(bf.__file__).parent
SCRIPT = """
import os, sys
import blendfusion as bf
import scripts
from blendfusion.apps.cli.main import main

if __name__ == "__main__":
    assert not hasattr(os, "fork")
    folder = sys.argv[1]
    model = bf.ScriptedModel(scripts.hashed, fingerprint="h")
    with open(folder + "/a.md", "w", encoding="utf-8") as file:
        file.write("A good lamp.")
    for cluster in (None, "local:2"):
        with bf.connect(model, cache=folder + "/answers.sqlite", cluster=cluster, progress="off", show_values="on") as s:
            s.from_pydict({"x": [f"v{n}" for n in range(9)]}, name="t")
            asked = s.sql("SELECT x, llm_text('q', x) AS y FROM t ORDER BY x")
            assert len(asked.to_pylist()) == 9
            asked.write_parquet(folder + "/t.parquet")
            s.register_parquet("f", folder + "/t.parquet")
            assert s.sql("SELECT count(*) AS n FROM f WHERE llm_filter('q', x)").to_pylist()
            rows = s.read_documents(folder + "/a.md", chunk=9).to_pylist()
            assert [row["text"] for row in rows] == ["A good lamp."], rows
            asked.manifest().save(folder + "/run.json")
    assert main(["query", "SELECT 1 AS a", "--cache", "off"]) == 0
    print("ends")
"""


def hidden(folder: Path) -> dict[str, str]:
    """The environment of a process without what other platforms lack, as its children are."""
    shutil.copy(SUPPORT / "other_platform.py", folder / "sitecustomize.py")
    paths = os.pathsep.join(map(str, (folder, SUPPORT)))
    own = {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(folder), "USERNAME": "somebody"}
    return {**os.environ, **own}


def run(folder: Path, *command: str) -> str:
    found = subprocess.run(
        [sys.executable, *command], env=hidden(folder), capture_output=True, encoding="utf-8"
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.slow
def test_a_session_needs_nothing_that_windows_lacks(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    assert run(tmp_path, str(script), str(tmp_path)).endswith("ends\n")


SAFE = {
    "services/cluster/local_worker.py": "only a worker that was forked has a starter",
    "services/cluster/starter.py": "it forks, so nothing of it runs where there is no fork",
}
"""The modules that run only where their names are there, and why."""


def guarded_names(tree: ast.AST) -> set[str]:
    """The names for which a module asks whether they are there, or whose lack it catches."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Compare(comparators=[ast.Constant(value="win32")]):
                found |= {*MODULES, *(name for names in ATTRIBUTES.values() for name in names)}
            case ast.Call(args=[_, ast.Constant(value="setitimer")]):
                found |= {"setitimer", "ITIMER_REAL", "ITIMER_PROF"}
            case ast.Call(
                func=ast.Name(id="hasattr" | "getattr"), args=[_, ast.Constant(value=str(n)), *_]
            ):
                found.add(n)
            case ast.Try(handlers=handlers):
                caught = {n.id for h in handlers for n in ast.walk(h) if isinstance(n, ast.Name)}
                if caught & {"ImportError", "AttributeError", "ValueError"}:
                    found |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                    found |= {
                        a.name for n in ast.walk(node) if isinstance(n, ast.Import) for a in n.names
                    }
    return found


@pytest.mark.parametrize("name", [*MODULES, *(n for names in ATTRIBUTES.values() for n in names)])
def test_what_windows_lacks_is_guarded(name: str) -> None:
    """Whoever names it in a module asks there, or says why it is safe in ``SAFE``."""
    bare = []
    files = (
        Path(at, name) for at, _, names in os.walk(PACKAGE, followlinks=True) for name in names
    )
    for file in (file for file in files if file.suffix == ".py"):
        text = file.read_text(encoding="utf-8")
        if name not in text:
            continue
        tree = ast.parse(text)
        used = any(
            (
                isinstance(n, ast.Attribute)
                and n.attr == name
                and isinstance(n.value, ast.Name)
                and n.value.id in ("os", "signal", "select", "time")
            )
            or (isinstance(n, ast.Import) and any(a.name == name for a in n.names))
            for n in ast.walk(tree)
        )
        if used and name not in guarded_names(tree):
            bare.append(str(file.relative_to(PACKAGE)))
    assert [place for place in bare if place not in SAFE] == []
