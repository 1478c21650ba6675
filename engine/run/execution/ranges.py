"""Ranges of expressions while some answers are unknown: of numbers and truth values.

``range_of`` is at least as wide as the values that DataFusion can give for any answers. It never
has to be narrow: a wide range costs questions, and no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from substrait.proto import Expression as ExpressionMessage

from blendfusion.models.constraints.constraint import possible_answers
from blendfusion.planner.ir.builders import literal
from blendfusion.planner.ir.nodes import Ask, Expr, Node
from blendfusion.run.execution.number_functions import NUMBER_FUNCTIONS, NumberFunction

Numbers = NDArray[np.float64]
Masks = NDArray[np.bool_]

EXACT = 2.0**53
"""Whole numbers up to here are exact as floating-point numbers."""
_TINY = 1e-300
WHOLE = ("int", "narrow", "unsigned")
"""The kinds of whole numbers."""
_HUGE = 3e38
"""An infinite number is this or more: NaN, which may be any, is before and behind it."""


@dataclass(frozen=True, slots=True)
class Range:
    """For each row: NULL is possible where ``null``, and a value from ``low`` to ``high`` where
    ``value``. FALSE is 0 and TRUE is 1; anything else but a number is from -inf to inf.

    ``kind``: bool, int (of 64 bits), float; narrow and unsigned, other whole numbers; rank, a place
    among the values of a column; or other. No arithmetic is done but with int and float: DataFusion
    wraps that of the others around.
    """

    low: Numbers
    high: Numbers
    null: Masks
    value: Masks
    kind: str

    def __len__(self) -> int:
        return len(self.low)

    @property
    def true(self) -> Masks:
        """A mask of the rows whose value may be TRUE."""
        return self.value & (self.high >= 1)

    @property
    def false(self) -> Masks:
        """A mask of the rows whose value may be FALSE."""
        return self.value & (self.low <= 0)

    @property
    def certain(self) -> Masks:
        """A mask of the rows whose value must be TRUE."""
        return self.true & ~self.false & ~self.null

    @property
    def single(self) -> Masks:
        """Where one value is possible."""
        one = self.value & ~self.null & (self.low == self.high) & np.isfinite(self.low)
        return np.asarray(one | (self.null & ~self.value))

    def take(self, places: NDArray[np.int64]) -> Range:
        parts = self.low[places], self.high[places], self.null[places], self.value[places]
        return Range(*parts, self.kind)

    def replace_at(self, places: NDArray[np.int64], new: Range) -> None:
        """Replaces the ranges at ``places``."""
        self.low[places], self.high[places] = new.low, new.high
        self.null[places], self.value[places] = new.null, new.value


def unknown_range(n: int, *, null: bool | Masks = True) -> Range:
    """``n`` values of which nothing is known."""
    nulls = np.broadcast_to(np.asarray(null), (n,)).copy()
    return Range(np.full(n, -np.inf), np.full(n, np.inf), nulls, np.ones(n, dtype=bool), "other")


def null_range(n: int, kind: str = "other") -> Range:
    """``n`` NULLs."""
    never = np.zeros(n, dtype=bool)
    return Range(np.zeros(n), np.zeros(n), ~never, never, kind)


def all_true(terms: Iterable[Range], n: int) -> Range:
    """Whether all of some conditions are true, for ``n`` rows; FALSE where one is NULL."""
    true, certain = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
    for term in terms:
        true, certain = true & term.true, certain & term.certain
    return truths(true, ~certain, np.zeros(n, dtype=bool))


def between(n: int, low: float, high: float, kind: str) -> Range:
    """``n`` values between two numbers, or NULL."""
    some = np.ones(n, dtype=bool)
    first, last = (np.full(n, bound, np.float64) for bound in (low, high))
    return Range(first, last, some, some.copy(), kind)


def truths(true: Masks, false: Masks, null: Masks) -> Range:
    """Truth values, from those that are possible."""
    low, high = np.where(false, 0.0, 1.0), np.where(true, 1.0, 0.0)
    return Range(low, high, null, true | false, "bool")


def kind_of(type_: pa.DataType) -> str:
    """The kind of a column."""
    if pa.types.is_boolean(type_):
        return "bool"
    if pa.types.is_integer(type_):
        if pa.types.is_unsigned_integer(type_):
            return "unsigned"
        return "int" if type_.bit_width == 64 else "narrow"
    return "float" if pa.types.is_float64(type_) else "other"


def range_of_values(column: pa.Array | pa.ChunkedArray) -> Range:
    """The range of each known value: of a number itself, of a text and the like -inf to inf."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    type_, kind = whole.type, kind_of(whole.type)
    valid = whole.is_valid().to_numpy(zero_copy_only=False)
    if kind == "bool":
        whole = whole.cast(pa.int8())
    elif kind == "other" and not (pa.types.is_decimal(type_) or pa.types.is_floating(type_)):
        if not pa.types.is_null(type_):
            return _where_valid(unknown_range(len(whole), null=~valid), valid)
        whole = pa.nulls(len(whole), pa.int8())
    numbers = pc.fill_null(pc.cast(whole, pa.float64(), safe=False), 0.0)
    low: Numbers = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    low, high = np.where(low == np.inf, _HUGE, low), np.where(low == -np.inf, -_HUGE, low)
    if kind == "other" or (kind in WHOLE and np.abs(low).max(initial=0.0) > EXACT):
        low, high = widen(low, high, np.abs(low))
    nan = np.isnan(low)
    if nan.any():  # DataFusion orders NaN behind all numbers, and finds it equal to itself
        low, high = np.where(nan, -np.inf, low), np.where(nan, np.inf, high)
    if kind == "float":  # DataFusion orders -0.0 before 0.0
        negative = (low == 0) & np.signbit(low)
        low, high = np.where(negative, -_TINY, low), np.where(negative, _TINY, high)
    return Range(low, high, ~valid, valid.copy(), kind)


