"""DuckDB's functions and operators, where BlendFusion's have another meaning."""

from __future__ import annotations

import pyarrow as pa

from blendfusion.services.dialects.functions.call import FunctionCall, System, Table, Written

_WHOLE = ("BIGINT", "INT", "INTEGER", "SMALLINT", "TINYINT")
_OWN = "Write it with dialect='sql', where it "


def _cut(call: FunctionCall) -> Written:
    """SUBSTR, whose negative start counts from the end, and whose negative length is one of the
    characters before the start."""
    names = ", ".join(f"{{{i}}}" for i in range(len(call.arguments)))
    if len(call.arguments) > 2 and (call.number(2) is None or (call.number(2) or 0) < 0):
        raise call.refusal("its length must be a literal, 0 or more, here")
    number = call.number(1)
    behind = ", {2}" if len(call.arguments) > 2 else ""
    ended = f"substr({{0}}, length({{0}}) + {{1}} + 1{behind})"
    if number is not None:
        return call.fill(ended if number < 0 else f"substr({names})")
    return call.fill(f"CASE WHEN {{1}} < 0 THEN {ended} ELSE substr({names}) END")


def _length(call: FunctionCall) -> Written:
    kind = call.type(0)
    if kind is None or not pa.types.is_nested(kind):
        return call.fill("length({0})")
    return call.fill("CASE WHEN {0} IS NOT NULL THEN coalesce(array_length({0}), 0) END")


def _parts(call: FunctionCall) -> Written:
    if call.literal(1) == "":
        raise call.refusal("an empty separator has no equal here", "string_to_array(text, NULL).")
    if call.name == "SPLIT_PART":
        return call.fill("split_part({0}, {1}, {2})")
    return call.fill("CASE WHEN {0} = '' THEN make_array('') ELSE string_to_array({0}, {1}) END")


def _join_values(call: FunctionCall) -> Written:
    """CONCAT of texts; of lists, one list."""
    kinds = [call.type(i) for i in range(len(call.arguments))]
    lists = any(kind is not None and pa.types.is_nested(kind) for kind in kinds)
    names = ", ".join(f"{{{i}}}" for i in range(len(call.arguments)))
    return call.fill(f"{'array_concat' if lists else 'concat'}({names})")


_TABLE: Table = {
    **{
        f"{name}({arguments})": _cut
        for name in ("SUBSTR", "SUBSTRING")
        for arguments in ("text, start", "text, start, length")
    },
    "LENGTH(x)": _length,
    "CONCAT(x, …)": _join_values,
    "SPLIT_PART(text, separator, place)": _parts,
    "STRING_TO_ARRAY(text, separator)": _parts,
    "TO_HEX(x)": "upper(to_hex({x}))",
    **{
        f"{name}(x)": "array_sort({x}, 'ASC', 'NULLS LAST')" for name in ("LIST_SORT", "ARRAY_SORT")
    },
}
DUCKDB = System(
    title="DuckDB",
    table=_TABLE,
    refused={
        **dict.fromkeys(("LIST_DISTINCT", "ARRAY_DISTINCT"), f"{_OWN}keeps a NULL."),
        **dict.fromkeys(("LIST_INTERSECT", "ARRAY_INTERSECT"), f"{_OWN}keeps a NULL."),
        **dict.fromkeys(
            ("CHAR_LENGTH", "CHARACTER_LENGTH"), "Write length(text), or array_length(list)."
        ),
    },
    casts={**{kind: kind for kind in _WHOLE}, "INT8": "BIGINT", "INT4": "INT", "INT2": "SMALLINT"},
    rounds=True,
    rounds_to_even=True,
    exact_division=True,
    caret_is_power=True,
    matches={"SIMILAR": ("~", "whole")},
    strict=False,
)
