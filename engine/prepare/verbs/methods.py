"""Methods of DataFrame that write a frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.datafusion.interruptible import Pump
from blendfusion.files.row_writers import as_text, is_flat, is_in_parquet
from blendfusion.run.hooks import BaseFrame

P = ParamSpec("P")
_HELD: dict[str, Callable[[pa.DataType], bool]] = {
    "write_csv": is_flat,
    "write_parquet": is_in_parquet,
    "write_parquet_with_options": is_in_parquet,
}
"""The types that a format holds."""


def writer(
    inherited: Callable[Concatenate[DataFrame, P], None],
) -> Callable[Concatenate[BaseFrame, P], None]:
    """Wraps a method of DataFrame that writes rows, so that it writes the result of a Frame.
    Columns that the format does not hold become text: DataFusion refuses them after the run."""
    is_held = _HELD.get(inherited.__name__)

    def write(self: BaseFrame, /, *args: P.args, **kwargs: P.kwargs) -> None:
        result = self._result()
        if is_held is not None and not all(map(is_held, result.schema().types)):
            table = Pump().call(result.to_arrow_table)
            result = self.engine.tables.plain_frame(as_text(table, is_held))
        Pump().call(lambda: inherited(result, *args, **kwargs))

    return update_wrapper(write, inherited)
