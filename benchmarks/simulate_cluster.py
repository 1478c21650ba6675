"""Where is the bottleneck of a cluster, and what does a query cost? A discrete simulation.

Workers scan files and send distinct values to the owners of their ranges, one on each worker, from
whom model servers pull batches; the session counts them. The rates of BlendFusion are measured (benchmarks/README.md, "Clusters"); those of servers
and prices are assumptions, given as options.

    python benchmarks/simulate_cluster.py
    python benchmarks/simulate_cluster.py --rows 1e9 --values 1e7 --servers 64 --answers-per-second 200
"""

from __future__ import annotations

import argparse
import heapq
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Measured, except for the last three."""

    scanned: float = 1.6e6
    """Rows a second that one worker scans, filters and matches with answers."""
    arrives: float = 6.1e-6
    """Seconds of an owner for a value that a worker sends, known or not."""
    asks: float = 35e-6
    """Seconds of an owner for a value that goes to a model and back."""
    counts: float = 4.7e-6
    """Seconds of the session for a value that goes to a model."""
    value_bytes: float = 160.0
    named_in: float = 2.9
    """The bytes by which a worker names a value, whoever has sent it before."""
    moves: float = 0.37
    """Bytes of a value and its answer on their ways, compressed, by those of the value."""
    answers: float = 50.0
    """Answers a second of one model server."""
    batch: int = 256
    price: float = 2.0
    """Of an hour of a server, in any currency."""


@dataclass(frozen=True)
class Result:
    seconds: float
    busy: dict[str, float]
    """The share of the time in which each part works."""
    moved: float
    """Bytes that travel, by those of the distinct values."""
    cost: float

    @property
    def bottleneck(self) -> str:
        """The busiest part."""
        return max(self.busy, key=self.busy.__getitem__)


def simulated(rows: float, values: float, workers: int, files: int, rates: Rates) -> Result:
    """A run over ``files`` of equal length with values in random order."""
    per_file = rows / files
    seen = values * -math.expm1(-per_file / values)  # distinct values of a file (a random one)
    events = [(per_file / rates.scanned * (i // workers + 1), i) for i in range(files)]
    heapq.heapify(events)
    servers = [0.0] * workers
    heapq.heapify(servers)
    session, scan_busy, session_busy, server_busy = 0.0, 0.0, 0.0, 0.0
    owners, owners_busy = 0.0, 0.0
    known, sent, waiting, end = 0.0, 0.0, 0.0, 0.0
    by_worker = [0.0] * workers
    while events:
        ready, number = heapq.heappop(events)
        scan_busy += per_file / rates.scanned
        worker = number % workers
        fresh = seen * (1 - by_worker[worker] / values)  # the rest this worker remembers
        by_worker[worker] += fresh
        sent += fresh
        new = seen * (1 - known / values)
        known += new
        took = (fresh * rates.arrives + new * rates.asks) / workers
        owners = max(owners, ready) + took
        owners_busy += took
        session = max(session, owners) + new * rates.counts
        session_busy += new * rates.counts
        waiting += new
        while waiting >= rates.batch or (waiting > 0 and not events):
            size = min(waiting, rates.batch * max(1.0, waiting // (rates.batch * 4 * workers)))
            free = max(heapq.heappop(servers), session)
            took = size / rates.answers
            server_busy += took
            heapq.heappush(servers, free + took)
            end = max(end, free + took)
            waiting -= size
    seconds = max(end, session)
    return Result(
        seconds,
        {
            "scan": scan_busy / workers / seconds,
            "owners": owners_busy / seconds,
            "session": session_busy / seconds,
            "servers": server_busy / workers / seconds,
        },
        rates.moves + sent * rates.named_in / (known * rates.value_bytes),
        workers * rates.price * seconds / 3600,
    )


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def main() -> None:
    """Print a table of sizes, or one size."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=float)
    parser.add_argument("--values", type=float, default=1e7)
    parser.add_argument("--servers", type=int, default=64)
    parser.add_argument("--answers-per-second", type=float, default=Rates.answers)
    parser.add_argument("--price", type=float, default=Rates.price)
    given = parser.parse_args()
    rates = Rates(answers=given.answers_per_second, price=given.price)
    sizes = [
        (1e6, 1e4, 1),
        (1e6, 1e4, 8),
        (1e8, 1e6, 8),
        (1e8, 1e6, 64),
        (1e9, 1e6, 64),
        (1e9, 1e7, 64),
        (1e9, 1e7, 1024),
    ]
    if given.rows:
        sizes = [(given.rows, given.values, given.servers)]
    print(
        "| rows | values | servers | time | bottleneck | scan | owners | session | servers busy | bytes | cost |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for rows, values, servers in sizes:
        files = max(4 * servers, int(rows // 1e6))
        r = simulated(rows, values, servers, files, rates)
        shares = " | ".join(f"{share:.0%}" for share in r.busy.values())
        print(
            f"| {rows:.0e} | {values:.0e} | {servers} | {_time(r.seconds)} | {r.bottleneck} | "
            f"{shares} | {r.moved:.1f}× | {r.cost:,.2f} |"
        )


if __name__ == "__main__":
    main()
