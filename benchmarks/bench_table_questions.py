"""How often is ``session.answer`` right about a table, beside a model that reads the whole table?

    python benchmarks/bench_table_questions.py FOLDER [--model smollm2] [--questions 50]
        [--threads 1] [--results FILE.jsonl] [--gpu] [--share K/N]

FOLDER is one of HybridQA, OTT-QA, WikiTableQuestions and TAT-QA as Parquet: ``questions.parquet``
and ``tables.parquet``, for the first two also ``links.parquet`` and ``passages.parquet``, for the
last ``paragraphs.parquet``. The model sees the table of a question and its passages as they are,
no answer and no hint of the set. *asked* is ``session.answer``; *read* gives the same model the
rows and passages, as many as its window holds. Printed: exact match and F1 of words (after SQuAD),
denotation accuracy (the same set of answers), how often rows were read for want of a query, tokens
and cost, with Wilson's intervals at 95 %. Questions are taken by a digest of their text.
``--results`` keeps the answers, and goes on behind those that it has."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from local_settings import LocalSettings, add_arguments, add_share, own_share, settings

import blendfusion as bf
from blendfusion.errors import BlendFusionError
from blendfusion.services.ask.answers import Reply, form_of, read_rows
from blendfusion.services.evaluate.intervals import wilson

_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class Found:
    """One answer of one way, and its spending."""

    texts: list[str]
    read: bool = False
    tokens: int = 0
    cost: float | None = None
    error: str = ""
    query: str = ""


@dataclass
class Score:
    """The sums over the questions of one way of answering."""

    asked: int = 0
    exact: int = 0
    same: int = 0
    f1: float = 0.0
    read: int = 0
    tokens: int = 0
    costs: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def count(self, found: Found, right: list[str]) -> None:
        self.asked += 1
        self.read += found.read
        self.tokens += found.tokens
        if found.cost is not None:
            self.costs.append(found.cost)
        if found.error:
            self.errors[found.error] += 1
        self.add(found.texts, right)

    def add(self, found: list[str], right: list[str]) -> None:
        said, wanted = ([normal(text) for text in texts] for texts in (found, right))
        self.exact += " ".join(said) == " ".join(wanted)
        self.same += set(said) == set(wanted)
        self.f1 += overlap(" ".join(said).split(), " ".join(wanted).split())

    def line(self, name: str) -> str:
        def share(hits: int) -> str:
            low, high = wilson(hits, self.asked)
            return f"{hits / self.asked:.2f} [{low:.2f}, {high:.2f}]"

        money = f", cost {sum(self.costs):.4f}" if any(self.costs) else ""
        return (
            f"{name}: exact match {share(self.exact)}, F1 {self.f1 / self.asked:.2f}, denotation "
            f"{share(self.same)}, rows read {self.read} of {self.asked}, {self.tokens:,} tokens{money}"
        )


def normal(text: str) -> str:
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(_ARTICLES.sub(" ", plain).split())


def overlap(found: list[str], right: list[str]) -> float:
    both = sum((Counter(found) & Counter(right)).values())
    if not both:
        return float(found == right)
    precision, recall = both / len(found), both / len(right)
    return 2 * precision * recall / (precision + recall)


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    file = folder / f"{name}.parquet"
    return pq.read_table(file).to_pylist() if file.is_file() else []


def texts_of(folder: Path, key: str) -> dict[str, list[dict[str, Any]]]:
    """The passages of each table: linked ones with their row, or its paragraphs."""
    found: dict[str, list[dict[str, Any]]] = {}
    passages = {row["url"]: row["text"] for row in rows_of(folder, "passages")}
    for link in rows_of(folder, "links"):
        if link["passage_url"] in passages:
            row = {"row_number": link["row"], "text": passages[link["passage_url"]]}
            found.setdefault(link[key], []).append(row)
    for row in rows_of(folder, "paragraphs"):
        found.setdefault(row[key], []).append({"row_number": None, "text": row["text"]})
    return found


def table_of(row: dict[str, Any]) -> pa.Table:
    """A table as it is: cells as texts, unless all cells of a column are numbers."""
    names = row.get("sql_columns") or [f"column_{i}" for i in range(1, row["n_cols"] + 1)]
    columns: dict[str, list[Any]] = {"row_number": list(range(len(row["rows"])))}
    for at, name in enumerate(names):
        cells = [cells[at] if at < len(cells) else None for cells in row["rows"]]
        try:
            columns[name] = [None if c in ("", None) else float(c.replace(",", "")) for c in cells]
        except ValueError:
            columns[name] = cells
    return pa.table(columns)


def found_by(answer: Callable[[], Reply], session: bf.Session) -> Found:
    before = session.ledger.cost
    try:
        reply = answer()
    except BlendFusionError as error:
        return Found([""], error=type(error).__name__)
    usage = reply.usage + (reply.draft.frame.trace.usage if reply.draft else bf.Usage())
    after = session.ledger.cost
    return Found(
        reply.text.split("; ") if reply.form == "list" else [reply.text],
        reply.draft is None,
        usage.prompt_tokens + usage.completion_tokens,
        None if before is None or after is None else after - before,
        query=reply.draft.sql if reply.draft else "",
    )


def chosen(questions: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    return sorted(questions, key=lambda q: hashlib.sha256(q["question"].encode()).digest())[:most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--questions", type=int, default=50)
    add_arguments(parser)
    add_share(parser)
    parser.add_argument("--results", type=Path, help="a file of answers, to go on from")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    folder: Path = arguments.folder
    tables = rows_of(folder, "tables")
    key = "doc_id" if "doc_id" in tables[0] else "table_id"
    by_key = {row[key]: row for row in tables}
    texts = texts_of(folder, key)
    kept: dict[str, list[Found]] = {}
    results: Path | None = arguments.results
    if results is not None and results.exists():
        for line in results.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            kept[one["question"]] = [Found(**each) for each in one["found"]]
    scores = Score(), Score()
    questions = chosen(rows_of(folder, "questions"), arguments.questions)
    for question in own_share(questions, arguments.share):
        words, right = question["question"], question["answer"]
        if words not in kept:
            table, own = by_key[question[key]], texts.get(question[key], [])
            kept[words] = both(arguments.model, settings(arguments), words, table, own)
            if results is not None:
                written = {"question": words, "found": [asdict(each) for each in kept[words]]}
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(written) + "\n")
        for score, found in zip(scores, kept[words], strict=True):
            score.count(found, [right] if isinstance(right, str) else list(right))
    for name, score in zip(("asked", "read"), scores, strict=True):
        print(score.line(name))
        if score.errors:
            print(f"  without an answer: {dict(score.errors)}")


def both(
    model: str,
    local: LocalSettings,
    words: str,
    table: dict[str, Any],
    texts: list[dict[str, Any]],
) -> list[Found]:
    """What the session answers, and the model that reads all."""
    with bf.connect(model, cache=None, progress="off", **local) as session:
        session.from_arrow(table_of(table), name="facts")
        if texts:
            session.from_arrow(pa.Table.from_pylist(texts), name="passages")
        return [
            found_by(lambda: session.answer(words), session),
            found_by(lambda: read_rows(session, words, form_of(words)), session),
        ]


if __name__ == "__main__":
    main()
