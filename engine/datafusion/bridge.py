"""Takes DataFusion's optimised plans through Substrait, and proves that nothing is lost.

A plan becomes a tree, with the details that its Substrait lacks. Once, the tree is written, and
DataFusion reads it back: what it reads must do what its own plan does.
"""

from __future__ import annotations

import re
from itertools import count

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionContext
from datafusion.expr import Aggregate
from datafusion.plan import LogicalPlan
from datafusion.substrait import Producer

from blendfusion.datafusion.error_gate import is_panic
from blendfusion.datafusion.expression_messages import (
    CAST,
    LITERAL,
    TRY_CAST,
    WINDOW,
    message_field,
    message_fields,
    same_field,
)
from blendfusion.datafusion.part_views import PartViews
from blendfusion.datafusion.plan_comparison import UTC, difference, subqueries_text, zone_of
from blendfusion.datafusion.plan_parts import expressions, has_subquery, parts, parts_of, relations
from blendfusion.datafusion.substrait.grouping_sets import GroupingSets
from blendfusion.datafusion.substrait.messages import compares_struct_literal, has_unreadable_types
from blendfusion.datafusion.substrait.null_aware_anti_join import null_aware, with_nulls
from blendfusion.datafusion.substrait.plan_details import Frame, PlanDetails
from blendfusion.datafusion.substrait.read import read
from blendfusion.datafusion.substrait.unsupported import dropped_feature
from blendfusion.datafusion.unnamed_tables import HIDDEN_CATALOG, STAGE_SCHEMA
from blendfusion.errors import PlanError
from blendfusion.planner.ir.builders import boolean_literal, project
from blendfusion.planner.ir.literals import interval_text
from blendfusion.planner.ir.nodes import Plan, Root
from blendfusion.planner.ir.traversal import transform
from blendfusion.planner.stages.join_condition_bug import readable
from blendfusion.planner.stages.sort_key_bug import apart

_serials = count(1)
_FUNCTION = re.compile(r"TableScan: [^ ]*\(\)")
"""A table function, which Substrait would write as an unknown table name."""
_OF_FIELDS = re.compile(r"\b(arrow_field|arrow_metadata|with_metadata)\(")
"""Functions of a column's name and metadata, which Substrait and our chunks lack."""
_SETS = re.compile(r"Aggregate: groupBy=\[\[(?:GROUPING SETS|ROLLUP|CUBE) \((.*)\)\]\], aggr=")
_ZONES = re.compile(r'Timestamp(?:\(\w+, "([^"]*)"\)|\w+\((?:-?\d+|NULL), Some\("([^"]*)"\)\))')
_BOUNDED = re.compile(
    r"RANGE BETWEEN (?!UNBOUNDED PRECEDING AND (CURRENT ROW|UNBOUNDED FOLLOWING))|GROUPS BETWEEN"
)
_CLAUSES = re.compile(r"\(DISTINCT |\bIGNORE NULLS")
_UNITS = {b"\x08\x01": "RANGE", b"\x08\x02": "GROUPS"}
"""The units of frames that Substrait lacks, as DataFusion encodes them."""
_CLAUSE_FIELDS = {(11, b"\x58\x01"): "IGNORE NULLS", (12, b"\x60\x01"): "DISTINCT"}
"""The clauses of a window that Substrait lacks, as DataFusion encodes them."""


def through_substrait(
    context: SessionContext,
    plan: LogicalPlan,
    carrier: LogicalPlan | None = None,
    *,
    optimized: bool = True,
) -> Root:
    """The tree of an optimised plan. Raises PlanError for a plan that Substrait cannot carry, also
    where DataFusion reads another plan back.

    ``carrier``: the same plan but for the frames of its windows, which is encoded in its place.
    ``optimized=False``: a plan that is still to be optimised, and is compared when it is.
    """
    text = plan.display_indent()
    data = _encode(context, carrier or plan, text)
    by_name = SessionContext.with_python_udf_inlining(context, enabled=False)
    details = _details(plan, text, by_name)
    root = read(data, grouping_sets(plan, text), details)
    _prove(context, plan, text, root, by_name, optimized=optimized)
    return Root(with_nulls(root.plan, null_aware(text)), root.names)


