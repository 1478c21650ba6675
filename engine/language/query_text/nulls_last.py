"""Sorts answers NULLS LAST in both directions, since rows without an answer are the least wanted.

DataFusion puts NULLs first where an order descends; where it descends by an answer, and the query
does not say otherwise, we say it for the user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from blendfusion.language.query_text.relations import name_of
from blendfusion.language.query_text.resolve_columns import References
from blendfusion.language.query_text.sqlglot_tree import stop_of


def nulls_last(tree: exp.Expr, names: Collection[str], refers: References) -> list[int]:
    """The offsets behind each DESC of an answer that says nothing of NULLs.

    An answer is a call of one of ``names``, and what is computed from one: also in the select item
    that a column refers to.
    """
    stops = ((node, stop_of(node)) for node in tree.find_all(exp.Ordered))
    return sorted(
        stop for node, stop in stops if stop is not None and _is_answer(node.this, names, refers)
    )


def _is_answer(sorted_by: exp.Expr, names: Collection[str], refers: References) -> bool:
    waiting, seen = [sorted_by], {id(sorted_by)}
    for expression in waiting:  # grows
        for node in expression.walk(prune=_is_query):
            if isinstance(node, exp.Query):  # its values, not what its rows must meet
                waiting += _values(node)
                continue
            if isinstance(node, exp.Anonymous) and node.name in names:
                return True
            for origin in (*refers.origins(node), *_named_window(node)):
                if id(origin) not in seen:
                    seen.add(id(origin))
                    waiting.append(origin)
    return False


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _values(query: exp.Query) -> list[exp.Expr]:
    """The items of a query, or the queries that it is made of."""
    if isinstance(query, exp.SetOperation):
        return [query.this, query.expression]
    return [query.this] if isinstance(query, exp.Subquery) else list(query.expressions)


def _named_window(node: exp.Expr) -> Iterator[exp.Expr]:
    """The window that ``OVER name`` names."""
    name = node.args.get("alias") if isinstance(node, exp.Window) else None
    select = node.find_ancestor(exp.Select)
    if name is None or select is None:
        return
    for window in select.args.get("windows") or ():
        if window is not node and name_of(window.this) == name_of(name):
            yield window
