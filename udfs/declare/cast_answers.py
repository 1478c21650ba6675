"""Casts of answers to the types of a query, which must not fail it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from blendfusion.udfs.declare.answer_predicate import ANSWER, evaluate
from blendfusion.udfs.declare.call import Call

_WHOLE, _REAL = ("BIGINT", "'Int64'"), ("DOUBLE", "FLOAT", "'Float64'", "'Float32'")
_SIZES = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_BITS = (8, 16, 32, 64)
_NUMBERS = (
    *(name for size in _SIZES for name in (size, f"{size} UNSIGNED")),
    *(f"'{kind}{bits}'" for kind in ("Int", "UInt") for bits in _BITS),
    *_REAL,
)
_SAFE = {
    pa.bool_(): ("BOOLEAN", "'Boolean'", *_NUMBERS),
    pa.int64(): (*_WHOLE, *_REAL),
    pa.float64(): (*_WHOLE, *_REAL),
    pa.date32(): ("DATE", "'Date32'"),
    pa.timestamp("us"): ("TIMESTAMP", "DATE", "'Date32'"),
}
"""The types to which every answer of a type can be cast."""


def casts_that_may_fail(call: Call, casts: Iterable[str]) -> tuple[str, ...]:
    """The casts, as SQL, that some answers of a call do not survive. Types of ``arrow_cast`` are in
    quotes."""
    if call.ingredient.kind.has_body or call.gives_probabilities:
        return ()
    return tuple(cast for cast in casts if cast not in _SAFE.get(call.value_type, ()))


def misfits(answers: pa.Array, cast: str) -> list[int]:
    """The places of the answers that cannot be cast; NULL can."""
    try_cast = f"TRY_CAST({ANSWER} AS {cast})"
    if cast.startswith("'"):
        try_cast = f"arrow_try_cast({ANSWER}, {cast})"
    fails = evaluate(f"{ANSWER} IS NOT NULL AND {try_cast} IS NULL", answers)
    return [place for place, failed in enumerate(fails.to_pylist()) if failed]
