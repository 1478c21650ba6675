"""MySQL's functions, after its reference manual."""

from __future__ import annotations

import pyarrow as pa

from blendfusion.datafusion.arrow_types import is_text
from blendfusion.services.dialects.functions.aggregates import texts_in_one
from blendfusion.services.dialects.functions.call import FunctionCall, System, Table, Write, Written
from blendfusion.services.dialects.functions.date_patterns import MYSQL as PATTERNS
from blendfusion.services.dialects.functions.dates import (
    LAST_DAY,
    boundaries,
    difference,
    elapsed_units,
    moment,
    read_by,
    sum_of,
    sum_with_interval,
    text_of,
)
from blendfusion.services.dialects.functions.extract import extract, parts_by_name
from blendfusion.services.dialects.functions.regexes import extract_match, replace_matches
from blendfusion.services.dialects.functions.shared_tables import (
    CONDITIONS,
    IF,
    NULL_LOGARITHMS,
    NUMBERS,
    PARTS,
    STANDARD,
    SUNDAY_FIRST,
    SUNDAY_WEEK,
    part,
)
from blendfusion.services.dialects.functions.texts import (
    by_place,
    cut,
    field_place,
    found_at,
    found_behind,
    join,
    null_if_any,
    side,
    trim,
)

_NUMBER = r"^\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_CUT = cut(zero="none", early="none")
_SHIFT_ADD, _SHIFT_SUB = sum_with_interval(), sum_with_interval(-1)


def _number(value: str) -> str:
    """A text as a number: what it begins with, or 0."""
    read = f"coalesce(regexp_match({value}, '{_NUMBER}')[1], '0')"
    return f"CASE WHEN {value} IS NOT NULL THEN CAST({read} AS DOUBLE) END"


def _of_numbers(function: str) -> Write:
    """SUM and AVG, also of texts of numbers and of conditions."""

    def write(call: FunctionCall) -> Written:
        reader, (start, stop) = call.reader, call.arguments[0]
        distinct = "DISTINCT " if reader.word(start) == "DISTINCT" else ""
        start += bool(distinct)
        value = call.weaver.text(start, stop)
        kind = call.types.of(start, stop)
        if kind is not None and is_text(kind):
            value = _number(value)
        elif kind is not None and pa.types.is_boolean(kind):
            value = f"CAST({value} AS INT)"
        return [f"{function}({distinct}{value})"]

    return write


def _case_free(function: str) -> Write:
    """A function of patterns in which letter case does not count."""
    return lambda call: call.fill(f"{function}({{0}}, '(?i)' || {{1}})")


def _week(call: FunctionCall) -> Written:
    """``WEEK(date, mode)``: 0 begins with Sunday, 3 is ISO's."""
    weeks = {0: SUNDAY_WEEK, 3: part("week")}
    mode = call.number(1)
    if mode not in weeks:
        raise call.refusal("the mode must be 0 or 3 here", at=call.arguments[1][0])
    time = moment("{0}") if call.literal(0) is not None else "{0}"
    return call.fill(weeks[mode].replace("{0}", time))


