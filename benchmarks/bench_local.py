"""How near is a local model to what its machine can do, and how far from what one would write
first?

    python benchmarks/bench_local.py [--model smollm2|gemma|FILE] [--gpu] [--data FOLDER]
    python benchmarks/bench_local.py --same 1000
    python benchmarks/bench_local.py --compiled FOLDER

All ways take turns, so that what else the machine does falls on all of them; its load is printed.
The texts are review sentences of ``--data`` (see README.md), else those of examples/.

The limit of a question whose answer is chosen is the rate at which llama.cpp computes one batch of
256 tokens (on a GPU 1,024), over the tokens of a row; of one whose answer is written, over those and the written
ones. These need logits and come one a row: "with logits" counts them at the rate of one batch of a
token for each of as many rows as go at a time. Attention of ours is part of both rates. What
llama.cpp does outside of its decode call, reading text as tokens and freeing cells of its store,
counts as inside. "Chat" is one chat completion a row, in which a grammar of llama.cpp holds the
answer, with the same words.

``--compiled`` compares the prebuilt library of llama.cpp with another one, such as that of
``pip install --target FOLDER llama-cpp-python`` in FOLDER/llama_cpp/lib: processes take turns."""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from blendfusion.models.protocol.python_packages import gemma_weights, packaged_weights
from blendfusion.models.protocol.run_aside import run_aside
from blendfusion.models.services.llama import scheduler as slots_module
from blendfusion.models.services.llama.batch import TaskBatch
from blendfusion.models.services.llama.closed_set import ChoiceDecoder
from blendfusion.models.services.llama.constrained_decoding import Guide
from blendfusion.models.services.llama.cpu_cores import cores
from blendfusion.models.services.llama.library import library
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.llama.token_batch import Batch
from blendfusion.options import Options, WeightType
from blendfusion.types import Answer, Constraint, Task

QUESTION = Task("llm_filter", "Is this review positive?", Constraint("boolean"), ("text",))
WRITTEN = {
    "integer": Task("llm_int", "How many stars is it worth?", Constraint("integer"), ("text",)),
    "date": Task("llm_date", "When was it written?", Constraint("date"), ("text",)),
    "text, 16 tokens": Task("llm_map", "What is it about?", Constraint("text"), ("text",)),
}
BEGINNING = "The customer wrote on the page of the product, after the purchase had been confirmed: "
BATCH = 256
LAYERS = 0
"""On the GPU."""


@dataclass
class Way:
    """One way to answer, and what it took so far."""

    name: str
    run: Callable[[Sequence[str]], None]
    rows: int = 0
    seconds: float = 0.0
    given: int = 0
    evaluated: int = 0
    outside: float = 0.0
    """Seconds of a processor for all but llama.cpp: its passes, and its reading of texts as tokens.
    """
    written: int = 0
    limits: list[float] = field(default_factory=list)
    """Tokens/s that were possible at the time."""
    steps: list[float] = field(default_factory=list)
    """Of tokens that are written, one a row."""

    def turn(self, texts: Sequence[str]) -> None:
        start = time.perf_counter()
        self.run(texts)
        self.seconds += time.perf_counter() - start
        self.rows += len(texts)

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def texts_of(data: Path | None, count: int) -> list[str]:
    """Distinct texts, in file order."""
    here = Path(__file__).parent.parent
    folder = data or here.parent / "shared" / "data"
    file = folder / "review_sentences" / "sentences.parquet"
    if file.exists():
        found = pq.read_table(file).column("text").to_pylist()
    else:
        with (here / "examples" / "reviews.csv").open(newline="", encoding="utf-8") as lines:
            found = [row["text"] for row in csv.DictReader(lines)]
    return list(dict.fromkeys(found))[:count]


# -- ours --------------------------------------------------------------------------------------------


