"""Sorts the branches of a UNION together where DataFusion 55 would lose the first rows.

``SELECT 0 AS side, x … UNION ALL SELECT 1, x … ORDER BY side, x LIMIT 3`` is sorted branch by
branch, each without the key that is constant in it. Yet all branches share one bound of the rows
that may be among the first: whichever branch ends first drops rows of the others. So such a plan
runs without ``datafusion.optimizer.repartition_sorts``. So does one that DataFusion refuses, of
branches in which other columns are equal.
"""

from __future__ import annotations

import re

from datafusion import DataFrame, SessionContext

from blendfusion.datafusion.settings import setting
from blendfusion.datafusion.sort_keys import is_row_change

_ORDERED = re.compile(r"^ *(Sort|WindowAggr): ", re.MULTILINE)
_UNION = re.compile(r"^ *Union$", re.MULTILINE)
_SPLIT = re.compile(r"^ *SortExec: TopK\(.*preserve_partitioning=\[true\]", re.MULTILINE)
SPLITS_SORTS = "datafusion.optimizer.repartition_sorts"


def may_split_sorts(plan: str) -> bool:
    """Whether the text of a logical plan orders a union."""
    return bool(_UNION.search(plan) and _ORDERED.search(plan))


def with_one_sort(context: SessionContext, frame: DataFrame) -> DataFrame:
    """``frame``, or a frame of its plan that sorts the branches of its unions together."""
    plan = frame.logical_plan()
    if not may_split_sorts(plan.display_indent()) or is_row_change(plan):
        return frame
    if not _is_split(frame):
        return frame
    with setting(context, SPLITS_SORTS, "false"):  # a frame keeps the settings of this moment
        return SessionContext.create_dataframe_from_logical_plan(context, plan)


def _is_split(frame: DataFrame) -> bool:
    try:
        physical = frame.execution_plan().display_indent()
    except Exception as problem:  # if it is another one, the run says what is wrong
        from blendfusion.datafusion.substrait.case_key_bug import REFUSAL

        return REFUSAL in str(problem)
    return "UnionExec" in physical and bool(_SPLIT.search(physical))
