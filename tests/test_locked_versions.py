"""The lock file for development, the audit of it, and the licences of what extras install."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from vulnerabilities import vulnerabilities

ROOT = Path(__file__).parents[1]
LINES = [
    line for line in (ROOT / "requirements-dev.lock").read_text().splitlines() if line[0] != "#"
]
LOCKED = {
    canonicalize_name(name): version for name, _, version in (li.partition("==") for li in LINES)
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_line_is_a_name_with_one_version() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []
    assert len(LOCKED) == len(LINES) > 100


def test_all_that_development_needs_is_locked_in_a_version_that_fits() -> None:
    """Also what that needs in turn, as far as it is installed."""
    extras = PROJECT["optional-dependencies"]
    waiting = [*map(Requirement, (*PROJECT["dependencies"], *extras["dev"], *extras["local"]))]
    seen: set[tuple[str, str]] = set()
    while waiting:
        need = waiting.pop()
        name, wanted = canonicalize_name(need.name), sorted(need.extras) or [""]
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        assert need.specifier.contains(LOCKED.get(name, "none"), prereleases=True), need
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        for extra in wanted:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            others = [Requirement(text) for text in needs]
            waiting += [
                o for o in others if o.marker is None or o.marker.evaluate({"extra": extra})
            ]


def test_a_report_of_an_audit() -> None:
    flaw = {"id": "PYSEC-1", "fix_versions": ["1.1"]}
    report = {
        "dependencies": [
            {"name": "a", "version": "1.0", "vulns": [flaw, {"id": "X"}]},
            {"name": "b", "version": "2.0", "vulns": []},
            {"name": "c", "skip_reason": "not found"},
        ]
    }
    assert vulnerabilities(json.dumps(report)) == [
        "a 1.0: PYSEC-1, mended in 1.1",
        "a 1.0: X, mended in no version",
    ]


@pytest.mark.parametrize("report", ["", "[]", "{}", '{"dependencies": [1]}', "no JSON"])
def test_what_is_no_report_names_none(report: str) -> None:
    assert vulnerabilities(report) == []


def test_the_licence_of_each_packaged_model_is_named() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    extras = PROJECT["optional-dependencies"]
    for extra in ("local", "gemma", "speech"):
        for need in map(Requirement, extras[extra]):
            if need.name != "soundfile":
                assert f"`{need.name}`" in text
