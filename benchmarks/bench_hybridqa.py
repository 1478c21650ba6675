"""How many tokens does a model read for questions over tables and linked passages, and are its
answers right?

    python benchmarks/bench_hybridqa.py [--data FOLDER] [--model MODEL]

Ten questions of HybridQA, as queries written by hand (hybridqa_queries.py). An answer is right if
every row of it holds the gold answer. "asked" is how many values the model saw, "prompt" the tokens
of their prompts, "evaluated" those that the model computed (what prompts share once, and for closed
answers one prompt without a value), "naive" the tokens, by the same tokenizer, of one prompt with
the whole table, all of its linked passages, each once, and the question, without a template.
"fewer" compares prompt with naive. If a model writes the queries, that costs tokens too: they are
not counted here.

"reader" says whether the same query gives the gold answer where each passage is read right: its
model finds, with a pattern written by hand for each question, the answer in the passages that it is
sent, and knows nothing else. That judges the queries and the engine, not a model."""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from hybridqa_queries import QUERIES
from hybridqa_tables import Hybrid, is_right, reader
from public_sets import datasets

import blendfusion as bf

LINE = "{:16} {:22} {:18} {:6} {:6} {:>5} {:>7} {:>9} {:>7} {:>6}"


@dataclass(frozen=True)
class Result:
    """What one query gave and cost."""

    question_id: str
    answer: str
    gold: str
    is_right: bool
    is_read: bool
    """The gold answer comes of passages that are read right."""
    usage: bf.Usage
    naive: int

    def line(self) -> str:
        return LINE.format(
            *(self.question_id, self.answer, self.gold),
            *("right" if verdict else "wrong" for verdict in (self.is_right, self.is_read)),
            *costs(self.usage, self.naive),
        )


def costs(usage: bf.Usage, naive: int) -> tuple[str, ...]:
    counts = (usage.values, usage.prompt_tokens, usage.evaluated_tokens, naive)
    return (*(f"{count:,}" for count in counts), f"{1 - usage.prompt_tokens / naive:.1%}")


def shown(rows: list[dict[str, object]]) -> str:
    answers = "; ".join(str(row["answer"]) for row in rows) or "(no row)"
    return answers if len(answers) <= 22 else answers[:21] + "…"


def results(hybrid: Hybrid, session: bf.Session, index: Path) -> Iterator[Result]:
    for query in QUERIES:
        gold = hybrid.question(query).answer
        frame = hybrid.frame(session, query)
        rows = frame.to_pylist()
        read = hybrid.frame(hybrid.session(reader(query), index), query).to_pylist()
        yield Result(
            query.question_id,
            shown(rows),
            gold,
            is_right(rows, gold),
            is_right(read, gold),
            frame.trace.usage,
            session.model.count_tokens(hybrid.naive_prompt(query)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=datasets(), help="the folder with the sets")
    parser.add_argument("--model", default="smollm2")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data is missing: where the data sets are")
    warnings.simplefilter("ignore", bf.AnswerWarning)
    titles = "question answer gold model reader asked prompt evaluated naive fewer"
    print(LINE.format(*titles.split()))
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "passages.index"
        hybrid = Hybrid(arguments.data)
        session = hybrid.session(arguments.model, index)
        done = []
        for result in results(hybrid, session, index):
            print(result.line(), flush=True)
            done.append(result)
        usage = sum((result.usage for result in done), bf.Usage())
        naive = sum(result.naive for result in done)
        right = f"{sum(result.is_right for result in done)}/{len(done)}"
        read = f"{sum(result.is_read for result in done)}/{len(done)}"
        print(LINE.format("all", "", "", right, read, *costs(usage, naive)))
        window = session.model.info.window
        longer = sum(result.naive > window for result in done)
        print(f"naive prompts that do not fit the model's window of {window:,} tokens: {longer}")


if __name__ == "__main__":
    main()
