"""The tables, links and passages of HybridQA in a session, its questions, and a reader of single
passages."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hybridqa_queries import LINKED, RELATIONS, HybridQuery

import blendfusion as bf

FOLDER = "hybridqa"
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@dataclass(frozen=True)
class Question:
    """A question as the data set has it; nothing of it is in any table of a session."""

    text: str
    table_id: str
    answer: str


class Hybrid:
    """The data set in the folder ``data``."""

    def __init__(self, data: Path) -> None:
        self.folder = data / FOLDER

    def _rows(self, name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(self.folder / f"{name}.parquet").to_pylist()
        return rows

    def session(self, model: bf.Model | str, index: Path) -> bf.Session:
        """A session with the relations as the files have them, the view ``linked``, and a word
        index of the passages in the folder ``index``. It keeps no answers."""
        session = bf.connect(model, cache=None, progress="off")
        for name in RELATIONS:
            session.register_parquet(name, self.folder / f"{name}.parquet")
        session.sql(LINKED).collect()
        session.index("passages", columns="text", path=index, vectors=False)
        return session

    def frame(self, session: bf.Session, query: HybridQuery) -> bf.Frame:
        return session.sql(query.sql, param_values={"table": self.question(query).table_id})

    def question(self, query: HybridQuery) -> Question:
        return self._questions[query.question_id]

    @cached_property
    def _questions(self) -> dict[str, Question]:
        return {
            row["question_id"]: Question(row["question"], row["table_id"], row["answer"])
            for row in self._rows("questions")
        }

    @cached_property
    def _tables(self) -> dict[str, dict[str, Any]]:
        return {row["table_id"]: row for row in self._rows("tables")}

    @cached_property
    def _passages(self) -> dict[str, str]:
        return {row["url"]: row["text"] for row in self._rows("passages")}

    @cached_property
    def _links(self) -> list[dict[str, Any]]:
        return self._rows("links")

    def naive_prompt(self, query: HybridQuery) -> str:
        """All in one: the table, each passage that it links to (once), and the question."""
        question = self.question(query)
        table = self._tables[question.table_id]
        lines = [" | ".join(row) for row in [table["header"], *table["rows"]]]
        urls = {
            link["passage_url"]: None
            for link in self._links
            if link["table_id"] == question.table_id
        }
        passages = [self._passages[url] for url in urls]
        return "\n".join([table["title"], *lines, *passages, question.text])


def found_in(pattern: str, passage: str, kind: str) -> bool | int | date | str | None:
    """What a reader finds in ``passage``; a boolean is whether the pattern is there, else its
    group."""
    match = re.search(pattern, passage)
    if kind == "boolean":
        return match is not None
    if match is None:
        return None
    text = match[1].strip()
    if kind == "integer":
        return NUMBER_WORDS.index(text) if text in NUMBER_WORDS else int(text)
    if kind == "date":
        form = "%d %B %Y" if text[0].isdigit() else "%B %d , %Y"
        return datetime.strptime(text, form).date()
    return text


def reader(query: HybridQuery) -> bf.ScriptedModel:
    """A model that reads each passage as ``query.reads`` says, and sees nothing but what it is
    sent.

    Of several passages it gives the most frequent finding.
    """

    def read(request: bf.Request) -> bool | int | date | str | None:
        pattern = query.reads[request.task.question]
        kind = request.constraint.kind
        found = [found_in(pattern, value, kind) for value in request.values if value is not None]
        ranked = Counter(one for one in found if one is not None).most_common(1)
        return ranked[0][0] if ranked else None

    return bf.ScriptedModel(read)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"\b(a|an|the)\b", " ", text.lower()))


def is_right(rows: list[dict[str, Any]], gold: str) -> bool:
    """There is a row, and in every row stand the words of the gold answer, one after the other;
    capitals, articles and punctuation do not count."""
    wanted = f" {' '.join(_words(gold))} "
    return bool(rows) and all(wanted in f" {' '.join(_words(str(row['answer'])))} " for row in rows)
