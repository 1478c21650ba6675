"""Determines which values of calls are bytes, of which some are images.

A function has the types of texts, and DataFusion casts whatever stands there to text. Of bytes that
are an image this fails, wherever DataFusion evaluates the cast: in a plain plan, or where two calls
have an equal argument, which it computes once below both. What an expression holds is known only to
DataFusion: it plans the query with a function of bytes, to which it casts nothing but bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from datafusion import DataFrame

from blendfusion.language.query_text.typed_query import TypedQuery
from blendfusion.udfs.ask.media import list_of_bytes

Bytes = Mapping[int, tuple[int, ...]]
"""Places of the values of calls, from 0, by the numbers of the calls in the text."""

_BYTES = re.compile(r"Binary")
"""In the text of a plan with its columns' types."""
_LIST_OF_BYTES = re.compile(r"(?:\w*List\w*\((?:\d+ x )?)+\w*Binary")
_TYPE = r"(\w+(?:\(\w+(?:(?:, | x )\w+)?)*)"
"""A type, with the types in it as far as they say whether it is of bytes."""
_OF_BYTES = frozenset({"Binary", "BinaryView", "LargeBinary"})
_MAKE_BYTES = re.compile(
    r"\b(decode|arrow_cast|digest|md5|sha\d+|blake\w+)\s*\(|\b(bytea|blob|\w*binary)\b|(?<![\w'])x'",
    re.IGNORECASE,
)
_NAME = re.compile(r'\w+|"[^"]+"')
_DEEPEST_LIST = 3
_COLUMN = re.compile(r'(?:(?:\w+|"[^"]+")\s*\.\s*)*(?:(\w+)|"([^"]+)")')


def values_in_bytes(
    frame: DataFrame, text: str, ready: TypedQuery, is_planned: Callable[[Bytes, str], bool]
) -> Bytes:
    """The values that are bytes in the query of ``frame``, as ``text`` has it. ``is_planned``:
    whether DataFusion takes a query with some values in bytes. It is tried for expressions, but
    not for answers, and for columns of a name that several columns have. Raises QueryError for
    lists of bytes."""

    def in_bytes(places: set[tuple[int, int]]) -> bool:
        return is_planned(_by_number(places), text)

    asking = {
        (number, place): value
        for number, (call, values) in enumerate(zip(ready.sites, ready.values, strict=True))
        if call.ingredient.kind.takes_bytes
        for place, value in enumerate(values[: call.n_values])
    }
    if not asking:
        return {}
    plan = frame.logical_plan().display_indent_schema()
    if not (_BYTES.search(plan) or _MAKE_BYTES.search(text)):
        return {}
    for (number, _), value in asking.items():
        kinds = _kinds(value, plan)
        if kinds and all(map(_LIST_OF_BYTES.match, kinds)):
            raise list_of_bytes(ready.sites[number].ingredient.name)
    answers = {text for texts in ready.written.values() for text in texts}
    known = {
        one: " ".join(value.split()) not in answers and _is_bytes(value, plan)
        for one, value in asking.items()
    }
    certain = {one for one, is_bytes in known.items() if is_bytes}
    doubtful = {one for one, is_bytes in known.items() if is_bytes is None}
    if len(doubtful) > 1 and in_bytes(certain | doubtful):
        return _by_number(certain | doubtful)
    found = {one for one in doubtful if in_bytes({one})}
    for one in doubtful - found:
        value, item = asking[one], asking[one]
        words = {kind for word in _NAME.findall(value) for kind in _kinds(word, plan) or ()}
        for _ in range(_DEEPEST_LIST if any("Binary" in kind for kind in words) else 0):
            item = f"array_element({item}, 1)"
            if is_planned(_by_number({one}), text.replace(value, item)):
                raise list_of_bytes(ready.sites[one[0]].ingredient.name)
    return _by_number(certain | found)


def _is_bytes(value: str, plan: str) -> bool | None:
    """Whether a value is bytes in a plan with types; None if its name does not say so."""
    kinds = _kinds(value, plan)
    if kinds is None:
        return None
    if not any("Binary" in kind for kind in kinds):
        return None if not kinds else False
    return True if kinds <= _OF_BYTES else None


def _kinds(value: str, plan: str) -> set[str] | None:
    """The types of the columns of a plan that a value may name; None if it is no column."""
    column = _COLUMN.fullmatch(value)
    if column is None:
        return None
    name = re.escape(column[1] or column[2])
    kind = re.compile(rf'(?<!\w)"?{name}"?: ?(?:non-null )?{_TYPE}', re.IGNORECASE)
    return set(kind.findall(plan))


def _by_number(places: set[tuple[int, int]]) -> Bytes:
    numbers = sorted({number for number, _ in places})
    return {n: tuple(sorted(place for number, place in places if number == n)) for n in numbers}
