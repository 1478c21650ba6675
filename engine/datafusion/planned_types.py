"""The types of a frame's columns as its batches have them.

DataFusion's ``schema`` of a frame knows less than its analyser: of a union, of a CASE with branches
of several types, of an unsigned number of 64 bits beside a signed one (a decimal of other digits),
and of columns that are NULL in one branch.
"""

from __future__ import annotations

import re

import pyarrow as pa
from datafusion import DataFrame, SessionContext

_MIXED = re.compile(r"\bUnion\b|\bCASE\b")


def planned_schema(frame: DataFrame) -> pa.Schema:
    """The schema of what ``frame`` returns. Raises what DataFusion raises where its optimizer fails
    on a constant."""
    schema = DataFrame.schema(frame)
    if not any(_is_doubtful(field.type) for field in schema):
        text = DataFrame.logical_plan(frame).display_indent()
        if _MIXED.search(text) is None:
            return schema
    plan = DataFrame.optimized_logical_plan(frame)
    return SessionContext().create_dataframe_from_logical_plan(plan).schema()


def _is_doubtful(kind: pa.DataType) -> bool:
    return pa.types.is_null(kind) or "decimal" in str(kind)
