"""A plan as a tree of frozen nodes: the only file that makes plans of Substrait's messages, and back.

``read`` turns the bytes of a Substrait plan into nodes, ``write`` turns nodes back. A node keeps
its message with the nested relations and expressions cut out (its *template*), so that whatever
DataFusion puts into a message survives the round trip; what a rule may change, inputs,
expressions and calls, stands beside it as tuples.

Expressions name the columns of their relation's inputs by position (``Field``): for a join, the
columns of the left input come first. Every relation's output is exactly ``width`` columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from google.protobuf.message import DecodeError, Message
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import JoinRel as JoinRelMessage
from substrait.proto import Plan as PlanMessage
from substrait.proto import Rel as RelMessage
from substrait.proto import SetRel as SetRelMessage
from substrait.proto import SimpleExtensionDeclaration
from substrait.proto import Type as TypeMessage

from blendfusion.errors import PlanError
from blendfusion.planner.leaf import is_leaf
from blendfusion.udfs.call import CALLS, Call

# --- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the relation's inputs, by position."""

    index: int


@dataclass(frozen=True, slots=True)
class Ask:
    """An ingredient call on argument expressions. Equal asks have equal answers."""

    call: Call
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """Any other expression: ``name`` is a function's name, or Substrait's word for the rest."""

    name: str
    template: bytes
    children: tuple[Expr, ...] = ()
    rels: tuple[Plan, ...] = ()
    """Relations of a subquery expression."""


Expr: TypeAlias = "Field | Ask | Node"


# --- relations -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rel:
    """A relation of Substrait: ``kind`` is its word there (read, filter, join, aggregate, …).

    ``exprs`` are its expressions in the order in which the message holds them; for a project
    they are exactly the output columns.
    """

    kind: str
    template: bytes
    inputs: tuple[Plan, ...]
    exprs: tuple[Expr, ...]
    width: int

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.template, self.inputs, self.exprs))

    def __hash__(self) -> int:
        return self._hash

    def with_inputs(self, *inputs: Plan) -> Rel:
        return replace(self, inputs=inputs)


@dataclass(frozen=True)
class Block:
    """What runs outside DataFusion: ``SELECT select FROM source WHERE where LIMIT offset, count``.

    All row by row and in the order of the source. ``where`` holds the conjuncts that need a model,
    in the order in which they are tried; ``select`` the output columns; both name columns of
    the source. ``count`` None: no limit.
    """

    source: Plan
    where: tuple[Expr, ...]
    select: tuple[Expr, ...]
    offset: int = 0
    count: int | None = None

    @property
    def width(self) -> int:
        return len(self.select)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.source,)

    @property
    def limited(self) -> bool:
        return self.count is not None or self.offset > 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.source, self.where, self.select, self.offset, self.count))

    def __hash__(self) -> int:
        return self._hash

    def with_inputs(self, source: Plan) -> Block:
        return replace(self, source=source)


@dataclass(frozen=True, slots=True)
class Stored:
    """The output of a pipeline that ran earlier: stage ``stage``, ``width`` columns."""

    stage: int
    width: int

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


Plan: TypeAlias = "Rel | Block | Stored"


