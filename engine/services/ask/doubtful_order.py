"""Superlatives of a question (*the five cheapest*) against order, direction and limit."""

from __future__ import annotations

import re

from sqlglot import exp

from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.links import name_stems, words_of
from blendfusion.services.ask.stated_numbers import numbers

HIGH = frozenset(
    "highest largest biggest greatest most maximum max top best longest tallest heaviest fastest priciest dearest "
    "costliest strongest busiest richest widest hottest latest newest recent last oldest eldest youngest upper".split()
)
LOW = frozenset(
    "lowest smallest least fewest minimum min bottom worst shortest lightest slowest cheapest weakest poorest "
    "narrowest coldest earliest first oldest eldest youngest".split()
)
_BOTH = frozenset("oldest eldest youngest first last best worst top bottom".split())
"""Words whose direction depends on the column: age or birth, rank or score."""
_RISING = re.compile(
    r"\b(?:ascending|increasing|alphabetical\w*|lexicographic\w*|smallest to largest|low\w* to high\w*|from young|youngest to)\b",
    re.I,
)
_FALLING = re.compile(
    r"\b(?:descending|decreasing|reversed?|largest to smallest|high\w* to low\w*|oldest to)\b", re.I
)
_COUNTS = re.compile(
    r"\b(?:top|first|last|bottom)\s+(?P<n>\w+)\b|\b(?P<m>\d+|two|three|four|five|six|seven|eight|nine|ten)\s+(?:\w+\s+)?"
    r"(?:most|least|\w+est)\b",
    re.I,
)
_EST = re.compile(r"\w{2,}est\b")
_BOUND = re.compile(r"\bat (?:most|least)\b", re.I)
"""Words of a comparison, which are no superlatives."""
_RECENT = re.compile(r"\bmost recently\b", re.I)
_LITTLE = frozenset("less lower fewer cheaper younger smaller".split())
_MUCH = frozenset("more higher greater larger older bigger longer every all any above".split())
_ANY = frozenset("any every all below".split())
_UNKNOWN = frozenset("null nulls missing unknown empty".split())
_PLACES = frozenset("first last upper top min max".split())
"""Superlatives that may be no more than the name of a place."""
_NOT_EST = frozenset(
    "forest interest guest request west northwest southwest rest test latest contest harvest arrest invest quest best "
    "honest modest suggest midwest everest budapest interests".split()
)


def superlative_words(case: Case) -> tuple[list[str], list[str]]:
    """The words of the question for much and for little; a word of unknown meaning is in both."""
    words = words_of(_RECENT.sub("latest", _BOUND.sub("", case.question)))
    unknown = [w for w in words if _EST.fullmatch(w) and w not in HIGH | LOW | _NOT_EST]
    high = [w for w in words if w in HIGH]
    low = [w for w in words if w in LOW]
    low += ["less"] if _LITTLE & set(words) else []
    high += ["more"] if _MUCH & set(words) else []
    low += ["all"] if _ANY & set(words) else []
    return [*high, *unknown], [*low, *unknown]


def wrong_direction(case: Case) -> Doubt | None:
    """An order with LIMIT that gives the other end than the superlative of the question."""
    words = set(words_of(_BOUND.sub("", case.question)))
    high, low = words & (HIGH - LOW - _BOTH), words & (LOW - HIGH - _BOTH)
    if bool(high) == bool(low):
        return None
    for select in case.selects:
        order, limit = select.args.get("order"), select.args.get("limit")
        if order is None or limit is None:
            continue
        first = order.expressions[0]
        stems = name_stems(first.this.name) if isinstance(first.this, exp.Column) else set()
        if stems & {"rank", "ranking", "position", "place", "age", "birth", "date", "year", "time"}:
            continue
        falls = bool(first.args.get("desc"))
        if falls != bool(high):
            (word,) = sorted(high or low)[:1]
            return (
                f"the question says {word!r}, and the query sorts by {first.this.sql('postgres')} "
                f"{'DESC' if falls else 'ASC'}",
                f"Sort {'ASC' if falls else 'DESC'}.",
            )
    return None


def nulls_first(case: Case) -> Doubt | None:
    """First rows without a value in the key of their order: DESC puts NULL first."""
    if _UNKNOWN & set(case.words):
        return None
    for select in case.selects:
        order, limit = select.args.get("order"), select.args.get("limit")
        if order is None or limit is None or select.args.get("distinct"):
            continue
        key = _key(select, order.expressions[0].this)
        rows = select.copy()
        rows.set("expressions", [exp.alias_(key.copy(), "sorted_by")])
        first = rows.copy()
        first.args["order"].set("expressions", [_first_key(order.expressions[0], key)])
        rows.set("order", None)
        rows.set("limit", None)
        if case.has_rows(_where(first.limit(1), "IS NULL")) and case.has_rows(
            _where(rows, "IS NOT NULL")
        ):
            text = key.sql("postgres")
            return f"the first rows have NULL in {text}", "Sort by it with NULLS LAST."
    return None


