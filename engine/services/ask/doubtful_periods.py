"""The end of a period that a question names against the bounds of the query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlglot import exp

from blendfusion.services.ask.comparisons import Comparison, comparisons
from blendfusion.services.ask.doubt_case import Case, Doubt

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_PERIOD = re.compile(
    rf"\b(?P<word>in|during|of|from|for|throughout)\s+(?:the (?:year|month)\s+(?:of\s+)?)?"
    rf"(?:(?P<month>{'|'.join(_MONTHS)})\s+(?:of\s+)?|(?P<quarter>Q[1-4]|first quarter|second quarter|third quarter|fourth quarter)\s+(?:of\s+)?)?"
    r"(?P<year>(?:19|20)\d\d)\b(?!\s*(?:to|and|until|through|-|–)\s*\w)",
    re.IGNORECASE,
)
_SIDE = re.compile(
    _PERIOD.pattern.replace("in|during|of|from|for|throughout", "after|before|since|until", 1)
    + r"(?![-/.]\d)",
    re.IGNORECASE,
)
_QUARTERS = ("first", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class DateBound:
    sign: str
    day: datetime
    whole_days: bool
    """Whether the column has days without a time."""


def other_period(case: Case) -> Doubt | None:
    """The doubt about a query whose bounds of dates differ from the period in the question."""
    found = list(_PERIOD.finditer(case.question))
    if len(found) != 1:
        return None
    first, behind = _period(found[0])
    bounds = [
        bound for one in comparisons(case.tree) if (bound := _date_bound(case, one)) is not None
    ]
    lower = [b for b in bounds if b.sign in (">", ">=")]
    upper = [b for b in bounds if b.sign in ("<", "<=")]
    if len(lower) != 1 or len(upper) != 1:
        return None
    if _begin(lower[0]) == first and _end(upper[0]) == behind:
        return None
    return (
        f"{found[0][0]!r} is {first:%Y-%m-%d} to {behind - timedelta(days=1):%Y-%m-%d}, and the query takes other days",
        f"Compare with >= '{first:%Y-%m-%d}' and < '{behind:%Y-%m-%d}'.",
    )


def other_side(case: Case) -> Doubt | None:
    """The one bound of dates on the other side of the period that the question names, or at another
    period."""
    found = list(_SIDE.finditer(case.question))
    if len(found) != 1 or len(re.findall(r"\b(?:19|20)\d\d\b", case.question)) != 1:
        return None
    bounds = [
        bound for one in comparisons(case.tree) if (bound := _date_bound(case, one)) is not None
    ]
    if len(bounds) != 1:
        return None
    first, behind = _period(found[0])
    word, day = found[0]["word"].casefold(), timedelta(days=1)
    if word in ("after", "since"):
        fits = bounds[0].sign in (">", ">=") and first <= _begin(bounds[0]) <= behind
    else:
        last = first if word == "before" else behind
        fits = bounds[0].sign in ("<", "<=") and first - day <= _end(bounds[0]) <= last
    if fits:
        return None
    return (
        f"the question says {found[0][0]!r}, and the query compares with {bounds[0].sign} "
        f"'{bounds[0].day:%Y-%m-%d}'",
        f"The period is {first:%Y-%m-%d} to {behind - day:%Y-%m-%d}.",
    )


def _period(found: re.Match[str]) -> tuple[datetime, datetime]:
    """The first day of a period, and the day behind it."""
    year = int(found["year"])
    if found["month"]:
        start, months = _MONTHS.index(found["month"].casefold()), 1
    elif found["quarter"]:
        text = found["quarter"].casefold()
        quarter = (
            int(text[1]) - 1
            if text[0] == "q" and text[1].isdigit()
            else _QUARTERS.index(text.split()[0])
        )
        start, months = 3 * quarter, 3
    else:
        start, months = 0, 12
    end = start + months
    return datetime(year, start + 1, 1), datetime(year + end // 12, end % 12 + 1, 1)


def _begin(bound: DateBound) -> datetime:
    """The first moment that a lower bound takes."""
    if bound.sign == ">=":
        return bound.day
    return bound.day + timedelta(days=1) if bound.whole_days else bound.day


def _end(bound: DateBound) -> datetime:
    """The moment behind the last one that an upper bound takes."""
    if bound.sign == "<":
        return bound.day
    last_second = (bound.day.hour, bound.day.minute) == (23, 59)
    return (
        (bound.day + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        if bound.whole_days or last_second
        else bound.day
    )


def _date_bound(case: Case, comparison: Comparison) -> DateBound | None:
    """A bound of dates; None for any other comparison."""
    column, sign, literal, _ = comparison
    text = literal.this if isinstance(literal, exp.Cast) else literal
    inner = column.this if isinstance(column, exp.Cast) else column
    if sign == "=" or not isinstance(inner, exp.Column):
        return None
    if not isinstance(text, exp.Literal) or not text.is_string:
        return None
    try:
        day = datetime.fromisoformat(text.name.strip())
    except ValueError:
        return None
    return DateBound(sign, day.replace(tzinfo=None), _has_whole_days(case, column, inner))


def _has_whole_days(case: Case, column: exp.Expr, inner: exp.Column) -> bool:
    """Whether a column, which may stand in a cast, has days without a time."""
    origin = case.origins.of(inner)
    kind = "" if origin is None else origin[1].type
    if isinstance(column, exp.Cast):
        kind = column.to.sql()
    if kind == "TEXT" and origin is not None:
        return all(len(sample) <= 10 for sample in origin[1].samples)
    return kind in ("DATE", "")