# --- looking at expressions ----------------------------------------------------------------------


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The expressions right below ``expr``."""
    if isinstance(expr, Ask):
        return expr.args
    return expr.children if isinstance(expr, Node) else ()


def walk(expr: Expr) -> Iterator[Expr]:
    """``expr`` and everything below it, parents first; relations of subqueries are not entered."""
    yield expr
    for part in parts(expr):
        yield from walk(part)


def asks(expr: Expr) -> list[Ask]:
    """The calls in ``expr``, outermost first, each once."""
    return list(dict.fromkeys(e for e in walk(expr) if isinstance(e, Ask)))


def needs_model(expr: Expr) -> bool:
    """True if a call of this query level stands anywhere in ``expr``."""
    return any(isinstance(e, Ask) for e in walk(expr))


def fields(expr: Expr) -> set[int]:
    """The input columns that ``expr`` reads."""
    return {e.index for e in walk(expr) if isinstance(e, Field)}


def substitute(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """``expr`` with every subexpression for which ``change`` returns one replaced, from the top."""
    changed = change(expr)
    if changed is not None:
        return changed
    below = parts(expr)
    if not below:
        return expr
    new = tuple(substitute(part, change) for part in below)
    if new == below:
        return expr
    if isinstance(expr, Ask):
        return replace(expr, args=new)
    assert isinstance(expr, Node)
    return replace(expr, children=new)


def inline(expr: Expr, columns: tuple[Expr, ...]) -> Expr:
    """``expr`` over a relation whose column i is ``columns[i]``, as an expression over its input."""
    return substitute(expr, lambda e: columns[e.index] if isinstance(e, Field) else None)


def windows(expr: Expr) -> list[Expr]:
    """The window functions in ``expr``, outermost first."""
    return [e for e in walk(expr) if isinstance(e, Node) and e.name.startswith("window:")]


def has_window(expr: Expr) -> bool:
    return bool(windows(expr))


def literal_like(expr: Expr) -> bool:
    """True if ``expr`` has the same value on every row: it reads no column and asks nothing."""
    return not any(isinstance(e, Field | Ask) for e in walk(expr)) and not is_volatile(expr)


def is_volatile(expr: Expr) -> bool:
    """True if ``expr`` may give another value each time it is evaluated."""
    return any(isinstance(e, Node) and e.name in _VOLATILE for e in walk(expr))


GATES = ("and", "or", "if_then", "coalesce", "nullif")
"""Expressions whose parts are evaluated only where they matter."""

_VOLATILE = frozenset({"random", "uuid", "uuidv4"})


def asks_itself(block: Block) -> bool:
    """True if a block has calls of its own."""
    return any(map(needs_model, (*block.where, *block.select)))


def is_volatile_block(block: Block) -> bool:
    """True if a block may give other rows each time it runs over the same source."""
    return any(map(is_volatile, (*block.where, *block.select)))


def may_move(block: Block) -> bool:
    """True if a block gives the same for a row whatever other rows stand beside it, or came before."""
    return not block.limited and not is_volatile_block(block)


def shift(expr: Expr, by: int) -> Expr:
    """``expr`` with every column moved to the right by ``by``."""
    return substitute(expr, lambda e: Field(e.index + by) if isinstance(e, Field) else None)


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a conjunction, nested ones flattened, in the order in which they are written."""
    if isinstance(expr, Node) and expr.name == "and":
        return [c for child in expr.children for c in conjuncts(child)]
    return [expr]


def through_projection(plan: Plan) -> tuple[tuple[Expr, ...], Plan]:
    """(the columns of ``plan``, the relation below it that they read): those of a projection without
    windows and its input, or of ``plan`` itself."""
    if isinstance(plan, Rel) and plan.kind == "project" and not any(map(has_window, plan.exprs)):
        return plan.exprs, plan.inputs[0]
    return all_fields(plan.width), plan


def all_fields(width: int) -> tuple[Field, ...]:
    return tuple(Field(i) for i in range(width))


# --- building ------------------------------------------------------------------------------------


def conjunction(terms: tuple[Expr, ...]) -> Expr:
    """The terms joined by AND; at least one."""
    if len(terms) == 1:
        return terms[0]
    return function("and", terms)


def function(name: str, args: tuple[Expr, ...]) -> Node:
    """A call of a scalar function of DataFusion's."""
    message = ExpressionMessage()
    message.scalar_function.SetInParent()
    for _ in args:
        message.scalar_function.arguments.add().value.SetInParent()
    return Node(name, _bytes(message), args)


def filtered(source: Plan, terms: tuple[Expr, ...]) -> Plan:
    """``source`` with only the rows for which every term is true; ``source`` itself for none."""
    if not terms:
        return source
    message = RelMessage()
    message.filter.condition.SetInParent()
    message.filter.input.SetInParent()
    return Rel("filter", _bytes(message), (source,), (conjunction(terms),), source.width)


def projected(source: Plan, columns: tuple[Expr, ...]) -> Plan:
    """``source`` with exactly ``columns``; ``source`` itself if they are all of its own."""
    if columns == all_fields(source.width):
        return source
    return Rel("project", b"", (source,), columns, len(columns))


def limited(source: Plan, offset: int, count: int | None) -> Plan:
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
    return Rel("fetch", _bytes(message), (source,), tuple(exprs), source.width)


