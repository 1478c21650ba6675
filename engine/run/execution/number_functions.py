"""Computes bounds of functions of a number by bounds of the number: between these, a function has
values between those that are found. Of bounds that are infinite or no numbers, nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = tuple[Numbers, Numbers]
NumberFunction: TypeAlias = Callable[[Numbers, Numbers, float], Bounds]
"""It gets the smallest and the largest number, and the second operand: 0 where there is none."""

_MOST_DIGITS = 15


def _grow(compute: Callable[[Numbers], Numbers], *, exact: bool = True) -> NumberFunction:
    """A function that never falls. ``exact``: DataFusion computes it to the last bit as NumPy."""

    def find(low: Numbers, high: Numbers, other: float) -> Bounds:
        first, last = compute(low), compute(high)
        if other:  # the number of digits, of which these functions have none
            return np.full_like(low, np.nan), np.full_like(high, np.nan)
        room = 0.0 if exact else 1e-9
        return first - np.abs(first) * room, last + np.abs(last) * room

    return find


def _abs(low: Numbers, high: Numbers, _: float) -> Bounds:
    ends = np.abs(low), np.abs(high)
    return np.where((low <= 0) & (high >= 0), 0.0, np.minimum(*ends)), np.maximum(*ends)


def _negate(low: Numbers, high: Numbers, _: float) -> Bounds:
    return -high, -low


def _round(low: Numbers, high: Numbers, digits: float) -> Bounds:
    """The numbers as they are rounded; halves may go either way."""
    if not 0 <= digits <= _MOST_DIGITS:
        return np.full_like(low, np.nan), np.full_like(high, np.nan)
    by = 10.0 ** int(digits)
    return np.ceil(low * by - 0.5) / by, np.floor(high * by + 0.5) / by


def _power(low: Numbers, high: Numbers, exponent: float) -> Bounds:
    if exponent <= 0:
        return np.full_like(low, np.nan), np.full_like(high, np.nan)
    least, most = np.where(low < 0, np.nan, low) ** exponent, high**exponent
    return least * (1 - 1e-9), most * (1 + 1e-9)


NUMBER_FUNCTIONS: dict[str, NumberFunction] = {
    "abs": _abs,
    "negate": _negate,
    "round": _round,
    "power": _power,
    "ceil": _grow(np.ceil),
    "floor": _grow(np.floor),
    "trunc": _grow(np.trunc),
    "signum": _grow(np.sign),
    "sqrt": _grow(np.sqrt),
    "cbrt": _grow(np.cbrt, exact=False),
    "exp": _grow(np.exp, exact=False),
    "ln": _grow(np.log, exact=False),
    "log2": _grow(np.log2, exact=False),
    "log10": _grow(np.log10, exact=False),
}
