"""SQL text with ingredient calls → SQL text with one typed function per call.

DataFusion's Python functions have one exact signature each, and its SQL planner must know types;
so every call site becomes a function of its own before DataFusion sees the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blendfusion.callsites import Site, find_sites, replaced, tokenize
from blendfusion.context import combined, contexts
from blendfusion.nulls import nulls_last
from blendfusion.types import Constraint
from blendfusion.udfs.call import Call, remember
from blendfusion.udfs.ingredient import Ingredient, bind


@dataclass(frozen=True, slots=True)
class Typed:
    """A query whose calls are functions; ``calls`` are what the functions stand for, and
    ``written`` tells, by their names, the ways in which the user wrote them."""

    sql: str
    calls: tuple[Call, ...] = ()
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def typed(sql: str, ingredients: Mapping[str, Ingredient]) -> Typed:
    """Settle arity and type of every call in ``sql``; text outside of calls is not touched.

    Raises ArgumentError or QueryError for a call that is wrong in itself.
    """
    tokens = tokenize(sql)
    if not any(t.text.lower() in ingredients for t in tokens):
        return Typed(sql)
    sites = find_sites(sql, tokens, ingredients)
    ordered = nulls_last(sql, tokens, sites)
    if ordered != sql:
        sql, tokens = ordered, tokenize(ordered)
        sites = find_sites(sql, tokens, ingredients)
    names = [f"bf_site_{i}_" for i in range(len(sites))]
    said = contexts(replaced(sql, sites, names.__getitem__), names)
    calls = [
        remember(
            bind(
                site.ingredient,
                site.arguments,
                site.named,
                context=context,
                ordered=site.order is not None,
            )
        )
        for site, context in zip(sites, _shared(sites, [said[n] for n in names]), strict=True)
    ]
    written: dict[str, tuple[str, ...]] = {}
    for call, site in zip(calls, sites, strict=True):
        ways = written.get(call.name, ())
        if site.text not in ways and not site.aliased:
            written[call.name] = (*ways, site.text)
    for call, site in zip(calls, sites, strict=True):
        written.setdefault(call.name, (site.text,))
    text = replaced(sql, sites, lambda i: calls[i].name)
    return Typed(text, tuple(dict.fromkeys(calls)), written)


def _shared(sites: Sequence[Site], said: Sequence[Constraint | None]) -> list[Constraint | None]:
    """What is said of each site, or else of an equal call elsewhere in the query, so that a call
    that is used in several places is one call, of one type, asked once."""
    groups: dict[str, list[int]] = {}
    for i, site in enumerate(sites):
        groups.setdefault(site.text.lower(), []).append(i)
    result = list(said)
    for members in groups.values():
        together = combined([c for c in (said[i] for i in members) if c is not None])
        if together is not None:
            for i in members:
                result[i] = together
    return result
