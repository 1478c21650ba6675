"""Infers the constraint of an answer from the place of its call in a query."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlglot import exp

from blendfusion.language.query_text.comparisons import LiteralComparison, literal_comparisons
from blendfusion.language.query_text.relations import SITE, Use
from blendfusion.language.query_text.resolve_columns import References
from blendfusion.models.constraints.constraint import TIME
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import VALUE

_NUMERIC = (
    *(exp.Sum, exp.Avg, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
    *(exp.Median, exp.Abs, exp.Round, exp.Ceil, exp.Floor, exp.Sqrt, exp.Exp, exp.Ln, exp.Pow),
    *(exp.Sign, exp.Trunc, exp.Neg),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_BITWISE = (
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
    *(exp.BitwiseLeftShift, exp.BitwiseRightShift),
)
_LISTS = (exp.Unnest, exp.Explode, exp.ArraySize, exp.ArrayToString)
_OF_MOMENTS = (exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.DateBin)
_SAME = (
    *(exp.Coalesce, exp.Greatest, exp.Least, exp.Max, exp.Min, exp.AnyValue, exp.Any, exp.All),
    *(exp.First, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead),
)
"""Functions whose result is one of their arguments."""
_AROUND = (exp.Window, exp.Filter, exp.Order, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
"""The clauses of an aggregate, which do not change its type."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ORDERS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Greatest, exp.Least)
_TESTS = (exp.Predicate, exp.RegexpLike, exp.RegexpILike, exp.StartsWith, exp.EndsWith)
_CONDITIONS = (exp.Predicate, exp.Connector)
_MADE_OF = (exp.Func, exp.DPipe, exp.Paren)

_INTEGERS = {
    **{name: name for name in ("TINYINT", "SMALLINT", "INT", "BIGINT")},
    **{f"U{name}": f"{name} UNSIGNED" for name in ("TINYINT", "SMALLINT", "INT", "BIGINT")},
}
"""The names of whole numbers in DataFusion, by those of sqlglot."""
_NUMBERS = {"FLOAT", "DOUBLE", "DECIMAL"}
_NANOSECONDS = "TIMESTAMP(9)"
"""The meaning of TIMESTAMP in DataFusion."""
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME"}
_TIME = Constraint("regex", pattern=TIME)
_PERIOD = "(0|[1-9][0-9]{0,4}) (years|months|weeks|days|hours|minutes|seconds)"
_INTERVAL = Constraint("regex", pattern=f"{_PERIOD}( {_PERIOD}){{0,2}}")


class Context(NamedTuple):
    """The result of inference for a call."""

    constraint: Constraint | None = None
    """The constraint on its answers; None if nothing is inferred."""
    compared: tuple[LiteralComparison, ...] | None = None
    """The comparisons that are all it does with them; None: it does more."""
    cast: bool = False
    """It puts them beside something whose type only DataFusion knows, which may cast them, and says
    nothing more."""
    misplaced: Constraint | None = None
    """A result that keeps errors stands itself where such an answer is needed."""
    open: bool = False
    """A condition on it may hold of texts whose form is not that of the literals."""
    casts: tuple[str, ...] = ()
    """The types to which it casts the answers itself, as SQL; those of ``arrow_cast`` in quotes."""


def contexts(
    tree: exp.Expr, names: Iterable[str], refers: References, kept: Collection[str] = ()
) -> dict[str, Context]:
    """The inferred context of each function in ``names``, which stand for the calls of ``tree``.

    Columns that refer to a select item which is a call count as the call: see ``References``.
    Results of the functions in ``kept`` are structs; their answers are the field ``value``."""
    found = dict.fromkeys(names, Context())
    for node in tree.find_all(exp.Anonymous):
        if node.name in found:
            places, fields = _places([node], refers)
            if node.name in kept:
                values = [value for value in map(_value_of, places) if value is not None]
                values += [use.column for use in fields if use.fields == (VALUE,)]
                found[node.name] = _context_of_kept(node, _places(values, refers)[0], refers)
            else:
                found[node.name] = _context(places, refers)
    return found


def _places(starts: Sequence[exp.Expr], refers: References) -> tuple[list[exp.Expr], list[Use]]:
    """Where the value of some expressions is: there, as that of a subquery, and as that of columns;
    and the columns that take a field of it."""
    places, fields = list(starts), []
    seen = {id(place) for place in places}
    for place in places:  # grows
        uses = refers.uses(place)
        fields += [use for use in uses if use.fields]
        more = (use.column for use in uses if not use.fields)
        for found in (*more, _subquery_of(place), _passing(place)):
            if found is not None and id(found) not in seen:
                seen.add(id(found))
                places.append(found)
    return places, fields


