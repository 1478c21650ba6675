"""Asks about the rows of a block until what is read of their groups is decided.

``HAVING count(*) FILTER (WHERE f(x)) > 3`` is decided for a group as soon as four rows have a yes,
or too few are left. Each group has a range of what its aggregates can be. Those whose tests can
still go either way, or that may be among the first of a limit, are asked about, those rows first
that move the aggregates most. Rounds grow with the rows so far, and with the answers that a model
gives at once. The other rows have NULL in place of answers: DataFusion then computes from them what
it would compute from all answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Protocol

import numpy as np
import pyarrow as pa

from blendfusion.planner.ir.nodes import Block, needs_model
from blendfusion.run.execution.equal_rows import ranks
from blendfusion.run.execution.expressions import RowWise
from blendfusion.services.decided_groups.group_ranges import Places
from blendfusion.services.decided_groups.group_states import GroupStates, Stage
from blendfusion.services.decided_groups.open_groups import (
    OpenGroups,
    first_of_round,
    open_groups,
    round_sizes,
)
from blendfusion.services.decided_groups.row_answers import RowAnswers, Survivors, codes_of


class SpareCounts(Protocol):
    """The counts of a stage."""

    spared: int


def rows_of_decided_groups(
    block: Block,
    table: pa.Table,
    rowwise: RowWise,
    survivors: Survivors,
    counts: SpareCounts,
    *,
    look: Callable[[GroupStates], None] = lambda states: None,
) -> pa.Table:
    """The rows of a block over ``table`` from which DataFusion makes the groups that are read.
    ``look`` sees what is known before the first question, unless all rows are asked about."""
    need = block.until
    assert need is not None
    rows = RowAnswers(block, table, rowwise, survivors)
    known = not any(map(needs_model, block.select[: need.n_keys]))  # ties of an order may ask
    keys = [rows.value(i) for i in range(need.n_keys)] if known else []
    codes = codes_of(keys, len(table)) if len(table) and known else None
    if codes is None or rowwise.cascades(block.exprs):
        _ask_all(rows)
        return rows.output(np.ones(len(rows), dtype=bool))
    if need.n_keys == 1:
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    states = GroupStates(need, rows, codes, rowwise)
    _read_stored(states)
    look(states)
    if _shows_all(states):  # what is shown of a group says whether it is there
        _show(states, np.arange(states.n))
    kept = _decide(states)
    _show(states, np.flatnonzero(kept))
    if not need.n_keys or states.has_windows:  # windows read the others, too
        kept = np.ones(states.n, dtype=bool)
    counts.spared = rows.n_spared
    return rows.output(kept[states.group])


def groups_to_ask(states: GroupStates, at_once: int) -> Places:
    """The groups of which something must be asked, or the first that are asked about where a limit
    reads some of them."""
    every = np.arange(states.n)
    if _shows_all(states):
        wanted = [(every[~states.is_settled(stage, every)], stage) for stage in states.shown]
    else:
        found = open_groups(states, at_once)
        stages = enumerate(states.tests_and_order)
        wanted = [(found.groups[found.tests == number], stage) for number, stage in stages]
    groups = [states.groups_that_matter(own, stage) for own, stage in wanted]
    return np.unique(np.concatenate(groups)) if groups else every[:0]


def _shows_all(states: GroupStates) -> bool:
    return not states.need.tests and not states.need.has_limit


def _ask_all(rows: RowAnswers) -> None:
    rows.ask(np.arange(len(rows)), range(rows.block.width))


def _read_stored(states: GroupStates) -> None:
    """Reads the stored answers, which cost nothing."""
    for stage in (*states.tests_and_order, *states.shown):
        places = states.rows.known_places(stage.columns)
        if len(places):
            _ask(states, places, stage.columns)


def _decide(states: GroupStates) -> np.ndarray:
    """Asks until it is known which groups are kept."""
    while True:
        found = open_groups(states, states.rows.at_once)
        if not len(found.groups):
            return found.kept
        _ask_some(states, found)


def _ask_some(states: GroupStates, found: OpenGroups) -> None:
    """Asks about the next rows of each open group."""
    for number in np.unique(found.tests):
        own = found.tests == number
        stage = states.tests_and_order[number]
        _ask_next(states, found.groups[own], found.sizes[own], stage)


def _ask_next(
    states: GroupStates,
    groups: Places,
    sizes: Places,
    stage: Stage,
    beside: Sequence[int] = (),
) -> None:
    """Asks about the next rows of ``groups``, ``sizes`` of each."""
    if stage.lines:
        groups = states.groups_that_matter(groups, stage)
        most = states.most_for_windows(groups, stage)
        groups, sizes = first_of_round(states, groups, most, states.rows.at_once)
    places = states.askable(groups, stage)
    own = states.group[places]
    size = np.zeros(states.n, dtype=np.int64)
    size[groups] = sizes
    _ask(states, places[ranks(own) < size[own]], stage.columns, beside)


def _show(states: GroupStates, groups: Places) -> None:
    """Asks until what is read of the kept groups has one value."""
    shown = [i for stage in states.shown for i in stage.columns]
    for stage in states.shown:
        for number in count():
            left = groups[~states.is_settled(stage, groups)]
            if not len(left):
                break
            if stage.whole:
                places = states.askable(left, stage)
                if stage.distinct is not None:  # one of equal rows is enough: 1, 1, 2, 4, … of each
                    size = 2 ** max(number - 1, 0)
                    places = places[states.ranks_among_equal(places, stage) < size]
                _ask(states, places, stage.columns, shown)
            else:
                sizes = round_sizes(states, left, states.rows.at_once)
                _ask_next(states, left, sizes, stage, shown)


def _ask(
    states: GroupStates, places: Places, columns: Sequence[int], beside: Sequence[int] = ()
) -> None:
    if not len(places):  # the same questions about rows of other groups were just asked
        return
    changed = states.rows.ask(places, columns, beside)
    states.asked += np.bincount(states.group[places], minlength=states.n)
    states.learn(np.unique(states.group[changed]))
