"""Do built-in worked examples help a server's model, and what do they cost?

    python benchmarks/bench_shots.py openai:NAME@http://HOST:PORT/v1 --data FOLDER
    [--part choose|report] [--rows 6] [--seconds 1800]

The same texts are asked with and without the examples, one question after the other: yes/no
questions about public data sets (``public_questions``) and choices of their labels
(``bench_questions``). *choose* has every second question, on which the default may be chosen;
*report* has the others. The last lines are the share of right answers of both ways and the
difference, with 95 % intervals by the bootstrap over questions, and the prompt tokens a value.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench_bank import interval
from bench_questions import CHOICES, FILES, rows_of
from public_questions import public

from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.load import load
from blendfusion.options import Options
from blendfusion.types import Constraint, Task


@dataclass(frozen=True)
class Asked:
    """A question about some texts, with the right answers."""

    kind: str
    task: Task
    texts: tuple[str, ...]
    gold: tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """``right``: the share of right answers. ``tokens``: of the prompt, a value."""

    right: float
    valid: float
    tokens: float


def questions(data: Path, rows: int) -> Iterator[Asked]:
    for one in public(data, rows):
        task = Task("llm_filter", one.question, Constraint("boolean"), ("text",))
        yield Asked("yes/no", task, one.texts, tuple(str(yes).lower() for yes in one.yes))
    tables = {name: rows_of(data / file) for name, file in FILES.items()}
    for name, question, column, names in CHOICES:
        some = [row for row in tables[name] if row[column] in names]
        some = some[:: max(1, len(some) // (2 * rows))][: 2 * rows]
        task = Task(
            "llm_classify", question, Constraint("choice", options=tuple(names.values())), ("text",)
        )
        gold = tuple(names[row[column]] for row in some)
        yield Asked("choice", task, tuple(row["text"] for row in some), gold)


def ask(model: Model, asked: Asked) -> Answered:
    answers = model.answer(asked.task, [(text,) for text in asked.texts])
    right = [a.text == gold for a, gold in zip(answers, asked.gold, strict=True)]
    valid = [a.text is not None for a in answers]
    tokens = sum(a.usage.prompt_tokens for a in answers)
    return Answered(float(np.mean(right)), float(np.mean(valid)), tokens / len(answers))


def summary(name: str, each: Sequence[float]) -> str:
    low, high = interval(np.array(each))
    return f"{name:28} {np.mean(each):7.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="as connect takes it")
    parser.add_argument("--data", type=Path, default=os.environ.get("BLENDFUSION_DATA"))
    parser.add_argument("--part", choices=("choose", "report"), default="report")
    parser.add_argument("--rows", type=int, default=6, help="texts of a yes/no question")
    parser.add_argument("--seconds", type=float, default=0, help="stop after these; 0: no limit")
    given = parser.parse_args()
    ways = {
        name: load(given.model, Options(shots=shots, progress="off", concurrency=2))
        for name, shots in (("with", True), ("without", False))
    }
    found: dict[str, list[tuple[Answered, Answered]]] = {}
    started = time.monotonic()
    for number, asked in enumerate(questions(given.data, given.rows)):
        if number % 2 != (given.part == "report"):
            continue
        if given.seconds and time.monotonic() - started > given.seconds:
            break
        order = list(ways) if number % 4 < 2 else list(ways)[::-1]
        got = {name: ask(ways[name], asked) for name in order}
        found.setdefault(asked.kind, []).append((got["with"], got["without"]))
        shown = "  ".join(
            f"{name} {one.right:.2f} ({one.tokens:.0f} tokens)" for name, one in got.items()
        )
        print(f"{asked.task.question[:60]:60} {shown}", flush=True)
    for kind, pairs in found.items():
        print(f"{kind}: {len(pairs)} questions")
        print(summary("  right with examples", [a.right for a, _ in pairs]))
        print(summary("  right without", [b.right for _, b in pairs]))
        print(summary("  gain of leaving them out", [b.right - a.right for a, b in pairs]))
        for name, place in (("with", 0), ("without", 1)):
            tokens, valid = (
                np.mean([getattr(pair[place], field) for pair in pairs])
                for field in ("tokens", "valid")
            )
            print(f"  {name}: {tokens:.0f} prompt tokens a value, {valid:.3f} valid")


if __name__ == "__main__":
    main()
