"""Rewrites DataFusion's errors in the terms of the query."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from blendfusion.datafusion.columns import columns_listed
from blendfusion.datafusion.foreign_words import foreign, text_of
from blendfusion.errors import (
    BlendFusionError,
    QueryError,
    by_surface,
    close_matches,
    connect_with,
    table_of,
)
from blendfusion.redaction import Redaction
from blendfusion.services import parts
from blendfusion.udfs.declare.arguments import sql_string
from blendfusion.udfs.declare.call import CONFIDENCE, ERROR, VALUE
from blendfusion.udfs.declare.call_registry import CALLS, readable
from blendfusion.udfs.register.user_functions import known_ingredients

if TYPE_CHECKING:
    from datafusion import SessionContext

_PREFIXES = re.compile(
    r"^(DataFusion error: |Error during planning: |SQL error: |ParserError\(|Schema error: |External error: |Exception: |Execution error: )+"
)


_LISTS = re.compile(r'array_agg\(arrow_cast\((.*?), ?Utf8\("Utf8"\)\)\)')
"""The list of a group's values that an aggregate call is given: see
``substitute_calls.in_text``."""


def translate_error(
    problem: Exception,
    context: SessionContext,
    query: str,
    redaction: Redaction,
    hidden: Iterable[str] = (),
) -> BlendFusionError:
    """The error for DataFusion's ``problem`` with ``query`` before anything runs, with call sites
    as the user wrote them, and a remedy. ``hidden``: values that came with the query."""
    if isinstance(problem, BlendFusionError):
        return problem
    text = foreign(_LISTS.sub(r"\1", text_of(problem)), redaction, query=query, hidden=hidden)
    for look in _LOOKS:
        found = look(text, context, query)
        if found is not None:
            return found
    return QueryError(words(text))


_NO_TEXT = re.compile(
    r"(?:Cannot automatically convert|Unsupported CAST from) (.+?) to "
    r"(?:Large)?(Utf8|Binary|List\(Utf8\))"
)
_COERCION = re.compile(r"coercion from (.+) to the signature Exact\((.+?)\) failed", re.DOTALL)
_COMMA = re.compile(r", (?![^()]*(?:\([^()]*\)[^()]*)*\))")
"""A comma outside of brackets."""
_FIELDS = "Write what it is made of, value by value: column['field'] of a struct, column['key'] of a map; "
_BYTES = "non UTF-8 data"


def _value(text: str, _context: object, query: str) -> QueryError | None:
    return unfit(text, functions_in(query))


def unfit(text: str, named: str) -> QueryError | None:
    """The error of an argument that is no value of the functions ``named``: DataFusion does not say
    whose it is."""
    if not named:
        return None
    if _BYTES in text:
        return QueryError(
            f"{named}: a value of type BINARY is no text in UTF-8",
            hint="Images and recordings are single BINARY values, of a struct image['bytes'], of a list "
            "unnest(images), of functions of rows (llm_filter('Do both show the same?', a, b) compares two), "
            "aggregates, llm_answer, llm_compare, llm_join, llm_prefers, llm_same and llm_group; llm_vqa sees images everywhere. Others read their "
            "answers: SELECT llm_map('What does it show?', photo) AS caption. "
            "encode(column, 'base64') writes bytes as text.",
        )
    found = _NO_TEXT.search(text)
    if found is None:
        return _coercion_error(text, named)
    kind = found[1].split("(")[0].upper()
    if found[2] == "Binary" and named == "llm_transcribe":
        hint = "Speech is BINARY: the bytes of a WAV, FLAC or Ogg file."
        return QueryError(f"{named}: a value of type {kind} is no speech", hint=hint)
    if found[2] == "Binary":
        hint = "An image is BINARY, or text: an http(s) URL or a data: URL."
        return QueryError(f"{named}: a value of type {kind} is no image", hint=hint)
    if kind == "FIXEDSIZEBINARY":
        hint = "encode(column, 'hex') writes bytes, such as those of a UUID, as text."
        return QueryError(f"{named}: a value of type {kind} is no text", hint=hint)
    return QueryError(
        f"{named}: a value of type {kind} is no text",
        hint=f"{_FIELDS}of a list of them, unnest(column) in a subquery.",
    )


def _coercion_error(text: str, named: str) -> QueryError | None:
    """The error of the first argument of a kind that has no form in the type that is taken."""
    found = _COERCION.search(text)
    pairs = zip(*map(_COMMA.split, found.groups()), strict=False) if found else ()
    for given, taken in pairs:
        if taken.startswith("List(") and "(" not in given:
            message = f"{named}: a list of texts is needed, not one value"
            return QueryError(message, hint="array_agg(column), or ['a', 'b'].")
        if "(" in given and given != taken:
            kind, to = given.split("(")[0].upper(), "list of texts" if "(" in taken else "text"
            message = f"{named}: a value of type {kind} is no {to}"
            return QueryError(message, hint=f"{_FIELDS}a list of them, array_agg(…) in a subquery.")
    return None


def functions_in(query: str) -> str:
    """The functions that ask a model and are called in ``query``, for a message; '' if there are
    none."""
    words = set(re.findall(r"\b(\w+)\s*\(", query.lower()))
    return " or ".join(sorted(words & set(known_ingredients())))


def _kept_struct_error(text: str, _context: object, query: str) -> QueryError | None:
    struct = re.search(
        rf'Struct\("{VALUE}": .*, "(?:{ERROR}": Utf8|{CONFIDENCE}": Float64)\)', text
    )
    if struct is None and "not found in struct" not in text and "Dot access" not in text:
        return None
    if "Dot access" in text and struct is None:
        field = re.search(r"\)\s*\.\s*(\w+)", query)
        name = field[1] if field else "name"
        return QueryError(
            "a field is taken by its name in brackets", hint=f"Write (…)['{name}'] for (…).{name}."
        )
    if "not found in struct" in text and "llm_extract" in query.lower():
        hint = "An extraction has the fields of its schema, named as they are there."
        return QueryError(words(text), hint=hint)
    if struct is None and "not found in struct" in text and "=>" not in query:
        return QueryError(words(text), hint="DESCRIBE and a table's name list its columns' fields.")
    return QueryError(
        words(text),
        hint="Where on_error => 'keep' gives a struct, write (…)['value'] for its value and "
        "(…)['error'] for what went wrong; of confidence => 'keep', (…)['confidence'].",
    )


def words(text: str) -> str:
    """DataFusion's message without its wrapping, with call sites as the user wrote them."""
    less = readable(_PREFIXES.sub("", text).split("\n\nbacktrace")[0].strip())
    less = _INTERNAL.sub("DataFusion cannot run this: ", less)
    less = _NODE.sub(r"\1", _DEBUG.sub(r"\1", less))
    less = _WINDOW.sub("a window function is in WHERE, GROUP BY or HAVING: write QUALIFY", less)
    return _LIMIT.sub("LIMIT takes a number that is known before the query runs", less)


