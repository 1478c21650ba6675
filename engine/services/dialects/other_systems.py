"""Forms and functions of other systems that DataFusion lacks, with what to write here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from blendfusion.errors import remedy_for, table_of
from blendfusion.services.dialects.call_arguments import plain_arguments

_FUNCTIONS = {
    "year month day hour minute second quarter week": "date_part('{name}', day)",
    "dayofweek weekday dow": "date_part('dow', day)",
    "dayofyear doy": "date_part('doy', day)",
    "monthname": "to_char(day, '%B')",
    "dayname": "to_char(day, '%A')",
    "datediff date_diff timestampdiff": "late - early, which is a number of days between dates",
    "age months_between": "late - early, which is a number of days between dates",
    "date_add dateadd adddate timestampadd add_months": "day + INTERVAL '1 month', or day + 1",
    "date_sub datesub subdate": "day - INTERVAL '1 month', or day - 1",
    "last_day eomonth": "date_trunc('month', day) + INTERVAL '1 month' - INTERVAL '1 day'",
    "getdate sysdate systimestamp": "now()",
    "curdate": "current_date",
    "unix_timestamp": "date_part('epoch', moment)",
    "strftime format_date format_timestamp": "to_char(day, '%Y-%m')",
    "strptime str_to_date parse_date": "to_date(text, '%d/%m/%Y')",
    "parse_timestamp": "to_timestamp(text, '%d/%m/%Y %H:%M')",
    "group_concat listagg wm_concat": "string_agg(text, ', ')",
    "list": "array_agg(text)",
    "collect_list": "array_agg(text) FILTER (WHERE text IS NOT NULL)",
    "collect_set": "array_agg(DISTINCT text) FILTER (WHERE text IS NOT NULL)",
    "isnull": "coalesce(number, 0), or number IS NULL",
    "zeroifnull": "coalesce(number, 0)",
    "if iff iif": "CASE WHEN number > 1 THEN 'a' ELSE 'b' END",
    "count_if countif": "count(*) FILTER (WHERE number > 1)",
    "max_by arg_max argmax": "first_value(text ORDER BY number DESC NULLS LAST)",
    "min_by arg_min argmin": "first_value(text ORDER BY number)",
    "mode": "SELECT text FROM t GROUP BY text ORDER BY count(text) DESC LIMIT 1",
    "every": "bool_and(number > 1)",
    "variance": "var(number)",
    "approx_count_distinct": "approx_distinct(text)",
    "regexp_extract regexp_substr": "regexp_match(text, '[0-9]+')[1]",
    "sign": "signum(number)",
    "regexp regexp_contains regexp_matches rlike": "regexp_like(text, '[0-9]+')",
    "len": "length(text)",
    "charindex locate": "strpos(text, 'a')",
    "string_split split": "string_to_array(text, ' ')",
    "lcase": "lower(text)",
    "ucase": "upper(text)",
    "mid": "substr(text, 1, 2)",
    "replicate": "repeat(text, 2)",
    "typeof pg_typeof": "arrow_typeof(text)",
    "convert to_number int string": "CAST(number AS TEXT)",
    "div0 try_divide safe_divide": "number / nullif(number, 0)",
    "explode": "unnest(texts)",
    "newid": "uuid()",
}
_JSON = (
    "Text in JSON is not read in queries. A file of it is a table: "
    f"{table_of('a.jsonl')}; "
    "a field is column['key']."
)
_JSON_FUNCTION = re.compile(r"json|^get_path$")
FORMS = (
    (r"Unsupported JOIN operator Anti\(", "there is no ANTI JOIN", "Write LEFT ANTI JOIN."),
    (r"Unsupported JOIN operator Semi\(", "there is no SEMI JOIN", "Write LEFT SEMI JOIN."),
    (
        r"Unsupported JOIN operator AsOf\b",
        "there is no ASOF JOIN",
        "Join by the inequality, and keep the nearest: QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.day "
        "DESC) = 1.",
    ),
    (
        r"does not support logical expression (?:OuterReferenceColumn|ScalarSubquery|InSubquery|Exists)\("
        r"|No field named (found\d*)\.\w+\. Did you mean '\1\.\1'",  # of subquery_values
        "a part of the query refers to a table beside it, or to the query around it, where DataFusion has no plan for it",
        "Write a join, and keep rows by QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.day) <= 1; or take "
        "one value: (SELECT max(b.day) FROM b WHERE b.id = a.id). EXISTS as a value needs an equality with the outer "
        "row, and a query of its own below GROUP BY: FROM (SELECT *, EXISTS (…) AS found FROM a).",
    ),
    (
        r"UPDATE \.\.\. FROM is not supported",
        "there is no UPDATE … FROM",
        "Write UPDATE t SET n = (SELECT max(s.n) FROM s WHERE s.id = t.id) WHERE id IN (SELECT id FROM s).",
    ),
    (
        r"Using clause not supported",
        "there is no DELETE … USING",
        "Write DELETE FROM t WHERE id IN (SELECT id FROM s).",
    ),
    (
        r"Update-limit clause not supported",
        "there is no LIMIT here",
        "Name the rows: WHERE id IN (SELECT …).",
    ),
    (
        r"MERGE INTO not supported",
        "there is no MERGE",
        "Write UPDATE t SET n = (SELECT max(s.n) FROM s WHERE s.id = t.id) WHERE id IN (SELECT id FROM s), then INSERT "
        "INTO t SELECT * FROM s WHERE id NOT IN (SELECT id FROM t).",
    ),
    (r"TRUNCATE not supported", "there is no TRUNCATE", "Write DELETE FROM t."),
    (
        r"Replace Into not implemented|Insert-on clause not supported",
        "there is no INSERT that replaces rows or leaves out those of a known key",
        "Write DELETE FROM t WHERE id IN (SELECT id FROM s) first, or INSERT INTO t SELECT * FROM s WHERE id NOT IN "
        "(SELECT id FROM t).",
    ),
    (
        r"(?:Update|Delete|Insert)-returning clause not",
        "there is no RETURNING",
        "Write a SELECT of the rows before it.",
    ),
    (
        r"not implemented: Query (UPDATE|DELETE) ",
        r"there is no WITH before \1",
        "Write the query in its place: WHERE id IN (SELECT …).",
    ),
    (
        r"not implemented: Unsupported SQL statement: (?:BEGIN|START TRANSACTION|SAVEPOINT)|TransactionEnd|Transaction\w+\)",
        "there are no transactions",
        "Each statement takes effect by itself.",
    ),
    (
        r"Unsupported logical plan: CreateIndex",
        "there are no indexes of columns",
        "Nothing need be written: a scan leaves out what its statistics exclude.",
    ),
    (
        r"Temporary tables not supported",
        "there are no temporary tables",
        "Write CREATE TABLE: a session keeps it in memory.",
    ),
    (
        r"not implemented: Unsupported SQL statement: (GRANT|REVOKE|VACUUM|ANALYZE|PRAGMA|LOCK|CALL|USE|OPTIMIZE)\b",
        r"there is no \1",
        "Options are set by SET name = value, and tables named in full: schema.table.",
    ),
    (
        r"not implemented: Unsupported SQL statement: (?:RENAME|ALTER TABLE \S+ RENAME)",
        "tables keep their names",
        "Write CREATE TABLE b AS SELECT * FROM a, then DROP TABLE a.",
    ),
    (r"FETCH clause is not supported", "there is no FETCH", "Write LIMIT 5."),
    (
        r"Unsupported ast node Pivot",
        "there is no PIVOT",
        "Write count(*) FILTER (WHERE a = 'x') AS x.",
    ),
    (
        r"Unsupported ast node Unpivot",
        "there is no UNPIVOT",
        "Write SELECT 'a' AS name, a AS value FROM t UNION ALL SELECT 'b', b FROM t.",
    ),
    (r"Unsupported ast node in sqltorel: RLike", "there is no RLIKE", "Write a ~ 'pattern'."),
    (r"ANY in I?LIKE", "there is no LIKE ANY", "Write regexp_like(a, 'x|y'), or join LIKEs by OR."),
    (r"operator: PGOverlap", "there is no &&", "Write AND."),
    (r"operator: PGStartsWith", "there is no ^@", "Write starts_with(a, 'x')."),
    (r"Operator (->>?) is not yet supported", r"there is no \1", _JSON),
    (
        r"CAST with format is not supported",
        "CAST takes no format",
        "Write to_date(text, '%d/%m/%Y'), or to_char(day, '%d/%m/%Y').",
    ),
)


_PARAMETERS = {
    "year month day hour minute second quarter week": ["day"],
    "dayofweek weekday dow dayofyear doy monthname dayname last_day": ["day"],
    "eomonth": ["day"],
    "unix_timestamp": ["moment"],
    "datediff date_diff timestampdiff": ["unit early late", "late early"],
    "months_between age": ["late early"],
    "strftime format_date format_timestamp": ["'%Y-%m' day", "day '%Y-%m'"],
    "strptime str_to_date": ["text '%d/%m/%Y'"],
    "parse_date": ["'%d/%m/%Y' text"],
    "group_concat listagg wm_concat collect_list collect_set list": ["text"],
    "isnull zeroifnull sign": ["number"],
    "max_by arg_max argmax min_by arg_min argmin": ["text number"],
    "approx_count_distinct lcase ucase len typeof pg_typeof": ["text"],
    "variance": ["number"],
}
"""The words of a remedy that stand for the arguments of a function, for each number of them."""


def function_remedy(name: str, query: str = "") -> str | None:
    """A sentence with the form for a function of other systems, with the arguments of its call in
    ``query`` where these are columns; None for a name that is none of these."""
    name = name.lower()
    if _JSON_FUNCTION.search(name):
        return _JSON
    found = remedy_for(name, _FUNCTIONS)
    if found is None:
        return None
    return f"Write {_with_arguments(name, found.replace('{name}', name), query)}."


def _with_arguments(name: str, remedy: str, query: str) -> str:
    """The remedy with the arguments of a call in the place of its examples."""
    given = plain_arguments(name, query)
    forms = next((forms for names, forms in _PARAMETERS.items() if name in names.split()), [])
    for form in forms:
        words = form.split()
        if given is not None and len(words) == len(given) and _fits(words, given):
            own = dict(zip(words, given, strict=True))
            pattern = "|".join(rf"(?<![\w'%]){re.escape(word)}(?![\w'])" for word in words)
            return re.sub(pattern, partial(_own_word, own), remedy)
    return remedy


def _fits(words: Sequence[str], given: Sequence[str]) -> bool:
    """Whether a pattern of dates stands where a text does."""
    pairs = zip(words, given, strict=True)
    return all(text.startswith("'") for word, text in pairs if word.startswith("'"))


def _own_word(own: Mapping[str, str], at: re.Match[str]) -> str:
    return own[at[0]]
