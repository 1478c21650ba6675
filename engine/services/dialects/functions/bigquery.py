"""The functions of BigQuery, as the reference of GoogleSQL describes them."""

from __future__ import annotations

from blendfusion.services.dialects.functions.aggregates import items_in_one, row_with, texts_in_one
from blendfusion.services.dialects.functions.call import System, Table
from blendfusion.services.dialects.functions.date_patterns import BIGQUERY as PATTERNS
from blendfusion.services.dialects.functions.dates import (
    LAST_DAY,
    boundaries,
    difference,
    elapsed_units,
    read_by,
    start_of,
    sum_with_interval,
    text_of,
)
from blendfusion.services.dialects.functions.extract import extract
from blendfusion.services.dialects.functions.regexes import extract_match, replace_matches
from blendfusion.services.dialects.functions.shared_tables import (
    CHARACTERS,
    CONDITIONS,
    ERROR_OF_LOGARITHM,
    IF,
    ISO,
    LOGARITHMS,
    NUMBERS,
    PARTS,
    STANDARD,
    SUNDAY_FIRST,
    SUNDAY_WEEK,
    part,
)
from blendfusion.services.dialects.functions.texts import (
    cut,
    join,
    length,
    null_if_any,
    print_format,
    side,
    split,
    trim,
    with_names,
)

