"""The oldest versions that the package allows of what it needs, as constraints for pip: of each
requirement, the bound from below. ``python lowest_versions.py`` prints them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def lowest_versions() -> list[str]:
    """A line for each requirement: ``pyarrow==25``."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    needs = [Requirement(line) for line in project["dependencies"]]
    bounds = {
        need.name: [one.version for one in need.specifier if one.operator == ">="] for need in needs
    }
    return [f"{name}=={version}" for name, (version,) in bounds.items()]


if __name__ == "__main__":
    print(*lowest_versions(), sep="\n")
