"""From the bytes of a Substrait plan to nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from google.protobuf.message import Message
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Rel as RelMessage

from blendfusion.datafusion.substrait.grouping_sets import GroupingSets, numbers_of_keys
from blendfusion.datafusion.substrait.messages import parsed_plan
from blendfusion.datafusion.substrait.plan_details import PlanDetails, Restorer
from blendfusion.datafusion.substrait.truth_test_bug import compare_truth
from blendfusion.errors import PlanError
from blendfusion.planner.ir.builders import boolean_literal, function, project, text_null
from blendfusion.planner.ir.joins import JOIN_NAMES, join_width
from blendfusion.planner.ir.messages import holes, serialize
from blendfusion.planner.ir.nodes import Ask, Expr, Field, Node, Plan, Rel, Root, all_fields
from blendfusion.udfs.declare.call_registry import CALLS


def read(
    data: bytes,
    grouping_sets: Sequence[GroupingSets] | None = None,
    details: PlanDetails | None = None,
) -> Root:
    """The tree of a Substrait plan; functions that stand for calls become ``Ask``.

    ``grouping_sets`` has one entry per aggregate with several sets, from the top; None if each key
    has an expression of its own. ``details`` is what the plan has beside its Substrait. Raises
    PlanError for plans that rules cannot move: correlated references, nested fields.
    """
    message = parsed_plan(data)
    functions = {
        e.extension_function.function_anchor: e.extension_function.name
        for e in message.extensions
        if e.WhichOneof("mapping_type") == "extension_function"
    }
    root = message.relations[0].root
    reader = _Reader(functions, grouping_sets, Restorer(details or PlanDetails()))
    plan = reader.rel(root.input)
    reader.restorer.check_end()
    if reader.sets:
        raise PlanError("grouping sets in a place where Substrait does not say which they are")
    return Root(plan, tuple(root.names))


class _Reader:
    """Reads messages from the inside out. It clears what it has read, which avoids copies."""

    def __init__(
        self,
        functions: Mapping[int, str],
        grouping_sets: Sequence[GroupingSets] | None,
        restorer: Restorer,
    ) -> None:
        self.functions = functions
        self.restorer = restorer
        self.sets = None if grouping_sets is None else deque(grouping_sets)

    def rel(self, message: RelMessage) -> Plan:
        kind = message.WhichOneof("rel_type")
        if kind is None:
            raise PlanError("an empty relation")
        body = getattr(message, kind)
        sets = self._sets_of(kind, body)
        inputs, exprs = self._cut(body)
        emit = self._take_emit(body)
        if kind == "aggregate":
            inputs, exprs = _keys_once(body, inputs, exprs, sets)
            # The (otherwise unused) hint holds function names, so that a template does not depend
            # on the numbering of one plan.
            body.common.hint.output_names.extend(
                self.functions[m.measure.function_reference] for m in body.measures
            )
            for measure in body.measures:
                measure.measure.function_reference = 0
        if kind == "read" and body.HasField("virtual_table"):
            # DataFusion writes two columns of the same name, and refuses to read them.
            body.base_schema.names[:] = _apart(body.base_schema.names)
        if kind == "project":
            assert len(inputs) == 1
            columns = (*all_fields(inputs[0].width), *exprs)
            if emit is not None:
                if max(emit, default=0) >= len(columns):
                    raise PlanError("a single grouping set, the number of which is a column")
                columns = tuple(columns[i] for i in emit)
            return Rel("project", b"", inputs, columns, len(columns))
        if kind == "join" and not body.HasField("expression"):
            # DataFusion writes an uncorrelated EXISTS without a condition, and refuses to read it.
            body.expression.SetInParent()
            exprs = (boolean_literal(True),)
        rel = Rel(kind, serialize(message), inputs, exprs, _width(kind, body, inputs))
        if emit is None:
            return rel
        return project(rel, tuple(Field(i) for i in emit))

    def _sets_of(self, kind: str, body: Message) -> GroupingSets | None:
        if self.sets is None or kind != "aggregate" or len(body.groupings) < 2:
            return None
        if not self.sets:
            raise PlanError("grouping sets in a place where Substrait does not say which they are")
        return self.sets.popleft()

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
        for hole in holes(body):
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
                # DataFusion nests them in pairs, and cannot read back more than thirty.
                return function(name, tuple(map(self.expr, self._chain(message, name))))
        if kind == "literal" and message.literal.null.WhichOneof("kind") == "user_defined":
            return text_null()
        # CASE x WHEN v …: DataFusion writes x as a first clause without a result.
        simple = kind == "if_then" and not message.if_then.ifs[0].HasField("then")
        self.restorer.subqueries += kind == "subquery"
        rels, children = self._cut(message)
        self.restorer.subqueries -= kind == "subquery"
        if simple:
            del message.if_then.ifs[0]
            children = _search_case(children, len(message.if_then.ifs))
        name = str(kind)
        if kind == "scalar_function":
            name = self.functions[message.scalar_function.function_reference]
            call = CALLS.get(name)
            if call is not None:
                return Ask(call, children)
            message.scalar_function.function_reference = 0
        elif kind == "window_function":
            window = message.window_function
            name = self.restorer.restore_frame(
                "window:" + self.functions[window.function_reference], window
            )
            window.function_reference = 0
        elif kind == "cast":
            self.restorer.zoned_cast(message)
        elif kind == "literal":
            literal = Node(name, serialize(message))
            return self.restorer.zoned_literal(literal, message.literal)
        return Node(name, serialize(message), children, rels)

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
    """``names`` if all are distinct, else each with its position."""
    if len(set(names)) == len(names):
        return list(names)
    return [f"{i}:{name}" for i, name in enumerate(names)]


def _search_case(children: tuple[Expr, ...], branches: int) -> tuple[Expr, ...]:
    """CASE x WHEN v THEN … rewritten as CASE WHEN x = v THEN …."""
    base, *rest = children
    for i in range(0, 2 * branches, 2):
        rest[i] = function("equal", (base, rest[i]))
    return tuple(rest)


def _keys_once(
    body: Message, inputs: tuple[Plan, ...], exprs: tuple[Expr, ...], sets: GroupingSets | None
) -> tuple[tuple[Plan, ...], tuple[Expr, ...]]:
    """(inputs, expressions) of an aggregate with each group key once, as in DataFusion's output.

    DataFusion's Substrait repeats a key for each of its grouping sets. Of two keys that are the
    same expression, one becomes a column of the input, since DataFusion reads equal keys as one.
    """
    n = len(exprs) - len(body.grouping_expressions)
    repeated = exprs[n:]
    if len(body.groupings) > 1:
        repeated = tuple(map(compare_truth, repeated))
    references = [list(grouping.expression_references) for grouping in body.groupings]
    numbers = numbers_of_keys(references, repeated, sets)
    keys = [*dict(sorted(zip(numbers, repeated, strict=True), key=itemgetter(0))).values()]
    for grouping in body.groupings:
        # DataFusion also writes the keys here, in a field that Substrait has retired.
        grouping.DiscardUnknownFields()
        grouping.expression_references[:] = [numbers[i] for i in grouping.expression_references]
    del body.grouping_expressions[len(keys) :]
    if len({*keys}) < len(keys):
        (source,) = inputs
        columns: list[Expr] = list(all_fields(source.width))
        for i, key in enumerate(keys):
            if key in keys[:i]:
                keys[i] = Field(len(columns))
                columns.append(key)
        inputs = (project(source, tuple(columns)),)
    return inputs, (*exprs[:n], *keys)


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
        name = JOIN_NAMES.get(body.type, "other")
        return join_width(name, inputs[0].width, inputs[1].width)
    if kind == "aggregate":
        n_sets = len(body.groupings)
        n_keys = len(body.grouping_expressions)
        return n_keys + len(body.measures) + (n_sets > 1)
    raise PlanError(f"a relation of kind '{kind}'")