_DATE = "CAST({date} AS DATE)"
_TABLE: Table = {
    **NUMBERS,
    **NULL_LOGARITHMS,
    **IF,
    "CHAR_LENGTH(text)": "length({text})",
    "CHARACTER_LENGTH(text)": "length({text})",
    "IFNULL(x, other)": CONDITIONS["IFNULL(x, other)"],
    "ISNULL(x)": "({x} IS NULL)",
    "GREATEST(x, …)": null_if_any("greatest"),
    "LEAST(x, …)": null_if_any("least"),
    "SQRT(x)": "CASE WHEN {x} >= 0 THEN sqrt({x}) END",
    "MOD(x, y)": "({x} % NULLIF({y}, 0))",
    "TRUNCATE(x, digits)": "trunc({x}, {digits})",
    "RAND()": "random()",
    # texts
    "CONCAT(text, …)": join,
    **{f"{name}(text, start)": _CUT for name in ("SUBSTR", "SUBSTRING", "MID")},
    **{f"{name}(text, start, length)": _CUT for name in ("SUBSTR", "SUBSTRING", "MID")},
    "LEFT(text, n)": side("left"),
    "RIGHT(text, n)": side("right"),
    "LENGTH(text)": "octet_length({text})",
    "OCTET_LENGTH(text)": "octet_length({text})",
    "BIT_LENGTH(text)": "bit_length({text})",
    "UCASE(text)": "upper({text})",
    "LCASE(text)": "lower({text})",
    "TRIM(text)": trim("BOTH", characters=False),
    "LTRIM(text)": trim("LEADING"),
    "RTRIM(text)": trim("TRAILING"),
    "LPAD(text, n, fill)": "lpad({text}, {n}, {fill})",
    "RPAD(text, n, fill)": "rpad({text}, {n}, {fill})",
    "SPACE(n)": "repeat(' ', {n})",
    "INSTR(text, part)": "strpos(lower({text}), lower({part}))",
    "LOCATE(part, text)": "strpos(lower({text}), lower({part}))",
    "LOCATE(part, text, start)": found_behind(text=1, part=0),
    "POSITION(part)": found_at(text=1, part=0),
    "SUBSTRING_INDEX(text, separator, n)": "substr_index({text}, {separator}, {n})",
    "STRCMP(a, b)": (
        "CASE WHEN lower({a}) = lower({b}) THEN 0 WHEN lower({a}) < lower({b}) THEN -1 "
        "WHEN lower({a}) > lower({b}) THEN 1 END"
    ),
    "FIELD(x, …)": field_place,
    "ELT(n, …)": by_place,
    "CHAR(n)": "chr({n})",
    "REGEXP_LIKE(text, pattern)": _case_free("regexp_like"),
    "REGEXP_INSTR(text, pattern)": _case_free("regexp_instr"),
    "REGEXP_SUBSTR(text, pattern)": extract_match(whole=True, flags="i"),
    "REGEXP_REPLACE(text, pattern, new)": replace_matches(groups_by="$", flags="i"),
    "SHA2(text, bits)": "encode(sha256({text}), 'hex')",
    "GROUP_CONCAT(…)": texts_in_one("','", alone=False),
    # dates
    "CURDATE()": "current_date()",
    "SYSDATE()": "now()",
    "UTC_DATE()": "current_date()",
    "UTC_TIMESTAMP()": "now()",
    "DATE(x)": "CAST({x} AS DATE)",
    "TIMESTAMP(x)": "CAST({x} AS TIMESTAMP)",
    "DATE_FORMAT(time, pattern)": text_of(PATTERNS, value=0, pattern=1),
    "STR_TO_DATE(text, pattern)": read_by(PATTERNS, ""),
    **{f"{name}(time, interval)": _SHIFT_ADD for name in ("DATE_ADD", "ADDDATE")},
    **{f"{name}(time, interval)": _SHIFT_SUB for name in ("DATE_SUB", "SUBDATE")},
    "TIMESTAMPADD(unit, n, time)": sum_of(unit=0, count=1, date=2),
    "DATEDIFF(end, start)": difference(boundaries, unit="day", start=1, end=0),
    "TIMESTAMPDIFF(unit, start, end)": difference(elapsed_units, unit=0, start=1, end=2),
    "LAST_DAY(date)": LAST_DAY.replace("{0}", _DATE),
    "MAKEDATE(year, day)": "(make_date({year}, 1, 1) + CAST({day} - 1 AS BIGINT))",
    "TO_DAYS(date)": f"({_DATE} - DATE '1970-01-01' + 719528)",
    "EXTRACT(part)": extract,
    **parts_by_name(
        *("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFMONTH", "DAYOFYEAR", "DAYOFWEEK", "WEEKDAY"),
        *("WEEK", "WEEKOFYEAR", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "DAYNAME"),
        "MONTHNAME",
    ),
    "WEEK(time, mode)": _week,
    "UNIX_TIMESTAMP()": "to_unixtime(now())",
    "UNIX_TIMESTAMP(time)": "to_unixtime({time})",
    "FROM_UNIXTIME(n)": "to_timestamp_seconds({n})",
    # aggregates
    "SUM(x)": _of_numbers("sum"),
    "AVG(x)": _of_numbers("avg"),
    **{f"{name}(x)": "stddev_pop({x})" for name in ("STD", "STDDEV")},
    "VARIANCE(x)": "var_pop({x})",
}
_JSON = "llm_extract(text, 'name TEXT, …') reads fields from a text."
MYSQL = System(
    title="MySQL",
    table=_TABLE,
    same=(STANDARD | frozenset("concat_ws md5 now any_value bit_and bit_or bit_xor".split()))
    - {"array_agg", "generate_series", "factorial", "corr", "log2", "translate"},
    refused={
        "FORMAT": "Write CAST(x AS DECIMAL(10, 2)), which has no commas.",
        "BIT_COUNT": "There is none.",
        "FIND_IN_SET": "Write find_in_set(text, list) with dialect='sql'.",
        "INITCAP": "MySQL has none; dialect='sql' has.",
        "INSERT": "Write overlay(text PLACING new FROM 2 FOR 3) with dialect='sql'.",
        "HEX": "Write encode(text, 'hex') with dialect='sql'.",
        "TIME": "Write CAST(x AS TIME).",
        "TIMEDIFF": "Write TIMESTAMPDIFF(SECOND, start, end).",
        "YEARWEEK": "Write EXTRACT(YEAR FROM date) * 100 + WEEK(date).",
        "MAKE_DATE": "Write MAKEDATE(year, day).",
        "JSON_EXTRACT": _JSON,
        "JSON_UNQUOTE": _JSON,
        "SOUNDEX": "llm_same(a, b) recognises spellings of one name.",
        "CONVERT": "Write CAST(x AS type).",
        "CAST_TO": "Write CAST(x AS type).",
    },
    casts={
        **dict.fromkeys(("SIGNED", "SIGNED INTEGER", "UNSIGNED", "UNSIGNED INTEGER"), "BIGINT"),
        "DECIMAL": "DECIMAL(10, 0)",
        "CHAR": "VARCHAR",
        "NCHAR": "VARCHAR",
        "DATE": "DATE",
        "DATETIME": "TIMESTAMP",
        "TIME": "TIME",
        "DOUBLE": "DOUBLE",
        "FLOAT": "REAL",
        "REAL": "DOUBLE",
        "BINARY": "BYTEA",
    },
    parts={
        **PARTS,
        "DAYOFMONTH": part("day"),
        "DAYOFYEAR": part("doy"),
        "DAYOFWEEK": SUNDAY_FIRST,
        "WEEKDAY": "(date_part('isodow', {0}) - 1)",
        "WEEK": SUNDAY_WEEK,
        "WEEKOFYEAR": part("week"),
        "DAYNAME": "to_char({0}, '%A')",
        "MONTHNAME": "to_char({0}, '%B')",
        "MICROSECOND": "(date_part('microsecond', {0}) % 1000000)",
        "YEAR_MONTH": "(date_part('year', {0}) * 100 + date_part('month', {0}))",
    },
    rounds=True,
    shortens=True,
    exact_division=True,
    null_of_zero=True,
    nulls_lowest=True,
    date_difference="Write DATEDIFF(end, start), or date + INTERVAL 1 DAY.",
    dates_are_numbers=True,
    truth_is_number=True,
    moment="%Y-%m-%d %H:%M:%S%.f",
    matches={"RLIKE": ("~*", "{0}"), "REGEXP": ("~*", "{0}")},
    like="ILIKE",
    any_case=True,
    bars_join=False,
)
