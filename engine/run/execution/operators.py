"""The staged plan as data: stages and their operators, with the counts of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blendfusion.planner.explain.expression_text import expression_text
from blendfusion.planner.explain.plan_text import (
    ONE_OF_EQUAL,
    UNTIL_DECIDED,
    limit_text,
    lines,
    names_of,
)
from blendfusion.planner.explain.truncate import cut, list_items
from blendfusion.planner.ir.nodes import Ask, asks
from blendfusion.planner.run_switches import FEW_VALUES_FIRST, LIMITED_STAGES
from blendfusion.planner.stages.interleave import LimitedStages, limited_stages
from blendfusion.planner.stages.split import Stage, StagedPlan
from blendfusion.run.execution.pair_order import asks_over_pairs
from blendfusion.run.execution.pipeline import Counts
from blendfusion.run.execution.predicate_order import Order, PredicateCounts


@dataclass(frozen=True, slots=True)
class AskLine:
    """One call of a stage. ``text``: its SQL and constraint."""

    ask: Ask
    text: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """One predicate of a stage with the calls that it introduces."""

    place: int
    """Its position in the written order, from 1."""
    text: str
    calls: tuple[AskLine, ...]
    seen: PredicateCounts | None
    """None before a run."""
    rank: float | None = None
    """By which its order was chosen in a run."""
    expected: str = ""
    """The expectations before its first row, if they changed the order."""


@dataclass(frozen=True, slots=True)
class StageLines:
    """One stage, from its output down to its source. Each call stands at its first use."""

    place: int
    """The position in the order of execution, from 1."""
    last: bool
    counts: Counts | None
    """None before a run."""
    compute: str
    """The columns with calls; '' without any."""
    computing: tuple[AskLine, ...]
    limit: str
    """The limit that ends the stage early; '' without one."""
    predicates: tuple[Predicate, ...]
    """The predicates in the order of evaluation."""
    order: Order | None
    """The order of several predicates, after a run."""
    source: tuple[str, ...]
    """DataFusion's plan, one relation per line, indented."""

    @property
    def calls(self) -> Iterator[AskLine]:
        for predicate in self.predicates:
            yield from predicate.calls
        yield from self.computing


def found_by(ask: Ask, counts: Counts | None) -> list[str]:
    """The sources of a call's results besides questions: vectors, and matches."""
    if counts is None:
        return []
    vectors = counts.vectors.get(ask.call)
    lines = [] if vectors is None else [f"vectors: {vectors}"]
    return [*lines, *(counts.matched[ask].summary if ask in counts.matched else [])]


def stage_lines(
    plan: StagedPlan,
    counts: Mapping[int, Counts],
    *,
    full: bool = False,
    off: Sequence[str] = (),
    expected: Mapping[int, Order] | None = None,
) -> Iterator[StageLines]:
    """The stages of ``plan`` in the order of execution, with their counts, if any; texts are cut
    unless ``full``. ``off``: the rules that are switched off. ``expected``: the orders of
    predicates with which stages would start."""
    names: dict[int, list[str]] = {}
    limited = {} if LIMITED_STAGES in off else limited_stages(plan)
    for place, stage in enumerate(plan.stages, 1):
        last, seen = stage is plan.last, counts.get(stage.number)
        limit = _limit(stage, limited.get(stage.number), in_order=FEW_VALUES_FIRST not in off)
        if seen is not None and (stage.block.until is not None or seen.spared):
            limit += f": {seen.spared:,} of {seen.rows_in:,} rows spared"
        if stage.number in plan.operators:
            limit = str(plan.operators[stage.number])
        first = (expected or {}).get(stage.number)
        yield _stage(stage, place, last, names, seen, limit, first, full=full)
        names[stage.number] = names_of(stage.block, names)


def _stage(
    stage: Stage,
    place: int,
    last: bool,
    names: Mapping[int, Sequence[str]],
    counts: Counts | None,
    limit: str,
    expected: Order | None,
    *,
    full: bool,
) -> StageLines:
    block = stage.block
    below = names_of(block.source, names)
    known: set[Ask] = set()

    def new(found: Iterable[Ask]) -> tuple[AskLine, ...]:
        calls = [a for a in dict.fromkeys(found) if a not in known]
        known.update(calls)
        return tuple(AskLine(a, _ask_text(a, below, full)) for a in calls)

    order = counts.order if counts is not None and counts.order.seen else None
    first = order if order is not None else expected
    changed = first is not None and first.first != sorted(first.first)
    places = range(len(block.where)) if first is None else first.first
    predicates = []
    for i in places if order is None else order.places:
        term = block.where[i]
        seen = None if order is None else order.seen[i]
        text = cut(expression_text(term, below), full)
        why = first.priors[i].why if changed and first is not None else ""
        rank = None if order is None else order.rank(i)
        predicates.append(Predicate(i + 1, text, new(asks(term)), seen, rank, why))
    computed = [e for e in block.select if asks(e)]
    return StageLines(
        place=place,
        last=last,
        counts=counts,
        compute=list_items([expression_text(e, below) for e in computed], full) if computed else "",
        computing=new(a for e in computed for a in asks(e)),
        limit=limit,
        predicates=tuple(predicates),
        order=order if len(block.where) > 1 else None,
        source=tuple(lines(block.source, names, full=full)),
    )


def _limit(stage: Stage, limited: LimitedStages | None, *, in_order: bool) -> str:
    """The limit that ends a stage early; '' without one."""
    if limited is not None:
        others = [number for number in limited.stages if number != stage.number]
        turns = f"in turn with {_stages(others)} " if others else ""
        return f"{turns}until the limit of {_stages([limited.above])} is reached (stops early)"
    if stage.block.until is not None:
        return f"{UNTIL_DECIDED} (stops early)"
    if stage.block.once:
        several = f"{limit_text(stage.block)}; " if stage.block.has_limit else ""
        return f"{several}{ONE_OF_EQUAL} (stops early)"
    if not limit_text(stage.block):
        return ""
    pairs = "; pairs of few values first" if in_order and asks_over_pairs(stage.block) else ""
    return f"{limit_text(stage.block)} (stops early{pairs})"


def _stages(numbers: Sequence[int]) -> str:
    """Stages with EXPLAIN's numbers, from 1."""
    return f"stage{'s' if len(numbers) > 1 else ''} {', '.join(str(n + 1) for n in numbers)}"


def _ask_text(ask: Ask, names: Sequence[str], full: bool) -> str:
    return f"{cut(expression_text(ask, names), full)} → {cut(str(ask.call.task.constraint), full)}"
