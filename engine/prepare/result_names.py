"""Names the columns of a result after the calls as the user wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.errors import QueryError
from blendfusion.run.hooks import BaseFrame
from blendfusion.udfs.declare.arguments import quoted_name
from blendfusion.udfs.declare.call_registry import readable

F = TypeVar("F", bound=BaseFrame)


def name_columns(frame: F, written: Mapping[str, tuple[str, ...]]) -> F:
    """The frame with the columns of unnamed calls called as the user wrote them."""
    try:
        names = DataFrame.schema(frame).names
    except pa.ArrowException as problem:
        hint = "Give each column of the result a name without NUL: … AS name."
        raise QueryError(f"a column has no valid name: {problem}", hint=hint) from problem
    ways = {name: list(texts) for name, texts in written.items()}
    new = []
    for name in names:
        name_shown = readable(name, {call: texts[0] for call, texts in ways.items()})
        new.append(name_shown.replace("\0", "\\0"))  # Arrow has no names with NUL
        for call, texts in ways.items():
            if call in name and len(texts) > 1:
                del texts[0]  # the same call with another FILTER or ORDER BY comes next
    if new == names:
        return frame
    # A rename leaves the others as they are: two columns may share a name.
    for old, n in zip(names, new, strict=True):
        if old != n:
            frame = frame.with_column_renamed(quoted_name(old), n)
    return frame
