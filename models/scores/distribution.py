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
    shares = shares_of(odds, possible_answers(constraint))
    return None if shares is None else distribution_text(shares, constraint)


def shares_of(odds: Mapping[Any, Any], names: Sequence[str]) -> list[float] | None:
    """The odds of ``names``, in their order; a missing one has none. None for odds of anything
    else, negative or infinite ones, and where all are zero.

    >>> shares_of({True: 3, False: 1}, ("true", "false"))
    [3.0, 1.0]
    """
    given = dict.fromkeys(names, 0.0)
    for name, share in odds.items():
        text = str(name).lower() if isinstance(name, bool) else str(name)
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if text not in given or not number or not 0 <= share < inf:
            return None
        given[text] = float(share)
    return [*given.values()] if any(given.values()) else None