def cast_to_text(expr: Expr) -> Expr | None:
    """What ``expr`` casts to text; None if it is no such cast."""
    if isinstance(expr, Node) and expr.name == "cast":
        kind = ExpressionMessage.FromString(expr.template).cast.type
        if kind.WhichOneof("kind") == "string":
            return expr.children[0]
    return None


def boolean_literal(value: bool) -> Node:
    message = ExpressionMessage()
    message.literal.boolean = value
    return Node("literal", _bytes(message))


def text_null() -> Node:
    """NULL, as text."""
    message = ExpressionMessage()
    message.literal.null.string.nullability = TypeMessage.NULLABILITY_NULLABLE
    return Node("literal", _bytes(message))


def case(branches: Sequence[tuple[Expr, Expr]], otherwise: Expr | None) -> Node:
    """CASE WHEN condition THEN result … ELSE otherwise END; NULL for no ``otherwise``."""
    message = ExpressionMessage()
    for _ in branches:
        pair = message.if_then.ifs.add()
        getattr(pair, "if").SetInParent()
        pair.then.SetInParent()
    children = tuple(e for pair in branches for e in pair)
    if otherwise is not None:
        getattr(message.if_then, "else").SetInParent()
        children = (*children, otherwise)
    return Node("if_then", _bytes(message), children)


def integer_literal(value: int) -> Node:
    message = ExpressionMessage()
    message.literal.i64 = value
    return Node("literal", _bytes(message))


def fetch_bounds(rel: Rel) -> tuple[int, int | None]:
    """(offset, count) of a fetch; count None where it has none. PlanError if not literal."""
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


def table_names(rel: Rel) -> tuple[str, ...]:
    """The parts of the name of the table that a read reads; () for literal rows."""
    return tuple(RelMessage.FromString(rel.template).read.named_table.names)


_JOIN_NAMES = {
    number: name.removeprefix("JOIN_TYPE_").lower()
    for name, number in JoinRelMessage.JoinType.items()
}


def join_type(rel: Rel) -> str:
    """inner, left, right, outer, left_semi, left_anti, left_mark, right_semi, … (Substrait's words)."""
    if rel.kind == "cross":
        return "inner"
    return str(_JOIN_NAMES.get(RelMessage.FromString(rel.template).join.type, "other"))


def joined(left: Plan, right: Plan, terms: tuple[Expr, ...], kind: str = "inner") -> Rel:
    """The join of two plans on every term, of a kind that ``join_type`` names; for none, of every
    row with every row."""
    message = RelMessage()
    if not terms and kind == "inner":
        message.cross.left.SetInParent()
        message.cross.right.SetInParent()
        return Rel("cross", _bytes(message), (left, right), (), left.width + right.width)
    message.join.left.SetInParent()
    message.join.right.SetInParent()
    message.join.expression.SetInParent()
    message.join.type = JoinRelMessage.JoinType.Value(f"JOIN_TYPE_{kind.upper()}")
    condition = conjunction(terms or (boolean_literal(True),))
    width = _join_width(kind, left.width, right.width)
    return Rel("join", _bytes(message), (left, right), (condition,), width)


def _join_width(kind: str, left: int, right: int) -> int:
    if kind in ("left_semi", "left_anti"):
        return left
    if kind in ("right_semi", "right_anti"):
        return right
    if kind in ("inner", "outer", "left", "right"):
        return left + right
    if kind == "left_mark":
        return left + 1
    raise PlanError(f"a join of type {kind}")


def is_union_all(plan: Plan) -> bool:
    """True for the rows of all inputs, one after the other."""
    if not isinstance(plan, Rel) or plan.kind != "set":
        return False
    op = RelMessage.FromString(plan.template).set.op
    return bool(op == SetRelMessage.SET_OP_UNION_ALL)


def side_of(expr: Expr, n_left: int) -> str | None:
    """The side of a join that ``expr`` reads; None if both (or neither)."""
    read = fields(expr)
    if read and all(i < n_left for i in read):
        return "left"
    if read and all(i >= n_left for i in read):
        return "right"
    return None


KEY_COMPARISONS = ("equal", "is_not_distinct_from")
"""What a hash join can compare its keys by."""


