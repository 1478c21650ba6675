"""The rows of a result as the page shows them: sorted and filtered, summed up, and in files."""

from __future__ import annotations

import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.apps.page_writers import WRITERS, is_number
from blendfusion.apps.ui.cells import cell, column_cells
from blendfusion.datafusion.arrow_layouts import plain_type
from blendfusion.errors import QueryError
from blendfusion.files.formats import module_for
from blendfusion.files.python_values import python_values
from blendfusion.files.row_writers import flat, text_of

_TOP = 8
"""The values of a summary, the most frequent ones."""
_BINS = 12
_KINDS = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/x-ndjson",
    "markdown": "text/markdown",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@dataclass(frozen=True)
class View:
    """The rows of a result that are shown: those with ``words`` in any cell, in the order of a
    column."""

    words: str = ""
    column: int | None = None
    descending: bool = False

    def of(self, table: pa.Table) -> pa.Table:
        """The rows of this view. Those with NULL come last, and equal ones keep their order."""
        table = _without_views(table)
        if self.words:
            table = table.filter(_holds(table, self.words))
        if self.column is not None and 0 <= self.column < table.num_columns:
            table = table.take(_order(table.column(self.column), self.descending))
        return table


def _without_views(table: pa.Table) -> pa.Table:
    """``table`` with texts in a layout whose rows Arrow takes in any order; dictionaries stay."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) or pa.types.is_run_end_encoded(field.type):
            continue
        kind = plain_type(field.type)
        if kind != field.type:
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


def _holds(table: pa.Table, words: str) -> pa.Array:
    wanted = words.lower()
    found = [False] * len(table)
    for column in table.columns:
        for place, value in enumerate(column_cells(column)):
            if not found[place] and value is not None and wanted in text_of(value).lower():
                found[place] = True
    return pa.array(found, pa.bool_())


def _comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in a type that Arrow sorts and counts: others as text."""
    types, kind = pa.types, values.type
    plain = types.is_primitive(kind) or types.is_string(kind) or types.is_decimal(kind)
    if plain and not types.is_float16(kind):
        return values
    texts = [None if v is None else text_of(v) for v in python_values(values)]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _order(values: pa.ChunkedArray, descending: bool) -> pa.Array:
    values = _comparable(values)
    places = pa.array(range(len(values)), pa.int64())
    keys = [("key", "descending" if descending else "ascending"), ("place", "ascending")]
    table = pa.table({"key": values, "place": places})
    return pc.sort_indices(table, sort_keys=keys)


def summary_of(table: pa.Table) -> list[dict[str, Any]]:
    """Each column: its NULLs, distinct values and extremes, and how often which values occur."""
    return [
        {"name": field.name, "type": str(field.type), "rows": len(column)} | _column_summary(column)
        for field, column in zip(table.schema, table.columns, strict=True)
    ]


def _column_summary(values: pa.ChunkedArray) -> dict[str, Any]:
    values = _comparable(values)
    counted = pc.value_counts(values.drop_null()).to_pylist()
    counted.sort(key=lambda one: (-one["counts"], text_of(one["values"])))
    found: dict[str, Any] = {"nulls": values.null_count, "distinct": len(counted)}
    if is_number(values.type) and len(counted) > _TOP:
        numbers = [float(v) for v in values.drop_null().to_pylist() if v == v]
        low, high = min(numbers, default=0.0), max(numbers, default=0.0)
        finite = low > float("-inf") and high < float("inf")
        mean = sum(numbers) / len(numbers) if numbers else 0.0
        found |= {"least": cell(low), "most": cell(high), "mean": cell(mean)}
        return found | {"bars": _histogram(numbers, low, high) if finite and numbers else []}
    bars = [{"name": cell(one["values"]), "rows": one["counts"]} for one in counted[:_TOP]]
    return found | {"bars": bars}


def _histogram(numbers: list[float], low: float, high: float) -> list[dict[str, Any]]:
    width = (high - low) / _BINS or 1.0
    counts = [0] * _BINS
    for number in numbers:
        counts[min(int((number - low) / width), _BINS - 1)] += 1
    return [
        {"name": f"{low + i * width:.4g} to {low + (i + 1) * width:.4g}", "rows": count}
        for i, count in enumerate(counts)
    ]


def file_of(table: pa.Table, style: str) -> tuple[bytes, str]:
    """The rows as a file of this format, and its media type. Raises QueryError."""
    if style not in _KINDS:
        raise QueryError(f"no format {style!r}", hint=f"There are {', '.join(_KINDS)}.")
    if style == "xlsx":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rows.xlsx")
            module_for("xlsx").write_sheet(flat(table), file)
            return file.read_bytes(), _KINDS[style]
    content = io.BytesIO()
    WRITERS[style]([table], content)
    return content.getvalue(), _KINDS[style]
