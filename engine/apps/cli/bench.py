"""``blendfusion bench``: measures rows per second of a model, beside the possible rate."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import blendfusion as bf
from blendfusion.errors import OptionError
from blendfusion.models.protocol.abilities import abilities_of
from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.load import load
from blendfusion.types import Usage

QUESTIONS = {
    "yes or no": "llm_filter('Is the customer content?', text)",
    "one of three": "llm_classify(text, ['delivery', 'quality', 'price'])",
    "a number": "llm_int('How many days did it take?', text)",
    "a few words": "llm_map('What is it about? Two words.', text)",
}
_ALONE = 3
"""Sequential values of a server before each question, to measure its latency. A local model gets
one, which loads it."""

_PASSES, _RAW_SECONDS = 5, 3.0
"""Maximum passes and seconds for the raw rate; the best pass counts."""

_BEGINS = (
    *(
        "The parcel came after {} days",
        "It took {} days to reach us",
        "Ordered, and there in {} days",
    ),
    *("We waited {} days for this lamp", "Sent back twice within {} days", "Worked for {} days"),
    *("The second one in {} days", "My sister got hers after {} days"),
)
_ENDS = (
    *("and the box was dented.", "and it is lovely.", "but the colour is not what I chose."),
    *("for a price that I would not pay again.", "and everyone here wants one now."),
    *(
        "without a word from the shop.",
        "and it still does what it should.",
        "which is fine with me.",
    ),
)


def texts(count: int) -> list[str]:
    """``count`` distinct short reviews."""
    made = (
        f"{begin.format(days)} {end}"
        for days, begin, end in itertools.product(range(2, 1000), _BEGINS, _ENDS)
    )
    return list(itertools.islice(made, count))


def add_arguments(bench: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bench``."""
    bench.set_defaults(run=_bench)
    bench.add_argument("--model", metavar="SPEC", help="as for 'query'; see 'blendfusion models'")
    bench.add_argument(
        "--values",
        type=int,
        default=32,
        metavar="N",
        help="the number of distinct texts per question (default: 32)",
    )


@dataclass(frozen=True, slots=True)
class Measurement:
    """One question: the usage of its values, and the possible rows per second (None: unknown)."""

    question: str
    usage: Usage
    seconds: float
    limit: float | None

    @property
    def rate(self) -> float:
        return self.usage.values / self.seconds


def _bench(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.values <= 10_000:
        raise OptionError("--values is a number from 1 to 10,000")
    options = bf.Options(max_tokens=16, progress="off")
    model = load(arguments.model, options)
    raw = _raw_rate(model)
    if raw is not None:
        print(f"{model.info.name} computes {raw:,.0f} tokens of prompts a second on this machine")
    rows = list(_measure(model, arguments.values, raw, options))
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("question", "values", "failed", "tokens a value", "rows/s", "limit", "share"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for row in rows:
        table.add_row(*_cells(row))
    Console(file=sys.stdout, highlight=False, markup=False, width=100).print(table)
    print(_limit_line(model, raw))
    return 0


def _cells(row: Measurement) -> tuple[str, ...]:
    each = row.usage.evaluated_tokens / max(1, row.usage.values)
    limit = "" if row.limit is None else f"{max(row.limit, row.rate):,.1f}"
    # Other work on the machine may have lowered the limit: a rate above it is the limit.
    share = "" if row.limit is None else f"{min(1.0, row.rate / row.limit):.0%}"
    counts = f"{row.usage.values:,}", f"{row.usage.failed:,}"
    return (row.question, *counts, f"{each:,.1f}", f"{row.rate:,.1f}", limit, share)


def _limit_line(model: Model, raw: float | None) -> str:
    if raw is not None:
        return "limit: every token of a value, read or written, at the rate of prompts in large batches"
    if _in_flight(model) > 1:
        return f"limit: {_in_flight(model)} requests in flight, each as quick as one alone"
    return "no limit is known for this model"


def _measure(
    model: Model, count: int, raw: float | None, options: bf.Options
) -> Iterator[Measurement]:
    made = texts(_ALONE + count)
    repeats = _ALONE if _in_flight(model) > 1 else 1
    with (
        warnings.catch_warnings(),
        bf.connect(model, cache=None, progress="off") as session,
    ):
        warnings.simplefilter("ignore", bf.AnswerWarning)  # the table counts failures
        session.from_pydict({"text": made[_ALONE:]}, name="measured")
        for place, text in enumerate(made[:repeats]):
            session.from_pydict({"text": [text]}, name=f"alone_{place}")
        for question, call in QUESTIONS.items():
            alone = [_run(session, call, f"alone_{place}")[1] for place in range(repeats)]
            usage, seconds = _run(session, call, "measured")
            limit = None
            if raw is not None and usage.evaluated_tokens:
                limit = raw * usage.values / usage.evaluated_tokens
            elif raw is None and _in_flight(model) > 1:
                limit = _in_flight(model) / min(alone)
            yield Measurement(question, usage, seconds, limit)


def _run(session: bf.Session, call: str, table: str) -> tuple[Usage, float]:
    frame = session.sql(f"SELECT {call} AS answer FROM {table}")
    begun = time.perf_counter()
    frame.to_arrow_table()
    return frame.trace.usage, time.perf_counter() - begun


def _in_flight(model: Model) -> int:
    """Concurrent requests of a server; 1 for other models."""
    abilities = abilities_of(model)
    return abilities.at_once if abilities.call_per_value else 1


def _raw_rate(model: Model) -> float | None:
    """Prompt tokens per second of llama.cpp in its largest batches; None for other models."""
    path = getattr(model, "path", None)
    if not isinstance(path, Path):
        return None
    from blendfusion.models.services.llama.context import LlamaContext, Weights
    from blendfusion.models.services.llama.switch import Switch
    from blendfusion.models.services.llama.token_batch import Batch

    weights = Weights(path, n_gpu_layers=0, switch=Switch())
    try:
        context = LlamaContext(weights, n_ctx=2048, threads=0)
        try:
            tokens = context.tokenize(" ".join(texts(64)), special=False)[:256]
            batch = Batch()
            batch.add(tokens[: context.n_batch], 0, 0)
            took: list[float] = []
            while len(took) < 2 or (len(took) < _PASSES and sum(took) < _RAW_SECONDS):
                context.clear()
                begun = time.perf_counter()
                context.decode(batch)
                took.append(time.perf_counter() - begun)
            return len(batch) / min(took)
        finally:
            context.close()
    finally:
        weights.close()