_DEBUG = re.compile(
    r"ScalarFunction\(ScalarFunction \{ func: ScalarUDF \{ inner: PythonFunctionScalarUDF \{ "
    r'name: "(.*?)", func: .*',
    re.DOTALL,
)
_NODE = re.compile(
    r"(Unsupported ast node (?:in sqltorel: )?\w+|Substring without for/from is not valid)\b.*",
    re.DOTALL,
)
_LIMIT = re.compile(
    r"(?:This feature is not implemented: )?Unsupported LIMIT expression: .*", re.DOTALL
)
_WINDOW = re.compile(
    r"(?:This feature is not implemented: )?Physical plan does not support logical expression "
    r"WindowFunction\(.*",
    re.DOTALL,
)
_INTERNAL = re.compile(r"^Internal error: ")
_NO_MATCH = re.compile(
    r"No function matches the given name and argument types '(\w+)(\(.*?\))'\. .*?"
    r"Candidate functions:\s*(.*)",
    re.DOTALL,
)


def _arguments(text: str, _context: object, query: str) -> QueryError | None:
    """The error of a function of DataFusion's own with arguments that it does not take."""
    found = _NO_MATCH.search(text)
    if found is None or readable(found[1]) != found[1] or "UserDefined" in found[3]:
        return None
    name, given, candidates = found.groups()
    at = re.search(rf"\b{name}\s*\(", query, re.IGNORECASE)
    line = f"line {query.count(chr(10), 0, at.start()) + 1}: " if at else ""
    taken = dict.fromkeys(each.strip() for each in candidates.splitlines())
    return QueryError(
        f"{line}{name} does not take {given}",
        hint=f"There is {', '.join(taken)}. TRY_CAST(… AS …) gives a value another type, and NULL where it has none.",
    )


