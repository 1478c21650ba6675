"""The keys of one side of a join, to look up answers among them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.datafusion.arrow_types import is_text


class Keys:
    """Distinct values of one column, and which values were found among them so far: a chunk costs
    its new values, not the number of keys."""

    def __init__(self, values: pa.ChunkedArray) -> None:
        kind = values.type
        simple = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or is_text(kind)
        self._values = set(values.to_pylist()) if simple or pa.types.is_date(kind) else None

    def among(self, column: pa.Array) -> pa.Array:
        """TRUE where a value is among the keys, or may be; FALSE where it is not, or is NULL."""
        if self._values is None:  # equality of these types is not that of Python
            return pc.is_valid(column)
        encoded = column.dictionary_encode()
        found = [value in self._values for value in encoded.dictionary.to_pylist()]
        return pc.fill_null(pa.array(found, pa.bool_()).take(encoded.indices), False)
