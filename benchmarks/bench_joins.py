"""How many of the true pairs does a join by meaning find, and how many values does it ask?

    python benchmarks/bench_joins.py [--data FOLDER] [--rows 60]

Three sets of records that mean the same (restaurants, papers, products), joined by their names.
"recall" is the share of the true pairs of names that are equal, alike, or among the k candidates:
what a perfect model would find; "by places" is what EXPLAIN ANALYZE estimates it to be from the
places of the chosen, "by sample" with ``check => 30`` (and at least so much, at 95 % confidence).
"asked" is what such a model is asked, "fewer" how many times fewer than all pairs of distinct
names. For texts and their labels, which look nothing alike, the share is told with candidates found
by words, and by words and vectors in turn, as ``how =>`` has it. "model" is the packaged one:
precision and recall of the pairs that it chooses for the first ``--rows`` names that have to be
asked, and for all that need no model."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import pyarrow.parquet as pq
from entity_records import SETS as ALL_SETS
from entity_records import Records
from public_sets import datasets

import blendfusion as bf
from blendfusion.models.embedders.load import load_embedder
from blendfusion.options import Options
from blendfusion.udfs.declare.pairing import CANDIDATES
from blendfusion.udfs.joins.matcher import Domain

Pairs = set[tuple[str, str]]


SETS = ALL_SETS[:3]

LABELLED = (("banking77", "messages", "label"), ("clinc150", "utterances", "intent"))


def knowing(truth: Pairs) -> Callable[[bf.Request], list[str]]:
    """A model that chooses every true match among its candidates."""
    right: dict[str, set[str]] = {}
    for a, b in truth:
        right.setdefault(a, set()).add(" ".join(b.split()))

    def choose(call: bf.Request) -> list[str]:
        value, candidates = call.values
        wanted = right.get(value or "", set())
        lines = (candidates or "").splitlines()
        return [str(i) for i, line in enumerate(lines, 1) if line.split(". ", 1)[1] in wanted]

    return choose


def join(session: bf.Session, k: int, *, many: bool, check: int = 0) -> bf.Frame:
    """The pairs of names that match."""
    return session.sql(
        "SELECT DISTINCT l.name AS a, r.name AS b FROM l JOIN r "
        f"ON llm_join(l.name, r.name, k => {k}, many => {many}, check => {check})"
    )


def joined(frame: bf.Frame) -> tuple[Pairs, int]:
    """(the pairs of names that a join gives, the values that it asked)"""
    rows = frame.to_pylist()
    return {(row["a"], row["b"]) for row in rows}, frame.trace.usage.values


def recall(frame: bf.Frame) -> str:
    """What EXPLAIN ANALYZE estimates: a share, or one and what it is at least."""
    said = re.search(r"recall of .*? candidates: (.*)", frame.explain_text(analyze=True))
    shares = re.findall(r"[\d.]+ %(?=[, ]|$)", said[1] if said else "")
    return " ≥ ".join(shares[:2]) or "unknown"


def session(model: bf.Model | str, left: list[str], right: list[str]) -> bf.Session:
    made = bf.connect(model, cache=None, progress="off")
    made.from_pydict({"name": left}, name="l")
    made.from_pydict({"name": right}, name="r")
    return made


def candidates(records: Records, data: Path, k: int) -> None:
    truth = records.matches(data)
    left = sorted(set(records.names(data, records.left).values()))
    right = sorted(set(records.names(data, records.right).values()))
    start = time.perf_counter()
    perfect = session(bf.ScriptedModel(knowing(truth)), left, right)
    by_places = join(perfect, k, many=True)
    found, asked = joined(by_places)
    seconds = time.perf_counter() - start
    by_sample = join(perfect, k, many=True, check=30)
    _, one = joined(join(session(bf.ScriptedModel(lambda call: "1"), left, right), k, many=False))
    pairs = len(left) * len(right)
    print(
        f"{records.folder:18} {len(left):6,} × {len(right):<6,} {k:3} "
        f"{len(found & truth) / len(truth):7.3f} {asked:7,} {one:7,} {pairs / max(one, 1):8,.0f} "
        f"{seconds:8.2f}  {recall(by_places):9} {recall(by_sample)}"
    )


def chosen(records: Records, data: Path, rows: int) -> None:
    truth = records.matches(data)
    left = sorted(set(records.names(data, records.left).values()))
    right = sorted(set(records.names(data, records.right).values()))
    some = left[:: max(1, len(left) // rows)][:rows]
    start = time.perf_counter()
    found, asked = joined(join(session("auto", some, right), CANDIDATES, many=False))
    seconds = time.perf_counter() - start
    own = {pair for pair in truth if pair[0] in set(some)}
    right_ones = len(found & own)
    print(
        f"{records.folder:18} {len(some):6,} names {asked:5,} asked  precision "
        f"{right_ones / max(1, len(found)):.2f}  recall {right_ones / max(1, len(own)):.2f}  "
        f"{seconds:.1f} s"
    )


def labelled(folder: str, file: str, column: str, data: Path, k: int) -> None:
    """How often the label of a text is among its candidates."""
    rows = pq.read_table(data / folder / f"{file}.parquet").to_pylist()
    labels = pq.read_table(data / folder / "labels.parquet")[column].to_pylist()
    domain = Domain([label.replace("_", " ") for label in labels])
    embedder = load_embedder("wordllama", Options())
    vectors = embedder.embed([row["text"] for row in rows])
    by_words = in_turn = 0
    for row, vector in zip(rows, vectors, strict=True):
        label = row[column].replace("_", " ")
        near = domain.candidates(row["text"], k)
        both = domain.candidates_in_meaning(row["text"], vector, k, embedder)
        by_words += label in [domain.texts[i] for i in near]
        in_turn += label in [domain.texts[i] for i in both]
    n = len(rows)
    print(
        f"{folder:18} {n:6,} × {len(domain.texts):<6} {k:3} {by_words / n:9.3f} {in_turn / n:18.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=datasets(), help="the folder with the sets")
    parser.add_argument("--rows", type=int, default=60, help="names for the packaged model")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data is missing: where the data sets are")
    print(
        f"{'set':18} {'distinct':>15} {'k':>5} {'recall':>7} {'asked':>7} {'one':>7} "
        f"{'fewer':>8} {'seconds':>8}  by places, by sample (asked: many matches; one: at most one)"
    )
    for records in SETS:
        for k in (3, CANDIDATES, 20):
            candidates(records, arguments.data, k)
    print(
        f"\n{'set':18} {'texts':>6} × {'labels':6} {'k':>3} {'by words':>9} {'words and vectors':>18}"
    )
    for folder, file, column in LABELLED:
        for k in (5, CANDIDATES, 20):
            labelled(folder, file, column, arguments.data, k)
    print("\nthe packaged model")
    for records in SETS:
        chosen(records, arguments.data, arguments.rows)


if __name__ == "__main__":
    main()
