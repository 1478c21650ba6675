"""Rewrites ``FROM llm_search('docs', 'query', k => 5)`` in the text of a query.

A search for a literal becomes the name of a table that is scanned when the query runs. A search for
an expression becomes an unnest() of a function that gives each row the list of its best rows: over
the relation that the expression reads, or over one row if it reads none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from datafusion import SessionContext
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError, close_matches
from blendfusion.language.query_text.call_sites import Span, literal_of
from blendfusion.language.query_text.calls_in_from import rewrite_calls
from blendfusion.language.query_text.lateral import (
    Columns,
    Expansion,
    Place,
    Rewriting,
)
from blendfusion.language.query_text.query_tree import Source
from blendfusion.planner.ir.opaque_names import CATALOG
from blendfusion.planner.ir.search_tables import SEARCHES, Search, search_name
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

if TYPE_CHECKING:
    from blendfusion.services.search.session import Searching
    from blendfusion.udfs.declare.arguments import Literal

NAME = "llm_search"
_PARAMETERS = ("index", "query", "k", "mode", "where")
_FORM = "Write FROM llm_search('index', 'query', k => 5, mode => 'hybrid')."
_DEFAULT_K = 5
_HIT = "__blendfusion_hit"


def table_of(search: Search) -> str:
    """The table of a search, in SQL."""
    return f"{CATALOG}.{SEARCHES}.{quoted_name(search_name(search))}"


def rewrite_searches(
    sql: str,
    session: Searching,
    parameters: Mapping[str, str] | None,
    columns: Columns,
    *,
    read_only: bool,
) -> str:
    """``sql`` with its searches rewritten for DataFusion, which a read-only query may have. Raises
    QueryError for an invalid search.

    ``parameters`` has SQL for ``$name``, by name.
    """
    return rewrite_calls(
        sql,
        NAME,
        parameters,
        columns,
        lambda place: _Searching(place, session).rewrite(),
        form=_FORM,
    )


class _Searching(Rewriting):
    """One search in FROM."""

    def __init__(self, place: Place, session: Searching) -> None:
        super().__init__(place)
        self._session = session
        self._query: Span | None = None
        """The tokens of the query, if it is not a literal."""
        self._search = self._read()
        self._names = tuple(session.indexes.index(self._search.index).schema.names)

    def rewrite(self) -> str:
        """The text with this search replaced. Raises QueryError."""
        if not self._query:
            return self._in_place(table_of(self._search))
        alone = self._alone()
        if self.columns(f"{alone} AS x") is not None:
            return self._in_place(alone)
        found = self.text()
        if found is None:
            raise QueryError(
                f"{NAME}: the query {self._query_text} is not searchable here",
                hint="The query is a literal, a parameter, or an expression over the columns of one table "
                "before it in FROM, joined by a comma, CROSS JOIN, JOIN … ON or LEFT "
                "JOIN … ON TRUE. Qualify a column name that two tables share.",
            )
        return found

    # --- arguments -------------------------------------------------------------------------------

    def _read(self) -> Search:
        reader = self.reader
        given: dict[str, Span] = {}
        for start, stop in reader.parts(self.source.start + 2, self.source.end - 1):
            part = start, stop
            if stop - start > 1 and reader.kind(start + 1) == TokenType.FARROW:
                name, value = reader.name(start).lower(), (start + 2, stop)
            elif len(given) < len(_PARAMETERS):
                name, value = _PARAMETERS[len(given)], part
            else:
                raise QueryError(f"{NAME}: takes {len(_PARAMETERS)} arguments", hint=_FORM)
            if name not in _PARAMETERS:
                near = close_matches(name, _PARAMETERS)
                raise QueryError(f"{NAME}: no argument '{name}'", hint=near)
            if name in given:
                raise QueryError(f"{NAME}: '{name}' is given twice", hint="Give it once.")
            given[name] = value
        for name in _PARAMETERS[:2]:
            if name not in given or given[name][0] == given[name][1]:
                raise QueryError(f"{NAME}: the {name} is missing", hint=_FORM)
        index = self._literal("index", given["index"])
        if not isinstance(index, str):
            raise QueryError(f"{NAME}: {index!r} is not the name of an index", hint=_FORM)
        query = literal_of(reader.tokens[slice(*given["query"])])
        if query is None:
            self._query = given["query"]
            if self._query_text.startswith("$"):
                raise QueryError(
                    f"{NAME}: the parameter {self._query_text} has no value",
                    hint=f"Pass it: session.sql(query, param_values={{{self._query_text[1:]!r}: …}}).",
                )
        elif query.value is not None and not isinstance(query.value, str):
            raise QueryError(f"{NAME}: the query {query.value!r} is not text", hint=_FORM)
        rest = {name: self._literal(name, given[name]) for name in given if name in _PARAMETERS[2:]}
        found = self._session.indexes.check(
            index,
            "" if query is not None and query.value is None else None,
            rest.get("k", _DEFAULT_K),
            rest.get("mode"),
            rest.get("where"),
        )
        if query is not None and isinstance(query.value, str):
            return replace(found, query=query.value)
        return found

    def _literal(self, name: str, given: Span) -> Literal:
        found = literal_of(self.reader.tokens[slice(*given)])
        if found is None:
            text = self.reader.source_text(*given)
            raise QueryError(f"{NAME}: {name} => {text} is not a literal", hint=_FORM)
        return found.value

    @property
    def _query_text(self) -> str:
        return self.reader.source_text(*self._query) if self._query else ""

    # --- what takes its place --------------------------------------------------------------------

    def _in_place(self, text: str) -> str:
        source = self.source
        if source.alias is None:
            text += f" AS {NAME}"
        start = source.start - 1 if source.lateral else source.start
        return self.reader.edit([(start, source.end, text)])

    def _alone(self) -> str:
        """A derived table of the rows for a query that reads no other table."""
        hits = f"SELECT unnest({self._function(keeps_empty=False)}({self._query_text})) AS {_HIT}"
        fields = ", ".join(_fields(_HIT, self._names, self._names))
        return f"(SELECT {fields} FROM ({hits}))"

    def _function(self, *, keeps_empty: bool) -> str:
        """The session's function that gives each row the list of its best rows."""
        function = self._session.indexes.function(self._search, keeps_empty=keeps_empty)
        SessionContext.register_udf(self._session, function)
        return function.name

    def expansion(self) -> Expansion | None:
        joined = self.join_form()
        if joined is None or self._query is None or self.source is self.select.sources[0]:
            return None
        keeps_empty, condition = joined
        return Expansion(*self._query, self._names, keeps_empty, condition)

    def relation(
        self, what: Expansion, owner: str, known: Sequence[str], inside: Sequence[str]
    ) -> str:
        function = self._function(keeps_empty=what.keeps_empty)
        kept = [quoted_name(name) for name in known]
        fields = _fields(_HIT, self._names, inside)
        search_text = str(self._search).replace("…", self._query_text, 1)
        # For EXPLAIN: see ``cuts.one_line``.
        comment = f"{search_text} for each row".replace("*/", "* /").replace("$", "")
        values = f"unnest({function}({self._query_text})) AS {_HIT}"
        hits = f"SELECT /*= {comment} =*/ *, {values} FROM {owner}"
        return f"SELECT {', '.join([*kept, *fields])} FROM ({hits})"

    def alias_of(self, source: Source) -> str | None:
        """The function's name is the default alias of a search."""
        found = super().alias_of(source)
        return NAME if found is None and source is self.source else found


def _fields(hit: str, names: Sequence[str], called: Sequence[str]) -> list[str]:
    """The fields of a struct as columns."""
    return [
        f"{hit}[{sql_string(name)}] AS {quoted_name(new)}"
        for name, new in zip(names, called, strict=True)
    ]
