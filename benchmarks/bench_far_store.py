"""What does a store of answers cost that is far away?

Run with ``python benchmarks/bench_far_store.py``, where PostgreSQL is installed: a server of a model
answers in half a second, 32 requests are in flight, and the answers go to a database behind a proxy
that delays nothing, or each way by 50 ms. The ratio should be at most 1.2. The two take turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from loopback import Body, Reply, serving
from postgres_server import new_database
from tcp_proxy import Proxy

import blendfusion as bf

IN_FLIGHT, ANSWER_SECONDS = 32, 0.5


def seconds(address: str, latency: float, values: int) -> tuple[float, float]:
    """The seconds of a query, and of the same with its answers stored."""
    head, _, name = address.rpartition("/")
    before, _, port = head.rpartition(":")

    def answer(body: Body) -> Reply:
        time.sleep(ANSWER_SECONDS)
        return Reply("yes")

    taken = []
    with Proxy(int(port), latency) as proxy, serving(answer) as server:
        for _ in range(2):
            start = time.perf_counter()
            with bf.connect(
                f"openai:tiny@{server.url}",
                cache=f"{before}:{proxy.port}/{name}",
                concurrency=IN_FLIGHT,
                progress="off",
            ) as session:
                session.from_pydict({"x": [f"value {n}" for n in range(values)]}, name="t")
                session.sql("SELECT llm_text('q', x) AS a FROM t").collect()
            taken.append(time.perf_counter() - start)
    return taken[0], taken[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    near, far = [], []
    for _ in range(arguments.rounds):
        near.append(seconds(new_database(), 0.0, arguments.values))
        far.append(seconds(new_database(), 0.1, arguments.values))
        print(f"near {near[-1][0]:.2f} s, far {far[-1][0]:.2f} s", flush=True)
    for place, what in enumerate(("asked", "stored")):
        here = statistics.median(one[place] for one in near)
        there = statistics.median(one[place] for one in far)
        print(f"{what}: near {here:.2f} s, far {there:.2f} s, ratio {there / here:.2f}")


if __name__ == "__main__":
    main()
