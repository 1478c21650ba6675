"""The tables and columns that the names of a query mean."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from blendfusion.services.ask.schema.catalog import Catalog, Column, Table


class Origins:
    """Finds the column of the catalogue behind a column of a query."""

    def __init__(self, catalog: Catalog) -> None:
        self._tables = {table.name.lower(): table for table in catalog.tables}
        self._columns = {
            name: {column.name.lower(): column for column in table.columns}
            for name, table in self._tables.items()
        }

    def table(self, relation: exp.Expr) -> Table | None:
        """The table of the catalogue that a relation is; None for a subquery, and for a name that
        a common table expression has."""
        if not isinstance(relation, exp.Table) or _common(relation) is not None:
            return None
        return self._tables.get(relation.name.lower())

    def relation(self, column: exp.Column) -> exp.Expr | None:
        """The relation of the FROM clause, of this query or one around it, that has a column."""
        select = column.parent_select
        while isinstance(select, exp.Select):
            for relation in relations(select):
                if column.table.lower() == relation.alias_or_name.lower() or (
                    not column.table and self._has(relation, column.name)
                ):
                    return relation
            select = select.parent_select
        return None

    def of(self, column: exp.Column) -> tuple[Table, Column] | None:
        """The column of the catalogue, also through subqueries that pass it on; None for a computed
        or an unknown one."""
        relation = self.relation(column)
        if relation is None:
            return None
        table = self.table(relation)
        if table is not None:
            found = self._columns[table.name.lower()].get(column.name.lower())
            return None if found is None else (table, found)
        inner = _query(relation)
        for given in inner.selects if inner is not None else ():
            if given.alias_or_name.lower() == column.name.lower():
                passed = given.unalias()
                return self.of(passed) if isinstance(passed, exp.Column) else None
        return None

    def place(self, column: exp.Column) -> str:
        """``table.column`` in lower case; '' if it is unknown."""
        found = self.of(column)
        return "" if found is None else f"{found[0].name}.{found[1].name}".lower()

    def _has(self, relation: exp.Expr, name: str) -> bool:
        table = self.table(relation)
        if table is not None:
            return name.lower() in self._columns[table.name.lower()]
        inner = _query(relation)
        return inner is not None and name.lower() in (n.lower() for n in inner.named_selects)


def relations(select: exp.Select) -> Iterator[exp.Expr]:
    """The relations of the FROM clause of a query, in order."""
    source = select.args.get("from_")
    if source is not None:
        yield source.this
    for join in select.args.get("joins") or ():
        yield join.this


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """The expressions of GROUP BY, with the selected columns that ordinals mean."""
    group = select.args.get("group")
    items = select.selects
    keys = list(group.expressions) if group is not None else []
    return [items[int(k.name) - 1] if _is_ordinal(k, len(items)) else k for k in keys]


def _is_ordinal(key: exp.Expr, most: int) -> bool:
    return isinstance(key, exp.Literal) and key.name.isdigit() and 0 < int(key.name) <= most


def _common(relation: exp.Table) -> exp.Select | None:
    """The query of the common table expression that a name means."""
    node: exp.Expr | None = relation
    while node is not None:
        common = node.args.get("with_")
        for one in common.expressions if common is not None else ():
            if one.alias_or_name.lower() == relation.name.lower():
                return one.this if isinstance(one.this, exp.Select) else None
        node = node.parent
    return None


def _query(relation: exp.Expr) -> exp.Select | None:
    if isinstance(relation, exp.Subquery):
        return relation.this if isinstance(relation.this, exp.Select) else None
    return _common(relation) if isinstance(relation, exp.Table) else None