def _where_valid(found: Range, valid: Masks) -> Range:
    return Range(found.low, found.high, found.null, valid.copy(), found.kind)


def widen(low: Numbers, high: Numbers, size: Numbers) -> tuple[Numbers, Numbers]:
    """Bounds with room for the rounding of numbers of this size, in any order of a sum."""
    room = np.where(np.isfinite(size), size * 1e-9, 0.0)  # less infinity is no number
    return low - room, high + room


Leaf = Callable[[Expr], "Range | None"]
"""The range of an expression that is known otherwise; None of others."""


def range_of(expr: Expr, leaf: Leaf, n: int) -> Range:
    """The range of ``expr`` on ``n`` rows."""
    found = leaf(expr)
    if found is not None:
        return found
    if not isinstance(expr, Node) or expr.rels or expr.name not in _FUNCTIONS:
        return unknown_range(n)
    if expr.name == "cast":
        return _cast(expr, range_of(expr.children[0], leaf, n))
    if (shares := _share(expr, n)) is not None:
        return shares
    return _FUNCTIONS[expr.name]([range_of(child, leaf, n) for child in expr.children])


def _share(expr: Node, n: int) -> Range | None:
    """The probability of one option of a call that gives those of all; None of anything else."""
    if expr.name == "array_element" and isinstance(expr.children[0], Node):
        expr = expr.children[0] if literal(expr.children[1]) == 1 else expr
        if expr.name != "map_extract":
            return None
    ask, *keys = expr.children or (expr,)
    if not isinstance(ask, Ask) or len(keys) != 1 or literal(keys[0]) is None:
        return None
    if not ask.call.gives_shares:
        return None
    constraint = ask.call.task.constraint
    known = constraint.query is not None or literal(keys[0]) in possible_answers(constraint)
    return between(n, 0.0, 1.0, "float") if known else null_range(n)


