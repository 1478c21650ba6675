"""Which groups are still open: those about which an answer can change the result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendfusion.run.execution.equal_rows import bounds_of
from blendfusion.run.execution.ranges import Masks, Numbers
from blendfusion.services.decided_groups.group_ranges import Places
from blendfusion.services.decided_groups.group_states import GroupStates
from blendfusion.services.decided_groups.row_answers import MANY_ROWS


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
    alive = np.flatnonzero(~states.fails)
    least, most = _places(states, alive)
    least = np.where(states.passes[alive], least, -1.0)
    found: list[tuple[Places, Places, Places]] = []
    lines = _lines(states, alive)
    for number, own in lines:
        kept, groups, mosts = _of_line(states, alive[own], least[own], most[own])
        if len(groups):
            groups, sizes = first_of_round(states, groups, mosts, at_once, len(lines))
            found.append((groups, states.next_test(groups, order=True), sizes))
        else:
            states.kept_of_lines[number] = kept
    kept_of_all = np.zeros(states.n, dtype=bool)
    for kept in states.kept_of_lines.values():
        kept_of_all[kept] = True
    groups, tests, sizes = (
        (np.concatenate(parts) for parts in zip(*found, strict=True))
        if found
        else (np.arange(0),) * 3
    )
    return OpenGroups(groups, tests, sizes, kept_of_all)


def _lines(states: GroupStates, alive: Places) -> list[tuple[int, Places]]:
    """The groups that a limit counts together, as places in ``alive``, with their number; those of
    which all is decided are left out."""
    if not states.need.per:
        return [(0, np.arange(len(alive)))]
    numbers = states.line[alive]
    order = np.argsort(numbers, kind="stable")
    own, starts = np.unique(numbers[order], return_index=True)
    parts = np.split(order, starts[1:]) if len(own) else []
    pairs = zip(own.tolist(), parts, strict=True)
    return [(number, part) for number, part in pairs if number not in states.kept_of_lines]


def _of_line(
    states: GroupStates, alive: Places, least: Numbers, most: Numbers
) -> tuple[Places, Places, Numbers]:
    """(the groups that are kept; those about which something must be asked first, and the greatest
    place of each)"""
    need, passes = states.need, states.passes[alive]
    assert need.count is not None
    line = np.lexsort((-most, -least))
    end = min(need.offset + need.count, len(line))
    most_behind = np.append(np.maximum.accumulate(most[line][::-1])[::-1], -2.0)
    least_so_far = np.minimum.accumulate(least[line]) if len(line) else np.zeros(0)
    if need.dense:  # as many places as there are for certain
        apart = np.cumsum(least_so_far[:-1] > most_behind[1:-1])
        end = int((np.append(0, apart)[: len(line)] < need.count).sum())
    kept = np.zeros(len(alive), dtype=bool)
    kept[line[:end]] = True
    settled = passes & (least == most)
    for edge in range(max(need.offset, 1), end + 1):
        # What the groups before and behind an edge can be must not overlap.
        rivals_most, least_before = most_behind[edge], least_so_far[edge - 1]
        if least_before > rivals_most and least_before >= 0:
            continue
        before, behind = line[:edge], line[edge:]
        if need.ties:
            near = before[(least[before] <= rivals_most) | ~passes[before]]
            far = behind[most[behind] >= least_before]
        elif least_before < max(rivals_most, 0.0):
            near = before[(least[before] < rivals_most) | ~passes[before]]
            far = behind[most[behind] > least_before]
        else:
            continue
        wanted = np.append(near, far)
        left = wanted[~settled[wanted]]
        left = left[states.next_test(alive[left], order=True) >= 0]
        if len(left):
            return alive[kept], alive[left], most[left]
        kept[near] = True  # all is known of them: DataFusion decides
        if not need.ties or edge == end:
            kept[far] = True
    return alive[kept], alive[:0], most[:0]


def first_of_round(
    states: GroupStates, groups: Places, most: Numbers, at_once: int, n_lines: int = 1
) -> tuple[Places, Places]:
    """The groups among these with the greatest values, with the numbers of rows to ask about next:
    as many as make up a round."""
    order = np.lexsort((groups, -states.asked[groups], -most))
    groups = groups[order]
    part = 16 if len(states.rows) > MANY_ROWS else 32
    wanted = max(at_once, int(states.asked.sum()) // part)
    wanted = max(1, (wanted - wanted % at_once) // n_lines)
    sizes = np.minimum(np.maximum(states.asked[groups], 1), states.sizes[groups])
    sizes = np.minimum(sizes, wanted - bounds_of(sizes)[:-1])
    first = sizes > 0
    return groups[first], sizes[first]


def _places(states: GroupStates, alive: Places) -> tuple[Numbers, Numbers]:
    """The least and the greatest place of each group in the order of the limit, as numbers from 0
    on. A greater one comes earlier."""
    keys = [
        states.ranks(e, d) for e, d in zip(states.need.order, states.need.directions, strict=True)
    ]
    n = len(alive)
    if not keys:
        return np.zeros(n), np.zeros(n)
    both = [np.append(low[alive], high[alive]) for low, high in keys]
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