def _encode(context: SessionContext, plan: LogicalPlan, text: str) -> bytes:
    if _FUNCTION.search(text):
        raise PlanError("a table function cannot be expressed in Substrait")
    of_field = _OF_FIELDS.search(text)
    if of_field or ("arrow_typeof(" in text and "View" in plan.display_indent_schema()):
        name = of_field.group(1) if of_field else "arrow_typeof"
        raise PlanError(f"{name} of a type or column that is another one beside calls")
    left_out = dropped_feature(text)
    if left_out is not None:
        raise PlanError(f"{left_out} cannot be expressed in Substrait")
    try:
        data = Producer.to_substrait_plan(plan, context).encode()
    except Exception as problem:  # DataFusion raises plain Exceptions here
        raise PlanError(str(problem)) from problem
    if has_unreadable_types(data):
        raise PlanError("a column of a type that cannot be expressed in Substrait")
    if "{" in text and compares_struct_literal(data):
        raise PlanError("a literal of a struct in an expression")
    return data


def grouping_sets(plan: LogicalPlan, text: str) -> list[GroupingSets] | None:
    """The aggregates of ``plan`` with grouping sets, from the top; None if it has no such keys of
    another name than their expressions'."""
    if not any(" AS " in keys for keys in _SETS.findall(text)):
        return None
    found = []
    waiting = [plan]
    while waiting:
        part = waiting.pop()
        waiting += reversed(part.inputs())
        node = part.to_variant()
        if isinstance(node, Aggregate):
            names = node.schema().field_names()
            if "__grouping_id" in names:
                (key,) = node.group_by_exprs()
                keys = tuple(names[: names.index("__grouping_id")])
                found.append(GroupingSets(key.schema_name(), keys))
    return found


# --- what Substrait lacks -------------------------------------------------------------------------


def _details(plan: LogicalPlan, text: str, by_name: SessionContext) -> PlanDetails:
    zones = {zone or other for zone, other in _ZONES.findall(text)}
    frames = _frames(plan, text, by_name) if "WindowAggr:" in text else ()
    if zones <= {UTC}:
        return PlanDetails(frames=frames)
    if len(zones) == 1:
        return PlanDetails(zone=zones.pop(), frames=frames)
    return PlanDetails(zones=_zones(plan, by_name), frames=frames)


def _zones(plan: LogicalPlan, by_name: SessionContext) -> tuple[str, ...]:
    """The zones of casts and literals, in the order of Substrait."""
    found: list[str] = []
    for _, node in relations(plan):
        for expr in expressions(node):
            for kind, own in parts(expr, by_name.ctx):
                if kind in (LITERAL, CAST, TRY_CAST):
                    zoned = zone_of(kind, own)
                    found += [] if zoned is None else [zoned.zone]
    return tuple(found)


def _frames(plan: LogicalPlan, text: str, by_name: SessionContext) -> tuple[Frame | None, ...]:
    """The frames that Substrait lacks, of each window."""
    found: list[Frame | None] = []
    for _, node in relations(plan):
        if type(node).__name__ == "WindowExpr":
            for expr in expressions(node):
                if has_subquery(expr):  # DataFusion cannot encode it
                    _check_in_subquery(expr.canonical_name())
                    found.append(None)
                else:
                    found += _frames_of(expr.to_bytes(by_name.ctx), by_name)
    for line in subqueries_text(text).splitlines():
        if "WindowAggr:" in line:
            _check_in_subquery(line)
    return tuple(found)


def _check_in_subquery(text: str) -> None:
    """Raise PlanError for a window inside a subquery, or of one, that Substrait would change."""
    if _BOUNDED.search(text):
        raise PlanError("a RANGE or GROUPS frame in a subquery cannot be expressed in Substrait")
    if _CLAUSES.search(text):
        raise PlanError("DISTINCT or IGNORE NULLS of a window in a subquery cannot be expressed")


def _frames_of(data: bytes, by_name: SessionContext) -> list[Frame | None]:
    for kind, _, content in message_fields(data):
        if kind == WINDOW and content is not None:
            return [_frame(content, by_name)]
        for number, _, inner in message_fields(content or b""):  # an alias
            if number == 1 and inner is not None:
                return _frames_of(inner, by_name)
    raise PlanError("a window that is no expression")