def _passing(place: exp.Expr) -> exp.Expr | None:
    """The expression whose value may be that of its part at ``place``."""
    child, parent = _around(place)
    if isinstance(parent, exp.If) and child.arg_key == "true":
        return parent.parent
    if isinstance(parent, exp.Case) and child.arg_key == "default":
        return parent
    if isinstance(parent, _SAME) and child.arg_key in ("this", "expressions", "default"):
        is_list = isinstance(parent, exp.Any | exp.All) and not isinstance(child, exp.Subquery)
        return None if is_list else parent
    if isinstance(parent, (exp.Nullif, *_AROUND)) and child.arg_key == "this":
        return parent if not isinstance(parent, exp.Order) or parent.parent is not None else None
    return None


def _context(places: Sequence[exp.Expr], refers: References) -> Context:
    """The context of a call at these places, the call's own place first."""
    constraints = [_constraint_of_use(place) for place in places]
    constraint = combine([s for s in constraints if s is not None])
    cast = constraint is None and any(_is_coerced(p) or refers.is_column(p) for p in places)
    casts = [_cast_at(place) for place in places]
    # Around the call itself, a cast of moments to their own type is left out of the query.
    casts[1:] = [_NANOSECONDS if cast == "TIMESTAMP" else cast for cast in casts[1:]]
    return Context(
        constraint,
        literal_comparisons(places[0]),
        cast,
        open=any(map(_is_open, places)),
        casts=tuple(dict.fromkeys(filter(None, casts))),
    )


def _is_open(place: exp.Expr) -> bool:
    """Whether a condition may hold of texts that do not have the form of its literals: an order, a
    pattern, a column, or a function of the text."""
    _, parent = _around(place)
    use = _constraint_of_use(place)
    if isinstance(parent, _ORDERS) and use is not None:
        return bool(use.literals) and use.pattern != _DATE_SHAPE.pattern
    if use is not None or _is_part_of_call(place):
        return False
    while isinstance(parent, _MADE_OF) and not isinstance(parent, (*_TESTS, exp.AggFunc, *_SAME)):
        parent = parent.parent
    return isinstance(parent, _TESTS) and not isinstance(parent, exp.Is)


def _cast_at(place: exp.Expr) -> str | None:
    """The type to which the value at ``place`` is cast, where that may fail the query."""
    child, parent = _around(place)
    if isinstance(parent, exp.Cast) and not isinstance(parent, exp.TryCast):
        name = parent.to.this.name
        if name in _INTEGERS:
            return _INTEGERS[name]
        return None if _of_type(parent.to) is None else parent.to.sql()
    if isinstance(parent, exp.Anonymous) and parent.name.lower() == "arrow_cast":
        first, *_, kind = parent.expressions
        known = isinstance(kind, exp.Literal) and of_arrow(kind.name) is not None
        return kind.sql() if known and child is first else None
    return None


def _context_of_kept(node: exp.Expr, values: Sequence[exp.Expr], refers: References) -> Context:
    """The context of a call whose result keeps errors: that of its field ``value``."""
    if not values:
        needed = _constraint_of_use(node) or (Constraint() if _is_part_of_call(node) else None)
        return Context(misplaced=needed)
    context = _context(values, refers)
    # Only what the call's own place reads is known to be all that is read.
    return context if _value_of(node) is not None else context._replace(compared=None)


