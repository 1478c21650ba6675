"""Does llm_score of the packaged model put the rows that hold of the question first?

    python benchmarks/bench_scores.py [--data FOLDER] [--rows 200] [--examples]

Printed is the area under the ROC curve (0.5: chance) of scores against labels that were not shown
to the model, beside that of how likely llm_filter's yes is: by the numbers of a scale, and as
llm_score gives them, by the idea that is asked for. ``--examples`` puts worked examples before the
numbers, as other kinds of answers have them."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from bench_answers import weights
from bench_questions import FILES, auc, rows_of

from blendfusion.models.protocol.model import Values
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Example, Task

EXAMPLES = (
    ("How useful is this advice?", "Soak the beans overnight.", "7"),
    ("How satisfied is the customer?", "The zip broke and nobody answers my mails.", "0"),
    ("How hungry is the writer?", "I could eat a horse.", "10"),
)
CASES = (
    ("reviews", "label", "positive", "Is this review positive?", "How positive is this review?"),
    ("reviews", "label", "negative", "Is the customer angry?", "How angry is the customer?"),
    (
        "messages",
        "label",
        "spam",
        "Is this message spam?",
        "How much does this message look like spam?",
    ),
    (
        "news",
        "label",
        "Sports",
        "Is this article about sports?",
        "How much is this article about sports?",
    ),
    (
        "questions",
        "label",
        "location",
        "Does it ask for a place?",
        "To what extent does it ask for a place?",
    ),
)
"""The data, the column and its label that means much, as a yes or no, and as a score."""
SCALES = ((0, 10), (1, 5))

Shown = tuple[Example, ...]


def certainty(answer: Answer) -> float:
    """How probable "yes" is."""
    share = float(np.exp(answer.logprob or 0.0))
    return share if answer.text == "true" else 1 - share


def scored(
    model: LlamaModel, question: str, scale: tuple[int, int], texts: list[Values], shown: Shown
) -> tuple[list[float], float]:
    """The scores of texts, and how many there were a second."""
    task = Task("llm_score", question, Constraint("score", scale=scale), ("text",), shown)
    model.answer(task, texts[:1])  # reads the prior
    begun = time.perf_counter()
    scores = [float(answer.text or 0) for answer in model.answer(task, texts)]
    return scores, len(texts) / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("BLENDFUSION_DATA"),
        help="the folder with the sets (default: the environment variable BLENDFUSION_DATA)",
    )
    parser.add_argument("--rows", type=int, default=200, help="the last ones of each set")
    parser.add_argument("--model", default="smollm2", help="smollm2, gemma or a GGUF file")
    parser.add_argument("--examples", action="store_true")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the sets are: --data FOLDER, or BLENDFUSION_DATA")
    file = weights(given.model)
    model, numbers = (LlamaModel(file, Options(wordings=words)) for words in (True, False))
    examples = tuple(Example((f"{text} ({asked})",), score) for asked, text, score in EXAMPLES)
    shown = examples if given.examples else ()
    print("| question | llm_filter | numbers, 0 to 10 | 1 to 5 | scores/s | llm_score | scores/s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, column, label, yes_no, how_much in CASES:
        rows = rows_of(given.data / FILES[name])[-given.rows :]
        texts: list[Values] = [(row["text"],) for row in rows]
        labels = [row[column] == label for row in rows]
        filtered = model.answer(Task("llm_filter", yes_no, Constraint("boolean"), ("text",)), texts)
        cells = [f"{auc([certainty(answer) for answer in filtered], labels):.3f}"]
        by_numbers = [scored(numbers, how_much, scale, texts, shown) for scale in SCALES]
        cells += [f"{auc(scores, labels):.3f}" for scores, _ in by_numbers]
        cells += [f"{by_numbers[0][1]:.1f}"]
        scores, rate = scored(model, how_much, SCALES[0], texts, ())
        cells += [f"{auc(scores, labels):.3f}", f"{rate:.1f}"]
        print(f"| {how_much} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
