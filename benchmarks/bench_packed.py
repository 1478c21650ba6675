"""Many values in one prompt: tokens a value and right answers, beside one value a prompt.

    python benchmarks/bench_packed.py openai:NAME@http://HOST:PORT/v1 --values 100 --most 1,5,10

Two sets of the folder of data (see ``public_sets``): sentences of reviews (is it positive?) and news
(one of four topics). The model is that of a server, which generates its answers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import pyarrow.parquet as pq
from public_sets import datasets

from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.load import load
from blendfusion.models.services.joint_prompts.row_packing import PackedModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task, Usage

TOPICS = ("World", "Sports", "Business", "Sci/Tech")
SETS: dict[str, tuple[str, str, Task, Callable[[object], str]]] = {
    "review_sentences": (
        "text",
        "label",
        Task("llm_filter", "Is the sentence positive?", Constraint("boolean"), ("text",)),
        lambda label: "true" if label in (1, "positive", "pos") else "false",
    ),
    "ag_news": (
        "title",
        "label",
        Task("llm_classify", "Which topic?", Constraint("choice", options=TOPICS), ("text",)),
        str,
    ),
}


def rows_of(name: str, count: int) -> Iterator[tuple[str, object]]:
    folder = datasets()
    assert folder is not None, "no data sets: see public_sets"
    text, label, _, _ = SETS[name]
    (file, *_) = sorted((folder / name).glob("*.parquet"))
    table = pq.read_table(file).slice(0, count)
    yield from zip(table[text].to_pylist(), table[label].to_pylist(), strict=True)


def measure(model: Model, name: str, count: int) -> tuple[float, float, float]:
    """The share of right answers, tokens a value, seconds a value."""
    _, _, task, canonical = SETS[name]
    rows = list(rows_of(name, count))
    start = time.perf_counter()
    answers = model.answer(task, [(text,) for text, _ in rows])
    seconds = time.perf_counter() - start
    right = sum(a.text == canonical(label) for a, (_, label) in zip(answers, rows, strict=True))
    usage = Usage.total(answer.usage for answer in answers)
    return right / count, (usage.prompt_tokens + usage.completion_tokens) / count, seconds / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--most", default="1,5,10")
    parser.add_argument("--sets", default=",".join(SETS))
    arguments = parser.parse_args()
    inner = load(arguments.model, Options(concurrency=1, timeout_seconds=600.0))
    print("set               values a prompt   right   tokens a value   s a value")
    for name in arguments.sets.split(","):
        for most in map(int, arguments.most.split(",")):
            model = PackedModel(inner, most) if most > 1 else inner
            right, tokens, seconds = measure(model, name, arguments.values)
            print(
                f"{name:18} {most:>15} {right:>7.2f} {tokens:>16.0f} {seconds:>11.2f}", flush=True
            )


if __name__ == "__main__":
    main()
