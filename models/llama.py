"""Local models through llama.cpp, in process: one shared prefix, many rows, closed sets by score.

- A closed set (boolean, choice) is decided by comparing the scores of its replies where they
  part (``options_tree``), corrected by a prior (``calibrate``): nothing is generated.
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
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from blendfusion.errors import ModelError
from blendfusion.models import calibrate
from blendfusion.models.constraint import closed_set, holds, regex_of
from blendfusion.models.decided import decided
from blendfusion.models.guided import Guide, Writer, never
from blendfusion.models.llama_context import SEQUENCES, LlamaContext, check_gguf
from blendfusion.models.model import Values
from blendfusion.models.options_tree import Fork, Scores, build, forks, log_softmax
from blendfusion.models.prompt import PROMPT_VERSION, render
from blendfusion.models.slots import Spent, Step, run
from blendfusion.models.telemetry import model_call, model_loaded
from blendfusion.models.template import Layout, Piece, chat, plain
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage

NOISE = 0.03
"""Scores closer than this (natural logarithm) may swap when rows are batched: docs/answers.md."""
NOISE_QUANTISED = 0.3
"""The same for quantised weights, whose activations are rounded to eight bits."""
SHORT_ANSWER_TOKENS = 48
"""Enough for every number, date and time."""
BATCH_ROWS = 64
_REMEMBERED_TASKS = 64


class LlamaModel:
    """A GGUF file as a model. Weights load at the first use; two threads may share one model.

    Raises ModelNotFound at once if the file is missing or no GGUF, and at the first use if
    llama.cpp cannot load it or llama-cpp-python is not installed.
    """

    stops_early = True

    def __init__(self, path: Path | str, options: Options) -> None:
        self.path = Path(path).expanduser()
        self._options = options
        self._lock = threading.RLock()
        self._open: _Open | None = None
        check_gguf(self.path)
        self._fingerprint = fingerprint(self.path, options)

    shares_prefix = True
    """What the prompts of a batch begin with in common is computed once."""
    scores_options = True
    """An answer from a closed set is chosen by scores: nothing is written."""

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory: ``info`` and ``count_tokens`` load them otherwise."""
        return self._open is not None

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
        with self._lock:
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
        opened = self._open
        return 1 if opened is None or opened.alone else SEQUENCES - 1

    def count_tokens(self, text: str) -> int:
        with self._lock:
            return len(self._ready().context.tokenize(text, special=False))

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        with self._lock:
            ready = self._ready()
            started = time.perf_counter()
            try:
                with model_call("llama.cpp", self.name) as call:
                    answers = _Asking(ready, task, self._options).answers(values)
                    call.spent = Usage.total(answer.usage for answer in answers)
            except ModelError:
                ready.forget()
                raise
            seconds = (time.perf_counter() - started) / max(1, len(values))
        return [answer.with_usage(replace(answer.usage, seconds=seconds)) for answer in answers]

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.context.close()
                self._open = None

    def __del__(self) -> None:
        opened = getattr(self, "_open", None)
        if opened is not None:
            opened.context.close()

    def _ready(self) -> _Open:
        if self._open is None:
            started = time.perf_counter()
            context = LlamaContext(
                self.path,
                n_ctx=self._options.n_ctx,
                n_gpu_layers=self._options.n_gpu_layers,
                threads=self._options.threads,
            )
            alone = context.quantised and self._options.n_gpu_layers == 0
            noise = NOISE_QUANTISED if context.quantised else NOISE
            self._open = _Open(context, alone=alone, noise=0.0 if alone else noise)
            model_loaded(self.name, time.perf_counter() - started)
        return self._open


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


