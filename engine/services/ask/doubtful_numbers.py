"""Numbers that a question states: each is used, and compared in the stated direction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from blendfusion.services.ask.comparisons import comparisons
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.stated_numbers import Number, numbers

_ABOVE = (
    r"(?:more|greater|higher|larger|bigger|longer|older|heavier|taller|later|better|worth more|costs? more|earn\w* more) than"
    r"|(?<!and )above|over|exceed\w*|after|beyond|past|bigger than"
)
_AT_LEAST = (
    r"at least|no less than|not less than|no fewer than|minimum of|from|since|starting (?:in|from)"
)
_BELOW = r"(?:less|fewer|lower|smaller|shorter|younger|lighter|earlier|cheaper|worse|costs? less) than|below|under|before|prior to"
_AT_MOST = r"at most|no more than|not more than|no later than|not later than|maximum of|up to|until|through|till"
_UNITS = r"(?:\s+(?:the|a|an|a total of|about|year|day|of|age|is|was|\$|€|£))*\s*[$€£]?\s*"
_BEFORE = {
    ">": re.compile(rf"\b(?:{_ABOVE}){_UNITS}$", re.I),
    ">=": re.compile(rf"\b(?:{_AT_LEAST}){_UNITS}$", re.I),
    "<": re.compile(rf"\b(?:{_BELOW}){_UNITS}$", re.I),
    "<=": re.compile(rf"\b(?:{_AT_MOST}){_UNITS}$", re.I),
}
_BEHIND = {
    ">=": re.compile(
        r"^\s*(?:\w+\s+)?or (?:more|above|higher|older|over|later|greater|longer)\b", re.I
    ),
    "<=": re.compile(
        r"^\s*(?:\w+\s+)?or (?:less|fewer|below|lower|younger|under|earlier|smaller|shorter)\b",
        re.I,
    ),
}
_NEGATED = re.compile(
    r"\b(?:not|never|n't|no)\s+(?:\w+\s+){0,2}(?:more|less|above|below|over|under|after|before|older|younger)\b[^.]*$",
    re.I,
)
_NOT = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


def number_unused(case: Case) -> Doubt | None:
    """A number of the question that stands nowhere in the query."""
    used = list(_used_numbers(case.tree))
    equal = list(_equal(case.tree))
    for one in _stated_numbers(case):
        assert one.value is not None
        near = {one.value, one.value - 1, one.value + 1, one.value / 100}
        same = any(value in (one.value, one.value / 100) for value in equal)
        if not same and not any(value in near for value in used):
            text = case.question[one.start : one.stop]
            return (
                f"the question says {text}, and the query does not",
                f"Use the number {one.literal}.",
            )
    return None


def number_from_nowhere(case: Case) -> Doubt | None:
    """A number that rows are compared with, and the question does not state."""
    stated = {one.value for one in numbers(case.question)}
    if None in stated:
        return None
    for literal, _ in _compared_numbers(case.tree):
        value = Decimal(literal.name)
        near = {value, value - 1, value + 1, value * 100, -value}
        if value in (0, 1) or near & stated:
            continue
        notes = " ".join(c.note for t in case.catalog.tables for c in t.columns) + " ".join(
            map(str, case.catalog.metrics)
        )
        if literal.name in _DIGITS.findall(notes):
            continue
        return (
            f"the query compares with {literal.name}, a number that the question does not state",
            "Use the numbers of the question.",
        )
    return None


def other_way(case: Case) -> Doubt | None:
    """A comparison that points the other way than the words at its number."""
    return _direction(case, strict=False)


def other_bound(case: Case) -> Doubt | None:
    """A comparison that includes its number where the words leave it out, or the reverse."""
    return _direction(case, strict=True)


def _direction(case: Case, *, strict: bool) -> Doubt | None:
    for one in numbers(case.question):
        sign = _words_sign(case.question, one)
        if sign is None or one.value is None:
            continue
        found = [(s, Decimal(n.name)) for n, s in _compared_numbers(case.tree) if s != "="]
        found = [(s, value) for s, value in found if abs(value - one.value) <= 1]
        if not found:
            continue
        wanted = _normalise(sign, one.value)
        same_way = [f for f in found if f[0][0] == sign[0]]
        if strict:
            differs = bool(same_way) and all(_normalise(*f) != wanted for f in same_way)
        else:
            differs = not same_way
        if differs:
            text = case.question[max(0, one.start - 20) : one.stop].split(" ", 1)[-1]
            return (
                f"the question says {text!r}, and the query compares by {found[0][0]} {found[0][1]}",
                f"Compare by {sign} {one.literal}.",
            )
    return None


def _normalise(sign: str, value: Decimal) -> tuple[str, Decimal, bool]:
    """A comparison in one form for whole numbers: > 2 is >= 3."""
    if value == value.to_integral_value() and sign in ("<", ">"):
        return (sign, value + (1 if sign == ">" else -1), True)
    return (sign[0], value, True if value == value.to_integral_value() else sign.endswith("="))


def _words_sign(question: str, one: Number) -> str | None:
    """The comparison that the words at a number state; None if they state none."""
    before, behind = question[: one.start], question[one.stop :]
    for sign, pattern in _BEHIND.items():
        if pattern.search(behind):
            return sign
    for sign in (">=", "<=", ">", "<"):
        if _BEFORE[sign].search(before):
            if sign == ">=" and re.search(r"\bfrom\W*$", before, re.I):
                return None  # from 3 to 5, from 2013
            left = _BEFORE[sign].sub("", before)
            if re.search(r"\b(?:not|never|n't|no)\s+(?:\w+\s+)?$", left, re.I):
                return None  # the negation may stand in the comparison or around it
            return sign
    return None


def _compared_numbers(tree: exp.Expr) -> Iterator[tuple[exp.Literal, str]]:
    """The numbers that a query compares with, each with the sign that has it on the right."""
    for one in comparisons(tree):
        literal = _literal(one.right)
        if literal is None or (one.is_turned and _literal(one.left) is not None):
            continue
        if isinstance(one.term, exp.Between):
            if not isinstance(one.right.unnest(), exp.Neg):
                yield literal, one.sign
            continue
        around = one.term.parent
        if isinstance(around, exp.Paren):
            around = around.parent
        yield literal, _NOT.get(one.sign, one.sign) if isinstance(around, exp.Not) else one.sign


def _literal(expr: exp.Expr) -> exp.Literal | None:
    """The literal of a number, without its minus; None of anything else."""
    inner = expr.unnest()
    if isinstance(inner, exp.Neg):
        inner = inner.this
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return None
    return inner if _number(inner.name) is not None else None


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _stated_numbers(case: Case) -> Iterator[Number]:
    """The numbers of the question that name no value, table or column, without 0 and 1."""
    values = [link.value for link in case.links if not link.by_column]
    known = {digits for text in values for digits in _DIGITS.findall(text)}
    for one in numbers(case.question):
        text = case.question[one.start : one.stop]
        if one.value is None or one.value in (0, 1) or text in known or text in case.names:
            continue
        if one.is_word and one.value <= 2:
            continue
        yield one


def _equal(tree: exp.Expr) -> Iterator[Decimal]:
    """The numbers that a column equals: a bound may be one more or less than the question's number,
    and these may not."""
    for literal in tree.find_all(exp.Literal):
        if isinstance(literal.parent, exp.EQ | exp.In):
            yield from map(Decimal, _DIGITS.findall(literal.name))


def _used_numbers(tree: exp.Expr) -> Iterator[Decimal]:
    """The numbers in the other literals of a query, those within texts too."""
    for literal in tree.find_all(exp.Literal):
        if isinstance(literal.parent, exp.EQ | exp.In):
            continue
        for digits in _DIGITS.findall(literal.name):
            yield Decimal(digits)
    for name in tree.find_all(exp.Column, exp.Table):
        for digits in _DIGITS.findall(name.name):
            yield Decimal(digits)
    for limit in tree.find_all(exp.Limit, exp.Fetch):
        yield from _used_in_limit(limit)


def _used_in_limit(limit: exp.Expr) -> Iterator[Decimal]:
    count = limit.args.get("expression") or limit.args.get("count")
    if count is not None and _number(count.name) is not None:
        yield Decimal(count.name)
