"""The modules of the package in the repository, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("engine", "planner", "udfs", "models", "native")


def module_of(file: Path) -> str:
    """The name below ``blendfusion``; '' for engine/__init__.py."""
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts[1:] if parts[0] == "engine" else parts)


FILES = {module_of(file): file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")}


def imports(tree: ast.AST, *, types_only: bool = False) -> Iterator[tuple[str, int, bool]]:
    """(module, line, whether the import is for types only), wherever an import stands."""
    for node in ast.iter_child_nodes(tree):
        only = types_only or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("blendfusion"):
            base = (node.module or "").removeprefix("blendfusion").removeprefix(".")
            for name in node.names:
                full = f"{base}.{name.name}".removeprefix(".")
                yield (full if full in FILES else base), node.lineno, only
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "blendfusion":
                    yield name.name.removeprefix("blendfusion").removeprefix("."), node.lineno, only
        yield from imports(node, types_only=only)
