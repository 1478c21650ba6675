"""Model servers that die, come back and are added while the workers of a cluster ask them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback import closed_port

import blendfusion as bf

SERVER = """
import json, sys, time
from pathlib import Path
from loopback import Loopback, Reply, said

def script(body):
    with Path(sys.argv[2]).open("a") as log:
        log.write(said(body).rpartition("Text: ")[2] + "\\n")
    time.sleep(0.05)
    return Reply(json.dumps({"answer": "Yes"}))

Loopback(script, ("tiny",), int(sys.argv[1]))
"""


class Fleet:
    """Servers as processes, by name, and what each was asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports: dict[str, int] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.file = folder / "servers.txt"

    def start(self, name: str) -> None:
        port = self._ports.setdefault(name, closed_port())
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", SERVER, str(port), str(self._folder / name)]
        self._processes[name] = subprocess.Popen(command, env=environment)

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def list(self, *names: str) -> None:
        """These are the servers from now on."""
        urls = "".join(f"http://127.0.0.1:{self._ports[name]}/v1\n" for name in names)
        new = self.file.with_suffix(".new")
        new.write_text(f"# the fleet\n{urls}")
        new.replace(self.file)

    def asked(self, name: str) -> list[str]:
        noted = self._folder / name
        return noted.read_text().splitlines() if noted.exists() else []

    def close(self) -> None:
        for name in [*self._processes]:
            self.kill(name)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / "fleet").mkdir()
    made = Fleet(tmp_path / "fleet")
    yield made
    made.close()


def when(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_servers_come_and_go_while_a_query_runs(tmp_path: Path, fleet: Fleet) -> None:
    (tmp_path / "t").mkdir()
    values = [f"value {number}" for number in range(2_000)]
    for place in range(8):
        pq.write_table(pa.table({"x": values[place::8]}), tmp_path / f"t/{place}.parquet")
    for name in ("first", "second"):
        fleet.start(name)
    fleet.list("first", "second")
    rows: list[int] = []
    with bf.connect(
        f"openai:tiny@{fleet.file.as_uri()}",
        cache=tmp_path / "answers.sqlite",
        cluster="local:2",
        concurrency=4,
        progress="off",
    ) as session:
        session.register_parquet("t", str(tmp_path / "t"))
        frame = session.sql("SELECT x FROM t WHERE llm_filter('Is it?', x)")
        query = threading.Thread(target=lambda: rows.append(len(frame.to_pylist())))
        query.start()
        when(lambda: len(fleet.asked("first")) > 100)
        fleet.kill("first")
        before = len(fleet.asked("first"))
        fleet.start("third")
        fleet.list("first", "second", "third")
        when(lambda: len(fleet.asked("third")) > 100)
        fleet.list("first", "third")
        fleet.start("first")
        when(lambda: len(fleet.asked("first")) > before + 50)
        gone = len(fleet.asked("second"))
        query.join()
        assert rows == [2_000]
        assert len(fleet.asked("second")) < gone + 100, "it was taken from the list"
        assert frame.trace.usage.values == 2_000
        again = session.sql("SELECT x FROM t WHERE llm_filter('Is it?', x)")
        assert len(again.to_pylist()) == 2_000
        assert again.trace.usage.values == 0
    asked = Counter(x for name in ("first", "second", "third") for x in fleet.asked(name))
    assert set(asked) == set(values)
    assert sum(asked.values()) <= 2_000 + 2 * 4, "the requests in flight at the kill"