def is_key(term: Expr, n_left: int) -> bool:
    """True for an equality of one side with the other: a hash join can use it."""
    if not isinstance(term, Node) or term.name not in KEY_COMPARISONS:
        return False
    return {side_of(child, n_left) for child in term.children} == {"left", "right"}


@dataclass(frozen=True, slots=True)
class Measure:
    """One aggregate of an aggregate relation. ``exprs``: sort keys, then arguments, then filter."""

    name: str
    template: bytes
    exprs: tuple[Expr, ...]
    n_sorts: int
    n_args: int

    @property
    def args(self) -> tuple[Expr, ...]:
        return self.exprs[self.n_sorts : self.n_sorts + self.n_args]

    @property
    def filter(self) -> Expr | None:
        """The condition of its FILTER clause."""
        rest = self.exprs[self.n_sorts + self.n_args :]
        return rest[0] if rest else None


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate relation taken apart: group keys and measures; ``template`` holds the rest.

    Its output is the keys, then, with several grouping sets, the set's number, then the measures.
    """

    template: bytes
    keys: tuple[Expr, ...]
    measures: tuple[Measure, ...]

    @property
    def n_before_measures(self) -> int:
        """The columns of the output before the first measure."""
        return len(self.keys) + (len(RelMessage.FromString(self.template).aggregate.groupings) > 1)


def aggregation(rel: Rel) -> Aggregation:
    """Take an aggregate relation apart; ``aggregated`` puts it together again."""
    message = RelMessage.FromString(rel.template)
    names = [_measure_name(i, rel) for i in range(len(message.aggregate.measures))]
    exprs = iter(rel.exprs)
    measures = []
    for name, measure in zip(names, message.aggregate.measures, strict=True):
        holder = RelMessage()
        holder.aggregate.measures.add().CopyFrom(measure)
        own = tuple(next(exprs) for _ in _holes(holder))
        inner = measure.measure
        counts = len(inner.sorts), len(inner.arguments)
        measures.append(Measure(name, _bytes(holder), own, *counts))
    del message.aggregate.measures[:]
    del message.aggregate.grouping_expressions[:]
    return Aggregation(_bytes(message), tuple(exprs), tuple(measures))


def _measure_name(position: int, rel: Rel) -> str:
    # The name stands in the type URL-free field "hint" of the template: see _Reader.rel.
    message = RelMessage.FromString(rel.template)
    return str(message.aggregate.common.hint.output_names[position])


def aggregated(source: Plan, agg: Aggregation) -> Rel:
    """The aggregate relation of ``agg`` over ``source``."""
    message = RelMessage.FromString(agg.template)
    message.aggregate.input.SetInParent()
    del message.aggregate.common.hint.output_names[:]
    for measure in agg.measures:
        holder = RelMessage.FromString(measure.template)
        message.aggregate.measures.add().CopyFrom(holder.aggregate.measures[0])
        message.aggregate.common.hint.output_names.append(measure.name)
    for _ in agg.keys:
        message.aggregate.grouping_expressions.add().SetInParent()
    exprs = tuple(e for m in agg.measures for e in m.exprs) + agg.keys
    width = len(agg.keys) + len(agg.measures) + (len(message.aggregate.groupings) > 1)
    return Rel("aggregate", _bytes(message), (source,), exprs, width)


def distinct(source: Plan, key: Expr) -> Rel:
    """The distinct values of ``key`` over ``source``, one column."""
    message = RelMessage()
    message.aggregate.groupings.add().expression_references.append(0)
    return aggregated(source, Aggregation(_bytes(message), (key,), ()))


# --- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Root:
    """A whole plan: the tree and the names of its output columns (nested ones included)."""

    plan: Plan
    names: tuple[str, ...]


def read(data: bytes) -> Root:
    """The tree of a Substrait plan; functions that stand for calls become ``Ask``.

    Raises PlanError for what rules cannot move: correlated references, nested fields.
    """
    message = _parsed(data)
    functions = {
        e.extension_function.function_anchor: e.extension_function.name
        for e in message.extensions
        if e.WhichOneof("mapping_type") == "extension_function"
    }
    root = message.relations[0].root
    return Root(_Reader(functions).rel(root.input), tuple(root.names))


def _parsed(data: bytes) -> PlanMessage:
    _allow_deep_nesting(True)
    try:
        return PlanMessage.FromString(data)
    except DecodeError as problem:
        raise PlanError("a plan that is nested too deeply for protobuf") from problem
    finally:
        _allow_deep_nesting(False)


def _allow_deep_nesting(allow: bool) -> None:
    # Protobuf stops at 100 nested messages, a chain of 25 joins, unless told otherwise. Its
    # implementation in C has this switch; the one in Python needs none.
    with suppress(ImportError):
        from google._upb import _message  # type: ignore[import-untyped]

        _message.SetAllowOversizeProtos(allow)


class _Reader:
    """Takes messages apart, from the inside out: what it has read it clears, and so copies nothing."""

    def __init__(self, functions: Mapping[int, str]) -> None:
        self.functions = functions

    def rel(self, message: RelMessage) -> Plan:
        kind = message.WhichOneof("rel_type")
        if kind is None:
            raise PlanError("an empty relation")
        body = getattr(message, kind)
        inputs, exprs = self._cut(body)
        emit = self._take_emit(body)
        if kind == "aggregate":
            exprs = _keys_once(body, exprs)
            # Function names ride along in the (otherwise unused) hint, so that a template
            # does not depend on the numbering of one plan.
            body.common.hint.output_names.extend(
                self.functions[m.measure.function_reference] for m in body.measures
            )
            for measure in body.measures:
                measure.measure.function_reference = 0
        if kind == "read" and body.HasField("virtual_table"):
            # DataFusion writes two columns of a name, and refuses to read them.
            body.base_schema.names[:] = _apart(body.base_schema.names)
        if kind == "project":
            assert len(inputs) == 1
            columns = (*all_fields(inputs[0].width), *exprs)
            if emit is not None:
                columns = tuple(columns[i] for i in emit)
            return Rel("project", b"", inputs, columns, len(columns))
        if kind == "join" and not body.HasField("expression"):
            # An uncorrelated EXISTS: DataFusion writes no condition, and refuses to read none.
            body.expression.SetInParent()
            exprs = (boolean_literal(True),)
        rel = Rel(kind, _bytes(message), inputs, exprs, _width(kind, body, inputs))
        if emit is None:
            return rel
        return projected(rel, tuple(Field(i) for i in emit))

    def _take_emit(self, body: Message) -> list[int] | None:
        common = getattr(body, "common", None)
        if common is None or common.WhichOneof("emit_kind") != "emit":
            return None
        mapping = list(common.emit.output_mapping)
        common.ClearField("emit")
        return mapping

    def _cut(self, body: Message) -> tuple[tuple[Plan, ...], tuple[Expr, ...]]:
        rels: list[Plan] = []
        exprs: list[Expr] = []
        for hole in _holes(body):
            if isinstance(hole, RelMessage):
                rels.append(self.rel(hole))
            else:
                exprs.append(self.expr(hole))
            hole.Clear()
            hole.SetInParent()
        return tuple(rels), tuple(exprs)

    def expr(self, message: ExpressionMessage) -> Expr:
        kind = message.WhichOneof("rex_type")
        if kind == "selection":
            return self._field(message)
        if kind == "scalar_function":
            name = self.functions[message.scalar_function.function_reference]
            if name in ("and", "or"):
                # DataFusion nests them two by two, and cannot read back more than thirty.
                return function(name, tuple(map(self.expr, self._chain(message, name))))
        if kind == "literal" and message.literal.null.WhichOneof("kind") == "user_defined":
            return text_null()
        # CASE x WHEN v …: DataFusion writes x as a first clause without a result.
        simple = kind == "if_then" and not message.if_then.ifs[0].HasField("then")
        rels, children = self._cut(message)
        if simple:
            del message.if_then.ifs[0]
            children = _searched(children, len(message.if_then.ifs))
        name = str(kind)
        if kind == "scalar_function":
            name = self.functions[message.scalar_function.function_reference]
            if name in CALLS:
                return Ask(CALLS[name], children)
            message.scalar_function.function_reference = 0
        elif kind == "window_function":
            window = message.window_function
            name = "window:" + self.functions[window.function_reference]
            window.function_reference = 0
        return Node(name, _bytes(message), children, rels)

    def _chain(self, message: ExpressionMessage, name: str) -> Iterator[ExpressionMessage]:
        """The parts of nested calls of one function of two arguments, from the left."""
        waiting = [message]
        while waiting:
            part = waiting.pop()
            called = part.scalar_function
            if (
                part.WhichOneof("rex_type") == "scalar_function"
                and self.functions[called.function_reference] == name
            ):
                waiting += [a.value for a in reversed(called.arguments)]
            else:
                yield part

    def _field(self, message: ExpressionMessage) -> Field:
        selection = message.selection
        segment = selection.direct_reference
        if selection.WhichOneof("root_type") != "root_reference" or (
            segment.WhichOneof("reference_type") != "struct_field"
            or segment.struct_field.HasField("child")
        ):
            raise PlanError("a correlated or nested column reference")
        return Field(segment.struct_field.field)


def _apart(names: Sequence[str]) -> list[str]:
    """``names`` if no two are equal, else each with its place."""
    if len(set(names)) == len(names):
        return list(names)
    return [f"{i}:{name}" for i, name in enumerate(names)]


def _searched(children: tuple[Expr, ...], branches: int) -> tuple[Expr, ...]:
    """What CASE x WHEN v THEN … says, as CASE WHEN x = v THEN …"""
    base, *rest = children
    for i in range(0, 2 * branches, 2):
        rest[i] = function("equal", (base, rest[i]))
    return tuple(rest)


def _keys_once(body: Message, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The expressions of an aggregate with each group key once, as DataFusion has them in its output.

    Its Substrait repeats a key for every grouping set in which it stands.
    """
    n = len(body.grouping_expressions)
    keys = exprs[len(exprs) - n :]
    distinct = tuple(dict.fromkeys(keys))
    for grouping in body.groupings:
        # DataFusion writes the keys here too, in a field that Substrait has retired.
        grouping.DiscardUnknownFields()
        references = [distinct.index(keys[i]) for i in grouping.expression_references]
        grouping.expression_references[:] = references
    del body.grouping_expressions[len(distinct) :]
    return (*exprs[: len(exprs) - n], *distinct)


