"""Determines which values of calls are bytes, of which some are images.

A function has the types of texts, and DataFusion casts whatever stands there to text. Of bytes that
are an image this fails, wherever DataFusion evaluates the cast: in a plain plan, or where two calls
have an equal argument, which it computes once below both. What an expression holds is known only to
DataFusion: it plans the query with a function of bytes, to which it casts nothing but bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from datafusion import DataFrame

from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import RowQuestion

Bytes = Mapping[int, tuple[int, ...]]
"""Places of the values of calls, from 0, by the numbers of the calls in the text."""

_BYTES = re.compile(r"Binary")
"""In the text of a plan with its columns' types."""
_MAKE_BYTES = re.compile(
    r"\b(decode|arrow_cast|digest|md5|sha\d+|blake\w+)\s*\(|\b(bytea|blob|\w*binary)\b|(?<![\w'])x'",
    re.IGNORECASE,
)


def values_in_bytes(
    frame: DataFrame, text: str, sites: Sequence[Call], is_planned: Callable[[Bytes], bool]
) -> Bytes:
    """The values that are bytes in the query of ``frame``, as ``text`` has it. ``is_planned``:
    whether DataFusion takes the query with some values in bytes."""
    asking = {
        (number, place)
        for number, call in enumerate(sites)
        if type(call.ingredient.kind) is RowQuestion
        for place in range(call.n_values)
    }
    if not asking or not (_holds_bytes(frame) or _MAKE_BYTES.search(text)):
        return {}
    if len(asking) > 1 and is_planned(_by_number(asking)):
        return _by_number(asking)
    return _by_number({one for one in asking if is_planned(_by_number({one}))})


def _holds_bytes(frame: DataFrame) -> bool:
    return bool(_BYTES.search(frame.logical_plan().display_indent_schema()))


def _by_number(places: set[tuple[int, int]]) -> Bytes:
    numbers = sorted({number for number, _ in places})
    return {n: tuple(sorted(place for number, place in places if number == n)) for n in numbers}
