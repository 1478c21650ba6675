"""Names as queries write them: in quotes if they are no plain words."""

from __future__ import annotations

import re

from blendfusion.udfs.declare.arguments import quoted_name

_RESERVED = frozenset(
    """all and any as asc between by case cast cross current_date desc distinct else end except exists
    extract false fetch for from full group having ilike in inner intersect interval into is join
    lateral left like limit natural not null offset on or order outer over partition right select
    set some table then to true union unnest update using values when where window with""".split()
)
"""Words that are no names unless they are quoted."""


def is_reserved(name: str) -> bool:
    return name.lower() in _RESERVED


def written_name(name: str) -> str:
    """A name as a query writes it, in quotes if it is no plain word.

    >>> written_name("age"), written_name("order"), written_name("first name")
    ('age', '"order"', '"first name"')
    """
    plain = re.fullmatch(r"[A-Za-z_]\w*", name) and not is_reserved(name)
    return name if plain else quoted_name(name)