def _holes(message: Message) -> list[Message]:
    """The relations and expressions right inside ``message``, in the order of its fields."""
    found: list[Message] = []
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for item in value if _repeated(value) else (value,):
            if isinstance(item, RelMessage | ExpressionMessage):
                found.append(item)
            elif isinstance(item, Message):
                found.extend(_holes(item))
    return found


def _repeated(value: object) -> bool:
    return not isinstance(value, Message)


def _width(kind: str, body: Message, inputs: tuple[Plan, ...]) -> int:
    if kind == "read":
        if body.HasField("projection"):
            return len(body.projection.select.struct_items)
        return len(body.base_schema.struct.types)
    if kind in ("filter", "sort", "fetch", "set", "exchange"):
        return inputs[0].width
    if kind == "cross":
        return inputs[0].width + inputs[1].width
    if kind == "join":
        name = _JOIN_NAMES.get(body.type, "other")
        return _join_width(name, inputs[0].width, inputs[1].width)
    if kind == "aggregate":
        n_sets = len(body.groupings)
        n_keys = len(body.grouping_expressions)
        return n_keys + len(body.measures) + (n_sets > 1)
    raise PlanError(f"a relation of kind '{kind}'")


# --- writing -------------------------------------------------------------------------------------


def write(plan: Plan, stored: Mapping[int, bytes], names: Sequence[str] = ()) -> bytes:
    """The Substrait bytes of a plan without blocks and calls; its columns keep their places.

    ``stored`` gives, for each ``Stored`` leaf, the bytes of the relation that reads its table;
    ``names`` what its columns are called (nested ones included).
    """
    writer = _Writer(stored)
    message = PlanMessage()
    relation = message.relations.add()
    if names:
        relation.root.names.extend(names)
        writer.rel(plan, relation.root.input)
    else:
        writer.rel(plan, relation.rel)
    for name, anchor in writer.anchors.items():
        declaration = SimpleExtensionDeclaration()
        declaration.extension_function.function_anchor = anchor
        declaration.extension_function.name = name
        declaration.extension_function.extension_urn_reference = 2**32 - 1
        message.extensions.append(declaration)
    message.version.minor_number = 85
    message.version.producer = "blendfusion"
    return bytes(message.SerializeToString())


