"""Literals and types of Substrait as SQL text: every kind that DataFusion writes."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Type as TypeMessage

from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import Expr, Node
from blendfusion.udfs.declare.arguments import sql_string

_UNSIGNED = 1
"""DataFusion's variation for unsigned integers, and for intervals that are durations."""
_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


def literal_text(literal: ExpressionMessage.Literal) -> str:
    """``literal`` as SQL text, or its plain value if SQL has no notation for its type.

    Dates and timestamps outside of the years 1 to 9999 are written as one from 1970 plus an
    interval.
    """
    kind = literal.WhichOneof("literal_type")
    value = getattr(literal, kind or "null")
    if kind == "boolean":
        return "TRUE" if value else "FALSE"
    if kind in _BITS:
        unsigned = literal.type_variation_reference == _UNSIGNED
        return str(value % 2 ** _BITS[kind] if unsigned else value)
    if kind in ("fp32", "fp64"):
        return _float(value, single=kind == "fp32")
    if kind in ("string", "fixed_char"):
        return sql_string(value)
    if kind == "var_char":
        return sql_string(value.value)
    if kind in ("binary", "fixed_binary"):
        return f"X'{value.hex().upper()}'"
    if kind == "decimal":
        unscaled = int.from_bytes(value.value, "little", signed=True)
        digits = Decimal(abs(unscaled)).as_tuple().digits
        return f"{Decimal((int(unscaled < 0), digits, -value.scale)):f}"
    if kind == "date":
        return _date(value)
    if kind == "precision_time":
        seconds, fraction = _seconds(value.value, value.precision)
        return f"TIME '{timedelta(seconds=seconds)!s:0>8}{fraction}'"
    if kind in ("precision_timestamp", "precision_timestamp_tz"):
        zone = "+00:00" if kind.endswith("_tz") else ""
        return _timestamp(*_seconds(value.value, value.precision), zone)
    if kind == "interval_year_to_month":
        return _interval(_months(value))
    if kind == "interval_day_to_second":
        return _interval(_days(value))
    if kind == "interval_compound":
        days = _days(value.interval_day_to_second)
        return _interval({**_months(value.interval_year_to_month), **days})
    if kind == "list":
        return f"[{', '.join(map(literal_text, value.values))}]"
    if kind == "empty_list":
        return "[]"
    if kind == "struct":
        return f"struct({', '.join(map(literal_text, value.fields))})"
    if kind in ("map", "empty_map"):
        pairs = value.key_values if kind == "map" else ()
        return (
            f"MAP {{{', '.join(f'{literal_text(p.key)}: {literal_text(p.value)}' for p in pairs)}}}"
        )
    return "NULL" if kind in (None, "null") else f"{kind} literal"


def _float(value: float, *, single: bool) -> str:
    if not math.isfinite(value):
        return f"CAST('{value}' AS {'FLOAT' if single else 'DOUBLE'})"
    if not single:
        return str(value)
    # The shortest text of this number in 32 bits: 0.1, not 0.10000000149011612.
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return str(float(next(t for t in texts if _single(float(t)) == value)))


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf


def _date(days: int) -> str:
    try:
        return f"DATE '{date(1970, 1, 1) + timedelta(days=days)}'"
    except OverflowError:
        return f"DATE '1970-01-01' + {_interval({'days': str(days)})}"


def _timestamp(seconds: int, fraction: str, zone: str) -> str:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return f"TIMESTAMP '{moment.replace(tzinfo=None)}{fraction}{zone}'"
    except OverflowError:
        later = _interval({"seconds": f"{seconds}{fraction}"})
        return f"TIMESTAMP '1970-01-01 00:00:00{zone}' + {later}"


def _seconds(value: int, precision: int) -> tuple[int, str]:
    """Whole seconds, rounded down, and the fraction as ``.123``, or '' without a fraction."""
    seconds, rest = divmod(value, 10**precision)
    return seconds, f".{rest:0{precision}d}".rstrip("0") if rest else ""


def _interval(parts: dict[str, str]) -> str:
    terms = [f"{n} {unit if n not in ('1', '-1') else unit[:-1]}" for unit, n in parts.items() if n]
    return f"INTERVAL '{' '.join(terms) or '0 days'}'"


