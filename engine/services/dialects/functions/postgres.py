"""PostgreSQL, whose SQL SUQL's queries are written in."""

from __future__ import annotations

from dataclasses import replace

from blendfusion.services.dialects.functions.aggregates import texts_in_one
from blendfusion.services.dialects.functions.call import FunctionCall, System, Table, Written
from blendfusion.services.dialects.functions.date_patterns import POSTGRES as PATTERNS
from blendfusion.services.dialects.functions.dates import read_by, text_of
from blendfusion.services.dialects.functions.extract import extract, named_part
from blendfusion.services.dialects.functions.regexes import extract_match, first_replaced
from blendfusion.services.dialects.functions.shared_tables import (
    CHARACTERS,
    ERROR_OF_LOGARITHM,
    LOGARITHMS,
    NUMBERS,
    PARTS,
    STANDARD,
    part,
)
from blendfusion.services.dialects.functions.texts import found_at, print_format, trim


def _cut(call: FunctionCall) -> Written:
    """SUBSTRING of a text, or of what a pattern finds."""
    if len(call.arguments) > 1 and call.literal(1) is not None:
        return extract_match()(call)
    names = ", ".join(f"{{{i}}}" for i in range(len(call.arguments)))
    return call.fill(f"substr({names})") if len(call.arguments) > 1 else _standard_cut(call)


def _standard_cut(call: FunctionCall) -> Written:
    """``SUBSTRING(text FROM 2 FOR 3)``; FROM a pattern in quotes."""
    reader = call.reader
    start, stop = call.arguments[0]
    places = {
        word: i
        for i in range(start, stop)
        if (word := reader.word(i)) in ("FROM", "FOR", "SIMILAR") and not reader.depth(start, i)
    }
    at = places.get("FROM")
    if at is None or "SIMILAR" in places:
        raise call.refusal("this form has no equal here", "Write substr(text, 2, 3).")
    end = places.get("FOR", stop)
    one = replace(call, arguments=((start, at), (at + 1, end)))
    if one.literal(1) is not None:
        return extract_match()(one)
    texts = [call.weaver.text(start, at), call.weaver.text(at + 1, end)]
    if end < stop:
        texts.append(call.weaver.text(end + 1, stop))
    return [f"substr({', '.join(texts)})"]