def _key(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """The expression that a key of an order names by its alias or its place."""
    shown = select.expressions
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(shown):
        return shown[int(key.name) - 1].unalias()  # type: ignore[no-any-return]
    if isinstance(key, exp.Column) and not key.table:
        named = [e.unalias() for e in shown if isinstance(e, exp.Alias) and e.alias == key.name]
        return named[0] if named else key
    return key


def _first_key(first: exp.Expr, key: exp.Expr) -> exp.Expr:
    """The first key of an order, in full."""
    copy = first.copy()
    copy.set("this", key.copy())
    return copy


def _where(rows: exp.Select, test: str) -> str:
    return f"SELECT 1 FROM ({rows.sql('postgres')}) AS rows WHERE sorted_by {test}"


def wrong_order(case: Case) -> Doubt | None:
    """A stated order that the query turns round or lacks."""
    rising, falling = _RISING.search(case.question), _FALLING.search(case.question)
    found = rising or falling
    if found is None or (rising and falling):
        return None
    orders = list(case.tree.find_all(exp.Order))
    if not orders:
        return f"the question says {found[0]!r}, and the query sorts nothing", "Use ORDER BY."
    if all(bool(o.args.get("desc")) == bool(rising) for order in orders for o in order.expressions):
        return (
            f"the question says {found[0]!r}, and the query sorts the other way",
            f"Sort {'ASC' if rising else 'DESC'}.",
        )
    return None


def limit_without_order(case: Case) -> Doubt | None:
    """A doubt about LIMIT without ORDER BY, where the question has a superlative."""
    if not any(superlative_words(case)) or not _names_superlative(case):
        return None
    for select in case.selects:
        limit = select.args.get("limit")
        if (
            limit is not None
            and not select.args.get("order")
            and not select.find_ancestor(exp.Exists)
        ):
            return (
                "LIMIT without ORDER BY gives any rows, and the question asks for certain ones",
                "Use ORDER BY.",
            )
    return None


def _names_superlative(case: Case) -> bool:
    return any(map(_is_superlative, case.words))


def _is_superlative(word: str) -> bool:
    return word in HIGH | LOW or (_EST.fullmatch(word) is not None and word not in _NOT_EST)


def superlative_left_out(case: Case) -> Doubt | None:
    """A superlative with a noun, and a query with neither order nor an extreme value."""
    literals = " ".join(one.name.casefold() for one in case.tree.find_all(exp.Literal))
    words = [
        w
        for w in words_of(_BOUND.sub("", case.question))
        if _is_superlative(w) and w not in _NOT_EST | _PLACES | case.names and w not in literals
    ]
    if not words or any(
        case.tree.find_all(
            exp.Max, exp.Min, exp.Order, exp.All, exp.Window, exp.FirstValue, exp.Except
        )
    ):
        return None
    return (
        f"the question says {words[0]!r}, and the query neither sorts nor compares for it",
        "Use ORDER BY … LIMIT.",
    )


def limit_left_out(case: Case) -> Doubt | None:
    """The question asks for some rows (*the 3 cheapest*, or one superlative), and the query sorts
    and gives all."""
    found = _COUNTS.search(case.question)
    if found is None:
        return None
    stated = list(numbers(found["n"] or found["m"]))
    if not stated or any(case.tree.find_all(exp.Limit, exp.Fetch, exp.Window)):
        return None
    return (
        f"the question says {found[0]!r}, and the query gives all rows",
        f"Use LIMIT {stated[0].literal}.",
    )


def one_left_out(case: Case) -> Doubt | None:
    """One superlative, and a sorted query that gives all rows."""
    if not isinstance(case.tree, exp.Select) or case.tree.args.get("limit") is not None:
        return None
    order = case.tree.args.get("order")
    text = _BOUND.sub("", case.question)
    if order is None or re.search(
        r"\b(?:sort|ordered by|order (?:of|by)|list|rank|ascending|descending|decreasing|increasing|alphabet\w*|from (?:the )?\w+est|to (?:the )?\w+est|first|last)\w*",
        text,
        re.I,
    ):
        return None
    words = [
        w for w in words_of(text) if w in HIGH | LOW and w not in case.names and w not in ("upper",)
    ]
    if not words or case.tree.find(exp.Max, exp.Min, exp.Window):
        return None
    return f"the question says {words[0]!r}, and the query gives all rows", "Use LIMIT 1."


def limit_from_nowhere(case: Case) -> Doubt | None:
    """A limit that no number, superlative or singular of the question explains."""
    for limit in case.tree.find_all(exp.Limit):
        if limit.find_ancestor(exp.Exists):
            continue
        count = limit.expression.name
        stated = {one.literal for one in numbers(case.question)}
        if count in stated or not count.isdigit():
            continue
        if count == "1" and (
            _names_superlative(case) or {"one", "a", "single", "any"} & set(case.words)
        ):
            continue
        return (
            f"LIMIT {count} drops rows, and the question states no such number",
            "Leave out the LIMIT.",
        )
    return None
