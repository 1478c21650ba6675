"""Reads a report of pip-audit; as a program it ends with status 1 where that names a vulnerability."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def vulnerabilities(report: str) -> list[str]:
    """A line for each vulnerability of a report in JSON; none for one that cannot be read."""
    try:
        found = json.loads(report)["dependencies"]
        return [
            f"{one['name']} {one['version']}: {flaw['id']}, mended in "
            f"{', '.join(flaw.get('fix_versions', ())) or 'no version'}"
            for one in found
            for flaw in one.get("vulns", ())
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


if __name__ == "__main__":
    lines = vulnerabilities(Path(sys.argv[1]).read_text())
    print("\n".join(lines) or "no vulnerability is known")
    sys.exit(bool(lines))
