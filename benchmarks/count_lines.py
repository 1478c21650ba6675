"""How large is the package, and how are its files tied together?

Run with ``python benchmarks/count_lines.py``: lines of the core and of services, functions above 60
lines, modules below 40 lines with one importer, the largest circles of files (imports for types
included), and the members of Session and Frame beyond DataFusion's.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from datafusion import DataFrame, SessionContext

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from module_imports import FILES, imports

LONG_FUNCTION = 60
TINY_MODULE = 40
FACES = {"frame": DataFrame, "session": SessionContext}


def is_optional(module: str) -> bool:
    """Whether a module belongs to a service or a program."""
    return bool({"services", "apps"} & {*module.split(".")[:2]})


def long_functions(module: str, tree: ast.AST) -> Iterator[str]:
    """The functions of more than 60 lines, with their lengths."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            if length > LONG_FUNCTION:
                yield f"{module}.{node.name}: {length}"


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The circles of modules, largest first: the strongly connected components of two or more."""
    left = {*edges}
    while free := {m for m in left if not left & {*edges[m]}}:
        left -= free  # what imports nothing that is in a circle is in none
    reached = {module: frozenset(_reach(module, edges) & left) for module in left}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in left
        if module in reached[module]
    }
    return sorted((sorted(group) for group in groups if len(group) > 1), key=len, reverse=True)


def _reach(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = {*edges.get(waiting.pop(), ())} - found
        found |= new
        waiting += new
    return found


def own_members(tree: ast.AST, inherited: type) -> int:
    """The public members that the last class of a module defines beyond ``inherited``."""
    *_, face = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    names = {n.name for n in face.body if isinstance(n, ast.FunctionDef)}
    targets = (n.targets[0] for n in face.body if isinstance(n, ast.Assign))
    names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return len({name for name in names - {*dir(inherited)} if not name.startswith("_")})


class Figure(NamedTuple):
    """A number, and what it counts by name, where that is short."""

    number: int
    names: list[str] = []  # noqa: RUF012 - never changed


def figures_of() -> dict[str, Figure]:
    """The figures of the package, by their titles."""
    texts = {module: file.read_text("utf-8") for module, file in FILES.items()}
    trees = {module: ast.parse(text) for module, text in texts.items()}
    lines = {module: text.count("\n") for module, text in texts.items()}
    edges = {m: {n for n, *_ in imports(trees[m]) if n != m and n in FILES} for m in FILES}
    importers = Counter(name for names in edges.values() for name in names)
    tiny = [
        module
        for module, n in lines.items()
        if n < TINY_MODULE and importers[module] == 1 and FILES[module].stem != "__init__"
    ]
    long = [line for module, tree in trees.items() for line in long_functions(module, tree)]
    rings = circles(edges)
    entries = [e for e in FILES[""].parent.iterdir() if e.name not in ("__pycache__", "py.typed")]
    return {
        "modules": Figure(len(FILES)),
        "lines": Figure(sum(lines.values())),
        "lines of the core": Figure(sum(n for m, n in lines.items() if not is_optional(m))),
        "entries of engine/": Figure(len(entries)),
        f"functions above {LONG_FUNCTION} lines": Figure(len(long), long),
        f"modules below {TINY_MODULE} lines with one importer": Figure(len(tiny), tiny),
        "largest circle of files": Figure(len(rings[0]), [" ".join(ring) for ring in rings]),
        **{
            f"members of {face} beyond DataFusion's": Figure(own_members(trees[face], kind))
            for face, kind in FACES.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="name what each figure counts")
    named = parser.parse_args().names
    for title, figure in figures_of().items():
        print(f"{figure.number:9,} {title}")
        for name in figure.names if named else ():
            print(f"          - {name}")


if __name__ == "__main__":
    main()
