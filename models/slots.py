"""Drives many rows through one context: shared beginnings computed once, free slots refilled.

A row is what follows the shared prefix: the tokens of one tuple of values. After a row's last
token its logits go to ``step``, which appends tokens or ends the row. The rows of a batch may
stand in any order; those that begin alike should be neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blendfusion.models.llama_context import MICRO_BATCH, SEQUENCES, Batch, LlamaContext, Logits

Step = Callable[[int, Logits], Sequence[int]]
"""Given a row's index and the logits after its last token: the tokens to append; none ends it.
The logits are a view into llama.cpp's memory, valid during the call."""


@dataclass(slots=True)
class _Slot:
    row: int
    sequence: int
    position: int
    pending: list[int]


@dataclass(slots=True)
class Spent:
    """What a run cost: decode calls and tokens that were really computed."""

    calls: int = 0
    tokens: int = 0


def run(
    context: LlamaContext,
    start: int,
    rows: Sequence[Sequence[int]],
    step: Step,
    *,
    reserve: int,
    spent: Spent,
    slots: int = SEQUENCES - 1,
    budget: int = MICRO_BATCH,
) -> None:
    """Drive all rows to their end behind the prefix that every sequence holds.

    ``start`` is the prefix's length, ``reserve`` the most tokens that ``step`` will append to one
    row: rows are admitted only while all admitted ones fit the key-value store. The caller makes
    sure that each row fits alone. ``spent`` grows with each call, before the steps that come of it.
    Leaves nothing but the prefix in the context, also on errors.
    """
    free = list(range(slots, 0, -1))
    live: list[_Slot] = []
    waiting = list(range(len(rows)))[::-1]
    budget = min(budget, context.n_batch)
    cells = context.n_ctx - start
    try:
        while waiting or live:
            batch = Batch()
            ends: list[tuple[_Slot, int]] = []
            for slot in live:
                _place(batch, slot, budget, ends)
            before: _Placed | None = None
            while waiting and free and len(batch) < budget:
                row = rows[waiting[-1]]
                need = len(row) + reserve
                if live and (need > cells or len(batch) + len(row) > budget):
                    break
                cells -= need
                slot = _Slot(waiting.pop(), free.pop(), start, list(row))
                live.append(slot)
                before = _place(batch, slot, budget, ends, before)
            logits = context.decode(batch)
            spent.calls += 1
            spent.tokens += len(batch)
            outputs = batch.outputs()
            for slot, place in ends:
                slot.pending = list(step(slot.row, logits[outputs[place]]))
                if not slot.pending:
                    context.trim(start, slot.sequence)
                    live.remove(slot)
                    free.append(slot.sequence)
                    cells += len(rows[slot.row]) + reserve
    finally:
        context.trim(start)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where the tokens of a row that is new in this batch stand."""

    tokens: list[int]
    places: list[int]


def _place(
    batch: Batch,
    slot: _Slot,
    budget: int,
    ends: list[tuple[_Slot, int]],
    before: _Placed | None = None,
) -> _Placed | None:
    """Put what fits of a slot's pending tokens into the batch; note where it ends, if it does.

    What the row shares with the row placed ``before`` it is not computed again.
    """
    if not slot.pending or len(batch) >= budget:
        return None
    shared = _shared(before.tokens, slot.pending) if before else 0
    places = before.places[:shared] if before else []
    for place in places:
        batch.share(place, slot.sequence)
    taken = slot.pending[: shared + budget - len(batch)]
    for offset in range(shared, len(taken)):
        places.append(batch.add(taken[offset], slot.position + offset, slot.sequence))
    slot.position += len(taken)
    slot.pending = slot.pending[len(taken) :]
    if slot.pending:
        return None
    batch.want(places[-1])
    ends.append((slot, places[-1]))
    return _Placed(taken, places)


def _shared(left: list[int], right: list[int]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count
