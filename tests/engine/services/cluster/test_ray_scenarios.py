"""Sessions over a real Ray, where it is installed: right rows or an error of ours, and the process
lives (tests/support/ray_scenarios.py)."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@contextmanager
def head_with_clients() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The head of a cluster that serves clients by ``ray://``, and its address."""
    port, clients = free_port(), free_port()
    start = f"start --head --block --num-cpus 2 --port {port} --ray-client-server-port {clients}"
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        head = subprocess.Popen(
            [
                *(sys.executable, "-m", "ray.scripts.scripts", *start.split()),
                *("--include-dashboard=false", f"--temp-dir={folder}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for _ in range(600):
                with suppress(OSError), socket.create_connection(("127.0.0.1", clients), 1):
                    break
                time.sleep(0.2)
            yield f"ray://127.0.0.1:{clients}", head
        finally:
            head.terminate()
            with suppress(subprocess.TimeoutExpired):
                head.wait(60)
            head.kill()
            head.wait()


def part_of(process: int, word: str) -> int:
    """The first process below another one whose command has a word."""
    tree = [process]
    for one in tree:
        with suppress(OSError):
            if word in Path(f"/proc/{one}/cmdline").read_text(encoding="utf-8", errors="replace"):
                return one
        said = subprocess.run(["pgrep", "-P", str(one)], capture_output=True, text=True)
        tree += map(int, said.stdout.split())
    raise LookupError(word)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="names the processes of the head")
@pytest.mark.parametrize(
    ("name", "ends"), [("client", ["right"]), ("client_whose_head_ends", ["right", "ours"])]
)
def test_clients_of_a_cluster(name: str, ends: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ray_or_skip(monkeypatch)
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))  # of the workers of the head, too
    with head_with_clients() as (address, head):
        monkeypatch.setenv("SCENARIO_CLIENT", address)
        monkeypatch.setenv("SCENARIO_HEAD", str(part_of(head.pid, "gcs_server")))
        assert run(name, monkeypatch)[name] in ends
