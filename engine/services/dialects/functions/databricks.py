"""The functions of Databricks, as its SQL reference describes them."""

from __future__ import annotations

from blendfusion.services.dialects.functions.aggregates import items_in_one, row_with, texts_in_one
from blendfusion.services.dialects.functions.call import FunctionCall, System, Table, Written
from blendfusion.services.dialects.functions.date_patterns import JAVA as PATTERNS
from blendfusion.services.dialects.functions.dates import (
    LAST_DAY,
    boundaries,
    difference,
    elapsed_units,
    read_by,
    start_of,
    sum_of,
    text_of,
)
from blendfusion.services.dialects.functions.extract import extract, named_part, parts_by_name
from blendfusion.services.dialects.functions.regexes import extract_match, replace_matches
from blendfusion.services.dialects.functions.shared_tables import (
    CHARACTERS,
    CONDITIONS,
    DAYS,
    IF,
    NULL_LOGARITHMS,
    NUMBERS,
    PARTS,
    STANDARD,
    SUNDAY_FIRST,
    part,
)
from blendfusion.services.dialects.functions.texts import (
    as_given,
    choose,
    cut,
    found_at,
    found_behind,
    join,
    length,
    print_format,
    side,
    split_by_pattern,
    trim,
    with_names,
)

_DATE = "CAST({date} AS DATE)"
_CUT = cut(zero="first", early="clipped")
_ADDED = sum_of(unit=0, count=1, date=2)
_PASSED = difference(elapsed_units, unit=0, start=1, end=2)
_DAYS = difference(boundaries, unit="day", start=1, end=0)


def _start(call: FunctionCall) -> Written:
    """``trunc(date, 'MM')``: a date."""
    words = call.words(1)
    allowed = ("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK")
    if words not in allowed:
        raise call.refusal(f"'{words}' has no equal unit", at=call.arguments[1][0])
    return ["CAST(", *start_of(unit=1, date=0)(call), " AS DATE)"]


