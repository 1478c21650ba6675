"""Processes of a cluster that are stopped, ended or killed at random moments, and their session: it
ends in time, with right rows or a clear error, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_program import STILL_SECONDS, Run, running

pytestmark = [
    pytest.mark.long,
    pytest.mark.alone,
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found in /proc"),
]
ROWS = 240
RIGHT = [i for i in range(ROWS) if zlib.crc32(f"f ('value {i}',)".encode()) % 3 > 0]
BUDGET_SECONDS = 3.0
LIMIT_SECONDS = 1.0
END_SECONDS = 5.0
CASES = 6
"""By default; ``--cases 60`` runs so many."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for place in range(6):
        ids = range(place * ROWS // 6, (place + 1) * ROWS // 6)
        table = pa.table({"id": ids, "x": [f"value {i}" for i in ids]})
        pq.write_table(table, folder / f"{place}.parquet")
    return folder


def send(run: Run, what: str, number: signal.Signals) -> int:
    """Send a signal to a process of the program, which may have ended."""
    process = run.wait_for(what)
    os.kill(process, number)
    return process


@pytest.mark.parametrize("what", ["0", "starter"])
def test_the_work_of_a_process_that_is_stopped_moves(tmp_path: Path, data: Path, what: str) -> None:
    with running(tmp_path, data) as run:
        run.wait_for_requests(20)
        send(run, what, signal.SIGSTOP)
        if what == "starter":
            send(run, "1", signal.SIGKILL)
        said = run.end()
        assert said["rows"] == RIGHT
        assert not run.left()


def test_a_budget_of_seconds_holds_while_a_worker_is_stopped(tmp_path: Path, data: Path) -> None:
    with running(tmp_path, data, seconds=BUDGET_SECONDS) as run:
        run.wait_for_requests(1)
        began = run.moment()
        send(run, "1", signal.SIGSTOP)
        said = run.end()
        assert said["error"] == "BudgetExceeded"
        assert began.seconds_until(said) < BUDGET_SECONDS + LIMIT_SECONDS
        assert time.time() - said["time"] < END_SECONDS, "and the process ends"
        assert not run.left()


def test_ctrl_c_takes_effect_while_a_worker_is_stopped(tmp_path: Path, data: Path) -> None:
    with running(tmp_path, data) as run:
        run.wait_for_requests(20)
        send(run, "0", signal.SIGSTOP)
        time.sleep(0.5)
        sent = run.moment()
        send(run, "session", signal.SIGINT)
        said = run.end()
        assert said["error"] == "KeyboardInterrupt"
        assert sent.seconds_until(said) < LIMIT_SECONDS
        assert time.time() - said["time"] < END_SECONDS, "and the process ends"
        assert not run.left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("stopped", [None, "0", "starter"])
def test_nothing_is_left_of_a_session_that_is_killed(
    tmp_path: Path, data: Path, number: signal.Signals, stopped: str | None
) -> None:
    with running(tmp_path, data) as run:
        run.wait_for_requests(20)
        assert {path.name.rpartition("-")[0] for path in run.temporary.iterdir()} == {
            "blendfusion-answers",
            "blendfusion-cluster",
        }
        if stopped:
            send(run, stopped, signal.SIGSTOP)
        send(run, "session", number)
        assert run.end() == {}
        assert not run.left()


def test_random_moments(tmp_path: Path, data: Path, given_cases: int | None) -> None:
    for seed in range(CASES if given_cases is None else min(given_cases, 60)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        run_one(folder, data, seed)


def run_one(folder: Path, data: Path, seed: int) -> None:
    rng = random.Random(seed)
    what = rng.choice(["0", "1", "starter", "session"])
    number = rng.choice([signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL])
    how = rng.choice(["rows", "budget", "interrupt"])
    seconds = BUDGET_SECONDS if how == "budget" else None
    about = f"seed {seed}: {number.name} to {what}, {how}"
    with running(folder, data, seconds=seconds) as run:
        if what != "session":
            run.wait_for(what)
        time.sleep(rng.random() * 3)
        if run.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                send(run, what, number)
        at = run.moment()
        if what == "session" and number == signal.SIGSTOP:
            time.sleep(rng.random() * 2 * STILL_SECONDS)
            os.kill(run.process.pid, signal.SIGCONT)
        elif how == "interrupt" and run.process.poll() is None:
            time.sleep(rng.random() * 2)
            at = run.moment()
            os.kill(run.process.pid, signal.SIGINT)
        said = run.end()
        if what == "session" and number != signal.SIGSTOP:
            assert "rows" not in said or said["time"] < at.time, about
        elif "rows" in said:
            assert said["rows"] == RIGHT, about
        else:
            assert said["error"] == {"budget": "BudgetExceeded"}.get(how, "KeyboardInterrupt"), (
                about
            )
            if how == "interrupt" and what != "session":
                assert at.seconds_until(said) < LIMIT_SECONDS, about
        assert not run.left(), about