def interval_text(value: object) -> str:
    """A number or an interval of Arrow, as SQL."""
    if not isinstance(value, tuple):
        return str(value)
    months, days, nanoseconds = value
    literal = ExpressionMessage.Literal()
    whole = literal.interval_compound
    years = int(months / 12)
    whole.interval_year_to_month.years, whole.interval_year_to_month.months = (
        years,
        months - 12 * years,
    )
    rest = whole.interval_day_to_second
    rest.days, rest.precision = days, 9
    rest.seconds = int(nanoseconds / 10**9)
    rest.subseconds = nanoseconds - 10**9 * rest.seconds
    return literal_text(literal)


def _months(value: ExpressionMessage.Literal.IntervalYearToMonth) -> dict[str, str]:
    return {"years": _some(value.years), "months": _some(value.months)}


def _days(value: ExpressionMessage.Literal.IntervalDayToSecond) -> dict[str, str]:
    unit = 10**value.precision
    total = value.seconds * unit + value.subseconds
    sign = "-" if total < 0 else ""
    minutes, rest = divmod(abs(total), 60 * unit)
    seconds, fraction = _seconds(rest, value.precision)
    hours, minutes = divmod(minutes, 60)
    return {
        "days": _some(value.days),
        "hours": f"{sign}{hours}" if hours else "",
        "minutes": f"{sign}{minutes}" if minutes else "",
        "seconds": f"{sign}{seconds}{fraction}" if rest else "",
    }


def _some(number: int) -> str:
    return str(number) if number else ""


_TYPES = {
    "bool": "BOOLEAN",
    "i8": "TINYINT",
    "i16": "SMALLINT",
    "i32": "INT",
    "i64": "BIGINT",
    "fp32": "FLOAT",
    "fp64": "DOUBLE",
    "string": "TEXT",
    "varchar": "TEXT",
    "fixed_char": "TEXT",
    "binary": "BYTEA",
    "fixed_binary": "BYTEA",
    "date": "DATE",
    "interval_year": "INTERVAL",
    "interval_day": "INTERVAL",
    "interval_compound": "INTERVAL",
    "precision_time": "TIME",
    "precision_timestamp": "TIMESTAMP",
    "precision_timestamp_tz": "TIMESTAMP WITH TIME ZONE",
}


def type_text(kind: TypeMessage) -> str:
    """The SQL name of a type, without the precision of times and the names of struct fields."""
    name = kind.WhichOneof("kind") or "null"
    if name == "user_defined" and kind.user_defined.type_parameters:
        return str(kind.user_defined.type_parameters[0].string)
    if name == "decimal":
        return f"DECIMAL({kind.decimal.precision}, {kind.decimal.scale})"
    if name == "list":
        return f"{type_text(kind.list.type)}[]"
    if name == "map":
        return f"MAP({type_text(kind.map.key)}, {type_text(kind.map.value)})"
    if name == "struct":
        return f"STRUCT({', '.join(map(type_text, kind.struct.types))})"
    if name not in _TYPES:
        return name.upper().replace("_", " ")
    text = _TYPES[name]
    if getattr(kind, name).type_variation_reference == _UNSIGNED:
        if name in _BITS:
            return f"{text} UNSIGNED"
        if name == "interval_day":
            return "DURATION"
    return text


_OF_ANSWERS = {
    pa.bool_(): "boolean",
    pa.int64(): "i64",
    pa.float64(): "fp64",
    pa.string(): "string",
}
"""The kinds of literals of types of answers."""


def literal_in_type(literal: Expr, kind: pa.DataType) -> Expr | None:
    """A literal in the type of an answer; None if it has another one."""
    if not isinstance(literal, Node):
        return None
    wanted, message = _OF_ANSWERS.get(kind), ExpressionMessage.FromString(literal.template).literal
    own = message.WhichOneof("literal_type")
    if own == "i64" and wanted == "fp64":
        double = ExpressionMessage()
        double.literal.fp64 = message.i64
        return Node("literal", serialize(double))
    return literal if own == wanted else None
