"""Local models through llama.cpp, in process: one shared prefix, many rows, closed sets by score.

- A closed set (boolean, choice) is decided by comparing the scores of its replies where they
  part (``options_tree``), corrected by a prior (``calibrate``): nothing is generated. A score is
  what these odds of the points of its scale let expect (``expected``).
- An open pattern is written token by token under an automaton (``guided``), and no further than
  the comparisons of the query need (``decided``).
- Values are tokenised alone and as plain text: data can never become control tokens.
- Answers do not depend on their neighbours. Batching rows changes their scores a little; where
  that could change an answer (a near-tie), the row is asked again alone. With quantised weights
  on a CPU near-ties are so many, and one row fills the machine so well, that rows go alone at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from blendfusion.errors import ModelFailed
from blendfusion.models import calibrate
from blendfusion.models.aside import run_aside
from blendfusion.models.canonical import canonical
from blendfusion.models.constraint import closed_set, holds, regex_of
from blendfusion.models.decided import decided
from blendfusion.models.expected import chains, expected, spread
from blendfusion.models.guided import Guide, Writer, never
from blendfusion.models.llama_context import SEQUENCES, LlamaContext, Switch, check_gguf
from blendfusion.models.model import Told, Values, unheard
from blendfusion.models.opened import NOISE, NOISE_QUANTISED, REMEMBERED_TASKS, Opened, borrow
from blendfusion.models.options_tree import Fork, Scores, build, forks, log_softmax
from blendfusion.models.prompt import PROMPT_VERSION, render
from blendfusion.models.shared import Loan
from blendfusion.models.slots import Spent, Step, run
from blendfusion.models.telemetry import model_call, model_loaded
from blendfusion.models.template import Layout, Piece, chat, plain
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage

SHORT_ANSWER_TOKENS = 48
"""Enough for every number, date and time."""
BATCH_ROWS = 64


class LlamaModel:
    """A GGUF file as a model. Weights load at the first use, once for all models of one file and
    equal settings, and are freed when the last of these is closed or dropped. Safe for threads:
    they are served one after the other.

    Ctrl-C (any exception of a signal handler) ends what is being computed within milliseconds on
    a CPU, within a micro-batch on a GPU.

    Raises ModelNotFound at once if the file is missing or no GGUF, and at the first use if
    llama.cpp cannot load it or llama-cpp-python is not installed. A forked child loads a copy of
    its own; if the parent's was on a GPU, which a child cannot use, it raises ModelFailed.
    """

    stops_early = True

    def __init__(self, path: Path | str, options: Options) -> None:
        self.path = Path(path).expanduser()
        self._options = options
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._loan: Loan[Opened] | None = None
        check_gguf(self.path)
        self._fingerprint = fingerprint(self.path, options)

    shares_prefix = True
    """What the prompts of a batch begin with in common is computed once."""
    scores_options = True
    """An answer from a closed set is chosen by scores: nothing is written."""

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory: ``info`` and ``count_tokens`` load them otherwise."""
        return self._loan is not None

    @property
    def name(self) -> str:
        """The name in ``info``, at hand without the weights."""
        return f"llama:{self.path.name}"

    @property
    def fingerprint(self) -> str:
        """The fingerprint in ``info``, at hand without the weights."""
        return self._fingerprint

    @property
    def fingerprint_lasts(self) -> bool:
        """Where answers are corrected by the values beside them, those of other runs are others."""
        return self._options.calibration != "column"

    @property
    def info(self) -> ModelInfo:
        window = self._ready().context.n_ctx
        return ModelInfo(
            name=self.name,
            fingerprint=self._fingerprint,
            window=window,
            settings={
                "shots": str(self._options.shots).lower(),
                "calibration": self._options.calibration,
                "max_tokens": str(self._options.max_tokens),
            },
        )

    @property
    def batch_size(self) -> int:
        return BATCH_ROWS

    @property
    def at_once(self) -> int:
        """Rows that share a pass: one where every row goes alone, or as long as none was asked."""
        loan = self._loan
        return 1 if loan is None or loan.thing.alone else SEQUENCES - 1

    def count_tokens(self, text: str) -> int:
        with self._borrowed() as opened:
            return len(opened.context.tokenize(text, special=False))

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return self.answer_each(task, values, unheard)

    def answer_each(self, task: Task, values: Sequence[Values], told: Told) -> list[Answer]:
        """As ``answer``; a value's answer is told when its last token is chosen."""
        switch = Switch()

        def tell(place: int, answer: Answer) -> None:
            switch.check()  # after an interruption nobody listens any more
            told(place, answer)

        def work() -> list[Answer]:
            with opened.lock:
                opened.context.watch(switch)
                try:
                    return _Asking(opened, task, self._options, tell).answers(values)
                except BaseException:
                    opened.forget()
                    raise

        with self._borrowed() as opened, model_call("llama.cpp", self.name) as call:
            answers = run_aside(work, switch.stop)
            call.spent = Usage.total(answer.usage for answer in answers)
        return answers

    def close(self) -> None:
        with self._lock:
            if self._loan is not None:
                self._loan.release()
                self._loan = None

    def _ready(self) -> Opened:
        """The model, in memory until this object is closed or dropped."""
        with self._borrowed() as opened:
            return opened

    @contextmanager
    def _borrowed(self) -> Iterator[Opened]:
        """The model for one use, in which nobody frees it."""
        if self._process != os.getpid():
            self._forked()
        with self._lock:
            if self._loan is None:
                switch, started = Switch(), time.perf_counter()
                self._loan = run_aside(
                    lambda: borrow(self.path, self._options, switch), switch.stop
                )
                model_loaded(self.name, time.perf_counter() - started)
            loan = self._loan.again()
        try:
            yield loan.thing
        finally:
            loan.release()

    def _forked(self) -> None:
        """In a child: the parent's model is of no use here, where its threads are not."""
        if self._loan is not None and self._options.n_gpu_layers != 0:
            raise ModelFailed(
                f"the model {self.path.name} was loaded on the GPU before this process was forked",
                hint="Load it in the child only, or start processes by 'spawn' or 'forkserver'.",
            )
        self._lock, self._loan, self._process = threading.Lock(), None, os.getpid()


