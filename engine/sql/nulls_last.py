"""Sorts answers NULLS LAST in both directions, since rows without an answer are the least wanted.

DataFusion puts NULLs first where an order descends; where it descends by an answer, and the query
does not say otherwise, we say it for the user.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from blendfusion.sql.resolve_columns import References
from blendfusion.sql.sqlglot_tree import STOP


def nulls_last(tree: exp.Expr, names: Collection[str], refers: References) -> list[int]:
    """The offsets behind each DESC of an answer that says nothing of NULLs.

    An answer is a call of one of ``names``, and what is computed from one: also in the select item
    that a column refers to.
    """
    return sorted(
        node.meta[STOP]
        for node in tree.find_all(exp.Ordered)
        if STOP in node.meta and _is_answer(node.this, names, refers)
    )


def _is_answer(sorted_by: exp.Expr, names: Collection[str], refers: References) -> bool:
    waiting, seen = [sorted_by], {id(sorted_by)}
    for expression in waiting:  # grows
        for node in expression.walk():
            if isinstance(node, exp.Anonymous) and node.name in names:
                return True
            for origin in refers.origins(node):
                if id(origin) not in seen:
                    seen.add(id(origin))
                    waiting.append(origin)
    return False