_BLANKS = r"[\s]"
_QUOTIENT = "{a} / CAST({b} AS DOUBLE)"
_COUNTED = difference(boundaries, unit=2, start=1, end=0, sunday=True)
_START = start_of(unit=1, date=0, sunday=True)
_TABLE: Table = {
    **CHARACTERS,
    **NUMBERS,
    **LOGARITHMS,
    **IF,
    "IFNULL(x, other)": CONDITIONS["IFNULL(x, other)"],
    "GREATEST(x, …)": null_if_any("greatest"),
    "LEAST(x, …)": null_if_any("least"),
    "SAFE_DIVIDE(a, b)": "(CAST({a} AS DOUBLE) / NULLIF(CAST({b} AS DOUBLE), 0))",
    "IEEE_DIVIDE(a, b)": "(CAST({a} AS DOUBLE) / CAST({b} AS DOUBLE))",
    "DIV(a, b)": "CAST(trunc(CAST({a} AS DOUBLE) / ({b} + 0 / CAST({b} <> 0 AS INT))) AS BIGINT)",
    "MOD(a, b)": "({a} % {b})",
    "LOG(x)": f"ln({ERROR_OF_LOGARITHM})",
    "LOG(x, base)": f"(ln({ERROR_OF_LOGARITHM}) / ln({{base}}))",
    "TRUNC(x)": "trunc({x})",
    "TRUNC(x, digits)": "trunc({x}, {digits})",
    "RAND()": "random()",
    "IS_NAN(x)": "isnan({x})",
    "STRUCT(…)": with_names,
    # texts
    "CONCAT(text, …)": join,
    "SUBSTR(text, start)": cut(zero="first", early="first"),
    "SUBSTR(text, start, length)": cut(zero="first", early="first"),
    "SUBSTRING(text, start)": cut(zero="first", early="first"),
    "SUBSTRING(text, start, length)": cut(zero="first", early="first"),
    "LEFT(text, n)": side("left"),
    "RIGHT(text, n)": side("right"),
    "LENGTH(x)": length(),
    "BYTE_LENGTH(x)": "octet_length({x})",
    "TRIM(text)": trim("BOTH", blanks=_BLANKS),
    "TRIM(text, characters)": trim("BOTH"),
    "LTRIM(text)": trim("LEADING", blanks=_BLANKS),
    "LTRIM(text, characters)": trim("LEADING"),
    "RTRIM(text)": trim("TRAILING", blanks=_BLANKS),
    "RTRIM(text, characters)": trim("TRAILING"),
    "SPLIT(text)": split,
    "SPLIT(text, separator)": split,
    "INSTR(text, part)": "strpos({text}, {part})",
    "CHR(n)": "chr({n})",
    "UNICODE(text)": "ascii({text})",
    "EDIT_DISTANCE(a, b)": "levenshtein({a}, {b})",
    "CONTAINS_SUBSTR(text, part)": "contains(lower({text}), lower({part}))",
    "FORMAT(pattern, …)": print_format(null="NULL"),
    "REGEXP_CONTAINS(text, pattern)": "regexp_like({text}, {pattern})",
    "REGEXP_EXTRACT(text, pattern)": extract_match(),
    "REGEXP_SUBSTR(text, pattern)": extract_match(),
    "REGEXP_REPLACE(text, pattern, new)": replace_matches(groups_by="\\"),
    "REGEXP_INSTR(text, pattern)": "regexp_instr({text}, {pattern})",
    "STRING_AGG(text, …)": texts_in_one("','"),
    "TO_HEX(x)": "encode({x}, 'hex')",
    "SHA256(x)": "sha256({x})",
    "SHA512(x)": "sha512({x})",
    "MD5(x)": "decode(md5({x}), 'hex')",
    "STRING(x)": "CAST({x} AS VARCHAR)",
    # dates
    "DATE(x)": "CAST({x} AS DATE)",
    "DATE(year, month, day)": "make_date({year}, {month}, {day})",
    "DATETIME(x)": "CAST({x} AS TIMESTAMP)",
    "TIMESTAMP(x)": "CAST({x} AS TIMESTAMP)",
    "CURRENT_DATETIME()": "now()",
    **{
        f"{name}_ADD(time, interval)": sum_with_interval()
        for name in ("DATE", "DATETIME", "TIMESTAMP")
    },
    **{
        f"{name}_SUB(time, interval)": sum_with_interval(-1)
        for name in ("DATE", "DATETIME", "TIMESTAMP")
    },
    "DATE_DIFF(end, start, unit)": _COUNTED,
    "DATETIME_DIFF(end, start, unit)": _COUNTED,
    "TIMESTAMP_DIFF(end, start, unit)": difference(elapsed_units, unit=2, start=1, end=0),
    "DATE_TRUNC(time, unit)": _START,
    "DATETIME_TRUNC(time, unit)": _START,
    "TIMESTAMP_TRUNC(time, unit)": _START,
    "LAST_DAY(date)": LAST_DAY.replace("{0}", "{date}"),
    **{
        f"FORMAT_{name}(pattern, time)": text_of(PATTERNS, value=1, pattern=0)
        for name in ("DATE", "DATETIME", "TIMESTAMP")
    },
    "PARSE_DATE(pattern, text)": read_by(PATTERNS, "DATE", value=1, pattern=0),
    "PARSE_DATETIME(pattern, text)": read_by(PATTERNS, "TIMESTAMP", value=1, pattern=0),
    "PARSE_TIMESTAMP(pattern, text)": read_by(PATTERNS, "TIMESTAMP", value=1, pattern=0),
    "EXTRACT(part)": extract,
    "UNIX_DATE(date)": "(CAST({date} AS DATE) - DATE '1970-01-01')",
    "DATE_FROM_UNIX_DATE(days)": "(DATE '1970-01-01' + CAST({days} AS BIGINT))",
    "UNIX_SECONDS(time)": "to_unixtime({time})",
    "TIMESTAMP_SECONDS(n)": "to_timestamp_seconds({n})",
    "TIMESTAMP_MILLIS(n)": "to_timestamp_millis({n})",
    "TIMESTAMP_MICROS(n)": "to_timestamp_micros({n})",
    # aggregates
    "ARRAY_AGG(x, …)": items_in_one(nulls=True),
    "COUNTIF(condition)": "count(CASE WHEN {condition} THEN 1 END)",
    "LOGICAL_OR(x)": "bool_or({x})",
    "LOGICAL_AND(x)": "bool_and({x})",
    "MAX_BY(x, by)": row_with("max"),
    "MIN_BY(x, by)": row_with("min"),
    "APPROX_COUNT_DISTINCT(x)": "approx_distinct({x})",
    "VARIANCE(x)": "var_samp({x})",
    # lists
    "ARRAY_LENGTH(list)": "array_length({list})",
    "ARRAY_TO_STRING(list, separator)": "array_to_string({list}, {separator})",
    "ARRAY_TO_STRING(list, separator, null)": "array_to_string({list}, {separator}, {null})",
    "ARRAY_CONCAT(a, b)": "array_concat({a}, {b})",
    "ARRAY_FIRST(list)": "array_element({list}, 1)",
    "ARRAY_LAST(list)": "array_element({list}, -1)",
    "ARRAY_REVERSE(list)": "array_reverse({list})",
    "GENERATE_ARRAY(start, end)": "generate_series({start}, {end})",
    "GENERATE_ARRAY(start, end, step)": "generate_series({start}, {end}, {step})",
    "GENERATE_DATE_ARRAY(start, end)": "generate_series({start}, {end}, INTERVAL '1 day')",
}
_JSON = "llm_extract(text, 'name TEXT, …') reads fields from a text."
BIGQUERY = System(
    title="BigQuery",
    table=_TABLE,
    same=STANDARD
    | frozenset(
        (
            "strpos starts_with ends_with translate octet_length stddev any_value bit_and bit_or "
            "bit_xor row_number"
        ).split()
    )
    - {"array_agg", "generate_series"},
    refused={
        "INITCAP": "initcap(text) with dialect='sql' begins a word behind an apostrophe, too.",
        "PERCENTILE_CONT": "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x), dialect='sql'.",
        "PERCENTILE_DISC": "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x), dialect='sql'.",
        "APPROX_QUANTILES": "Write approx_percentile_cont(x, 0.5) with dialect='sql'.",
        "APPROX_TOP_COUNT": "Write GROUP BY x ORDER BY count(*) DESC LIMIT n.",
        "JSON_VALUE": _JSON,
        "JSON_EXTRACT": _JSON,
        "JSON_EXTRACT_SCALAR": _JSON,
        "JSON_QUERY": _JSON,
        "TO_JSON_STRING": "Write CAST(x AS STRING) of each field.",
        "REGEXP_EXTRACT_ALL": "Write REGEXP_EXTRACT(text, pattern), the first of them.",
        "GENERATE_UUID": "uuid() with dialect='sql' is one.",
        "SOUNDEX": "llm_same(a, b) recognises spellings of one name.",
        "NORMALIZE": "Texts are compared as they are.",
        "SAFE_ADD": "Write a + b.",
        "FARM_FINGERPRINT": "Write md5(text) with dialect='sql'.",
        "ERROR": "Errors cannot be raised in a query.",
        "SESSION_USER": "There are no users.",
        "NTH_VALUE": "Write nth_value(x, 2) OVER (…) with dialect='sql'.",
    },
    casts={
        **dict.fromkeys(
            ("INT64", "INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "BYTEINT"), "BIGINT"
        ),
        "FLOAT64": "DOUBLE",
        "STRING": "VARCHAR",
        "BOOL": "BOOLEAN",
        "BOOLEAN": "BOOLEAN",
        "NUMERIC": "DECIMAL(38, 9)",
        "DECIMAL": "DECIMAL(38, 9)",
        "BIGNUMERIC": "DECIMAL(76, 38)",
        "BIGDECIMAL": "DECIMAL(76, 38)",
        "DATE": "DATE",
        "TIME": "TIME",
        "BYTES": "BYTEA",
        "DATETIME": "TIMESTAMP",
        "TIMESTAMP": "TIMESTAMP",
    },
    parts={
        **PARTS,
        **ISO,
        "DAYOFWEEK": SUNDAY_FIRST,
        "DAYOFYEAR": part("doy"),
        "WEEK": SUNDAY_WEEK,
        "WEEK(SUNDAY)": SUNDAY_WEEK,
        "WEEK(MONDAY)": "CAST(to_char({0}, '%W') AS INT)",
        "MILLISECOND": "(date_part('millisecond', {0}) % 1000)",
        "MICROSECOND": "(date_part('microsecond', {0}) % 1000000)",
    },
    rounds=True,
    moment="%Y-%m-%d %H:%M:%S%.f",
    exact_division=True,
    nulls_lowest=True,
    date_difference="Write DATE_DIFF(end, start, DAY).",
    unnests_by_name=True,
    first_index=0,
)
