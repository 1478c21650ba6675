"""A query that is killed again and again, over one place of answers, continues where it stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from loopback import Body, Reply, said, serving
from stores import TIMED_KINDS, place

VALUES = 2_000
KILLS = 20
CONCURRENCY = 4
BATCH = 8 * CONCURRENCY
"""Values that one call of the model gets: what a kill may cost."""

# The parent process imports once; each run is a fork of it, so that twenty of them take seconds.
RUNNER = """
import os, sys
import blendfusion as bf

def run():
    with bf.connect({spec!r}, cache={cache!r}, concurrency={concurrency}, progress="off") as session:
        session.from_pydict({{"x": [f"value {{i}}" for i in range({values})]}}, name="t")
        rows = session.sql("SELECT llm_text('Echo', x) AS y FROM t").to_pydict()["y"]
        print("\\n".join(rows), flush=True)

print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


def value_of(body: Body) -> str:
    text = said(body)
    return text[text.rindex("value ") :].split("\n")[0].strip()


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("kind", TIMED_KINDS)
def test_a_killed_query_continues_where_it_stopped(kind: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    asked: Counter[str] = Counter()
    lock = threading.Lock()
    last = [0]
    """So many requests are answered; those beyond wait until the process is killed."""
    reached, killed = threading.Event(), threading.Event()

    def script(body: Body) -> Reply:
        value = value_of(body)
        with lock:
            asked[value] += 1
            held = asked.total() > last[0]
        if held:
            reached.set()
        else:
            time.sleep(0.001)
        return Reply(f"echo of {value}", wait=killed if held else None)

    with serving(script) as server:
        code = RUNNER.format(
            spec=f"openai:tiny@{server.url}",
            cache=place(kind, tmp_path),
            concurrency=CONCURRENCY,
            values=VALUES,
        )
        runner = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert runner.stdin is not None
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"

        def begin() -> int:
            runner.stdin.write("run\n")
            runner.stdin.flush()
            return int(runner.stdout.readline())

        for _ in range(KILLS):
            reached.clear()
            killed.clear()
            with lock:
                last[0] = asked.total() + rng.randint(1, 3 * BATCH)
            child = begin()
            assert reached.wait(60)
            time.sleep(rng.random() * 0.02)
            os.kill(child, signal.SIGKILL)
            assert runner.stdout.readline() == "ended\n"
            killed.set()
        before_last = len(asked)
        last[0] = sys.maxsize
        begin()
        rows = [runner.stdout.readline().rstrip("\n") for _ in range(VALUES)]
        assert runner.stdout.readline() == "ended\n"
        runner.stdin.close()
        assert runner.wait(60) == 0
        runner.stdout.close()

    assert rows == [f"echo of value {i}" for i in range(VALUES)]
    assert set(asked) == {f"value {i}" for i in range(VALUES)}
    assert before_last < VALUES, "the last run had something to do"
    assert asked.total() <= VALUES + KILLS * BATCH
    assert max(asked.values()) <= KILLS + 1
