"""SQLite's functions, in the queries of BlendSQL, where DataFusion has another meaning or none."""

from __future__ import annotations

from blendfusion.services.dialects.functions.call import FunctionCall, System, Table, Write, Written
from blendfusion.services.dialects.functions.date_patterns import SQLITE as PATTERNS
from blendfusion.services.dialects.functions.dates import text_of
from blendfusion.services.dialects.functions.texts import null_if_any, print_format
from blendfusion.udfs.declare.arguments import sql_string

_NOW = ("now", "'now'")


def _moment(call: FunctionCall, place: int) -> str:
    return "now()" if call.literal(place) in _NOW else f"CAST({{{place}}} AS TIMESTAMP)"


def _cut(call: FunctionCall) -> Written:
    """SUBSTR, whose negative start counts from the end."""
    names = ", ".join(f"{{{i}}}" for i in range(len(call.arguments)))
    number = call.number(1)
    behind = ", {2}" if len(call.arguments) > 2 else ""
    ended = f"substr({{0}}, length({{0}}) + {{1}} + 1{behind})"
    if number is not None:
        return call.fill(ended)
    return call.fill(f"CASE WHEN {{1}} < 0 THEN {ended} ELSE substr({names}) END")


def _format(call: FunctionCall) -> Written:
    """``strftime('%Y', time)``; DuckDB's arguments stand the other way round."""
    first = call.literal(0)
    turned = (first is None or "%" not in first) and "%" in (call.literal(1) or "")
    pattern, value = (1, 0) if turned else (0, 1)
    if call.literal(value) in _NOW:
        parts = PATTERNS.parts(call.text(pattern, "the pattern"))
        if not isinstance(parts, str):
            return [f"to_char(now(), {sql_string(parts[0].pattern if parts else '')})"]
    return text_of(PATTERNS, value=value, pattern=pattern)(call)


def _text(pattern: str) -> Write:
    return lambda call: call.fill(f"to_char({_moment(call, 0)}, '{pattern}')")


_TABLE: Table = {
    "SUBSTR(text, start)": _cut,
    "SUBSTR(text, start, length)": _cut,
    "SUBSTRING(text, start)": _cut,
    "SUBSTRING(text, start, length)": _cut,
    "MAX(x, y, …)": null_if_any("greatest"),
    "MIN(x, y, …)": null_if_any("least"),
    "PRINTF(pattern, …)": print_format(null=""),
    "FORMAT(pattern, …)": print_format(null=""),
    "STRFTIME(pattern, time)": _format,
    "DATE(time)": _text("%Y-%m-%d"),
    "TIME(time)": _text("%H:%M:%S"),
    "DATETIME(time)": _text("%Y-%m-%d %H:%M:%S"),
    "JULIANDAY(time)": lambda call: call.fill(
        f"(date_part('epoch', {_moment(call, 0)}) / 86400.0 + 2440587.5)"
    ),
    "UNIXEPOCH(time)": lambda call: call.fill(f"to_unixtime({_moment(call, 0)})"),
    "TOTAL(x)": "coalesce(sum(CAST({x} AS DOUBLE)), 0.0)",
    "CHAR(n)": "chr({n})",
    "UNICODE(text)": "ascii({text})",
    "HEX(text)": "upper(encode(CAST({text} AS VARCHAR), 'hex'))",
    "SIGN(x)": "CAST(signum({x}) AS BIGINT)",
    "MOD(x, y)": "(CAST({x} AS DOUBLE) % NULLIF({y}, 0))",
    "CEILING(x)": "ceil({x})",
}


def _is_same(call: FunctionCall) -> bool:
    """The largest value of a column, and a start that is no negative number."""
    if call.name in ("MAX", "MIN"):
        return len(call.arguments) == 1
    if not call.name.startswith("SUBSTR"):
        return False
    return len(call.arguments) < 2 or (call.number(1) or -1) >= 0 or call.number(1) == 0


SQLITE = System(
    title="SQLite",
    table=_TABLE,
    refused={
        "TYPEOF": "Write arrow_typeof(x).",
        "CHANGES": "Queries only read.",
        "LAST_INSERT_ROWID": "Queries only read.",
        "JSON_EXTRACT": "llm_extract(text, 'name TEXT, …') reads fields from a text.",
        "QUOTE": "Pass values as parameters.",
    },
    truth_is_number=True,
    slices=True,
    quoted_texts=True,
    matches={"GLOB": ("~", "glob")},
    leaves=_is_same,
    strict=False,
)
