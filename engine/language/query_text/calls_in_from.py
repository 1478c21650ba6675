"""Rewrites the calls of one function in FROM."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blendfusion.errors import QueryError
from blendfusion.language.query_text.call_sites import call_spans
from blendfusion.language.query_text.lateral import Columns, Place, rewrite_sources
from blendfusion.language.query_text.parameters import fill_parameters
from blendfusion.language.query_text.query_tree import Reader


def rewrite_calls(
    sql: str,
    name: str,
    parameters: Mapping[str, str] | None,
    columns: Columns,
    rewrite: Callable[[Place], str],
    *,
    form: str,
) -> str:
    """``sql`` with what ``rewrite`` makes of each relation that is a call of ``name``.

    ``parameters`` has SQL for ``$name``, by name. Raises QueryError, with ``form`` as its hint, for
    a call elsewhere.
    """
    if parameters:
        tree = Reader(sql)
        sql = fill_parameters(tree, parameters, call_spans(tree, [name])).sql

    def rewrite_call(place: Place) -> str | None:
        source = place.source
        if source.kind != "function" or place.reader.word(source.start) != name.upper():
            return None
        return rewrite(place)

    found = rewrite_sources(sql, columns, rewrite_call)
    if call_spans(Reader(found), [name]):
        raise QueryError(f"{name} belongs in FROM", hint=form)
    return found
