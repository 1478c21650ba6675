"""Tells group keys apart that Substrait writes alike.

DataFusion has a column for each key of a grouping, by its name: after ``ROLLUP (b = TRUE, b)`` is
simplified, both keys are ``b``. Substrait has no names, and repeats a key for each of its sets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from blendfusion.errors import PlanError
from blendfusion.planner.ir.nodes import Expr


class GroupingSets(NamedTuple):
    """The grouping of an aggregate with several sets: ``ROLLUP (a, b)`` of the keys ``a``, ``b``"""

    text: str
    keys: tuple[str, ...]


def numbers_of_keys(
    sets: Sequence[Sequence[int]], exprs: Sequence[Expr], grouping: GroupingSets | None
) -> list[int]:
    """For each of ``exprs``, the number of its key, from 0 in the order of columns.

    ``sets`` has the positions in ``exprs`` of the keys of each set. Raises PlanError where the
    keys cannot be distinguished.
    """
    if grouping is None:
        numbers = _by_expression(sets, exprs)
    else:
        numbers = [grouping.keys.index(name) for name in _names(sets, grouping)]
    found: dict[int, Expr] = {}
    for number, expr in zip(numbers, exprs, strict=True):
        if found.setdefault(number, expr) != expr:
            raise PlanError("grouping sets whose keys cannot be distinguished")
    return numbers


def _by_expression(sets: Sequence[Sequence[int]], exprs: Sequence[Expr]) -> list[int]:
    """In one set, each expression is a key of its own. In several without names, equal ones are
    the same key."""
    if len(sets) == 1:
        return list(range(len(exprs)))
    distinct = list(dict.fromkeys(exprs))
    return [distinct.index(expr) for expr in exprs]


def _names(sets: Sequence[Sequence[int]], grouping: GroupingSets) -> list[str]:
    """The name of the key of each expression, from those that the text of the sets has."""
    one = f"({'|'.join(map(re.escape, grouping.keys))})"
    written = grouping.text.startswith("GROUPING SETS")
    listed = sets if written else [max(sets, key=len)]
    parts = (rf"\({', '.join([one] * len(keys))}\)" for keys in listed)
    pattern = rf"GROUPING SETS \({''.join(parts)}\)" if written else rf"\w+ {''.join(parts)}"
    found = re.fullmatch(pattern, grouping.text)
    if found is None:
        raise PlanError("grouping sets whose keys cannot be distinguished")
    names = list(found.groups())
    if written:
        return names
    if sets[0]:  # ROLLUP: each set is a beginning of the first
        return [name for keys in sets for name in names[: len(keys)]]
    # CUBE: the sets count in binary, the first name is the lowest digit.
    return [name for i in range(len(sets)) for j, name in enumerate(names) if i >> j & 1]
