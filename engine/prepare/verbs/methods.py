"""Methods of DataFrame that write a frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import BoundArguments, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Concatenate, ParamSpec
from urllib.parse import unquote

import pyarrow as pa
from datafusion import DataFrame, col, lit
from datafusion import functions as f

from blendfusion.datafusion.interruptible import Pump
from blendfusion.files.row_writers import as_text, is_flat, is_in_parquet
from blendfusion.places.partitions import NULL_NAME
from blendfusion.run.hooks import BaseFrame
from blendfusion.udfs.declare.arguments import quoted_name

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
        result = _decode(self._result())
        if is_held is not None and not all(map(is_held, result.schema().types)):
            table = Pump().call(result.to_arrow_table)
            result = self.engine.tables.plain_frame(as_text(table, is_held))
        call = signature(inherited).bind(result, *args, **kwargs)
        if call.arguments.get("write_options") is not None:
            row = pa.table(
                [pa.nulls(1, kind) for kind in result.schema().types], result.schema().names
            )
            keys = _keys_of(inherited, call, self.engine.tables.plain_frame(row))
            result = _with_names_of_folders(result, keys)
        Pump().call(lambda: inherited(result, *args, **kwargs))

    return update_wrapper(write, inherited)


def _decode(frame: DataFrame) -> DataFrame:
    """``frame`` without the dictionaries of views that Polars makes, which Parquet's writer does
    not know."""
    fields = frame.schema()
    views = (pa.string_view(), pa.binary_view())
    kinds = {
        field.name: field.type.value_type
        for field in fields
        if pa.types.is_dictionary(field.type) and field.type.value_type in views
    }
    if not kinds:
        return frame
    columns = {name: col(quoted_name(name)) for name in fields.names}
    plain = {name: columns[name].cast(kind) for name, kind in kinds.items()}
    return frame.select(*(plain.get(name, c).alias(name) for name, c in columns.items()))


def _keys_of(inherited: Callable[..., None], call: BoundArguments, row: DataFrame) -> set[str]:
    """The columns by which a write makes folders: its options do not show them, and the folders of
    a row do."""
    with TemporaryDirectory() as folder:
        arguments = {**call.arguments, "self": row, "path": f"{folder}/"}
        try:
            Pump().call(lambda: inherited(**arguments))
        except Exception:  # the write itself says what is wrong
            return set()
        folders = [path.name for path in Path(folder).rglob("*=*") if path.is_dir()]
        return {unquote(name.partition("=")[0]) for name in folders}


def _with_names_of_folders(frame: DataFrame, keys: set[str]) -> DataFrame:
    """``frame`` with the texts of its keys: DataFusion takes NULL in one for 0 or an empty text."""
    if not keys:
        return frame
    columns = {name: col(quoted_name(name)) for name in frame.schema().names}
    texts = {key: f.coalesce(columns[key].cast(pa.string()), lit(NULL_NAME)) for key in keys}
    return frame.select(*(texts.get(name, c).alias(name) for name, c in columns.items()))
