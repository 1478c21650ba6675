"""EXPLAIN: the staged plan as text, with the counts of a run beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from blendfusion.budget import money
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.wrappers.cascade import targets_in
from blendfusion.planner.driver import Rewrite
from blendfusion.planner.explain.plan_text import changed_trees
from blendfusion.planner.ir.nodes import Ask, asks_model
from blendfusion.run.execution.operators import AskLine, StageLines, found_by, stage_lines
from blendfusion.run.execution.pipeline import Counts
from blendfusion.run.execution.predicate_order import PredicateCounts
from blendfusion.run.observe.progress import beside_text, count_noun, readings_text
from blendfusion.run.reports.estimate import Estimate, OperatorEstimate
from blendfusion.types import Usage
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.pairing import Pairing

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.run.reports.trace import Trace


def explain_frame(
    frame: BaseFrame, *, analyze: bool, verbose: bool, estimate: Estimate | None = None
) -> str:
    """EXPLAIN's text: stages in the order of execution, each from its output down to its scan.

    Predicates stand in the order of evaluation: as written, or after a run by rank, the share of
    rows dropped per token, with the underlying counts. Beside the calls stand the expectations of
    ``estimate``; with ``analyze`` the rows, values, tokens and seconds of the frame's latest run.
    ``verbose`` cuts no line, and adds the first effect of each rule.
    """
    prepared = frame.prepared
    trace = frame.trace if analyze else None
    targets = targets_in(frame.engine.options)
    usual = targets or Targets(delta=frame.engine.options.delta)
    beside = _Beside(estimate, trace, usual)
    out: list[str] = []
    if prepared.staged is None:
        out.append(f"Plain plan: {prepared.reason}. Every call sees what DataFusion passes to it.")
        out += [f"  {line}" for line in frame.engine.plans.places_of(None)[0]]
        for call in prepared.calls:
            out.append(f"  ask {call.text} → {call.task.constraint}{beside.of(call, None)}")
            out += beside.model(call, None)
            out += beside.cascade(call)
    else:
        counts, off = frame.last_counts if analyze else {}, frame.engine.plans.rules_off
        orders = {} if estimate is None else estimate.orders
        staged = frame.engine.plans.as_run(prepared.staged)
        lines = stage_lines(staged, counts, full=verbose, off=off, expected=orders)
        places = frame.engine.plans.places_of(staged)
        for stage, place in zip(lines, places, strict=True):
            out.append(f"Stage {stage.place}{' → result' if stage.last else ''}")
            out += [f"  {line}" for line in place]
            out += ["  " + line for line in _stage(stage, beside.at(stage.place))]
    if prepared.unfinished:
        out.append(
            "Unfinished plan: its rules had no time left, so that it may ask more than it needs "
            "(SET blendfusion.planning_ms = …)"
        )
    out += beside.total()
    if trace is None:
        out += _models(frame.engine.models.own_names, targets)
    else:
        out += _usage_by_model(frame.engine.models.own_names, trace)
    out += [] if estimate is None else estimate.weight_lines()
    if verbose and prepared.rewrites:
        out.append("Rules that fired, and what they did first (block: what runs row by row):")
        for rewrite in prepared.rewrites:
            out += ["  " + line for line in _rewrite(rewrite)]
    return "\n".join(out)


def _models(names: Sequence[str], targets: Targets | None) -> list[str]:
    """The session's models in order, if there are several."""
    if len(names) < 2:
        return []
    if targets is not None:
        large, small = names
        return [f"Models: {small} decides what it may, {large} the rest ({targets})"]
    return [f"Models: {', '.join(names)}; each is asked what those before it fail at"]


def _usage_by_model(own: Sequence[str], trace: Trace) -> list[str]:
    """The questions of each of several models; a value counts for every model that received it."""
    used = trace.by_model
    if len(own) < 2:
        own = [name for name in own if name in used]
    names = [*own, *(name for name in used if name not in own)]
    if len(names) < 2:
        return []
    return [f"Asked of {name}: {_usage(used.get(name, Usage()), None)}" for name in names]


