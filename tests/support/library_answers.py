"""Prints the answers of the packaged model to a number of questions, with their odds, bit for bit.

A program: python library_answers.py VALUES, in a process of its own for each library of llama.cpp.
"""

from __future__ import annotations

import csv
import json
import sys
from itertools import islice, product
from pathlib import Path

import blendfusion as bf

EXAMPLES = Path(__file__).parents[2] / "examples"
CALLS = (
    "llm_filter('{}', text)",
    "llm_classify(text, ['delivery', 'quality', 'payment', 'praise'])",
    "llm_score('{}', text)",
    "llm_int('How many days?', text)",
    "llm_text('{}', text)",
)
"""Closed sets, scales and generated answers."""
QUESTIONS = (
    *("Is the customer angry?", "Is something broken?", "Is it about delivery?"),
    *("Is a refund mentioned?", "Does the text praise the product?", "Is a number mentioned?"),
)


def texts() -> list[str]:
    """The texts of the example tables."""
    found = []
    for name, column in (("reviews", "text"), ("tickets", "body")):
        with (EXAMPLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            found += [row[column] for row in csv.DictReader(file) if row[column]]
    return sorted(set(found))


def answers(values: int) -> list[list[object]]:
    """(call, text, answer, odds as a hexadecimal number) of so many pairs of call and text."""
    calls = dict.fromkeys(call.format(q) for call, q in product(CALLS, QUESTIONS))
    share = -(-values // len(calls))
    session = bf.connect("smollm2", cache=None)
    found: list[list[object]] = []
    for number, call in enumerate(calls):
        chosen = list(islice(texts()[number * 7 % 60 :], share))
        session.from_pydict({"text": chosen}, name=f"t{number}")
        frame = session.sql(f"SELECT {call} FROM t{number}")
        frame.collect()
        for row in frame.trace.calls.to_pylist():
            odds = None if row["logprob"] is None else float(row["logprob"]).hex()
            found.append([call, row["values"], row["answer"], odds])
    return found[:values]


if __name__ == "__main__":
    for line in answers(int(sys.argv[1])):
        print(json.dumps(line))
