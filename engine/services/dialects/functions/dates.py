"""Arithmetic of dates: units, differences, truncation and texts, as our SQL of ``{0}``, ``{1}``, ….

Differences are of two kinds. ``boundaries`` counts the starts of units between two moments
(Snowflake's DATEDIFF): from 31 December to 1 January is a year. ``elapsed_units`` counts whole
units that have passed (MySQL's TIMESTAMPDIFF)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from blendfusion.services.dialects.functions.call import FunctionCall, Write, Written
from blendfusion.services.dialects.functions.date_patterns import Part, Patterns
from blendfusion.udfs.declare.arguments import sql_string

UNITS = {
    **dict.fromkeys(("YEAR", "YEARS", "Y", "YY", "YYYY", "YR", "SQL_TSI_YEAR"), "year"),
    **dict.fromkeys(("QUARTER", "QUARTERS", "Q", "QTR", "SQL_TSI_QUARTER"), "quarter"),
    **dict.fromkeys(("MONTH", "MONTHS", "MM", "MON", "MONS", "SQL_TSI_MONTH"), "month"),
    **dict.fromkeys(("WEEK", "WEEKS", "W", "WK", "WY", "SQL_TSI_WEEK", "ISOWEEK"), "week"),
    **dict.fromkeys(("DAY", "DAYS", "D", "DD", "DAYOFYEAR", "SQL_TSI_DAY"), "day"),
    **dict.fromkeys(("HOUR", "HOURS", "H", "HH", "HR", "HRS", "SQL_TSI_HOUR"), "hour"),
    **dict.fromkeys(("MINUTE", "MINUTES", "M", "MI", "MIN", "SQL_TSI_MINUTE"), "minute"),
    **dict.fromkeys(("SECOND", "SECONDS", "S", "SEC", "SECS", "SQL_TSI_SECOND"), "second"),
    **dict.fromkeys(("MILLISECOND", "MILLISECONDS", "MS"), "millisecond"),
    **dict.fromkeys(("MICROSECOND", "MICROSECONDS", "US"), "microsecond"),
}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_OF_TIME = ("hour", "minute", "second", "millisecond", "microsecond")


def unit_of(call: FunctionCall, place: int) -> str:
    """The unit that an argument names. Raises QueryError for none."""
    name = call.words(place)
    if name not in UNITS:
        hint = "Units: year, quarter, month, week, day, hour, minute, second."
        raise call.refusal(f"'{name}' has no equal unit", hint, at=call.arguments[place][0])
    return UNITS[name]


# --- differences ----------------------------------------------------------------------------------


def moment(operand: str) -> str:
    """A date, a time or a text of one as a TIMESTAMP."""
    return f"CAST({operand} AS TIMESTAMP)"


def day(operand: str) -> str:
    return f"CAST({moment(operand)} AS DATE)"


def _months(operand: str) -> str:
    return f"(date_part('year', {operand}) * 12 + date_part('month', {operand}))"


def boundaries(unit: str, start: str, end: str, *, first_day: str = "monday") -> str | None:
    """How many starts of units lie between two moments."""
    a, b = moment(start), moment(end)
    if unit == "year":
        return f"(date_part('year', {b}) - date_part('year', {a}))"
    if unit == "quarter":
        parts = (f"(date_part('year', {x}) * 4 + date_part('quarter', {x}))" for x in (b, a))
        return f"({' - '.join(parts)})"
    if unit == "month":
        return f"({_months(b)} - {_months(a)})"
    if unit == "week":
        later = " + INTERVAL '1 day'" if first_day == "sunday" else ""
        weeks = (f"CAST(date_trunc('week', {x}{later}) AS DATE)" for x in (b, a))
        return f"(({' - '.join(weeks)}) / 7)"
    if unit == "day":
        return f"({day(end)} - {day(start)})"
    if unit in _SECONDS:
        times = (f"to_unixtime(date_trunc('{unit}', {x}))" for x in (b, a))
        return f"(({' - '.join(times)}) / {_SECONDS[unit]})"
    return None


_WITHIN_MONTH = "'%d%H%M%S%9f'"


def elapsed_units(unit: str, start: str, end: str) -> str | None:
    """How many whole units have passed between two moments."""
    a, b = moment(start), moment(end)
    if unit in _SECONDS:
        passed = f"date_part('epoch', {b}) - date_part('epoch', {a})"
        return f"CAST(trunc(({passed}) / {_SECONDS[unit]}) AS BIGINT)"
    if unit not in _MONTHS:
        return None
    x, y = (f"to_char({each}, {_WITHIN_MONTH})" for each in (a, b))
    undone = (
        f"CASE WHEN {b} >= {a} AND {y} < {x} THEN 1 WHEN {b} < {a} AND {y} > {x} THEN -1 ELSE 0 END"
    )
    months = f"({_months(b)} - {_months(a)} - {undone})"
    return months if unit == "month" else f"({months} / {_MONTHS[unit]})"


Counts = Callable[[str, str, str], str | None]


def difference(
    counts: Counts, *, unit: int | str, start: int, end: int, sunday: bool = False
) -> Write:
    """A difference in the unit that an argument names (or in a fixed one)."""

    def write(call: FunctionCall) -> Written:
        name = unit if isinstance(unit, str) else unit_of(call, unit)
        weeks = isinstance(unit, int) and call.words(unit) == "WEEK"
        if sunday and weeks and counts is boundaries:
            sql = boundaries(name, "{start}", "{end}", first_day="sunday")
        else:
            sql = counts(name, "{start}", "{end}")
        if sql is None:
            raise call.refusal(f"no difference in {name}s is possible here")
        return call.fill(sql, start=start, end=end)

    return write


# --- sums -----------------------------------------------------------------------------------------


def amount(call: FunctionCall, unit: str, count: str, number: int | None, sign: int) -> str:
    """``count`` units as an INTERVAL."""
    times = 3 if unit == "quarter" else 1
    unit = "month" if unit == "quarter" else unit
    if number is not None:
        return f"INTERVAL '{number * times * sign} {unit}'"
    whole = f"CAST({count} AS BIGINT)" if times * sign == 1 else f"({count}) * {times * sign}"
    return f"CAST(CAST({whole} AS VARCHAR) || ' {unit}s' AS INTERVAL)"


def shift(call: FunctionCall, place: int, unit: str, interval: str) -> Written:
    """A date or time plus an interval. A date becomes a time if the unit is part of a day."""
    literal = call.literal(place)
    dated = literal is not None and len(literal.strip()) <= len("2024-01-01")
    if unit in _OF_TIME:
        kind = "TIMESTAMP"
    elif literal is not None:
        kind = "DATE" if dated else "TIMESTAMP"
    else:
        found = call.type(place)
        text = found is not None and (pa.types.is_string(found) or pa.types.is_string_view(found))
        kind = "TIMESTAMP" if text else ""
    value = f"CAST({{{place}}} AS {kind})" if kind else f"{{{place}}}"
    return call.fill(f"({value} + {interval})")


def sum_of(*, unit: int | str, count: int, date: int, sign: int = 1) -> Write:
    """``DATEADD(unit, count, date)``, with its arguments in any order."""

    def write(call: FunctionCall) -> Written:
        name = unit if isinstance(unit, str) else unit_of(call, unit)
        interval = amount(call, name, call.sql(count), call.number(count), sign)
        return shift(call, date, name, interval)

    return write


_INTERVAL = re.compile(r"INTERVAL\b", re.IGNORECASE)


def sum_with_interval(sign: int = 1) -> Write:
    """``DATE_ADD(date, INTERVAL count unit)``."""

    def write(call: FunctionCall) -> Written:
        start, stop = call.arguments[1]
        reader = call.reader
        if reader.word(start) != "INTERVAL" or stop - start < 3:
            raise call.refusal(
                "INTERVAL n unit is expected", f"Write {call.name}(x, INTERVAL 1 DAY)."
            )
        name = reader.tokens[stop - 1].text.upper()
        if name not in UNITS:
            raise call.refusal(f"'{name}' has no equal unit", at=stop - 1)
        written = reader.one_line(start + 1, stop - 1).replace(" ", "").strip("'")
        number = int(written) if re.fullmatch(r"[+-]?\d+", written) else None
        count = "".join(p.text for p in call.weaver.weave(start + 1, stop - 1))
        return shift(call, 0, UNITS[name], amount(call, UNITS[name], count, number, sign))

    return write


# --- starts of units ------------------------------------------------------------------------------


def start_of(*, unit: int, date: int, sunday: bool = False, dates: bool = True) -> Write:
    """``DATE_TRUNC``: ``dates`` says that a date's start is a date, not a time."""

    def write(call: FunctionCall) -> Written:
        words = call.words(unit).replace(" ", "")
        of_sunday = sunday and words in ("WEEK", "WEEK(SUNDAY)")
        words = "WEEK" if words in ("WEEK(SUNDAY)", "WEEK(MONDAY)") and sunday else words
        name = UNITS.get(words) if len(words) > 1 else unit_of(call, unit)
        if name is None or name in ("millisecond", "microsecond"):
            raise call.refusal(f"'{words}' has no equal unit", at=call.arguments[unit][0])
        value = moment(f"{{{date}}}")
        sql = f"date_trunc('{name}', {value})"
        if of_sunday:
            sql = f"(date_trunc('week', {value} + INTERVAL '1 day') - INTERVAL '1 day')"
        kind = call.type(date)
        if dates and kind is not None and pa.types.is_date(kind):
            sql = f"CAST({sql} AS DATE)"
        return call.fill(sql)

    return write


