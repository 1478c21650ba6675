"""Compares a plan of DataFusion with what it reads back of it.

A plan that was read back has further projections, other names, AND in pairs, and equalities of
joins in other places. So plans are compared by what they do: the parts of each expression
(literals, casts, operators, functions with DISTINCT, FILTER, ORDER BY and NULLs, windows with their
frames), sorts, limits and kinds of joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from datafusion import Expr
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.expression_messages import (
    AGGREGATE,
    ALIAS,
    BINARY,
    CASE,
    CAST,
    COLUMN,
    FUNCTION,
    GROUPING_SETS,
    ILIKE,
    IN_LIST,
    LIKE,
    LITERAL,
    NOT,
    PLACES,
    SIMILAR,
    TRY_CAST,
    WINDOW,
    message_field,
    message_fields,
    same_field,
)
from blendfusion.datafusion.plan_parts import (
    SUBQUERY,
    Part,
    expressions,
    has_subquery,
    parts,
    parts_of,
    relations,
    take_out,
    tokens,
)

Data: TypeAlias = "bytes | tuple[Part, ...]"
"""An encoded expression, or the parts of one with a subquery."""

_NULL, _NULL_OF_TEXT = b"\x8a\x02\x02\n\x00", b"\x8a\x02\x02r\x00"
"""NULL without a type becomes NULL of text."""
_TRUE, _FALSE = b"\x08\x01", b"\x08\x00"
_LITERAL_BEGINS = b"\x1a"
_DIVIDED = (b"", b'"', b"\x92", b"\xb2", b"\xba", b"\xc2")
"""How expressions begin that ``split`` divides, and how columns do."""
_EQUAL, _AND, _OR = b"\x1a\x02Eq", b"\x1a\x03And", b"\x1a\x02Or"
_SAME, _OTHER = b"\x1a\x11IsNotDistinctFrom", b"\x1a\x0eIsDistinctFrom"
_IS_TRUE = 25
_TRUTH_TESTS = {_IS_TRUE: (_SAME, _TRUE), 26: (_SAME, _FALSE), 28: (_OTHER, _TRUE)}
_TRUTH_TESTS[29] = _OTHER, _FALSE
_NULL_TESTS = {27: 6, 30: 7}
"""IS UNKNOWN and IS NOT UNKNOWN, which are null tests of booleans."""
_RESPECT_NULLS_OF_WINDOW, _RESPECT_NULLS_OF_AGGREGATE = b"\x58\x00", b"\x38\x00"
"""Words whose absence means the same."""
_ZONED_CAST = re.compile(r', Utf8\("Timestamp\(\w+, "[^"]*"\)"\)')
"""The type of a function in a copy that is a cast to a zone."""
_NO_CONDITION = re.compile(r"Join:  Filter: Boolean\(true\)$", re.MULTILINE)
"""The condition of a join without one in a copy."""
_CHAINS = ((4, b"\x1a\x02Or"), (4, b"\x1a\x03And"))
"""The connectives among the parts of an expression with a subquery."""
_NESTED = (16, 17, 18, 32, 41)
"""The fields of literals that are lists, structs and maps: memory, which is no value."""
_TIME, _NULL_VALUE, _TIMESTAMP = 26, 33, 20
"""The fields of timestamps and of NULL among literals, and of timestamps among types."""
_UNITS = ("s", "ms", "us", "ns")


class Fact(NamedTuple):
    """One thing that a relation does, with its encoded expressions."""

    kind: str
    detail: object
    data: tuple[Data, ...] = ()


class Does(NamedTuple):
    """A fact in one form, with the parts of its expressions in one order."""

    kind: str
    detail: object
    parts: tuple[Part, ...]


_ALWAYS = Fact("expression", None, (b"\x1a\x02" + _TRUE,))
"""The condition of a join without one."""


def difference(plan: LogicalPlan, back: Sequence[LogicalPlan], context: Any) -> str | None:
    """A name for what differs between a plan and its copy, which may be divided into several plans;
    None if nothing does. ``context`` is DataFusion's own, which knows the functions."""
    ours, theirs = _facts((plan,), context), _facts(back, context)
    # Names of columns contain what a subquery computes, so its words may be missing in the copy.
    only_ours = {fact for fact in ours - theirs if fact.kind != "subquery"}
    only_theirs = theirs - ours
    if not only_ours and not only_theirs:
        return None
    left = {_normal(f, context) for f in only_ours} ^ {_normal(f, context) for f in only_theirs}
    different = [fact for fact in left if fact.detail is not None or fact.parts]
    if different:
        both = {_normal(fact, context) for fact in ours & theirs}
        different = sorted((fact for fact in different if fact not in both), key=str)
    return _name(different[0]) if different else None


