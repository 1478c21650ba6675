"""One thread ends the work of another, wherever it is, and where it waits without surprise."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

import blendfusion as bf
from blendfusion.models.protocol import interrupts
from blendfusion.models.protocol.interrupts import hear_interrupt, interrupt, interruptible


def _start(work: Callable[[], object]) -> tuple[threading.Thread, list[str]]:
    """A thread that does the work, and how the work ended."""
    ends: list[str] = []

    def run() -> None:
        with interruptible():
            try:
                work()
            except KeyboardInterrupt:
                hear_interrupt()
                ends.append("interrupted")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(0.1)
    return thread, ends


class _SlowToGo:
    def __del__(self) -> None:
        time.sleep(0.05)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_a_finalizer_drops_is_raised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interrupts, "_GRACE_SECONDS", 0.1)
    is_busy = True

    def work() -> None:
        end = time.monotonic() + 0.4
        while is_busy:  # nearly all of the time goes to finalizers, then none
            if time.monotonic() < end:
                _SlowToGo()

    thread, ends = _start(work)
    interrupt(thread)
    thread.join(30)
    is_busy = False
    assert ends == ["interrupted"]


def _plain(session: bf.Session) -> None:
    session.sql("SELECT count(*) FROM t a, t b WHERE a.x + b.x > 3").to_arrow_table()


def _asking(session: bf.Session) -> None:
    session.sql("SELECT count(*) FROM t WHERE llm_filter('Good?', x)").to_arrow_table()


@pytest.mark.parametrize("query", [_plain, _asking])
def test_a_query_hears_an_interrupt_by_itself(
    query: Callable[[bf.Session], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "_GRACE_SECONDS", 60)

    def slow(call: bf.Call) -> bool:
        time.sleep(0.01)
        return True

    session = bf.connect(bf.ScriptedModel(slow), cache=None)
    session.from_pydict({"x": list(range(20_000))}, name="t")
    thread, ends = _start(lambda: query(session))
    interrupt(thread)
    thread.join(30)
    assert ends == ["interrupted"]


def test_no_interrupt_is_left_for_later_work() -> None:
    thread, ends = _start(lambda: time.sleep(0.2))
    interrupt(thread)
    thread.join(30)
    assert thread not in interrupts._interrupted
    assert ends in ([], ["interrupted"])


PROFILED = """
import sys, threading, time
from blendfusion.models.protocol import interrupts

interrupts._GRACE_SECONDS = float(sys.argv[1])

def wait():
    while True:
        interrupts.check_interrupt()
        time.sleep(0.01)

def work():
    with interrupts.interruptible():
        try:
            wait()
        except KeyboardInterrupt:
            interrupts.hear_interrupt()

thread = threading.Thread(target=work)
thread.start()
interrupts.interrupt(thread)
thread.join()
calls = []
sys.setprofile(lambda *event: calls.append(event))
abs(1)
(lambda: 1)()
sys.setprofile(None)
print(len(calls) > 0)
"""
"""A profiler looks on after an interrupt, which is heard (the longer grace) or raised."""


@pytest.mark.parametrize("grace", [0.0, 60.0])
def test_a_profiler_can_look_on_after_an_interrupt(grace: float) -> None:
    command = [sys.executable, "-c", PROFILED, str(grace)]
    done = subprocess.run(command, capture_output=True, timeout=60, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
