"""Builds and reads small nodes and relations: literals, filters, projections, limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Rel as RelMessage
from substrait.proto import Type as TypeMessage

from blendfusion.errors import PlanError
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    is_volatile,
)
from blendfusion.planner.ir.sorts import ASC, DESC, sorted_by

MIRRORED = {"gt": "lt", "gte": "lte", "lt": "gt", "lte": "gte", "equal": "equal"}
"""Comparisons, and those of the same operands in the other order."""


def sides_of(term: Expr) -> Iterator[tuple[Expr, Expr, str]]:
    """(one side of a comparison, the other one, its name in this order)"""
    if isinstance(term, Node) and len(term.children) == 2:
        one, other = term.children
        yield one, other, term.name
        yield other, one, MIRRORED.get(term.name, term.name)


def conjunction(terms: tuple[Expr, ...]) -> Expr:
    """The terms joined by AND; at least one."""
    if len(terms) == 1:
        return terms[0]
    return function("and", terms)


def function(name: str, args: tuple[Expr, ...]) -> Node:
    """A call of a scalar function of DataFusion."""
    return Node(name, _function_of(len(args)), args)


@lru_cache
def _function_of(n_args: int) -> bytes:
    message = ExpressionMessage()
    message.scalar_function.SetInParent()
    for _ in range(n_args):
        message.scalar_function.arguments.add().value.SetInParent()
    return serialize(message)


def in_list(value: Expr, items: Sequence[Expr]) -> Node:
    """``value IN (items)``."""
    message = ExpressionMessage()
    message.singular_or_list.value.SetInParent()
    for _ in items:
        message.singular_or_list.options.add()
    return Node("singular_or_list", serialize(message), (value, *items))


def in_rows(value: Expr, rows: Plan) -> Node:
    """``value IN (rows)``, of a plan of one column: TRUE or FALSE, never NULL."""
    message = ExpressionMessage()
    message.subquery.in_predicate.needles.add()
    message.subquery.in_predicate.haystack.SetInParent()
    return Node("subquery", serialize(message), (value,), (rows,))


def is_in_rows(expr: Expr) -> bool:
    """Whether ``expr`` is ``value IN (rows)`` of ``in_rows``."""
    return isinstance(expr, Node) and expr.name == "subquery" and len(expr.children) == 1


def rows_of(numbers: Sequence[Node]) -> Rel:
    """The whole-number literals ``numbers``, of one type, as rows of one column."""
    message = RelMessage()
    message.read.base_schema.names.append("n")
    columns = message.read.base_schema.struct
    columns.nullability = TypeMessage.NULLABILITY_REQUIRED
    kind = ExpressionMessage.FromString(numbers[0].template).literal.WhichOneof("literal_type")
    getattr(columns.types.add(), str(kind)).nullability = TypeMessage.NULLABILITY_REQUIRED
    for _ in numbers:
        message.read.virtual_table.expressions.add().fields.add()
    return Rel("read", serialize(message), (), tuple(numbers), 1)


def filter_rows(source: Plan, terms: tuple[Expr, ...]) -> Plan:
    """``source`` with only the rows for which every term is true; ``source`` itself for none, and
    for those of a filter at its top."""
    if isinstance(source, Rel) and source.kind == "filter":
        held = conjuncts(source.exprs[0])
        terms = tuple(t for t in terms if t not in held or is_volatile(t))
    if not terms:
        return source
    message = RelMessage()
    message.filter.condition.SetInParent()
    message.filter.input.SetInParent()
    return Rel("filter", serialize(message), (source,), (conjunction(terms),), source.width)


def project(source: Plan, columns: tuple[Expr, ...]) -> Plan:
    """``source`` with exactly ``columns``; ``source`` itself if they are its own columns."""
    if columns == all_fields(source.width):
        return source
    return Rel("project", b"", (source,), columns, len(columns))


def limit_rows(source: Plan, offset: int, count: int | None) -> Plan:
    """``source`` without its first ``offset`` rows, and at most ``count`` of the rest."""
    message = RelMessage()
    message.fetch.input.SetInParent()
    exprs: list[Expr] = []
    if offset:
        message.fetch.offset_expr.SetInParent()
        exprs.append(integer_literal(offset))
    if count is not None:
        message.fetch.count_expr.SetInParent()
        exprs.append(integer_literal(count))
    return Rel("fetch", serialize(message), (source,), tuple(exprs), source.width)


def order_rows(source: Plan, first: Field, *then: Field, descending: bool = True) -> Plan:
    """The rows of ``source`` by its first column, and then by others, ascending; NULL last."""
    return sorted_by(source, (first, *then), (DESC if descending else ASC,))


def text_literal(text: str) -> Node:
    message = ExpressionMessage()
    message.literal.string = text
    return Node("literal", serialize(message))


def cast_to_text(expr: Expr) -> Expr | None:
    """The operand of a cast to text, or to an image's bytes, as in arguments of calls; None for any
    other expression."""
    if isinstance(expr, Node) and expr.name == "cast":
        kind = ExpressionMessage.FromString(expr.template).cast.type
        if kind.WhichOneof("kind") in ("string", "binary"):
            return expr.children[0]
    return None


def boolean_literal(value: bool) -> Node:
    message = ExpressionMessage()
    message.literal.boolean = value
    return Node("literal", serialize(message))


def boolean_null() -> Node:
    """NULL, as a boolean."""
    message = ExpressionMessage()
    message.literal.null.bool.nullability = TypeMessage.NULLABILITY_NULLABLE
    return Node("literal", serialize(message))


def text_null() -> Node:
    """NULL, as text."""
    message = ExpressionMessage()
    message.literal.null.string.nullability = TypeMessage.NULLABILITY_NULLABLE
    return Node("literal", serialize(message))


def case(branches: Sequence[tuple[Expr, Expr]], otherwise: Expr | None) -> Node:
    """CASE WHEN condition THEN result … ELSE otherwise END; without ``otherwise``, ELSE NULL."""
    message = ExpressionMessage()
    for _ in branches:
        pair = message.if_then.ifs.add()
        getattr(pair, "if").SetInParent()
        pair.then.SetInParent()
    children = tuple(e for pair in branches for e in pair)
    if otherwise is not None:
        getattr(message.if_then, "else").SetInParent()
        children = (*children, otherwise)
    return Node("if_then", serialize(message), children)


def integer_literal(value: int) -> Node:
    message = ExpressionMessage()
    message.literal.i64 = value
    return Node("literal", serialize(message))


def float_literal(value: float) -> Node:
    message = ExpressionMessage()
    message.literal.fp64 = value
    return Node("literal", serialize(message))


def fetch_bounds(rel: Rel) -> tuple[int, int | None]:
    """(offset, count) of a fetch; count None without a limit. Raises PlanError if not literal."""
    message = RelMessage.FromString(rel.template).fetch
    exprs = iter(rel.exprs)
    offset, count = 0, None
    for descriptor, _ in message.ListFields():
        if descriptor.name == "offset_expr":
            offset = _literal_int(next(exprs))
        elif descriptor.name == "count_expr":
            count = _literal_int(next(exprs))
    return offset, count


def _literal_int(expr: Expr) -> int:
    if isinstance(expr, Node) and expr.name == "literal":
        literal = ExpressionMessage.FromString(expr.template).literal
        if literal.WhichOneof("literal_type") in ("i64", "i32"):
            return int(literal.i64 or literal.i32)
    raise PlanError("a LIMIT or OFFSET that is not a number")


def literal(expr: Expr) -> object:
    """The Python value of a text, boolean or whole-number literal; None for anything else."""
    if isinstance(expr, Node) and expr.name == "literal":
        message = ExpressionMessage.FromString(expr.template).literal
        kind = message.WhichOneof("literal_type")
        if kind in ("string", "boolean", "i8", "i16", "i32", "i64"):
            return getattr(message, kind)
    return None


def is_bigint_literal(expr: Node) -> bool:
    """Whether a literal is a signed whole number of 64 bits."""
    message = ExpressionMessage.FromString(expr.template).literal
    return message.WhichOneof("literal_type") == "i64" and not message.type_variation_reference


def is_null_literal(expr: Expr) -> bool:
    """Whether ``expr`` is NULL, of whatever type."""
    if not isinstance(expr, Node) or expr.name != "literal":
        return False
    message = ExpressionMessage.FromString(expr.template).literal
    return bool(message.WhichOneof("literal_type") == "null")


def table_names(rel: Rel) -> tuple[str, ...]:
    """The parts of a table's name in a read; () for literal rows."""
    return tuple(RelMessage.FromString(rel.template).read.named_table.names)
