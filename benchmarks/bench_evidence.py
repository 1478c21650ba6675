"""How often does a model make up a number or a date, and how often with ``evidence => true``?

    python benchmarks/bench_evidence.py [--data FOLDER] [--rows 100] [--model smollm2|gemma|FILE]

Messages of guests (restaurant8k): for each slot the first messages that state it, and the first that
do not. A slot is right if the answer equals the label; a value for a message that does not state the
slot is fabricated, as is a value that is neither the label nor in the text. Labels are never shown
to the model. Both ways ask the same questions, so the second one is answered from the cache.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from bench_answers import TIME, _people, _same

import blendfusion as bf

Gold = Callable[[str | None], str | None]

SLOTS: dict[str, tuple[str, str, str, Gold]] = {
    "people": ("people", "For how many people?", "returns => 'int'", _people),
    "time": ("time", "At what time?", f"regex => '{TIME}'", lambda said: said),
    "day": ("date", "On which date?", "returns => 'date'", lambda said: None),
}
"""By name: the column, the question, its type, and the right answer to a label, if it is known."""


def rows_of(table: pa.Table, column: str, gold: Gold, count: int) -> tuple[pa.Table, pa.Table]:
    """(messages that state the slot with a known answer, messages that do not state it)."""
    stated = [i for i, said in enumerate(table[column].to_pylist()) if gold(said) is not None]
    absent = [i for i, said in enumerate(table[column].to_pylist()) if said is None]
    taken = [pa.array(places[:count], pa.int64()) for places in (stated, absent)]
    return table.take(taken[0]), table.take(taken[1])


def measured(session: bf.Session, rows: pa.Table, call: str) -> list[object]:
    texts = pa.table({"row": range(len(rows)), "text": rows["text"]})
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("BLENDFUSION_DATA", "../shared/data")
    parser.add_argument("--data", type=Path, default=Path(data))
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--model", default="smollm2")
    arguments = parser.parse_args()
    table = pq.read_table(arguments.data / "restaurant8k" / "utterances.parquet")
    session = bf.connect(arguments.model, cache=None, progress="off")
    print("| slot | stated, absent | right | fabricated | right, evidence | fabricated, evidence |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, (column, question, kind, gold) in SLOTS.items():
        stated, absent = rows_of(table, column, gold, arguments.rows)
        cells = []
        for evidence in (False, True):
            more = ", evidence => true" if evidence else ""
            call = f"llm_map('{question}', text, {kind}{more})"
            right = made_up = 0
            for rows, is_stated in ((stated, True), (absent, False)):
                if not len(rows):
                    continue
                answers = measured(session, rows, call)
                if evidence:
                    answers = [
                        value_of(part, text)
                        for part, text in zip(answers, rows["text"].to_pylist(), strict=True)
                    ]
                for answer, stated_value, text in zip(
                    answers, rows[column].to_pylist(), rows["text"].to_pylist(), strict=True
                ):
                    if answer is None:
                        continue
                    same = is_stated and _same(str(answer)) == _same(gold(stated_value))
                    right += same
                    words = re.sub(r"[\s.]", "", text).lower()
                    made_up += not same and (
                        not is_stated or (_same(str(answer)) or "") not in words
                    )
            share = f"{right / len(stated):.3f}" if len(stated) else "–"
            cells += [share, f"{made_up / (len(stated) + len(absent)):.3f}"]
        print(f"| {name} | {len(stated)}, {len(absent)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