class Ours:
    """A model of ours that keeps account of what it computes."""

    def __init__(self, file: Path, weights: WeightType, *, max_tokens: int = 16) -> None:
        self.options = Options(weights=weights, max_tokens=max_tokens, n_gpu_layers=LAYERS)
        self.model = LlamaModel(file, self.options)
        self.opened = self.model._ready()
        self.context = self.opened.context
        self.decode = self.context.decode
        self.inside = 0.0
        self._within = False
        streams = self.opened.streams
        for context in (self.context, *([] if streams is None else [streams.context])):
            for name in ("decode", "tokenize", "copy", "copy_all", "trim"):
                setattr(context, name, self._timed(getattr(context, name)))

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            if self._within:
                return call(*args, **named)
            self._within, start = True, time.process_time()
            try:
                return call(*args, **named)
            finally:
                self.inside += time.process_time() - start
                self._within = False

        return timed

    def raw(self) -> float:
        """Tokens/s of one batch of 256, on a GPU of as many as it computes at once, that follow
        nothing."""
        size = self.context.batch_tokens if LAYERS else BATCH
        batch = Batch()
        batch.add([1000 + 31 * position % 9000 for position in range(size)], 0, 0)
        batch.want(size - 1)
        return self._rate(batch)

    def _rate(self, batch: Batch) -> float:
        """Tokens/s of a batch, in a thread of its own as answers are: OpenMP keeps a team for each
        thread that computed, and with more threads than processors none of them spins while it
        waits."""
        self.opened.forget()
        start = time.perf_counter()
        run_aside(lambda: self.decode(batch), self.context.check)
        seconds = time.perf_counter() - start
        self.opened.forget()
        return len(batch) / seconds

    def raw_written(self) -> float:
        """Tokens/s of one batch of a token for each of many rows, behind nothing, all with
        logits."""
        batch = Batch()
        for sequence in range(1, self.context.slots + 1):
            batch.want(*batch.add([1000 + 31 * sequence % 9000], 0, sequence))
        return self._rate(batch)

    def way(self, name: str, task: Task, *, slots: int = 0, shares: bool = True) -> Way:
        """Answers to a task whose prior is known already; ``slots`` 0: as many as usual."""
        usual = self.context.slots
        self.model.answer(task, [("x",)])

        def run(texts: Sequence[str]) -> None:
            raw, steps = self.raw(), self.raw_written()
            self.model.answer(task, [("x",)])  # the prefix is there again
            self.context.slots = slots or usual
            start, busy, inside = time.perf_counter(), time.process_time(), self.inside
            with told() as spent, sharing(shares):
                answers = self.model.answer(task, [(text,) for text in texts])
            seconds = time.perf_counter() - start
            self.context.slots = usual
            way.limits.append(raw)
            way.steps.append(steps)
            way.written += sum(answer.usage.completion_tokens for answer in answers)
            way.given += spent[0].given
            way.evaluated += spent[0].tokens
            way.outside += time.process_time() - busy - (self.inside - inside)
            way.seconds += seconds
            way.rows += len(texts)
            ran_on = "digits without an end"  # of a text without a number
            assert all(a.error is None or a.error.startswith(ran_on) for a in answers)

        way = Way(name, run)
        way.turn = run  # type: ignore[method-assign]
        return way


@contextmanager
def told() -> Iterator[list[slots_module.RunCost]]:
    """What the askings in this block spend."""
    usual, found = TaskBatch.answers, []

    def answers(self: TaskBatch) -> list[Answer]:
        found.append(self.spent)
        return usual(self)

    TaskBatch.answers = answers  # type: ignore[method-assign]
    try:
        yield found
    finally:
        TaskBatch.answers = usual  # type: ignore[method-assign]


@contextmanager
def sharing(shares: bool) -> Iterator[None]:
    """Whether rows take over what they share with the one before."""
    usual = slots_module.Run._shared_length
    if not shares:
        slots_module.Run._shared_length = lambda *_: 0  # type: ignore[method-assign]
    try:
        yield
    finally:
        slots_module.Run._shared_length = usual  # type: ignore[method-assign]


# -- what one would write first ------------------------------------------------------------------------