class _Beside:
    """The text beside a call: its counts, or else its expectations. ``place``: the number of the
    stage."""

    def __init__(
        self, estimate: Estimate | None, trace: Trace | None, usual: Targets, place: int = 0
    ) -> None:
        self._estimate = estimate
        self._trace = trace
        self._usual = usual
        """The targets of cascades without their own."""
        self._place = place

    def at(self, place: int) -> _Beside:
        return _Beside(self._estimate, self._trace, self._usual, place)

    def of(self, call: Call, ask: Ask | None) -> str:
        expected, task = self._estimate, call.task
        if self._trace is not None:
            values = expected.values_of(task, call.models) if expected is not None else None
            usage = self._trace.usage_of(call)
            if call.ingredient.kind.has_body:
                own_tasks = (t for t in self._trace.by_task if t.ingredient == task.ingredient)
                usage = Usage.total(self._trace.by_task[t] for t in own_tasks)
            unsure = self._trace.withheld_of(call)
            withheld = f", {unsure:,} withheld" if unsure else ""
            wait = self._trace.wait_of(call)
            waited = f"; {wait}" if wait.values else ""
            return f"  [{_usage(usage, values)}{withheld}{waited}]"
        if ask is None:
            return ""
        return "".join(f"  [expected: {op}]" for op in self._operators(ask))

    def _operators(self, ask: Ask) -> list[OperatorEstimate]:
        """The expectations of a call in this stage."""
        expected = () if self._estimate is None else self._estimate.operators
        return [op for op in expected if op.stage == self._place and op.ask == ask]

    def model(self, call: Call, ask: Ask | None) -> list[str]:
        """Which model is asked, if not the first; the words by which a local model scores the
        replies. ``ask`` is None in a plain plan."""
        expected = () if self._estimate is None else self._estimate.operators
        operators = (
            [op for op in expected if op.task == call.task][:1]
            if ask is None
            else self._operators(ask)
        )
        lines = [op.asker for op in operators if op.asker]
        lines += [f"scored by: {op.scored_by}" for op in operators if op.scored_by]
        return [f"    {line}" for line in lines]

    def cascade(self, call: Call) -> list[str]:
        """The outcome of a call's cascade, if it had one; before a run, whether its answers will be
        approximate."""
        likely = call.targets is not None and call.targets.proxy is not None
        word = "approximate" if likely else "cascade"
        if self._trace is None:
            promised = call.targets_with(self._usual)
            if promised is None or not (likely or call.models):
                return []
            if likely:
                return [f"    {word}: {promised}"]
            *small, large = call.models
            decide = "decides what it may" if len(small) == 1 else "decide what they may"
            return [f"    {word}: {', then '.join(small)} {decide}, {large} the rest ({promised})"]
        found = self._trace.cascades.get(call)
        return [] if found is None else [f"    {word}: {found}"]

    def total(self) -> list[str]:
        """The lines at the end; none if nothing is known."""
        expected = self._estimate
        if self._trace is not None:
            known = expected is not None and expected.complete
            values = expected.total.values if expected is not None and known else None
            cost = f", cost {money(self._trace.cost)}" if self._trace.cost else ""
            usage = self._trace.usage
            lines = [f"Total: {_usage(usage, values, readings_text(usage))}{cost}"]
            if self._trace.words_left_out:
                words = count_noun(self._trace.words_left_out, "word")
                lines.append(f"Left out of chunks, as headers, footers and asides: {words}")
            return lines
        return expected.lines() if expected is not None and expected.complete else []


def _rewrite(rewrite: Rewrite) -> list[str]:
    before, after = changed_trees(rewrite.before, rewrite.after)
    head = f"{rewrite.rule} ×{rewrite.times} ({rewrite.seconds * 1e3:.1f} ms)"
    pairs = [("before", line) for line in before], [("after", line) for line in after]
    out = [head]
    for side in pairs:
        for i, (word, line) in enumerate(side):
            out.append(f"  {word if i == 0 else '':<6} {line}")
    return out


