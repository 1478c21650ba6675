"""The task of writing a query, and its values: tables, keys, linked values and the last problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blendfusion.services.ask.links import Link
from blendfusion.services.ask.schema.catalog import Catalog, Column, Table, split
from blendfusion.services.ask.schema.keys import Key
from blendfusion.services.ask.schema.names import written_name
from blendfusion.types import Constraint, Task
from blendfusion.udfs.declare.arguments import sql_string

COLUMNS = ("tables", "stored values", "examples", "question", "query", "problem")
QUESTION = (
    "Write one SQL query (PostgreSQL syntax, one line) over the tables that answers the question. To "
    "judge free text, use a function: llm_filter('yes or no question', column) is BOOLEAN; "
    "llm_classify(column, ['label', 'other label']) is one of the labels; llm_int('How many …?', column) is a "
    "number; llm_map('What …?', column) is a short text. Use them only for what no column states."
)
_EXAMPLES = """\
Examples, over callers (caller_id, name, city) and calls (call_id, caller_id, seconds, notes):
question: How many callers are there in each city?
query: SELECT city, count(*) FROM callers GROUP BY city
question: How many calls from Rome were friendly?
query: SELECT count(*) FROM calls AS T1 JOIN callers AS T2 ON T1.caller_id = T2.caller_id \
WHERE T2.city = 'Rome' AND llm_filter('Is the caller friendly?', T1.notes)
question: Is the longest call about sales or about support?
query: SELECT llm_classify(notes, ['sales', 'support']) FROM calls ORDER BY seconds DESC LIMIT 1
question: What do callers ask for?
query: SELECT call_id, llm_map('What does the caller ask for?', notes) FROM calls
question: Which calls promise a refund within three days?
query: SELECT call_id FROM calls WHERE llm_filter('Is a refund promised?', notes) \
AND llm_int('Within how many days?', notes) <= 3

"""
"""Questions over tables with free text. The model sees them if the tables of the question have a
column of it: few queries that models have read judge a text otherwise than by LIKE."""


def drafting(constraint: Constraint, variant: int = 0) -> Task:
    """The task of writing a query, free or under a grammar."""
    return Task("ask", QUESTION, constraint, COLUMNS, form="query", variant=variant)


def has_free_text(catalog: Catalog) -> bool:
    return any(column.free_text for table in catalog.tables for column in table.columns)


def values_of(
    catalog: Catalog,
    links: Sequence[Link],
    question: str,
    query: str | None = None,
    problem: str | None = None,
    examples: Sequence[tuple[str, str]] = (),
) -> tuple[str | None, ...]:
    """The values of one request about the tables that a model sees.

    Where the question mentions a column but none of its values, these are not listed: the samples
    show them, and models filter by all that are listed.
    """
    tables = "\n".join(
        (*(describe(t, catalog.keys) for t in catalog.tables), *map(str, catalog.metrics))
    )
    return (
        f"{_EXAMPLES if has_free_text(catalog) else ''}Tables:\n{tables}",
        "\n".join(_on_one_line(link) for link in links if not link.by_column) or None,
        as_lines(examples) or None,
        question,
        query,
        None if problem is None else " ".join(problem.split()),
    )


def _on_one_line(link: Link) -> str:
    """A linked value. A line break in it would begin a line of the prompt."""
    return f"{link.column} = {sql_string(' '.join(link.value.split()))}"


def as_lines(pairs: Iterable[tuple[str, str]]) -> str:
    """Pairs of question and query, two lines each."""
    return "\n".join(
        f"question: {' '.join(question.split())}\nquery: {' '.join(sql.split())}"
        for question, sql in pairs
    )


def describe(table: Table, keys: Sequence[Key]) -> str:
    """A table as models have read most of them: CREATE TABLE, with its keys, and with notes and
    sample values as comments, each at the end of a line."""
    lines = [(f"{written_name(c.name)} {c.type}", _comment(c)) for c in table.columns]
    for key in keys:
        (own, column), (other, referred) = split(key.left), split(key.right)
        if own == table.name:
            names = written_name(column), written_name(other), written_name(referred)
            lines.append(("FOREIGN KEY ({}) REFERENCES {} ({})".format(*names), ""))
    last = len(lines) - 1
    inner = (
        f"  {line}{',' if place < last else ''}{comment}"
        for place, (line, comment) in enumerate(lines)
    )
    note = f" -- {table.note}" if table.note else ""
    rest = (f"  -- and {table.left_out:,} other columns",) if table.left_out else ()
    whole = (f"CREATE TABLE {written_name(table.name)} ({note}", *inner, *rest, ");")
    return "\n".join(" ".join(line.splitlines()) for line in whole)


def _comment(column: Column) -> str:
    samples = ", ".join(_samples(column))
    judged = f"free text, to be judged by llm_filter('…?', {written_name(column.name)})"
    parts = column.note, judged if column.free_text else "", f"e.g. {samples}" if samples else ""
    words = "; ".join(filter(None, parts))
    return f" -- {words}" if words else ""


def _samples(column: Column) -> Iterable[str]:
    is_number = column.type in ("INTEGER", "DOUBLE", "DECIMAL", "BOOLEAN")
    shown = column.samples[:1] if column.free_text else column.samples
    return shown if is_number else map(sql_string, shown)
