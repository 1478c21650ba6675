"""Which of the true pairs does llm_same find, and how many pairs does it ask?

    python benchmarks/bench_entities.py [--data FOLDER] [--noise 0.05] [--check 100000]

Two lists of names of restaurants, papers, products and beers form one column each. "recall" is the
share of the true pairs in one entity where the model is always right; "asked" and
"candidates" are pairs per distinct name; the others follow from answers. With ``--noise``, so many answers are
wrong: precision, recall and F1 of the pairs in one entity, beside those of asking about every candidate
and closing the answers."""

from __future__ import annotations

import argparse
import sys
import time
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from entity_records import SETS, Pairs, Records, entities_of, judge, scripted
from public_sets import datasets

import blendfusion as bf
from blendfusion.udfs.columns.candidate_pairs import candidate_pairs
from blendfusion.udfs.functions.llm_same import CANDIDATES


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
    pairs = candidate_pairs(texts, CANDIDATES, None)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=datasets(), help="the folder with the sets")
    parser.add_argument("--noise", type=float, default=0.0, help="the share of wrong answers")
    parser.add_argument("--check", type=int, default=0, help="implied pairs that are checked")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data is missing: where the data sets are")
    print(
        f"{'set':18} {'names':>6} {'pairs':>6} {'recall':>7} {'asked':>6} {'candidates':>11} "
        f"{'seconds':>8}"
    )
    for records in SETS:
        measured(records, arguments.data, arguments.noise, arguments.check)


if __name__ == "__main__":
    main()