def chat(ours: Ours, *, reuse: bool) -> Way:
    """One chat completion a row, held by a grammar; ``reuse``: the library keeps what it computed
    of the row before."""
    Llama = library().Llama  # noqa: N806
    from llama_cpp.llama_grammar import LlamaGrammar

    asking = TaskBatch(ours.opened, QUESTION, ours.options)
    layout = asking.layout
    head = "".join(piece.text for piece in layout.head)
    tail = "".join(piece.text for piece in layout.tail)
    model = Llama(
        str(ours.model._chosen.path),
        n_ctx=2048,
        n_threads=cores(),
        n_batch=512,
        n_gpu_layers=LAYERS,
        verbose=False,
    )
    grammar = LlamaGrammar.from_string('root ::= "Yes" | "No"', verbose=False)

    def answer(texts: Sequence[str]) -> None:
        for text in texts:
            if not reuse:
                model.reset()
            model.create_chat_completion(
                [{"role": "user", "content": head + layout.block((text,)) + tail}],
                grammar=grammar,
                temperature=0.0,
                max_tokens=4,
            )

    def run(texts: Sequence[str]) -> None:
        run_aside(lambda: answer(texts), ours.context.check)

    return Way(f"chat, grammar{', prefix reuse' if reuse else ''}", run)