def _function(text: str, context: SessionContext, query: str) -> QueryError | None:
    found = re.search(r"Invalid function '([^']+)'", text)
    if not found:
        return None
    name = found[1]
    known = {n for n in (*context.udfs(), *context.udafs(), *context.udwfs()) if n not in CALLS}
    known |= set(known_ingredients())
    near = close_matches(name, known)
    remedies = (module.function_remedy(name, query) for module in parts("remedies"))
    hint = _OTHERWISE.get(name.lower()) or next(filter(None, remedies), None)
    hint = hint or (near if "mean" in near else _LISTED)
    if re.match(r"ai[._]", name, re.IGNORECASE):
        hint = _OF_WAREHOUSES
    return QueryError(f"unknown function '{name}'", hint=hint)


_LISTED = "SHOW FUNCTIONS lists the functions that there are."
_OTHERWISE = {"llm_rank": "For the best rows write ORDER BY llm_score('…', value) DESC LIMIT 10."}
"""Remedies for functions that users may expect, but that do not exist."""

_OF_WAREHOUSES = (
    "Functions of Snowflake, BigQuery and Databricks need their dialect: "
    + by_surface("session.sql(query, dialect='snowflake')", "--dialect snowflake")
    + ", 'bigquery' or 'databricks'."
)


REGEX_REMEDY = r"A sign that is meant as itself is written behind a backslash: '\('."
_FORMS = (
    (
        r"comparison operation (?:Boolean = \w+|\w+ = Boolean)",
        "",
        "A BOOLEAN is true or false: write it alone, WHERE llm_filter('…', text), or behind NOT.",
    ),
    (
        r"comparison operation (?:List\(.*\) = \w+|\w+ = List)",
        "",
        "array_has(list, 'a') says whether a list has a value.",
    ),
    (
        r"common type to coerce (?!Utf8)\w+\b.* in I?LIKE",
        "",
        "LIKE compares texts: CAST(column AS TEXT) LIKE '…'.",
    ),
    (
        r"non-boolean predicate '(.+)' returning (?!Struct)(\w+)",
        r"a condition is needed, and \1 is \2",
        "Compare it, as in … > 7.",
    ),
    (
        r"(?s)regex parse error:.*error: (.+)",
        r"a regular expression is wrong: \1",
        REGEX_REMEDY.replace("\\", r"\\"),
    ),
    (
        r"Cast error: Cannot cast string",
        "",
        "TRY_CAST(… AS …) gives NULL for what cannot be cast; a DATE is written '2024-12-31'.",
    ),
    (
        r"temporal operation Interval\(\w+\) \* |temporal operation \w+ \* Interval",
        "",
        "A number of days is added as it is: day + llm_int('How many days?', text).",
    ),
    (
        r"only be .* by string index or",
        "in brackets stand the names of a frame's columns: frame['text'], frame[['id', 'text']]",
        "For rows write frame.filter(col('stars') < 3), frame.limit(10), frame.limit(1, offset=5).",
    ),
)


def form_error(text: str, _context: object = None, _query: str = "") -> QueryError | None:
    """The error of a form that DataFusion lacks, or None if ``text`` is about something else."""
    for pattern, message, hint in (*_FORMS, *(form for s in parts("remedies") for form in s.FORMS)):
        found = re.search(pattern, text)
        if found is not None:
            return QueryError(words(found.expand(message) or text), hint=found.expand(hint))
    return None


def _grouping_error(text: str, _context: object, query: str) -> QueryError | None:
    found = re.search(r'column "(.+?)" must appear in the GROUP BY', text)
    if found is None:
        return None
    name = readable(found[1])
    return QueryError(
        f"column '{name}' is in neither GROUP BY nor an aggregate function",
        hint=f"Add it to GROUP BY, or take one value of each group: first_value({name}).",
    )


_QUOTED_LINE = re.compile(r"""['"]([^'"\n]*)['"]""")
_PATH = re.compile(r"/|\.(?:csv|tsv|json|parquet|arrow|avro)")
"""The parts of a path or a URL, in quotes in the place of a table."""
_BARE_FILE = re.compile(
    r"(?<![\w-])[\w-]++\.(?:csv|tsv|json|jsonl|ndjson|parquet|arrow|xlsx)\b", re.IGNORECASE
)
"""The name of a file without quotes: DataFusion reads a schema and a table."""