def _ask(line: AskLine, counts: Counts | None, beside: _Beside) -> Iterator[str]:
    """A call, with the statistics of its matches, if it chooses some."""
    if not asks_model(line.ask):
        yield f"  embed {line.text}{''.join(f'  [{source}]' for source in found_by(line.ask, counts))}"
        return
    yield f"  ask {line.text}{beside.of(line.ask.call, line.ask)}"
    yield from beside.model(line.ask.call, line.ask)
    yield from beside.cascade(line.ask.call)
    yield from (f"    {source}" for source in found_by(line.ask, counts))
    pairing = line.ask.call.pairing
    if counts is None and pairing is not None and line.ask.domain is not None:
        yield f"    {_unknown_text(pairing)}"


def _stage(stage: StageLines, beside: _Beside) -> list[str]:
    def calls(lines: Sequence[AskLine]) -> list[str]:
        return [text for line in lines for text in _ask(line, stage.counts, beside)]

    counts, out = stage.counts, []
    if counts is not None:
        out.append(
            f"rows in {counts.rows_in:,}, out {counts.rows_out:,}, "
            f"chunks {counts.chunks:,}, {counts.seconds:.2f} s"
        )
    if stage.compute:
        out += [f"compute {stage.compute}", *calls(stage.computing)]
    if stage.limit:
        out.append(stage.limit)
    if stage.order is not None:
        out.append(_ORDER_LEARNED if stage.order.adaptive else _ORDER_WRITTEN)
    elif any(predicate.expected for predicate in stage.predicates):
        out.append(_ORDER_EXPECTED)
    for predicate in stage.predicates:
        rows = ""
        if predicate.seen is not None:
            rows = f"  {_counts_text(predicate.seen, predicate.rank if stage.order else None)}"
        if predicate.expected:
            rows += f"  [at first: {predicate.expected}]"
        out += [f"filter {predicate.place}: {predicate.text}{rows}", *calls(predicate.calls)]
    out.append("from DataFusion:")
    out += ["  " + line for line in stage.source]
    return out


def _unknown_text(pairing: Pairing) -> str:
    """The parts of a join by meaning that only a run determines."""
    if pairing.labelling is not None:
        return "which labels match: sampled pairs say it in a run"
    sampled = f"a sample of {pairing.check:,} values" if pairing.check else "places of matches"
    return f"recall of {pairing.k} candidates: not known yet; {sampled} will tell in a run"


_ORDER_LEARNED = "tried from the highest rank on (rank: share of rows dropped, per token):"
_ORDER_EXPECTED = "tried at first from the most rows dropped per cost on, as known before the run:"
_ORDER_WRITTEN = "tried as written (rank: share of rows dropped, per token):"


def _counts_text(seen: PredicateCounts, rank: float | None) -> str:
    if not seen.rows_in:
        return "[no row came here]"
    text = f"rows {seen.rows_in:,} → {seen.rows_out:,}"
    if rank is None:
        return f"[{text}]"
    why = f"{1 - seen.pass_rate:.0%} dropped, {seen.cost_text}"
    known = seen.is_free or math.isinf(rank)
    return f"[{text}: {why}, {'all from the cache' if known else f'rank {rank:.4f}'}]"


def _usage(usage: Usage, expected: int | None, readings: str = "") -> str:
    parts = [f"{count_noun(usage.values, 'value')} asked"]
    if expected is not None:
        parts[0] += f" ({expected:,} expected)"
    parts[0] += readings or beside_text(usage)
    if usage.cached:
        parts.append(f"{usage.cached:,} cached")
    if usage.failed:
        parts.append(f"{usage.failed:,} failed")
    parts.append(f"{usage.evaluated_tokens:,} of {usage.prompt_tokens:,} prompt tokens evaluated")
    parts.append(count_noun(usage.completion_tokens, "completion token"))
    parts.append(f"{usage.seconds:.2f} s")
    return ", ".join(parts)
