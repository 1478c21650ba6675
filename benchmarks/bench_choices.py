"""What is the similarity of text and label worth in choices, beside the model's own scores?

    python benchmarks/bench_choices.py [--data FOLDER] [--rows 120] [--part bank|public|fresh]
    [--model smollm2|gemma|FILE] [--weights 0,6.5]

*bank*: choices over our own texts, by which the weight was chosen: *loss* is the mean negative log
likelihood of the right labels. *public*: the choices of ``bench_questions`` and four about further
sets. *fresh*: choices made up after the weight, its rule and its code. A column a weight; 0 is the
model alone. Labels are never shown to the model."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from bench_answers import Case, weights
from bench_questions import CHOICES, FILES, rows_of

from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.tuning.bank import FOLDER
from blendfusion.models.services.verbalizer.ways import Way, way_of
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

Labels = Mapping[str, str]

BANK: tuple[tuple[str, str, Labels], ...] = (
    ("shop", "What does the customer write about?",
     {"a": "refund", "b": "damage", "c": "delivery", "d": "thanks", "e": "change of order"}),
    ("review", "What is the review about?", {"c": "price", "d": "staff", "e": "gift", "f": "food"}),
    ("news", "What is the news about?",
     {"a": "sport", "b": "business", "c": "accident", "d": "election", "e": "science", "f": "crime"}),
    ("chat", "What is the message?",
     {"a": "invitation", "b": "delay", "c": "apology", "d": "advertisement",
      "e": "congratulation", "f": "request"}),
    ("tickets", "What kind of ticket is it?",
     {"a": "login", "b": "crash", "c": "feature request", "d": "payment",
      "e": "security", "f": "performance"}),
    ("questions", "What is asked for?",
     {"a": "person", "b": "number", "c": "place", "d": "instructions"}),
    ("assistant", "What does the user want?",
     {"a": "music", "b": "reminder", "c": "travel", "d": "smart home",
      "e": "shopping", "f": "conversation"}),
    ("patient", "What is the patient's problem?",
     {"a": "pain", "b": "fever", "d": "accident", "f": "sleep"}),
    ("applicant", "What does the applicant stress?",
     {"a": "leadership", "c": "languages", "d": "remote work", "e": "programming"}),
    ("recipe", "What kind of dish is it?", {"b": "dessert", "f": "spicy"}),
    ("clause", "What does the clause regulate?",
     {"a": "payment", "b": "termination", "c": "confidentiality", "d": "liability", "e": "privacy"}),
    ("fact", "What is the fact about?",
     {"a": "animals", "c": "water", "d": "people", "f": "buildings"}),
)  # fmt: skip
"""A kind of text, the question, and the label of the texts to which one question alone is a yes."""

Row = Mapping[str, Any]


def _text(row: Row) -> str:
    return str(row["text"])


def _titled(body: str) -> Callable[[Row], str]:
    return lambda row: f"{row['title']}. {(row[body] or '')[:200]}"


PUBLIC: tuple[tuple[str, Callable[[Row], str], str, str, Labels], ...] = (
    ("banking77/messages.parquet", _text, "label", "What is the message about?",
     {"terminate_account": "closing an account", "lost_or_stolen_card": "lost card",
      "exchange_rate": "exchange rate", "Refund_not_showing_up": "refund",
      "unable_to_verify_identity": "identity", "atm_support": "cash machine",
      "automatic_top_up": "automatic top-up", "declined_card_payment": "declined payment",
      "pin_blocked": "PIN", "card_arrival": "delivery of a card"}),
    ("clinc150/utterances.parquet", _text, "intent", "What does the user want?",
     {"routing": "routing number", "mpg": "fuel consumption", "timer": "timer", "taxes": "taxes",
      "tire_change": "tires", "improve_credit_score": "credit score", "weather": "weather",
      "definition": "meaning of a word", "play_music": "music", "traffic": "traffic",
      "recipe": "recipe", "book_flight": "flight", "translate": "translation"}),
    ("peps/peps.parquet", _titled("abstract"), "topics", "What is the proposal about?",
     {"Packaging": "packaging", "Typing": "types", "Release": "release schedule",
      "Governance": "governance"}),
    ("rustsec/advisories.parquet", _titled("description"), "categories",
     "What kind of vulnerability is it?",
     {"memory-corruption": "memory corruption", "denial-of-service": "denial of service",
      "crypto-failure": "cryptography", "malicious": "malicious package",
      "thread-safety": "thread safety"}),
)  # fmt: skip
"""A file, the text of a row, its column of labels, the question, and the labels' names in it."""
FRESH: tuple[tuple[str, Callable[[Row], str], str, str, Labels], ...] = (
    ("banking77/messages.parquet", _text, "label", "What does the customer need?",
     {"activate_my_card": "card activation", "getting_virtual_card": "virtual card",
      "transfer_fee_charged": "transfer fee", "contactless_not_working": "contactless payment",
      "beneficiary_not_allowed": "beneficiary", "country_support": "supported countries",
      "lost_or_stolen_phone": "stolen phone", "wrong_amount_of_cash_received": "wrong cash amount"}),
    ("clinc150/utterances.parquet", _text, "intent", "Which task is it?",
     {"alarm": "alarm", "reset_settings": "factory settings", "pay_bill": "bill",
      "international_visa": "visa", "make_call": "phone call", "calendar_update": "calendar",
      "whisper_mode": "whispering", "time": "clock", "gas_type": "fuel type",
      "last_maintenance": "car service", "todo_list": "to-do list", "text": "text message"}),
    ("clinc150/utterances.parquet", _text, "domain", "What area is it?",
     {"travel": "trip", "work": "office", "kitchen_and_dining": "kitchen", "small_talk": "chitchat",
      "auto_and_commute": "driving", "credit_cards": "credit card"}),
    ("stackexchange_coffee/questions.parquet", _titled("body"), "tags", "What is asked about?",
     {"espresso": "espresso", "drip-brew": "drip coffee", "flavor": "taste", "health": "health",
      "moka": "moka pot", "storage": "storage"}),
    ("rustsec/advisories.parquet", _titled("description"), "categories", "What is the danger?",
     {"memory-exposure": "uninitialized memory", "crypto-failure": "weak encryption",
      "denial-of-service": "crash", "malicious": "malware", "code-execution": "code execution"}),
)  # fmt: skip