# --- what a plan does -----------------------------------------------------------------------------


def _facts(plans: Iterable[LogicalPlan], context: Any) -> set[Fact]:
    found: set[Fact] = set()
    for plan in plans:
        text = plan.display_indent()
        reader = _Reader(context, "<subquery>" in text)
        for _, node in relations(plan):
            found.update(reader.facts(node))
        if "Subquery:" in text:
            shown = _NO_CONDITION.sub("Join:", _ZONED_CAST.sub("", subqueries_text(text)))
            words = tokens(shown)
            found.update(Fact("subquery", word) for word in words)
    found.discard(_ALWAYS)
    return found


class _Reader:
    def __init__(self, context: Any, subqueries: bool) -> None:
        self.context = context
        self.subqueries = subqueries

    def facts(self, node: Any) -> Iterator[Fact]:
        kind = type(node).__name__
        if kind == "Join":
            given = [self.data(e) for e in expressions(node)]
            if node.null_equals_null():
                given += [((BINARY, _SAME),)] * len(node.on())
            yield Fact("join", str(node.join_type()), tuple(sorted(given, key=str)))
        elif kind == "Sort":
            keys = [(self.data(key.expr()), key) for key in node.sort_exprs()]
            # A constant key says nothing, and is left out of the copy.
            telling = [pair for pair in keys if pair[0][:1] != _LITERAL_BEGINS] or keys
            for data, key in telling:
                yield Fact("sort", (key.ascending(), key.nulls_first()), (data,))
            if node.get_fetch_val() is not None:
                yield Fact("limit", node.get_fetch_val())
        elif kind == "Limit":
            for bound in (node.skip(), node.fetch()):
                if bound is None:
                    continue
                if bound.variant_name() != "Literal":  # which DataFusion refuses later
                    yield Fact("limit", None, (self.data(bound),))
                elif bound.python_value().as_py():
                    yield Fact("limit", bound.python_value().as_py())
        else:
            for expr in expressions(node):
                whole = self.data(expr)
                if isinstance(whole, bytes) and whole[:1] not in _DIVIDED:
                    yield Fact("expression", None, (whole,))
                elif whole:
                    for data in self.split(whole):
                        if data:
                            yield Fact("expression", None, (data,))

    def data(self, expr: Any) -> Data:
        """The encoded expression without its name; nothing for a column."""
        if self.subqueries and has_subquery(expr):
            # A chain of AND or OR is nested in another way in the copy.
            return tuple(part for part in parts(expr, self.context) if part not in _CHAINS)
        data: bytes = expr.to_bytes(self.context)
        while data[:1] == b"\x12":  # an alias
            (content,) = (content for _, _, content in message_fields(data) if content is not None)
            data = next(c or b"" for number, _, c in message_fields(content) if number == 1)
        return b"" if data[:1] == b"\n" else data

    def split(self, data: Data) -> Iterator[Data]:
        """The parts of a conjunction, and the keys of grouping sets."""
        if isinstance(data, bytes) and data[:1] == b'"' and data.endswith(_AND):
            for _, _, content in message_fields(data):
                for number, _, operand in message_fields(content or b""):
                    if number == 1:
                        yield from self.split(_without_name(operand or b""))
        elif isinstance(data, bytes) and data[:2] in (b"\xb2\x01", b"\xba\x01", b"\xc2\x01"):
            yield from _keys(data)
        elif isinstance(data, bytes) and data[:2] == b"\x92\x01":
            yield from _window_apart(data)
        else:
            yield data


