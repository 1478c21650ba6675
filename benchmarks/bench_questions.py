"""Does a small model hear the question? Twenty of yes or no and nine choices, with and without
related words.

    python benchmarks/bench_questions.py [--data FOLDER] [--rows 200] [--model smollm2|gemma|FILE]
    [--only yes/no|choices]

*auc* is the area under the ROC curve of yes against no (0.5 is chance, 0 the contrary of what was
asked), *right* the share of right answers, *off* how far that is from how sure the answers are, in
five groups from the least sure to the surest (expected calibration error: Guo et al. 2017; 200 rows
show some 0.06 by chance). *before* scores yes and no, or labels, by their own words; *now* is the
default, which scores labels also by words that say the same, and yes and no by the idea that the
question asks for."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from bench_answer_steps import Pass, one_pass
from bench_answers import Case, weights

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.services.llama.model_cache import OpenModel, borrow
from blendfusion.models.services.llama.switch import Switch
from blendfusion.models.services.llama.weights import choose
from blendfusion.models.services.verbalizer.option_trie import log_softmax
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

Row = dict[str, str]

FILES = {
    "reviews": "review_sentences/sentences.parquet",
    "films": "sembench_movies/reviews.parquet",
    "news": "ag_news/articles.parquet",
    "questions": "trec_questions/questions.parquet",
    "requests": "clinc150/utterances.parquet",
    "messages": "sms_spam/messages.parquet",
}
YES_NO = (
    ("reviews", "Is this review positive?", "label", ("positive",)),
    ("reviews", "Is this review negative?", "label", ("negative",)),
    ("reviews", "Is this a bad review?", "label", ("negative",)),
    ("reviews", "Is the customer satisfied?", "label", ("positive",)),
    ("reviews", "Is the customer unhappy?", "label", ("negative",)),
    ("films", "Is this review positive?", "score_sentiment", ("POSITIVE",)),
    ("films", "Is the review negative?", "score_sentiment", ("NEGATIVE",)),
    ("messages", "Is this message spam?", "label", ("spam",)),
    ("messages", "Is this message an advertisement?", "label", ("spam",)),
    ("messages", "Is this a personal message?", "label", ("ham",)),
    ("news", "Is this article about sports?", "label", ("Sports",)),
    ("news", "Is this article about business?", "label", ("Business",)),
    ("news", "Is this article about technology?", "label", ("Sci/Tech",)),
    ("questions", "Does the question ask for a person?", "label", ("human",)),
    ("questions", "Does the question ask for a place?", "label", ("location",)),
    ("requests", "Is this about travel?", "domain", ("travel",)),
    ("requests", "Is this request about banking?", "domain", ("banking", "credit_cards")),
    ("reviews", "Is this review about a product?", "source", ("amazon",)),
    ("reviews", "Is this about a restaurant?", "source", ("yelp",)),
    ("reviews", "Is this about a film?", "source", ("imdb",)),
)
"""The data, the question, and the column in which these labels mean yes."""
NEWS = ("World", "Sports", "Business", "Sci/Tech")
ASKED_FOR = ("abbreviation", "description", "entity", "human", "location", "numeric")
DOMAINS = (
    "auto and commute",
    "banking",
    "credit cards",
    "home",
    "kitchen and dining",
    "meta",
    "small talk",
    "travel",
    "utility",
    "work",
)


def called(labels: Sequence[str], names: str) -> dict[str, str]:
    return dict(zip(labels, names.split(), strict=True))


CHOICES = (
    ("news", "What is the topic of this article?", "label", {label: label for label in NEWS}),
    (
        "news",
        "What is the topic of this article?",
        "label",
        called(NEWS, "politics sport economy technology"),
    ),
    (
        "questions",
        "What does the question ask for?",
        "label",
        called(ASKED_FOR, "abbreviation description thing person place number"),
    ),
    (
        "questions",
        "What does the question ask for?",
        "label",
        called(ASKED_FOR, "acronym definition entity human location numeric"),
    ),
    (
        "requests",
        "What is the request about?",
        "domain",
        {name.replace(" ", "_"): name for name in DOMAINS},
    ),
    (
        "reviews",
        "What is reviewed?",
        "source",
        {"amazon": "product", "yelp": "restaurant", "imdb": "film"},
    ),
    (
        "reviews",
        "What is the sentiment of this review?",
        "label",
        {"positive": "positive", "negative": "negative"},
    ),
    (
        "films",
        "What is the sentiment of this review?",
        "score_sentiment",
        {"POSITIVE": "positive", "NEGATIVE": "negative"},
    ),
    (
        "messages",
        "What kind of message is this?",
        "label",
        {"spam": "advertisement", "ham": "personal"},
    ),
)
"""The data, the question, the column, and what its labels are called in the question."""


def asked(data: Path, rows: int) -> Iterator[Case]:
    tables = {name: rows_of(data / file) for name, file in FILES.items()}
    for name, question, column, yes in YES_NO:
        task = Task("llm_filter", question, Constraint("boolean"), ("text",))
        some = tables[name][-rows:]
        gold = tuple(str(row[column] in yes).lower() for row in some)
        yield Case(question, task, tuple(row["text"] for row in some), gold)
    for name, question, column, names in CHOICES:
        some = [row for row in tables[name] if row[column] in names][-rows:]
        constraint = Constraint("choice", options=tuple(names.values()))
        task = Task("llm_classify", question, constraint, ("text",))
        gold = tuple(names[row[column]] for row in some)
        said = f"{question} {'/'.join(names.values())}"
        yield Case(said, task, tuple(row["text"] for row in some), gold)


def rows_of(file: Path) -> list[Row]:
    found: list[Row] = pq.read_table(file).to_pylist()
    for row in found:
        if "review_text" in row:
            row["text"] = row["review_text"]
        elif "title" in row:
            row["text"] = f"{row['title']}. {row['description']}"
    return [row for row in found if row["text"]]


def auc(scores: Sequence[float], yes: Sequence[bool]) -> float:
    """How often a text with a yes has a higher score than one with a no."""
    found, truth = np.asarray(scores), np.asarray(yes)
    if not 0 < truth.sum() < len(truth):
        return float("nan")
    above = found[truth][:, None] - found[~truth][None, :]
    return float(np.mean(above > 0) + np.mean(above == 0) / 2)


def off(sure: Sequence[float], right: Sequence[bool], groups: int = 5) -> float:
    """How far the mean probability of answers is from the share of right ones, on average over
    groups of answers that are about as sure."""
    odds, truth = np.asarray(sure), np.asarray(right)
    parts = np.array_split(np.argsort(odds, kind="stable"), groups)
    gaps = [len(part) * abs(odds[part].mean() - truth[part].mean()) for part in parts]
    return float(sum(gaps) / len(odds))


def measured(opened: OpenModel, case: Case, *, related: bool) -> tuple[float, float, float]:
    """The area under the curve (of yes or no), the share of right answers, and how far it is from
    how sure they are."""
    ways: Pass = one_pass(opened, case, Options(), related=related)
    scores = ways.scores
    names = closed_set(case.task.constraint) or ()
    told = [names[option] for option in ways.told(scores, ways.prior)]
    sure = [float(np.exp(log_softmax(row - ways.prior).max())) for row in scores]
    gap = off(sure, [answer == gold for answer, gold in zip(told, case.gold, strict=True)])
    if case.task.constraint.kind != "boolean":
        return float("nan"), case.score(told), gap
    area = auc([row[0] - row[1] for row in scores], [gold == "true" for gold in case.gold])
    return area, case.score(told), gap


def _line(name: str, figures: Sequence[float]) -> str:
    widths = (11, 6, 5, 9, 6, 5)
    cells = (f"{figure:{width}.2f}" for figure, width in zip(figures, widths, strict=True))
    return f"{name[:72]:72} {' '.join(cells)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("BLENDFUSION_DATA"))
    parser.add_argument("--rows", type=int, default=200, help="the last ones of each set")
    parser.add_argument("--model", default="smollm2", help="smollm2, gemma or a GGUF file")
    parser.add_argument("--only", choices=["yes/no", "choices"])
    given = parser.parse_args()
    if given.data is None:
        parser.error("--data is missing: where the data sets are")
    path = weights(given.model)
    loan = borrow(choose(path, Options()), Options(), Switch())
    print(f"{path.name}, {given.rows} rows of each set")
    print(
        f"{'question':72} {'before: auc':>11} {'right':>6} {'off':>5} {'now: auc':>9} {'right':>6} {'off':>5}"
    )
    found = []
    for case in asked(given.data, given.rows):
        if given.only and (case.task.constraint.kind == "boolean") != (given.only == "yes/no"):
            continue
        before = measured(loan.thing, case, related=False)
        now = measured(loan.thing, case, related=True)
        found.append((*before, *now))
        print(_line(case.name, found[-1]), flush=True)
    with warnings.catch_warnings():  # choices have no area
        warnings.simplefilter("ignore", RuntimeWarning)
        print(_line("mean", np.nanmean(np.array(found), axis=0)))
    loan.release()


if __name__ == "__main__":
    main()
