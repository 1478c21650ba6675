"""A server that fails, dies or comes back: nothing is lost, nothing is made up, nothing is left
open."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import chat_server
import pytest
from faults import FAULTS, FaultyServer
from loopback import Loopback, closed_port, serving

import blendfusion as bf
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.options import Options

SHARE = 0.3
VALUES = 256
QUERY = "SELECT n, llm_int('Which number?', text) AS answer FROM boxes"
DESCRIPTORS = Path("/proc/self/fd")


def model_at(
    url: str, retry: Retry, concurrency: int = 16, timeout_seconds: float = 6.0
) -> OpenAIModel:
    """Its timeout is long enough for a machine that does much else: only the silent requests meet
    it."""
    options = Options().with_(timeout_seconds=timeout_seconds, concurrency=concurrency)
    return OpenAIModel("tiny", url, None, options, retry=retry)


def session_of(model: object, numbers: range, **options: object) -> bf.Session:
    session = bf.connect(model, **{"cache": None, "progress": "off", **options})  # type: ignore[arg-type]
    texts = [f"box {n} of many" for n in numbers]
    session.from_pydict({"n": list(numbers), "text": texts}, name="boxes")
    return session


@contextmanager
def faulty(server: FaultyServer) -> Iterator[Loopback]:
    with serving(server.script) as loopback:
        try:
            yield loopback
        finally:
            server.end.set()


@pytest.mark.long
def test_with_retries_every_answer_is_right() -> None:
    faults = FaultyServer(seed=11, share=SHARE)
    retry = Retry(attempts=9, base_seconds=0.001, most_seconds=5)
    with (
        faulty(faults) as server,
        session_of(model_at(server.url, retry), range(VALUES)) as session,
    ):
        frame = session.sql(QUERY)
        answers = frame.to_pydict()
    assert answers["answer"] == answers["n"] == list(range(VALUES))
    assert frame.trace.errors.num_rows == 0
    usage = frame.trace.usage
    assert (usage.values, usage.failed, usage.calls) == (VALUES, 0, faults.asked.total())
    assert set(faults.seen) == set(FAULTS), "every way to fail was met"
    assert faults.seen.total() == pytest.approx(SHARE * faults.asked.total(), rel=0.1)


HEALTHY = 64
"""Values without a fault at first: which form of constraint a server takes is found out by several
requests, whether they may be tried again or not."""


@pytest.mark.long
def test_without_retries_exactly_the_failed_values_are_null() -> None:
    faults = FaultyServer(seed=12, share=SHARE, healthy=HEALTHY)
    failing = {n for n in range(VALUES) if faults.fault(n, 0) is not None}
    assert {faults.fault(n, 0) for n in failing} == set(FAULTS)
    retry = Retry(attempts=1)
    with (
        faulty(faults) as server,
        session_of(model_at(server.url, retry), range(VALUES)) as session,
    ):
        frame = session.sql(QUERY)
        with pytest.warns(bf.AnswerWarning, match=f"^{len(failing)} value"):
            answers = frame.to_pydict()
    assert answers["n"] == list(range(VALUES))
    assert answers["answer"] == [None if n in failing else n for n in range(VALUES)]
    usage = frame.trace.usage
    assert (usage.values, usage.failed, usage.calls) == (VALUES, len(failing), VALUES)
    listed = frame.trace.errors["values"].to_pylist()
    assert listed == [[f"box {n} of many"] for n in sorted(failing)]
    assert set(faults.asked.values()) == {1}


@pytest.mark.long
def test_without_retries_a_failed_value_raises_where_that_is_wanted() -> None:
    faults = FaultyServer(seed=12, share=SHARE, healthy=HEALTHY)
    with (
        faulty(faults) as server,
        session_of(
            model_at(server.url, Retry(attempts=1)), range(VALUES), on_error="raise"
        ) as session,
    ):
        frame = session.sql(QUERY)
        with pytest.raises(bf.AnswerError, match="no valid answer"):
            frame.collect()
        usage = frame.trace.usage
        assert usage.failed == frame.trace.errors.num_rows > 0
        assert usage.values == frame.trace.calls.num_rows == faults.asked.total()


def open_now() -> set[object]:
    """What is open, each by its own name: running threads, and descriptors where they are
    listed."""
    gc.collect()
    found: set[object] = set(threading.enumerate())
    for descriptor in DESCRIPTORS.iterdir() if DESCRIPTORS.exists() else ():
        with suppress(FileNotFoundError):  # that of the folder itself
            found.add(f"{descriptor.name} is {os.readlink(descriptor)}")
    return found


@pytest.mark.parametrize("attempts", [1, 4])
def test_nothing_stays_open(attempts: int) -> None:
    """Counted while the session is open: it keeps neither thread nor connection between queries."""
    faults = FaultyServer(seed=13, share=SHARE)
    with session_of(bf.ScriptedModel(lambda call: 1), range(10)) as session:
        session.sql(QUERY).collect()  # what DataFusion opens at its first query it keeps
    before = open_now()
    with serving(faults.script) as server:
        retry = Retry(attempts, base_seconds=0.001)
        session = session_of(model_at(server.url, retry, timeout_seconds=2.0), range(100))
        with pytest.warns(bf.AnswerWarning) if attempts == 1 else nothing():
            session.sql(QUERY).collect()
        faults.end.set()
    assert faults.seen.total() > 10
    deadline = time.monotonic() + 60
    while (left := open_now() - before) and time.monotonic() < deadline:
        time.sleep(0.02)  # threads of the test's server end after their clients
    assert left == set()
    if not DESCRIPTORS.exists():
        pytest.skip(f"threads are gone; descriptors cannot be counted: there is no {DESCRIPTORS}")
    session.close()


# ---------------------------------------------------------------- a server that dies

PATIENT = Retry(attempts=4, base_seconds=0.05, most_seconds=30)
BRIEF = Retry(attempts=4, base_seconds=0.02, most_seconds=0.3)


@contextmanager
def server_process(port: int, *most: int) -> Iterator[subprocess.Popen[bytes]]:
    """A chat server that writes a byte whenever it answers; it accepts connections already.
    ``most``: so many answers, and silence after them."""
    code = [sys.executable, str(Path(chat_server.__file__)), *map(str, (port, *most))]
    process = subprocess.Popen(code, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.read(1) == chat_server.READY
        yield process
    finally:
        process.kill()
        process.communicate()


ANSWERS = 50
"""What a server gives before it is killed."""


def kill_after_its_answers(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    process.stdout.read(ANSWERS)
    process.kill()
    process.wait()


def test_a_server_that_is_killed_and_started_again_is_not_noticed() -> None:
    port = closed_port()
    url = f"http://127.0.0.1:{port}/v1"
    with ExitStack() as processes:

        def restart() -> None:
            kill_after_its_answers(first)
            time.sleep(0.3)
            processes.enter_context(server_process(port))

        first = processes.enter_context(server_process(port, ANSWERS))
        with session_of(model_at(url, PATIENT, concurrency=4), range(200)) as session:
            restarter = threading.Thread(target=restart)
            restarter.start()
            frame = session.sql(QUERY)
            answers = frame.to_pydict()
            restarter.join()
    assert answers["answer"] == list(range(200))
    assert frame.trace.usage.failed == 0
    assert frame.trace.usage.calls <= 200 + 2 * 4, "waiting for a server costs no tries"


def test_what_a_server_answered_before_it_died_is_not_asked_again(tmp_path: Path) -> None:
    port = closed_port()
    model = model_at(f"http://127.0.0.1:{port}/v1", BRIEF, concurrency=4)
    with session_of(model, range(200), cache=tmp_path / "answers.sqlite") as session:
        frame = session.sql(QUERY)
        killed_at: list[float] = []

        def kill() -> None:
            kill_after_its_answers(first)
            killed_at.append(time.monotonic())

        with server_process(port, ANSWERS) as first:
            killer = threading.Thread(target=kill)
            killer.start()
            with pytest.raises(bf.ModelFailed, match="is gone") as raised:
                frame.collect()
            ended_at = time.monotonic()
            killer.join()
        assert ended_at - killed_at[0] < 30, "a minute is the usual patience"
        assert raised.value.retryable
        kept = frame.trace.usage.values
        assert ANSWERS - 4 <= kept <= ANSWERS, "the last may not have arrived"
        assert frame.trace.errors.num_rows == 0
        faults = FaultyServer(seed=0, share=0.0)
        with serving(faults.script, port=port):
            assert frame.to_pydict()["answer"] == list(range(200))
        assert faults.asked.total() == 200 - kept


@contextmanager
def nothing() -> Iterator[None]:
    yield