def _without_name(data: bytes) -> bytes:
    return b"" if data[:1] == b"\n" else data


def _keys(data: bytes) -> Iterator[bytes]:
    """The expressions of ROLLUP, CUBE or GROUPING SETS."""
    for kind, _, content in message_fields(data):
        for _, _, inner in message_fields(content or b""):
            if kind != GROUPING_SETS:
                yield _without_name(inner or b"")
                continue
            for _, _, key in message_fields(inner or b""):
                yield _without_name(key or b"")


def _window_apart(data: bytes) -> Iterator[Data]:
    """A window without its expressions, and those: a copy may compute them below."""
    for _, _, content in message_fields(data):
        below: dict[int, list[bytes]] = {}
        yield ((WINDOW, take_out(content or b"", PLACES[WINDOW], below)),)
        for found in below.values():
            yield from map(_without_name, found)


def subqueries_text(text: str) -> str:
    """The lines of a plan's text that are plans of subqueries."""
    lines: list[str] = []
    depth: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if depth is not None and indent > depth:
            lines.append(line)
            continue
        depth = indent if line.strip() == "Subquery:" else None
    return "\n".join(lines)


# --- one form for what is written in several ways -------------------------------------------------


def _normal(fact: Fact, context: Any) -> Does:
    found: list[Part] = []
    for data in fact.data:
        given = list(parts_of(data) if isinstance(data, bytes) else data)
        found += _normal_parts(given, context, of_join=fact.kind == "join")
    has_case = any(kind == CASE for kind, _ in found)  # CASE x WHEN v is CASE WHEN x = v
    if has_case or fact.kind == "join":
        found = [part for part in found if part != (BINARY, _EQUAL)]
    if has_case:
        found = list(set(found))
    return Does(fact.kind, fact.detail, tuple(sorted(found)))


def _normal_parts(given: Sequence[Part], context: Any, *, of_join: bool) -> list[Part]:
    found: list[Part] = []
    for kind, own in given:
        if kind == LITERAL:
            found += _literal(own, context)
        elif kind in (CAST, TRY_CAST):
            found.append((kind, _type_of_cast(own)))
        elif kind == FUNCTION and own in (b"\n\narrow_cast", b"\n\x0earrow_try_cast"):
            lenient = own.endswith(b"try_cast")
            found[-1] = TRY_CAST if lenient else CAST, _text_of_literal(found[-1][1])
        elif kind in (ALIAS, COLUMN) or (kind, own) == (BINARY, _AND):
            continue
        elif (kind, own) == (BINARY, _OR):
            if (kind, own) not in found:
                found.append((kind, own))
        elif kind in _TRUTH_TESTS:
            if not (of_join and kind == _IS_TRUE):
                comparison, truth = _TRUTH_TESTS[kind]
                found += [(BINARY, comparison), (LITERAL, truth)]
        elif kind in (IN_LIST, LIKE, ILIKE, SIMILAR):
            found += _split_negation(kind, own)
        elif kind == WINDOW:
            found.append((kind, _with_plain_frame(_without(own, _RESPECT_NULLS_OF_WINDOW))))
        elif kind == AGGREGATE:
            found.append((kind, _without(own, _RESPECT_NULLS_OF_AGGREGATE)))
        elif kind == CASE:
            found.append((kind, b""))
        else:
            found.append((_NULL_TESTS.get(kind, kind), own))
    if of_join:
        found = [part for part in found if part != (LITERAL, _TRUE)]
    return found


def _literal(own: bytes, context: Any) -> Iterator[Part]:
    """A literal of a zone is one of UTC, and the cast to its zone."""
    zoned = zone_of(LITERAL, own)
    if own == _NULL:
        yield LITERAL, _NULL_OF_TEXT
    elif zoned is not None:
        yield LITERAL, zoned.value
        if zoned.zone != UTC:
            yield CAST, zoned.text.encode()
    else:
        number, _, content = next(message_fields(own))
        if number in _NESTED:
            whole = Expr.from_bytes(message_field(LITERAL, own))
            kind = [inner for place, _, inner in message_fields(content or b"") if place == 3]
            own = f"{whole.canonical_name()} {kind}".encode()
        yield LITERAL, own


