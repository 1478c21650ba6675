"""Finds in DataFusion's plan what the databases of its scans can do for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from datafusion.plan import LogicalPlan

from blendfusion.services.scans.scan_filters import Application, Constant, Field, Tree, conjuncts
from blendfusion.services.sources.plan_conditions import membership, rename_columns, tree_of
from blendfusion.services.sources.remote_table import KeyQuery, RemoteTable
from blendfusion.services.sources.scan_advice import NONE, Advice, Grouping, Key, SortKey

MOST_KEYS = 1000
"""The most keys of a small side of a join that a query has."""
_SCAN = re.compile(r"TableScan: ")
_REDUCED = {
    "Inner": (True, True),
    "LeftSemi": (True, True),
    "RightSemi": (True, True),
    "Left": (False, True),
    "Right": (True, False),
}
"""Whether rows of the left and of the right side without a partner have no effect, by the kind of
the join."""
_PASSED = {
    "Inner": (True, True),
    "LeftSemi": (True, False),
    "RightSemi": (False, True),
    "Left": (True, False),
    "Right": (False, True),
}
"""Whether a condition on the result holds for rows of the left and of the right side."""
_PLAIN = {"TableScan", "Projection", "Filter", "SubqueryAlias", "Values", "EmptyRelation"}
_COUNT = re.compile(r"count\(Int64\(\d+\)\)")

TableOf: TypeAlias = Callable[[Any], RemoteTable | None]
"""The table of an attached database that a scan reads; None for another one."""
KeysOf: TypeAlias = Callable[[LogicalPlan, str], "pa.Array | None"]
"""The values of a column of a plan; None if they are too many."""


class Shape(NamedTuple):
    """The rows that an aggregate needs."""

    grouping: Grouping = ""
    extremes: Mapping[str, str] = {}


_ANY = Shape()


@dataclass(frozen=True, slots=True)
class _Need:
    """The rows of a relation that are needed, in the names of its columns."""

    conditions: tuple[Tree, ...] = ()
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    shape: Shape = _ANY
    is_whole: bool = True
    """Whether the conditions are all that lies between the limit or aggregate and the rows."""

    def only_conditions(self) -> _Need:
        return _Need(self.conditions)

    def without(self) -> _Need:
        return replace(self, is_whole=False)

    def rename(self, names: Mapping[str, str]) -> _Need:
        """The need of the relation below, whose columns are the values of ``names``."""
        conditions = [rename_columns(tree, names) for tree in self.conditions]
        known = tuple(tree for tree in conditions if tree is not None)
        order = tuple(k._replace(column=names[k.column]) for k in self.order if k.column in names)
        extremes = {names[c]: f for c, f in self.shape.extremes.items() if c in names}
        whole = (
            len(known) == len(conditions)
            and len(order) == len(self.order)
            and len(extremes) == len(self.shape.extremes)
        )
        shape = Shape(self.shape.grouping, extremes)
        return _Need(known, order, self.limit, shape, self.is_whole and whole)


_NOTHING = _Need()


class Adviser:
    """Finds advice for the scans of one plan."""

    def __init__(self, table_of: TableOf, keys_of: KeysOf) -> None:
        self._table_of, self._keys_of = table_of, keys_of
        self._found: dict[Key, list[Advice]] = {}
        self._scans = 0

    def advise(self, plan: LogicalPlan) -> dict[Key, Advice]:
        """The advice for each scan that has one of its own. Scans that look the same and differ in
        their advice have none, nor has any where a subquery hides others."""
        self._visit(plan, _NOTHING)
        if len(_SCAN.findall(plan.display_indent())) != self._scans:
            return {}
        alone = {
            key: all_of[0]
            for key, all_of in self._found.items()
            if all_of.count(all_of[0]) == len(all_of)
        }
        return {key: advice for key, advice in alone.items() if advice != NONE}

    def _visit(self, plan: LogicalPlan, need: _Need) -> None:
        try:
            node = plan.to_variant()
        except ValueError:  # a relation that DataFusion does not show
            node = None
        visit = _VISITS.get(type(node).__name__)
        if visit is not None:
            visit(self, plan, node, need)
            return
        for below in plan.inputs():
            self._visit(below, _NOTHING)

    def _visit_projection(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        (below,) = plan.inputs()
        fields = [_column_name(e) for e in node.projections()]
        pairs = zip(names_of(plan), fields, strict=False)
        self._visit(below, need.rename({name: f for name, f in pairs if f is not None}))

    def _visit_alias(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        (below,) = plan.inputs()
        self._visit(below, need.rename(dict(zip(names_of(plan), names_of(below), strict=False))))

    def _visit_filter(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        (below,) = plan.inputs()
        trees, is_whole = conditions_of([node.predicate()])
        found = replace(need, conditions=(*need.conditions, *trees))
        self._visit(below, found if is_whole else found.without())

    def _visit_limit(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        (below,) = plan.inputs()
        skip = 0 if node.skip() is None else _number(node.skip())
        fetch = None if node.fetch() is None else _number(node.fetch())
        limit = None if fetch is None or skip is None else skip + fetch
        self._visit(below, _Need(limit=limit))

    def _visit_sort(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        (below,) = plan.inputs()
        fetch = node.get_fetch_val()
        if fetch is None:
            self._visit(below, need.only_conditions())
            return
        keys = [
            SortKey(_column_name(key.expr()) or "", not key.ascending(), key.nulls_first())
            for key in node.sort_exprs()
        ]
        is_known = all(key.column for key in keys)
        self._visit(below, _Need(order=tuple(keys), limit=fetch) if is_known else _NOTHING)

    def _visit_aggregate(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        (below,) = plan.inputs()
        self._visit(below, _Need(shape=_shape_of(node)))

    def _visit_join(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        sides, kind = plan.inputs(), str(node.join_type())
        names = [set(names_of(side)) for side in sides]
        passed, reduced = _PASSED.get(kind, (False, False)), _REDUCED.get(kind, (False, False))
        pairs = [] if node.null_equals_null() else _key_pairs(node.on(), names)
        for at in (0, 1):
            own = {name: name for name in names[at] - names[1 - at]}
            below = need.only_conditions().rename(own) if passed[at] else _NOTHING
            if reduced[at]:
                more = self._partners(pairs, at, sides[1 - at])
                below = replace(below, conditions=(*below.conditions, *more))
            self._visit(sides[at], below)

    def _partners(
        self, pairs: Sequence[tuple[str, str]], at: int, other: LogicalPlan
    ) -> Sequence[Tree]:
        """The conditions that rows have a partner on the other side of a join."""
        found: list[Tree] = []
        for pair in pairs:
            here, there = pair[at], pair[1 - at]
            query = self._query_of(other, there)
            if query is not None:
                found.append(Application("in_query", (Field(here),), query))
                continue
            keys = self._keys_of(other, there) if self._is_plain(other) else None
            if keys is not None:
                found.append(membership(here, keys))
        return found

    def _is_plain(self, plan: LogicalPlan) -> bool:
        """Whether a plan without scans of databases may be carried out twice."""
        try:
            node = plan.to_variant()
        except ValueError:
            return False
        kind = type(node).__name__
        if kind not in _PLAIN or (kind == "TableScan" and self._table_of(node) is not None):
            return False
        if kind == "Filter" and not conditions_of([node.predicate()])[1]:
            return False
        if kind == "Projection" and any(_column_name(e) is None for e in node.projections()):
            return False
        return all(map(self._is_plain, plan.inputs()))

    def _query_of(self, plan: LogicalPlan, name: str) -> KeyQuery | None:
        """The query, in the words of its database, for a column of a plan that reads some rows of
        one table; None for another plan."""
        trees: list[Tree] = []
        while True:
            try:
                node = plan.to_variant()
            except ValueError:
                return None
            kind, below, names = type(node).__name__, plan.inputs(), names_of(plan)
            if kind == "TableScan":
                break
            if kind == "Filter":
                trees += conditions_of([node.predicate()])[0]
            elif kind in ("Projection", "SubqueryAlias"):
                fields = names_of(below[0])
                if kind == "Projection":
                    fields = [_column_name(e) or "" for e in node.projections()]
                step = dict(zip(names, fields, strict=False))
                trees = [tree for t in trees if (tree := rename_columns(t, step)) is not None]
                if not step.get(name):
                    return None
                name = step[name]
            else:
                return None
            plan = below[0]
        table = self._table_of(node)
        columns = {} if table is None else _scan_names(table, node)
        if table is None or name not in columns or node.fetch() is not None:
            return None
        trees += conditions_of(node.filters())[0]
        trees = [tree for t in trees if (tree := rename_columns(t, columns)) is not None]
        return table.key_query(columns[name], trees)

    def _visit_scan(self, plan: LogicalPlan, node: Any, need: _Need) -> None:
        self._scans += 1
        table = self._table_of(node)
        if table is None:
            return
        names = _scan_names(table, node)
        columns = {name for _, name in node.projection()}
        need = need.rename(names)
        trees, is_whole = conditions_of(node.filters())
        filters = [rename_columns(tree, names) for tree in trees]
        fetch = node.fetch()
        if fetch is not None:
            need = _Need(limit=fetch)
        need = need if is_whole and None not in filters else need.without()
        known = [tree for tree in filters if tree is not None]
        key = (id(table), frozenset(columns))
        self._found.setdefault(key, []).append(_advice(table, need, known, columns))


def _advice(table: RemoteTable, need: _Need, filters: Sequence[Tree], columns: set[str]) -> Advice:
    """The advice that a table can follow."""
    conditions, exact = table.own_conditions(need.conditions)
    exact = exact and need.is_whole and table.own_conditions(filters)[1]
    found = Advice(tuple(conditions))
    if exact and need.limit is not None and table.sorts_by(need.order):
        return replace(found, order=need.order, limit=need.limit)
    grouping, extremes = need.shape
    groups = columns - {*extremes}
    if grouping == "extremes" and not (exact and table.compares(extremes)):
        grouping = "distinct"
    if (
        not grouping
        or (grouping == "count" and not exact)
        or not table.groups_by(columns if grouping != "extremes" else groups)
    ):
        return found
    return replace(found, grouping=grouping, extremes=extremes if grouping == "extremes" else {})


def _shape_of(node: Any) -> Shape:
    """The rows that an aggregate needs."""
    keys = [_column_name(e) for e in node.group_by_exprs()]
    if None in keys:
        return Shape()
    extremes: dict[str, str] = {}
    aggregates = node.aggregate_exprs()
    if aggregates and all(_COUNT.fullmatch(e.canonical_name()) for e in aggregates):
        return Shape("count")
    for expr in aggregates:
        function, arguments = node.agg_func_name(expr), node.aggregation_arguments(expr)
        column = _column_name(arguments[0]) if len(arguments) == 1 else None
        plain = column and f"{function}({arguments[0].canonical_name()})" == expr.canonical_name()
        if function not in ("min", "max") or not plain or column is None:
            return Shape()
        if column in keys or extremes.setdefault(column, function) != function:
            return Shape("distinct")
    return Shape("extremes" if len(extremes) == 1 else "distinct", extremes)


def conditions_of(exprs: Sequence[Any]) -> tuple[list[Tree], bool]:
    """The conjuncts of expressions that are known here, and whether these are all."""
    found: list[Tree] = []
    is_whole = True
    waiting = list(exprs)
    while waiting:
        expr = waiting.pop()
        tree = tree_of(expr)
        if tree is not None:
            found += conjuncts(tree)
            continue
        try:
            node = expr.to_variant()
        except ValueError:
            node = None
        if type(node).__name__ == "BinaryExpr" and node.op() == "AND":
            waiting += [node.right(), node.left()]
        else:
            is_whole = False
    return found, is_whole


def names_of(plan: LogicalPlan) -> list[str]:
    """The qualified names of the columns of a relation; none where one comes twice."""
    try:
        names: list[str] = plan.to_variant().schema().field_names()
    except (AttributeError, ValueError):
        return []
    return names if len({*names}) == len(names) else []


def _scan_names(table: RemoteTable, node: Any) -> dict[str, str]:
    """The columns of the table of a scan, by their qualified names."""
    return {f"{node.table_name()}.{name}": name for name in table.schema.names}


def _column_name(expr: Any) -> str | None:
    """The qualified name of a column, also of one with an alias; None for another expression."""
    tree = tree_of(expr)
    return tree.name if isinstance(tree, Field) else None


def _number(expr: Any) -> int | None:
    """The number of a LIMIT or OFFSET; None for another expression."""
    tree = tree_of(expr)
    value = tree.value.as_py() if isinstance(tree, Constant) else None
    return value if isinstance(value, int) else None


def _key_pairs(on: Sequence[tuple[Any, Any]], names: Sequence[set[str]]) -> list[tuple[str, str]]:
    """The keys of a join that are columns of either side."""
    found = []
    for left, right in on:
        pair = _column_name(left), _column_name(right)
        if pair[0] in names[0] and pair[1] in names[1]:
            found.append((str(pair[0]), str(pair[1])))
    return found


_VISITS: Mapping[str, Callable[[Adviser, LogicalPlan, Any, _Need], None]] = {
    "Projection": Adviser._visit_projection,
    "SubqueryAlias": Adviser._visit_alias,
    "Filter": Adviser._visit_filter,
    "Limit": Adviser._visit_limit,
    "Sort": Adviser._visit_sort,
    "Aggregate": Adviser._visit_aggregate,
    "Join": Adviser._visit_join,
    "TableScan": Adviser._visit_scan,
}
