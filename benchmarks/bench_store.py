"""How long does it take to look answers up, and to keep them, where many are stored already?

Run with ``python benchmarks/bench_store.py``: a file of 1,000,000 answers to ten questions, in a
temporary folder; then look-ups of 100,000 values of one question, of which all, half or none are
stored, and batches of 64 new answers. And the same with 1,000,000 answers to one question, of which
100,000 anywhere are looked up.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from blendfusion.models.stores.memory import AnswerStore, MemoryStore
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.types import Answer, Constraint, Task

MODEL = "a fingerprint"
QUESTIONS = 10
LOOKED_UP = 100_000
BATCH = 64


def task(number: int) -> Task:
    return Task("llm_filter", f"Is it question {number}?", Constraint("boolean"), ("x",))


def values(start: int, stop: int) -> list[tuple[str]]:
    return [
        (f"Customer note number {i} of the set, received by mail.",) for i in range(start, stop)
    ]


def answers(start: int, stop: int) -> dict[tuple[str | None, ...], Answer]:
    texts = ("true", "false")
    return {
        v: Answer(texts[i % 2], logprob=-1 / (i + 1))
        for i, v in enumerate(values(start, stop), start)
    }


def seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def look_up(
    store: AnswerStore, wanted: list[tuple[str]], expected: int, rounds: int
) -> list[float]:
    found: list[int] = []
    taken = [
        seconds(lambda: found.append(len(store.get_many(MODEL, task(3), wanted))))
        for _ in range(rounds)
    ]
    assert set(found) == {expected}
    return taken


def show(what: str, taken: list[float]) -> None:
    print(f"{what:58} {statistics.median(taken) * 1e3:10.1f} {min(taken) * 1e3:8.1f}", flush=True)


def measure(name: str, store: AnswerStore, entries: int, rounds: int) -> None:
    each = entries // QUESTIONS
    filled = 0.0
    for number in range(QUESTIONS):
        given = answers(0, each)
        filled += seconds(lambda n=number, a=given: store.store_many(MODEL, task(n), a))  # type: ignore[misc]
    print(f"{name}: {entries:,} entries kept in {filled:.1f} s, {store.stats().bytes / 1e6:.0f} MB")
    print(f"{'':58} {'median ms':>10} {'min ms':>8}")
    for stored, start in ((each, 0), (each // 2, each // 2), (0, each)):
        wanted = values(start, start + LOOKED_UP)
        shown = f"look up {LOOKED_UP:,}, {min(stored, LOOKED_UP):,} of them stored"
        show(shown, look_up(store, wanted, min(stored, LOOKED_UP), rounds))
    batches = [answers(entries + i * BATCH, entries + (i + 1) * BATCH) for i in range(10 * rounds)]
    show(
        f"keep {BATCH} new ones",
        [seconds(lambda a=a: store.store_many(MODEL, task(3), a)) for a in batches],  # type: ignore[misc]
    )


def measure_scattered(store: AnswerStore, entries: int, rounds: int) -> None:
    """Keys that lie far apart: one page of the file for each."""
    store.store_many(MODEL, task(3), answers(0, entries))
    wanted = random.Random(1).sample(values(0, entries), LOOKED_UP)
    show(
        f"look up {LOOKED_UP:,} anywhere among {entries:,} of one question",
        look_up(store, wanted, LOOKED_UP, rounds),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "answers.sqlite")
        measure("a file", store, arguments.entries, arguments.rounds)
        store.close()
        other = SqliteStore(Path(folder) / "one.sqlite")
        measure_scattered(other, arguments.entries, arguments.rounds)
        other.close()
    measure("memory", MemoryStore(), arguments.entries, arguments.rounds)


if __name__ == "__main__":
    main()
