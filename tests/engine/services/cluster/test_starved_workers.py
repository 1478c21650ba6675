"""A worker that waits for a CPU is alive, however long it says nothing; one that is stopped is
not."""

from __future__ import annotations

import multiprocessing.connection
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from blendfusion.services.cluster.processes import _Pulse
from blendfusion.services.cluster.starvation import waited_seconds

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/schedstat"), reason="this system does not tell who waits"
)
TICKS = 200
TICK_SECONDS = 0.1


def silence(waited: Callable[[int], float], monkeypatch: pytest.MonkeyPatch) -> float:
    """The silence that is counted of a process that never beats, after 20 s."""
    monkeypatch.setattr("blendfusion.services.cluster.processes.waited_seconds", waited)
    here, there = multiprocessing.connection.Pipe()
    pulse = _Pulse(here, 0)
    for _ in range(TICKS):
        pulse.count(TICK_SECONDS, 1)
    here.close()
    there.close()
    return pulse.silent_seconds


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 20.0), (0.5, 10.8), (0.95, 2.52), (1.0, 1.6), (4.0, 1.6), (-1.0, 20.0)],
)
def test_the_time_in_which_a_process_waits_for_a_cpu_is_no_silence(
    share: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``share``: the seconds a second in which its threads wait."""
    now = [0.0]

    def waited(process: int) -> float:
        now[0] += share * TICK_SECONDS
        return now[0]

    assert silence(waited, monkeypatch) == pytest.approx(expected)


def test_a_process_that_is_stopped_does_not_wait_for_a_cpu() -> None:
    busy = "while True: pass"
    command = [sys.executable, "-c", busy]
    cpus = os.sched_getaffinity(0)
    one = {min(cpus)}
    os.sched_setaffinity(0, one)  # of two processes on one CPU, each waits half of the time
    try:
        others = [subprocess.Popen(command) for _ in range(2)]
    finally:
        os.sched_setaffinity(0, cpus)
    try:
        first = others[0].pid
        time.sleep(0.5)
        before = waited_seconds(first)
        time.sleep(1.0)
        assert waited_seconds(first) - before > 0.2
        os.kill(first, signal.SIGSTOP)
        time.sleep(0.1)
        before = waited_seconds(first)
        time.sleep(0.5)
        assert waited_seconds(first) == before
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_a_process_that_is_gone_waits_for_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert waited_seconds(ended.pid) == 0.0
