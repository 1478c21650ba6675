"""The staged plan as text, with what was counted beside it after a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blendfusion.estimate import Estimate
from blendfusion.pipeline import Counts
from blendfusion.planner.driver import Rewrite
from blendfusion.planner.one_line import cut, listed
from blendfusion.planner.plan import Ask, asks
from blendfusion.planner.show import changed, limit_text, lines, names_of
from blendfusion.planner.sql_text import shown
from blendfusion.planner.stages import Stage
from blendfusion.predicates import Seen
from blendfusion.progress import counted
from blendfusion.types import Task, Usage

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.trace import Trace


def explained(
    frame: Frame, *, analyze: bool, verbose: bool, estimate: Estimate | None = None
) -> str:
    """EXPLAIN's text: stages in the order in which they run, each from its output down to its scan.

    Predicates stand in the order in which they are tried: as written, or after a run as learned, by
    rank, the share of rows dropped per token, with what it follows from. Beside the calls stands what ``estimate`` expects;
    with ``analyze`` the rows, values, tokens and seconds of the frame's latest run. ``verbose``
    cuts no line, and adds what each rule did where it fired first.
    """
    prepared = frame.prepared
    trace = frame.trace if analyze else None
    beside = _Beside(estimate, trace)
    out: list[str] = []
    if prepared.staged is None:
        out.append(f"Plain plan: {prepared.reason}. Every call sees what DataFusion passes to it.")
        out += [
            f"  ask {call.text} → {call.task.constraint}{beside.of(call.task, None)}"
            for call in prepared.calls
        ]
    else:
        counts = frame.last_counts if analyze else {}
        names: dict[int, list[str]] = {}
        for i, stage in enumerate(prepared.staged.stages):
            last = stage is prepared.staged.last
            out.append(f"Stage {i + 1}{' → result' if last else ''}")
            out += [
                "  " + line
                for line in _stage(
                    stage, names, counts.get(stage.number), beside.at(i + 1), full=verbose
                )
            ]
            names[stage.number] = names_of(stage.block, names)
    out += beside.total()
    if verbose and prepared.rewrites:
        out.append("Rules that fired, and what they did first (block: what runs row by row):")
        for rewrite in prepared.rewrites:
            out += ["  " + line for line in _rewrite(rewrite)]
    return "\n".join(out)


class _Beside:
    """What stands beside a call: what was counted, or else expected. ``place``: of the stage."""

    def __init__(self, estimate: Estimate | None, trace: Trace | None, place: int = 0) -> None:
        self._estimate = estimate
        self._trace = trace
        self._place = place

    def at(self, place: int) -> _Beside:
        return _Beside(self._estimate, self._trace, place)

    def of(self, task: Task, ask: Ask | None) -> str:
        expected = self._estimate
        if self._trace is not None:
            values = expected.values_of(task) if expected is not None else None
            usage = self._trace.by_task.get(task, Usage())
            return f"  [{_usage(usage, values)}]"
        if expected is None or ask is None:
            return ""
        own = [op for op in expected.operators if op.stage == self._place and op.ask == ask]
        return "".join(f"  [expected: {op}]" for op in own)

    def total(self) -> list[str]:
        """The lines at the end; none where nothing is known."""
        expected = self._estimate
        if self._trace is not None:
            known = expected is not None and expected.complete
            values = expected.total.values if expected is not None and known else None
            return [f"Total: {_usage(self._trace.usage, values)}"]
        return expected.lines() if expected is not None and expected.complete else []


def _rewrite(rewrite: Rewrite) -> list[str]:
    before, after = changed(rewrite.before, rewrite.after)
    head = f"{rewrite.rule} ×{rewrite.times} ({rewrite.seconds * 1e3:.1f} ms)"
    pairs = [("before", line) for line in before], [("after", line) for line in after]
    out = [head]
    for side in pairs:
        for i, (word, line) in enumerate(side):
            out.append(f"  {word if i == 0 else '':<6} {line}")
    return out


def _stage(
    stage: Stage,
    names: dict[int, list[str]],
    counts: Counts | None,
    beside: _Beside,
    *,
    full: bool,
) -> list[str]:
    block = stage.block
    below = names_of(block.source, names)
    out = []
    asked: list[Ask] = []

    def calls(of: list[Ask]) -> list[str]:
        new = [a for a in dict.fromkeys(of) if a not in asked]
        asked.extend(new)
        return [f"  ask {_asked(a, below, full)}{beside.of(a.call.task, a)}" for a in new]

    order = counts.order if counts is not None and counts.order.seen else None
    ranked = len(block.where) > 1
    predicates = []
    if order is not None and ranked:
        predicates.append(_ORDER_LEARNED if order.adaptive else _ORDER_WRITTEN)
    for i in order.places if order is not None else range(len(block.where)):
        term = block.where[i]
        rows = "" if order is None else f"  {_seen(order.seen[i], ranked=ranked)}"
        predicates.append(f"filter {i + 1}: {cut(shown(term, below), full)}{rows}")
        predicates += calls(asks(term))
    computed = [e for e in block.select if asks(e)]
    selected = []
    if computed:
        selected.append(f"compute {listed([shown(e, below) for e in computed], full)}")
        selected += calls([a for e in computed for a in asks(e)])
    if counts is not None:
        out.append(
            f"rows in {counts.rows_in:,}, out {counts.rows_out:,}, "
            f"chunks {counts.chunks:,}, {counts.seconds:.2f} s"
        )
    out += selected
    if block.limited:
        out.append(f"{limit_text(block)} (stops early)")
    out += predicates
    out.append("from DataFusion:")
    out += ["  " + line for line in lines(block.source, names, full=full)]
    return out


def _asked(ask: Ask, names: Sequence[str], full: bool) -> str:
    return f"{cut(shown(ask, names), full)} → {cut(str(ask.call.task.constraint), full)}"


_ORDER_LEARNED = "tried from the highest rank on (rank: share of rows dropped, per token):"
_ORDER_WRITTEN = "tried as written (rank: share of rows dropped, per token):"


def _seen(seen: Seen, *, ranked: bool) -> str:
    if not seen.rows_in:
        return "[no row came here]"
    text = f"rows {seen.rows_in:,} → {seen.rows_out:,}"
    if not ranked:
        return f"[{text}]"
    why = f"{1 - seen.pass_rate:.0%} dropped, {seen.tokens_per_row:.1f} tokens a row"
    rank = f"rank {seen.rank:.4f}" if math.isfinite(seen.rank) else "all from the cache"
    return f"[{text}: {why}, {rank}]"


def _usage(usage: Usage, expected: int | None) -> str:
    parts = [f"{counted(usage.values, 'value')} asked"]
    if expected is not None:
        parts[0] += f" ({expected:,} expected)"
    if usage.cached:
        parts.append(f"{usage.cached:,} cached")
    if usage.failed:
        parts.append(f"{usage.failed:,} failed")
    parts.append(f"{usage.evaluated_tokens:,} of {usage.prompt_tokens:,} prompt tokens evaluated")
    parts.append(counted(usage.completion_tokens, "completion token"))
    parts.append(f"{usage.seconds:.2f} s")
    return ", ".join(parts)
