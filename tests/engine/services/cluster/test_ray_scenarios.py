"""Sessions over a real Ray, where it is installed: right rows or an error of ours, and the process
lives (tests/support/ray_scenarios.py)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ray_here import ray_or_skip

SUPPORT = Path(__file__).parents[3] / "support"
ALIVE = (
    "one_session closed_first left_to_the_garbage_collector failed_and_left "
    "right_after_a_failure actor_killed_in_a_query actors_killed_between_queries groups "
    "two_threads stopped_in_the_middle limit program_shuts_ray_down programs_own_instance_stays"
)
"""These give the right rows."""
ENDED = [
    "model_ends_its_process",
    "head_killed_between_queries",
    "head_killed_in_a_query",
    "machine_killed",
    "new_instance_after_a_dead_head",
    "no_client_server",
    "no_cluster",
]
"""These may give an error, each in a process of its own."""


def run(names: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    ray_or_skip(monkeypatch)
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    found = subprocess.run(
        [sys.executable, str(SUPPORT / "ray_scenarios.py"), *names.split()],
        capture_output=True,
        encoding="utf-8",
    )
    assert (found.returncode, found.stdout.splitlines()[-1:]) == (0, ["lives"]), found.stderr
    assert "raylet" not in found.stdout  # which may be a file of rows
    return dict(re.findall(r"^(\w+): (right|ours|NOT OURS.*)", found.stdout, re.MULTILINE))


@pytest.mark.long
@pytest.mark.slow
def test_an_instance_outlives_what_its_sessions_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(ALIVE, monkeypatch) == dict.fromkeys(ALIVE.split(), "right")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ENDED)
def test_what_ends_is_an_error_of_ours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(name, monkeypatch)[name] in ("right", "ours")