def _table(text: str, context: SessionContext, query: str) -> QueryError | None:
    found = re.search(r"table '([^']+)' not found|No table named '?([\w.]+)'?", text)
    if not found:
        return None
    full = found[1] or found[2]
    quoted_lines = _QUOTED_LINE.findall(query)
    path = next((p for p in quoted_lines if _PATH.search(p) and full.endswith(p)), None)
    if path is not None:
        return QueryError(
            f"{path!r} is no table: a query reads registered tables, not paths",
            hint=f"Make it one, {table_of(path)}, or let queries read "
            f"files: {connect_with(read_files='urls' if '://' in path else 'local')}.",
        )
    named = _BARE_FILE.search(query)
    if named is not None and full.lower().endswith(named[0].lower()):
        return QueryError(
            f"unknown table '{named[0]}'",
            hint=f"A file is written in single quotes: FROM '{named[0]}'; or name it: {table_of(named[0])}.",
        )
    name = full.split(".")[-1]
    tables = context.catalog().schema().names()
    near = close_matches(name, tables)
    hint = (
        _as_written(near if "mean" in near else "")
        or _file_called(name)
        or _as_written(near)
        or "No table is registered: "
        + by_surface("session.register_file('sales.csv'), from_pandas, …", "--table sales.csv")
    )
    return QueryError(f"unknown table '{name}'", hint=hint)


def _file_called(name: str) -> str:
    """The remedy if a file of this name lies in the working folder."""
    with suppress(OSError):
        for file in sorted(Path().glob("*.*")):
            if file.stem.lower() == name.lower() and _BARE_FILE.fullmatch(file.name):
                return f"There is a file {file.name}: {table_of(file.name)} makes it a table."
    return ""


def _column(text: str, context: SessionContext, query: str) -> QueryError | None:
    found = re.search(r"No field named (.+?)\.(?:\s|$)", text)
    if not found:
        return None
    name = found[1].strip("'").replace('"', "")
    listed = [column for column in columns_listed(text) if readable(column.sql) == column.sql]
    known = [column for column in listed if column.relation or not _CALL.fullmatch(column.name)]
    relation, _, last = name.rpartition(".")
    relations = sorted({column.relation.replace('"', "") for column in known} - {""})
    names = [column.name for column in known]
    hint = _as_written(close_matches(last, names))
    folded = next((column for column in names if column.lower() == last.lower()), None)
    if folded is not None and folded != last:
        hint = f'Names without double quotes are read in lower case: write "{folded}" in them.'
    if relation and relations and relation not in relations:
        hint = f"The relations here: {', '.join(relations)}."
    elif "mean" not in hint and not relation and _is_alias(name, query):
        hint = (
            f"{name} is a name of SELECT, which the other clauses do not know: write its expression, or "
            f"put the query into parentheses: SELECT * FROM (SELECT …) WHERE {name} …."
        )
    hint = _quotes_or_arrow(name, names, query) or hint
    return QueryError(f"unknown column '{name}'", hint=hint or "No column can be named here.")


_CALL = re.compile(r"\w++\(.*\)")
"""The value of an aggregate function, in the list of names: no column."""
_SUGGESTED = re.compile(r"mean '(.*\W.*)'\?$")


def _as_written(hint: str) -> str:
    """The hint with a suggested name as SQL writes it: in double quotes if it has blanks or
    marks."""
    return _SUGGESTED.sub(r'mean "\1", in double quotes?', hint)


def _is_alias(name: str, query: str) -> bool:
    """Whether a query gives an expression this name by AS, or behind a call."""
    found = rf"(?:\bAS\s+|\)\s*)\"?{re.escape(name)}\"?\s*(?:,|\bFROM\b)"
    return re.search(found, query, re.IGNORECASE) is not None


def _quotes_or_arrow(name: str, names: list[str], query: str) -> str:
    """The hint for a name that is part of one with spaces, a text in double quotes, or an option;
    '' for another one."""
    spaced = next((n for n in names if n.split()[:1] == [name] and n != name and n in query), None)
    if spaced is not None:
        return f'A name with spaces is written in double quotes: "{spaced}".'
    if name.endswith("?"):
        return (
            f"The question comes first, then what it is about: llm_filter({sql_string(name)}, …)."
        )
    if re.search(rf"\w\s*\([^()]*,\s*{re.escape(name)}\s*=", query) and name in _options():
        return f"An option of a call is written with =>: {name} => …."
    if f'"{name}"' in query and not difflib.get_close_matches(
        name.lower(), [n.lower() for n in names]
    ):
        return f"Double quotes are for names of columns. Text is written in single quotes: {sql_string(name)}."
    return ""


def _options() -> set[str]:
    return {n for i in known_ingredients().values() for o in i.options for n in o.names}


