"""The probability of each option of a closed set, or each point of a scale, as canonical text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from blendfusion.models.constraints.constraint import possible_answers
from blendfusion.types import Constraint

_DECIMALS = 9


def distribution_text(shares: Sequence[float], constraint: Constraint) -> str:
    """The probabilities of all answers, in their order, as canonical text. ``shares`` are
    proportional to them; one of them at least is above zero.

    >>> distribution_text([3, 1], Constraint("choice", options=("a", "b"), distribution=True))
    '{"a": 0.75, "b": 0.25}'
    """
    total = sum(shares)
    names = possible_answers(constraint)
    rounded = {n: round(s / total, _DECIMALS) for n, s in zip(names, shares, strict=True)}
    return json.dumps(rounded, ensure_ascii=False)


def distribution_of(odds: Mapping[Any, Any], constraint: Constraint) -> str | None:
    """The canonical text of odds by option or point, which need not add up to one; a missing one
    has none. None for invalid odds."""
    names = possible_answers(constraint)
    given = {
        str(name).lower() if isinstance(name, bool) else str(name): share
        for name, share in odds.items()
    }
    numbers = all(
        isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share < inf
        for share in given.values()
    )
    if not numbers or not given.keys() <= {*names} or not sum(given.values()):
        return None
    return distribution_text([float(given.get(name, 0)) for name in names], constraint)
