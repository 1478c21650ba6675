"""Frames without calls that DataFusion 55 runs wrongly, or refuses, and that Substrait mends.

Right joins become left ones on the way: see ``planner.stages.right_join_bug``. Truth tests below
groups become comparisons: see ``datafusion.substrait.truth_test_bug``. A CASE among keys becomes a
column: see ``datafusion.substrait.case_key_bug``. A limit with an offset gets a filter above it:
see ``planner.stages.offset_bug``. A query that Substrait cannot carry runs as it is. Branches of
unions are sorted together: see ``datafusion.one_sort``. Conditions that would make a key of an
order look constant are hidden: see ``datafusion.substrait.constant_bug``. So are columns that are
constant below grouping sets and outer joins alone: see ``datafusion.substrait.constant_columns``.
Casts of decimals, lists and conditions stay as they are: see ``datafusion.kept_expressions``. A
sum beside one number of distinct values gets the type that it has there, which DataFusion compares
with a literal of the type without them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.datafusion.columns import columns_of
from blendfusion.datafusion.kept_expressions import may_change, with_kept_expressions
from blendfusion.datafusion.one_sort import may_split_sorts, with_one_sort
from blendfusion.datafusion.sort_keys import is_row_change

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame

_MAY_BE_RIGHT = re.compile(r"^ *(Right|Full) Join:", re.MULTILINE)
_RIGHT = re.compile(r"^ *Right Join:", re.MULTILINE)
_GROUPS = re.compile(r"^ *(Aggregate|Distinct|DistinctOn):", re.MULTILINE)
_CASE_KEY = re.compile(r"^ *(Sort|WindowAggr|Aggregate|DistinctOn): .*\bCASE\b", re.MULTILINE)
_OFFSET = re.compile(r"^ *Limit: skip=(?!0,|None,)", re.MULTILINE)
_SUM_AND_DISTINCT = re.compile(r"^ *Aggregate: (?=.*\bsum\().*\(DISTINCT ", re.MULTILINE)
_TRUTH_TEST = re.compile(r"\bIS (NOT )?(TRUE|FALSE|UNKNOWN)\b")


def may_meet_bug(plan: str) -> bool:
    """Whether DataFusion may run a logical plan, of which this is the text, wrongly, or refuse
    it."""
    forms = (_MAY_BE_RIGHT, _CASE_KEY, _SUM_AND_DISTINCT)
    found = any(form.search(plan) for form in forms) or _tests_truth(plan)
    found = found or _orders_skipped_rows(plan) or _may_drop_keys(plan) or may_change(plan)
    return found or _may_mistake_constants(plan) or may_split_sorts(plan)


def without_bugs(frame: BaseFrame) -> DataFrame:
    """DataFusion's own frame of ``frame``, to be run by DataFusion alone."""
    return with_one_sort(frame.engine.tables, _mend(frame))


def _tests_truth(plan: str) -> bool:
    return bool(_TRUTH_TEST.search(plan)) and bool(_GROUPS.search(plan) or "(DISTINCT" in plan)


def _orders_skipped_rows(plan: str) -> bool:
    if not _OFFSET.search(plan):
        return False
    from blendfusion.planner.stages.offset_bug import orders_skipped_rows

    return orders_skipped_rows(plan)


def _may_drop_keys(plan: str) -> bool:
    if "Filter: " not in plan:
        return False
    from blendfusion.datafusion.substrait.constant_bug import may_drop_keys

    return may_drop_keys(plan)


def _may_mistake_constants(plan: str) -> bool:
    if "Join:" not in plan and "Aggregate:" not in plan:
        return False
    from blendfusion.datafusion.substrait.constant_columns import may_mistake_constants

    return may_mistake_constants(plan)


def _mend(frame: BaseFrame) -> DataFrame:
    """A frame of the same rows that has been through Substrait, or DataFusion's own."""
    plain = with_kept_expressions(frame.engine.tables, DataFrame(frame.df))
    text = plain.logical_plan().display_indent()
    tests_truth = _tests_truth(text)
    refused = bool(_CASE_KEY.search(text)) and _is_refused(plain)
    skips = _orders_skipped_rows(text)
    sums = bool(_SUM_AND_DISTINCT.search(text)) and _has_decimals(plain)
    may_drop, constants = _may_drop_keys(text), _may_mistake_constants(text)
    known = tests_truth or refused or skips or sums
    if not (known or may_drop or constants or _MAY_BE_RIGHT.search(text)):
        return plain
    from blendfusion.datafusion.bridge import through_substrait
    from blendfusion.datafusion.substrait.case_key_bug import with_computed_cases
    from blendfusion.datafusion.substrait.constant_bug import drops_keys, with_hidden_conditions
    from blendfusion.datafusion.substrait.constant_columns import with_hidden_constants
    from blendfusion.datafusion.substrait.write import write
    from blendfusion.datafusion.substrait_io import frame_of
    from blendfusion.planner.ir.traversal import transform
    from blendfusion.planner.stages.join_condition_bug import readable
    from blendfusion.planner.stages.offset_bug import with_barrier
    from blendfusion.planner.stages.right_join_bug import as_left_join

    try:
        plan = plain.optimized_logical_plan()
        optimized = plan.display_indent()
        drops = may_drop and drops_keys(optimized)
        known = known or drops or bool(_RIGHT.search(optimized))
        if not (known or constants):
            return plain
        root = through_substrait(frame.engine.tables, plan)
        shown = with_hidden_constants(root.plan) if constants else root.plan
        if shown is root.plan and not known:
            return plain
        turned = transform(shown, lambda join: as_left_join(readable(join)), ("join",))
        turned = with_computed_cases(turned) if refused else turned
        turned = transform(turned, with_barrier, ("fetch",)) if skips else turned
        turned = with_hidden_conditions(turned) if drops else turned
        made = frame_of(frame.engine.tables, write(turned, {}, root.names))
        made = _with_types(made, plain) if sums else made
        return made if _columns(made) == _columns(plain) else plain
    except Exception:
        return plain


def _has_decimals(frame: DataFrame) -> bool:
    return "Decimal" in frame.logical_plan().display_indent_schema()


def _with_types(frame: DataFrame, like: DataFrame) -> DataFrame:
    """``frame`` with its columns in the types of those of ``like``."""
    read = zip(columns_of(frame), frame.schema(), like.schema(), strict=True)
    return frame.select(
        *(
            c.expr if own.type == wanted.type else c.expr.cast(wanted.type).alias(wanted.name)
            for c, own, wanted in read
        )
    )


def _is_refused(frame: DataFrame) -> bool:
    """Whether DataFusion refuses its own plan for a CASE."""
    if is_row_change(frame.logical_plan()):
        return False
    try:
        frame.execution_plan()
    except Exception as problem:
        from blendfusion.datafusion.substrait.case_key_bug import REFUSAL

        return REFUSAL in str(problem)
    return False


def _columns(frame: DataFrame) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in frame.schema()]