def _named_argument(text: str, _context: object, query: str) -> QueryError | None:
    if "does not support named arguments" not in text or ":=" not in query:
        return None
    return QueryError(
        words(text), hint="An option of a call is written with =>: on_error => 'keep'."
    )


def _statement(text: str, _context: object, query: str) -> QueryError | None:
    """The error of a text that is no statement, or several."""
    if "only supports a single SQL statement" in text:
        hint = "Call session.sql for each; blendfusion -f script.sql runs a script."
        return QueryError("a query is one statement, and here are several", hint=hint)
    if "No SQL statements were provided" in text:
        return QueryError("the query is empty", hint="For example: SELECT * FROM reviews LIMIT 5")
    if re.search(r"not implemented: TOP\b", text):
        return QueryError("there is no TOP", hint="Write LIMIT 3 at the end of the query.")
    if "expected: an sql statement" in text.lower() and query.rstrip().endswith("?"):
        return QueryError(
            "this is no SQL",
            hint="A question in plain words: "
            + by_surface("session.ask('…').run().", "\\ask in the shell, or 'blendfusion ask'."),
        )
    return None


def _exists(text: str, _context: object, query: str) -> QueryError | None:
    return exists(text)


def exists(text: str) -> QueryError | None:
    """The error of a second table of a name; None for another one."""
    found = re.search(r"The table (\S+) already exists", text)
    if found is None:
        return None
    name = found[1].split(".")[-1]
    return QueryError(
        f"there is a table '{name}' already",
        hint=by_surface(
            f"session.deregister_table('{name}') removes it; another name keeps both.",
            f"DROP TABLE {name} removes it; --table NAME=PATH names another one.",
        ),
    )


def _ambiguous(text: str, _context: object, query: str) -> QueryError | None:
    found = re.search(r"Ambiguous reference to unqualified field (.+)", text)
    if found is None:
        return None
    name = found[1].strip().strip("'\"")
    return QueryError(f"column '{name}' is ambiguous", hint="Write its relation before it.")


def _declared_twice(text: str, _context: object, query: str) -> QueryError | None:
    found = re.search(r"duplicate unqualified field name \"?(\w+)", text)
    if found is None or not re.match(r"\s*create\b", query, re.IGNORECASE):
        return None
    return QueryError(f"column '{found[1]}' is declared twice", hint="Give it another name.")


def _syntax(text: str, context: SessionContext, query: str) -> QueryError | None:
    found = re.search(
        r'SQL error: \w+\("(.+?)(?: at Line: (\d+), Column: \d+)?"\)', text, re.DOTALL
    )
    if not found:
        return None
    # The column is that of the text with calls replaced, so only the line is worth telling.
    message, lines = readable(found[1]), query.splitlines()
    number = int(found[2]) if found[2] else len(lines)
    place = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    message = message[:1].lower() + message[1:].replace("found: EOF", "found the end of the query")
    digit = re.search(r"expected: identifier, found: (\d+)", message)
    start = digit and re.search(rf"\b{digit[1]}\w+", place)
    hint = f"See {place!r}."
    if not place:
        last = next((line.strip() for line in reversed(lines) if line.strip()), None)
        hint = f"See the end of {last!r}." if last else "Write a query."
    if "unterminated string" in message:
        hint = f"A quote within a text is written twice, as in 'It''s'. {hint}"
    if start:
        hint = f'A name that begins with a digit is written in double quotes: "{start[0]}".'
    return QueryError(f"SQL syntax on line {number}: {message}", hint=hint)


def missing_parameter(name: str) -> QueryError:
    """The error of a parameter without a value, as it is written. ``?`` never has one: DataFusion
    looks values up by name or number."""
    if name == "?":
        remedy = "Write $1, $2, … in its place, and pass session.sql(query, param_values=[…])."
    else:
        remedy = f"Pass it: session.sql(query, param_values={{{name[1:]!r}: …}})."
    return QueryError(f"the parameter {name} has no value", hint=remedy)


def _parameter(text: str, _context: object, _query: str) -> QueryError | None:
    found = _NO_VALUE.search(text)
    return missing_parameter(found[1]) if found else None


_NO_VALUE = re.compile(r"No value found for placeholder with name (\$\w+|\?)")
_LOOKS = (
    *(
        _parameter,
        _value,
        _function,
        _arguments,
        _table,
        _column,
        _ambiguous,
        _grouping_error,
        _declared_twice,
    ),
    *(_named_argument, _statement, _exists, _syntax, form_error, _kept_struct_error),
)
"""The translations of errors that have a remedy, tried in order."""
