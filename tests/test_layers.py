"""Imports point one way: engine → planner → udfs → models → native."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("engine", "planner", "udfs", "models", "native")
"""Each may import itself and those after it."""
LEAVES = (
    "blendfusion.types",
    "blendfusion.errors",
    "blendfusion.options",
    "blendfusion.redaction",
    "blendfusion.budget",
)
"""Pages of engine/ that import nothing of ours but each other, and that every layer may import."""

SOURCES = sorted(file for layer in LAYERS for file in (ROOT / layer).rglob("*.py"))


def module_of(file: Path) -> str:
    """The name under which a file is imported: engine/ is the package itself."""
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(["blendfusion", *(parts[1:] if parts[0] == "engine" else parts)])


MODULES = frozenset(map(module_of, SOURCES))


def layer_of(module: str) -> int:
    """The position of a module's layer; names below ``blendfusion`` that are no layer are
    engine's."""
    below = module.split(".")[1:2]
    return LAYERS.index(below[0]) if below and below[0] in LAYERS else 0


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(module, line) of every import, wherever it stands; a relative one begins with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            # ``from blendfusion.models import calibrate`` imports a module, not only a name of one.
            modules = [f"{base}.{name.name}" for name in node.names]
            inner = [module for module in modules if module in MODULES]
            yield from ((module, node.lineno) for module in inner or [base])


def wrong(file: Path, text: str) -> list[str]:
    """The imports in ``text``, as the content of ``file``, that go against the layers."""
    module = module_of(file)
    found = []
    for name, line in imported(ast.parse(text)):
        top = name.split(".")[0]
        problem = ""
        if name.startswith("."):
            problem = "is relative"
        elif top in LAYERS:
            problem = f"is bare: write blendfusion.{name}"
        elif top == "blendfusion":
            if module in LEAVES and name not in LEAVES:
                problem = f"is not for a leaf such as {module}"
            elif name not in LEAVES and layer_of(name) < layer_of(module):
                problem = f"points up: {LAYERS[layer_of(module)]} → {LAYERS[layer_of(name)]}"
        if problem:
            found.append(f"{file.relative_to(ROOT)}:{line}: import of {name} {problem}")
    return found


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_one_way(file: Path) -> None:
    assert wrong(file, file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (
            "models/registry/load.py",
            "from blendfusion.udfs.declare.call import Call",
            "points up: models → udfs",
        ),
        ("udfs/declare/call.py", "import blendfusion", "points up: udfs → engine"),
        ("planner/ir/nodes.py", "from blendfusion import session", "points up: planner → engine"),
        (
            "planner/ir/nodes.py",
            "def f():\n    import blendfusion.frame",
            "points up: planner → engine",
        ),
        ("engine/types.py", "from blendfusion.models import model", "is not for a leaf"),
        ("engine/frame.py", "from .stream import Stream", "is relative"),
        ("engine/frame.py", "from planner import plan", "is bare"),
        ("engine/options.py", "from blendfusion.errors import OptionError", ""),
        ("models/registry/load.py", "from blendfusion.options import Options", ""),
        ("engine/frame.py", "from blendfusion.models import load", ""),
    ],
)
def test_this_test_sees_what_it_looks_for(file: str, text: str, problem: str) -> None:
    found = wrong(ROOT / file, text)
    assert (problem in found[0]) if problem else not found


FACES = {
    "blendfusion": {"Session", "Frame", "session", "frame"},
    "blendfusion.session": {"Session"},
    "blendfusion.frame": {"Frame"},
    "blendfusion.run.hooks": {"BaseSession"},
}
"""The names, by their modules, that only what lies above the record ``Engine`` imports."""
BELOW_ENGINE = [
    ROOT / "engine" / "prepare" / "function_registry.py",
    ROOT / "engine" / "prepare" / "result_names.py",
    *(
        file
        for folder in ("language", "run", "datafusion", "files", "places", "prepare/verbs")
        for file in sorted((ROOT / "engine" / folder).rglob("*.py"))
        if file != ROOT / "engine" / "run" / "hooks.py"
    ),
    *(file for file in SOURCES if file.relative_to(ROOT).parts[0] != "engine"),
]
"""The modules that know a session by its ``Engine`` alone; ``run.hooks`` declares it."""


def known_faces(text: str) -> list[str]:
    """What a module knows of sessions: imported classes, and attributes called ``session``."""
    tree = ast.parse(text)
    return [
        *(
            name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module in FACES
            for name in node.names
            if name.name in FACES[node.module]
        ),
        *(
            f"{ast.unparse(node)}, line {node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == "session"
        ),
    ]


@pytest.mark.parametrize("file", BELOW_ENGINE, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_below_the_engine_knows_sessions_or_frames(file: Path) -> None:
    assert known_faces(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("if TYPE_CHECKING:\n    from blendfusion.session import Session", ["Session"]),
        ("def f():\n    from blendfusion.run.hooks import BaseSession", ["BaseSession"]),
        ("def f(frame):\n    return frame.session.options", ["frame.session, line 2"]),
        ("from blendfusion.run.hooks import BaseFrame", []),
    ],
)
def test_this_test_sees_faces(text: str, found: list[str]) -> None:
    assert known_faces(text) == found


def test_rules_import_no_rules() -> None:
    """What several of them need stands beside them, in planner/ir, planner/needs or
    planner/stages."""
    rules = (file for file in (ROOT / "planner" / "rules").glob("*.py") if file.stem != "__init__")
    found = [
        f"{file.name}:{line}: {name}"
        for file in rules
        for name, line in imported(ast.parse(file.read_text("utf-8")))
        if name.startswith("blendfusion.planner.rules")
    ]
    assert found == []


@pytest.mark.parametrize("layer", LAYERS)
def test_tests_lie_in_the_folders_of_their_layer(layer: str) -> None:
    tests = ROOT / "tests" / layer
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py")}
    assert [folder for folder in folders if not (ROOT / layer / folder).is_dir()] == []
