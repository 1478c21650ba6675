"""Does llm_group find the topics of texts, beside k-means over the same vectors?

    python benchmarks/bench_groups.py [--data FOLDER] [--rows 1000] [--model auto] [--set NAME]

The V-measure (Rosenberg and Hirschberg 2007) and the adjusted Rand index (Hubert and Arabie 1985) of
groups and labels, which no model is shown: of the clusters alone, and of llm_group. LOTUS'
sem_cluster_by is the k-means of faiss over the vectors, without a model: its figures stand beside
them where faiss is installed. Without ``--model``, a model that knows the labels names a cluster
after the most frequent label of its samples, and sorts each text by its label."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from math import comb, log
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import pyarrow.parquet as pq
from public_sets import datasets

import blendfusion as bf
from blendfusion.models.embedders.embedder import Vectors
from blendfusion.models.embedders.load import load_embedder
from blendfusion.options import Options
from blendfusion.udfs.services.columns.clusters import clusters

SETS = (
    ("ag_news", "articles", "title", "label", (4, 10)),
    ("clinc150", "utterances", "text", "domain", (11, 20)),
    ("banking77", "messages", "text", "label", (20, 77)),
    ("stackexchange_coffee", "questions", "title", "tags", (10,)),
)
"""(folder, file, column of texts, column of labels, numbers of clusters); of several tags, the
first is the label"""


def v_measure(labels: Sequence[Hashable], groups: Sequence[Hashable]) -> float:
    n, joint = len(labels), Counter(zip(labels, groups, strict=True))
    by_label, by_group = Counter(labels), Counter(groups)

    def entropy(counts: Counter[Hashable]) -> float:
        return -sum(c / n * log(c / n) for c in counts.values())

    if not entropy(by_label) or not entropy(by_group):
        return 0.0
    rest = -sum(c / n * log(c / by_group[g]) for (_, g), c in joint.items())
    other = -sum(c / n * log(c / by_label[t]) for (t, _), c in joint.items())
    whole, pure = 1 - other / entropy(by_group), 1 - rest / entropy(by_label)
    return 2 * whole * pure / (whole + pure) if whole + pure else 0.0


def rand_index(labels: Sequence[Hashable], groups: Sequence[Hashable]) -> float:
    """The adjusted Rand index: 1 for equal partitions, 0 for what chance gives."""

    def pairs(counts: Counter[Hashable]) -> float:
        return sum(comb(n, 2) for n in counts.values())

    joint: Counter[Hashable] = Counter(zip(labels, groups, strict=True))
    by_label, by_group = pairs(Counter(labels)), pairs(Counter(groups))
    chance = by_label * by_group / max(1, comb(len(labels), 2))
    most = (by_label + by_group) / 2
    return 1.0 if most == chance else (pairs(joint) - chance) / (most - chance)


def of_faiss(vectors: Vectors, k: int) -> list[int] | None:
    """The clusters of LOTUS' sem_cluster_by; None without faiss."""
    try:
        faiss = import_module("faiss")
    except ImportError:
        return None
    means = faiss.Kmeans(vectors.shape[1], k, niter=20)
    means.train(vectors)
    numbers: list[int] = means.index.search(vectors, 1)[1].flatten().tolist()
    return numbers


def scored(labels: Sequence[Hashable], groups: Sequence[Hashable] | None) -> str:
    if groups is None:
        return f"{'-':>12}"
    return f"{v_measure(labels, groups):6.3f}{rand_index(labels, groups):6.3f}"


def knowing(labels: Mapping[str, str]) -> bf.ScriptedModel:
    """A model that knows the label of each text."""
    short = {" ".join(text.split())[:300]: label for text, label in labels.items()}

    def answer(request: bf.Request) -> str:
        given = str(request.values[0])
        options = request.constraint.options
        if options:
            return labels[given] if labels[given] in options else options[-1]
        lines = (line.removeprefix("- ") for line in given.splitlines())
        return Counter(short[line] for line in lines).most_common(1)[0][0]

    return bf.ScriptedModel(answer)


def measured(labels: Mapping[str, str], k: int, model: str | None) -> str:
    texts = sorted(labels)
    truth = [labels[text] for text in texts]
    vectors = load_embedder("wordllama", Options()).embed(texts)
    session = bf.connect(model or knowing(labels), cache=None, progress="off")
    session.from_pydict({"x": texts}, name="t")
    start = time.perf_counter()
    frame = session.sql(f"SELECT x, llm_group(x, into => {k}) AS g FROM t")
    group = {row["x"]: row["g"] for row in frame.to_pylist()}
    seconds = time.perf_counter() - start
    found = [group[text] for text in texts]
    return (
        f"{scored(truth, clusters(vectors, k).tolist())} {scored(truth, of_faiss(vectors, k))} "
        f"{scored(truth, found)} {len(set(found)):7} {found.count('other') / len(found):6.2f} "
        f"{frame.trace.usage.values:7,} {seconds:8.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=datasets(), help="the folder with the sets")
    parser.add_argument("--rows", type=int, default=1000, help="texts of each set")
    parser.add_argument("--model", help="a model; without it, one that knows the labels")
    parser.add_argument("--set", help="one set alone; its first number of clusters")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data is missing: where the data sets are")
    print(
        f"{'set':20} {'into':>4} {'k-means':>12} {'faiss':>12} {'llm_group':>12} {'groups':>7} "
        f"{'other':>6} {'asked':>7} {'seconds':>8}   (V-measure, adjusted Rand index)"
    )
    for folder, file, column, label, sizes in SETS:
        if arguments.set not in (None, folder):
            continue
        table = pq.read_table(arguments.data / folder / f"{file}.parquet")
        texts, given = table[column].to_pylist(), map(_first, table[label].to_pylist())
        labels = dict(list(zip(texts, given, strict=True))[: arguments.rows])
        for k in sizes[: 1 if arguments.set else None]:
            print(f"{folder:20} {k:4} {measured(labels, k, arguments.model)}", flush=True)


def _first(label: object) -> str:
    return str(label[0]) if isinstance(label, list) else str(label)


if __name__ == "__main__":
    main()
