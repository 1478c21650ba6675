"""Are yes/no answers right more often if the model writes a reason first?

    python benchmarks/bench_reasons.py [--data FOLDER] [--rows 4] [--every 5] [--model MODEL] [--tokens 48]

Every fifth of the public questions (``public_questions.py``), each about some texts, as many with a
yes as with a no. Both ways ask the same; balanced accuracy is over all texts. Labels are never shown
to the model.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from public_questions import public

import blendfusion as bf


def answers_of(session: bf.Session, question: str, texts: tuple[str, ...], more: str) -> list[bool]:
    quoted = question.replace("'", "''")
    session.from_pydict({"id": list(range(len(texts))), "x": list(texts)}, name="texts")
    frame = session.sql(f"SELECT id, llm_filter('{quoted}', x{more}) AS yes FROM texts ORDER BY id")
    found = [bool(row["yes"]) for row in frame.to_pylist()]
    session.deregister_table("texts")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("BLENDFUSION_DATA", "../shared/data")
    parser.add_argument("--data", type=Path, default=Path(data))
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tokens", type=int, default=48)
    arguments = parser.parse_args()
    session = bf.connect(arguments.model, cache=None, progress="off")
    ways = {"at once": "", "behind a reason": f", reasoning => {arguments.tokens}"}
    right = {way: {True: [0, 0], False: [0, 0]} for way in ways}
    seconds = dict.fromkeys(ways, 0.0)
    for place, asked in enumerate(public(arguments.data, arguments.rows)):
        if place % arguments.every:
            continue
        for way, more in ways.items():
            began = time.perf_counter()
            given = answers_of(session, asked.question, asked.texts, more)
            seconds[way] += time.perf_counter() - began
            for answer, label in zip(given, asked.yes, strict=True):
                right[way][label][0] += answer == label
                right[way][label][1] += 1
        print(f"{asked.name}", flush=True)
    print("| | balanced accuracy | right of those with a yes | with a no | seconds |")
    for way, counts in right.items():
        shares = [good / max(1, of) for good, of in counts.values()]
        told = " | ".join(f"{good} of {of}" for good, of in counts.values())
        print(f"| {way} | {sum(shares) / 2:.2f} | {told} | {seconds[way]:.0f} |")


if __name__ == "__main__":
    main()
