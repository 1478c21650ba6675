"""What does it cost to tell logs and OpenTelemetry of a run, where nobody listens, and where
somebody does?

Run with ``python benchmarks/bench_observation.py``. Queries run in pairs, one after the other in
turns, told and not told, over a model that costs nothing; the ratio is of their CPU times."""

from __future__ import annotations

import argparse
import logging
import statistics
from collections.abc import Callable
from contextlib import nullcontext
from time import process_time
from typing import Any

from bench_overhead import OURS, ROWS, count, session, table

import blendfusion as bf
from blendfusion.run.reports.run_telemetry import Watch

_SILENT: dict[str, Callable[..., Any]] = {
    "begin": lambda self: None,
    "end": lambda self, *told: None,
    "stage": lambda self, number, counts: nullcontext(),
    "asking": lambda self, task, n: nullcontext(),
    "batch": lambda self, task, n, spent: None,
}
_TOLD = {name: getattr(Watch, name) for name in _SILENT}


def ratio(run: Callable[[], object], rounds: int) -> str:
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for i in range(2 * rounds):
        told = (i % 4) in (0, 3)
        for name, method in (_TOLD if told else _SILENT).items():
            setattr(Watch, name, method)
        start = process_time()
        run()
        seconds[told].append(process_time() - start)
    for name, method in _TOLD.items():
        setattr(Watch, name, method)
    shares = [a / b for a, b in zip(seconds[True], seconds[False], strict=True)]
    return f"{statistics.median(shares):.3f} (of {statistics.median(seconds[False]) * 1e3:.1f} ms)"


def many_values(values: int) -> Callable[[], object]:
    made = bf.connect(bf.ScriptedModel(lambda call: True), progress="off", cache=None)
    made.from_pydict({"x": [f"value {i}" for i in range(values)]}, name="t")
    frame = made.sql("SELECT count(*) FROM t WHERE llm_filter('q', x)")

    def run() -> None:
        made.clear_cache()
        frame.collect()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    context = session(table(ROWS))
    cases: list[tuple[str, Callable[[], object], int]] = [
        ("1,000,000 rows, 1,000 values", lambda: count(context, OURS), rounds),
        ("20,000 values, 313 batches", many_values(20_000), rounds),
        ("one value", many_values(1), 10 * rounds),
    ]
    for name, run, times in cases:
        print(f"{name}: told to nobody / not told: {ratio(run, times)}")
    handler = logging.NullHandler()
    root = logging.getLogger("blendfusion")
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    for name, run, times in cases:
        print(f"{name}: every record made / not told: {ratio(run, times)}")


if __name__ == "__main__":
    main()
