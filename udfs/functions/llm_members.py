"""``llm_members``: the members of a set that a word stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import TEXTS, UserBody
from blendfusion.udfs.declare.options import MODEL, ON_ERROR

if TYPE_CHECKING:
    from blendfusion.udfs.ask.user_model import UserModel

QUESTION = "Which of the options mean the same as the text, or are a kind of it?"
MOST_AT_ONCE = 100
"""Options of one question: longer lists are answered worse."""
_OPTIONS_SHARE = 2
"""Options may take half of the window."""
_CHARACTERS_PER_TOKEN = 4


def _members(model: UserModel, terms: pa.Array, domains: pa.Array) -> pa.Array:
    found: list[list[str] | None] = [None] * len(terms)
    by_domain: dict[tuple[str, ...], list[int]] = {}
    rows = zip(terms.to_pylist(), domains.to_pylist(), strict=True)
    for row, (term, listed) in enumerate(rows):
        domain = tuple(dict.fromkeys(m for m in listed or () if m is not None and m.strip()))
        if term is None or not term.strip():
            continue
        found[row] = [m for m in domain if _fold(m) == _fold(term)]
        if domain and not found[row]:
            by_domain.setdefault(domain, []).append(row)
    for domain, places in by_domain.items():
        some = terms.take(pa.array(places))
        answers = [
            model.ask(QUESTION, some, options=part, returns=f"list{{0,{len(part)}}}").to_pylist()
            for part in _parts(domain, model.info.window)
        ]
        for row, parts in zip(places, zip(*answers, strict=True), strict=True):
            chosen = None if None in parts else {m for part in parts for m in part}
            found[row] = None if chosen is None else [m for m in domain if m in chosen]
    return pa.array(found, TEXTS)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _parts(domain: Sequence[str], window: int) -> Iterator[list[str]]:
    """The members in questions that fit the window."""
    room = window // _OPTIONS_SHARE * _CHARACTERS_PER_TOKEN
    part: list[str] = []
    used = 0
    for member in domain:
        used += len(member) + _CHARACTERS_PER_TOKEN
        if part and (used > room or len(part) == MOST_AT_ONCE):
            yield part
            part, used = [], len(member) + _CHARACTERS_PER_TOKEN
        part.append(member)
    yield part


LLM_MEMBERS = Ingredient(
    name="llm_members",
    summary="the items of a list that a word stands for",
    example="SELECT llm_members(area, countries) AS found FROM (VALUES ('Scandinavia')) AS areas(area), "
    "(SELECT array_agg(DISTINCT country) AS countries FROM reviews)",
    kind=UserBody(_members, TEXTS, (pa.string(), TEXTS)),
    leading=(),
    values=("value", "members"),
    options=(MODEL, ON_ERROR),
    question=QUESTION,
    returns=Constraint("list", item=Constraint("text")),
    result="LIST of TEXT",
    doc="""The items of ``members``, a column of lists, that mean the same as ``value`` or are a kind
of it: 'coffee' among cuisines is 'cafe' and 'coffee & tea'. LIST of TEXT, in their order.

An item that equals the value except for case and blanks is the only result, without a call.
Otherwise one question is asked per value and list (one per 100 items, or fewer with a small
window). Without a matching item, the list is empty. A NULL or blank value gives NULL.""",
)
