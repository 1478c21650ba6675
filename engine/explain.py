"""The staged plan as text, with what was counted beside it after a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.pipeline import Counts
from blendfusion.planner.plan import Ask, asks
from blendfusion.planner.show import limit_text, lines, names_of, shown
from blendfusion.planner.stages import Stage
from blendfusion.predicates import Seen
from blendfusion.progress import counted
from blendfusion.types import Usage

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.trace import Trace


def explained(frame: Frame, *, analyze: bool, verbose: bool) -> str:
    """EXPLAIN's text: stages in the order in which they run, each from its output down to its scan.

    Predicates stand in the order in which they are tried: as written, or after a run as learned, by
    rank, the share of rows dropped per token. With ``analyze`` the rows, values, tokens
    and seconds of the frame's latest run stand beside the operators.
    """
    prepared = frame.prepared
    trace = frame.trace if analyze else None
    out: list[str] = []
    if prepared.staged is None:
        out.append(f"Plain plan: {prepared.reason}. Every call sees what DataFusion passes to it.")
        out += [
            f"  ask {call.text} → {call.task.constraint}{_spent(call.task, trace)}"
            for call in prepared.calls
        ]
    else:
        counts = frame.last_counts if analyze else {}
        names: dict[int, list[str]] = {}
        for i, stage in enumerate(prepared.staged.stages):
            last = stage is prepared.staged.last
            out.append(f"Stage {i + 1}{' → result' if last else ''}")
            out += ["  " + line for line in _stage(stage, names, counts.get(stage.number), trace)]
            names[stage.number] = names_of(stage.block, names)
    if trace is not None:
        out.append(f"Total: {_usage(trace.usage)}")
    if verbose and prepared.rewrites:
        out.append("Rules that fired:")
        out += [f"  {r.rule} ×{r.times} ({r.seconds * 1e3:.1f} ms)" for r in prepared.rewrites]
    return "\n".join(out)


def _stage(
    stage: Stage, names: dict[int, list[str]], counts: Counts | None, trace: Trace | None
) -> list[str]:
    block = stage.block
    below = names_of(block.source, names)
    out = []
    asked: list[Ask] = []

    def calls(of: list[Ask]) -> list[str]:
        new = [a for a in of if a not in asked]
        asked.extend(new)
        return [
            f"  ask {shown(a, below)} → {a.call.task.constraint}{_spent(a.call.task, trace)}"
            for a in new
        ]

    order = counts.order if counts is not None and counts.order.seen else None
    predicates = []
    for i in order.places if order is not None else range(len(block.where)):
        term = block.where[i]
        rows = "" if order is None else f"  {_seen(order.seen[i], ranked=len(block.where) > 1)}"
        predicates.append(f"filter {i + 1}: {shown(term, below)}{rows}")
        predicates += calls(asks(term))
    computed = [e for e in block.select if asks(e)]
    selected = []
    if computed:
        selected.append(f"compute {', '.join(shown(e, below) for e in computed)}")
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
    out += ["  " + line for line in lines(block.source, names)]
    return out


def _seen(seen: Seen, *, ranked: bool) -> str:
    text = f"rows {seen.rows_in:,} → {seen.rows_out:,}"
    if ranked:
        text += f", {seen.tokens_per_row:.1f} tokens a row, rank {seen.rank:.4f}"
    return f"[{text}]"


def _spent(task: object, trace: Trace | None) -> str:
    if trace is None:
        return ""
    usage = trace.by_task.get(task)  # type: ignore[call-overload]
    return f"  [{_usage(usage or Usage())}]"


def _usage(usage: Usage) -> str:
    parts = [f"{counted(usage.values, 'value')} asked"]
    if usage.cached:
        parts.append(f"{usage.cached:,} cached")
    if usage.failed:
        parts.append(f"{usage.failed:,} failed")
    parts.append(f"{usage.evaluated_tokens:,} of {usage.prompt_tokens:,} prompt tokens evaluated")
    parts.append(counted(usage.completion_tokens, "completion token"))
    parts.append(f"{usage.seconds:.2f} s")
    return ", ".join(parts)