def range_of_answers(ask: Ask, n: int, present: Masks) -> Range:
    """The range of a call's answers before it is asked; NULL is always possible, and the only one
    where its values are not ``present``."""
    low, high = ask.call.bounds or (-np.inf, np.inf)
    if pa.types.is_boolean(ask.call.type):
        low, high = 0.0, 1.0
    found = between(n, low, high, kind_of(ask.call.type))
    return _where_valid(found, present)


def _connect(parts: Sequence[Range], *, conjunction: bool) -> Range:
    result = parts[0]
    for part in parts[1:]:
        a, b = result, part
        if conjunction:
            true, false = a.true & b.true, a.false | b.false
            null = (a.null & (b.true | b.null)) | (b.null & (a.true | a.null))
        else:
            true, false = a.true | b.true, a.false & b.false
            null = (a.null & (b.false | b.null)) | (b.null & (a.false | a.null))
        result = truths(true, false, null)
    return result


def _comparison(
    test: Callable[[Range, Range], tuple[Masks, Masks]],
) -> Callable[[Sequence[Range]], Range]:
    def compare(parts: Sequence[Range]) -> Range:
        a, b = parts
        both = a.value & b.value
        some = np.full(len(a), True)
        true, false = (some, some) if "rank" in (a.kind, b.kind) else test(a, b)
        return truths(true & both, false & both, a.null | b.null)

    return compare


def _less(a: Range, b: Range) -> tuple[Masks, Masks]:
    return a.low < b.high, a.high >= b.low


def _at_most(a: Range, b: Range) -> tuple[Masks, Masks]:
    return a.low <= b.high, a.high > b.low


def _same(a: Range, b: Range) -> tuple[Masks, Masks]:
    one = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return (a.low <= b.high) & (b.low <= a.high), ~one


def _exchange(
    test: Callable[[Range, Range], tuple[Masks, Masks]],
) -> Callable[[Range, Range], tuple[Masks, Masks]]:
    return lambda a, b: test(b, a)


def _negate(
    test: Callable[[Range, Range], tuple[Masks, Masks]],
) -> Callable[[Range, Range], tuple[Masks, Masks]]:
    return lambda a, b: test(a, b)[::-1]


def _not(parts: Sequence[Range]) -> Range:
    (a,) = parts
    return truths(a.false, a.true, a.null)


def _test(
    *, true: bool = False, false: bool = False, null: bool = False, no: bool = False
) -> Callable[[Sequence[Range]], Range]:
    """A test for one of the truth values; ``no``: for any other."""

    def test(parts: Sequence[Range]) -> Range:
        (a,) = parts
        met, other = np.zeros(len(a), dtype=bool), np.zeros(len(a), dtype=bool)
        for wanted, possible in ((true, a.true), (false, a.false), (null, a.null)):
            met, other = (met | possible, other) if wanted else (met, other | possible)
        met, other = (other, met) if no else (met, other)
        return truths(met, other, np.zeros(len(a), dtype=bool))

    return test


def _null_test(*, no: bool) -> Callable[[Sequence[Range]], Range]:
    def test(parts: Sequence[Range]) -> Range:
        (a,) = parts
        never = np.zeros(len(a), dtype=bool)
        return truths(a.value, a.null, never) if no else truths(a.null, a.value, never)

    return test


def hull(parts: Sequence[tuple[Masks, Range]]) -> Range:
    """The range of a value that is one of several, each possible where its mask says so."""
    n = len(parts[0][1])
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    null, value = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for mask, part in parts:
        some = mask & part.value
        low, high = (
            np.where(some, np.minimum(low, part.low), low),
            np.where(some, np.maximum(high, part.high), high),
        )
        null, value = null | (mask & part.null), value | some
    kinds = {p.kind for m, p in parts if (m & p.value).any()}
    kind = kinds.pop() if len(kinds) == 1 else "other"
    return Range(np.where(value, low, 0.0), np.where(value, high, 0.0), null, value, kind)


