"""What does a cluster cost: bytes that move, memory and CPU of the session, time by workers?

    python benchmarks/bench_cluster.py [bytes] [memory] [cpu] [speed] [beginnings]

Workers are processes of this machine, the model is scripted: only ``speed`` has one that sleeps, 40 ms
a value, and ``beginnings`` the packaged one. Bytes are those between all processes, by the bytes of the distinct values."""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf
from blendfusion.services.cluster.processes import LocalPlace

WORDS = (Path(__file__).parent.parent / "README.md").read_text("utf-8").split()
QUERY = "SELECT count(*) AS c FROM t WHERE llm_filter('f', x)"

moved = [0]
"""Bytes between the session and its workers."""
_call = LocalPlace.call


def counted(place: LocalPlace, message: bytes) -> bytes:
    reply = _call(place, message)
    moved[0] += len(message) + len(reply)
    return reply


def written(tables: list[pa.Table]) -> Path:
    folder = Path(tempfile.mkdtemp())
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number:03}.parquet")
    return folder


def divided(values: list[str], files: int, *, shared: bool) -> Path:
    """Files that have all values each, or a part each."""
    parts = [values] * files if shared else [values[number::files] for number in range(files)]
    return written([pa.table({"x": part}) for part in parts])


def connected(
    folder: Path, workers: int | None, *, trace_calls: int = 1_000_000, batch_size: int = 64
) -> bf.Session:
    script: Any = cluster_scripts.hashed
    model = bf.ScriptedModel(script, fingerprint="h", batch_size=batch_size)
    cluster = None if workers is None else f"local:{workers}"
    session = bf.connect(
        model, cache=None, cluster=cluster, progress="off", trace_calls=trace_calls
    )
    session.register_parquet("t", str(folder))
    return session


def measure_bytes() -> None:
    rng = random.Random(0)
    texts = [f"{i} {' '.join(rng.choices(WORDS, k=30))}" for i in range(20_000)]
    short = [f"{rng.getrandbits(80):020x}" for _ in range(50_000)]
    print("| values | workers | each meets | batches | calls in the trace | all | by the session |")
    print("|---|---|---|---|---|---|---|")
    for name, values in (("30 words", texts), ("20 random digits", short)):
        for workers, shared in ((4, False), (4, True), (8, True)):
            for trace_calls, batch in ((1_000_000, 64), (1_000_000, 256), (1_000, 64)):
                folder = divided(values, 2 * workers, shared=shared)
                with connected(
                    folder, workers, trace_calls=trace_calls, batch_size=batch
                ) as session:
                    moved[0] = 0
                    session.sql(QUERY).collect()
                    assert session.cluster is not None
                    size = sum(len(value.encode()) for value in values)
                    total = (moved[0] + session.cluster.moved) / size
                    meets = "all" if shared else "some"
                    here = moved[0] / size
                    print(
                        f"| {name} | {workers} | {meets} | {batch} | {trace_calls:,} | {total:.2f} "
                        f"| {here:.2f} |"
                    )


def megabytes() -> float:
    status = Path("/proc/self/statm").read_text().split()
    return int(status[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_memory() -> None:
    """Of the session, with 20 million rows of 50 values, and with 300,000 values."""
    few = pa.table({"x": pa.array([f"value {i % 50}" for i in range(1_000_000)])})
    for name, folder, expected in (
        ("20,000,000 rows of 50 values", written([few] * 20), 50),
        (
            "300,000 values",
            divided([f"value number {i}" for i in range(300_000)], 8, shared=False),
            300_000,
        ),
    ):
        with connected(folder, 2, trace_calls=10_000, batch_size=1024) as session:
            session.sql("SELECT count(*) FROM t WHERE x = 'none' AND llm_filter('f', x)").collect()
            before, start = megabytes(), time.perf_counter()
            frame = session.sql(QUERY)
            frame.collect()
            assert frame.trace.usage.values == expected
            seconds = time.perf_counter() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            print(
                f"{name}: {megabytes() - before:.0f} MB more than before, peak {peak:.0f} MB, {seconds:.1f} s"
            )


def measure_cpu() -> None:
    """Seconds of the session for each value."""
    values = [f"{i} {' '.join(random.Random(i).choices(WORDS, k=8))}" for i in range(100_000)]
    folder = divided(values, 8, shared=False)
    for workers in (None, 2):
        with connected(folder, workers, trace_calls=1_000, batch_size=256) as session:
            for name in ("asked", "stored"):
                start, began = time.process_time(), time.perf_counter()
                session.sql(QUERY).collect()
                each = (time.process_time() - start) / len(values) * 1e6
                seconds = time.perf_counter() - began
                print(
                    f"workers {workers}, {name}: {each:.1f} µs of the session a value, {seconds:.1f} s"
                )


def measure_speed() -> None:
    script: Any = cluster_scripts.slowly
    model = bf.ScriptedModel(script, fingerprint="h", batch_size=8)
    folder = divided([f"value {i}" for i in range(800)], 16, shared=False)
    times: dict[int, float] = {}
    for workers in (1, 2, 4, 8):
        with bf.connect(model, cache=None, cluster=f"local:{workers}", progress="off") as session:
            session.register_parquet("t", str(folder))
            session.sql(
                "SELECT count(*) FROM t WHERE x = 'value 1' AND llm_filter('w', x)"
            ).collect()
            start = time.perf_counter()
            session.sql(QUERY).collect()
            times[workers] = time.perf_counter() - start
            print(
                f"{workers} workers: {times[workers]:.2f} s, {times[1] / times[workers]:.2f} times as fast"
            )


def measure_beginnings() -> None:
    """Tokens that the packaged model computes for texts with ten topics each, scattered over files."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=50)) for _ in range(24)]
    topics = [" ".join(rng.choices(WORDS, k=2)) for _ in range(10)]
    pairs = [(text, topic) for text in texts for topic in topics]
    rng.shuffle(pairs)
    parts = [pairs[number::8] for number in range(8)]
    folder = written(
        [pa.table({"x": [x for x, _ in part], "topic": [y for _, y in part]}) for part in parts]
    )
    query = "SELECT count(*) FROM t WHERE llm_filter('Is {} about {}?', x, topic)"
    for cluster in (None, "local:2", "local:4"):
        with bf.connect("smollm2", cache=None, cluster=cluster, progress="off") as session:
            session.register_parquet("t", str(folder))
            frame = session.sql(query)
            frame.collect()
            spent = frame.trace.usage
            print(
                f"{cluster}: {spent.evaluated_tokens:,} tokens computed of {spent.prompt_tokens:,}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parts = {
        "bytes": measure_bytes,
        "memory": measure_memory,
        "cpu": measure_cpu,
        "speed": measure_speed,
        "beginnings": measure_beginnings,
    }
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[*parts])
    for part in parser.parse_args().parts:
        parts[part]()


if __name__ == "__main__":
    LocalPlace.call = counted  # type: ignore[method-assign,assignment]
    main()