LAST_DAY = "CAST(date_trunc('month', {0}) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"


# --- texts ----------------------------------------------------------------------------------------


def _parts(call: FunctionCall, patterns: Patterns, place: int) -> list[Part]:
    text = call.text(place, "the pattern")
    found = patterns.parts(text)
    if isinstance(found, str):
        raise call.refusal(
            f"'{found}' in the pattern has no equal here",
            "to_char(time, '%Y-%m-%d') of BlendFusion's SQL takes strftime's patterns.",
            at=call.arguments[place][0],
        )
    return found


def text_of(patterns: Patterns, *, value: int, pattern: int) -> Write:
    """A date or time as a text."""

    def write(call: FunctionCall) -> Written:
        parts = _parts(call, patterns, pattern) or [Part("")]
        time = f"{{{value}}}"
        if call.literal(value) is not None:
            time = moment(time)
        texts = [
            p.around.replace("{0}", f"to_char({time}, {sql_string(p.pattern)})") for p in parts
        ]
        return call.fill(texts[0] if len(texts) == 1 else f"({' || '.join(texts)})")

    return write


def read_by(
    patterns: Patterns, kind: str, *, value: int = 0, pattern: int = 1, null: bool = False
) -> Write:
    """A date or time that a text is read as; ``kind`` is DATE, TIMESTAMP or ``""``: a date if the
    pattern has no time of day. ``null``: a text that is none is NULL."""

    def write(call: FunctionCall) -> Written:
        parts = _parts(call, patterns, pattern)
        if len(parts) != 1 or parts[0].around != "{0}":
            raise call.refusal("this pattern is none to read by", at=call.arguments[pattern][0])
        ours = parts[0].pattern
        timed = re.search(r"%-?[HIMSTRsfp]|%\df", ours) is not None
        function = {"DATE": "to_date", "TIMESTAMP": "to_timestamp"}.get(
            kind, "to_timestamp" if timed else "to_date"
        )
        if null:
            raise call.refusal(
                "a text that is no date would be an error here, not NULL",
                "Write TRY_CAST(text AS DATE), which reads 2024-01-31.",
            )
        return call.fill(f"{function}({{{value}}}, {sql_string(ours)})")

    return write
