"""Queries in processes of their own, to which a signal is sent; also the program that runs
there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

LONG = "The zip broke, and nobody has answered my letters about it for weeks. " * 40
ANSWERED = "answered\n"
"""What the program writes when an answer has been told."""
_HUNG_SECONDS = 300

QUERIES = {
    "filter": "SELECT x FROM t WHERE llm_filter('Is it good?', x)",
    "long": "SELECT x FROM long WHERE llm_filter('Is it good?', x)",
    "text": "SELECT llm_map('Tell a long story about it', x) AS y FROM t",
    "create": "CREATE TABLE u AS SELECT x FROM t WHERE llm_filter('Is it good?', x)",
    "scan": "SELECT n FROM (SELECT count(*) AS n FROM range(0, 300000) a JOIN range(0, 300000) b "
    "ON a.value < b.value) WHERE llm_filter('Is it good?', CAST(n AS VARCHAR))",
}

Wait = Callable[[TextIO], str]
"""Returns when it is time for the signal; what it has read of the program's output until then."""


def seconds(number: float) -> Wait:
    def wait(output: TextIO) -> str:
        time.sleep(number)
        return ""

    return wait


def answers(number: int) -> Wait:
    """Wait until so many answers were told."""

    def wait(output: TextIO) -> str:
        lines = [output.readline() for _ in range(number)]
        assert lines == [ANSWERED] * number, "".join(lines) + output.read()
        return "".join(lines)

    return wait


@dataclass(frozen=True)
class Interrupted:
    """What came of a process: seconds from the signal to the KeyboardInterrupt, answers that were
    told before."""

    raised_seconds: float
    answered: int
    status: int
    said: str


def interrupted(model: str, query: str, cache: str, *, planner: bool, after: Wait) -> Interrupted:
    """Run a query, send Ctrl-C after some work on it, and wait for the end."""
    arguments = [sys.executable, "-W", "error", __file__, model, query, cache, str(planner)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        hung = threading.Timer(_HUNG_SECONDS, process.kill)
        hung.start()
        try:
            first = process.stdout.readline()
            assert first == "begins\n", first + process.stdout.read()
            said = after(process.stdout)
            sent = time.time()
            process.send_signal(signal.SIGINT)
            said += process.stdout.read()
            process.wait()
        finally:
            hung.cancel()
            process.kill()
    times = [line.split()[1] for line in said.splitlines() if line.startswith("interrupted ")]
    assert len(times) == 1, said
    return Interrupted(
        float(times[0]) - sent, said.count(ANSWERED), process.returncode, said.replace(ANSWERED, "")
    )


def main(model: str, query: str, cache: str, planner: str) -> None:
    import blendfusion as bf
    from blendfusion.models.protocol.model import OnAnswer, Values
    from blendfusion.models.services.llama.model import LlamaModel
    from blendfusion.types import Answer, Task

    def write_what_is_told(kind: Any) -> None:
        """Have models of a kind write a line whenever they have told an answer."""
        asked = kind.answer_each

        def answer_each(
            self: Any, task: Task, rows: Sequence[Values], told: OnAnswer
        ) -> list[Answer]:
            def tell(place: int, answer: Answer) -> None:
                told(place, answer)
                os.write(sys.stdout.fileno(), ANSWERED.encode())  # whole, whenever the signal comes

            answers: list[Answer] = asked(self, task, rows, tell)
            return answers

        kind.answer_each = answer_each

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
    write_what_is_told(bf.ScriptedModel)
    write_what_is_told(LlamaModel)
    try:
        print("begins", flush=True)
        session.sql(QUERIES[query]).collect()
    except KeyboardInterrupt:
        print("interrupted", time.time(), flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:])
