"""Frames without calls that DataFusion 55 runs wrongly, or refuses, and that Substrait mends.

Right joins become left ones on the way: see ``planner.substrait.right_join_bug``. Truth tests below
groups become comparisons: see ``planner.substrait.truth_test_bug``. A query that Substrait cannot
carry runs as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import DataFrame

if TYPE_CHECKING:
    from blendfusion.frame import Frame

_MAY_BE_RIGHT = re.compile(r"^ *(Right|Full) Join:", re.MULTILINE)
_RIGHT = re.compile(r"^ *Right Join:", re.MULTILINE)
_GROUPS = re.compile(r"^ *(Aggregate|Distinct|DistinctOn):", re.MULTILINE)
_TRUTH_TEST = re.compile(r"\bIS (NOT )?(TRUE|FALSE|UNKNOWN)\b")


def keeping_rows(frame: Frame) -> DataFrame:
    """DataFusion's own frame of ``frame``, to be run by DataFusion alone."""
    plain = DataFrame(frame.df)
    text = plain.logical_plan().display_indent()
    tests_truth = bool(_TRUTH_TEST.search(text)) and bool(
        _GROUPS.search(text) or "(DISTINCT" in text
    )
    if not (tests_truth or _MAY_BE_RIGHT.search(text)):
        return plain
    from blendfusion.datafusion.bridge import through_substrait
    from blendfusion.datafusion.substrait_io import frame_of
    from blendfusion.planner.ir.traversal import transform
    from blendfusion.planner.substrait.join_condition_bug import readable
    from blendfusion.planner.substrait.right_join_bug import as_left_join
    from blendfusion.planner.substrait.write import write

    try:
        plan = plain.optimized_logical_plan()
        if not (tests_truth or _RIGHT.search(plan.display_indent())):
            return plain
        root = through_substrait(frame.session, plan)
        turned = transform(root.plan, lambda join: as_left_join(readable(join)), ("join",))
        made = frame_of(frame.session, write(turned, {}, root.names))
        return made if _columns(made) == _columns(plain) else plain
    except Exception:
        return plain


def _columns(frame: DataFrame) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in frame.schema()]
