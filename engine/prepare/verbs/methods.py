"""Methods of DataFrame as methods of Frame: those that build a frame, and those that write one."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.datafusion.interruptible import Pump
from blendfusion.files.row_writers import as_text, is_flat, is_in_parquet

if TYPE_CHECKING:
    from blendfusion.frame import Frame

P = ParamSpec("P")
_HELD: dict[str, Callable[[pa.DataType], bool]] = {
    "write_csv": is_flat,
    "write_parquet": is_in_parquet,
    "write_parquet_with_options": is_in_parquet,
}
"""The types that a format holds."""


def verb(
    inherited: Callable[Concatenate[DataFrame, P], DataFrame],
) -> Callable[Concatenate[Frame, P], Frame]:
    """Wraps a method of DataFrame that builds another, so that it builds a Frame."""

    def build(self: Frame, /, *args: P.args, **kwargs: P.kwargs) -> Frame:
        return self._next(inherited, *args, **kwargs)

    return update_wrapper(build, inherited)


def writer(
    inherited: Callable[Concatenate[DataFrame, P], None],
) -> Callable[Concatenate[Frame, P], None]:
    """Wraps a method of DataFrame that writes rows, so that it writes the result of a Frame.
    Columns that the format does not hold become text: DataFusion refuses them after the run."""
    is_held = _HELD.get(inherited.__name__)

    def write(self: Frame, /, *args: P.args, **kwargs: P.kwargs) -> None:
        result = self._result()
        if is_held is not None and not all(map(is_held, result.schema().types)):
            table = Pump().call(result.to_arrow_table)
            result = self._session.plain_frame(as_text(table, is_held))
        Pump().call(lambda: inherited(result, *args, **kwargs))

    return update_wrapper(write, inherited)