@dataclass(slots=True)
class _Open:
    """An open context and what is worth keeping between calls."""

    context: LlamaContext
    alone: bool
    """Every row goes alone: its scores depend on nothing else."""
    noise: float
    """What batching may change a score by."""
    prefix: tuple[int, ...] = ()
    """What the context holds now as the beginning of every sequence; () if that is unsure."""
    priors: dict[Task, list[Scores]] = field(default_factory=dict)
    vocabulary: Any = None
    guides: dict[str, Guide] = field(default_factory=dict)

    def begin(self, prefix: tuple[int, ...]) -> int:
        """Make ``prefix`` the beginning of every sequence; returns the tokens computed for it."""
        if self.prefix == prefix:
            return 0
        self.forget()
        self.context.decode_prefix(prefix)
        self.context.fan_out()
        self.prefix = prefix
        return len(prefix)

    def forget(self) -> None:
        self.prefix = ()
        self.context.clear()

    def guide(self, pattern: str) -> Guide:
        if pattern not in self.guides:
            if self.vocabulary is None:
                self.vocabulary = self.context.guide()
            if len(self.guides) >= _REMEMBERED_TASKS:
                self.guides.clear()
            self.guides[pattern] = Guide(self.context, self.vocabulary, pattern)
        return self.guides[pattern]