_TABLE: Table = {
    **CHARACTERS,
    **NUMBERS,
    **LOGARITHMS,
    "LOG(x)": f"log10({ERROR_OF_LOGARITHM})",
    "LOG(base, x)": f"(ln({ERROR_OF_LOGARITHM}) / ln({{base}}))",
    "MOD(x, y)": "({x} % {y})",
    "DIV(x, y)": "CAST(trunc(CAST({x} AS DOUBLE) / ({y} + 0 / CAST({y} <> 0 AS INT))) AS BIGINT)",
    "TO_CHAR(time, pattern)": text_of(PATTERNS, value=0, pattern=1),
    "TO_DATE(text, pattern)": read_by(PATTERNS, "DATE"),
    "TO_TIMESTAMP(text, pattern)": read_by(PATTERNS, "TIMESTAMP"),
    "TO_TIMESTAMP(seconds)": "to_timestamp(CAST({seconds} AS DOUBLE))",
    "EXTRACT(part)": extract,
    "DATE_PART(part, time)": named_part(part=0, time=1),
    "DATE(time)": "CAST({time} AS DATE)",
    "POSITION(part)": found_at(text=1, part=0),
    "SUBSTRING(…)": _cut,
    "TRIM(text)": trim("BOTH"),
    "TRIM(text, characters)": trim("BOTH"),
    "REGEXP_REPLACE(text, pattern, new)": first_replaced,
    "REGEXP_REPLACE(text, pattern, new, flags)": first_replaced,
    "REGEXP_SUBSTR(text, pattern)": extract_match(whole=True),
    "FORMAT(pattern, …)": print_format(null=""),
    "STRING_AGG(text, separator, …)": texts_in_one("','"),
    "VARIANCE(x)": "var_samp({x})",
    "EVERY(condition)": "bool_and({condition})",
    "RANDOM()": "random()",
    "CARDINALITY(list)": "array_length({list})",
    "ARRAY_LENGTH(list, dimension)": "NULLIF(array_length({list}, {dimension}), 0)",
}
_BUT_DATES = "INTERVAL is what is left of a date after another: a.time - b.time."
POSTGRES = System(
    title="PostgreSQL",
    table=_TABLE,
    same=STANDARD
    | frozenset(
        (
            "ltrim rtrim btrim strpos starts_with md5 concat concat_ws left right length "
            "octet_length bit_length initcap chr date_trunc split_part greatest least bool_and "
            "bool_or bit_and bit_or bit_xor stddev string_to_array array_to_string array_append "
            "array_prepend array_cat array_position array_positions array_remove array_replace "
            "regexp_like regexp_count regexp_match translate now gcd lcm trunc overlay encode "
            "decode sha224 sha256 sha384 sha512 to_hex any_value percentile_cont regr_avgx "
            "regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy "
            "substr make_date date_bin nvl ifnull date_part instr"
        ).split()
    ),
    refused={
        "AGE": _BUT_DATES,
        "MAKE_INTERVAL": "Write INTERVAL '1 day'.",
        "JUSTIFY_DAYS": _BUT_DATES,
        "REGEXP_MATCHES": "Write regexp_match(text, pattern), the first of them.",
        "REGEXP_SPLIT_TO_ARRAY": "Write string_to_array(text, separator).",
        "REGEXP_INSTR": "Write regexp_instr(text, pattern) with dialect='sql'.",
        "TO_NUMBER": "Write CAST(text AS DECIMAL(10, 2)).",
        "WIDTH_BUCKET": "Write floor((x - low) / step).",
        "MEDIAN": "Write percentile_cont(0.5) WITHIN GROUP (ORDER BY x).",
        "QUOTE_LITERAL": "Pass values as parameters.",
        "RANGE": "Write generate_series(1, 3).",
    },
    casts={
        **{kind: kind for kind in ("BIGINT", "INT", "INTEGER", "SMALLINT", "BOOLEAN", "DATE")},
        "INT8": "BIGINT",
        "INT4": "INT",
        "INT2": "SMALLINT",
        "BOOL": "BOOLEAN",
        "TEXT": "VARCHAR",
        "VARCHAR": "VARCHAR",
        "CHARACTER VARYING": "VARCHAR",
        "FLOAT8": "DOUBLE",
        "DOUBLE PRECISION": "DOUBLE",
        "FLOAT4": "REAL",
        "REAL": "REAL",
        "NUMERIC": "DECIMAL(38, 10)",
        "DECIMAL": "DECIMAL(38, 10)",
        "FLOAT": "DOUBLE",
        "TIMESTAMP": "TIMESTAMP",
        "TIME": "TIME",
        "INTERVAL": "INTERVAL",
        "BYTEA": "BYTEA",
        "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
        "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
        "TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE",
    },
    parts={
        **PARTS,
        "SECOND": "(date_part('epoch', {0}) - 60 * floor(date_part('epoch', {0}) / 60))",
        "MILLISECONDS": part("millisecond"),
        "MICROSECONDS": part("microsecond"),
        "EPOCH": part("epoch"),
        "DOW": part("dow"),
        "ISODOW": part("isodow"),
        "DOY": part("doy"),
        "WEEK": part("week"),
        "ISOYEAR": part("isoyear"),
        "CENTURY": "CAST(ceil(date_part('year', {0}) / 100.0) AS BIGINT)",
        "DECADE": "CAST(floor(date_part('year', {0}) / 10) AS BIGINT)",
    },
    rounds=True,
    rounds_to_even=True,
    shortens=True,
    moment="%Y-%m-%d %H:%M:%S%.f",
    caret_is_power=True,
    matches={"SIMILAR": ("~", "similar")},
    strict=False,
)
