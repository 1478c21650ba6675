"""Dispatches the questions of ingredients to models: batches, interruption, errors, observation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeAlias

import pyarrow as pa

from blendfusion.errors import BlendFusionError, QueryError, connect_with
from blendfusion.models.embedders.cache import CachedEmbedder, VectorCounts
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.embedders.load import no_embedder
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.guarantees.vector_classifier import EmbeddingModel
from blendfusion.models.protocol.allowance import OutOfCallsError, OutOfTimeError, allowing
from blendfusion.models.protocol.images import any_lent
from blendfusion.models.protocol.model import Values
from blendfusion.models.protocol.together import Open, asking_beside
from blendfusion.models.registry.model_names import ModelNames
from blendfusion.models.stores.answer_spill import AnswerSpill, SpillableAnswers
from blendfusion.models.stores.entry import pieces
from blendfusion.models.stores.in_flight import UNDER_WAY
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.options import OnError, Options
from blendfusion.redaction import Redaction
from blendfusion.types import Answer, ModelInfo, Task, Usage
from blendfusion.udfs.ask.answer_lookup import AnswerLookup
from blendfusion.udfs.ask.answer_samples import AnswerSamples, ComparedRun
from blendfusion.udfs.ask.cascade import Cascade
from blendfusion.udfs.ask.job import Job
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.ask.media import NOT_READ, check_senses, has_media, is_unreadable
from blendfusion.udfs.ask.named_results import NamedResults
from blendfusion.udfs.ask.observer import Observer
from blendfusion.udfs.ask.outcomes import check_first_probabilities, failure, of_model
from blendfusion.udfs.ask.reviews import answers_of_people
from blendfusion.udfs.ask.similarity_cascade import SimilarityCascade
from blendfusion.udfs.ask.thread_handoff import Serve, directly
from blendfusion.udfs.declare.call import Call

_NAMED_PLACE = re.compile(r"\{\s*[A-Za-z_]")
"""The place of a value in a question, by its name."""
_AT_A_TIME = 65_536
"""Values that are sent, batch by batch, before their answers may go to a file."""
_FIRST = 16
"""Answers after which a model without probabilities is told from one that gives them."""

Together: TypeAlias = Mapping[Call, Collection[Values] | None]
"""Calls that are open about the same values, each with those; None: about all."""
Question: TypeAlias = tuple[Task, "Targets | None", ModelNames]
"""A task without what no prompt shows, the targets of its cascade, and its models."""


class UnknownAnswerError(Exception):
    """Something would have to be asked."""


@dataclass(slots=True)
class Results:
    """The results of a user's function, by distinct rows of values: the row's place in the
    concatenation of ``arrays``, or -1 for NULL without a call."""

    places: dict[object, int] = field(default_factory=dict)
    arrays: list[pa.Array] = field(default_factory=list)
    stored: int = 0
    """The number of rows whose results were stored by an earlier run."""

    def __len__(self) -> int:
        return sum(map(len, self.arrays))


class Dispatcher:
    """Sends the requests of one run to one model.

    Requests go in batches of the model's size, so that a run can be interrupted between them
    (KeyboardInterrupt, a closed stream). Answers that arrived stay in the cache and in the trace,
    also those of a batch that is interrupted or fails. The model is looked up at the first request:
    a run without requests needs no model."""

    guesses_answers = False
    """Answers are guesses: what they agree on says nothing."""

    def __init__(
        self,
        model: Callable[[], CachedModel],
        observer: Observer,
        on_error: OnError = "null",
        redaction: Redaction | None = None,
        ledger: Ledger | None = None,
        embedder: Callable[[], Embedder] | None = None,
        *,
        image_urls: bool = True,
        targets: Targets | None = None,
        named: Callable[[ModelNames], CachedModel] | None = None,
        spill: AnswerSpill | None = None,
    ) -> None:
        self._source = model
        self._named = named
        self.observer = observer
        self.on_error = on_error
        self.redaction = redaction or Redaction()
        self.ledger = ledger or Ledger()
        self.embedder = embedder or no_embedder
        """Looked up when the first text is to be embedded. Raises ModelNotFound."""
        self.image_urls = image_urls
        """Whether models are asked about images at URLs."""
        self.vectors: dict[Call, VectorCounts] = {}
        """Where the vectors that calls needed came from."""
        self.targets = targets
        """The targets of cascades for calls that name none."""
        self.kept = NamedResults()
        """The groups and entities that the session keeps."""
        self.compared = ComparedRun()
        """Answers beside those by which their models were chosen."""
        self.tokens = 0
        """Tokens evaluated and generated so far."""
        self.computed = 0
        """Distinct rows of values that bodies of users' functions saw so far."""
        self.hits = 0
        """Answers that the cache gave so far."""
        self.serve: Serve = directly
        """Does what a thread of DataFusion's wants to have asked."""
        self._only_known = False
        self.error: Exception | None = None
        """The exception of a call inside DataFusion, which passes on only its text."""
        self.results: dict[Call, Results] = {}
        """The results of user functions in this run."""
        self._values: dict[Call, dict[Values, object]] = {}
        self.spill = spill or AnswerSpill(Options().spill_above)
        """The memory for the answers of the run."""
        self._answered: dict[Question, SpillableAnswers[Values]] = {}
        self._cascades: dict[tuple[Task, Targets, ModelNames], Cascade] = {}
        self._by_name: dict[ModelNames, bool] = {}
        """Whether models read the names of values beside their prompts."""
        self._models: dict[ModelNames, CachedModel] = {}
        """The models that were asked or looked up."""
        self._together: dict[Call, Together] = {}
        """The calls that are open about the same values, by each of them."""
        self._settled: dict[Task, Task] = {}
        self.lookup = AnswerLookup(self)

    @property
    def model(self) -> CachedModel:
        """The session's model: see ``model_of``."""
        return self.model_of(None)

    def model_of(self, call: Call | None) -> CachedModel:
        """The model of ``call`` behind the stored answers, once it is known to answer (a server
        reports its window then). None: the session's model.

        Raises ModelNotFound, ModelFailed, or OptionError where a cost is limited and it has no
        price."""
        names = self._names(call)
        found = self._models.get(names)
        if found is None:
            found = self._models[names] = self._open(self._look_up(names), names)
        return found

    def found_model(self, call: Call) -> CachedModel:
        """As ``model_of``, without contacting or charging it, to read its properties."""
        names = self._names(call)
        return self._models.get(names) or self._look_up(names)

    def answers_of(self, call: Call, values: Sequence[Values]) -> Mapping[Values, Answer]:
        """The answers of this run so far to the question of ``call`` about ``values``."""
        held = self._answered.get(self.question_of(call))
        return {} if held is None else held.among(values)

    def task_to_send(self, task: Task) -> Task:
        """The task that a model reads for ``task``."""
        return self._settled.get(task, task)

    def _names(self, call: Call | None) -> ModelNames:
        return ModelNames() if call is None else call.model_names(self.targets)

    def _look_up(self, names: ModelNames) -> CachedModel:
        if not names.names:
            return self._source()
        if self._named is None:
            raise QueryError(
                f"no model is known by the name '{names.names[0]}' here",
                hint="Name models in the queries of a session, which bf.connect() opens.",
            )
        return self._named(names)

    def _open(self, model: CachedModel, names: ModelNames) -> CachedModel:
        self.ledger.open(model, first=not names.names)
        model.check()
        return model

    @property
    def outages(self) -> Sequence[str]:
        """Messages about models that were left out in this run."""
        return [outage for model in self._models.values() for outage in model.outages]

    def info_of(self, call: Call | None) -> ModelInfo:
        """The identity of the model of ``call``."""
        return self.model_of(call).info

    @property
    def at_once(self) -> int:
        """How many requests take a model no longer than one; 1 as long as none was made."""
        return min((model.abilities.at_once for model in self._models.values()), default=1)

    def settle(self, task: Task, sent: Task) -> None:
        """From here on ``task``, of which something comes from a subquery, is asked as
        ``task_to_send``."""
        self._settled[task] = sent

    def is_settled(self, task: Task) -> bool:
        return task in self._settled

    def certain(self, task: Task) -> Answer | None:
        """The answer that no model is needed for: NULL from an empty set of options, or the only
        option. None if a model must be asked. Raises QueryError for options, examples or a
        sample that were not read."""
        settled = self.task_to_send(task)
        constraint = settled.constraint
        choice = constraint.item or constraint
        for name, query in _queries_left(settled).items():
            raise QueryError(
                f"{name} => ({query}) cannot be read here",
                hint=f"A subquery gives the {name} in queries of a session: bf.connect().",
            )
        if choice.kind != "choice" or len(choice.options) > 1:
            return None
        if not choice.options:
            return Answer(None)
        if choice.distribution:
            return Answer(json.dumps({choice.options[0]: 1.0}, ensure_ascii=False))
        return Answer(choice.options[0], logprob=0.0) if constraint.item is None else None

    def ask(
        self,
        task: Task,
        values: Sequence[Values],
        call: Call | None = None,
        *,
        sent: Task | None = None,
        stops: bool = True,
    ) -> list[Answer]:
        """The answers to ``values``, in order; equal tuples are asked once per run.

        ``sent``: the task that the model reads; None means ``task``. With ``stops``, AnswerError is
        raised after the first batch with a failure if ``call`` says so."""
        certain = self.certain(task)
        if certain is not None:
            return [certain] * len(values)
        sent = sent or self.task_to_send(task)
        if (
            any_lent()
            and not (sent.images or sent.audio)
            and (shown := [v for v in values if has_media(v)])
        ):
            return self._ask_with_media(task, values, {*shown}, call, sent, stops=stops)
        targets = self.targets_of(call)
        names = self._names(call)
        held = self._answers_under(self.question_of(call, sent))
        answered = held.among(values)
        new = list(dict.fromkeys(v for v in values if v not in answered))
        if new and call is not None and targets is not None:
            if self._only_known:
                raise UnknownAnswerError
            answered.update(self._run_cascade(call, targets, sent, new))
            held.update({v: answered[v] for v in new})
        elif new:
            job = Job(task, self.model_of(call), names.names)
            _check_kind(sent, job.model)
            for some in pieces(new, _AT_A_TIME):
                given: dict[Values, Answer] = {}
                try:
                    with asking_beside(self._beside(call, job.model, some)):
                        self.dispatch(job, sent, some, given, call if stops else None)
                finally:
                    held.update(given)
                    answered.update(given)
        return [answered[v] for v in values]

    @contextmanager
    def asking_together(self, groups: Iterable[Together]) -> Iterator[None]:
        """Ask the questions of each group in one request, each about the values for which it has no
        answer. Each is needed for them, whatever the answers to the others are: elsewhere it may be
        spared, so the groups end with the block."""
        before = self._together
        self._together = {**before, **{call: calls for calls in groups for call in calls}}
        try:
            yield
        finally:
            self._together = before

    def _beside(self, call: Call | None, model: CachedModel, values: Sequence[Values]) -> Open:
        """The other questions about ``values`` that a request of ``call`` may hold, each with the
        values that it has no answer for."""
        calls = self._together.get(call, {}) if call is not None else {}
        if call is None or len(calls) < 2 or not self._fits(call, model):
            return {}
        others = {}
        for other, open_ in calls.items():
            sent = self.task_to_send(other.task)
            if other == call or self._names(other) != self._names(call) or self._is_fixed(other):
                continue
            if not self._fits(other, model):
                continue
            needed = values if open_ is None else [v for v in values if v in open_]
            known = self.answers_of(other, needed)
            known = {**known, **answers_of_people(other, needed, self)}
            left = [v for v in needed if v not in known]
            stored = model.known_answers(sent, left)
            others[sent] = frozenset(v for v in left if v not in stored)
        return others

    def check_kinds(self, calls: Iterable[Call]) -> None:
        """Raise QueryError for a call that no model answers; not yet for one whose options each
        group gives. Loads no model."""
        for call in calls:
            kind = call.ingredient.kind
            if not kind.asks_model or kind.has_body or _queries_left(self.task_to_send(call.task)):
                continue
            model = self.lookup.model_of(call)
            if model is None or self.certain(call.task) is not None:
                continue
            targets = self.targets_of(call)
            if targets is None:
                _check_kind(self.task_to_send(call.task), model)
            else:
                _check_levels(call, targets, model)

    def joins(self, call: Call) -> bool:
        """Whether a request may hold the question of ``call`` beside others. Loads no model."""
        model = self.lookup.model_of(call)
        return model is not None and self._fits(call, model) and not self._is_fixed(call)

    def _fits(self, call: Call, model: CachedModel) -> bool:
        """Whether a request to ``model`` may hold the question of ``call`` beside others."""
        able = model.abilities
        fits = able.asks_together(self.task_to_send(call.task))
        return fits and (able.odds_together or not call.needs_odds)

    def _is_fixed(self, call: Call) -> bool:
        """Whether a call is asked in another way than by its one question."""
        return self.certain(call.task) is not None or self.targets_of(call) is not None

    def _ask_with_media(
        self,
        task: Task,
        values: Sequence[Values],
        shown: set[Values],
        call: Call | None,
        sent: Task,
        *,
        stops: bool,
    ) -> list[Answer]:
        """One answer a tuple of values, in order, of which ``shown`` name images or recordings."""
        unreadable = {v for v in shown if is_unreadable(v)}
        fit = [v for v in dict.fromkeys(values) if v in shown and v not in unreadable]
        if fit:
            model = self.model_of(call)
            check_senses(task.ingredient, model.name, model.abilities, fit)
        texts = [v for v in dict.fromkeys(values) if v not in shown]
        pictured = replace(sent, images=True)
        answers = dict(zip(fit, self.ask(task, fit, call, sent=pictured, stops=stops), strict=True))
        answers |= zip(texts, self.ask(task, texts, call, sent=sent, stops=stops), strict=True)
        answers |= dict.fromkeys(unreadable, Answer.failed(f"{task.ingredient}: {NOT_READ}"))
        return [answers[v] for v in values]

    def learn(self, job: Job, call: Call | None, answers: Mapping[Values, Answer]) -> None:
        """Answers of this run that were got elsewhere: nothing asks again."""
        question = self.question_of(call, self.task_to_send(job.task))
        self._answers_under(question).update(answers)

    def question_of(self, call: Call | None, sent: Task | None = None) -> Question:
        """The key under which a run asks each value once: equal for calls that share answers.
        ``sent``: the task that the model reads; None: that of ``call``."""
        if sent is None:
            assert call is not None
            sent = self.task_to_send(call.task)
        names = self._names(call)
        return self._without_name(sent, names), self.targets_of(call), names

    def _answers_under(self, question: Question) -> SpillableAnswers[Values]:
        held = self._answered.get(question)
        return held or self._answered.setdefault(question, self.spill.answers())

    def _without_name(self, sent: Task, names: ModelNames) -> Task:
        """The task without the name of its only value, which no prompt shows: equal texts of two
        columns are one question. A model that scores options may be calibrated by the name."""
        alone = len(sent.columns) == 1 and not sent.aggregate
        if not alone or _NAMED_PLACE.search(sent.question) or self._reads_names(names):
            return sent
        return replace(sent, columns=("",))

    def _reads_names(self, names: ModelNames) -> bool:
        if names not in self._by_name:
            try:
                model = self._models.get(names) or self._look_up(names)
                self._by_name[names] = model.abilities.scores_options
            except BlendFusionError:  # it shows when the model is asked
                return True
        return self._by_name[names]

    def embedder_for(self, call: Call | None) -> Embedder:
        """The embedder; ``vectors`` counts the texts of ``call``, ``ledger`` their cost. ``call``
        is None for texts of no call. Raises ModelNotFound."""
        embedder = self.embedder()
        if not isinstance(embedder, CachedEmbedder):
            return embedder
        counts = VectorCounts()
        if call is not None:
            counts = self.vectors.setdefault(call, counts)
        return embedder.counting(counts, self.ledger)

    def dispatch(
        self,
        job: Job,
        sent: Task,
        values: Sequence[Values],
        into: dict[Values, Answer],
        call: Call | None,
        *,
        final: bool = True,
    ) -> None:
        """Send these distinct values to a model, batch after batch; its answers go ``into``.
        ``task_to_send``: the task that it reads. Failures raise AnswerError if ``call`` says so.

        If not ``final``, another model gets the values that fail, and no failure is counted yet.
        """
        since = UNDER_WAY.ended

        def look(some: list[Values], others: dict[Values, Answer]) -> list[Values]:
            return self._receive(job, sent, some, others, into, final=final)

        def ask(some: list[Values], given: dict[Values, Answer]) -> None:
            in_order = job.model.in_order(job.task, some)
            self._batches(job, sent, in_order, into, call, given, final=final)

        def note_wait(number: int, seconds: float) -> None:
            self.observer.on_wait(job, number, seconds)

        missing = look([*values], {})
        if missing and self._only_known:
            raise UnknownAnswerError
        self.observer.expect(job, missing)
        if missing:
            question = job.model.question(sent)
            UNDER_WAY.settle(question, missing, look, ask, since, note_wait)
        sample = self.kept.of(AnswerSamples).of(job.model, job.task)
        if sample is not None:
            self.compared.note(sample, {v: into[v] for v in values if v in into})

    def _receive(
        self,
        job: Job,
        sent: Task,
        values: Sequence[Values],
        wanted: dict[Values, Answer],
        into: dict[Values, Answer],
        *,
        final: bool,
    ) -> list[Values]:
        """The values that other runs, which were waited for, have not answered; the answers of the
        others go ``into``."""
        found = {v: wanted.pop(v) for v in values if v in wanted}
        if found:
            self._hit(job, job.model.receive(sent, found), into, final=final)
            values = [v for v in values if v not in found]
        return self._find_unknown(job, sent, values, into, final=final)

    def _find_unknown(
        self,
        job: Job,
        sent: Task,
        values: Sequence[Values],
        into: dict[Values, Answer],
        *,
        final: bool,
    ) -> list[Values]:
        """The values without a stored answer; the stored ones go ``into``."""
        hits = job.model.known_answers(sent, values)
        if hits:
            self._hit(job, hits, into, final=final)
        return [v for v in values if v not in hits]

    def _hit(
        self, job: Job, hits: dict[Values, Answer], into: dict[Values, Answer], *, final: bool
    ) -> None:
        """Count cache hits, which go ``into``."""
        self.hits += len(hits)
        if job.model is not self._models.get(ModelNames()):
            hits = self.attribute(job.model, hits, final=final)
        self.observer.batch(job, list(hits), list(hits.values()), 0.0)
        into.update(hits)

    def _batches(
        self,
        job: Job,
        sent: Task,
        missing: list[Values],
        into: dict[Values, Answer],
        call: Call | None,
        given: dict[Values, Answer],
        *,
        final: bool,
    ) -> None:
        """Ask about ``missing`` in batches. Answers of ``job.model`` itself are also ``given`` to
        other runs."""
        done = 0
        while done < len(missing):
            size = self.ledger.admit(sent, len(missing) - done, job.model)
            try:
                with self.observer.asking(job, size):
                    self._batch(job, sent, missing[done : done + size], into, given, final=final)
            except OutOfCallsError:
                pending = sum(v not in into for v in missing)
                raise self.ledger.out_of_calls(pending) from None
            except OutOfTimeError:
                raise self.ledger.out_of_time(sum(v not in into for v in missing)) from None
            done += size
            if call is not None and self.policy(call) == "raise":
                self.stop_at_failures(call, missing[:done], into)
            if call is not None and done - size < _FIRST <= done < len(missing):
                answered = [into[v] for v in missing[:done] if v in into]
                check_first_probabilities(call, answered, self)

    def targets_of(self, call: Call | None) -> Targets | None:
        """The targets of the cascade that answers ``call``; None: no cascade answers it."""
        return None if call is None else call.targets_with(self.targets)

    def _run_cascade(
        self, call: Call, targets: Targets, sent: Task, values: list[Values]
    ) -> dict[Values, Answer]:
        key = sent, targets, self._names(call)
        run = self._cascades.get(key)
        if run is None:
            run = self._cascades[key] = self._cascade(call, targets, sent)
        return run.answers(values, self)

    def _cascade(self, call: Call, targets: Targets, sent: Task) -> Cascade:
        model = self.model_of(call)
        if targets.proxy == "similarity":
            return SimilarityCascade(call, sent, targets, model)
        if targets.proxy == "embedding":
            small = CachedModel(EmbeddingModel(), MemoryStore())
            return Cascade(call, sent, targets, (small, model))
        _check_levels(call, targets, model)
        return Cascade(call, sent, targets, model.levels)

    def attribute(
        self, model: CachedModel, answers: Mapping[Values, Answer], *, final: bool = True
    ) -> dict[Values, Answer]:
        """Answers of ``model``, which name it where it is not the session's."""
        usual = self._models.get(ModelNames())
        name = None if usual is not None and usual.name == model.name else model.name
        return {v: of_model(name, answer, final=final) for v, answer in answers.items()}

    def policy(self, call: Call) -> OnError:
        """The policy for failed answers to ``call``."""
        return call.on_error or self.on_error

    def stop_at_failures(
        self, call: Call, values: Sequence[Values], answered: Mapping[Values, Answer]
    ) -> None:
        """Raises AnswerError if one of these values has no answer."""
        failed = {v: answered[v] for v in values if answered[v].error is not None}
        if call.aggregate:  # what is too long is read in parts
            failed = {v: a for v, a in failed.items() if not a.too_long}
        if failed:
            raise failure(call, failed, len(values), self.redaction)

    @contextmanager
    def served_by(self, serve: Serve) -> Iterator[None]:
        """Hands the requests of DataFusion's threads to ``serve`` inside the block."""
        before, self.serve = self.serve, serve
        try:
            yield
        finally:
            self.serve = before

    @contextmanager
    def only_known(self) -> Iterator[None]:
        """Asks nothing inside the block: a value without an answer raises UnknownAnswerError."""
        self._only_known = True
        try:
            yield
        finally:
            self._only_known = False

    def results_of(self, call: Call) -> Results:
        """The results of the body of ``call`` in this run so far."""
        return self.results.setdefault(call, Results())

    def values_of(self, call: Call) -> dict[Values, object]:
        """The decoded answer for each tuple of values that ``call`` has met in this run."""
        return self._values.setdefault(call, {})

    def _batch(
        self,
        job: Job,
        sent: Task,
        values: list[Values],
        into: dict[Values, Answer],
        given: dict[Values, Answer],
        *,
        final: bool,
    ) -> None:
        model = job.model
        arrived: dict[int, Answer] = {}

        def note(place: int, answer: Answer) -> None:
            arrived[place] = answer
            self.observer.on_answers(len(arrived))

        start = perf_counter()
        try:
            with allowing(self.ledger.take_request, self.ledger.is_late) as allowance:
                model.answer_each(
                    sent, values, note if self.observer.follows else arrived.__setitem__
                )
        finally:  # what was answered before an error or an interruption counts like the rest
            seconds = perf_counter() - start
            places = sorted(arrived)
            raw = {values[place]: arrived[place] for place in places}
            given.update((v, a) for v, a in raw.items() if a.error is None and not a.spent)
            named = self.attribute(model, raw, final=final)
            answers = [*named.values()]
            answered = Usage.total(answer.usage for answer in answers)
            rest = allowance.rest(answered)
            spent = self.ledger.settle(sent, len(values), answers, seconds, rest)
            into.update(named)
            self.tokens += spent.evaluated_tokens + spent.completion_tokens
            if places:
                self.observer.batch(job, [*named], answers, seconds)
            in_vain = replace(rest, calls=max(0, rest.calls - answered.calls))
            if in_vain != Usage():
                self.observer.in_vain(job, in_vain)


def _queries_left(task: Task) -> dict[str, str]:
    """The queries that give something of a task and were not read yet, by the argument."""
    choice = task.constraint.item or task.constraint
    queries = (choice.query, task.examples_query, task.sample_query)
    named = zip(("options", "examples", "sample"), queries, strict=True)
    return {name: query for name, query in named if query is not None}


def _check_levels(call: Call, targets: Targets, model: CachedModel) -> None:
    """Raise QueryError for targets of a cascade of models where there is one model."""
    if targets.proxy is None and len(model.levels) < 2:
        raise QueryError(
            f"{call.text}: {targets} is promised of a small model before a large one",
            hint="Name two, model => ['smollm2', 'large'] or "
            f"{connect_with('smollm2', 'openai:…')}, or say proxy => 'embedding'.",
        )


def _check_kind(task: Task, model: CachedModel) -> None:
    """Raise QueryError for a question that neither the model nor one behind it answers."""
    reason = model.abilities.unanswerable(task)
    if reason is not None:
        raise QueryError(
            f"{task.ingredient}: {model.name} {reason}",
            hint="Name a model behind it, which is asked the rest: "
            f"{connect_with(model.name, 'openai:MODEL@http://…/v1')}.",
        )