class _Asking:
    """One task put to many tuples of values."""

    def __init__(self, opened: _Open, task: Task, options: Options) -> None:
        self._opened = opened
        self._context = opened.context
        self._task = task
        self._options = options
        self._layout = _layout(task, opened.context, shots=options.shots)
        self._prefix = self._tokens(self._layout.head, start=True)
        self._tail = self._tokens(self._layout.tail)
        self._spent = Spent()

    def answers(self, values: Sequence[Values]) -> list[Answer]:
        canonical = closed_set(self._task.constraint)
        if canonical is not None and len(canonical) < 2:
            return [_only(canonical) for _ in values]
        if canonical is None:
            decide, reserve = self._write, self._limit()
        else:
            self._root = self._tree()
            decide, reserve = self._choose, max(len(fork.path) for fork in forks(self._root))
        rows = [self._row(value) for value in values]
        window = self._context.n_ctx - len(self._prefix) - reserve - 1
        fitting = sorted({row for row in rows if len(row) <= window})
        decided: dict[tuple[int, ...], Answer] = {}
        if fitting:
            self._spent.tokens += self._opened.begin(self._prefix)
            decided = dict(zip(fitting, decide(fitting, reserve), strict=True))
        answers = [
            self._counted(row, decided[row])
            if row in decided
            else self._too_long(len(row), reserve, room=window)
            for row in rows
        ]
        return _shared(answers, self._spent)

    def _too_long(self, tokens: int, reserve: int, *, room: int) -> Answer:
        """The answer to a value of so many tokens, for which there is ``room``."""
        what = "the value" if room > 0 else "the question"
        taken = len(self._prefix) + reserve + (tokens if room > 0 else 0)
        more = "" if room <= 0 else " with its question and the answer"
        return Answer.failed(
            f"{what} takes {taken:,} tokens{more}, the window is {self._context.n_ctx:,}",
            Usage(failed=1),
            too_long=room > 0,
        )

    def _counted(self, row: tuple[int, ...], answer: Answer) -> Answer:
        usage = Usage(
            values=1,
            failed=int(answer.error is not None),
            prompt_tokens=len(self._prefix) + len(row),
            completion_tokens=answer.usage.completion_tokens,
        )
        return answer.with_usage(usage)

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
        spent = run(self._context, len(self._prefix), rows, step, reserve=reserve, slots=slots)
        self._spent.calls += spent.calls
        self._spent.tokens += spent.tokens

    # -- closed sets -------------------------------------------------------------------------

    def _tree(self) -> Fork:
        replies = [
            self._context.tokenize(self._layout.lead + reply, special=False)
            for reply in self._layout.prompt.replies
        ]
        end = self._context.tokenize(self._layout.stop, special=False)
        return build(replies, end[0] if end else self._context.eos)

    def _choose(self, rows: Sequence[tuple[int, ...]], reserve: int) -> list[Answer]:
        priors = dict(zip(forks(self._root), self._priors(rows), strict=True))
        answers, ties = self._descend(rows, priors, reserve)
        for place in ties:
            answers[place] = self._descend([rows[place]], priors, reserve)[0][0]
        return answers

    def _descend(
        self, rows: Sequence[tuple[int, ...]], priors: dict[Fork, Scores], reserve: int
    ) -> tuple[list[Answer], list[int]]:
        """The answers, and the rows at which some fork was a near-tie."""
        at = [self._root] * len(rows)
        logprobs = [0.0] * len(rows)
        chosen = [-1] * len(rows)
        ties: set[int] = set()

        def step(row: int, logits: Any) -> Sequence[int]:
            fork = at[row]
            scores = log_softmax(fork.scores(logits) - priors[fork])
            order = np.argsort(-scores, kind="stable")
            if scores[order[0]] - scores[order[1]] < self._opened.noise:
                ties.add(row)
            logprobs[row] += float(scores[order[0]])
            below = fork.next[int(order[0])]
            if isinstance(below, Fork):
                at[row] = below
                return below.path[len(fork.path) :]
            chosen[row] = below
            return ()

        self._run(rows, step, reserve)
        canonical = closed_set(self._task.constraint) or ()
        answers = [
            Answer(canonical[option], logprob=logprob)
            for option, logprob in zip(chosen, logprobs, strict=True)
        ]
        return answers, sorted(ties)

    def _priors(self, rows: Sequence[tuple[int, ...]]) -> list[Scores]:
        """The prior of every fork, in the order of ``forks``."""
        if self._options.calibration == "none":
            return [np.zeros(len(fork.tokens)) for fork in forks(self._root)]
        remembered = self._opened.priors
        if self._task not in remembered:
            if len(remembered) >= _REMEMBERED_TASKS:
                remembered.pop(next(iter(remembered)))
            remembered[self._task] = self._task_priors()
        found = remembered[self._task]
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

    # -- open patterns -----------------------------------------------------------------------

    def _limit(self) -> int:
        """Most tokens of one answer."""
        kind = self._task.constraint.kind
        bounded = kind in ("integer", "number", "date", "timestamp")
        return SHORT_ANSWER_TOKENS if bounded else self._options.max_tokens

    def _write(self, rows: Sequence[tuple[int, ...]], reserve: int) -> list[Answer]:
        lead, stop = self._layout.lead, self._layout.stop
        pattern = f"{lead}({regex_of(self._task.constraint)})" + (f"({stop})?" if stop else "")
        guide = self._opened.guide(pattern)
        writers = self._written(guide, rows, reserve, self._opened.noise)
        for place, writer in enumerate(writers):
            if writer.tied:
                writers[place] = self._written(guide, [rows[place]], reserve, 0)[0]
        return [self._read(writer) for writer in writers]

    def _written(
        self, guide: Guide, rows: Sequence[tuple[int, ...]], reserve: int, noise: float
    ) -> list[Writer]:
        settled = self._settled if self._task.constraint.decides else never
        writers = [guide.writer(self._limit(), noise, settled) for _ in rows]
        # Forced tokens may go a little past the limit.
        self._run(rows, lambda row, logits: writers[row].step(logits), reserve)
        return writers

    def _settled(self, written: bytes) -> bool:
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
    """Running text without a list of options for closed sets, where small models were measured to
    be better in it (docs/answers.md); else the chat template, where the model has one."""
    if closed_set(task.constraint) is not None:
        return plain(render(task, shots=shots, listed=False))
    prompt = render(task, shots=shots)
    template = context.chat_template()
    layout = None
    if template:
        layout = chat(
            prompt, template, bos=context.bos_text(), eos=context.control_text(context.eos)
        )
    return layout or plain(prompt)


def _only(canonical: Sequence[str]) -> Answer:
    if not canonical:
        return Answer.failed("there are no options to choose from", Usage(values=1, failed=1))
    return Answer(canonical[0], logprob=0.0, usage=Usage(values=1))


def _closed(text: str) -> str:
    """A JSON list that was cut off, closed after its last whole element."""
    for end in range(len(text), 0, -1):
        try:
            json.loads(text[:end] + "]")
        except ValueError:
            continue
        return text[:end] + "]"
    return "[]"


def _shared(answers: list[Answer], spent: Spent) -> list[Answer]:
    """The answers with the cost of the whole batch: one call, on the first; tokens spread evenly."""
    if not answers:
        return answers
    share, rest = divmod(spent.tokens, len(answers))
    found = [
        answer.with_usage(replace(answer.usage, evaluated_tokens=share + (place < rest)))
        for place, answer in enumerate(answers)
    ]
    found[0] = found[0].with_usage(replace(found[0].usage, calls=min(1, spent.calls)))
    return found
