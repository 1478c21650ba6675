"""Kills of clients and of the server of Arrow Flight: answers stay, and budgets hold."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from loopback import Body, Loopback, Reply, said, serving
from pyarrow import flight

from blendfusion.services.server.messages import pack

pytestmark = pytest.mark.slow
_CLIENTS, _QUERIES, _VALUES, _BUDGET = 20, 50, 400, 300
_CLIENT = """
import sys
from pyarrow import flight
from blendfusion.services.server.messages import pack
client = flight.connect(sys.argv[1])
command = pack("CommandStatementQuery", query="SELECT llm_filter('Good?', x) AS g FROM t LIMIT 20")
info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
client.do_get(info.endpoints[0].ticket).read_chunk()
print("reads", flush=True)
sys.stdin.read()
"""


@contextmanager
def served(
    folder: Path, model: Loopback, budget: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server in a process of its own, which is killed at the end."""
    program = "from blendfusion.apps.cli.main import main; raise SystemExit(main())"
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", program, "serve", "--table", f"t={folder / 't.csv'}"),
            *("--model", f"openai:m@{model.url}", "--cache", str(folder / "answers.sqlite")),
            *("--budget", budget),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def values(address: str, sql: str) -> list[str]:
    """The values of the column x in the rows of a query."""
    command = pack("CommandStatementQuery", query=sql)
    with flight.connect(address) as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        table = client.do_get(info.endpoints[0].ticket).read_all()
    found: list[str] = table["x"].to_pylist()
    return found


def test_kills_lose_no_answer_and_exceed_no_budget(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"good v{n}\n" for n in range(_VALUES)))
    asked, bad = Counter[str](), Counter[str]()
    lock = threading.Lock()

    def script(body: Body) -> Reply:
        value = re.findall(r"good v\d+", said(body))[-1]
        with lock:
            asked[value] += 1
            bad[value] += "Bad?" in json.dumps(body)
        return Reply(json.dumps({"answer": True}))

    done, failed = Counter[str](), Counter[str]()
    delivered: dict[str, set[str]] = {}

    def ask(number: int, address: str) -> None:
        rng = random.Random(number)
        for _ in range(_QUERIES):
            start = rng.randrange(_VALUES // 2)
            query = f"SELECT x, llm_filter('Good?', x) FROM t LIMIT 3 OFFSET {start}"
            try:
                found = values(address, query)
                delivered.setdefault(address, set()).update(found)
                done[address] += 1
            except pa.ArrowException:
                failed[address] += 1

    with serving(script) as model:
        with served(tmp_path, model, f"values={_BUDGET},days=1") as (address, process):
            killed = subprocess.Popen(
                [sys.executable, "-c", _CLIENT, address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert killed.stdin is not None
            assert killed.stdout is not None
            assert killed.stdout.readline() == b"reads\n"
            killed.kill()
            killed.wait()
            killed.stdin.close()
            killed.stdout.close()
            clients = [threading.Thread(target=ask, args=(n, address)) for n in range(_CLIENTS)]
            for client in clients:
                client.start()
            while done[address] < _CLIENTS * 5 and any(c.is_alive() for c in clients):
                time.sleep(0.01)
            process.kill()
            for client in clients:
                client.join()
        before = Counter(asked)
        assert done[address] + failed[address] == _CLIENTS * _QUERIES
        assert done[address] >= _CLIENTS * 5
        assert failed[address]
        with served(tmp_path, model, f"values={_BUDGET},days=1") as (again, _):
            clients = [threading.Thread(target=ask, args=(n, again)) for n in range(_CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            for _ in range(3):  # more than the budget has
                with pytest.raises(flight.FlightError, match="budget"):
                    values(again, "SELECT x, llm_filter('Bad?', x) FROM t")
            assert sum(asked.values()) <= _BUDGET
        assert before.total() <= _BUDGET
        with served(tmp_path, model, "values=10000") as (last, _):
            assert len(values(last, "SELECT x, llm_filter('Good?', x) FROM t")) == _VALUES
        assert set(asked) == {f"good v{n}" for n in range(_VALUES)}
        for value in delivered[address]:  # an answer that a client had is not asked again
            assert asked[value] - bad[value] == before[value]
