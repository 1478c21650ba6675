"""How many values does a yes/no question ask that only likely values are asked about, and what does
it find?

    python benchmarks/bench_approximate.py [--data FOLDER] [--orders 200]

``llm_filter('…', x, recall => r, proxy => 'similarity')`` with a model that knows every answer and
wordllama's vectors. Questions: the subjects of headlines (ag_news); words in the subjects of
customers' messages (banking77); and which of 7,500 short texts from seven sets are of one kind.
"asked" and "recall" are of the query; the others of as many random orders of the sample (in the
query it is drawn by a digest): the mean of the values asked, the lowest recall, and the share of
orders with less than was promised, which may be 5 %. The last two are of the same query with
``proxy => 'embedding'``, a classifier that is fitted to some of the answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Container, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import numpy as np
import pyarrow.parquet as pq
from public_sets import datasets

import blendfusion as bf
from blendfusion.models.guarantees.accuracy import DELTA
from blendfusion.models.guarantees.recall import RankedCertificate

TARGETS = (0.8, 0.9, 0.95)
MIXED = {
    "banking77": ("messages", "text"),
    "clinc150": ("utterances", "text"),
    "ag_news": ("articles", "title"),
    "trec_questions": ("questions", "text"),
    "restaurant8k": ("utterances", "text"),
    "sms_spam": ("messages", "text"),
    "review_sentences": ("sentences", "text"),
}
KINDS = {
    "banking77": "Is it a question to a bank about a card, a payment or an account?",
    "restaurant8k": "Is it about booking a table in a restaurant?",
}
WORDS = ("card", "transfer", "top_up")


class Case(NamedTuple):
    name: str
    question: str
    texts: list[str]
    right: set[str]


def cases(data: Path) -> Iterator[Case]:
    news = pq.read_table(data / "ag_news" / "articles.parquet").to_pylist()
    for subject in sorted({row["label"] for row in news}):
        right = {row["title"] for row in news if row["label"] == subject}
        question = f"Is it about {subject.lower()}?"
        yield Case(f"ag_news: {subject}", question, [row["title"] for row in news], right)
    messages = pq.read_table(data / "banking77" / "messages.parquet").to_pylist()
    for word in WORDS:
        right = {row["text"] for row in messages if word in row["label"]}
        question = f"Is it about a {word.replace('_', ' ')}?"
        yield Case(f"banking77: {word}", question, [row["text"] for row in messages], right)
    texts: dict[str, list[str]] = {
        name: pq.read_table(data / name / f"{file}.parquet")[column].to_pylist()
        for name, (file, column) in MIXED.items()
    }
    every = [text for own in texts.values() for text in own]
    for name, question in KINDS.items():
        yield Case(f"mixed: {name}", question, every, set(texts[name]))


def queried(session: bf.Session, case: Case, recall: float, proxy: str) -> tuple[int, float]:
    """The values that the query asks, and its recall."""
    session.clear_cache()
    frame = session.sql(
        f"SELECT text FROM t WHERE llm_filter($q, text, recall => {recall}, proxy => '{proxy}')",
        param_values={"q": case.question},
    )
    passed = set(frame.to_pydict()["text"])
    assert passed <= case.right
    return frame.trace.usage.values, len(passed) / len(case.right)


def orders(case: Case, recall: float, similarities: np.ndarray, n: int) -> tuple[float, ...]:
    """Over so many orders: the mean number asked, the lowest recall, the share below the
    promise."""
    texts = list(dict.fromkeys(case.texts))
    right = np.array([text in case.right for text in texts])
    asked, found = [], []
    for seed in range(n):
        order = np.random.default_rng(seed).permutation(len(texts)).astype(np.int64)
        certificate = RankedCertificate(similarities, recall, DELTA, order)
        seen = np.zeros(len(texts), dtype=bool)
        while len(places := certificate.next_to_label):
            seen[places] = True
            certificate.tell(places, right[places].astype(np.int64))
        seen |= ~certificate.decided.of(similarities)
        asked.append(seen.sum())
        found.append(right[seen].sum() / right.sum())
    return float(np.mean(asked)), min(found), float(np.mean(np.array(found) < recall))


def _is_in(right: Container[object], call: bf.Request) -> bool:
    return call.values[0] in right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=datasets(), help="the folder with the sets")
    parser.add_argument("--orders", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data is missing: where the data sets are")
    print(
        f"{'question':22} {'values':>6} {'true':>5} {'promised':>8} {'asked':>6} {'recall':>6} "
        f"{'mean asked':>10} {'lowest':>6} {'broken':>6} {'fitted: asked':>14} {'recall':>6}"
    )
    for case in cases(arguments.data):
        model = bf.ScriptedModel(partial(_is_in, case.right))
        session = bf.connect(model, cache=None, progress="off")
        session.from_pydict({"text": case.texts}, name="t")
        texts = list(dict.fromkeys(case.texts))
        question = session.embedder.embed([case.question])[0]
        similarities = session.embedder.embed(texts).astype(np.float64) @ question
        for recall in TARGETS:
            asked, found = queried(session, case, recall, "similarity")
            fitted = queried(session, case, recall, "embedding")
            mean, lowest, broken = orders(case, recall, similarities, arguments.orders)
            print(
                f"{case.name:22} {len(texts):6,} {len(case.right):5,} {recall:8} {asked:6,} "
                f"{found:6.3f} {mean:10,.0f} {lowest:6.3f} {broken:6.1%} {fitted[0]:14,} {fitted[1]:6.3f}"
            )


if __name__ == "__main__":
    main()