_TABLE: Table = {
    **CHARACTERS,
    **NUMBERS,
    **NULL_LOGARITHMS,
    **IF,
    **CONDITIONS,
    "IFF(condition, a, b)": "CASE WHEN {condition} THEN {a} ELSE {b} END",
    "ISNULL(x)": "({x} IS NULL)",
    "ISNOTNULL(x)": "({x} IS NOT NULL)",
    "ZEROIFNULL(x)": "coalesce({x}, 0)",
    "NULLIFZERO(x)": "NULLIF({x}, 0)",
    "EQUAL_NULL(a, b)": "({a} IS NOT DISTINCT FROM {b})",
    "DECODE(x, a, b, …)": choose(null_is_value=True),
    "TRY_DIVIDE(a, b)": "(CAST({a} AS DOUBLE) / NULLIF(CAST({b} AS DOUBLE), 0))",
    "MOD(x, y)": "({x} % {y})",
    "DIV(x, y)": "CAST(trunc(CAST({x} AS DOUBLE) / ({y} + 0 / CAST({y} <> 0 AS INT))) AS BIGINT)",
    "PMOD(x, y)": "((({x} % {y}) + {y}) % {y})",
    "NEGATIVE(x)": "(-{x})",
    "RAND()": "random()",
    "RANDOM()": "random()",
    "STRUCT(…)": with_names,
    # texts
    "CONCAT(text, …)": join,
    "SUBSTR(text, start)": _CUT,
    "SUBSTR(text, start, length)": _CUT,
    "SUBSTRING(text, start)": _CUT,
    "SUBSTRING(text, start, length)": _CUT,
    "LEFT(text, n)": side("left"),
    "RIGHT(text, n)": side("right"),
    "LENGTH(x)": length(),
    "LEN(x)": length(),
    "TRIM(text)": trim("BOTH"),
    "BTRIM(text)": trim("BOTH"),
    "BTRIM(text, characters)": trim("BOTH"),
    "LTRIM(text)": trim("LEADING"),
    "LTRIM(characters, text)": trim("LEADING", first=True),
    "RTRIM(text)": trim("TRAILING"),
    "RTRIM(characters, text)": trim("TRAILING", first=True),
    "REPLACE(text, part)": "replace({text}, {part}, '')",
    "REPLACE(text, part, new)": "replace({text}, {part}, {new})",
    "SPLIT(text, separator)": split_by_pattern,
    "SPLIT_PART(text, separator, n)": "split_part({text}, {separator}, {n})",
    "CONTAINS(text, part)": "contains({text}, {part})",
    "STARTSWITH(text, start)": "starts_with({text}, {start})",
    "ENDSWITH(text, end)": "ends_with({text}, {end})",
    "INSTR(text, part)": "strpos({text}, {part})",
    "LOCATE(part, text)": "strpos({text}, {part})",
    "LOCATE(part, text, start)": found_behind(text=1, part=0),
    "CHARINDEX(part, text)": "strpos({text}, {part})",
    "POSITION(part)": found_at(text=1, part=0),
    "POSITION(part, text)": "strpos({text}, {part})",
    "LEVENSHTEIN(a, b)": "levenshtein({a}, {b})",
    "CHR(n)": "chr({n} % 256)",
    "CHAR(n)": "chr({n} % 256)",
    "SPACE(n)": "repeat(' ', {n})",
    "UCASE(text)": "upper({text})",
    "LCASE(text)": "lower({text})",
    "SHA2(text, bits)": lambda call: call.fill(f"encode({_sha(call)}({{0}}), 'hex')"),
    "FORMAT_STRING(pattern, …)": print_format(null="null"),
    "PRINTF(pattern, …)": print_format(null="null"),
    "REGEXP_LIKE(text, pattern)": "regexp_like({text}, {pattern})",
    "REGEXP(text, pattern)": "regexp_like({text}, {pattern})",
    "RLIKE(text, pattern)": "regexp_like({text}, {pattern})",
    "REGEXP_EXTRACT(text, pattern)": extract_match(group=1, absent="empty"),
    "REGEXP_EXTRACT(text, pattern, group)": extract_match(group=1, absent="empty"),
    "REGEXP_SUBSTR(text, pattern)": extract_match(whole=True),
    "REGEXP_REPLACE(text, pattern, new)": replace_matches(groups_by="$"),
    "REGEXP_COUNT(text, pattern)": "regexp_count({text}, {pattern})",
    "LISTAGG(text, …)": texts_in_one("''"),
    "STRING_AGG(text, …)": texts_in_one("''"),
    "STRING(x)": "CAST({x} AS VARCHAR)",
    "INT(x)": "CAST({x} AS INT)",
    "BIGINT(x)": "CAST({x} AS BIGINT)",
    "DOUBLE(x)": "CAST({x} AS DOUBLE)",
    "BOOLEAN(x)": "CAST({x} AS BOOLEAN)",
    # dates
    "DATE(x)": "CAST({x} AS DATE)",
    "TIMESTAMP(x)": "CAST({x} AS TIMESTAMP)",
    "CURDATE()": "current_date()",
    "DATE_FORMAT(time, pattern)": text_of(PATTERNS, value=0, pattern=1),
    "TO_CHAR(time, pattern)": text_of(PATTERNS, value=0, pattern=1),
    "TO_VARCHAR(time, pattern)": text_of(PATTERNS, value=0, pattern=1),
    "TO_DATE(x)": "CAST({x} AS DATE)",
    "TO_DATE(text, pattern)": read_by(PATTERNS, "DATE"),
    "TO_TIMESTAMP(x)": "to_timestamp({x})",
    "TO_TIMESTAMP(text, pattern)": read_by(PATTERNS, "TIMESTAMP"),
    "MAKE_DATE(year, month, day)": "make_date({year}, {month}, {day})",
    "DATE_ADD(date, n)": sum_of(unit="day", count=1, date=0),
    "DATE_SUB(date, n)": sum_of(unit="day", count=1, date=0, sign=-1),
    **{f"{name}(unit, n, date)": _ADDED for name in ("DATEADD", "DATE_ADD", "TIMESTAMPADD")},
    "DATEDIFF(end, start)": _DAYS,
    "DATE_DIFF(end, start)": _DAYS,
    **{f"{name}(unit, start, end)": _PASSED for name in ("DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF")},
    "ADD_MONTHS(date, n)": sum_of(unit="month", count=1, date=0),
    "LAST_DAY(date)": LAST_DAY.replace("{0}", _DATE),
    "DATE_TRUNC(unit, time)": start_of(unit=0, date=1, dates=False),
    "TRUNC(date, unit)": _start,
    "EXTRACT(part)": extract,
    "DATE_PART(part, time)": named_part(part=0, time=1),
    "DATEPART(part, time)": named_part(part=0, time=1),
    **parts_by_name(
        *("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFMONTH", "DAYOFYEAR", "DAYOFWEEK", "WEEKDAY"),
        *("WEEKOFYEAR", "HOUR", "MINUTE", "SECOND", "DAYNAME", "MONTHNAME"),
    ),
    "UNIX_DATE(date)": f"({_DATE} - DATE '1970-01-01')",
    "UNIX_TIMESTAMP()": "to_unixtime(now())",
    "UNIX_TIMESTAMP(time)": "to_unixtime({time})",
    "TO_UNIX_TIMESTAMP(time)": "to_unixtime({time})",
    "UNIX_SECONDS(time)": "to_unixtime({time})",
    "FROM_UNIXTIME(n)": "to_char(to_timestamp_seconds({n}), '%Y-%m-%d %H:%M:%S')",
    "TIMESTAMP_SECONDS(n)": "to_timestamp_seconds({n})",
    "TIMESTAMP_MILLIS(n)": "to_timestamp_millis({n})",
    "GETDATE()": "now()",
    # aggregates
    "ARRAY_AGG(x, …)": items_in_one(nulls=False, empty=True),
    "COLLECT_LIST(x, …)": items_in_one(nulls=False, empty=True),
    "COLLECT_SET(x, …)": items_in_one(nulls=False, empty=True),
    "COUNT_IF(condition)": "count(CASE WHEN {condition} THEN 1 END)",
    "SOME(x)": "bool_or({x})",
    "EVERY(x)": "bool_and({x})",
    "MEAN(x)": "avg({x})",
    "STD(x)": "stddev_samp({x})",
    "VARIANCE(x)": "var_samp({x})",
    "MAX_BY(x, by)": row_with("max"),
    "MIN_BY(x, by)": row_with("min"),
    "APPROX_COUNT_DISTINCT(x)": "approx_distinct({x})",
    # lists
    "ARRAY(…)": as_given("make_array"),
    "ARRAY_CONTAINS(list, x)": "array_has({list}, {x})",
    "ARRAY_SIZE(list)": "array_length({list})",
    "SIZE(list)": "array_length({list})",
    "ARRAY_JOIN(list, separator)": "array_to_string({list}, {separator})",
    "ARRAY_JOIN(list, separator, null)": "array_to_string({list}, {separator}, {null})",
    "ELEMENT_AT(list, n)": "array_element({list}, {n})",
    "SEQUENCE(start, end)": "generate_series({start}, {end})",
    "SEQUENCE(start, end, step)": "generate_series({start}, {end}, {step})",
    "EXPLODE(list)": "unnest({list})",
}