def _around(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """The value with its outermost parentheses, and the expression around them."""
    child, parent = node, node.parent
    while isinstance(parent, exp.Paren) or (
        isinstance(parent, exp.Subquery) and isinstance(child, exp.Subquery)
    ):
        child, parent = parent, parent.parent
    return child, parent


def _is_part_of_call(node: exp.Expr) -> bool:
    """The result is a value of another call."""
    _, parent = _around(node)
    return isinstance(parent, exp.Anonymous) and parent.name.startswith(SITE)


def _value_of(place: exp.Expr) -> exp.Expr | None:
    """The expression that takes the value out of the result at ``place``."""
    child, parent = _around(place)
    if isinstance(parent, exp.Bracket) and child.arg_key == "this":
        key = parent.expressions[0] if len(parent.expressions) == 1 else None
        if isinstance(key, exp.Literal) and key.is_string and key.this == VALUE:
            return parent
    return None


def _is_coerced(node: exp.Expr) -> bool:
    """DataFusion may cast the value to the type of something beside it."""
    _, parent = _around(node)
    part = isinstance(parent, exp.Func | exp.Binary | exp.Between | exp.In | exp.Array)
    return part and not _is_part_of_call(node)


def _subquery_of(node: exp.Expr) -> exp.Expr | None:
    """The subquery in which a call is all that is selected, or ALL around it: it stands for the
    call."""
    item = node
    while isinstance(item.parent, exp.Alias | exp.Paren):
        item = item.parent
    select = item.parent
    alone = isinstance(select, exp.Select) and select.expressions == [item]
    whole = select.parent if select is not None and alone else None
    return whole if isinstance(whole, exp.Subquery | exp.Any | exp.All) else None


def combine(constraints: Iterable[Constraint]) -> Constraint | None:
    """The constraint that meets several ones: a whole number is a number, and texts add up their
    literals.

    None if they contradict each other, or say nothing.
    """
    different = list(dict.fromkeys(constraints))
    if len(different) == 1:
        return different[0]
    kinds: dict[str, list[Constraint]] = {}
    for constraint in different:
        kinds.setdefault(constraint.kind, []).append(constraint)
    if set(kinds) == {"integer", "number"}:
        return Constraint("number")
    if set(kinds) <= {"text", "regex"} and kinds:
        literals = [lit for group in kinds.values() for c in group for lit in c.literals]
        return _text_like(tuple(dict.fromkeys(literals)))
    return next(iter(kinds.values()))[0] if len(kinds) == 1 else None


def _constraint_of_use(node: exp.Expr) -> Constraint | None:
    child, parent = _around(node)
    if parent is None:
        return None
    if _is_predicate_place(child, parent):
        return Constraint("boolean")
    if isinstance(parent, exp.Is):
        return Constraint("boolean") if isinstance(parent.expression, exp.Boolean) else None
    if isinstance(parent, exp.Cast):
        return _of_type(parent.to)
    if isinstance(parent, _COMPARISONS):
        other = parent.expression if child is parent.this else parent.this
        return _like([other])
    if isinstance(parent, exp.Between):
        sides = (parent.this, parent.args["low"], parent.args["high"])
        return _like([s for s in sides if s is not child])
    if isinstance(parent, exp.In) and child is parent.this:
        query = parent.args.get("query")
        return _like(parent.expressions or ([] if query is None else [query]))
    if isinstance(parent, exp.Case) and child is parent.this:
        return _like([branch.this for branch in parent.args["ifs"]])
    if isinstance(parent, exp.If) and child is parent.this:
        return _like([parent.parent.this]) if isinstance(parent.parent, exp.Case) else None
    if isinstance(parent, exp.Coalesce | exp.Greatest | exp.Least):
        return _like([e for e in (parent.this, *parent.expressions) if e is not child])
    if isinstance(parent, exp.Nullif) and child is parent.this:
        return _like([parent.expression])
    if isinstance(parent, _ARITHMETIC):
        return _beside(child, parent)
    if isinstance(parent, _NUMERIC) and child is parent.this:
        return Constraint("number")
    if isinstance(parent, _BITWISE):
        return Constraint("integer")
    if isinstance(parent, exp.LogicalAnd | exp.LogicalOr):
        return Constraint("boolean")
    if isinstance(parent, _OF_MOMENTS):
        return Constraint("date")
    if isinstance(parent, exp.Anonymous):
        return _of_argument(child, parent)
    return _of_list(child, parent)


def _beside(child: exp.Expr, parent: exp.Expr) -> Constraint:
    """The constraint of an operand of arithmetic."""
    left = child is parent.this
    other = parent.expression if left else parent.this
    if isinstance(other, exp.Interval):
        return Constraint("date")
    kind = _of_value(other)
    if kind is None or kind.kind != "date":
        return Constraint("number")
    # A date less a date is a number of days, a date and a number of days is a date.
    return Constraint("date" if left and isinstance(parent, exp.Sub) else "integer")


def _of_argument(child: exp.Expr, function: exp.Anonymous) -> Constraint | None:
    """The constraint of an argument of a function that sqlglot does not know."""
    name, arguments = function.name.lower(), function.expressions
    if name in ("date_part", "datepart") and child is arguments[-1]:
        return Constraint("date")
    if name in ("arrow_cast", "arrow_try_cast") and child is arguments[0]:
        kind = arguments[-1]
        return of_arrow(kind.name) if isinstance(kind, exp.Literal) else None
    if name in ("cardinality", "list_length", "array_has", "list_has", "list_contains"):
        return Constraint("list", item=Constraint("text")) if child is arguments[0] else None
    return None


def _of_list(child: exp.Expr, parent: exp.Expr) -> Constraint | None:
    """The constraint of what can only be a list."""
    if isinstance(parent, exp.Any | exp.All) and isinstance(child, exp.Subquery):
        return None
    if isinstance(parent, exp.Any | exp.All):
        comparison = parent.parent
        item = _like([comparison.this]) if isinstance(comparison, exp.Binary) else None
    elif isinstance(parent, exp.ArrayContains) and child is parent.this:
        item = _like([parent.expression])
    elif isinstance(parent, exp.Bracket) and child is parent.this:
        places = parent.expressions
        if not (len(places) == 1 and isinstance(places[0], exp.Literal) and places[0].is_int):
            return None
        item = None
    elif isinstance(parent, _LISTS):
        item = None
    else:
        return None
    plain = item is None or item.kind in ("text", "regex")
    return Constraint("list", item=Constraint("text") if plain else item)


def _is_predicate_place(child: exp.Expr, parent: exp.Expr) -> bool:
    if isinstance(parent, exp.Where | exp.Having | exp.And | exp.Or | exp.Not | exp.Qualify):
        return True
    if isinstance(parent, exp.If):
        case = parent.parent
        simple = isinstance(case, exp.Case) and case.this is not None
        return child.arg_key == "this" and not simple
    return isinstance(parent, exp.Join) and child.arg_key == "on"


def _of_type(kind: exp.DataType) -> Constraint | None:
    name = kind.this.name
    if name in _INTEGERS:
        return Constraint("integer")
    if name in _NUMBERS:
        return Constraint("number")
    if name == "BOOLEAN":
        return Constraint("boolean")
    if name == "DATE":
        return Constraint("date")
    if name in _TIMESTAMPS:
        return Constraint("timestamp")
    return {"TIME": _TIME, "INTERVAL": _INTERVAL}.get(name)


_ARROW = (
    (re.compile(r"U?Int\d+"), Constraint("integer")),
    (re.compile(r"Float\d+|Decimal\d+(?:\(.*\))?"), Constraint("number")),
    (re.compile(r"Boolean"), Constraint("boolean")),
    (re.compile(r"Date\d+"), Constraint("date")),
    (re.compile(r"Timestamp(?:\(.*\))?"), Constraint("timestamp")),
    (re.compile(r"Time(32|64)(?:\(.*\))?"), _TIME),
    (re.compile(r"Interval(?:\(.*\))?"), _INTERVAL),
)


def of_arrow(kind: str) -> Constraint | None:
    """The constraint of answers of a type of Arrow's; None for texts, and what no answer is."""
    return next((found for pattern, found in _ARROW if pattern.fullmatch(kind)), None)


def _like(others: list[exp.Expr]) -> Constraint | None:
    """The constraint of answers that are compared with these expressions."""
    values = [_of_value(other) for other in others]
    if not values or any(s is None for s in values):
        return None
    return combine([s for s in values if s is not None])


def _of_value(value: exp.Expr) -> Constraint | None:
    inner = value.this if isinstance(value, exp.Paren) else None
    if isinstance(inner, _CONDITIONS) and not isinstance(inner, exp.Is):
        return Constraint("boolean")
    if isinstance(value, exp.Paren | exp.Neg | exp.Any | exp.All | exp.Subquery):
        return _of_value(value.this)
    if isinstance(value, exp.Select):
        return _of_value(value.expressions[0]) if len(value.expressions) == 1 else None
    if isinstance(value, exp.Alias):
        return _of_value(value.this)
    if isinstance(value, exp.Is) or (isinstance(value, exp.Not) and isinstance(value.this, exp.Is)):
        # ``f > 2 IS TRUE`` is ``(f > 2) IS TRUE``; sqlglot reads ``f > (2 IS TRUE)``.
        test = value.this if isinstance(value, exp.Not) else value
        return _of_value(test.this)
    if isinstance(value, exp.Boolean | exp.Exists):
        return Constraint("boolean")
    if isinstance(value, exp.Literal):
        if value.is_string:
            return _text_like((value.this,))
        return Constraint("integer" if value.this.isdigit() else "number")
    if isinstance(value, exp.Cast):
        return _of_type(value.to)
    if isinstance(value, exp.CurrentDate | exp.Date):
        return Constraint("date")
    if isinstance(value, exp.CurrentTimestamp):
        return Constraint("timestamp")
    if isinstance(value, _ARITHMETIC):
        return combine([s for s in map(_of_value, (value.this, value.expression)) if s])
    return None


_SHAPES = (
    ("[A-Z]", re.compile(r"[A-Z]+")),
    ("[0-9]", re.compile(r"[0-9]+")),
)
_DATE_SHAPE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _text_like(literals: tuple[str, ...]) -> Constraint:
    """Text of the shape of ``literals``: codes (``CA``, ``42``) and dates give a pattern."""
    if literals and all(_DATE_SHAPE.fullmatch(text) for text in literals):
        return Constraint("regex", pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}", literals=literals)
    for characters, shape in _SHAPES:
        if literals and all(shape.fullmatch(text) for text in literals):
            lengths = sorted({len(text) for text in literals})
            bounds = str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]},{lengths[-1]}"
            return Constraint("regex", pattern=f"{characters}{{{bounds}}}", literals=literals)
    return Constraint("text", literals=literals)
