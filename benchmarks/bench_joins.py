"""How many of the true pairs does a join by meaning find, and how many values does it ask?

    python benchmarks/bench_joins.py [--data FOLDER] [--rows 60]

Three sets of records that mean the same (restaurants, papers, products), joined by their names. "recall" is
the share of the true pairs of names that are equal, alike, or among the k candidates: what a perfect model
would find. "asked" is what such a model is asked, "fewer" how many times fewer than all pairs of distinct names.
"model" is the packaged one: precision and recall of the pairs that it chooses for the first ``--rows`` names that
have to be asked, and for all that need no model.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import pyarrow.parquet as pq
from datasets import datasets

import blendfusion as bf
from blendfusion.udfs.pairing import CANDIDATES

Pairs = set[tuple[str, str]]


@dataclass(frozen=True)
class Records:
    """Two tables, and which rows of them mean the same."""

    folder: str
    left: str
    right: str
    column: str

    def names(self, data: Path, side: str) -> dict[int, str]:
        table = pq.read_table(data / self.folder / f"{side}.parquet")
        keys, texts = table[f"{side}_id"].to_pylist(), table[self.column].to_pylist()
        return dict(zip(keys, texts, strict=True))

    def truth(self, data: Path) -> Pairs:
        left, right = self.names(data, self.left), self.names(data, self.right)
        rows = pq.read_table(data / self.folder / "matches.parquet").to_pylist()
        return {(left[r[f"{self.left}_id"]], right[r[f"{self.right}_id"]]) for r in rows}


SETS = (
    Records("em_fodors_zagats", "fodors", "zagats", "name"),
    Records("em_dblp_acm", "dblp", "acm", "title"),
    Records("em_abt_buy", "abt", "buy", "name"),
)


def knowing(truth: Pairs) -> object:
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


def joined(session: bf.Session, k: int, *, many: bool) -> tuple[Pairs, int]:
    """(the pairs of names that the join gives, the values that it asked)"""
    frame = session.sql(
        "SELECT DISTINCT l.name AS a, r.name AS b FROM l JOIN r "
        f"ON llm_join(l.name, r.name, k => {k}, many => {many})"
    )
    rows = frame.to_pylist()
    return {(row["a"], row["b"]) for row in rows}, frame.trace.usage.values


def session(model: object, left: list[str], right: list[str]) -> bf.Session:
    made = bf.connect(model, cache=None, progress="off")  # type: ignore[arg-type]
    made.from_pydict({"name": left}, name="l")
    made.from_pydict({"name": right}, name="r")
    return made


def candidates(records: Records, data: Path, k: int) -> None:
    truth = records.truth(data)
    left = sorted(set(records.names(data, records.left).values()))
    right = sorted(set(records.names(data, records.right).values()))
    start = time.perf_counter()
    found, asked = joined(session(bf.ScriptedModel(knowing(truth)), left, right), k, many=True)
    seconds = time.perf_counter() - start
    _, one = joined(session(bf.ScriptedModel(lambda call: "1"), left, right), k, many=False)
    pairs = len(left) * len(right)
    print(
        f"{records.folder:18} {len(left):6,} × {len(right):<6,} {k:3} "
        f"{len(found & truth) / len(truth):7.3f} {asked:7,} {one:7,} {pairs / max(one, 1):8,.0f} "
        f"{seconds:8.2f}"
    )


def chosen(records: Records, data: Path, rows: int) -> None:
    truth = records.truth(data)
    left = sorted(set(records.names(data, records.left).values()))
    right = sorted(set(records.names(data, records.right).values()))
    some = left[:: max(1, len(left) // rows)][:rows]
    start = time.perf_counter()
    found, asked = joined(session("auto", some, right), CANDIDATES, many=False)
    seconds = time.perf_counter() - start
    own = {pair for pair in truth if pair[0] in set(some)}
    right_ones = len(found & own)
    print(
        f"{records.folder:18} {len(some):6,} names {asked:5,} asked  precision "
        f"{right_ones / max(1, len(found)):.2f}  recall {right_ones / max(1, len(own)):.2f}  "
        f"{seconds:.1f} s"
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
        f"{'fewer':>8} {'seconds':>8}   (asked: many matches; one: at most one)"
    )
    for records in SETS:
        for k in (3, CANDIDATES, 20):
            candidates(records, arguments.data, k)
    print("\nthe packaged model")
    for records in SETS:
        chosen(records, arguments.data, arguments.rows)


if __name__ == "__main__":
    main()
