"""Does a cascade keep what it promises, and what does it save?

    python benchmarks/bench_cascade.py --data FOLDER [--runs 200] [--rows 1000] [--small smollm2]
    [--said FILE]

The small model is the packaged one; the large one knows the labels of review_sentences. Each run is
a query in a session of its own over rows drawn anew, with a sample of its own. Printed is, for each
promise, in how many runs it was kept, what was reached in the mean and at worst, and the share of
the values that the large model was asked. The small model is run once over all rows; the runs are
told what it said; "embedding" is a classifier of vectors that each run fits anew. With ``--said``
that is kept in a file, for another time."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf
from blendfusion.models.embedders.load import load_embedder
from blendfusion.models.registry.load import load
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

QUESTION = "Is this review positive?"
PROMISES: tuple[Mapping[str, float], ...] = (
    {"accuracy": 0.8},
    {"accuracy": 0.9},
    {"accuracy": 0.95},
    {"recall": 0.8},
    {"recall": 0.9},
    {"precision": 0.9},
    {"recall": 0.8, "precision": 0.8},
    {"recall": 0.9, "precision": 0.9},
)
DELTA = 0.05


@dataclass(frozen=True)
class Small:
    """What decides before the large model."""

    model: str | bf.Model
    embedder: bf.Embedder | None = None


@dataclass(frozen=True)
class Run:
    """What one run reached, of what it promised, and the share of values asked of the large
    model."""

    kept: bool
    reached: tuple[float, ...]
    asked: float


def said_by(name: str, texts: list[str]) -> dict[str, float]:
    """How probable a model holds a yes, by text."""
    model = load(name, Options())
    task = Task("llm_filter", QUESTION, Constraint("boolean"), ("text",))
    begun = time.perf_counter()
    answers = model.answer(task, [(text,) for text in texts])
    print(f"{name}: {len(texts) / (time.perf_counter() - begun):.1f} values/s", flush=True)
    sure = [exp(answer.logprob or 0.0) for answer in answers]
    return {
        text: p if answer.text == "true" else 1 - p
        for text, answer, p in zip(texts, answers, sure, strict=True)
    }


def run(
    promise: Mapping[str, float],
    number: int,
    rows: int,
    labels: Mapping[str, bool],
    small: Small,
) -> Run:
    """One query over ``rows`` of the texts, drawn by ``number``; its question, too, is its own."""
    drawn = np.random.default_rng(number).permutation(list(labels))[:rows].tolist()
    large = bf.ScriptedModel(lambda call: labels[str(call.values[0])], name="large")
    options: dict[str, Any] = {**promise, "delta": DELTA, "progress": "off"}
    models = [small.model, large]
    with bf.connect(models, cache=None, embedder=small.embedder, **options) as session:
        session.from_arrow(pa.table({"text": drawn}), name="reviews")
        query = f"SELECT text, llm_filter('{QUESTION} ({number})', text) AS f FROM reviews"
        answers = {row["text"]: row["f"] for row in session.sql(query).to_pylist()}
    said = np.array([answers[text] for text in drawn])
    true = np.array([labels[text] for text in drawn])
    reached = {
        "accuracy": float((said == true).mean()),
        "recall": float((said & true).sum() / max(1, true.sum())),
        "precision": float((said & true).sum() / max(1, said.sum())),
    }
    kept = all(reached[name] >= target - 1e-12 for name, target in promise.items())
    return Run(kept, tuple(reached[name] for name in promise), len(large.calls) / len(drawn))


def _told(yes: Mapping[str, float]) -> Small:
    """A model that is known to have said so."""

    def odds(call: bf.Request) -> Mapping[bool, float]:
        share = yes[str(call.values[0])]
        return {True: share, False: 1 - share}

    return Small(bf.ScriptedModel(odds, name="small"))


def _vectors(texts: list[str]) -> Small:
    """A classifier of vectors that are at hand."""
    vectors = dict(zip(texts, load_embedder("auto", Options()).embed(texts), strict=True))
    embedder = bf.ScriptedEmbedder(lambda some: np.array([vectors[text] for text in some]))
    return Small("embedding", embedder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("BLENDFUSION_DATA"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--small", default="smollm2")
    parser.add_argument("--said", type=Path)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("say where the sets are: --data FOLDER, or BLENDFUSION_DATA")
    table = pq.read_table(arguments.data / "review_sentences/sentences.parquet").to_pylist()
    labels = {row["text"]: row["label"] == "positive" for row in table}
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    rows = min(arguments.rows, len(labels))
    print(f"{len(labels):,} texts, {rows:,} a run, {arguments.small} before the large model")
    yes: dict[str, float] = {}
    if arguments.small == "embedding":
        small = _vectors(list(labels))
    elif arguments.said is not None and arguments.said.exists():
        yes = json.loads(arguments.said.read_text())
    else:
        yes = said_by(arguments.small, list(labels))
    if yes:
        small = _told(yes)
        alone = np.mean([(yes[text] >= 0.5) == label for text, label in labels.items()])
        print(f"the small model alone: accuracy {alone:.3f}")
        if arguments.said is not None:
            arguments.said.write_text(json.dumps(yes))
    print()
    print("| promised | kept | reached, mean | at worst | asked of the large model | from | to |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for promise in PROMISES:
        runs = [run(promise, number, rows, labels, small) for number in range(arguments.runs)]
        reached = np.array([r.reached for r in runs])
        asked = np.array([r.asked for r in runs])
        cells = [
            ", ".join(f"{name} {target:g}" for name, target in promise.items()),
            f"{sum(r.kept for r in runs)} of {len(runs)}",
            ", ".join(f"{mean:.3f}" for mean in reached.mean(axis=0)),
            ", ".join(f"{worst:.3f}" for worst in reached.min(axis=0)),
            *(f"{share:.2f}" for share in (asked.mean(), asked.min(), asked.max())),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
