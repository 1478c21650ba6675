"""The aggregate that a question asks for against those of the query."""

from __future__ import annotations

import re

from sqlglot import exp

from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.doubtful_order import superlative_words
from blendfusion.services.ask.links import name_stems

_MEAN = frozenset(
    "average averages avg mean averaged typical typically percentage percent share rate ratio".split()
)
_SUM = re.compile(
    r"\b(?:total|totals|sum|sums|altogether|combined|overall|in all|how many|how much|number|numbers|count|amount|"
    r"amounts|quantity|spent|spend|cost|paid|revenue|share|percent\w*|proportion|ratio|most|least|highest|largest|more|"
    r"fewest|less|add|together|entire|whole|\w+est)\b|%",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"\b(?:the |a |in )?(?:total|sum)\b(?: (?:number|count))?", re.IGNORECASE)
_DISTINCT = re.compile(r"\b(?:different(?! from)|distinct|unique)\b", re.IGNORECASE)
_SHARE = re.compile(
    r"\bpercent(?:age|ages)?\b|\bper cent\b|%|\b(?:what|which) (?:share|proportion|fraction|ratio)\b"
    r"|\b(?:share|proportion|fraction) of (?:the|all)\b",
    re.IGNORECASE,
)


def mean_from_nowhere(case: Case) -> Doubt | None:
    """A mean that the question has no word for."""
    if set(case.words) & _MEAN or not any(case.tree.find_all(exp.Avg)):
        return None
    return "the query computes an average, which the question does not ask for", "Leave out avg(…)."


def sum_from_nowhere(case: Case) -> Doubt | None:
    """A sum that the question has no word for. The sum of a CASE counts rows."""
    sums = [call for call in case.tree.find_all(exp.Sum) if call.find(exp.Case, exp.Cast) is None]
    if not sums or _SUM.search(case.question):
        return None
    return (
        f"the query computes {sums[0].sql('postgres')}, which the question does not ask for",
        "Leave out the sum.",
    )


def extreme_from_nowhere(case: Case) -> Doubt | None:
    """A maximum where the question asks for no highest, or a minimum where for no lowest."""
    high, low = superlative_words(case)
    for kind, words, name in ((exp.Max, high, "largest"), (exp.Min, low, "smallest")):
        calls = list(case.tree.find_all(kind))
        if calls and not words:
            other = "smallest" if name == "largest" else "largest"
            opposite = low if name == "largest" else high
            hint = f"Compute the {other}." if opposite else f"Leave out {calls[0].sql('postgres')}."
            return f"the query computes the {name} value, which the question does not ask for", hint
    return None


def extreme_left_out(case: Case) -> Doubt | None:
    """A maximum or a minimum by its name, and a query without an order or such a function."""
    asks = [
        word
        for word in case.words
        if word in ("maximum", "minimum", "highest", "lowest", "largest", "smallest")
    ]
    asks = [word for word in asks if word not in case.names and word[:3] not in case.names]
    if not asks or any(
        case.tree.find_all(exp.Max, exp.Min, exp.Order, exp.All, exp.Window, exp.Not)
    ):
        return None
    return (
        f"the question says {asks[0]!r}, and the query neither computes nor sorts for it",
        "Use max(…), min(…) or ORDER BY.",
    )


def total_left_out(case: Case) -> Doubt | None:
    """A total, and a query that neither sums nor counts nor gives a stored total."""
    found = _TOTAL.search(case.question)
    if found is None or "total" in case.names or "sum" in case.names:
        return None
    if any(case.tree.find_all(exp.Sum, exp.Count, exp.Add)):
        return None
    return (
        f"the question says {found[0].strip()!r}, and the query adds nothing up",
        "Use sum(…) or count(*).",
    )


def distinct_left_out(case: Case) -> Doubt | None:
    """Different values, and a query that may give or count one twice."""
    found = _DISTINCT.search(case.question)
    if found is None or any(case.tree.find_all(exp.Distinct, exp.Group, exp.SetOperation)):
        return None
    if {"different", "distinct", "unique"} & case.names:
        return None
    return f"the question says {found[0]!r}, and the query may repeat values", "Use DISTINCT."


def share_left_out(case: Case) -> Doubt | None:
    """A share or percentage that the query neither computes nor reads."""
    found = _SHARE.search(case.question)
    if found is None or any(case.tree.find_all(exp.Div, exp.Avg, exp.Window)):
        return None
    stems = {"percentage", "percent", "share", "proportion", "rate", "ratio", "fraction"}
    if stems & case.names or any(
        stems & name_stems(c.name) for c in case.tree.find_all(exp.Column)
    ):
        return None
    return (
        f"the question says {found[0]!r}, and the query divides nothing",
        "Divide the part by the whole.",
    )


def whole_division(case: Case) -> Doubt | None:
    """A division of whole numbers, which drops what is behind the point."""
    for division in case.tree.find_all(exp.Div):
        if _is_whole(case, division.left) and _is_whole(case, division.right):
            if isinstance(division.right, exp.Literal) and not {"share", "average", "ratio"} & set(
                case.words
            ):
                continue
            return (
                f"{division.sql('postgres')} divides whole numbers, and drops what is behind the point",
                "Multiply the first by 1.0.",
            )
    return None


def _is_whole(case: Case, value: exp.Expr) -> bool:
    """Whether an expression is surely a whole number."""
    match value.unnest():
        case exp.Count():
            return True
        case exp.Literal(is_string=False) as literal:
            return literal.name.isdigit()
        case exp.Filter() as filtered:
            return _is_whole(case, filtered.this)
        case exp.Sum() | exp.Max() | exp.Min() as call:
            return _is_whole(case, call.this)
        case exp.Case() as branches:
            given = [one.args["true"] for one in branches.args["ifs"]]
            default = branches.args.get("default")
            return all(_is_whole(case, one) for one in (*given, *([default] if default else [])))
        case exp.Mul() | exp.Add() | exp.Sub() as binary:
            return _is_whole(case, binary.left) and _is_whole(case, binary.right)
        case exp.Subquery() as query:
            selects = query.selects
            return len(selects) == 1 and _is_whole(case, selects[0].unalias())
        case exp.Column() as column:
            origin = case.origins.of(column)
            return origin is not None and "INT" in origin[1].type
    return False


def counts_flags(case: Case) -> Doubt | None:
    """A count of a BOOLEAN column, which counts every row that has a value."""
    for count in case.tree.find_all(exp.Count):
        column = count.this
        origin = case.origins.of(column) if isinstance(column, exp.Column) else None
        if origin is not None and origin[1].type == "BOOLEAN":
            return (
                f"count({column.sql()}) counts true and false values alike",
                f"Write count(*) FILTER (WHERE {column.sql()}).",
            )
    return None