def _sha(call: FunctionCall) -> str:
    bits = call.number(1)
    if bits not in (0, 224, 256, 384, 512):
        raise call.refusal("the bits must be 224, 256, 384 or 512 here")
    return f"sha{bits or 256}"


_JSON = "llm_extract(text, 'name TEXT, …') reads fields from a text."
DATABRICKS = System(
    title="Databricks",
    table=_TABLE,
    same=STANDARD
    | frozenset(
        (
            "translate octet_length bit_length stddev median percentile_cont any_value bool_and "
            "bool_or bit_and bit_or bit_xor concat_ws greatest least nanvl now named_struct "
            "cardinality array_append array_compact array_distinct array_except array_intersect "
            "array_max array_min array_position array_prepend array_remove array_union "
            "arrays_overlap md5 sha256 find_in_set flatten log2 regr_avgx regr_avgy regr_count "
            "regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy"
        ).split()
    )
    - {"array_agg", "generate_series"},
    refused={
        "INITCAP": "initcap(text) with dialect='sql' begins a word behind every sign.",
        "MONTHS_BETWEEN": "Write DATEDIFF(MONTH, start, end), a whole number.",
        "GET_JSON_OBJECT": _JSON,
        "FROM_JSON": _JSON,
        "TO_JSON": "Write named_struct('name', value).",
        "BROUND": "Write round(x, digits), which rounds halves away from zero.",
        "FORMAT_NUMBER": "Write CAST(x AS DECIMAL(10, 2)).",
        "ARRAY_SORT": "array_sort(list) with dialect='sql' begins with NULL.",
        "SORT_ARRAY": "Write array_sort(list) with dialect='sql'.",
        "ARRAY_REPEAT": "Write array_repeat(x, n) with dialect='sql'.",
        "SLICE": "Write array_slice(list, start, end) with dialect='sql'.",
        "MODE": "Write GROUP BY x ORDER BY count(*) DESC LIMIT 1.",
        "PERCENTILE": "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x).",
        "SUBSTRING_INDEX": "Write substr_index(text, separator, n) with dialect='sql'.",
        "SOUNDEX": "llm_same(a, b) recognises spellings of one name.",
        "OVERLAY": "Write overlay(text PLACING new FROM 2 FOR 3) with dialect='sql'.",
    },
    casts={
        "INT": "INT",
        "INTEGER": "INT",
        "BIGINT": "BIGINT",
        "LONG": "BIGINT",
        "SMALLINT": "SMALLINT",
        "SHORT": "SMALLINT",
        "TINYINT": "TINYINT",
        "BYTE": "TINYINT",
        "FLOAT": "REAL",
        "REAL": "REAL",
        "DOUBLE": "DOUBLE",
        "STRING": "VARCHAR",
        **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), "DECIMAL(10, 0)"),
        "BOOLEAN": "BOOLEAN",
        "DATE": "DATE",
        "TIMESTAMP": "TIMESTAMP",
        "BINARY": "BYTEA",
        "TIMESTAMP_NTZ": "TIMESTAMP",
    },
    parts={
        **PARTS,
        **DAYS,
        "YEAROFWEEK": part("isoyear"),
        "WEEK": part("week"),
        "WEEKOFYEAR": part("week"),
        "DAYOFMONTH": part("day"),
        "DAYOFYEAR": part("doy"),
        "DOY": part("doy"),
        "DAYOFWEEK": SUNDAY_FIRST,
        "DOW": SUNDAY_FIRST,
        "DAYOFWEEK_ISO": part("isodow"),
        "DOW_ISO": part("isodow"),
        "WEEKDAY": "(date_part('isodow', {0}) - 1)",
    },
    exact_division=True,
    nulls_lowest=True,
    date_difference="Write DATEDIFF(end, start).",
    truth_is_number=True,
    first_index=0,
    paths=True,
    moment="%Y-%m-%d %H:%M:%S%.f",
    matches={"RLIKE": ("~", "{0}"), "REGEXP": ("~", "{0}")},
)
