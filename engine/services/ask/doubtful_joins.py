"""Joins that multiply rows, join what does not belong together, or are undone."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from sqlglot import exp

from blendfusion.services.ask.column_origins import relations
from blendfusion.services.ask.comparisons import COMPARISONS
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.links import name_stems
from blendfusion.services.ask.where import predicates

_MOST_PAIRS = 10_000_000
"""Pairs of rows that a comparison other than equality may be tried on."""


def cross_join(case: Case) -> Doubt | None:
    """Relations without a predicate between them: every row is paired with every other."""
    for select in case.selects:
        pair = _unconnected_pair(case, select)
        if pair is not None:
            return (
                f"the query joins {pair[0]} and {pair[1]} without a key: every row of one is paired with every "
                "row of the other",
                "Join them on a key.",
            )
    return None


def _unconnected_pair(case: Case, select: exp.Select) -> tuple[str, str] | None:
    """The first two relations that no equality connects."""
    known = [relation for relation in relations(select) if _has_many_rows(relation)]
    names = [relation.alias_or_name.lower() for relation in known]
    group = {name: {name} for name in names}
    for join in select.args.get("joins") or ():
        if join.args.get("using") or join.method == "NATURAL":
            other = join.this.alias_or_name.lower()
            if other in group and names[0] in group:
                _unite(group, names[0], other)
    few = _pairs(case, known) <= _MOST_PAIRS
    for term in _comparisons(select):
        if not few and not isinstance(term, exp.EQ):
            continue
        left, right = (_relations_of(case, side) & set(names) for side in (term.left, term.right))
        for one in left:
            for other in right:
                _unite(group, one, other)
    for name in names[1:]:
        if name not in group[names[0]]:
            return names[0], name
    return None


def _unite(group: dict[str, set[str]], one: str, other: str) -> None:
    both = group[one] | group[other]
    for name in both:
        group[name] = both


def _has_many_rows(relation: exp.Expr) -> bool:
    """Whether a relation is a table, or a query that may have several rows; no call, and no list
    of values."""
    if isinstance(relation, exp.Subquery):
        inner = relation.this
        if not isinstance(inner, exp.Select):
            return isinstance(inner, exp.SetOperation)
        limit = inner.args.get("limit")
        one = limit is not None and limit.expression.name == "1"
        single = not inner.args.get("group") and inner.find(exp.AggFunc) is not None
        return not one and not single and inner.args.get("from_") is not None
    return isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier)


def _pairs(case: Case, known: list[exp.Expr]) -> int:
    """The pairs, triples, … of rows of some relations, as far as their tables are known."""
    tables = (case.origins.table(relation) for relation in known)
    return prod(table.rows for table in tables if table is not None)


def _comparisons(select: exp.Select) -> Iterator[exp.Binary]:
    """The comparisons of ON and WHERE, those under OR and of correlated subqueries too."""
    clauses = [join.args.get("on") for join in select.args.get("joins") or ()]
    for clause in (*clauses, select.args.get("where")):
        yield from clause.find_all(*COMPARISONS) if clause is not None else ()


def _relations_of(case: Case, side: exp.Expr) -> set[str]:
    columns = side.find_all(exp.Column)
    return {r.alias_or_name.lower() for c in columns if (r := case.origins.relation(c)) is not None}


def joined_pairs(case: Case) -> Iterator[tuple[exp.EQ, exp.Column, exp.Column]]:
    """The equalities of two columns, with both."""
    for equal in case.tree.find_all(exp.EQ):
        if isinstance(equal.left, exp.Column) and isinstance(equal.right, exp.Column):
            yield equal, equal.left, equal.right


def equal_to_itself(case: Case) -> Doubt | None:
    """A column compared with itself, which holds for every row."""
    for equal, left, right in joined_pairs(case):
        same = case.origins.relation(left)
        if (
            left.name.lower() == right.name.lower()
            and same is not None
            and same is case.origins.relation(right)
        ):
            return f"{equal.sql('postgres')} compares a column with itself", "Join on a key."
    return None


def joined_on_no_key(case: Case) -> Doubt | None:
    """A join on two columns that no key of the catalogue relates, whose names differ."""
    group: dict[str, set[str]] = {}
    for key in case.catalog.keys:
        one, other = key.left.lower(), key.right.lower()
        both = group.get(one, {one}) | group.get(other, {other})
        group.update(dict.fromkeys(both, both))
    for equal, left, right in joined_pairs(case):
        one, other = case.origins.place(left), case.origins.place(right)
        if not one or not other or one == other or other in group.get(one, ()):
            continue
        if one not in group and other not in group:
            continue
        names = name_stems(left.name) - _KEYS, name_stems(right.name) - _KEYS
        if names[0] & names[1]:
            continue
        return (
            f"{equal.sql('postgres')} joins columns that no key relates",
            _keys_hint(case, one, other),
        )
    return None


_KEYS = frozenset("id code key no nr number uuid".split())


def _keys_hint(case: Case, one: str, other: str) -> str:
    tables = {place.rpartition(".")[0] for place in (one, other)}
    fitting = [
        str(key)
        for key in case.catalog.keys
        if {key.left.lower().rpartition(".")[0], key.right.lower().rpartition(".")[0]} == tables
    ]
    return (
        f"The key is {' or '.join(fitting)}." if fitting else "Join along the keys of the tables."
    )


def outer_join_undone(case: Case) -> Doubt | None:
    """A predicate of WHERE on the table of a LEFT JOIN, which drops the rows without a partner."""
    for select in case.selects:
        optional = {
            join.this.alias_or_name.lower()
            for join in select.args.get("joins") or ()
            if join.side == "LEFT"
        }
        for term in predicates(select) if optional else ():
            if term.find(exp.Is, exp.Coalesce, exp.Or, exp.Case, exp.Exists) is not None:
                continue
            if _relations_of(case, term) & optional:
                return (
                    f"WHERE {term.sql('postgres')} drops the rows that the LEFT JOIN keeps",
                    "Put the predicate into ON.",
                )
    return None


def counts_missing_rows(case: Case) -> Doubt | None:
    """count(*) over a LEFT JOIN in groups, which counts one where there is no partner."""
    for select in case.selects:
        joins = select.args.get("joins") or ()
        if not select.args.get("group") or not any(join.side == "LEFT" for join in joins):
            continue
        for call in select.find_all(exp.Count):
            if call.parent_select is select and isinstance(call.this, exp.Star):
                return (
                    "count(*) counts one for a row that the LEFT JOIN finds no partner for",
                    "Count a column of the joined table.",
                )
    return None


def joined_for_nothing(case: Case) -> Doubt | None:
    """A joined table that the question does not name and of which nothing but its key is read."""
    for select in case.selects:
        joins = select.args.get("joins") or ()
        read: dict[str, int] = {}
        for column in select.find_all(exp.Column):
            relation = case.origins.relation(column)
            if relation is not None:
                read[relation.alias_or_name.lower()] = (
                    read.get(relation.alias_or_name.lower(), 0) + 1
                )
        if select.find(exp.Star) is not None and any(
            isinstance(e, exp.Star) for e in select.expressions
        ):
            continue
        for relation in relations(select) if joins else ():
            table = case.origins.table(relation)
            if table is None or any(stem[:4] in case.beginnings for stem in name_stems(table.name)):
                continue
            if read.get(relation.alias_or_name.lower(), 0) == 1 and all(
                j.args.get("on") for j in joins
            ):
                return (
                    f"the query joins {table.name} and reads nothing of it",
                    "Leave out the join.",
                )
    return None
