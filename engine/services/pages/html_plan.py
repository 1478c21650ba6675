"""The staged plan as HTML tables: one row per operator, with the counts of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from blendfusion.planner.rules import rules_off
from blendfusion.run.execution.operators import (
    AskLine,
    Predicate,
    StageLines,
    found_by,
    stage_lines,
)
from blendfusion.run.observe.progress import count_noun
from blendfusion.run.reports.html import Html, join_html, tag
from blendfusion.run.reports.run_record import Batch, Operator, Run
from blendfusion.types import Usage

if TYPE_CHECKING:
    from blendfusion.udfs.declare.call import Call

_HEADS = ("Operator", "Rows in", "Rows out", "Values", "Cached", "Failed", "Prompt tokens")
_MORE_HEADS = ("Answer tokens", "Seconds")
_STAGES = 40
_LINES = 120
"""Maximum lines of one DataFusion plan."""
_OTHERS = 40
"""Maximum questions listed besides those in the plan."""
_BINS = 240
"""Resolution of a timeline."""


def plan_section(run: Run, remarks: Callable[[Call], list[str]]) -> Html:
    """The plan of a run, stage by stage; without a plan, its questions."""
    rows = _Rows(run, remarks)
    parts: list[Html] = []
    plan = run.plan
    if plan is not None and plan.staged is not None:
        stages = list(stage_lines(plan.staged, run.counts, off=rules_off(run.options)))
        parts += [rows.stage(stage) for stage in stages[:_STAGES]]
        if len(stages) > _STAGES:
            parts.append(tag("p", f"And {len(stages) - _STAGES} more stages.", class_="mute"))
    elif plan is not None and plan.calls:
        why = f"Not staged: {plan.reason}. DataFusion evaluates the calls itself."
        parts.append(tag("p", why))
    others = rows.others()
    if others:
        caption = "Asked besides: notes on long contexts, options from subqueries"
        if plan is None or plan.staged is None:
            caption = "Calls"
        parts.append(_table(tag("b", caption), others[:_OTHERS]))
    return join_html(parts or [tag("p", "Nothing was asked.", class_="mute")])


class _Rows:
    """Rows of the tables; records the questions that they contain."""

    def __init__(self, run: Run, remarks: Callable[[Call], list[str]]) -> None:
        self._run, self._remarks = run, remarks
        self._left = dict(run.by_operator)
        self._longest = max((u.seconds for u in run.by_operator.values()), default=0.0)

    def stage(self, stage: StageLines) -> Html:
        name = f"Stage {stage.place}{' → result' if stage.last else ''}"
        caption = [tag("b", name), Html(f" · {_counts_text(stage)}")]
        return _table(join_html(caption), list(self._operators(stage)))

    def _operators(self, stage: StageLines) -> Iterator[Html]:
        counts = stage.counts
        read = None if counts is None else counts.rows_in
        given = None if counts is None else counts.rows_out
        if stage.compute:
            yield _row("compute", stage.compute, given, given)
            yield from self._asks(stage.computing, stage)
        if stage.limit:
            passed = None if counts is None else counts.passed
            yield _row("limit", stage.limit, passed, given)
        for tried, predicate in enumerate(stage.predicates, 1):
            seen = predicate.seen
            rows = (None, None) if seen is None else (seen.rows_in, seen.rows_out)
            yield _row("filter", predicate.text, *rows, note=_note(stage, predicate, tried))
            yield from self._asks(predicate.calls, stage)
        yield _row("from DataFusion", "", None, read)
        lines = [*stage.source[:_LINES]]
        if len(stage.source) > _LINES:
            lines.append(f"… {len(stage.source) - _LINES:,} more lines")
        source = tag("pre", "\n".join(lines), class_="plan", tabindex="0")
        yield tag("tr", tag("td", source, colspan=str(len(_HEADS) + len(_MORE_HEADS))))

    def _asks(self, lines: Sequence[AskLine], stage: StageLines) -> Iterator[Html]:
        for line in lines:
            call = line.ask.call
            operator = stage.place, call.task, call.models
            usage = self._run.by_operator.get(operator, Usage())
            self._left.pop(operator, None)
            notes = [*self._remarks(call), *found_by(line.ask, stage.counts)]
            yield self._ask_lines("ask", line.text, usage, operator, notes)

    def others(self) -> list[Html]:
        """The questions that belong to no stage."""
        return [
            self._ask_lines(
                "ask", f"{task.ingredient}: {task.question}", usage, (place, task, names), []
            )
            for (place, task, names), usage in self._left.items()
        ]

    def _ask_lines(
        self, kind: str, text: str, usage: Usage, operator: Operator, notes: Sequence[str]
    ) -> Html:
        own = [b for b in self._run.batches if b.operator == operator]
        seconds = [f"{usage.seconds:.2f}"]
        if self._longest and usage.seconds:
            share = usage.seconds / self._longest
            seconds.append(tag("span", class_="meter", style=f"width:{share:.0%}"))
        numbers = [
            *("", ""),
            f"{usage.values:,}",
            f"{usage.cached:,}",
            tag("span", f"{usage.failed:,}", class_="bad") if usage.failed else "0",
            f"{usage.prompt_tokens:,}",
            f"{usage.completion_tokens:,}",
            join_html(seconds),
        ]
        below = [tag("span", note, class_="note") for note in notes]
        lane = _lane(own, self._run)
        content = tag("span", tag("span", kind, class_="kind"), " ", text, *below, *lane)
        return _cells(tag("span", content, class_="in"), numbers)


def _counts_text(stage: StageLines) -> str:
    counts = stage.counts
    if counts is None:
        return "did not run"
    if not counts.chunks:
        return "no rows"
    chunks = count_noun(counts.chunks, "chunk")
    rows = f"{counts.rows_in:,} rows in, {counts.rows_out:,} out"
    return f"{rows}, {chunks}, {counts.seconds:.2f} s"


def _note(stage: StageLines, predicate: Predicate, tried: int) -> str:
    """The reason for a predicate's position."""
    seen, order = predicate.seen, stage.order
    if seen is None or order is None:
        return ""
    facts = [f"written {_ordinal(predicate.place)}, tried {_ordinal(tried)}"]
    if not order.adaptive:
        facts.append("tried as written")
    if not seen.rows_in:
        facts.append("no row came here")
    else:
        facts.append(f"{1 - seen.pass_rate:.0%} dropped")
        facts.append(seen.cost_text)
        known = seen.is_free or predicate.rank is None or math.isinf(predicate.rank)
        facts.append("all from the cache" if known else f"rank {predicate.rank:.4f}")
        facts += [f"at first: {predicate.expected}"] if predicate.expected else []
    return " · ".join(facts)


