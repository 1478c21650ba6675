"""Converts nodes to the bytes of a Substrait plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import Message
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Plan as PlanMessage
from substrait.proto import Rel as RelMessage
from substrait.proto import SimpleExtensionDeclaration

from blendfusion.datafusion.substrait.truth_test_bug import compare_truth
from blendfusion.errors import PlanError
from blendfusion.planner.ir.messages import holes, zoned_type
from blendfusion.planner.ir.nodes import Ask, Block, Expr, Field, Plan, Rel, StoredRows
from blendfusion.planner.ir.opaque_names import is_leaf


def write(
    plan: Plan, stored: Mapping[int, bytes], names: Sequence[str] = (), *, calls: bool = False
) -> bytes:
    """The Substrait bytes of a plan without blocks and calls; its columns keep their positions.

    ``stored`` has, for each ``StoredRows`` leaf, the bytes of the relation that reads its table;
    ``names`` the names of the columns (nested ones included). ``calls``: calls are written as the
    functions that stand for them. Raises PlanError for what cannot be written.
    """
    writer = _Writer(stored, calls)
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
    def __init__(self, stored: Mapping[int, bytes], calls: bool) -> None:
        self.stored = stored
        self.calls = calls
        self.anchors: dict[str, int] = {}

    def anchor(self, name: str) -> int:
        return self.anchors.setdefault(name, len(self.anchors))

    def rel(self, plan: Plan, into: RelMessage) -> None:
        if isinstance(plan, StoredRows):
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
        exprs = plan.exprs
        if plan.kind == "aggregate":
            exprs = tuple(map(compare_truth, exprs))
        self._fill(body, plan.inputs, exprs)
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
            self.expr(compare_truth(expr), body.expressions.add())

    def _leaf(self, into: RelMessage) -> None:
        """A leaf is a view. DataFusion cannot select columns of a view while reading Substrait, so
        a projection above it does."""
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
        for hole in holes(body):
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
            self._call(expr, into)
            return
        into.MergeFromString(expr.template)
        self._fill(into, expr.rels, expr.children)
        if into.WhichOneof("rex_type") == "cast":
            self._cast(into)
        elif into.WhichOneof("rex_type") == "scalar_function":
            into.scalar_function.function_reference = self.anchor(expr.name)
        elif into.WhichOneof("rex_type") == "window_function":
            if into.window_function.options:
                raise PlanError("a frame that cannot be expressed in Substrait")
            name = expr.name.removeprefix("window:")
            into.window_function.function_reference = self.anchor(name)

    def _call(self, ask: Ask, into: ExpressionMessage) -> None:
        if not self.calls or ask.domain is not None:
            raise PlanError("a call inside a DataFusion plan")
        into.scalar_function.function_reference = self.anchor(ask.call.name)
        for arg in ask.args:
            self.expr(arg, into.scalar_function.arguments.add().value)

    def _cast(self, into: ExpressionMessage) -> None:
        """A cast to a time zone, which Substrait has no type for, is a function."""
        kind = zoned_type(into.cast.type)
        if kind is None:
            return
        lenient = into.cast.failure_behavior == ExpressionMessage.Cast.FAILURE_BEHAVIOR_RETURN_NULL
        operand = ExpressionMessage()
        operand.CopyFrom(into.cast.input)
        function = into.scalar_function
        function.function_reference = self.anchor("arrow_try_cast" if lenient else "arrow_cast")
        function.arguments.add().value.CopyFrom(operand)
        function.arguments.add().value.literal.string = kind
