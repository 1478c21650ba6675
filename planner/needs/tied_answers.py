"""Answers that order rows, only where they decide between rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeAlias

from blendfusion.planner.ir.aggregates import Aggregation, aggregate, aggregation
from blendfusion.planner.ir.builders import case, conjunction, function, integer_literal, project
from blendfusion.planner.ir.lineage import may_be_real
from blendfusion.planner.ir.nodes import (
    Block,
    Direction,
    Expr,
    Field,
    Plan,
    Rel,
    Take,
    all_fields,
    asks,
    asks_model,
    block_below,
    fields,
    inline,
    is_volatile,
    needs_model,
    substitute,
    windows,
)
from blendfusion.planner.ir.windows import window
from blendfusion.planner.needs.plans import plain, with_takes


@dataclass(frozen=True, slots=True)
class Places:
    """An order of rows, perhaps of each partition by itself, and the places in it that are wanted:
    those behind ``offset``, down to ``end``."""

    directions: Sequence[Direction]
    partitions: tuple[Expr, ...] = ()
    offset: int = 0
    end: int | None = None
    by: str = "rank"
    """The window that counts the places down to ``end``: rank or dense_rank."""


Order: TypeAlias = tuple[tuple[Expr, ...], Sequence[Expr], Places]
"""(the keys by which rows are ordered, what is read of them beside, the places that are wanted)"""


def spares_answers(keys: Sequence[Expr]) -> bool:
    """Whether some rows may do without an answer by which they are ordered."""
    asking = dict.fromkeys(key for key in keys if needs_model(key))
    if not asking or (len(asking) == 1 and needs_model(keys[0])):
        return False
    return all(ask.domain is None and asks_model(ask) for key in asking for ask in asks(key))


def with_answers(
    rows: Plan, keys: Sequence[Expr], places: Places
) -> tuple[Plan, dict[Expr, Expr], dict[Expr, Expr]]:
    """(``rows`` with further columns, those of the answers by which ``keys`` order them, what these
    answers are on every row). An answer is NULL where the order does not depend on it."""
    known: dict[Expr, Expr] = {}
    answers: dict[Expr, Expr] = {}
    for n, key in enumerate(keys):
        if not needs_model(key) or key in known:
            continue
        wanted = substitute(key, known.get)
        before = tuple(substitute(k, known.get) for k in keys[:n])
        rows, matters = _mark_ties(rows, before, wanted, places)
        known[key] = Field(rows.width)
        answers[key] = known[key] if matters is None else case([(matters, known[key])], key)
        wanted = wanted if matters is None else case([(matters, wanted)], None)
        rows = Block(rows, (), (*all_fields(rows.width), wanted))
    return rows, known, answers


def _mark_ties(
    rows: Plan, before: tuple[Expr, ...], key: Expr, places: Places
) -> tuple[Plan, Expr | None]:
    """(``rows`` with a further column, the column: whether the order by ``key`` of the rows that
    are equal in the first keys, ``before``, matters); the rows alone if there are none."""
    if not before:
        return rows, None
    width = rows.width
    order = places.partitions, before, places.directions[: len(before)]
    start, last, place = (
        window("rank", *order),
        window("count", *order, (integer_literal(1),)),
        window(places.by, *order),
    )
    fewer, more = start, last
    read = tuple(map(Field, sorted(fields(key))))
    if not any(may_be_real(e, rows) for e in (*before, *read)):
        # Rows that are equal in all that the key reads are equal in it, whatever the answer is.
        equal = dict.fromkeys((*places.partitions, *before))
        fewer, more = (
            window("count", [*by], (), (), (integer_literal(1),))
            for by in (equal | dict.fromkeys(read), equal)
        )
    matters: list[Expr] = [function("lt", (fewer, more))]
    if places.end is not None:
        matters.append(function("lte", (place, integer_literal(places.end))))
    if places.offset:
        matters.append(function("gt", (last, integer_literal(places.offset))))
    windowed = [*dict.fromkeys(w for e in matters for w in windows(e))]
    numbered = project(rows, (*all_fields(width), *windowed))
    place_of = {w: Field(width + i) for i, w in enumerate(windowed)}
    marked = substitute(conjunction(tuple(matters)), place_of.get)
    return project(numbered, (*all_fields(width), marked)), Field(width)


def candidates(block: Block, keys: Sequence[Expr], places: Places) -> Plan:
    """The rows of a block, without those that the keys before the first answer leave out: of each
    partition, the first that pass, and those that equal the last of them, come down to its end."""
    if not block.where:
        return block.source
    rows = replace(block, select=all_fields(block.source.width))
    cheap = tuple(takewhile(lambda key: not needs_model(key), keys))
    if not cheap or places.end is None:
        return rows
    directions = tuple(places.directions[: len(cheap)])
    take = Take(places.end, places.partitions, cheap, directions, ties=len(cheap))
    own = plain(take, block.source)
    return rows if own is None else with_takes(rows, [own])


def spare_in_groups(plan: Rel, order_of: Callable[[Aggregation], Order | None]) -> Plan | None:
    """An aggregate over a block that reads the answers of an order only where these tell rows
    apart; None if none is spared, or one is read otherwise. No rows of branches: DataFusion refuses
    windows over those in which a key is constant."""
    found = block_below(plan.inputs[0])
    if found is None or "set" in found[1].source.kinds:
        return None
    columns, block = found
    agg = aggregation(plan).change(lambda e: inline(e, columns))
    by, others, places = order_of(agg) or ((), (), Places(()))
    if not spares_answers(by) or any(map(needs_model, others)):
        return None
    if any(is_volatile(e) or e.rels for e in (*by, *others)):
        return None
    if any(may_be_real(key, block.source) for key in agg.keys if not needs_model(key)):
        return None
    rows, known, _ = with_answers(candidates(block, by, places), by, places)
    return aggregate(rows, agg.change(lambda e: substitute(e, known.get)))
