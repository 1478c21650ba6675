"""Which groups are still open: those about which an answer can change the result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendfusion.run.execution.group_ranges import Places
from blendfusion.run.execution.group_states import GroupStates
from blendfusion.run.execution.ranges import Masks, Numbers
from blendfusion.run.execution.row_answers import MANY_ROWS


@dataclass(frozen=True, slots=True)
class OpenGroups:
    """Groups to ask about, each with the number of its next test, and the number of rows; and, when
    there are none, the groups that are kept."""

    groups: Places
    tests: Places
    sizes: Places
    kept: Masks


def open_groups(states: GroupStates, at_once: int) -> OpenGroups:
    """The groups to ask about next. ``at_once``: the answers that a model gives in the time of
    one."""
    if states.need.has_limit:
        return _of_limit(states, at_once)
    groups = np.flatnonzero(~states.fails & ~states.passes)
    tests = states.next_test(groups)
    some = tests >= 0
    groups, tests = groups[some], tests[some]
    return OpenGroups(groups, tests, round_sizes(states, groups, at_once), ~states.fails)


def round_sizes(states: GroupStates, groups: Places, at_once: int) -> Places:
    """The number of rows of each open group to ask about next: a few more than before, and more
    still where there are many rows, to keep the rounds few."""
    sizes = states.sizes[groups]
    share = sizes // 32 if sizes.sum() > MANY_ROWS else 0
    least = max(1, at_once // max(len(groups), 1))
    return np.maximum(np.maximum(states.asked[groups] // 32, least), share)


def _of_limit(states: GroupStates, at_once: int) -> OpenGroups:
    """The groups that may be among the first, or change their order."""
    need = states.need
    assert need.count is not None
    alive = np.flatnonzero(~states.fails)
    least, most = _places(states, alive)
    passes = states.passes[alive]
    least = np.where(passes, least, -1.0)
    line = np.lexsort((-most, -least))
    end = min(need.offset + need.count, len(line))
    kept = np.zeros(states.n, dtype=bool)
    kept[alive[line[:end]]] = True
    most_behind = np.r_[np.maximum.accumulate(most[line][::-1])[::-1], -2.0]
    least_so_far = np.minimum.accumulate(least[line]) if len(line) else np.zeros(0)
    for edge in range(max(need.offset, 1), end + 1):
        # What the groups before and behind an edge can be must not overlap.
        rivals_most = most_behind[edge]
        if least_so_far[edge - 1] >= max(rivals_most, 0.0):
            continue
        before, behind = line[:edge], line[edge:]
        wanted = np.r_[
            before[(least[before] < rivals_most) | ~passes[before]],
            behind[most[behind] > least_so_far[edge - 1]],
        ]
        groups, tests, sizes = _next_groups(states, alive[wanted], most[wanted], at_once)
        if len(groups):
            return OpenGroups(groups, tests, sizes, kept)
        kept[alive[wanted]] = True  # all is known of them: DataFusion decides
    none = np.arange(0)
    return OpenGroups(none, none, none, kept)


def _next_groups(
    states: GroupStates, groups: Places, most: Numbers, at_once: int
) -> tuple[Places, Places, Places]:
    """The groups among these that may come first, with the numbers of their next tests and of rows:
    as many as make up a round."""
    tests = states.next_test(groups, order=True)
    some = np.flatnonzero(tests >= 0)
    some = some[np.lexsort((groups[some], -states.asked[groups[some]], -most[some]))]
    part = 16 if len(states.rows) > MANY_ROWS else 32
    wanted = max(at_once, int(states.asked.sum()) // part)
    sizes = np.minimum(np.maximum(states.asked[groups[some]], 4), states.sizes[groups[some]])
    before = np.cumsum(np.r_[0, sizes])[: len(some)]
    sizes = np.minimum(sizes, wanted - before)
    first = sizes > 0
    return groups[some[first]], tests[some[first]], sizes[first]


def _places(states: GroupStates, alive: Places) -> tuple[Numbers, Numbers]:
    """The least and the greatest place of each group in the order of the limit, as numbers from 0
    on. A greater one comes earlier."""
    keys = [
        states.ranks(e, d) for e, d in zip(states.need.order, states.need.directions, strict=True)
    ]
    n = len(alive)
    if not keys:
        return np.zeros(n), np.zeros(n)
    both = [np.r_[low[alive], high[alive]] for low, high in keys]
    order = np.lexsort(both[::-1])
    new = np.zeros(2 * n, dtype=bool)
    for key in both:
        new[1:] |= (
            np.diff(key[order]) != 0
            if np.isfinite(key).all()
            else (key[order][1:] != key[order][:-1])
        )
    places = np.empty(2 * n)
    places[order] = np.cumsum(new)
    return places[:n], places[n:]
