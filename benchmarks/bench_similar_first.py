"""How many values does a yes/no question under a LIMIT ask, in the order of similarity and without?

    python benchmarks/bench_similar_first.py [--data FOLDER] [--limit 5] [--texts 200000]

Customers' messages (banking77) and headlines (ag_news), a question for each of their subjects, and
a model that knows every answer. The first ``--limit`` messages that pass are wanted. "as they come"
asks in the order of the file, "similar first" in the order that wordllama's vectors give; "bound"
is the limit itself. Then how long one such query takes over ``--texts`` messages, each in a new
session: with vectors made for it, and with those of an index."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import pyarrow.parquet as pq
from public_sets import datasets

import blendfusion as bf
from blendfusion.models.embedders.cache import VectorCounts

SETS = (("banking77", "messages", "text"), ("ag_news", "articles", "title"))


def asked(subjects: dict[str, set[str]], subject: str, limit: int, *, similar: bool) -> int:
    """The values that one question asks."""
    model = bf.ScriptedModel(lambda call: subject in subjects[call.values[0] or ""])
    session = bf.connect(model, cache=None, progress="off", similar_first=similar)
    session.from_pydict({"text": list(subjects)}, name="t")
    words = subject.replace("_", " ").lower()
    frame = session.sql(
        f"SELECT text FROM t WHERE llm_filter($q, text) LIMIT {limit}",
        param_values={"q": f"Is it about {words}?"},
    )
    assert frame.to_arrow_table().num_rows == limit
    return frame.trace.usage.values


def timed(data: Path, n: int) -> None:
    """What the vectors of so many texts cost, made and stored."""
    messages = pq.read_table(data / "banking77" / "messages.parquet")["text"].to_pylist()
    texts = {"text": [f"{messages[i % len(messages)]} {i}" for i in range(n)]}
    query = "SELECT text FROM t WHERE llm_filter('Is it about a lost card?', text) LIMIT 5"

    def run(folder: str, similar: bool | Literal["auto"]) -> tuple[float, VectorCounts]:
        model = bf.ScriptedModel(lambda call: True)
        session = bf.connect(model, cache=None, progress="off", similar_first=similar)
        session.from_pydict(texts, name="t")
        if similar == "auto":
            session.open_index("t", folder)
        session.embedder.embed(["the weights are loaded now"])
        start = time.perf_counter()
        frame = session.sql(query)
        frame.collect()
        return time.perf_counter() - start, frame.trace.vectors

    with tempfile.TemporaryDirectory() as folder:
        for how in (True, "auto"):
            if how == "auto":
                builder = bf.connect(None, cache=None)
                builder.from_pydict(texts, name="t")
                print(builder.index("t", columns="text", path=folder))
            seconds, vectors = run(folder, how)
            print(f"{n:,} texts: {seconds:.2f} s, vectors: {vectors}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=datasets(), help="the folder with the sets")
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--texts", type=int, default=200_000)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data is missing: where the data sets are")
    limit = arguments.limit
    print(
        f"{'set':10} {'subjects':>8} {'texts':>6} {'as they come':>13} {'similar first':>14} {'median':>7}"
    )
    for folder, name, column in SETS:
        table = pq.read_table(arguments.data / folder / f"{name}.parquet")
        subjects: dict[str, set[str]] = {}
        for text, label in zip(table[column].to_pylist(), table["label"].to_pylist(), strict=True):
            subjects.setdefault(text, set()).add(label)
        sizes = Counter(label for labels in subjects.values() for label in labels)
        wanted = sorted(label for label, n in sizes.items() if n >= limit)
        plain = [asked(subjects, s, limit, similar=False) for s in wanted]
        near = [asked(subjects, s, limit, similar=True) for s in wanted]
        ratio = statistics.median(n / p for n, p in zip(near, plain, strict=True))
        print(
            f"{folder:10} {len(wanted):8} {len(subjects):6,} {sum(plain):13,} {sum(near):14,} {ratio:7.2f}"
            f"   (bound {limit * len(wanted):,})"
        )
    print()
    timed(arguments.data, arguments.texts)


if __name__ == "__main__":
    main()
