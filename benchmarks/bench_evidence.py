"""How often does a model make up a number or a date, and what does ``evidence => true`` cost?

    python benchmarks/bench_evidence.py [--data FOLDER] [--rows 100] [--model smollm2|gemma|llama:FILE] [--only bill]

Messages of guests (restaurant8k): for each slot the first messages that state it, and the first that
do not. Bills, made here: half of them with a date and an amount, half without, all with the number
of an order, and in a second set those without also with the number of a table. An answer is right if it equals the label; any answer for a text that does not state the
value is fabricated. Precision is the share of right ones among all answers, recall among the texts
that state the value. Labels are never shown to the model. Both ways ask the same questions, so the
second one is answered from the cache.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from bench_answers import TIME, _people, _same

import blendfusion as bf

MORE = "<more>"
"""The place of further options in a call."""
Gold = Callable[[str | None], str | None]

SLOTS: dict[str, tuple[str, str, Gold]] = {
    "people": ("people", "llm_int('For how many people?', text<more>)", _people),
    "time": (
        "time",
        f"llm_map('At what time?', text, regex => '{TIME}'{MORE})",
        lambda said: said,
    ),
    "day": ("date", "llm_date('On which date?', text<more>)", lambda said: None),
}
"""By name: the column of restaurant8k, the call, and the right answer to a label, if it is known."""
BILLS = {
    "amount of a bill": "llm_float('How much money is to be paid?', text<more>)",
    "date of a bill": "llm_date('Which date is mentioned?', text<more>)",
}
_SHOPS = ("Miller & Sons", "Hotel Post", "Cafe Luna", "Bright Books", "Garden Center West")
_MONTHS = "January February March April May June July August September October November December"


class Case(NamedTuple):
    """A text, and the value that it states; None if it states none."""

    text: str
    label: str | None


def of_messages(table: pa.Table, column: str, gold: Gold, count: int) -> list[Case]:
    """The first messages that state a slot with a known answer, and the first that do not."""
    texts, labels = table["text"].to_pylist(), table[column].to_pylist()
    stated = [Case(t, gold(x)) for t, x in zip(texts, labels, strict=True) if gold(x) is not None]
    absent = [Case(t, None) for t, x in zip(texts, labels, strict=True) if x is None]
    return stated[:count] + absent[:count]


def bills(count: int, *, tables: bool = False) -> Iterator[tuple[Case, Case]]:
    """So many bills as cases of their amount and of their date; every other one has neither, but
    with ``tables`` the number of one."""
    rng = random.Random(7)
    for number in range(count):
        shop, order = rng.choice(_SHOPS), f"A{rng.randrange(10_000, 99_999)}"
        cents = rng.randrange(500, 99_999)
        amount = f"{cents // 100}.{cents % 100:02}"
        year, month, day = rng.randrange(2019, 2027), rng.randrange(12), rng.randrange(1, 29)
        name = _MONTHS.split()[month]
        date = rng.choice(
            [f"{year}-{month + 1:02}-{day:02}", f"{day} {name} {year}", f"{name} {day}, {year}"]
        )
        if number % 2:
            place = f"table {rng.randrange(1, 30)}" if tables else "our place"
            text = f"{shop}, order {order}. Thank you for your visit to {place}. "
            text += rng.choice(["The bill follows by mail.", "Please pay at the counter."])
            yield Case(text, None), Case(text, None)
        else:
            text = f"{shop}, order {order}, {date}. Please pay EUR {amount} at the counter."
            yield Case(text, amount), Case(text, date_of(year, month + 1, day))


def date_of(year: int, month: int, day: int) -> str:
    return f"{year}-{month:02}-{day:02}"


def measured(session: bf.Session, cases: list[Case], call: str) -> list[object]:
    texts = pa.table({"row": range(len(cases)), "text": [case.text for case in cases]})
    session.register_record_batches("messages", [texts.to_batches()])
    try:
        found = session.sql(f"SELECT {call} AS answer FROM messages ORDER BY row")
        return list(found.to_arrow_table()["answer"].to_pylist())
    finally:
        session.deregister_table("messages")


def value_of(part: Any, text: str) -> object:
    """The value of an answer with evidence. Raises AssertionError unless its span is of ``text``."""
    if part is None:
        return None
    if part["evidence"] is not None:
        assert text[part["start"] : part["end"]] == part["evidence"]
    return part["value"]


def is_right(answer: object, label: str) -> bool:
    if isinstance(answer, float):
        return answer == float(label)
    return _same(str(answer)) == _same(label)


def cells(cases: list[Case], answers: list[object]) -> list[str]:
    """Precision, recall, their harmonic mean, and the fabricated answers, as cells of a table."""
    stated = [(a, c.label) for a, c in zip(answers, cases, strict=True) if c.label is not None]
    absent = [a for a, c in zip(answers, cases, strict=True) if c.label is None]
    right = sum(a is not None and is_right(a, label) for a, label in stated)
    given = sum(a is not None for a in answers)
    made_up = sum(a is not None for a in absent)
    if not stated:
        return ["–", "–", "–", f"{made_up} of {len(absent)}"]
    precision, recall = right / max(1, given), right / len(stated)
    mean = 2 * precision * recall / max(1e-9, precision + recall)
    return [*(f"{x:.2f}" for x in (precision, recall, mean)), f"{made_up} of {len(absent)}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("BLENDFUSION_DATA", "../shared/data")
    parser.add_argument("--data", type=Path, default=Path(data))
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--only", default="", help="sets with this in their name")
    arguments = parser.parse_args()
    table = pq.read_table(arguments.data / "restaurant8k" / "utterances.parquet")
    made = [*bills(arguments.rows)]
    sets = {
        f"{name} of a message": (call, of_messages(table, column, gold, arguments.rows))
        for name, (column, call, gold) in SLOTS.items()
    }
    for (name, call), kind in zip(BILLS.items(), zip(*made, strict=True), strict=True):
        sets[name] = call, [*kind]
    amounts = [amount for amount, _ in bills(arguments.rows, tables=True)]
    sets["amount of a bill, or the number of a table"] = BILLS["amount of a bill"], amounts
    session = bf.connect(arguments.model, cache=None, progress="off")
    columns = "precision | recall | mean | fabricated"
    print(f"| value | {columns} | {columns} with evidence |")
    print(f"|---|{'--:|' * 8}")
    for name, (call, cases) in sets.items():
        if arguments.only not in name:
            continue
        plain = measured(session, cases, call.replace(MORE, ", evidence => false"))
        shown = measured(session, cases, call.replace(MORE, ", evidence => true"))
        grounded = [value_of(p, c.text) for p, c in zip(shown, cases, strict=True)]
        line = [name, *cells(cases, plain), *cells(cases, grounded)]
        print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
