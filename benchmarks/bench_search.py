"""How good and how fast is search: by words, by vectors, by both?

Run with ``python benchmarks/bench_search.py --data FOLDER``: builds an index over the abstracts of
``scifact`` and ``cranfield`` (title and text), runs every judged query through SQL, all of them in
one lateral join, and prints nDCG@10, recall@10 and queries a second; then what an update costs to
which 1 % of the rows are new. Exits with 1 where a bound of ``BOUNDS`` does not hold."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import blendfusion as bf

DEPTH = 10
BOUNDS = {"scifact": 0.64, "cranfield": 0.35}
"""The least nDCG@10 of BM25; that of hybrid search is at least BM25's."""


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    docs: pa.Table
    queries: pa.Table
    """Columns query_id and text."""
    relevant: Mapping[str, frozenset[str]]


def collection(data: Path, name: str, queries: str, key: str, text: str) -> Collection:
    """The documents, and the queries that have a relevant one."""
    judged: dict[str, set[str]] = {}
    for row in pq.read_table(data / name / "qrels.parquet").to_pylist():
        if row["relevance"]:
            judged.setdefault(row[key], set()).add(row["doc_id"])
    asked = pq.read_table(data / name / f"{queries}.parquet").select([key, text])
    asked = asked.rename_columns(["query_id", "text"])
    kept = asked.filter(pc.is_in(asked["query_id"], pa.array(list(judged))))
    docs = pq.read_table(data / name / "docs.parquet").select(["doc_id", "title", "text"])
    return Collection(name, docs, kept, {q: frozenset(d) for q, d in judged.items()})


def ndcg(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    """Normalised discounted cumulative gain of the first ten (Järvelin and Kekäläinen 2002)."""
    gain = sum(1 / math.log2(i + 2) for i, doc in enumerate(ranked[:DEPTH]) if doc in relevant)
    best = sum(1 / math.log2(i + 2) for i in range(min(DEPTH, len(relevant))))
    return gain / best


def recall(ranked: Sequence[str], relevant: frozenset[str]) -> float:
    return len(relevant & set(ranked[:DEPTH])) / len(relevant)


def run(session: bf.Session, mode: str) -> tuple[dict[str, list[str]], float]:
    """(the documents found for each query, best first; seconds)."""
    start = perf_counter()
    rows = session.sql(
        f"SELECT q.query_id, s.doc_id FROM queries q, "
        f"LATERAL llm_search('docs', q.text, k => {DEPTH}, mode => '{mode}') s "
        f"ORDER BY q.query_id, s._rank"
    ).to_pylist()
    seconds = perf_counter() - start
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["query_id"], []).append(row["doc_id"])
    return found, seconds


def measure(given: Collection, folder: Path) -> bool:
    """Print the lines of one collection; whether the bounds hold."""
    session = bf.connect(None, cache=None)
    session.from_arrow(given.docs, "docs")
    session.from_arrow(given.queries, "queries")
    path = folder / given.name
    built = session.index("docs", columns=["title", "text"], path=path)
    print(f"{given.name}: {built}")
    scores: dict[str, float] = {}
    for mode in ("text", "vector", "hybrid"):
        found, seconds = run(session, mode)
        ids = given.queries["query_id"].to_pylist()
        scores[mode] = sum(ndcg(found.get(q, []), given.relevant[q]) for q in ids) / len(ids)
        recalled = sum(recall(found.get(q, []), given.relevant[q]) for q in ids) / len(ids)
        print(
            f"  {mode:<6}  nDCG@10 {scores[mode]:.3f}  recall@10 {recalled:.3f}  "
            f"{len(ids) / seconds:,.0f} queries/s"
        )
    new = given.docs.slice(0, len(given.docs) // 100)
    changed = pc.binary_join_element_wise(new["text"], "(revised)", " ")
    more = pa.concat_tables([given.docs, new.set_column(2, "text", changed)])
    print(f"  1 % new: {session.index('docs', more, columns=['title', 'text'], path=path)}")
    good = scores["text"] >= BOUNDS[given.name] and scores["hybrid"] >= scores["text"]
    if not good:
        print(f"  bound missed: {BOUNDS[given.name]} for text, text's for hybrid")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with scifact, cranfield")
    data = parser.parse_args().data
    collections = [
        collection(data, "scifact", "claims", "claim_id", "claim"),
        collection(data, "cranfield", "queries", "query_id", "text"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        held = [measure(given, Path(folder)) for given in collections]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