def _case(parts: Sequence[Range]) -> Range:
    n = len(parts[0])
    left = np.ones(n, dtype=bool)
    found: list[tuple[Masks, Range]] = []
    for condition, result in zip(parts[0::2], parts[1::2], strict=False):
        found.append((left & condition.true, result))
        left = left & (condition.false | condition.null)
    found.append((left, parts[-1] if len(parts) % 2 else null_range(n)))
    return hull(found)


def _coalesce(parts: Sequence[Range]) -> Range:
    n = len(parts[0])
    left = np.ones(n, dtype=bool)
    found: list[tuple[Masks, Range]] = []
    for part in parts:
        no_null = Range(part.low, part.high, np.zeros(n, dtype=bool), part.value, part.kind)
        found.append((left, no_null))
        left = left & part.null
    found.append((left, null_range(n)))
    return hull(found)


def _among(parts: Sequence[Range]) -> Range:
    value, *items = parts
    return _connect([_COMPARISONS["equal"]([value, i]) for i in items], conjunction=False)


def _bounded_by(*, least: bool) -> Callable[[Sequence[Range]], Range]:
    """``least(…)`` and ``greatest(…)``, which leave out NULLs."""

    def find(parts: Sequence[Range]) -> Range:
        pick = np.minimum if least else np.maximum
        absent = np.inf if least else -np.inf
        n, kinds = len(parts[0]), {p.kind for p in parts}
        lows = [np.where(p.value, p.low, absent) for p in parts]
        highs = [np.where(p.value, p.high, absent) for p in parts]
        # One that may be NULL bounds the result on one side only.
        sure = [p.value & ~p.null for p in parts]
        every = [
            np.where(s, x, absent) for s, x in zip(sure, highs if least else lows, strict=True)
        ]
        near = pick.reduce(every)
        far = pick.reduce(lows if least else highs)
        loose = (np.maximum if least else np.minimum).reduce(
            [np.where(p.value, p.high if least else p.low, -absent) for p in parts]
        )
        null, value = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        for p in parts:
            null, value = null & p.null, value | p.value
        near = np.where(np.isfinite(near), near, loose)
        low, high = (far, near) if least else (near, far)
        kind = kinds.pop() if len(kinds) == 1 else "other"
        return Range(np.where(value, low, 0.0), np.where(value, high, 0.0), null, value, kind)

    return find


def _arithmetic(
    combine: Callable[[Range, Range], tuple[Numbers, Numbers]],
) -> Callable[[Sequence[Range]], Range]:
    def compute(parts: Sequence[Range]) -> Range:
        a, b = parts
        null, value = a.null | b.null, a.value & b.value
        if a.kind != b.kind or a.kind not in ("int", "float"):
            return _where_valid(unknown_range(len(a), null=null), value)
        with np.errstate(all="ignore"):
            low, high = combine(a, b)
        unbounded = ~np.isfinite(low) | ~np.isfinite(high)
        if a.kind == "int":
            unbounded |= np.maximum(np.abs(low), np.abs(high)) > EXACT
        else:  # 0.0 * -1.0 is -0.0
            low, high = np.where(low == 0, -_TINY, low), np.where(high == 0, _TINY, high)
        low, high = np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high)
        return Range(low, high, null, value, a.kind)

    return compute


def _sum(a: Range, b: Range) -> tuple[Numbers, Numbers]:
    return a.low + b.low, a.high + b.high


def _difference(a: Range, b: Range) -> tuple[Numbers, Numbers]:
    return a.low - b.high, a.high - b.low