class _Writer:
    def __init__(self, stored: Mapping[int, bytes]) -> None:
        self.stored = stored
        self.anchors: dict[str, int] = {}

    def anchor(self, name: str) -> int:
        return self.anchors.setdefault(name, len(self.anchors))

    def rel(self, plan: Plan, into: RelMessage) -> None:
        if isinstance(plan, Stored):
            into.MergeFromString(self.stored[plan.stage])
            return
        if isinstance(plan, Block):
            raise PlanError("a block inside a DataFusion plan")
        if plan.kind == "project":
            self._project(plan, into)
            return
        into.MergeFromString(plan.template)
        if plan.kind == "read" and is_leaf(into.read.named_table.names):
            self._leaf(into)
            return
        body = getattr(into, plan.kind)
        self._fill(body, plan.inputs, plan.exprs)
        if plan.kind == "aggregate":
            for measure, name in zip(
                body.measures, list(body.common.hint.output_names), strict=True
            ):
                measure.measure.function_reference = self.anchor(name)
            body.common.ClearField("hint")

    def _project(self, plan: Rel, into: RelMessage) -> None:
        body = into.project
        self.rel(plan.inputs[0], body.input)
        start = plan.inputs[0].width
        body.common.emit.output_mapping.extend(range(start, start + len(plan.exprs)))
        for expr in plan.exprs:
            self.expr(expr, body.expressions.add())

    def _leaf(self, into: RelMessage) -> None:
        """A leaf is a view, and DataFusion does not read a choice of a view's columns: they are
        chosen above it."""
        if not into.read.HasField("projection"):
            return
        chosen = [item.field for item in into.read.projection.select.struct_items]
        whole = RelMessage()
        whole.read.CopyFrom(into.read)
        whole.read.ClearField("projection")
        width = len(whole.read.base_schema.struct.types)
        into.project.input.CopyFrom(whole)
        into.project.common.emit.output_mapping.extend(range(width, width + len(chosen)))
        for field in chosen:
            self.expr(Field(field), into.project.expressions.add())

    def _fill(self, body: Message, rels: tuple[Plan, ...], exprs: tuple[Expr, ...]) -> None:
        rest_rels, rest_exprs = iter(rels), iter(exprs)
        for hole in _holes(body):
            if isinstance(hole, RelMessage):
                self.rel(next(rest_rels), hole)
            else:
                assert isinstance(hole, ExpressionMessage)
                self.expr(next(rest_exprs), hole)

    def expr(self, expr: Expr, into: ExpressionMessage) -> None:
        if isinstance(expr, Field):
            selection = into.selection
            selection.direct_reference.struct_field.field = expr.index
            selection.direct_reference.struct_field.SetInParent()
            selection.root_reference.SetInParent()
            return
        if isinstance(expr, Ask):
            raise PlanError("a call inside a DataFusion plan")
        into.MergeFromString(expr.template)
        self._fill(into, expr.rels, expr.children)
        if into.WhichOneof("rex_type") == "scalar_function":
            into.scalar_function.function_reference = self.anchor(expr.name)
        elif into.WhichOneof("rex_type") == "window_function":
            name = expr.name.removeprefix("window:")
            into.window_function.function_reference = self.anchor(name)


def read_relation(data: bytes) -> bytes:
    """The bytes of the relation of a plan that only reads one table."""
    return bytes(PlanMessage.FromString(data).relations[0].root.input.SerializeToString())


def has_lost_types(data: bytes) -> bool:
    """True for a plan with columns or casts of types that DataFusion writes, and does not read back.

    The literal NULL has such a type too; ``read`` takes it for a NULL of text.
    """
    message = _parsed(data)
    types = (e.extension_type for e in message.extensions)
    lost = {t.type_anchor for t in types if t.name in _LOST_TYPES}
    return bool(lost) and any(t.user_defined.type_reference in lost for t in _types(message))


_LOST_TYPES = frozenset({"fp16", "null"})


def _types(message: Message) -> Iterator[TypeMessage]:
    """The user-defined types in a message, but for those of literals and of functions' results."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.name in ("literal", "output_type"):
            continue
        for item in value if _repeated(value) else (value,):
            if isinstance(item, TypeMessage) and item.WhichOneof("kind") == "user_defined":
                yield item
            elif isinstance(item, Message):
                yield from _types(item)


def _bytes(message: Message) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))
