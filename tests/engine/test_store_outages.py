"""Servers of shared answers that stop for seconds, and programs that are killed, at random moments
of a query: what was paid for is stored."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, Reply, said, serving
from postgres_server import new_database, server_down

import blendfusion as bf

pytestmark = [pytest.mark.xdist_group("postgres"), pytest.mark.long]

VALUES, CONCURRENCY, SECONDS = 500, 8, 0.05
BATCH = 8 * CONCURRENCY
"""The values of the first call of the model,"""
KILLED_SECONDS = 2.0
"""and the time whose answers a kill of the program may cost: they are stored every second."""
BUCKET = "answers"

PROGRAM = """
import sys, warnings
import blendfusion as bf

if __name__ == "__main__":
    url, cache, name, values, concurrency = sys.argv[1:]
    warnings.simplefilter("ignore", bf.CacheWarning)
    session = bf.connect(f"openai:tiny@{url}", cache=cache, concurrency=int(concurrency), progress="off")
    session.from_pydict({"x": [f"value {name}-{i}" for i in range(int(values))]}, name="t")
    print("begins", flush=True)
    session.sql("SELECT llm_text('Echo', x) AS y FROM t").collect()
    session.close()
    print("ends", flush=True)
"""


class Paid:
    """A server of a model that counts its answers."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self._more = threading.Condition()

    def wait_for(self, number: int) -> None:
        """Wait until there were so many answers."""
        with self._more:
            assert self._more.wait_for(lambda: self.answers.total() >= number, 120)

    def __call__(self, body: Body) -> Reply:
        text = said(body)
        value = text[text.rindex("value ") :].split("\n")[0].strip()
        time.sleep(SECONDS)
        with self._more:
            self.answers[value] += 1
            self._more.notify_all()
        return Reply(f"echo of {value}")


@contextmanager
def postgres() -> Iterator[tuple[str, Callable[[random.Random], AbstractContextManager[None]]]]:
    yield (
        new_database(),
        lambda chance: server_down(chance.choice([signal.SIGINT, signal.SIGQUIT])),
    )


@contextmanager
def objects() -> Iterator[tuple[str, Callable[[random.Random], AbstractContextManager[None]]]]:
    moto: Any = pytest.importorskip("moto.server", reason="pip install 'moto[s3]' flask flask-cors")
    boto3: Any = pytest.importorskip("boto3", reason="pip install boto3")
    running = [moto.ThreadedMotoServer(port=0, verbose=False)]
    running[0].start()
    host, port = running[0].get_host_and_port()
    keys = {"aws_access_key_id": "reader", "aws_secret_access_key": "secret"}
    client = boto3.client(
        "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", **keys
    )
    client.create_bucket(Bucket=BUCKET)

    @contextmanager
    def down(chance: random.Random) -> Iterator[None]:
        running[0].stop()
        try:
            yield
        finally:  # its objects are in the memory of this process
            running[0] = moto.ThreadedMotoServer(port=port, verbose=False)
            running[0].start()

    try:
        yield (
            f"s3://reader:secret@{BUCKET}/a?scheme=http&endpoint_override={host}:{port}"
            "&region=us-east-1",
            down,
        )
    finally:
        running[0].stop()


def asked_again(url: str, cache: str, name: str) -> int:
    """The values whose answers are not stored, which are asked now."""
    model = f"openai:tiny@{url}"
    with bf.connect(model, cache=cache, concurrency=CONCURRENCY, progress="off") as session:
        session.from_pydict({"x": [f"value {name}-{i}" for i in range(VALUES)]}, name="t")
        frame = session.sql("SELECT llm_text('Echo', x) AS y FROM t")
        rows = frame.to_pydict()["y"]
    assert rows == [f"echo of value {name}-{i}" for i in range(VALUES)]
    return frame.trace.usage.values


@pytest.mark.parametrize("place", [postgres, objects])
def test_outages_and_kills_at_random_moments(place: Any, tmp_path: Path, cases: int) -> None:
    """Some moments of each kind; 60 with ``--cases 6000``: the place stops, the program is killed.

    An outage loses nothing, and a kill the answers of a batch at most.
    """
    chance = random.Random(49)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    paid = Paid()
    with place() as (cache, down), serving(paid) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.CacheWarning)
        for number in range(min(max(cases // 100, 3), 60)):
            kills = number % 3 == 2
            begun, length = chance.randrange(VALUES * 3 // 4), chance.uniform(0.5, 5.0)
            before = paid.answers.total()
            arguments = [server.url, cache, str(number), str(VALUES), str(CONCURRENCY)]
            run = subprocess.Popen(
                [sys.executable, str(program), *arguments], stdout=subprocess.PIPE, text=True
            )
            assert run.stdout is not None
            assert run.stdout.readline() == "begins\n"
            paid.wait_for(before + begun)
            if kills:
                run.kill()
            else:
                with down(chance):
                    time.sleep(length)
            rest = run.stdout.read()
            run.stdout.close()
            assert (run.wait(120), rest) == ((-signal.SIGKILL, "") if kills else (0, "ends\n"))
            time.sleep(2 * SECONDS)  # what the server still answers to nobody
            answered = paid.answers.total() - before
            again = asked_again(server.url, cache, str(number))
            lost = again - (VALUES - answered)
            most = BATCH + KILLED_SECONDS / SECONDS * CONCURRENCY if kills else 0
            what = "killed" if kills else f"down for {length:.2f} s"
            moment = f"{number}: after {begun} answers {what}"
            print(f"{moment}: {answered} answers, {lost} lost", flush=True)
            assert 0 <= lost <= most, (moment, answered, lost)