def _extremes(corners: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    every = np.array(corners)
    return every.min(axis=0), every.max(axis=0)


def _product(a: Range, b: Range) -> tuple[Numbers, Numbers]:
    return _extremes([x * y for x in (a.low, a.high) for y in (b.low, b.high)])


def _quotient(a: Range, b: Range) -> tuple[Numbers, Numbers]:
    corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    if a.kind == "int":
        corners = [np.trunc(c) for c in corners]
    low, high = _extremes(corners)
    crosses = (b.low <= 0) & (b.high >= 0)
    return np.where(crosses, -np.inf, low), np.where(crosses, np.inf, high)


def _of_number(compute: NumberFunction) -> Callable[[Sequence[Range]], Range]:
    """The range of a function of a floating-point number and, if it has one, a constant."""

    def find(parts: Sequence[Range]) -> Range:
        a, *others = parts
        null, value = a.null.copy(), a.value.copy()
        for other in others:
            null, value = null | other.null, value & other.value
        constant = {float(low) for o in others for low in o.low} or {0.0}
        known = all(bool((o.single & o.value).all()) for o in others) and len(constant) == 1
        if a.kind != "float" or not known:
            return _where_valid(unknown_range(len(a), null=null), value)
        with np.errstate(all="ignore"):
            low, high = compute(a.low, a.high, constant.pop())
        unbounded = ~np.isfinite([a.low, a.high, low, high]).all(axis=0)
        low, high = np.where(low == 0, -_TINY, low), np.where(high == 0, _TINY, high)
        low, high = np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high)
        return Range(low, high, null, value, "float")

    return find


def _null_if(parts: Sequence[Range]) -> Range:
    a, b = parts
    return Range(a.low, a.high, a.null | (a.value & b.value), a.value, a.kind)


def _cast(expr: Node, part: Range) -> Range:
    own = ExpressionMessage.FromString(expr.template).cast.type
    to = own.WhichOneof("kind")
    is_unsigned = to in ("i32", "i64") and getattr(own, to).type_variation_reference
    if part.kind in (*WHOLE, "bool") and not is_unsigned and to in ("i32", "i64", "fp64"):
        within = (part.low >= -(2.0**31)) & (part.high < 2.0**31)
        if to != "i32" or bool(within[part.value].all()):
            kind = {"fp64": "float", "i64": "int"}.get(to, "narrow")
            return Range(part.low, part.high, part.null, part.value, kind)
    if part.kind == "float" and to == "fp64":
        return part
    if part.kind == "float" and not is_unsigned and to in ("i32", "i64"):
        low, high = np.trunc(part.low), np.trunc(part.high)
        if bool((np.maximum(np.abs(low), np.abs(high)) < 2.0**31)[part.value].all()):
            kind = "int" if to == "i64" else "narrow"
            return Range(low, high, part.null, part.value, kind)
    return _where_valid(unknown_range(len(part), null=part.null), part.value)


_COMPARISONS: dict[str, Callable[[Sequence[Range]], Range]] = {
    "lt": _comparison(_less),
    "lte": _comparison(_at_most),
    "gt": _comparison(_exchange(_less)),
    "gte": _comparison(_exchange(_at_most)),
    "equal": _comparison(_same),
    "not_equal": _comparison(_negate(_same)),
}
_FUNCTIONS: dict[str, Callable[[Sequence[Range]], Range]] = {
    **_COMPARISONS,
    "and": lambda parts: _connect(parts, conjunction=True),
    "or": lambda parts: _connect(parts, conjunction=False),
    "not": _not,
    "is_true": _test(true=True),
    "is_not_true": _test(true=True, no=True),
    "is_false": _test(false=True),
    "is_not_false": _test(false=True, no=True),
    "is_unknown": _test(null=True),
    "is_not_unknown": _test(null=True, no=True),
    "is_null": _null_test(no=False),
    "is_not_null": _null_test(no=True),
    "if_then": _case,
    "coalesce": _coalesce,
    "singular_or_list": _among,
    "least": _bounded_by(least=True),
    "greatest": _bounded_by(least=False),
    "add": _arithmetic(_sum),
    "subtract": _arithmetic(_difference),
    "multiply": _arithmetic(_product),
    "divide": _arithmetic(_quotient),
    "nullif": _null_if,
    **{name: _of_number(compute) for name, compute in NUMBER_FUNCTIONS.items()},
    **dict.fromkeys(("cast", "get_field", "array_element"), lambda ps: unknown_range(len(ps[0]))),
}