def _frame(window: bytes, by_name: SessionContext) -> Frame | None:
    arguments: list[bytes] = []
    clauses: list[str] = []
    kept, frame = b"", b""
    for number, head, content in message_fields(window):
        if (number, head) in _CLAUSE_FIELDS:
            clauses.append(_CLAUSE_FIELDS[number, head])
        if number == 4:
            literal = [kind for kind, _ in parts_of(content or b"")] == [LITERAL]
            arguments.append(content or b"" if literal else b"")
        elif number not in (5, 6):
            kept += same_field(head, content)
            frame = content if number == 8 and content is not None else frame
    unit = _UNITS.get(frame[:2])
    bounds = [
        _bound_text(content, by_name)
        for _, _, content in message_fields(frame)
        if content is not None
    ]
    if unit is None or (unit == "RANGE" and all(follows is None for _, follows in bounds)):
        # The frame itself is in Substrait.
        return Frame("", clauses, kept, tuple(arguments), (None, None)) if clauses else None
    (low, low_follows), (high, high_follows) = bounds
    text = f"{unit} BETWEEN {low or 'UNBOUNDED PRECEDING'} AND {high or 'UNBOUNDED FOLLOWING'}"
    return Frame(text, clauses, kept, tuple(arguments), (low_follows, high_follows))


def _bound_text(message: bytes, by_name: SessionContext) -> tuple[str, bool | None]:
    """(the text of a bound, '' for an unbounded one; whether it follows the row, None without a
    number)"""
    side, value = 0, b""
    for number, head, content in message_fields(message):
        if number == 1:
            side = head[-1]
        else:
            value = content or b""
    if side == 0:
        return "CURRENT ROW", None
    given = Expr.from_bytes(message_field(LITERAL, value), by_name).python_value()
    if not given.is_valid:
        return "", None
    word = "FOLLOWING" if side == 2 else "PRECEDING"
    return f"{interval_text(given.as_py())} {word}", side == 2


# --- the proof ------------------------------------------------------------------------------------


def _prove(
    context: SessionContext,
    plan: LogicalPlan,
    text: str,
    root: Root,
    by_name: SessionContext,
    *,
    optimized: bool,
) -> None:
    """Raise PlanError if DataFusion reads another plan from the tree of ``plan``."""
    tree = _readable(root.plan)
    try:
        copy, types = _copy(context, tree)
    except Exception as problem:  # DataFusion raises plain Exceptions here
        raise PlanError(f"DataFusion does not read back its own plan: {problem}") from problem
    except BaseException as panic:
        if not is_panic(panic):
            raise
        # Keys of grouping sets coincide there; ``grouping_sets`` restores their names.
        if grouping_sets(plan, text) is not None:
            return
        raise PlanError("DataFusion fails on its own plan, read back") from panic
    if optimized:
        changed = difference(plan, copy, by_name.ctx)
    else:
        changed = difference(*_optimize(context, plan, copy), by_name.ctx)
        if changed is not None:
            changed = difference(*_optimize(_without_simplifier(), plan, copy), by_name.ctx)
    if changed is None and root.plan.width:
        own = _types(SessionContext.create_dataframe_from_logical_plan(context, plan))
        # A NULL without a type gets one in Substrait, and loses it in the result.
        pairs = zip(own, types, strict=True) if own and types else ()
        if any(a != b and not pa.types.is_null(a) for a, b in pairs):
            changed = "the type of a column"
    if changed is not None:
        raise PlanError(f"Substrait would change {changed}")


def _without_simplifier() -> SessionContext:
    """An optimizer that does not simplify what is equal to different expressions."""
    context = SessionContext()
    context.remove_optimizer_rule("simplify_expressions")
    return context


def _optimize(
    context: SessionContext, plan: LogicalPlan, copy: list[LogicalPlan]
) -> tuple[LogicalPlan, list[LogicalPlan]]:
    frames = (
        SessionContext.create_dataframe_from_logical_plan(context, one) for one in (plan, *copy)
    )
    first, *others = (frame.optimized_logical_plan() for frame in frames)
    return first, others


def _copy(
    context: SessionContext, tree: Plan
) -> tuple[list[LogicalPlan], list[pa.DataType] | None]:
    """(what DataFusion reads back of a tree, in parts; the types of its columns)"""
    prefix = f"{HIDDEN_CATALOG}.{STAGE_SCHEMA}.proof{next(_serials)}"
    views = PartViews(context, prefix, {}, calls=True)
    try:
        frame = views.frame(tree)
    finally:
        views.close()
    return [frame.logical_plan(), *views.plans], _types(frame)


def _types(frame: DataFrame) -> list[pa.DataType] | None:
    """The types of a frame's columns; None for names that Arrow's interface does not take."""
    try:
        return list(frame.schema().types)
    except Exception as problem:
        if "Null byte" in str(problem):
            return None
        raise


def _readable(plan: Plan) -> Plan:
    if plan.width == 0:
        plan = project(plan, (boolean_literal(True),))
    return transform(plan, lambda part: apart(readable(part)), ("join", "sort"))
