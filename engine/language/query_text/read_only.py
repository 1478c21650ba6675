"""Checks read-only queries, which may only read the session's tables.

Three checks, each by itself enough for all that is known: on the text, before anything looks at it
(to plan CREATE TABLE … AS is to carry it out, and a table function runs while DataFusion plans it);
DataFusion's own, by ``READING``; and on the plan that came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest

from datafusion import SQLOptions
from datafusion.plan import LogicalPlan
from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.planner.ir.opaque_names import CATALOG
from blendfusion.udfs.declare.call import Call

READING = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
"""The options for DataFusion: no DDL, no DML (COPY is one), no SET, PREPARE or transactions.
"""

_FIRST_WORDS = {
    "SELECT",
    "WITH",
    "VALUES",
    "FROM",
    "EXPLAIN",
    "DESCRIBE",
    "DESC",
    "SHOW",
    "SUMMARIZE",
    "(",
}
_SECOND_WORDS = {"TABLE", "EXTERNAL", "VIEW", "INTO", "SCHEMA", "DATABASE", "FUNCTION", "CATALOG"}
_NODES = re.compile(
    r"Projection|Filter|WindowAggr|Aggregate|Sort|[\w ]*Join|Repartition|Union|TableScan|EmptyRelation|"
    r"Subquery|SubqueryAlias|Limit|Values|Explain|Analyze|Distinct|DistinctOn|Unnest|RecursiveQuery|"
    r"DescribeTable"
)
_HINT = "A read-only query reads registered tables: SELECT, WITH, VALUES, SHOW, DESCRIBE, and EXPLAIN of those."


def check_text(query: str, table_functions: Collection[str], inserted: Iterable[str] = ()) -> None:
    """Raise QueryError if ``query`` is more than one statement, another one than a query, or names
    one of ``table_functions`` (which can read anything) or what this package stores between stages.
    ``inserted``: texts that replace parameters in it."""
    for text in (query, *inserted):
        _check_names(text, table_functions)
    _check_statement(query)


def _check_names(text: str, table_functions: Iterable[str]) -> None:
    for name in (*table_functions, CATALOG):
        # Not on tokens: wherever DataFusion reads a name, the text holds it.
        found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        if found:
            what = (
                f"{found[0]}, which is no table of yours," if name == CATALOG else f"{found[0]}(…)"
            )
            raise _refusal(what, text.count("\n", 0, found.start()) + 1)


def _check_statement(query: str) -> None:
    """Checks a statement by its words. Raises QueryError for one that does more than read."""
    tree = TokenTree(query)
    tokens = tree.tokens[tree.statement :]
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        return  # DataFusion will say why
    if tokens[0].text.upper() not in _FIRST_WORDS:
        raise _refusal(_head(tokens), tokens[0].line)
    before = tokens[0]
    for token, after in zip_longest(tokens[1:], tokens[2:]):
        if before.token_type == TokenType.SEMICOLON:
            raise _refusal("a second statement", token.line)
        option = after is not None and after.token_type == TokenType.FARROW  # into => 5
        column = before.token_type == TokenType.DOT
        if token.token_type == TokenType.INTO and not option and not column:
            raise _refusal("INTO", token.line)
        before = token


def check_plan(plan: LogicalPlan) -> None:
    """Raise QueryError if ``plan`` does anything but read tables."""
    for node in _nodes(plan):
        text = node.display()
        if not _NODES.match(text):
            raise _refusal(text.split(":")[0])


def _nodes(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.inputs()


def _head(tokens: Sequence[Token]) -> str:
    """The first words of a statement: enough to recognise it, and no data."""
    words = [token.text.upper()[:20] for token in tokens[:2]]
    return " ".join(words if words[-1] in _SECOND_WORDS else words[:1])


def _refusal(what: str, line: int | None = None) -> QueryError:
    place = "" if line is None else f" on line {line}"
    return QueryError(f"read-only: {what}{place} is refused", hint=_HINT)


def check_calls(calls: Iterable[Call]) -> None:
    """Raises QueryError for a call that keeps something in the session."""
    for call in calls:
        if not call.ingredient.kind.whole_column or not call.literals:
            continue
        if json.loads(call.literals).get("name") is not None:
            raise QueryError(
                f"read-only: {call.ingredient.name}(…, name => …) is refused",
                hint="It keeps what it finds in the session. Leave out name.",
            )
