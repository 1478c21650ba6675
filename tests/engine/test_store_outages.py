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
from typing import Any, TypeAlias

import pytest
from loopback import Body, Reply, said, serving
from postgres_server import new_database, server_down

import blendfusion as bf

pytestmark = [pytest.mark.xdist_group("postgres"), pytest.mark.long]

VALUES, CONCURRENCY, SECONDS = 500, 8, 0.05
BATCH = 8 * CONCURRENCY
"""The values of the first call of the model: the most answers that a kill may cost."""
BUCKET = "answers"
Down: TypeAlias = "Callable[[random.Random], AbstractContextManager[None]]"
"""Stops a place in a block."""

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
def postgres() -> Iterator[tuple[str, Down]]:
    yield (
        new_database(),
        lambda chance: server_down(chance.choice([signal.SIGINT, signal.SIGQUIT])),
    )


@contextmanager
def objects() -> Iterator[tuple[str, Down]]:
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


@pytest.fixture(scope="module", params=[postgres, objects])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[str, Down]]:
    with request.param() as made:
        yield made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "moment" in metafunc.fixturenames:
        moments = min(max(metafunc.config.getoption("--cases") // 300, 3), 60)
        metafunc.parametrize("moment", range(moments))


def test_outages_and_kills_at_random_moments(
    place: tuple[str, Down], moment: int, tmp_path: Path
) -> None:
    """Three moments; 60 with ``--cases 18000``: the place stops, the program is killed, or it is
    killed while the place stands still. An outage loses nothing, and a kill a batch at most."""
    chance, kills = random.Random(moment), moment % 3 > 0
    begun, length = chance.randrange(VALUES * 3 // 4), chance.uniform(0.5, 5.0)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    paid, (cache, down) = Paid(), place
    with serving(paid) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.CacheWarning)
        # The same model at another address is another one.
        arguments = [server.url, cache, str(moment), str(VALUES), str(CONCURRENCY)]
        run = subprocess.Popen(
            [sys.executable, str(program), *arguments], stdout=subprocess.PIPE, text=True
        )
        assert run.stdout is not None
        assert run.stdout.readline() == "begins\n"
        paid.wait_for(begun)
        if moment % 3 == 2:
            run.kill()
        else:
            with down(chance):
                killed = chance.uniform(0.1, length)
                time.sleep(killed if kills else length)
                if kills:
                    run.kill()
                    time.sleep(length - killed)
        rest = run.stdout.read()
        run.stdout.close()
        assert (run.wait(120), rest) == ((-signal.SIGKILL, "") if kills else (0, "ends\n"))
        time.sleep(2 * SECONDS)  # what the server still answers to nobody
        answered = paid.answers.total()
        lost = asked_again(server.url, cache, str(moment)) - (VALUES - answered)
    what = (f"down for {length:.2f} s", f"killed when down for {length:.2f} s", "killed")[
        moment % 3
    ]
    print(f"{moment}: after {begun} answers {what}: {answered} answers, {lost} lost", flush=True)
    assert 0 <= lost <= (BATCH if kills else 0)