def cases(part: str, data: Path, rows: int) -> Iterator[Case]:
    if part == "bank":
        yield from _bank()
        return
    if part == "public":
        for name, question, column, called in CHOICES:
            some = [row for row in rows_of(data / FILES[name]) if row[column] in called][-rows:]
            texts = [row["text"] for row in some]
            yield _case(name, question, called, texts, [called[row[column]] for row in some])
    for file, text, column, question, names in PUBLIC if part == "public" else FRESH:
        found = [
            (text(row), names[label])
            for row in pq.read_table(data / file).to_pylist()
            if (label := _only(row[column], names))
        ][:rows]
        name = file.split("/")[0]
        yield _case(name, question, names, [t for t, _ in found], [label for _, label in found])


def _bank() -> Iterator[Case]:
    lines = [json.loads(line) for line in (FOLDER / "texts.jsonl").read_text("utf-8").splitlines()]
    for kind, question, names in BANK:
        found = []
        for line in lines:
            yes = [one for one in (i.split("-")[1] for i in line["yes"]) if one in names]
            if line["kind"] == kind and len(yes) == 1:
                found.append((line["text"], names[yes[0]]))
        yield _case(kind, question, names, [t for t, _ in found], [label for _, label in found])


def _only(label: Any, names: Labels) -> str | None:
    """The label, or the only one of a list, if it is one of ``names``."""
    every = [label] if isinstance(label, str) else [one for one in label or () if one in names]
    return every[0] if len(every) == 1 and every[0] in names else None


def _case(name: str, question: str, names: Labels, texts: list[str], gold: list[str]) -> Case:
    options = tuple(dict.fromkeys(names.values()))
    task = Task("llm_classify", question, Constraint("choice", options=options), ("text",))
    return Case(f"{name}: {question} ({len(options)})", task, tuple(texts), tuple(gold))


def measured(model: LlamaModel, case: Case) -> tuple[float, float]:
    """The share of right answers, and the mean loss of the chosen ones' probabilities."""
    answers = model.answer(case.task, [(text,) for text in case.texts])
    right = [answer.text == gold for answer, gold in zip(answers, case.gold, strict=True)]
    rest = len(case.task.constraint.options) - 1
    loss = 0.0
    for answer, is_right in zip(answers, right, strict=True):
        sure = exp(answer.logprob or 0.0)
        loss -= log(max(1e-9, sure if is_right else (1 - sure) / rest))
    return float(np.mean(right)), loss / len(right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("BLENDFUSION_DATA"))
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--part", choices=["bank", "public", "fresh"], default="public")
    parser.add_argument("--model", default="smollm2", help="smollm2, gemma or a GGUF file")
    parser.add_argument("--weights", default="0,6.5")
    given = parser.parse_args()
    path = weights(given.model)
    tried = [float(weight) for weight in given.weights.split(",")]
    model = LlamaModel(path, Options())
    way = way_of(path) or Way()
    print(f"{'choice':62} {' '.join(f'{weight:6g}   loss' for weight in tried)}")
    found = []
    for case in cases(given.part, given.data, given.rows):
        figures: list[float] = []
        for weight in tried:
            model._way = replace(way, labels=weight)
            figures += measured(model, case)
        found.append(figures)
        print(f"{case.name[:62]:62} {' '.join(f'{f:6.3f}' for f in figures)}", flush=True)
    print(f"{'mean':62} {' '.join(f'{f:6.3f}' for f in np.mean(found, axis=0))}")
    model.close()


if __name__ == "__main__":
    main()
