"""Functions that several systems spell alike and mean alike."""

from __future__ import annotations

STANDARD = frozenset(
    (
        "abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees exp factorial "
        "floor radians sin sinh sqrt tan tanh pi round count sum avg min max coalesce nullif lower "
        "upper replace reverse repeat lpad rpad ascii corr covar_pop covar_samp stddev_pop "
        "stddev_samp var_pop var_samp row_number rank dense_rank percent_rank cume_dist ntile lag "
        "lead first_value last_value nth_value grouping current_date current_timestamp unnest "
        "array_agg generate_series"
    ).split()
)
"""Functions with the same meaning in DataFusion and in all systems that have them."""

CHARACTERS = {
    "CHAR_LENGTH(text)": "length({text})",
    "CHARACTER_LENGTH(text)": "length({text})",
}
NUMBERS = {
    "CEILING(x)": "ceil({x})",
    "SIGN(x)": "CAST(signum({x}) AS BIGINT)",
    "POW(x, y)": "power(CAST({x} AS DOUBLE), {y})",
    "POWER(x, y)": "power(CAST({x} AS DOUBLE), {y})",
}
ERROR_OF_LOGARITHM = "({x} + 0 / CAST({x} > 0 AS INT))"
"""``x``, or an error where it has no logarithm: ours would be infinite."""
LOGARITHMS = {
    "LN(x)": f"ln({ERROR_OF_LOGARITHM})",
    "LOG10(x)": f"log10({ERROR_OF_LOGARITHM})",
}
NULL_LOGARITHMS = {
    "LN(x)": "CASE WHEN {x} > 0 THEN ln({x}) END",
    "LOG10(x)": "CASE WHEN {x} > 0 THEN log10({x}) END",
    "LOG2(x)": "CASE WHEN {x} > 0 THEN log2({x}) END",
    "LOG(x)": "CASE WHEN {x} > 0 THEN ln({x}) END",
    "LOG(base, x)": (
        "CASE WHEN {x} > 0 AND {base} > 0 AND {base} <> 1 THEN ln({x}) / ln({base}) END"
    ),
}
CONDITIONS = {
    "IFNULL(x, other)": "coalesce({x}, {other})",
    "NVL(x, other)": "coalesce({x}, {other})",
    "NVL2(x, a, b)": "CASE WHEN {x} IS NOT NULL THEN {a} ELSE {b} END",
}
IF = {"IF(condition, a, b)": "CASE WHEN {condition} THEN {a} ELSE {b} END"}

_INSTANT = "CAST({0} AS TIMESTAMP)"


def part(name: str) -> str:
    """A part of a date or time as our SQL of ``{0}``."""
    return f"date_part('{name}', {{0}})"


SUNDAY_FIRST = "(date_part('dow', {0}) + 1)"
"""The day of the week, from 1, Sunday, to 7."""
SUNDAY_WEEK = "CAST(to_char({0}, '%U') AS INT)"
"""The week of the year; the days before its first Sunday are in week 0."""
PARTS = {
    **{name: part(name.lower()) for name in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")},
    "SECOND": part("second"),
    "DATE": f"CAST({_INSTANT} AS DATE)",
}
ISO = {"ISOWEEK": part("week"), "ISOYEAR": part("isoyear")}
DAYS = {"DAYNAME": "to_char({0}, '%a')", "MONTHNAME": "to_char({0}, '%b')"}
