"""Parts of plans that DataFusion does not read from one message, as views upon views.

DataFusion decodes Substrait with a limit of 100 nested messages: some twenty-five relations above
each other. Deeper parts are read first, and the rest refers to them as views, which DataFusion
inlines; so its optimizer sees one plan again, and nothing is stored. A window with a frame or
clause that Substrait lacks is a view, too: DataFusion's own expression over a view of its input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from datafusion import DataFrame, SessionContext, col
from datafusion import Expr as DataFusionExpr
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.expression_messages import WINDOW, message_field
from blendfusion.datafusion.substrait.plan_details import bounded_frame
from blendfusion.datafusion.substrait.write import write
from blendfusion.datafusion.substrait_io import batches_of, frame_of, relation_of
from blendfusion.planner.ir.builders import project
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    StoredRows,
    all_fields,
    substitute,
    windows,
)
from blendfusion.planner.ir.windows import order_of

REPEATED_NAMES = "Projections require unique expression names"
"""The words of DataFusion about its own plan in which two columns got one name."""
_MOST = 16
"""The relations above each other in one message, two levels each; the rest is for expressions."""


class PartViews:
    """The views of one user in a context, under names that begin with ``prefix``.

    ``relations`` has the bytes of the relations that read stages; those of views are added under
    negative numbers. ``calls``: calls stay functions. Close it at the end.
    """

    def __init__(
        self,
        context: SessionContext,
        prefix: str,
        relations: dict[int, bytes],
        *,
        calls: bool = False,
    ) -> None:
        self._context = context
        self._prefix = prefix
        self._relations = relations
        self._calls = calls
        self._names: list[str] = []
        self.plans: list[LogicalPlan] = []
        """DataFusion's plans of the views, the inner ones first."""

    def frame(self, plan: Plan, names: Sequence[str] = (), *, named: bool = False) -> DataFrame:
        """DataFusion's frame of a plan over views. Raises what DataFusion raises. ``named``: each
        relation is a view, so that no two columns that meet have one name."""
        if not named:
            before = len(self.plans)
            try:
                return self._frame(plan, names, _MOST)
            except Exception:  # columns of one name are a reason
                del self.plans[before:]
        return self._frame(plan, names, 1)

    def _frame(self, plan: Plan, names: Sequence[str], most: int) -> DataFrame:
        data = write(self._shallow(plan, most)[0], self._relations, names, calls=self._calls)
        return frame_of(self._context, data)

    def close(self) -> None:
        for name in self._names:
            self._context.deregister_table(name)
        self._names = []

    def _shallow(self, plan: Plan, most: int) -> tuple[Plan, int]:
        """(the plan over views, the number of relations above each other in it)"""
        if not isinstance(plan, Rel):
            return plan, 1
        below = [self._shallow(p, most) for p in plan.inputs]
        inputs = tuple(self._view(p) if depth >= most else p for p, depth in below)
        depth = 1 + max((d for _, d in below if d < most), default=1)
        same = all(a is b for a, b in zip(inputs, plan.inputs, strict=True))
        shallow = plan if same else plan.with_inputs(*inputs)
        if plan.kind != "project":
            return shallow, depth
        found = [w for e in plan.exprs for w in windows(e) if isinstance(w, Node)]
        framed = [w for w in found if bounded_frame(w) is not None]
        return (
            (self._view_windows(shallow, dict.fromkeys(framed)), 2) if framed else (shallow, depth)
        )

    def _view(self, plan: Plan) -> StoredRows:
        return self._register(self._by_position(plan), plan.width)

    def _by_position(self, plan: Plan) -> DataFrame:
        """A frame of a plan, each column with its position as its name."""
        schema = frame_of(self._context, write(plan, self._relations, calls=self._calls)).schema()
        names = tuple(_names(schema))
        return frame_of(self._context, write(plan, self._relations, names, calls=self._calls))

    def _view_windows(self, plan: Rel, framed: dict[Node, None]) -> Plan:
        """A projection over a view that has its windows ``framed``."""
        (source,) = plan.inputs
        columns = list(all_fields(source.width))
        place: dict[Expr, Field] = {}
        inner: list[Expr] = [*columns]
        for window in framed:
            inner += [part for part in _computed_children(window) if part not in inner]
        frame = self._by_position(project(source, tuple(inner)))
        made = [_column(i) for i in range(len(columns))]
        for window in framed:
            place[window] = Field(len(made))
            made.append(self._window(window, inner).alias(str(len(made))))
        view = self._register(frame.select(*made), len(made))
        exprs = tuple(substitute(e, lambda part: place.get(part)) for e in plan.exprs)
        return Rel("project", b"", (view,), exprs, len(exprs))

    def _window(self, window: Node, columns: Sequence[Expr]) -> DataFusionExpr:
        message, literals = bounded_frame(window) or (b"", ())
        order = order_of(window)
        n_keys, n_sorts = len(order.partitions), len(order.keys)
        data = message

        def encode(part: Expr) -> bytes:
            return bytes(_column(columns.index(part)).to_bytes())

        for given, literal in zip(window.children[n_keys + n_sorts :], literals, strict=False):
            data += message_field(4, literal or encode(given))
        for key in order.partitions:
            data += message_field(5, encode(key))
        for key, direction in zip(order.keys, order.directions, strict=True):
            data += message_field(6, message_field(1, encode(key)) + _FLAGS[direction])
        by_name = SessionContext.with_python_udf_inlining(self._context, enabled=False)
        return DataFusionExpr.from_bytes(message_field(WINDOW, data), by_name)

    def _register(self, frame: DataFrame, width: int) -> StoredRows:
        """The relation of a new view of ``frame``."""
        number = -1 - len(self._names)
        name = f"{self._prefix}_view{-number}"
        # The encoder would write out a view; it is shown an empty table in its place.
        empty = batches_of(frame.schema().empty_table())
        self._context.register_record_batches(name, [empty])
        self._relations[number] = relation_of(self._context, name)
        self._context.deregister_table(name)
        SessionContext.register_view(self._context, name, DataFrame(frame.df))
        self._names.append(name)
        self.plans.append(frame.logical_plan())
        return StoredRows(number, width)


def _computed_children(window: Node) -> Iterator[Expr]:
    """The children of a window, without its literal arguments."""
    _, literals = bounded_frame(window) or (b"", ())
    order = order_of(window)
    n_before = len(order.partitions) + len(order.keys)
    yield from window.children[:n_before]
    for given, literal in zip(window.children[n_before:], literals, strict=False):
        if not literal:
            yield given


_FLAGS = {1: b"\x10\x01\x18\x01", 2: b"\x10\x01", 3: b"\x18\x01", 4: b""}
"""Ascending, and NULLS FIRST, in DataFusion's message of a sort key, by Substrait's direction."""


def _column(place: int) -> DataFusionExpr:
    return col(f'"{place}"')


def _names(schema: pa.Schema) -> Iterator[str]:
    """A name of its own for each column; and those of the fields inside, as Substrait wants
    them."""
    for i, field in enumerate(schema):
        yield str(i)
        yield from _inner_names(field.type)


def _inner_names(kind: pa.DataType) -> Iterator[str]:
    for i in range(kind.num_fields):
        field = kind.field(i)
        if pa.types.is_struct(kind):
            yield field.name
        yield from _inner_names(field.type)
