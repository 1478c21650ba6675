"""Exponents: raised texts behind numbers stay apart from them."""

from __future__ import annotations

import re

_EXPONENT = re.compile(r"[+\-\u2212\u2013]?\d")


def write_raised(before: str, raised: str) -> str:
    """A raised text as it is written behind another: "^" parts an exponent from its number.

    >>> [f"{before}{write_raised(before, '5')}" for before in ("10", "m", "10 ")]
    ['10^5', 'm5', '10 5']
    """
    is_exponent = before[-1:].isdigit() and _EXPONENT.match(raised)
    return f"^{raised}" if is_exponent else raised
