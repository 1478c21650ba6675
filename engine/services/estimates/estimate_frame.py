"""Estimates a frame by a dry run over its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.budget import Price
from blendfusion.datafusion.error_gate import outward
from blendfusion.language.opaque.execution_path import careful_plan
from blendfusion.language.opaque.nested_stages import NOTHING
from blendfusion.models.services.prompts.prompt import replies_of
from blendfusion.models.wrappers.cascade import targets_in
from blendfusion.planner.explain.expression_text import expression_text
from blendfusion.planner.explain.plan_text import names_of
from blendfusion.planner.ir.nodes import Ask, Block, asks_model
from blendfusion.planner.stages.split import StagedPlan
from blendfusion.run.observe.progress import count_noun
from blendfusion.run.reports.estimate import (
    ASSUMED,
    AT_MOST,
    AT_MOST_LARGE,
    EARLIER,
    EXACT,
    Estimate,
    OperatorEstimate,
)
from blendfusion.services.estimates.dependencies import influences
from blendfusion.services.estimates.loaded_models import KnownModels, known_models
from blendfusion.services.estimates.sampling import distinct_in_all
from blendfusion.services.estimates.simulate import DryRows, DryRun, StageSeen, occurrences
from blendfusion.services.estimates.simulated_model import SimulatedDispatcher, Tally
from blendfusion.services.estimates.token_costs import Meter
from blendfusion.types import ConstraintKind, Task, Usage
from blendfusion.udfs.declare.call import Call

if TYPE_CHECKING:
    from blendfusion.run.engine import Engine
    from blendfusion.run.hooks import BaseFrame


def estimate_frame(frame: BaseFrame) -> Estimate:
    """The estimate of ``frame``: see ``Frame.estimate``."""
    prepared, engine = frame.prepared, frame.engine
    simulated = SimulatedDispatcher(
        lambda names: known_models(lambda: engine.models.of(names, engine.options)),
        targets_in(engine.options),
    )
    weights: dict[str, str] = {}
    for call in prepared.calls:
        if call.ingredient.kind.asks_model:
            weights |= simulated.known_of(call).weights
    if prepared.staged is None:
        plain = tuple(_plain(call, prepared.reason, simulated) for call in prepared.calls)
        return Estimate(plain, weights=weights)
    simulated.ledger = engine.runs.ledger.for_query()
    simulated.embedder = engine.runs.embedder.known_vectors
    simulated.kept = engine.runs.kept
    engine.calls.settle(engine, prepared.calls, simulated)
    rows = DryRows(simulated, engine.tables.workbench_source())
    run = DryRun(
        engine.tables,
        prepared.staged,
        rows,
        engine.options,
        rules_off=engine.plans.rules_off,
        fed=prepared.fed or NOTHING,
    )
    problem: str | None = None
    try:
        run.carry_out()
    except Exception as error:  # any exception of DataFusion for a guess that no model would give
        careful = careful_plan(frame, error)
        if careful is not None:
            frame.prepared = careful
            return estimate_frame(frame)
        problem = str(outward(error, engine.options.redaction)).splitlines()[0][:200]
    report = _Report(prepared.staged, run, simulated, engine)
    price = _price(engine, simulated.known_of(None))
    # A stage that could not be reached has no order.
    orders = {n: counts.order for n, counts in run.counts.items() if counts.order.places}
    operators = tuple(report.operators(problem))
    least = report.least(operators)
    return Estimate(operators, price, least, weights, orders)


def _ends_early(block: Block) -> bool:
    return block.has_limit or block.once or block.until is not None


def _price(engine: Engine, models: KnownModels) -> Price | None:
    """The price of the models: that of the first of a failover chain, or of the large one of a
    cascade."""
    prices = engine.runs.ledger.prices
    return prices.of(models.cache.name) if prices and models.cache is not None else None


class _Report:
    """Converts the observations of a dry run to estimates."""

    def __init__(
        self, staged: StagedPlan, run: DryRun, simulated: SimulatedDispatcher, engine: Engine
    ) -> None:
        self._staged = staged
        self._run = run
        self._guesser = simulated
        self._engine = engine
        self._searched: set[tuple[tuple[str, ...], ConstraintKind]] = set()
        """The kinds of constraints whose forms are found for an earlier operator."""
        self._names: dict[int, list[str]] = {}
        self._below: dict[int, frozenset[Ask]] = {}
        """The calls whose answers decide a stage's output."""
        self._partial: dict[int, str] = {}
        """Stages that saw a sample of their rows, with its description."""

    def operators(self, problem: str | None) -> Iterator[OperatorEstimate]:
        """One estimate per call of a stage; ``problem``: the error that ended the dry run early."""
        for place, stage in enumerate(self._staged.stages, 1):
            block = stage.block
            seen = self._run.seen.get(stage.number)
            stops = seen.stops if seen is not None else _ends_early(block)
            learns = seen.learns if seen is not None else True
            ending = seen.ending if seen is not None else frozenset[Ask]()
            own = influences(block, adaptive=learns, stops=stops)
            read = self._run.stages_below(block.source)
            below = frozenset[Ask]().union(*(self._below[n] for n in read))
            partial = [self._partial[n] for n in read if n in self._partial]
            if seen is not None and seen.partial:
                partial = [seen.partial]
            names = names_of(block.source, self._names)
            for ask, influencing in own.items():
                if not asks_model(ask):
                    continue
                text = expression_text(ask, names)
                if seen is None or (problem is not None and stage.number == max(self._run.seen)):
                    yield replace(_unknown_estimate(text, ask.call.task, problem, place), ask=ask)
                    continue
                if ask.call.ingredient.kind.whole_column:
                    influencing |= {ask}  # its first answers decide about its next questions
                basis = [*partial[:1], *self._guesses(influencing | below | ending, ask)]
                if self._guesser.targets_of(ask.call) is not None:
                    both = self._guesser.requests_per_value(ask.call) > 1
                    basis.append(AT_MOST if both else AT_MOST_LARGE)
                yield self._operator(place, text, ask, seen, ", ".join(basis) or EXACT)
            self._names[stage.number] = names_of(block, self._names)
            self._below[stage.number] = below.union(own)
            if partial:
                self._partial[stage.number] = partial[0]

    def least(self, operators: Sequence[OperatorEstimate]) -> int:
        """The least values of a run. A value that several stages may ask counts once."""
        exact = [op for op in operators if op.exact and op.ask is not None]
        met = {self._guesser.question_of(op.ask.call) for op in exact if op.ask is not None}
        least = sum(op.values or 0 for op in exact)
        known = [seen.bounds for seen in self._run.seen.values() if seen.bounds is not None]
        for bounds in sorted(known, key=lambda b: -b.least):
            if met.isdisjoint(bounds.questions):
                least += bounds.least
                met |= bounds.questions
        return least

    def _guesses(self, influencing: frozenset[Ask], ask: Ask) -> list[str]:
        """The kinds of guesses on which the number of ``ask``'s values depends."""
        guessed = [a.call.task for a in influencing if a.call.task in self._guesser.guesses]
        if ask.call.ingredient.kind.version:
            return ["assumed: one question for each distinct row"]
        if any(task in self._guesser.assumed for task in guessed):
            return [ASSUMED]
        return [EARLIER] if guessed else []

    def _operator(
        self, place: int, text: str, ask: Ask, seen: StageSeen, basis: str
    ) -> OperatorEstimate:
        tally = seen.tallies.get(ask, Tally())
        grown = _growth(tally, seen.scale)
        values, cached = round(tally.values * grown), round(tally.cached * grown)
        models, names = self._guesser.known_of(ask.call), ask.call.models
        meter = Meter(self._engine.runs.speeds, models, names)
        sent = self._guesser.task_to_send(ask.call.task)
        beside = round(tally.beside * grown)
        cost = meter.cost(ask.call.task, tally, values, beside=beside, sample=sent.sample)
        per_value = models.abilities.call_per_value
        usage = Usage(
            values=values,
            cached=cached,
            calls=(values - beside) * sent.consistency if per_value else 0,
            beside=beside,
            prompt_tokens=cost.prompt_tokens,
            evaluated_tokens=cost.evaluated_tokens,
            completion_tokens=cost.completion_tokens,
            seconds=cost.seconds or 0.0,
        )
        return OperatorEstimate(
            stage=place,
            call=text,
            task=ask.call.task,
            rows=round(tally.rows * seen.scale),
            usage=usage,
            seconds=cost.seconds,
            basis=basis,
            tokens_basis=cost.tokens_basis,
            seconds_basis=cost.seconds_basis,
            notes=round(tally.notes * grown),
            ask=ask,
            models=names,
            price=_price(self._engine, models),
            most=values if basis == EXACT else _most(seen, ask),
            form_search=self._form_search(ask, sent) if usage.calls else 0,
            constant_tokens=cost.constant_tokens if usage.calls else 0,
            scored_by=_scored_by(models, sent),
            asker=_asker(models, sent),
        )

    def _form_search(self, ask: Ask, sent: Task) -> int:
        """The requests that find the form of a constraint, at the first operator that needs it."""
        kind = "choice" if replies_of(sent) else sent.constraint.kind
        if (ask.call.models, kind) in self._searched:
            return 0
        self._searched.add((ask.call.models, kind))
        return self._guesser.known_of(ask.call).abilities.form_search(sent)