def fingerprint(path: Path, options: Options) -> str:
    """A digest of all that can change an answer: the weights (size, change time, head and tail),
    llama.cpp, the wording, shots, calibration, and how long an answer and a prompt may be."""
    state = path.stat()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(1 << 16))
        file.seek(max(0, state.st_size - (1 << 16)))
        digest.update(file.read())
    said = [
        state.st_size,
        state.st_mtime_ns,
        _llama_version(),
        PROMPT_VERSION,
        (NOISE, NOISE_QUANTISED),
        options.shots,
        options.calibration,
        options.max_tokens,
        options.n_ctx,
        options.n_gpu_layers,
    ]
    digest.update(json.dumps(said).encode())
    return digest.hexdigest()[:32]


@cache
def _llama_version() -> str | None:
    """Another version may compute a little differently; None if there is none."""
    try:
        return version("llama-cpp-python")
    except PackageNotFoundError:
        return None


class _Asking:
    """One task put to many tuples of values."""

    def __init__(self, opened: Opened, task: Task, options: Options, told: Told = unheard) -> None:
        self._opened = opened
        self._context = opened.context
        self._task = task
        self._options = options
        self._told = told
        self._answers: dict[int, Answer] = {}
        self._layout = _layout(task, opened.context, shots=options.shots)
        self._prefix = self._tokens(self._layout.head, start=True)
        self._tail = self._tokens(self._layout.tail)
        self._spent = Spent()
        self._charged = Spent()
        """What is on the account of answers already."""
        self._charged_until = time.perf_counter()

    def answers(self, values: Sequence[Values]) -> list[Answer]:
        options = closed_set(self._task.constraint)
        if options is not None and len(options) < 2:
            for place in range(len(values)):
                self._tell(place, _only(options))
            return self._in_order()
        if self._layout.prompt.replies:
            self._root = self._tree()
            decide = self._score if self._task.constraint.kind == "score" else self._choose
            reserve = max(len(fork.path) for fork in forks(self._root))
        else:
            decide, reserve = self._write, self._limit()
        window = self._context.n_ctx - len(self._prefix) - reserve - 1
        self._places: dict[tuple[int, ...], list[int]] = {}
        for place, value in enumerate(values):
            row = self._row(value)
            if len(row) <= window:
                self._places.setdefault(row, []).append(place)
            else:
                self._tell(place, self._too_long(len(row), reserve, room=window))
        fitting = sorted(self._places)
        if fitting:
            self._spent.tokens += self._opened.begin(self._prefix)
            decide(fitting, reserve)
        return self._in_order()

    def _too_long(self, tokens: int, reserve: int, *, room: int) -> Answer:
        """The answer to a value of so many tokens, for which there is ``room``."""
        what = "the value" if room > 0 else "the question"
        taken = len(self._prefix) + reserve + (tokens if room > 0 else 0)
        more = "" if room <= 0 else " with its question and the answer"
        return Answer.failed(
            f"{what} takes {taken} tokens{more}, the window is {self._context.n_ctx}",
            Usage(failed=1),
            too_long=room > 0,
        )

    def _in_order(self) -> list[Answer]:
        return [self._answers[place] for place in range(len(self._answers))]

    def _settle(self, row: tuple[int, ...], answer: Answer) -> None:
        """The final answer to all values of these tokens; the first of them pays."""
        for place in self._places[row]:
            usage = Usage(
                values=1,
                failed=int(answer.error is not None),
                prompt_tokens=len(self._prefix) + len(row),
                completion_tokens=answer.usage.completion_tokens,
            )
            self._tell(place, answer.with_usage(usage))

    def _tell(self, place: int, answer: Answer) -> None:
        """Tell an answer, with what was computed and how long it took since the last one."""
        now, spent, charged = time.perf_counter(), self._spent, self._charged
        usage = replace(
            answer.usage,
            calls=int(spent.calls > 0 and charged.calls == 0),
            evaluated_tokens=spent.tokens - charged.tokens,
            seconds=now - self._charged_until,
        )
        self._charged, self._charged_until = replace(spent), now
        self._answers[place] = answer.with_usage(usage)
        self._told(place, self._answers[place])

    def _row(self, values: Values) -> tuple[int, ...]:
        block = self._context.tokenize(self._layout.block(values), special=False)
        return (*block, *self._tail)

    def _tokens(self, pieces: Iterable[Piece], *, start: bool = False) -> tuple[int, ...]:
        tokens: list[int] = []
        for piece in pieces:
            begins = start and not tokens
            if begins and piece.special:
                # A template may already name the token that begins a text.
                bos = self._context.bos_text()
                begins = not (bos and piece.text.startswith(bos))
            tokens += self._context.tokenize(piece.text, special=piece.special, start=begins)
        return tuple(tokens)

    def _run(
        self, rows: Sequence[tuple[int, ...]], step: Step, reserve: int, slots: int | None = None
    ) -> None:
        if slots is None:
            slots = 1 if self._opened.alone else SEQUENCES - 1
        run(
            self._context,
            len(self._prefix),
            rows,
            step,
            reserve=reserve,
            spent=self._spent,
            slots=slots,
        )

    # -- closed sets -------------------------------------------------------------------------

    def _tree(self) -> Fork:
        replies = [
            self._context.tokenize(self._layout.lead + reply, special=False)
            for reply in self._layout.prompt.replies
        ]
        end = self._context.tokenize(self._layout.stop, special=False)
        return build(replies, end[0] if end else self._context.eos)

    def _choose(self, rows: Sequence[tuple[int, ...]], reserve: int) -> None:
        priors = dict(zip(forks(self._root), self._priors(rows), strict=True))
        for row in self._descend(rows, priors, reserve, self._opened.noise):
            self._descend([row], priors, reserve, 0.0)

    def _descend(
        self,
        rows: Sequence[tuple[int, ...]],
        priors: dict[Fork, Scores],
        reserve: int,
        noise: float,
    ) -> list[tuple[int, ...]]:
        """Settle the rows; those at which some fork was nearer to a tie than ``noise`` are returned."""
        options = closed_set(self._task.constraint) or ()
        at = [self._root] * len(rows)
        logprobs = [0.0] * len(rows)
        ties: set[int] = set()

        def step(row: int, logits: Any) -> Sequence[int]:
            fork = at[row]
            scores = log_softmax(fork.scores(logits) - priors[fork])
            order = np.argsort(-scores, kind="stable")
            if scores[order[0]] - scores[order[1]] < noise:
                ties.add(row)
                return ()
            logprobs[row] += float(scores[order[0]])
            below = fork.next[int(order[0])]
            if isinstance(below, Fork):
                at[row] = below
                return below.path[len(fork.path) :]
            self._settle(rows[row], Answer(options[below], logprob=logprobs[row]))
            return ()

        self._run(rows, step, reserve)
        return [rows[row] for row in sorted(ties)]

    def _priors(self, rows: Sequence[tuple[int, ...]]) -> list[Scores]:
        """The prior of every fork, in the order of ``forks``."""
        if self._options.calibration == "none":
            return [np.zeros(len(fork.tokens)) for fork in forks(self._root)]
        remembered, key = self._opened.priors, (self._task, self._options.shots)
        if key not in remembered:
            if len(remembered) >= REMEMBERED_TASKS:
                remembered.pop(next(iter(remembered)))
            remembered[key] = self._task_priors()
        found = remembered[key]
        if self._options.calibration == "column":
            scores = self._scores([(row, self._root) for row in rows])
            return [calibrate.mean(scores), *found[1:]]
        return found

    def _task_priors(self) -> list[Scores]:
        """The full prior where all options part; content-free inputs alone further down."""
        root, *below = forks(self._root)
        probes = [self._row(values) for values in calibrate.probes(self._task)]
        few = probes[: len(calibrate.CONTENT_FREE)]
        scores = self._scores(
            [(row, root) for row in probes] + [(row, fork) for fork in below for row in few]
        )
        found = [calibrate.prior(scores[: len(probes)])]
        for start in range(len(probes), len(scores), len(few)):
            found.append(calibrate.mean(scores[start : start + len(few)]))
        return found

    def _scores(self, asked: Sequence[tuple[tuple[int, ...], Fork]]) -> list[Scores]:
        """The scores of rows at forks. Batched always: what is batched here is fixed."""
        order = sorted(range(len(asked)), key=lambda place: asked[place][0] + asked[place][1].path)
        scores: list[Scores] = [np.empty(0)] * len(asked)

        def step(row: int, logits: Any) -> Sequence[int]:
            scores[order[row]] = asked[order[row]][1].scores(logits)
            return ()

        rows = [(*asked[place][0], *asked[place][1].path) for place in order]
        self._run(rows, step, 0, slots=SEQUENCES - 1)
        return scores

    # -- scores ------------------------------------------------------------------------------

    def _score(self, rows: Sequence[tuple[int, ...]], reserve: int) -> None:
        """Settle the rows by the odds of all points. Each goes alone: a batch would change every
        score a little, and there is no tie to tell where that matters."""
        priors = dict(zip(forks(self._root), self._priors(rows), strict=True))
        ways = chains(self._root)
        for row in rows:
            seen: dict[Fork, Scores] = {}
            for way in ways:
                self._follow(row, way, priors, seen, reserve)
            text = expected(spread(self._root, seen), self._task.constraint)
            self._settle(row, Answer(text))

    def _follow(
        self,
        row: tuple[int, ...],
        way: Sequence[Fork],
        priors: dict[Fork, Scores],
        seen: dict[Fork, Scores],
        reserve: int,
    ) -> None:
        """Note the scores of one row at the forks of a chain."""
        following = iter(way)
        at = next(following)

        def step(_row: int, logits: Any) -> Sequence[int]:
            nonlocal at
            seen[at] = log_softmax(at.scores(logits) - priors[at])
            before, at = at, next(following, at)
            return at.path[len(before.path) :]

        self._run([(*row, *at.path)], step, reserve, slots=1)

    # -- open patterns -----------------------------------------------------------------------

    def _limit(self) -> int:
        """Most tokens of one answer; what every struct of these fields repeats does not count."""
        constraint = self._task.constraint
        if constraint.kind in ("integer", "number", "date", "timestamp"):
            return SHORT_ANSWER_TOKENS
        repeated = canonical({}, constraint) if constraint.kind == "struct" else ""
        return self._options.max_tokens + len(self._context.tokenize(repeated, special=False))

    def _write(self, rows: Sequence[tuple[int, ...]], reserve: int) -> None:
        lead, stop = self._layout.lead, self._layout.stop
        pattern = f"{lead}({regex_of(self._task.constraint)})" + (f"({stop})?" if stop else "")
        guide = self._opened.guide(pattern)
        for row in self._written(guide, rows, reserve, self._opened.noise):
            self._written(guide, [row], reserve, 0.0)

    def _written(
        self, guide: Guide, rows: Sequence[tuple[int, ...]], reserve: int, noise: float
    ) -> list[tuple[int, ...]]:
        """Settle the rows; those in which some token was nearer to a tie than ``noise`` are returned."""
        decides = self._decides if self._task.constraint.decides else never
        writers = [guide.writer(self._limit(), noise, decides) for _ in rows]
        ties: set[int] = set()

        def step(row: int, logits: Any) -> Sequence[int]:
            added = writers[row].step(logits)
            if writers[row].tied:
                ties.add(row)
            elif not added:
                self._settle(rows[row], self._read(writers[row]))
            return added

        # Forced tokens may go a little past the limit.
        self._run(rows, step, reserve)
        return [rows[row] for row in sorted(ties)]

    def _decides(self, written: bytes) -> bool:
        return decided(self._task.constraint, self._begun(written)) is not None

    def _begun(self, written: bytes) -> str:
        """What the answer is certain to begin with: no part of what may still be cut off."""
        lead, stop = self._layout.lead, self._layout.stop
        text = written.decode("utf-8", "ignore")
        text = text.removeprefix(lead) if text.startswith(lead) else ""
        for length in range(len(stop), 0, -1):
            if text.endswith(stop[:length]):
                text = text[:-length]
                break
        return text.strip() if self._task.constraint.kind == "text" else text

    def _read(self, writer: Writer) -> Answer:
        constraint = self._task.constraint
        usage = Usage(completion_tokens=len(writer.tokens))
        if writer.enough:
            known = decided(constraint, self._begun(writer.written))
            return Answer(known, finish="decided", usage=usage)
        text = writer.written.decode("utf-8", "ignore")
        text = text.removeprefix(self._layout.lead).removesuffix(self._layout.stop)
        if constraint.kind == "text":
            text = text.strip()
        if not writer.complete and constraint.kind == "list":
            text = _closed(text)
        if not holds(constraint, text):
            reason = f"no answer within {self._limit()} tokens" if not writer.complete else "wrong"
            return Answer.failed(f"{reason}: {text[:60]!r} is not {constraint}", usage)
        return Answer(text, finish="complete" if writer.complete else "length", usage=usage)


def _layout(task: Task, context: LlamaContext, *, shots: bool) -> Layout:
    """Running text without a list of options for closed sets and scores, where small models were
    measured to be better in it (docs/answers.md); else the chat template, where the model has one."""
    prompt = render(task, shots=shots, listed=False)
    if prompt.replies:
        return plain(prompt)
    prompt = render(task, shots=shots)
    template = context.chat_template()
    layout = None
    if template:
        layout = chat(
            prompt, template, bos=context.bos_text(), eos=context.control_text(context.eos)
        )
    return layout or plain(prompt)


def _only(options: Sequence[str]) -> Answer:
    if not options:
        return Answer.failed("there are no options to choose from", Usage(values=1, failed=1))
    return Answer(options[0], logprob=0.0, usage=Usage(values=1))


def _closed(text: str) -> str:
    """A JSON list that was cut off, closed after its last whole element."""
    for end in range(len(text), 0, -1):
        try:
            json.loads(text[:end] + "]")
        except ValueError:
            continue
        return text[:end] + "]"
    return "[]"
