"""Resolves the columns of a query to the select items that they refer to, by SQL's rules of scope.

A qualifier names a relation of the nearest query around; FROM comes before aliases in WHERE, GROUP
BY, HAVING, QUALIFY, windows and the arguments of aggregates, and aliases come first in ORDER BY;
set operations match columns by position; a common table expression hides the table of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from blendfusion.language.query_text.relations import Common, Frame, Item, Relation, Use, name_of
from blendfusion.udfs.declare.arguments import quoted_name

Columns: TypeAlias = "Callable[[str], Collection[str] | None]"
"""The columns of a table, given its name as SQL; None if they are not known."""

_UNKNOWN = ""
"""Stands for a table whose columns cannot be asked for."""
_BY_ALIAS_TOO = ("group", "having", "qualify", "distinct")
"""The clauses in which a name may be a select item's, where no relation has it."""


class References:
    """The columns of a statement that refer to select items."""

    def __init__(self, tree: exp.Expr, columns: Columns) -> None:
        self._columns = columns
        self._known: dict[str, Collection[str] | None] = {}
        self._origins: dict[int, tuple[tuple[exp.Expr, ...], tuple[str, ...]]] = {}
        self._uses: dict[int, list[Use]] = {}
        self._places: dict[int, tuple[Frame, list[str]]] = {}
        self._held: set[int] = set()
        self._statement(tree)

    def uses(self, item: exp.Expr) -> Sequence[Use]:
        """The columns that refer to a select item, without its alias and parentheses."""
        return self._uses.get(id(item), ())

    def origins(self, column: exp.Expr) -> tuple[exp.Expr, ...]:
        """The select items that a column refers to; none for a column of a table."""
        return self._origins.get(id(column), ((), ()))[0]

    def is_column(self, item: exp.Expr) -> bool:
        """A select item of a derived table, or of a branch of a set operation: DataFusion may give
        the column another type than the item."""
        return id(item) in self._held

    def relation(self, at: int) -> tuple[str, int] | None:
        """The name of the relation of the column that starts at an offset of the text, and how many
        names before the column's name it; None where no column starts, or of none that is known."""
        if at not in self._places:
            return None
        inner: Frame | None
        inner, parts = self._places[at]
        while inner is not None:
            found = self._relation(inner, parts)
            if found is not None:
                return found[0].path[-1], len(parts) - len(found[1])
            one = len(inner.relations) == 1 and inner.parent is None
            having = [r for r in inner.relations if one or parts[0] in (self._names(r) or ())]
            if having:
                alone = len(having) == 1 and having[0].path
                return (having[0].path[-1], 0) if alone else None
            inner = inner.parent
        return None

    # --- queries ---------------------------------------------------------------------------------

    def _statement(self, tree: exp.Expr) -> None:
        if isinstance(tree, exp.Query | exp.Values):
            self._query(tree, None, {})
            return
        common = self._with(tree, None, {})
        self._expression(tree, Frame(), common, skip=("with_",))

    def _query(self, node: exp.Expr, outer: Frame | None, common: Common) -> Sequence[Item]:
        """The columns of a query; none for syntax that is not understood."""
        if isinstance(node, exp.Subquery):
            common = self._with(node, outer, common)
            items = self._query(node.this, outer, common)
            self._tail(node, Frame(parent=outer), items, common)
            return items
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer, common)
        if isinstance(node, exp.Select):
            return self._select(node, outer, self._with(node, outer, common))
        if isinstance(node, exp.Values):
            return self._values(node, outer, common)
        self._expression(node, Frame(parent=outer), common)
        return []

    def _set_operation(
        self, node: exp.SetOperation, outer: Frame | None, common: Common
    ) -> Sequence[Item]:
        left: exp.Expr = node
        waiting: list[tuple[exp.SetOperation, Common]] = []
        while isinstance(left, exp.SetOperation):  # a long chain is deep on the left
            common = self._with(left, outer, common)
            waiting.append((left, common))
            left = left.this
        items = self._query(left, outer, common)
        for operation, common in reversed(waiting):
            right = self._query(operation.expression, outer, common)
            items = self._side_by_side(items, right, by_name=bool(operation.args.get("by_name")))
            self._hold(items)
            self._tail(operation, Frame(parent=outer), items, common)
        return items

    def _with(self, node: exp.Expr, outer: Frame | None, common: Common) -> Common:
        clause = node.args.get("with_")
        if clause is None:
            return common
        found = dict(common)
        for one in clause.expressions:
            alias = one.args["alias"]
            name, query = name_of(alias.this), one.this
            inside = found
            if clause.args.get("recursive"):
                first = query
                while isinstance(first, exp.Subquery):
                    first = first.this
                anchor = first.this if isinstance(first, exp.SetOperation) else first
                inside = {**found, name: self._rename(self._query(anchor, outer, found), alias)}
            found[name] = self._rename(self._query(query, outer, inside), alias)
        return found

    def _values(self, node: exp.Values, outer: Frame | None, common: Common) -> list[Item]:
        rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
        for row in rows:
            for value in row:
                self._expression(value, Frame(parent=outer), common)
        columns = zip(*rows, strict=False)
        return [
            Item(f"column{i}", tuple(map(_bare, column))) for i, column in enumerate(columns, 1)
        ]

    def _select(self, node: exp.Select, outer: Frame | None, common: Common) -> list[Item]:
        frame = Frame(parent=outer)
        source = node.args.get("from_")
        if source is not None:
            self._source(source.this, frame, common)
        for lateral in node.args.get("laterals") or ():
            self._source(lateral, frame, common)
        for join in node.args.get("joins") or ():
            self._join(join, frame, common)
        for item in node.expressions:
            self._expression(item, frame, common)
        items = [output for item in node.expressions for output in self._outputs(item, frame)]
        frame.outputs = items
        done = {"with_", "from_", "laterals", "joins", "expressions", "order"}
        for key, part in node.args.items():
            if key not in done:
                for expression in part if isinstance(part, list) else [part]:
                    if isinstance(expression, exp.Expr):
                        self._expression(expression, frame, common, aliases=key in _BY_ALIAS_TOO)
        self._tail(node, frame, items, common)
        return items

    def _tail(self, node: exp.Expr, frame: Frame, items: Sequence[Item], common: Common) -> None:
        """ORDER BY and LIMIT, which see the names of the result first."""
        frame.outputs = items
        order = node.args.get("order")
        if order is not None:
            self._expression(order, frame, common, aliases=True, first=True)
        for ordered in order.expressions if order is not None else ():
            place = ordered.this
            number = place.this if isinstance(place, exp.Literal) and place.is_int else "0"
            if any(item.table is not None for item in items[: int(number)]):
                items = self._expand(items)
            if 0 < int(number) <= len(items):
                self._note(place, items[int(number) - 1].origins, ())
        if not isinstance(node, exp.Select):
            for key in ("limit", "offset"):
                if isinstance(node.args.get(key), exp.Expr):
                    self._expression(node.args[key], frame, common)

    # --- FROM ------------------------------------------------------------------------------------

    def _join(self, join: exp.Join, frame: Frame, common: Common) -> None:
        before = list(frame.relations)
        self._source(join.this, frame, common)
        right = frame.relations[len(before) :]
        using = {name_of(column) for column in join.args.get("using") or ()}
        if join.method == "NATURAL":
            using = {name for r in right for name in self._names(r) or ()}
        for relation in right:
            relation.merged = frozenset(using)
        on = join.args.get("on")
        if on is not None:
            self._expression(on, frame, common)
        if join.kind in ("SEMI", "ANTI"):
            for relation in before if join.side == "RIGHT" else right:
                relation.visible = False

    def _source(self, node: exp.Expr, frame: Frame, common: Common) -> None:
        alias = node.args.get("alias")
        path = (name_of(alias.this),) if alias is not None and alias.args.get("this") else ()
        made = Relation(path)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery):
            inner = Frame(parent=frame.parent)  # joins in parentheses
            self._source(node.this, inner, common)
            for join in node.args.get("joins") or ():
                self._join(join, inner, common)
            if alias is None:
                frame.relations += inner.relations
                return
            made.items = self._rename(self._every(inner), alias)
            made.known = all(self._names(r) is not None for r in inner.relations)
        elif isinstance(node, exp.Subquery | exp.Values):
            made.items = self._rename(self._query(node, frame.parent, common), alias)
        elif isinstance(node, exp.Lateral):
            inner_node = node.this
            if isinstance(inner_node, exp.Subquery):
                outer = Frame(list(frame.relations), frame.parent)
                made.items = self._rename(self._query(inner_node, outer, common), alias)
            else:
                self._expression(inner_node, frame, common)
                made.known = False
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            parts = tuple(name_of(part) for part in node.parts)
            made.path = path or parts
            common_items = common.get(parts[0]) if len(parts) == 1 else None
            if common_items is not None:
                made.items = self._rename(common_items, alias)
            elif alias is not None and alias.args.get("columns"):
                made.items = self._rename([], alias)
            else:
                made.items = [Item(table=".".join(quoted_name(part) for part in parts))]
            made.known = not node.args.get("pivots")
        else:
            self._expression(node, frame, common, skip=("alias", "joins"))
            made.items = self._rename([], alias)
            made.known = bool(made.items)
        frame.relations.append(made)
        self._hold(made.items)
        for join in node.args.get("joins") or ():
            self._join(join, frame, common)

    def _hold(self, items: Iterable[Item]) -> None:
        for item in items:
            self._held.update(map(id, item.origins))

    def _names(self, relation: Relation) -> Collection[str] | None:
        """The names of a relation's columns; None if they are not known."""
        tables = [item.table for item in relation.items if item.table is not None]
        if not relation.known or any(self._of_table(table) is None for table in tables):
            return None
        return {item.name for item in self._expand(relation.items)}

    def _of_table(self, table: str) -> Collection[str] | None:
        if table == _UNKNOWN:
            return None
        if table not in self._known:
            self._known[table] = self._columns(table)
        return self._known[table]

    def _expand(self, items: Iterable[Item]) -> list[Item]:
        """The items with the columns of tables one by one; those before a table whose columns are
        not known, for the places of others are not known either."""
        found: list[Item] = []
        for item in items:
            columns = None if item.table is None else self._of_table(item.table)
            if item.table is None:
                found.append(item)
            elif columns is None:
                break
            else:
                found += map(Item, columns)
        return found

    @staticmethod
    def _columns_of(relation: Relation) -> Sequence[Item]:
        return relation.items if relation.known else [*relation.items, Item(table=_UNKNOWN)]

    def _every(self, frame: Frame) -> list[Item]:
        """The columns of ``*``."""
        shown = [relation for relation in frame.relations if relation.visible]
        if not any(relation.merged for relation in shown):
            return [item for relation in shown for item in self._columns_of(relation)]
        found: list[Item] = []
        for relation in shown:
            for item in self._expand(self._columns_of(relation)):
                merged = item.name in relation.merged
                same = [i for i, f in enumerate(found) if merged and f.name == item.name]
                if same:
                    both = (*found[same[0]].origins, *item.origins)
                    found[same[0]] = Item(item.name, both)
                else:
                    found.append(item)
        return found

    def _outputs(self, item: exp.Expr, frame: Frame) -> Iterator[Item]:
        """The columns that an item of a select list gives."""
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            yield Item(_output_name(item), (_bare(item),))
            return
        within = frame
        if isinstance(item, exp.Column):
            path = tuple(name_of(part) for part in item.parts[:-1])
            within = Frame([r for r in frame.relations if r.path[-len(path) :] == path])
        dropped = {
            name_of(e.this if isinstance(e, exp.Column) else e)
            for e in star.args.get("except_") or ()
        }
        replaced = {_output_name(e): e for e in star.args.get("replace") or ()}
        every = self._every(within)
        for output in self._expand(every) if dropped or replaced else every:
            if output.name in replaced:
                yield Item(output.name, (_bare(replaced[output.name]),))
            elif output.name not in dropped:
                yield output

    def _side_by_side(
        self, left: Sequence[Item], right: Sequence[Item], *, by_name: bool
    ) -> Sequence[Item]:
        """The columns of a set operation: its sides' columns by position, with the names of the
        left side."""
        if any(item.origins for item in (*left, *right)):
            left, right = self._expand(left), self._expand(right)
        if by_name:
            more = [r for r in right if all(r.name != item.name for item in left)]
            same = {r.name: r for r in right}
            return [
                *(replace(i, origins=_origins([i, same.get(i.name, Item())])) for i in left),
                *more,
            ]
        return [
            replace(item, origins=(*item.origins, *(right[i].origins if i < len(right) else ())))
            for i, item in enumerate(left)
        ]

    def _rename(self, items: Sequence[Item], alias: exp.Expr | None) -> Sequence[Item]:
        """Columns with the names that an alias lists: ``AS s(a, b)``."""
        names = [name_of(c) for c in alias.args.get("columns") or ()] if alias is not None else []
        if not names:
            return items
        items = self._expand(items)
        found = [replace(item, name=name) for item, name in zip(items, names, strict=False)]
        return [*found, *items[len(found) :], *(Item(name) for name in names[len(items) :])]

    # --- expressions -----------------------------------------------------------------------------

    def _expression(
        self,
        node: exp.Expr,
        frame: Frame,
        common: Common,
        *,
        aliases: bool = False,
        first: bool = False,
        skip: Iterable[str] = (),
    ) -> None:
        """Resolve the columns of an expression, and the queries in it."""
        waiting = [(node, frozenset(skip))]
        while waiting:  # a chain of operators may be deeper than Python's stack
            node, left_out = waiting.pop()
            if isinstance(node, exp.Query):
                self._query(node, frame, common)
            elif isinstance(node, exp.Column):
                if not isinstance(node.this, exp.Star):
                    self._resolve(node, frame, aliases=aliases, first=first)
            else:
                waiting += [
                    (child, frozenset())
                    for key, part in node.args.items()
                    if key not in left_out
                    for child in (part if isinstance(part, list) else (part,))
                    if isinstance(child, exp.Expr)
                ]

    def _resolve(self, column: exp.Column, frame: Frame, *, aliases: bool, first: bool) -> None:
        parts = [name_of(part) for part in column.parts]
        if aliases and first:
            named = [item for item in frame.outputs if item.name == parts[0]]
            if named and (len(parts) == 1 or self._relation(frame, parts) is None):
                self._note(column, _origins(named), parts[1:])
                return
        self._places[column.parts[0].meta.get("start", -1)] = frame, parts
        inner: Frame | None = frame
        while inner is not None:
            relation = self._relation(inner, parts)
            if relation is not None:
                one, rest = relation
                named = [item for item in one.items if item.name == rest[0]]
                self._note(column, _origins(named), rest[1:])
                return
            mine = aliases and inner is frame
            found = self._of_from(inner, parts[0], aliases=mine)
            if found is not None:
                self._note(column, _origins(found), parts[1:])
                return
            named = [item for item in frame.outputs if mine and item.name == parts[0]]
            if named:
                self._note(column, _origins(named), parts[1:])
                return
            inner = inner.parent

    def _relation(
        self, frame: Frame, parts: Sequence[str]
    ) -> tuple[Relation, Sequence[str]] | None:
        """The relation that qualifies a column, and the names behind it."""
        for length in range(len(parts) - 1, 0, -1):
            path = tuple(parts[:length])
            for relation in frame.relations:
                if relation.path[-length:] == path:
                    return relation, parts[length:]
        return None

    def _of_from(self, frame: Frame, name: str, *, aliases: bool) -> list[Item] | None:
        """The columns of this name in the relations of a query; None if none has it."""
        relations = [r for r in frame.relations if r.visible]
        found = [item for r in relations for item in r.items if item.name == name]
        if found:
            return found
        tables = [r for r in relations if any(item.table is not None for item in r.items)]
        if tables and self._is_elsewhere(frame, name, aliases=aliases):
            return [] if any(name in (self._names(r) or ()) for r in tables) else None
        return None

    def _is_elsewhere(self, frame: Frame, name: str, *, aliases: bool) -> bool:
        """A name that no table of ``frame`` has would refer to a select item."""
        named = [item for item in frame.outputs if aliases and item.name == name]
        if any(self.origins(o) or not isinstance(o, exp.Column) for o in _origins(named)):
            return True
        inner = frame.parent
        while inner is not None:
            if any(i.name == name and i.origins for r in inner.relations for i in r.items):
                return True
            inner = inner.parent
        return False

    def _note(self, column: exp.Expr, origins: tuple[exp.Expr, ...], fields: Sequence[str]) -> None:
        if id(column) in self._origins:  # the anchor of a recursive query is read twice
            return
        self._origins[id(column)] = origins, tuple(fields)
        for origin in origins:
            self._uses.setdefault(id(origin), []).append(Use(column, tuple(fields)))


def _bare(item: exp.Expr) -> exp.Expr:
    """A select item without alias and parentheses."""
    while isinstance(item, exp.Alias | exp.Paren):
        item = item.this
    return item


def _output_name(item: exp.Expr) -> str:
    if isinstance(item, exp.Alias):
        return name_of(item.args["alias"])
    bare = _bare(item)
    return name_of(bare.this) if isinstance(bare, exp.Column) else ""


def _origins(items: Iterable[Item]) -> tuple[exp.Expr, ...]:
    return tuple(origin for item in items for origin in item.origins)