def _most(seen: StageSeen, ask: Ask) -> int | None:
    return None if seen.bounds is None else seen.bounds.most.get(ask)


def _growth(tally: Tally, scale: float) -> float:
    """Distinct values of all rows, per distinct value of the sample."""
    tables = [t for t in tally.arguments if len(t)]
    if scale <= 1.0 or not tables:
        return 1.0
    counts = occurrences(pa.concat_tables(tables))
    if not counts:
        return 1.0
    rows = sum(counts)
    return distinct_in_all(rows * scale, rows, len(counts), counts.count(1)) / len(counts)


def _plain(call: Call, why: str | None, simulated: SimulatedDispatcher) -> OperatorEstimate:
    models, sent = simulated.known_of(call), simulated.task_to_send(call.task)
    found = _unknown_estimate(call.text, call.task, why)
    return replace(found, scored_by=_scored_by(models, sent), asker=_asker(models, sent))


def _scored_by(models: KnownModels, task: Task) -> str | None:
    """The words by which the replies of a task are scored, and the effect of its sample."""
    words = models.abilities.scored_by(task)
    if not task.sample and task.sample_query is None:
        return words
    effect = "the sample has no effect: the reply counts"
    if models.abilities.takes_sample(task):
        read = f" of {count_noun(len(task.sample), 'text')}" if task.sample else ""
        effect = f"threshold by a sample{read}"
    return f"{words}; {effect}" if words else effect


def _asker(models: KnownModels, task: Task) -> str | None:
    """Which model of a chain is asked, where those before it do not answer such questions."""
    why: list[str] = []
    for model in () if models.cache is None else models.cache.levels:
        reason = model.abilities.unanswerable(task)
        if reason is None:
            return f"asked of {model.name}: {'; '.join(why)}" if why else None
        why.append(f"{model.name} {reason}")
    return f"no model answers it: {'; '.join(why)}" if why else None


def _unknown_estimate(text: str, task: Task, why: str | None, place: int = 0) -> OperatorEstimate:
    basis = f"plain plan: {why}" if place == 0 else why or "not reached"
    return OperatorEstimate(place, text, task, None, None, None, basis, "unknown", "unknown")
