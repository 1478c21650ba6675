"""How right and how fast is the packaged model, against the same model asked naively, row by row?

    python benchmarks/bench_answers.py [--data FOLDER] [--rows 200] [--model smollm2|gemma|FILE]

The data are open slices of public sets (review_sentences, sms_spam, ag_news, trec_questions,
restaurant8k), the first rows of each in file order; label columns are never shown to the model.
"Naive" is what a first script would do: one chat completion a row, free text, read leniently.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.protocol.python_packages import gemma_weights, packaged_weights
from blendfusion.models.services.llama.library import library
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

NEWS = ("World", "Sports", "Business", "Sci/Tech")
TREC = {
    "abbreviation": "abbreviation",
    "description": "description",
    "entity": "thing",
    "human": "person",
    "location": "place",
    "numeric": "number",
}
TIME = r"[0-9]{1,2}(:[0-9]{2})?( ?[ap]\.?m\.?)?"
NUMBERS = dict(
    zip(
        [
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ],
        range(1, 13),
        strict=True,
    )
)


@dataclass(frozen=True)
class Case:
    """One question over one column. ``metric``: accuracy, or the F1 of the answer ``true``."""

    name: str
    task: Task
    texts: tuple[str, ...]
    gold: tuple[str, ...]
    metric: str = "accuracy"

    def score(self, answers: Sequence[str | None]) -> float:
        pairs = list(zip(answers, self.gold, strict=True))
        if self.metric == "F1":
            hits = sum(answer == gold == "true" for answer, gold in pairs)
            marked = sum((a == "true") + (g == "true") for a, g in pairs)
            return 2 * hits / max(1, marked)
        return sum(_same(answer) == _same(gold) for answer, gold in pairs) / len(pairs)

    def majority(self) -> float:
        """The score of the best answer that is always the same."""
        candidates = {"true"} if self.metric == "F1" else set(self.gold)
        return max(self.score([answer] * len(self.gold)) for answer in candidates)


def cases(data: Path, rows: int) -> Iterator[Case]:
    """The cases, each with at most ``rows`` rows in file order."""

    def read(name: str) -> list[dict[str, str]]:
        table: list[dict[str, str]] = pq.read_table(data / name).to_pylist()
        return table

    def case(
        name: str,
        task: Task,
        pairs: Sequence[tuple[str, str]],
        metric: str = "accuracy",
    ) -> Case:
        texts, gold = zip(*pairs[:rows], strict=True)
        return Case(name, task, texts, gold, metric)

    boolean, text = Constraint("boolean"), ("text",)
    yield case(
        "review_sentences",
        Task("llm_filter", "Is this review positive?", boolean, text),
        [
            (row["text"], str(row["label"] == "positive").lower())
            for row in read("review_sentences/sentences.parquet")
        ],
    )
    yield case(
        "sms_spam",
        Task("llm_filter", "Is this message spam?", boolean, text),
        [
            (row["text"], str(row["label"] == "spam").lower())
            for row in read("sms_spam/messages.parquet")
        ],
        "F1",
    )
    yield case(
        "ag_news",
        Task(
            "llm_classify",
            "What is the topic of this article?",
            Constraint("choice", options=NEWS),
            text,
        ),
        [
            (f"{row['title']}. {row['description']}", row["label"])
            for row in read("ag_news/articles.parquet")
        ],
    )
    yield case(
        "trec_questions",
        Task(
            "llm_classify",
            "What does the question ask for?",
            Constraint("choice", options=tuple(TREC.values())),
            text,
        ),
        [
            (row["text"], TREC.get(row["label"], row["label"]))
            for row in read("trec_questions/questions.parquet")
        ],
    )
    bookings = read("restaurant8k/utterances.parquet")
    yield case(
        "restaurant8k people",
        Task("llm_int", "For how many people?", Constraint("integer"), text),
        [
            (row["text"], people)
            for row in bookings
            if (people := _people(row["people"])) is not None
        ],
    )
    yield case(
        "restaurant8k time",
        Task("llm_map", "At what time?", Constraint("regex", pattern=TIME), text),
        [
            (row["text"], row["time"])
            for row in bookings
            if row["time"] and re.fullmatch(TIME, row["time"].lower())
        ],
    )


def _people(said: str | None) -> str | None:
    """The number in a gold answer that is no more than a number of people."""
    words = (said or "").lower().split()
    if not words or words[1:] not in ([], ["people"], ["person"], ["persons"], ["guests"]):
        return None
    number = NUMBERS.get(words[0], words[0])
    return str(number) if str(number).isdigit() else None


def _same(answer: str | None) -> str | None:
    return None if answer is None else re.sub(r"[\s.]", "", answer).lower()


# -- the two ways to ask -------------------------------------------------------------------------

Ask = Callable[[Case], list[str | None]]


def in_sql(path: Path, options: Options) -> tuple[bf.Session, Ask]:
    """A session with the model, and a way to ask a case as a user does: one SELECT over a table."""
    session = bf.connect(LlamaModel(path, options), cache=None, progress="off")

    def ask(case: Case) -> list[str | None]:
        table = pa.table({"row": range(len(case.texts)), "text": case.texts})
        session.register_record_batches("data", [table.to_batches()])
        try:
            found = session.sql(f"SELECT {_call(case.task)} AS answer FROM data ORDER BY row")
            answers = found.to_arrow_table().column("answer").to_pylist()
        finally:
            session.deregister_table("data")
        constraint = case.task.constraint
        return [None if a is None else canonical(a, constraint) for a in answers]

    return session, ask


def _call(task: Task) -> str:
    question, constraint = _quoted(task.question), task.constraint
    if constraint.kind == "choice":
        labels = ", ".join(map(_quoted, constraint.options))
        return f"llm_classify(text, [{labels}], question => {question})"
    if constraint.kind == "regex":
        return f"llm_map({question}, text, regex => {_quoted(constraint.pattern or '')})"
    return f"{task.ingredient}({question}, text)"


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def naively(path: Path) -> Ask:
    """One chat completion a row."""
    llama = library().Llama(str(path), n_ctx=4096, n_threads=os.cpu_count(), verbose=False)

    def ask(case: Case) -> list[str | None]:
        return [_read(case, _complete(llama, f"{_wording(case)}\n\n{text}")) for text in case.texts]

    return ask


def _complete(llama: object, content: str) -> str:
    reply = llama.create_chat_completion(  # type: ignore[attr-defined]
        messages=[{"role": "user", "content": content}], max_tokens=16, temperature=0.0
    )
    return str(reply["choices"][0]["message"]["content"] or "")


def _wording(case: Case) -> str:
    constraint = case.task.constraint
    if constraint.kind == "boolean":
        return f"{case.task.question} Answer yes or no."
    if constraint.kind == "choice":
        return f"{case.task.question} Answer with one of: {', '.join(constraint.options)}."
    return f"{case.task.question} Answer with the {'number' if constraint.kind == 'integer' else 'time'} only."


def _read(case: Case, reply: str) -> str | None:
    """What a lenient reader makes of a free reply; None if nothing."""
    constraint = case.task.constraint
    lowered = reply.lower()
    if constraint.kind == "boolean":
        found = re.search(r"\b(yes|no)\b", lowered)
        return None if found is None else str(found[1] == "yes").lower()
    if constraint.kind == "choice":
        places = [(lowered.find(option.lower()), option) for option in constraint.options]
        return min((pair for pair in places if pair[0] >= 0), default=(0, None))[1]
    found = re.search(r"[0-9]+" if constraint.kind == "integer" else TIME, lowered)
    return found[0] if found else None


# -- the tables ----------------------------------------------------------------------------------


def compare(path: Path, data: Path, rows: int, options: Options, naive_rows: int) -> None:
    session, ask = in_sql(path, options)
    print(f"{path.name}, {rows} rows of each set at most, options: {_shown(options)}")
    print(f"naive: on the first {naive_rows} of them; 'same' is our score on these rows")
    print(
        f"{'data set':20} {'metric':8} {'rows':>4} {'majority':>8} {'ours':>6} {'inside':>6} "
        f"{'same':>6} {'naive':>6} {'rows/s':>7} {'naive':>7} {'ratio':>6}"
    )
    by_row = naively(path) if naive_rows else None
    for case in cases(data, rows):
        answers, rate = _timed(ask, case)
        inside = sum(
            answer is not None and holds(case.task.constraint, answer) for answer in answers
        ) / len(answers)
        line = (
            f"{case.name:20} {case.metric:8} {len(case.texts):4} {case.majority():8.3f} "
            f"{case.score(answers):6.3f} {inside:6.3f}"
        )
        if by_row is None:
            print(f"{line} {'-':>6} {'-':>6} {rate:7.2f}", flush=True)
            continue
        few = replace(case, texts=case.texts[:naive_rows], gold=case.gold[:naive_rows])
        naive_answers, naive_rate = _timed(by_row, few)
        print(
            f"{line} {few.score(answers[:naive_rows]):6.3f} {few.score(naive_answers):6.3f} "
            f"{rate:7.2f} {naive_rate:7.2f} {rate / naive_rate:6.1f}",
            flush=True,
        )
    session.close()


def _timed(ask: Ask, case: Case) -> tuple[list[str | None], float]:
    """The answers and the rows per second, with all that the question costs; one row of another
    question goes first, so that loading the weights is not counted."""
    other = replace(case.task, question="Is it there?")
    ask(replace(case, task=other, texts=case.texts[:1], gold=case.gold[:1]))
    started = time.perf_counter()
    answers = ask(case)
    return answers, len(answers) / (time.perf_counter() - started)


def _shown(options: Options) -> str:
    return f"shots={options.shots}, calibration={options.calibration!r}"


def weights(name: str) -> Path:
    known = {"smollm2": packaged_weights, "gemma": gemma_weights}
    path = known[name]() if name in known else Path(name)
    if path is None:
        raise SystemExit(f"the weights of '{name}' are not installed")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("BLENDFUSION_DATA"),
        help="the folder with the sets (default: the environment variable BLENDFUSION_DATA)",
    )
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--model", default="smollm2", help="smollm2, gemma or a GGUF file")
    parser.add_argument("--naive-rows", type=int, default=200, help="0: leave the naive run out")
    given = parser.parse_args()
    if given.data is None:
        parser.error("--data is missing: where the data sets are")
    path = weights(given.model)
    compare(path, given.data, given.rows, Options(), min(given.rows, given.naive_rows))


if __name__ == "__main__":
    main()
