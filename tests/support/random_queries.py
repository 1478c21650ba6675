"""Random queries: relations, joins, subqueries, groups, windows and set operations, nested at will.

Every relation knows its columns with their kinds and, if it has one, a key, so that whatever is
nested is well typed, and a LIMIT always stands over an order that settles its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from random_choices import Choices
from random_expressions import KINDS, Column, Expressions, Scope
from random_tables import COLUMNS, KEY, VIEWS


class Query(NamedTuple):
    """A query whose rows are settled, in order if ``ordered``.

    ``bounds``: a LIMIT without an order, to be put behind ``sql``: any such rows will do.
    """

    sql: str
    ordered: bool
    bounds: tuple[int, int] | None = None

    @property
    def bounded(self) -> str:
        if self.bounds is None:
            return self.sql
        limit, offset = self.bounds
        return f"{self.sql} LIMIT {limit} OFFSET {offset}"


class Relation(NamedTuple):
    """What may stand in FROM; ``key`` tells its rows apart, if anything does."""

    sql: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None
    rows: int
    """About how many at most: what keeps joins of joins small."""


class Selected(NamedTuple):
    """A query without WITH, its columns, and the names of those that are its key, if any are."""

    sql: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None
    rows: int
    ordered: bool = False

    @property
    def kinds(self) -> list[str]:
        return [column.kind for column in self.columns]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.sql for column in self.columns)


_MOST_PAIRS = 3_000
"""No join of relations that may have more pairs of rows than this."""

_AGGREGATES = {
    "int": ["count(*)", "count({})", "count(DISTINCT {})", "sum({int})", "min({int})"],
    "num": ["sum({num})", "max({num})", "avg({int})"],
    "text": [
        "max({text})",
        "min({text})",
        "llm_qa('g1', {text})",
        "llm_qa('g2', {text}, options => ['P', 'x'])",
        "llm_summarize({text})",
    ],
    "bool": ["bool_or({bool})", "bool_and({bool})", "llm_validate('g3', {text})"],
    "date": ["min({date})", "max({date})"],
}
_WINDOWS = {
    "int": [
        "row_number() OVER ({by}ORDER BY {total})",
        "rank() OVER ({by}ORDER BY {some})",
        "sum({int}) OVER ({by}ORDER BY {total})",
        "count({any}) OVER ({by})",
        "sum({int}) OVER ({by}ORDER BY {total} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ],
    "text": ["lag({text}) OVER ({by}ORDER BY {total})", "max({text}) OVER ({by})"],
}


def random_query(choices: Choices, size: int = 5) -> Query:
    """A query of at most ``size`` SELECTs, with at least one call."""
    return _Writer(choices, size).query()


@dataclass
class _Writer:
    choices: Choices
    size: int
    """SELECTs that may still be written."""
    names: int = 0
    common: list[Relation] = field(default_factory=list)
    """What WITH names, to be used once or more."""

    def __post_init__(self) -> None:
        self.expressions = Expressions(self.choices, self._subquery)

    # --- whole queries ---------------------------------------------------------------------------

    def query(self) -> Query:
        choices = self.choices
        written = []
        for _ in range(choices.pick([0, 0, 0, 1, 1, 2])):
            if self.size < 2:
                break
            selected = self._body()
            name = self._name("w")
            written.append(f"{name} AS ({selected.sql})")
            self.common.append(self._named(name, selected))
        body = self._body()
        before = f"WITH {', '.join(written)} " if written else ""
        if body.ordered:
            return Query(before + body.sql, True)
        way = choices.weighted(all=6, order=2, limit=2, any=2)
        if way in ("order", "limit"):
            order = self._order_of(body.names)
            bounds = self._bounds() if way == "limit" else ""
            text = f"SELECT * FROM ({body.sql}) AS {self._name('r')} ORDER BY {order}{bounds}"
            return Query(before + text, True)
        if way == "any":
            return Query(before + body.sql, False, (choices.below(6), choices.pick([0, 0, 1, 3])))
        return Query(before + body.sql, False)

    def _body(self, kinds: Sequence[str] | None = None) -> Selected:
        """A SELECT, or a set operation on two."""
        if self.size < 2 or not self.choices.chance(18):
            return self._select(kinds)
        left = self._select(kinds, bare=True)
        right = self._select(left.kinds, bare=True)
        word = self.choices.pick(
            [
                "UNION ALL",
                "UNION",
                "INTERSECT",
                "EXCEPT",
                "UNION ALL",
                "EXCEPT ALL",
                "INTERSECT ALL",
            ]
        )
        distinct = not word.endswith("ALL")
        key = left.names if distinct else None
        rows = left.rows + right.rows
        return Selected(f"{left.sql} {word} {right.sql}", left.columns, key, rows)

    def _select(self, kinds: Sequence[str] | None = None, *, bare: bool = False) -> Selected:
        """A SELECT of columns of these kinds (any, if None); ``bare``: without ORDER BY."""
        self.size -= 1
        source = self._from()
        where = self._where(source)
        way = self.choices.weighted(plain=12, group=4, window=2, distinct=2, whole=1)
        if way in ("group", "whole"):
            return self._grouped(source, where, kinds, whole=way == "whole", bare=bare)
        if kinds is None:
            kinds = [self.choices.pick(KINDS) for _ in range(1 + self.choices.below(3))]
        items = [self._item(kind, source.columns) for kind in kinds]
        if way == "window":
            items = [
                self._window(kind, item, source) for kind, item in zip(kinds, items, strict=True)
            ]
        columns = self._outputs(kinds)
        names = tuple(column.sql for column in columns)
        shown_key: tuple[str, ...] | None = None
        if way == "distinct":
            shown_key = names
        elif source.key is not None:
            shown = dict(zip(items, names, strict=True))
            if all(part in shown for part in source.key):
                shown_key = tuple(shown[part] for part in source.key)
        head = "SELECT DISTINCT " if way == "distinct" else "SELECT "
        text = f"{head}{_aliased(items, names)} FROM {source.sql}{where}"
        if bare or not self.choices.chance(22):
            return Selected(text, columns, shown_key, source.rows)
        total = self._order_of(names)
        if way == "plain" and source.key is not None:
            keys = [self._item(self.choices.pick(KINDS), source.columns)] * self.choices.below(2)
            total = self._order_of([*keys, *source.key], shuffled=False)
        text += f" ORDER BY {total}{self._bounds()}"
        return Selected(text, columns, shown_key, source.rows, True)

    def _grouped(
        self, source: Relation, where: str, kinds: Sequence[str] | None, *, whole: bool, bare: bool
    ) -> Selected:
        choices = self.choices
        keys = [] if whole else [self._key(source) for _ in range(1 + choices.below(2))]
        keys = list(dict.fromkeys(keys))
        if kinds is None:
            kinds = [choices.pick(KINDS) for _ in range(1 + choices.below(3))]
        groups = [*keys, *(self._measure(kind, source) for kind in kinds)]
        items = []
        for kind in kinds:
            if choices.chance(35):
                items.append(self.expressions.of(kind, groups, 1))
            else:
                fitting = [g.sql for g in groups if g.kind == kind]
                items.append(choices.pick(fitting))
        columns = self._outputs(kinds)
        names = tuple(column.sql for column in columns)
        text = f"SELECT {_aliased(items, names)} FROM {source.sql}{where}"
        if keys:
            text += f" GROUP BY {', '.join(key.sql for key in keys)}"
        if choices.chance(35):
            text += f" HAVING {self.expressions.of('bool', groups, 2)}"
        if not bare and choices.chance(15):
            text += f" ORDER BY {self._order_of(names)}{self._bounds()}"
            return Selected(text, columns, None, source.rows, True)
        return Selected(text, columns, None, source.rows)

    # --- FROM ------------------------------------------------------------------------------------

    def _from(self) -> Relation:
        choices = self.choices
        source = self._item_of_from()
        for _ in range(choices.pick([0, 0, 0, 1, 1, 1, 2, 3])):
            source = self._joined(source, self._item_of_from())
        return source

    def _item_of_from(self) -> Relation:
        choices = self.choices
        way = choices.weighted(table=10, view=1, derived=4, common=6)
        if way == "common" and self.common:
            return self._aliased_relation(choices.pick(self.common))
        if way == "derived" and self.size > 1:
            selected = self._body()
            return self._named(self._name("r"), selected, derived=True)
        names = list(COLUMNS)[3:] if way == "view" else list(COLUMNS)[:3]
        return self._table(choices.pick(names))

    def _table(self, table: str) -> Relation:
        columns = tuple(Column(c, kind) for c, kind in {KEY: "int", **COLUMNS[table]}.items())
        return self._aliased_relation(
            Relation(table, columns, (KEY,), 60 if table in VIEWS else 24)
        )

    def _aliased_relation(self, relation: Relation) -> Relation:
        name = self._name("r")
        columns = tuple(Column(f"{name}.{c.sql}", c.kind) for c in relation.columns)
        key = None if relation.key is None else tuple(f"{name}.{part}" for part in relation.key)
        return Relation(f"{relation.sql} AS {name}", columns, key, relation.rows)

    def _named(self, name: str, selected: Selected, *, derived: bool = False) -> Relation:
        """A query under a name: what a WITH names, or derived tables with its columns qualified."""
        before = f"{name}." if derived else ""
        columns = tuple(Column(before + c.sql, c.kind) for c in selected.columns)
        key = None if selected.key is None else tuple(before + part for part in selected.key)
        text = f"({selected.sql}) AS {name}" if derived else name
        return Relation(text, columns, key, selected.rows)

    def _joined(self, left: Relation, right: Relation) -> Relation:
        choices = self.choices
        words = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "JOIN"]
        word = choices.pick(words)
        columns = (*left.columns, *right.columns)
        key = None if left.key is None or right.key is None else (*left.key, *right.key)
        pairs = left.rows * right.rows
        if pairs > _MOST_PAIRS:
            return left
        joined = Relation(f"{left.sql} {word} {right.sql}", columns, key, pairs)
        if word == "CROSS JOIN":
            return joined
        shared = [n for n in ("k", "a") if _times(n, left) == _times(n, right) == 1]
        if shared and choices.chance(25):
            using = f"{joined.sql} USING ({choices.pick(shared)})"
            return joined._replace(sql=using, rows=max(24, pairs // 4))
        conditions = [self._equality(left.columns, right.columns)]
        if choices.chance(40):
            scope = choices.pick([columns, columns, left.columns, right.columns])
            conditions.append(self.expressions.of("bool", scope, 1))
        if word == "JOIN" and choices.chance(15):
            on = conditions[-1] if len(conditions) > 1 else self.expressions.of("bool", columns, 1)
            return joined._replace(sql=f"{joined.sql} ON {on}")
        rows = max(left.rows, right.rows, pairs // 4)
        return joined._replace(sql=f"{joined.sql} ON {' AND '.join(conditions)}", rows=rows)

    def _equality(self, left: Scope, right: Scope) -> str:
        """``x = y`` of two columns, or of calls on them."""
        both = [(x, y) for x in left for y in right if x.kind == y.kind]
        choices = self.choices
        if not both or choices.chance(12):
            kind = choices.pick(["text", "int", "bool"])
            return f"{self.expressions.call(kind, left)} = {self.expressions.leaf(kind, right)}"
        by_name = [(x, y) for x, y in both if x.sql.endswith(".k") and y.sql.endswith(".k")]
        x, y = choices.pick(by_name) if by_name and choices.chance(60) else choices.pick(both)
        return f"{x.sql} = {y.sql}"

    # --- parts of a SELECT -----------------------------------------------------------------------

    def _where(self, source: Relation) -> str:
        if self.choices.chance(30):
            return ""
        conditions = [self.expressions.of("bool", source.columns, 3, subqueries=True)]
        while self.choices.chance(20):
            conditions.append(self.expressions.of("bool", source.columns, 2, subqueries=True))
        return f" WHERE {' AND '.join(conditions)}"

    def _item(self, kind: str, scope: Scope) -> str:
        return self.expressions.of(kind, scope, self.choices.pick([0, 0, 1, 2]))

    def _key(self, source: Relation) -> Column:
        """What to group by: a column, or an expression, which may call."""
        if self.choices.chance(60):
            return self.choices.pick(source.columns)
        kind = self.choices.pick(KINDS)
        return Column(self.expressions.call(kind, source.columns), kind)

    def _measure(self, kind: str, source: Relation) -> Column:
        return Column(self._aggregate(kind, source), kind)

    def _aggregate(self, kind: str, source: Relation) -> str:
        choices = self.choices
        template = choices.pick(_AGGREGATES[kind])
        wanted = next((k for k in KINDS if f"{{{k}}}" in template), None)
        over = self._item(wanted or choices.pick(KINDS), source.columns) if "{" in template else ""
        if template.startswith("llm_") and over.startswith(("'", "CAST(NULL")):
            over = choices.pick(source.columns).sql  # a call takes no literal there
        text = template.replace(f"{{{wanted}}}", over).replace("{}", over)
        if choices.chance(20):
            text += f" FILTER (WHERE {self.expressions.of('bool', source.columns, 1)})"
        return text

    def _window(self, kind: str, item: str, source: Relation) -> str:
        """A window expression of the kind, if there is one, else ``item``."""
        choices = self.choices
        templates = _WINDOWS.get(kind)
        if templates is None or choices.chance(30):
            return item
        settled = source.key or tuple(c.sql for c in source.columns)
        by = f"PARTITION BY {self._item(choices.pick(KINDS), source.columns)} "
        return choices.pick(templates).format(
            by=by if choices.chance(50) else "",
            total=self._order_of(settled, shuffled=False),
            some=self._item(choices.pick(KINDS), source.columns),
            int=self._item("int", source.columns),
            text=self._item("text", source.columns),
            any=self._item(choices.pick(KINDS), source.columns),
        )

    def _order_of(self, terms: Sequence[str], *, shuffled: bool = True) -> str:
        choices = self.choices
        terms = choices.some(terms, 1) + list(terms) if shuffled else list(terms)
        ends = ["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST", " NULLS LAST"]
        return ", ".join(term + choices.pick(ends) for term in dict.fromkeys(terms))

    def _bounds(self) -> str:
        choices = self.choices
        limit = f" LIMIT {choices.pick([3, 1, 2, 5, 0, 8])}" if choices.chance(80) else ""
        offset = f" OFFSET {choices.pick([1, 2, 4])}" if choices.chance(25) else ""
        return limit + offset

    # --- subqueries ------------------------------------------------------------------------------

    def _subquery(self, kind: str, scope: Scope) -> str | None:
        """EXISTS, IN or a scalar subquery, by itself or with an equality to the scope around it."""
        if self.size < 1:
            return None
        self.size -= 1
        choices = self.choices
        inner = self._item_of_from()
        conditions = []
        pairs = [(x, y) for x in inner.columns for y in scope if x.kind == y.kind and _plain(y)]
        word = choices.pick(["", "NOT "])
        exists = choices.chance(50)
        # NOT IN cannot be correlated in DataFusion, and a scalar subquery only in some places.
        if pairs and kind == "bool" and (exists or not word) and choices.chance(60):
            x, y = choices.pick(pairs)
            conditions.append(f"{x.sql} = {y.sql}")
        if choices.chance(60):
            conditions.append(self.expressions.of("bool", inner.columns, 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if kind != "bool":
            value = self._item(kind, inner.columns)
            return f"(SELECT max({value}) FROM {inner.sql}{where})"
        if exists:
            return f"({word}EXISTS (SELECT 1 FROM {inner.sql}{where}))"
        compared = choices.pick(["int", "text"])
        left = self._item(compared, scope)
        return f"({left} {word}IN (SELECT {self._item(compared, inner.columns)} FROM {inner.sql}{where}))"

    def _outputs(self, kinds: Sequence[str]) -> tuple[Column, ...]:
        """Columns of new names: contexts of calls go by them."""
        return tuple(Column(self._name("c"), kind) for kind in kinds)

    def _name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"


def _plain(column: Column) -> bool:
    return column.sql.replace(".", "").isalnum()


def _times(name: str, relation: Relation) -> int:
    """How many columns of a relation have a name."""
    return sum(column.sql.endswith(f".{name}") for column in relation.columns)


def _aliased(items: Sequence[str], names: Sequence[str]) -> str:
    return ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))
