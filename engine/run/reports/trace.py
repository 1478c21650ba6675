"""The trace of a run: its questions, answers and spending."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import pyarrow as pa

from blendfusion.errors import (
    ConflictWarning,
    MatchWarning,
    ModelWarning,
    OptionError,
    level_of_caller,
)
from blendfusion.models.embedders.cache import VectorCounts
from blendfusion.models.protocol.model import Values
from blendfusion.options import Options
from blendfusion.places.whole_file import write_private
from blendfusion.redaction import WITHHELD, Redaction
from blendfusion.run.observe.progress import Reporter
from blendfusion.run.observe.throughput import MeasuredUsage, Question
from blendfusion.run.reports.answer_warnings import (
    conflict_summary,
    cut_summary,
    missed_summary,
    summary,
    unstated_summary,
)
from blendfusion.run.reports.html import text
from blendfusion.run.reports.request_sample import Sample
from blendfusion.run.reports.run_record import Run, run_of
from blendfusion.services import parts
from blendfusion.types import Answer, Task, Usage
from blendfusion.udfs.ask.cascade_outcome import CascadeOutcome
from blendfusion.udfs.ask.job import Job
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.ask.observer import Part, StageCounts
from blendfusion.udfs.ask.reasons import answer_task
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import Conflict

if TYPE_CHECKING:
    from blendfusion.language.opaque.prepared_frame import PreparedFrame
    from blendfusion.udfs.ask.dispatcher import Results

CALLS_SCHEMA = pa.schema(
    [
        ("ingredient", pa.string()),
        ("question", pa.string()),
        ("constraint", pa.string()),
        ("values", pa.list_(pa.string())),
        ("model", pa.string()),
        ("answer", pa.string()),
        ("logprob", pa.float64()),
        ("error", pa.string()),
        ("cut_off", pa.bool_()),
        ("cached", pa.bool_()),
        ("prompt_tokens", pa.int64()),
        ("evaluated_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("seconds", pa.float64()),
    ]
)

CONFLICTS_SCHEMA = pa.schema(
    [
        ("call", pa.string()),
        ("value", pa.string()),
        ("other", pa.string()),
        ("answer", pa.bool_()),
        ("same", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class Wait:
    """Values that another run of the process was asking, and the seconds of waiting for them."""

    values: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.values:,} of them asked by another run, waited {self.seconds:.2f} s"


INTERNAL = frozenset(
    "answered asking became_of begin by_question_and_model cascaded conflicting every expect first_model follows given in_vain missing "
    "keep_rates ledger note_failures partly results_by_call stage usage_of vectors_by_call wait_of waited warn "
    "within withheld withheld_of batch".split()
)
"""The names of a trace for other modules of the package; completion omits them."""


_FEW = 2
"""So many texts that do not state the values that were asked for are no surprise."""


class AnswerWarning(UserWarning):
    """Some values got no valid answer and became NULL, or only the beginning of one."""


def _pages() -> Any:
    """The module of pages of runs; None without the service that has it."""
    return next(iter(parts("pages")), None)


class TimeLeft(Protocol):
    """Expects the seconds of a run, until its first answers say more."""

    def add(self, job: Job, values: Sequence[Values]) -> float | None:
        """The seconds of all requests so far with those about ``values``; None if unknown."""

    def note_usage(self, job: Job, usage: Usage) -> None:
        """Record the usage of one batch, for later sessions."""

    def keep(self) -> None:
        """Store the rates of the run."""


class Trace:
    """The record of one run (and the observer of its dispatchers).

    ``usage`` is the total, whose parts are attributes of the trace, too; ``by_task`` the total per
    task; ``calls`` has every request as an Arrow table: ingredient, question, constraint, values,
    the model, its answer, the logarithm of its probability among the options of a closed set,
    error, whether ``max_tokens`` cut it off, whether it came from the cache, tokens and seconds.
    """

    def __init__(
        self,
        reporter: Reporter | None = None,
        measured: MeasuredUsage | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self.by_task: dict[Task, Usage] = {}
        self._by_question: dict[Question, Usage] = {}
        self._sample = Sample(Options().trace_calls)
        self._by_words: dict[tuple[str, str], Usage] = {}
        self._failures: dict[tuple[Task, Values], str] = {}
        """The reasons for NULL values in the result."""
        self.cascades: dict[Call, CascadeOutcome] = {}
        """The outcomes of calls with a cascade: see ``accuracy``, ``recall``."""
        self.cut_off = 0
        """Answers of which there is only the beginning: ``max_tokens`` cut them off."""
        self.words_left_out = 0
        """Words of documents, read so far, that are in no chunk."""
        self._withheld: dict[Call, set[Values]] = {}
        self._conflicts: dict[Call, dict[Values, Conflict]] = {}
        self._missed: dict[Call, int] = {}
        """Values that may have matches that were not looked at."""
        self._waits: dict[Question, Wait] = {}
        self._known = 0
        self._done = 0
        self._expected: TimeLeft | None = None
        if measured is not None:
            self._expected = next((expects(measured) for expects in parts("seconds")), None)
        self._reporter = reporter
        self._measured = measured
        self._redaction = redaction or Redaction()
        self._lock = threading.Lock()
        self.given: set[str] = set()
        """Parameter values of the query, which no page shows."""
        self.ledger: Ledger | None = None
        """The ledger of the run's spending."""
        self.first_model: Callable[[], str] = str
        """The name of the session's model, or of the first of several."""
        self.vectors_by_call: Mapping[Call, VectorCounts] = {}
        self.results_by_call: Mapping[Call, Results] = {}
        self.run: Run | None = None
        """The record of the run besides its calls."""

    @property
    def usage(self) -> Usage:
        return Usage.total(self.by_task.values())

    @property
    def values(self) -> int:
        """The values that were asked about, without those whose answers were cached."""
        return self.usage.values

    @property
    def readings(self) -> int:
        """How often a model read a text for ``values``: once for all questions of one request."""
        return self.usage.readings

    @property
    def requests(self) -> int:
        """The requests of servers, retries included; in process, the batches."""
        return self.usage.calls

    @property
    def cached(self) -> int:
        """The values whose answers were cached."""
        return self.usage.cached

    @property
    def waited_for(self) -> int:
        """The values among ``cached`` whose answers another run of the process was asking for: see
        ``wait``."""
        return self.wait.values

    @property
    def failed(self) -> int:
        """The values without a valid answer."""
        return self.usage.failed

    @property
    def prompt_tokens(self) -> int:
        return self.usage.prompt_tokens

    @property
    def evaluated_tokens(self) -> int:
        """The prompt tokens that were not in a model's own cache."""
        return self.usage.evaluated_tokens

    @property
    def completion_tokens(self) -> int:
        return self.usage.completion_tokens

    @property
    def seconds(self) -> float:
        """The seconds that models took."""
        return self.usage.seconds

    def usage_of(self, call: Call) -> Usage:
        """The spending on the question of ``call``, by the models that answer it."""
        task = answer_task(call.task) if call.task.reasoning else call.task
        return self._by_question.get(_question(task, call.models), Usage())

    @property
    def cost(self) -> float | None:
        """The cost of the run by the session's prices; None if the model has none."""
        return 0.0 if self.ledger is None else self.ledger.cost

    @property
    def vectors(self) -> VectorCounts:
        """The sources of vectors: embedded texts, vectors from an index, remembered vectors."""
        return sum(self.vectors_by_call.values(), VectorCounts())

    @property
    def function_rows(self) -> dict[str, int]:
        """The number of distinct rows that each function of the user has seen, by its call."""
        results = self.results_by_call.items()
        return {call.text: len(found) - found.stored for call, found in results}

    @property
    def stored_function_rows(self) -> dict[str, int]:
        """The number of distinct rows whose results earlier runs stored, of each deterministic
        function of the user, by its call."""
        return {call.text: found.stored for call, found in self.results_by_call.items()}

    def begin(
        self, options: Options, query: str = "", calls: int = 1, plan: PreparedFrame | None = None
    ) -> Run:
        """The run that this trace records, of ``query`` with ``calls`` calls, as a context manager.
        If it is not entered, it only reports batches."""
        self._sample.most = options.trace_calls
        self.run = run_of(options, query, calls, plan)
        return self.run

    def stage(self, number: int, counts: StageCounts) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.run is None else self.run.stage(number, counts)

    def within(self, number: int) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.run is None else self.run.within(number)

    def expect(self, job: Job, values: Sequence[Values]) -> None:
        self._known += len(values)
        self._report(0)
        if self._expected is not None and self._reporter is not None and self.follows and values:
            seconds = self._expected.add(job, values)
            if seconds is not None:
                self._reporter.expect(seconds)

    def keep_rates(self) -> None:
        """Store how fast the models of this run answered, for the line of later sessions."""
        if self._expected is not None:
            self._expected.keep()

    @property
    def follows(self) -> bool:
        return self._reporter is not None and self._reporter.shows

    def on_answers(self, n: int) -> None:
        self._report(n)

    def asking(self, job: Job, n: int) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.run is None else self.run.watch.asking(job, n)

    def batch(
        self, job: Job, values: Sequence[Values], answers: Sequence[Answer], seconds: float
    ) -> None:
        with self._lock:
            self._sample.add(job.task, values, answers)
        self._count(job, len(values), answers, seconds)

    @property
    def every(self) -> int:
        return self._sample.every

    def partly(self, job: Job, part: Part, seconds: float) -> None:
        with self._lock:
            self._sample.add_part(job.task, part)
        self._count(job, part.number, part.answers, seconds)

    def _count(self, job: Job, number: int, answers: Sequence[Answer], seconds: float) -> None:
        spent = replace(Usage.total(a.usage for a in answers), seconds=seconds)
        question = job.task, job.names
        self._spend(job, spent)
        with self._lock:
            for name, share in _by_model(answers, spent).items():
                words = name, job.task.question
                self._by_words[words] = self._by_words.get(words, Usage()) + share
            self._done += spent.values
            if not job.task.constraint.max_tokens:  # a reason may end anywhere
                self.cut_off += sum(answer.is_cut for answer in answers)
        if self._measured is not None:
            self._measured.add(question, spent)
        if self._expected is not None:
            self._expected.note_usage(job, spent)
        if self.run is not None:
            self.run.batch(job, number, spent)
        self._report(0)

    def _report(self, in_batch: int) -> None:
        """Report progress; ``in_batch`` answers are not counted yet."""
        if self._reporter is not None:
            total, done = self.usage, self._done + in_batch
            tokens = total.evaluated_tokens + total.completion_tokens
            self._reporter.update(done, max(self._known, done), tokens, total.cached)

    def in_vain(self, job: Job, spent: Usage) -> None:
        self._spend(job, spent)

    def on_left_out(self, words: int) -> None:
        with self._lock:
            self.words_left_out += words

    def on_wait(self, job: Job, n: int, seconds: float) -> None:
        with self._lock:
            question = _question(job.task, job.names)
            before = self._waits.get(question, Wait())
            self._waits[question] = Wait(before.values + n, before.seconds + seconds)
            if self.run is not None:
                self.run.waited = self.wait.values

    @property
    def wait(self) -> Wait:
        """The requests of other runs for whose answers this run waited. They count as ``cached``
        here."""
        waits = self._waits.values()
        return Wait(sum(w.values for w in waits), sum(w.seconds for w in waits))

    def wait_of(self, call: Call) -> Wait:
        """The part of ``wait`` that belongs to the question of ``call``."""
        return self._waits.get(_question(call.task, call.models), Wait())

    def _spend(self, job: Job, spent: Usage) -> None:
        task, question = job.task, _question(job.task, job.names)
        with self._lock:
            self.by_task[task] = self.by_task.get(task, Usage()) + spent
            self._by_question[question] = self._by_question.get(question, Usage()) + spent

    @property
    def left_out(self) -> int:
        """Requests beyond the option ``trace_calls``: in all totals, and in ``calls`` if they
        failed."""
        return self._sample.left_out

    @property
    def calls(self) -> pa.Table:
        """The requests of the run, in the order of their answers: all of them, or an even sample
        and all failures if ``left_out`` counts more."""
        rows = [
            {
                "ingredient": task.ingredient,
                "question": task.question,
                "constraint": str(task.constraint),
                "values": list(texts),
                "model": answer.model or self.first_model(),
                "answer": answer.text,
                "logprob": answer.logprob,
                "error": answer.error,
                "cut_off": answer.is_cut,
                "cached": answer.usage.cached > 0,
                "prompt_tokens": answer.usage.prompt_tokens,
                "evaluated_tokens": answer.usage.evaluated_tokens,
                "completion_tokens": answer.usage.completion_tokens,
                "seconds": answer.usage.seconds,
            }
            for task, values, answers in self.batches
            for texts, answer in zip(values, answers, strict=True)
        ]
        return pa.Table.from_pylist(rows, CALLS_SCHEMA)

    @property
    def by_model(self) -> dict[str, Usage]:
        """Questions and spending of each model: a value counts for every model that received it.
        The seconds of a batch are divided by tokens."""
        found: dict[str, Usage] = {}
        for (name, _), spent in self.by_question_and_model.items():
            found[name] = found.get(name, Usage()) + spent
        return found

    @property
    def by_question_and_model(self) -> dict[tuple[str, str], Usage]:
        """The spending by the name of the model and the words of the question."""
        found: dict[tuple[str, str], Usage] = {}
        for (name, question), spent in self._by_words.items():
            words = name or self.first_model(), question
            found[words] = found.get(words, Usage()) + spent
        return found

    @property
    def errors(self) -> pa.Table:
        """The requests without a valid answer from any model."""
        calls = self.calls
        return calls.filter(calls["error"].is_valid())

    @property
    def conflicts(self) -> pa.Table:
        """The answers about pairs of values that contradict what other answers imply: the call,
        both values, whether they are the same by the answer, and in the result.
        ``llm_same(…, check => n)`` looks for them."""
        rows = [
            {"call": call.text, **conflict._asdict()}
            for call, own in self._conflicts.items()
            for conflict in own.values()
        ]
        return pa.Table.from_pylist(rows, CONFLICTS_SCHEMA)

    @property
    def batches(self) -> Sequence[tuple[Task, list[Values], list[Answer]]]:
        """The batches in order: the task, the values, and as many answers. Of requests in
        ``left_out``, only the failed ones."""
        return self._sample.batches

    @overload
    def to_html(self) -> str: ...

    @overload
    def to_html(self, path: str | os.PathLike[str]) -> None: ...

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The run as one HTML page: its plan with counts, samples of questions and answers, errors,
        settings. Written to ``path``, if given, for the eyes of its owner only, and else returned.

        The page needs neither scripts nor a network, and its size is bounded: it shows samples of
        many values. It contains values, as the session's options ``show_values`` and ``redact``
        allow. Raises OSError if ``path`` cannot be written.
        """
        pages = _pages()
        if pages is None:
            raise OptionError(
                "pages of runs need the service blendfusion/services/pages, which is not installed"
            )
        page = self._less_given(pages.page_of(self, self._redaction))
        if path is None:
            return page
        write_private(Path(path), page.encode("utf-8", "replace"))
        return None

    def _repr_html_(self) -> str | None:
        pages = _pages()
        return None if pages is None else self._less_given(pages.fragment_of(self))

    def _less_given(self, markup: str) -> str:
        for value in self.given:
            markup = markup.replace(text(value), WITHHELD)
        return markup

    def note_failures(self, task: Task, failed: Mapping[Values, Answer]) -> None:
        with self._lock:
            for values, answer in failed.items():
                self._failures[task, values] = answer.error or "no answer"

    def on_cascade(self, call: Call, outcome: CascadeOutcome) -> None:
        with self._lock:
            before = self.cascades.get(call)
            self.cascades[call] = outcome if before is None else before + outcome
            if self.run is not None:
                self.run.decided += outcome.decided

    def became_of(self, call: Call) -> list[str]:
        """Remarks on the answers to ``call`` besides their cost: who decided them, and how many are
        below their ``confidence``."""
        notes = []
        if call in self.cascades:
            likely = call.targets is not None and call.targets.proxy is not None
            notes.append(f"{'approximate' if likely else 'cascade'}: {self.cascades[call]}")
        if (wait := self.wait_of(call)).values:
            notes.append(f"cached: {wait}")
        if withheld := self.withheld_of(call):
            reason = "not in the text" if call.stated else "less probable than wanted"
            notes.append(f"{withheld:,} withheld: {reason}")
        return notes

    @property
    def approximate(self) -> bool:
        """Whether a small model or similarity decided values in the place of the model:
        ``cascades`` has their number and the guarantee."""
        return any(outcome.decided for outcome in self.cascades.values())

    def on_withheld(self, call: Call, values: Sequence[Values]) -> None:
        with self._lock:
            self._withheld.setdefault(call, set()).update(values)
            if self.run is not None:
                self.run.withheld = self.unsure

    def withheld_of(self, call: Call) -> int:
        """Answers to ``call`` that are NULL because they are below its ``confidence``, or that have
        numbers or dates that the text does not state."""
        return len(self._withheld.get(call, ()))

    @property
    def unsure(self) -> int:
        """The number of answers that are NULL because they are below the ``confidence`` of their
        calls, or have numbers or dates that the text does not state."""
        return sum(map(len, self._withheld.values()))

    def on_conflicts(self, call: Call, conflicts: Sequence[Conflict]) -> None:
        with self._lock:
            self._conflicts.setdefault(call, {}).update((one[:2], one) for one in conflicts)

    def on_unsearched(self, call: Call, values: int) -> None:
        with self._lock:
            self._missed[call] = self._missed.get(call, 0) + values

    def warn(self, outages: Sequence[str] = (), differences: Iterable[str] = ()) -> None:
        """Give one warning with the number of values that are NULL without an answer, and the
        reasons; one about answers that were cut off; one for each call of which no text states all
        numbers and dates; one about models that were left out, for the reasons in ``outages``; one
        for each of ``differences``; one about answers that contradict one another; and one for each
        call that may miss matches."""
        if outages:
            warnings.warn(
                f"Left out, as they failed as a whole: {self._redaction.reason('; '.join(outages))}",
                ModelWarning,
                stacklevel=level_of_caller(),
            )
        for difference in differences:
            warnings.warn(difference, ModelWarning, stacklevel=level_of_caller())
        if self._failures:
            warnings.warn(
                summary(self._failures, self._redaction),
                AnswerWarning,
                stacklevel=level_of_caller(),
            )
        if self.cut_off:
            warnings.warn(cut_summary(self.cut_off), AnswerWarning, stacklevel=level_of_caller())
        for call, values in self._withheld.items():
            usage = self.usage_of(call)
            if call.stated and _FEW < len(values) >= usage.values + usage.cached:
                message = unstated_summary(call, len(values))
                warnings.warn(message, AnswerWarning, stacklevel=level_of_caller())
        if self._conflicts:
            own = {call.text: [*found.values()] for call, found in self._conflicts.items()}
            warnings.warn(
                conflict_summary(own, self._redaction),
                ConflictWarning,
                stacklevel=level_of_caller(),
            )

        for call, number in self._missed.items():
            warnings.warn(missed_summary(call, number), MatchWarning, stacklevel=level_of_caller())

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - INTERNAL)

    def __repr__(self) -> str:
        u, waiting = self.usage, self.waited_for
        waited = f"waited_for={waiting}, " if waiting else ""
        read = f"readings={u.readings}, requests={u.calls}, " if u.beside else ""
        return (
            f"Trace(values={u.values}, {read}cached={u.cached}, {waited}failed={u.failed}, "
            f"prompt_tokens={u.prompt_tokens}, evaluated_tokens={u.evaluated_tokens}, "
            f"completion_tokens={u.completion_tokens}, seconds={u.seconds:.2f})"
        )


def _question(task: Task, names: tuple[str, ...]) -> Question:
    """The key of a question, the same for its values that turned out to be images."""
    return replace(task, images=False) if task.images else task, names


def _by_model(answers: Sequence[Answer], spent: Usage) -> dict[str, Usage]:
    """The parts of each model in what one batch has ``spent``; '' is the session's first one."""
    if not any(answer.spent for answer in answers):
        return {"": spent}
    spent_by: dict[str, list[Usage]] = {}
    for answer in answers:
        for name, usage in answer.spent or (("", answer.usage),):
            spent_by.setdefault(name, []).append(usage)
    batch = {name: Usage.total(usages) for name, usages in spent_by.items()}
    tokens = {n: u.evaluated_tokens + u.completion_tokens for n, u in batch.items()}
    whole = sum(tokens.values())
    shares = {n: tokens[n] / whole if whole else 1 / len(batch) for n in batch}
    return {n: replace(u, seconds=spent.seconds * shares[n]) for n, u in batch.items()}
