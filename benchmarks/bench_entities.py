"""Which of the true pairs does llm_same find, and how many pairs does it ask?

    python benchmarks/bench_entities.py [--data FOLDER] [--noise 0.05] [--check 100000]
    python benchmarks/bench_entities.py --model MODEL --set em_beer [--names 60]

Two lists of names of restaurants, papers, products and beers form one column each. "recall" is the
share of the true pairs in one entity where the model is always right; "asked" and
"candidates" are pairs per distinct name; the others follow from answers. With ``--noise``, so many answers are
wrong: precision, recall and F1 of the pairs in one entity, beside those of asking about every candidate
and closing the answers.

With ``--model``, that model judges the pairs of some names, of which two thirds have a partner. LOTUS'
sem_dedup stands beside it: it asks no model, but unites the names whose cosine is above a threshold,
and is given the threshold with the best F1 on these very names."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import numpy as np
import numpy.typing as npt
from entity_records import SETS, Pairs, Records, entities_of, judge, scripted
from public_sets import datasets

import blendfusion as bf
from blendfusion.udfs.services.columns.candidate_pairs import candidate_pairs
from blendfusion.udfs.services.columns.llm_same import CANDIDATES


def together(entity_of: dict[str, object]) -> Pairs:
    """The pairs of texts in one entity."""
    members: dict[object, list[str]] = {}
    for text, entity in entity_of.items():
        members.setdefault(entity, []).append(text)
    return {frozenset(pair) for own in members.values() for pair in combinations(own, 2)}


def scores(found: Pairs, truth: Pairs) -> str:
    right = len(found & truth)
    precision, recall = right / max(1, len(found)), right / max(1, len(truth))
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return f"P {precision:.3f} R {recall:.3f} F1 {f1:.3f}"


def measured(records: Records, data: Path, noise: float, check: int) -> None:
    texts, gold = records.texts(data), records.truth(data)
    truth = entities_of(texts, gold)
    same = judge(truth, noise)
    model = scripted(same)
    session = bf.connect(model, cache=None, progress="off")
    session.from_pydict({"name": texts}, name="t")
    option = f", check => {check}" if check else ""
    start = time.perf_counter()
    rows = session.sql(f"SELECT name, llm_same(name{option}) AS entity FROM t").to_pylist()
    seconds = time.perf_counter() - start
    found: dict[str, object] = {row["name"]: row["entity"] for row in rows}
    own = together(found)
    recall = len(own & gold) / len(gold)
    pairs = candidate_pairs(texts, CANDIDATES, None).pairs
    print(
        f"{records.folder:18} {len(texts):6,} {len(gold):6,} {recall:7.3f} "
        f"{len(model.calls) / len(texts):6.2f} {len(pairs) / len(texts):11.2f} {seconds:8.1f}",
        end="",
    )
    if noise:
        yes = [(texts[a], texts[b]) for a, b in pairs if same(texts[a], texts[b])]
        every = together(dict(entities_of(texts, yes)))
        true_pairs = together(dict(truth))
        print(f"  {scores(own, true_pairs)}; all: {scores(every, true_pairs)}", end="")
    print()


def some_names(records: Records, data: Path, size: int) -> tuple[list[str], Pairs]:
    """(about ``size`` names, the true pairs among them), the same in every run"""
    random = Random(0)
    gold = sorted(map(sorted, records.truth(data)))
    chosen = random.sample(gold, min(len(gold), size // 3))
    held = {name for pair in chosen for name in pair}
    others = sorted(set(records.texts(data)) - {name for pair in gold for name in pair})
    held |= {*random.sample(others, min(len(others), max(0, size - len(held))))}
    return sorted(held), {frozenset(pair) for pair in gold if held.issuperset(pair)}


def above(texts: Sequence[str], cosines: npt.NDArray[np.float32], threshold: float) -> Pairs:
    """The pairs of names in one component of those whose cosine is above ``threshold``."""
    near = np.argwhere(np.triu(cosines > threshold, 1)).tolist()
    return together(dict(entities_of(texts, [(texts[a], texts[b]) for a, b in near])))


def judged(records: Records, data: Path, model: str, size: int, check: int) -> None:
    texts, gold = some_names(records, data, size)
    truth = together(dict(entities_of(texts, gold)))
    session = bf.connect(model, cache=None, progress="off", show_values="off")
    session.from_pydict({"name": texts}, name="t")
    option = f", check => {check}" if check else ""
    start = time.perf_counter()
    frame = session.sql(f"SELECT name, llm_same(name{option}) AS entity FROM t")
    own = together({row["name"]: row["entity"] for row in frame.to_pylist()})
    seconds = time.perf_counter() - start
    vectors = session.embedder.embed(texts)
    cosines = vectors @ vectors.T
    thresholds = [step / 100 for step in range(40, 100, 2)]
    best = max(thresholds, key=lambda one: f1_of(above(texts, cosines, one), truth))
    print(
        f"{records.folder}: {len(texts)} names, {len(truth)} pairs; {frame.trace.usage.values} asked, "
        f"{seconds:.0f} s: {scores(own, truth)}; cosine above {best}: "
        f"{scores(above(texts, cosines, best), truth)}"
    )


def f1_of(found: Pairs, truth: Pairs) -> float:
    return 2 * len(found & truth) / max(1, len(found) + len(truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=datasets(), help="the folder with the sets")
    parser.add_argument("--noise", type=float, default=0.0, help="the share of wrong answers")
    parser.add_argument("--check", type=int, default=0, help="implied pairs that are checked")
    parser.add_argument("--model", help="a model that judges, instead of one that knows")
    parser.add_argument("--set", help="one set alone")
    parser.add_argument("--names", type=int, default=60, help="names that --model judges")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data is missing: where the data sets are")
    chosen = [records for records in SETS if arguments.set in (None, records.folder)]
    if arguments.model:
        for records in chosen:
            judged(records, arguments.data, arguments.model, arguments.names, arguments.check)
        return
    print(
        f"{'set':18} {'names':>6} {'pairs':>6} {'recall':>7} {'asked':>6} {'candidates':>11} "
        f"{'seconds':>8}"
    )
    for records in chosen:
        measured(records, arguments.data, arguments.noise, arguments.check)


if __name__ == "__main__":
    main()
