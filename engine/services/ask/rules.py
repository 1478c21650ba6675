"""Repairs of a draft that need no model: a grouping that lacks columns, a wrong or a missing
qualifier, a missing join.

MySQL and SQLite select columns beside GROUP BY that are in no aggregate function, and models write
such queries. Where the columns follow from the keys in the data, they can be keys as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from sqlglot import exp

from blendfusion.services.ask.check import Attempt
from blendfusion.services.ask.schema.catalog import Catalog, split
from blendfusion.services.ask.schema.names import written_name
from blendfusion.services.ask.where import parse

Count = Callable[[str], object]
"""The number of rows of a query that asks no model; None if it does not plan, or asks one."""

_NOT_GROUPED = re.compile(r"column '(?:.*\.)?([^'.]+)' is in neither GROUP BY")
_UNKNOWN = re.compile(r"unknown column '(?:([^'.]+)\.)?([^'.]+)'")
_AMBIGUOUS = re.compile(r"column '([^'.]+)' is ambiguous")


def by_rule(failed: Attempt, catalog: Catalog, count: Count) -> str | None:
    """The query of ``failed`` without its problem; None if no rule applies. A rule applies where
    it leaves one meaning: columns join the keys of a group if that gives no other groups, a
    qualifier is replaced if one relation alone has the column, a column is qualified if the
    relations that have it are joined on it, and a table is joined if it alone has the column and
    one key alone leads to it."""
    tree = parse(failed.sql)
    if tree is None:
        return None
    changes: list[bool] = []
    if found := _NOT_GROUPED.search(failed.problem):
        changes = [_with_keys(select, found[1], count) for select in tree.find_all(exp.Select)]
    elif found := _UNKNOWN.search(failed.problem):
        unknown = _columns(tree, found[2], found[1] or "")
        changes = [_requalify(c, catalog) or _join(c, catalog) for c in unknown]
    elif found := _AMBIGUOUS.search(failed.problem):
        changes = [_qualify(c, catalog) for c in _columns(tree, found[1], "")]
    return tree.sql("postgres") if any(changes) else None


def _columns(tree: exp.Expr, name: str, relation: str) -> list[exp.Column]:
    wanted = (relation.lower(), name.lower())
    return [c for c in tree.find_all(exp.Column) if (c.table.lower(), c.name.lower()) == wanted]


def _with_keys(select: exp.Select, name: str, count: Count) -> bool:
    """Add the bare columns of ``select`` to the keys of its GROUP BY, if that changes no group."""
    group = select.args.get("group")
    if group is None or not group.expressions:
        return False
    keys = {key.name.lower() for key in group.expressions}
    missing = {c.sql(): c for c in _bare(select) if c.name.lower() not in keys}
    if name.lower() not in {c.name.lower() for c in missing.values()}:
        return False
    before = count(_groups(select, ()))
    if before is None or before != count(_groups(select, missing.values())):
        return False
    for column in missing.values():
        group.append("expressions", column.copy())
    return True


def _bare(select: exp.Select) -> Iterator[exp.Column]:
    """The columns in the select list and in ORDER BY that are in no aggregate function."""
    order = select.args.get("order")
    for part in (*select.expressions, *(order.expressions if order is not None else ())):
        for column in part.find_all(exp.Column):
            inside = column.find_ancestor(exp.AggFunc, exp.Window, exp.Select)
            if inside is select and not isinstance(column.this, exp.Star):
                yield column


def _groups(select: exp.Select, more: Iterable[exp.Column]) -> str:
    """A query with one row for each group of ``select`` by its keys and ``more``."""
    copy = select.copy()
    for clause in ("order", "limit", "offset", "distinct", "having"):
        copy.set(clause, None)
    copy.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
    for column in more:
        copy.args["group"].append("expressions", column.copy())
    return copy.sql("postgres")


def _holders(column: exp.Column, catalog: Catalog) -> list[str]:
    """The relations of the FROM clause around ``column`` with such a column, in order."""
    known = _names(catalog)
    sources = _sources(column, known)
    return [t.alias_or_name for t in sources if column.name.lower() in known[t.name.lower()]]


def _names(catalog: Catalog) -> dict[str, set[str]]:
    """The columns of each table, in lower case."""
    return {t.name.lower(): {c.name.lower() for c in t.columns} for t in catalog.tables}


def _sources(column: exp.Column, known: Collection[str]) -> list[exp.Table]:
    """The tables of the FROM clause around ``column``. Relations other than known tables are not
    looked into: with one of them there are none."""
    select = column.find_ancestor(exp.Select)
    if select is None:
        return []
    sources = [t for t in select.find_all(exp.Table) if t.find_ancestor(exp.Select) is select]
    subqueries = [
        s for s in select.find_all(exp.Subquery) if isinstance(s.parent, exp.From | exp.Join)
    ]
    if subqueries or any(t.name.lower() not in known for t in sources):
        return []
    return sources


def _requalify(column: exp.Column, catalog: Catalog) -> bool:
    """Replace a qualifier whose relation lacks the column, if one relation alone has it."""
    holders = _holders(column, catalog)
    if len(holders) != 1 or holders[0].lower() == column.table.lower():
        return False
    column.set("table", _name(holders[0]))
    return True


def _join(column: exp.Column, catalog: Catalog) -> bool:
    """Join the table that has the column, if one reference alone leads there from the FROM clause:
    each row then finds at most one of it, so that no row is doubled."""
    known = _names(catalog)
    sources = _sources(column, known)
    used = {name.lower() for t in sources for name in (t.name, t.alias_or_name)}
    ways = [
        (source.alias_or_name, own, other, key)
        for (table, own), (other, key) in ((split(k.left), split(k.right)) for k in catalog.keys)
        for source in sources
        if source.name.lower() == table.lower()
        and other.lower() not in used
        and column.name.lower() in known.get(other.lower(), ())
    ]
    select = column.find_ancestor(exp.Select)
    if len(ways) != 1 or select is None:
        return False
    source, own, other, key = ways[0]
    table = _name(other)
    equal = exp.EQ(
        this=exp.column(_name(own), _name(source)), expression=exp.column(_name(key), table.copy())
    )
    select.join(exp.Table(this=table.copy()), on=equal, copy=False)
    column.set("table", table)
    return True


def _qualify(column: exp.Column, catalog: Catalog) -> bool:
    """Qualify a column that several relations have with the first, if they are joined on it."""
    holders = _holders(column, catalog)
    select = column.find_ancestor(exp.Select)
    if len(holders) < 2 or select is None:
        return False
    wanted = {(holder.lower(), column.name.lower()) for holder in holders}
    for join in select.args.get("joins") or ():
        for equal in join.find_all(exp.EQ):
            sides = [s for s in (equal.left, equal.right) if isinstance(s, exp.Column)]
            if {(s.table.lower(), s.name.lower()) for s in sides} == wanted:
                column.set("table", _name(holders[0]))
                return True
    return False


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=written_name(name) != name)
