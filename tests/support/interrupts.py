"""Queries in processes of their own, to which a signal is sent; also the program that runs there."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass

LONG = "The zip broke, and nobody has answered my letters about it for weeks. " * 40

QUERIES = {
    "filter": "SELECT x FROM t WHERE llm_filter('Is it good?', x)",
    "long": "SELECT x FROM long WHERE llm_filter('Is it good?', x)",
    "text": "SELECT llm_map('Tell a long story about it', x) AS y FROM t",
    "create": "CREATE TABLE u AS SELECT x FROM t WHERE llm_filter('Is it good?', x)",
    "scan": "SELECT n FROM (SELECT count(*) AS n FROM range(0, 300000) a JOIN range(0, 300000) b "
    "ON a.value < b.value) WHERE llm_filter('Is it good?', CAST(n AS VARCHAR))",
}


@dataclass(frozen=True)
class Interrupted:
    """What came of a process: seconds from the signal to the KeyboardInterrupt, to the end."""

    raised_seconds: float
    ended_seconds: float
    status: int
    said: str


def interrupted(model: str, query: str, cache: str, *, planner: bool, after: float) -> Interrupted:
    """Run a query, send Ctrl-C ``after`` seconds of work on it, and wait for the end."""
    arguments = [sys.executable, "-W", "error", __file__, model, query, cache, str(planner)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first == "begins\n", first + process.stdout.read()
            time.sleep(after)
            sent = time.time()
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    ended = time.time()
    times = [line.split()[1] for line in said.splitlines() if line.startswith("interrupted ")]
    assert len(times) == 1, said
    return Interrupted(float(times[0]) - sent, ended - sent, process.returncode, said)


def main(model: str, query: str, cache: str, planner: str) -> None:
    import blendfusion as bf

    def slow(_call: bf.Request) -> bool:
        time.sleep(0.05)
        return True

    asked = bf.ScriptedModel(slow, fingerprint="slow") if model == "scripted" else model
    session = bf.connect(asked, cache=cache, progress="off", planner=planner == "True")
    session.from_pydict({"x": [f"value {i}" for i in range(400)]}, name="t")
    session.from_pydict({"x": [f"{i} {LONG}" for i in range(400)]}, name="long")
    if model == "smollm2":
        one = "FROM (SELECT x FROM t LIMIT 1) AS s"
        session.sql(QUERIES["filter"].replace("FROM t", one)).collect()  # loads it
    try:
        print("begins", flush=True)
        session.sql(QUERIES[query]).collect()
    except KeyboardInterrupt:
        print("interrupted", time.time(), flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:])