def _type_of_cast(own: bytes) -> bytes:
    zoned = zone_of(CAST, own)
    if zoned is not None and zoned.zone != UTC:
        return zoned.text.encode()
    return next(content or b"" for number, _, content in message_fields(own) if number == 2)


def _text_of_literal(own: bytes) -> bytes:
    return next(content or b"" for _, _, content in message_fields(own))


def _split_negation(kind: int, own: bytes) -> Iterator[Part]:
    place = 3 if kind == IN_LIST else 1
    kept = b""
    for number, head, content in message_fields(own):
        if number == place:
            yield NOT, b""
        else:
            kept += same_field(head, content)
    yield kind, kept


def _without(own: bytes, flag: bytes) -> bytes:
    """A message without the field of a number that is ``flag``."""
    fields = message_fields(own)
    return b"".join(
        same_field(head, content) for _, head, content in fields if (head, content) != (flag, None)
    )


def _with_plain_frame(own: bytes) -> bytes:
    """A window's message whose unbounded frames have no type."""
    kept = b""
    for number, head, content in message_fields(own):
        if number != 8 or content is None:
            kept += same_field(head, content)
            continue
        for _, start, bound in message_fields(content):
            kept += start if bound is None else str([*_bound_parts(bound)]).encode()
    return kept


def _bound_parts(bound: bytes) -> Iterator[bytes]:
    for _, head, value in message_fields(bound):
        unbounded = value is not None and next(message_fields(value))[0] == _NULL_VALUE
        yield b"unbounded" if unbounded else head[:1] + (value or head)


# --- time zones -----------------------------------------------------------------------------------

UTC = "UTC"
"""The zone that DataFusion reads where Substrait has none."""


class ZonedTimestamp(NamedTuple):
    """A timestamp with time zone: its type in Arrow's notation, its zone, and its value, of a
    literal."""

    text: str
    zone: str
    value: bytes


def zone_of(kind: int, own: bytes) -> ZonedTimestamp | None:
    """The type of a cast or literal with a time zone; None for any other part."""
    for number, _, content in message_fields(own):
        if content is None:
            continue
        if kind == LITERAL and number == _TIME:
            return _zoned_moment(content)
        if (kind, number) in ((LITERAL, _NULL_VALUE), (CAST, 2), (TRY_CAST, 2)):
            return _zoned_type(content)
    return None


def _zoned_moment(content: bytes) -> ZonedTimestamp | None:
    zone, unit, value = "", "", b""
    for number, head, inner in message_fields(content):
        if number == 5:
            zone = (inner or b"").decode()
        else:  # microseconds, nanoseconds, seconds or milliseconds
            unit, value = ("us", "ns", "s", "ms")[number - 1], head
    return ZonedTimestamp(_type_text(unit, zone), zone, value) if zone else None


def _zoned_type(content: bytes) -> ZonedTimestamp | None:
    for number, _, inner in message_fields(content):
        if number != _TIMESTAMP:
            continue
        zone, unit = "", "s"
        for place, head, text in message_fields(inner or b""):
            if place == 2:
                zone = (text or b"").decode()
            else:
                unit = _UNITS[head[-1]]
        return (
            ZonedTimestamp(_type_text(unit, zone), zone, f"NULL {unit}".encode()) if zone else None
        )
    return None


def _type_text(unit: str, zone: str) -> str:
    return f'Timestamp({unit}, "{zone}")'


# --- what differs, by name ------------------------------------------------------------------------

_NAMES = {
    SUBQUERY: "a subquery",
    LITERAL: "a literal",
    BINARY: "an operator",
    CAST: "a cast",
    TRY_CAST: "a cast",
    WINDOW: "a window",
    AGGREGATE: "an aggregate",
    FUNCTION: "a function",
}


def _name(fact: Does) -> str:
    """The kind of what is different, without its values."""
    if fact.kind != "expression":
        return f"a {fact.kind}"
    kinds = {kind for kind, _ in fact.parts}
    named = [name for kind, name in _NAMES.items() if kind in kinds]
    return named[-1] if named else "an expression"