def _ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ends.get(number % 10, 'th')}"


def _lane(batches: Sequence[Batch], run: Run) -> list[Html]:
    """The timeline of one operator's batches over the whole run; nothing for a single batch."""
    whole = run.seconds
    if len(batches) < 2 or whole <= 0:
        return []
    busy = [False] * _BINS
    for batch in batches:
        first = max(0, int(batch.start / whole * _BINS))
        last = min(_BINS - 1, int(batch.end / whole * _BINS))
        busy[first : last + 1] = [True] * max(0, last + 1 - first)
    rects: list[Html] = []
    start: int | None = None
    for i, on in enumerate([*busy, False]):
        if on and start is None:
            start = i
        elif not on and start is not None:
            rects.append(tag("rect", x=str(start), y="0", width=str(i - start), height="12"))
            start = None
    label = f"{len(batches):,} batches, from {batches[0].start:.2f} s to {batches[-1].end:.2f} s"
    svg = tag(
        "svg",
        tag("title", label),
        *rects,
        class_="lanes",
        viewBox=f"0 0 {_BINS} 12",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )
    return [svg]


def _row(
    kind: str, title: str, rows_in: int | None, rows_out: int | None, *, note: str = ""
) -> Html:
    text = [tag("span", kind, class_="kind"), " ", title]
    if note:
        text.append(tag("span", note, class_="note"))
    rows = ["" if n is None else f"{n:,}" for n in (rows_in, rows_out)]
    return _cells(join_html(text), [*rows, *[""] * (len(_HEADS) + len(_MORE_HEADS) - 3)])


def _cells(first: Html, numbers: Iterable[str]) -> Html:
    return tag("tr", tag("th", first, scope="row"), *(tag("td", n, class_="n") for n in numbers))


def _table(caption: Html, rows: Sequence[Html]) -> Html:
    first, *others = (*_HEADS, *_MORE_HEADS)
    heads = [
        tag("th", first, scope="col"),
        *(tag("th", n, scope="col", class_="n") for n in others),
    ]
    made = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *rows),
        class_="plan-table",
    )
    return tag(
        "div",
        made,
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="Operators of the plan",
    )