# -- tables --------------------------------------------------------------------------------------------


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def foreign() -> Callable[[], str]:
    """Tells how many cores others kept busy since now (Linux; else nothing)."""

    def busy() -> tuple[float, float]:
        try:
            said = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        except OSError:
            return 0.0, 0.0
        ticks = [float(value) for value in said]
        idle = ticks[3] + ticks[4]
        own = os.times()
        return (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK"), own.user + own.system

    start, at = time.perf_counter(), busy()

    def said() -> str:
        now, seconds = busy(), time.perf_counter() - start
        others = (now[0] - at[0]) - (now[1] - at[1])
        return f"{max(0.0, others) / seconds:.2f} of {cores()} cores busy with other work"

    return said


def rounds(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def choices(file: Path, texts: Sequence[str], naive: int) -> None:
    load = foreign()
    own = {weights: Ours(file, weights) for weights in ("original", "auto")}
    ways: list[tuple[str, Way]] = []
    for weights, ours in own.items():
        ways += [
            (weights, chat(ours, reuse=False)),
            (weights, chat(ours, reuse=True)),
            (weights, ours.way("ours, 1 slot", QUESTION, slots=1)),
            (weights, ours.way("ours", QUESTION)),
        ]
    shared = own["auto"]
    plain = shared.way("ours, nothing shared", QUESTION, shares=False)
    columns = [
        ("auto", plain),
        ("auto", shared.way("shared beginnings, nothing shared", QUESTION, shares=False)),
        ("auto", shared.way("shared beginnings", QUESTION)),
    ]
    ways += columns
    for part in rounds(texts, max(1, len(texts) // 3)):
        for _, way in ways:
            some = [BEGINNING + text for text in part] if way.name.startswith("shared") else part
            way.turn(some[: max(1, naive // 3)] if way.name.startswith("chat") else some)
    first = ways[0][1]
    rows = []
    for weights, way in ways:
        said = [own[weights].model.info.settings["weights"].split(",")[0]]
        if weights == "original":
            said = ["as in the file"]
        told_of = ["", "", "", ""]
        if way.limits:
            limit = statistics.median(way.limits)
            told_of = [
                f"{limit:.0f}",
                f"{way.evaluated / way.rows:.1f} of {way.given / way.rows:.1f}",
                f"{way.rate * way.given / way.rows / limit:.2f}",
                f"{way.outside / way.seconds:.2%}",
            ]
        rows.append([way.name, *said, f"{way.rate:.1f}", f"{way.rate / first.rate:.1f}", *told_of])
    print(f"\nYes or no, {len(texts)} rows; {load()}\n")
    table(
        [
            "way",
            "weights",
            "rows/s",
            "× chat",
            "raw tok/s",
            "tokens a row",
            "of the limit",
            "outside",
        ],
        rows,
    )
    before, after = columns[1][1], columns[2][1]
    saved = (before.evaluated / before.rows) / (after.evaluated / after.rows)
    print(
        f"Shared beginnings: {saved:.2f} times fewer tokens, {after.rate / before.rate:.2f} times the rows/s"
    )
    for ours in own.values():
        ours.model.close()


def writing(file: Path, texts: Sequence[str]) -> None:
    load = foreign()
    ours = Ours(file, "auto")
    ways = [
        (name, ours.way(f"{name}, {slots or ours.context.slots} slots", task, slots=slots))
        for name, task in WRITTEN.items()
        for slots in (1, 32, 0)
    ]
    for part in rounds(texts, max(1, len(texts) // 2)):
        for _, way in ways:
            way.turn(part)
    rows = []
    for place, (_, way) in enumerate(ways):
        alone = ways[place - place % 3][1]
        limit, steps = statistics.median(way.limits), statistics.median(way.steps)
        written = way.written / way.rows
        seconds = (way.given / way.rows - written) / limit + written / steps
        rows.append(
            [
                way.name,
                f"{way.rate:.1f}",
                f"{way.rate / alone.rate:.2f}",
                f"{limit:.0f}, {steps:.0f}",
                f"{way.evaluated / way.rows:.1f} of {way.given / way.rows:.1f}, {written:.1f}",
                f"{way.rate * way.given / way.rows / limit:.2f}",
                f"{way.rate * seconds:.2f}",
                f"{way.outside / way.seconds:.2%}",
            ]
        )
    print(f"\nWritten answers, {len(texts)} rows; {load()}\n")
    table(
        [
            "answer",
            "rows/s",
            "× 1 slot",
            "raw tok/s, written",
            "tokens a row, written",
            "of the limit",
            "with logits",
            "outside",
        ],
        rows,
    )
    compiling(ours)
    ours.model.close()


def compiling(ours: Ours) -> None:
    """How long it takes to make of a constraint what answers are held by, at its first use."""
    start = time.perf_counter()
    ours.opened.vocabulary = ours.context.guide()
    print(f"Vocabulary, once a model: {time.perf_counter() - start:.2f} s\n")
    topics = tuple(f"topic {word}" for word in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"))
    ten = Task("llm_classify", "What is it?", Constraint("choice", options=topics), ("text",))
    asking = TaskBatch(ours.opened, ten, ours.options)
    made: dict[str, Callable[[], object]] = {"10 choices": lambda: ChoiceDecoder(asking)}
    for name, pattern in (
        ("integer", r"-?[0-9]{1,15}"),
        ("date", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
        ("text of 1 to 200 characters", r"[^\n]{1,200}"),
    ):
        made[name] = partial(Guide, ours.context, ours.opened.vocabulary, pattern)
    rows = []
    for name, make in made.items():
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            make()
            seconds.append(time.perf_counter() - start)
        rows.append([name, f"{seconds[0] * 1e3:.1f}", f"{statistics.median(seconds) * 1e3:.1f}"])
    table(["constraint", "first, ms", "median of five, ms"], rows)


def same(file: Path, texts: Sequence[str], kinds: Sequence[str]) -> None:
    """Whether answers are the same in every company, and what that costs; ``kinds``: of which, all
    if none."""
    load = foreign()
    ours = Ours(file, "auto")
    rows = []
    for name, task in {"yes or no": QUESTION, **WRITTEN}.items():
        if kinds and name.split(",")[0] not in kinds:
            continue
        known: dict[str, Answer] = {}
        for company in ("all", "32", "8", "1", "8, shuffled"):
            order = list(texts)
            if "shuffled" in company:
                random.Random(1).shuffle(order)
            size = len(order) if company == "all" else int(company.split(",")[0])
            found: dict[str, Answer] = {}
            start = time.perf_counter()
            with told() as spent:
                for part in rounds(order, size):
                    answers = ours.model.answer(task, [(text,) for text in part])
                    found |= dict(zip(part, answers, strict=True))
            seconds = time.perf_counter() - start
            known = known or found
            again, extra = sum(s.again for s in spent), sum(s.extra for s in spent)
            tokens = sum(s.tokens for s in spent)
            rows.append(
                [
                    name,
                    company,
                    f"{len(texts) / seconds:.1f}",
                    str(again),
                    f"{extra / max(1, tokens - extra):.1%}",
                    str(sum(found[text].text != known[text].text for text in texts)),
                    str(sum(found[text].logprob != known[text].logprob for text in texts)),
                ]
            )
    print(f"\n{len(texts)} rows in different company; {load()}\n")
    names = ["answer", "at a time", "rows/s", "near-ties", "extra tokens", "different answers"]
    table([*names, "different probabilities"], rows)
    ours.model.close()


ROUNDS = 3
"""Of processes that take turns."""


def rates(file: Path, texts: Sequence[str]) -> None:
    """Print the rows a second of each kind of answer, as JSON."""
    with closing(LlamaModel(file, Options(max_tokens=16))) as model:
        found = {}
        for name, task in {"yes or no": QUESTION, **WRITTEN}.items():
            model.answer(task, [("x",)])
            start = time.perf_counter()
            model.answer(task, [(text,) for text in texts])
            found[name] = len(texts) / (time.perf_counter() - start)
    print(json.dumps(found))


def beside_compiled(arguments: Sequence[str], folder: Path) -> None:
    """The rates with the prebuilt library and with that of ``folder``, in processes that take
    turns."""
    load, seen = foreign(), dict[str, dict[str, list[float]]]()
    own = {"prebuilt": {}, "compiled": {"LLAMA_CPP_LIB_PATH": str(folder)}}
    for _ in range(ROUNDS):
        for library_name, variables in own.items():
            done = subprocess.run(
                [sys.executable, __file__, *arguments, "--rates"],
                env=os.environ | variables,
                stdout=subprocess.PIPE,
                check=True,
            )
            for name, rate in json.loads(done.stdout).items():
                seen.setdefault(name, {}).setdefault(library_name, []).append(rate)
    best = {
        name: {which: max(found) for which, found in both.items()} for name, both in seen.items()
    }
    print(f"\nPrebuilt beside compiled, the best of {ROUNDS}; {load()}\n")
    table(
        ["answer", "prebuilt, rows/s", "compiled, rows/s", "prebuilt / compiled"],
        [
            [
                name,
                *(f"{both[which]:.1f}" for which in own),
                f"{both['prebuilt'] / both['compiled']:.2f}",
            ]
            for name, both in best.items()
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--naive-rows", type=int, default=18)
    parser.add_argument("--same", type=int, metavar="ROWS", help="compare companies instead")
    parser.add_argument(
        "--kinds", default="", help="with --same: of which answers, as in 'integer,date'"
    )
    parser.add_argument("--gpu", action="store_true", help="all layers on the GPU")
    parser.add_argument("--compiled", type=Path, metavar="FOLDER", help="another llama.cpp beside")
    parser.add_argument("--rates", action="store_true", help="print rows a second only, as JSON")
    said = parser.parse_args()
    global LAYERS
    LAYERS = -1 if said.gpu else 0
    named = {"smollm2": packaged_weights, "gemma": gemma_weights}.get(said.model)
    file = named() if named else Path(said.model)
    if file is None:
        raise SystemExit(f"the weights of {said.model} are not installed")
    if said.same:
        kinds = [kind.strip() for kind in said.kinds.split(",") if kind.strip()]
        return same(file, texts_of(said.data, said.same), kinds)
    texts = texts_of(said.data, said.rows)
    if said.rates:
        return rates(file, texts)
    if said.compiled:
        return beside_compiled(["--model", said.model, "--rows", str(said.rows)], said.compiled)
    choices(file, texts, said.naive_rows)
    return writing(file, texts)


if __name__ == "__main__":
    main()
