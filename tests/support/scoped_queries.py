"""Random queries whose names collide on purpose, with what every answer in them must look like.

The generator knows to which column each name that it writes refers, so that it can say what a call's
answers look like without reading the query. Calls are written ``⟦0⟧``, and NULLS LAST, where an
answer is sorted by, ``⟦last⟧``: the query is rendered for a session, and for engines in which plain
functions of the right types stand for the calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from random_choices import Choices
from scoped_expressions import Expressions
from scoped_parts import KINDS, NAMES, TABLES, Column, Relation, Scoped


def scoped_query(seed: int) -> Scoped:
    """The query of a number."""
    choices = Choices.seeded(seed)
    writer = _Writer(choices, seed)
    sql, _, ordered = writer.query(1 + choices.below(2), [], {}, top=True)
    return Scoped(sql, writer.calls, ordered)


class _Writer(Expressions):
    # --- queries ----------------------------------------------------------------------------------

    def query(
        self,
        depth: int,
        outer: Sequence[Relation],
        common: dict[str, dict[str, Column]],
        kinds: Sequence[str] | None = None,
        *,
        top: bool = False,
    ) -> tuple[str, dict[str, Column], bool]:
        """SQL, the columns by name, and whether the rows are ordered."""
        choices, head = self.choices, ""
        common = dict(common)
        if depth and not outer and choices.chance(40 if top else 15):
            written = []
            recursive = choices.chance(20)
            for _ in range(1 + choices.below(2)):
                name = choices.pick(NAMES)
                if name in common:  # DataFusion refuses nested ones of a name
                    continue
                if recursive and not written:
                    sql, columns = self._recursive(name, common)
                else:
                    sql, columns, _ = self.query(depth - 1, (), common)
                names = ""
                may = len(columns) <= len(NAMES) and not (recursive and not written)
                if may and choices.chance(25):
                    renamed = self._names(len(columns))
                    names = f"({', '.join(renamed)})"
                    columns = dict(zip(renamed, columns.values(), strict=True))
                written.append(f"{name}{names} AS ({sql})")
                common[name] = columns
            if written:
                head = f"WITH {'RECURSIVE ' * recursive}{', '.join(written)} "
        sql, columns, scope = self._select(depth, outer, common, kinds)
        known = len(columns) <= len(NAMES) and all(c.kind in KINDS for c in columns.values())
        united = depth and known and choices.chance(18)
        for _ in range(1 + choices.below(2) if united else 0):
            by_name = " BY NAME " in sql
            sql, columns = self._united(sql, columns, outer, common, closer=not by_name)
        if not (top or choices.chance(15)):
            return head + sql, columns, False
        if united or scope is None or choices.chance(70):
            sql += self._order(columns)
            ordered = True
        else:
            sql, ordered = sql + self._order_by_expression(columns, scope), False
        if ordered and choices.chance(30):
            sql += f" LIMIT {1 + choices.below(4)}"
            sql += f" OFFSET {choices.below(3)}" if choices.chance(25) else ""
        return head + sql, columns, ordered

    def _united(
        self,
        sql: str,
        columns: dict[str, Column],
        outer: Sequence[Relation],
        common: dict[str, dict[str, Column]],
        *,
        closer: bool,
    ) -> tuple[str, dict[str, Column]]:
        """A set operation of a query and another one. ``closer``: INTERSECT may be one, although
        its left side is no more than what stands right before it."""
        choices = self.choices
        word = choices.weighted(
            **{"UNION ALL": 4, "UNION": 2, "EXCEPT": 2, "INTERSECT": 2 * closer},
            **{"EXCEPT ALL": 1, "INTERSECT ALL": int(closer)},
            **{"UNION BY NAME": 1, "UNION ALL BY NAME": 1},
        )
        names = list(columns)
        if "NAME" in word:
            names = choices.some(names, len(names))
            names += [name for name in columns if name not in names]
        other, others, _ = self._select(0, outer, common, [columns[n].kind for n in names])
        if "NAME" in word:
            other = f"SELECT * FROM ({other}) AS {choices.pick(NAMES)}({', '.join(names)})"
        right = dict(zip(names, others.values(), strict=True))
        both = {
            name: Column(
                name,
                left.kind,
                (*left.calls, *right[name].calls),
                left.answer or right[name].answer,
            )
            for name, left in columns.items()
        }
        return f"{sql} {word} {other}", both

    def _order(self, columns: dict[str, Column]) -> str:
        """ORDER BY all columns, by name or position: it settles the rows."""
        items = []
        for at, (name, column) in enumerate(columns.items(), 1):
            by = str(at) if self.choices.chance(25) else name
            items.append(f"{by}{self._direction(column)}")
        return f" ORDER BY {', '.join(items)}"

    def _order_by_expression(self, columns: dict[str, Column], scope: Sequence[Relation]) -> str:
        """ORDER BY of an expression, in which the names of the result come first."""
        name, column = self.choices.pick(list(columns.items()))
        column = Column(name, column.kind, column.calls, column.answer)
        return f" ORDER BY {self._numeric(column)}{self._direction(column)}"

    def _recursive(
        self, name: str, common: dict[str, dict[str, Column]]
    ) -> tuple[str, dict[str, Column]]:
        call = self._call(Column("x", "text"))
        call.function = "llm_map"
        made = Column("v", "int", (call,), True)
        where = "n < 2" + (f" AND {self._predicate(made)}" if self.choices.chance(50) else "")
        sql = (
            f"SELECT 0 AS n, id, ⟦{call.number}⟧ AS v FROM u UNION ALL "
            f"SELECT n + 1, id, v FROM {name} WHERE {where}"
        )
        return sql, {"n": Column("n", "int"), "id": Column("id", "int"), "v": made}

    # --- SELECT -----------------------------------------------------------------------------------

    def _select(
        self,
        depth: int,
        outer: Sequence[Relation],
        common: dict[str, dict[str, Column]],
        kinds: Sequence[str] | None,
    ) -> tuple[str, dict[str, Column], Sequence[Relation] | None]:
        choices = self.choices
        source, scope, hidden = self._from(depth, common)
        visible = self._visible(scope, hidden)
        where = [
            self._where(depth, scope, visible, common) for _ in range(choices.pick([0, 0, 1, 1, 2]))
        ]
        tail = f" WHERE {choices.pick([' AND ', ' OR ']).join(where)}" if where else ""
        if kinds is None and not outer and choices.chance(25):
            return self._grouped(source, tail, visible, scope)
        if kinds is None and choices.chance(10):
            star, columns = self._star(scope, hidden)
            if columns:
                name = next((n for n in NAMES if n not in columns), None)
                if name and choices.chance(60):
                    columns[name] = extra = self._expression(choices.pick(KINDS), visible)
                    star += f", {extra.sql} AS {name}"
                return f"SELECT {star} FROM {source}{tail}", columns, None
        wanted = kinds or [choices.pick(KINDS) for _ in range(1 + choices.below(3))]
        items = [self._expression(kind, visible) for kind in wanted]
        window = ""
        if kinds is None and choices.chance(15):
            item, window = self._window(visible)
            items.append(item)
        elif kinds is None and choices.chance(6):
            items.append(self._scalar(common))
        names = self._names(len(items))
        listed = [self._item(item, name) for item, name in zip(items, names, strict=True)]
        distinct = choices.chance(12)
        columns = dict(zip(names, items, strict=True))
        qualify = ""
        if " OVER " in items[-1].sql and choices.chance(50):
            candidates = [n for n in names if n not in {name for name, _ in visible}]
            if names[-1] in candidates:
                qualify = f" QUALIFY {self._predicate(self._named(names[-1], items[-1]))}"
                own = [n for n in candidates if columns[n].kind in ("int", "bool", "code")]
                if own and choices.chance(60):
                    name = choices.pick(own)
                    qualify += f" AND {self._predicate(self._named(name, columns[name]))}"
        text = f"SELECT {'DISTINCT ' * distinct}{', '.join(listed)} FROM {source}{tail}"
        return text + window + qualify, columns, None if distinct else scope

    @staticmethod
    def _named(name: str, column: Column) -> Column:
        return Column(name, column.kind, column.calls, column.answer)

    def _item(self, item: Column, name: str) -> str:
        if item.sql == name or item.sql.endswith(f".{name}"):
            return item.sql
        return f"{item.sql}{self.choices.pick([' AS ', ' AS ', ' '])}{name}"

    def _star(self, scope: Sequence[Relation], hidden: set[str]) -> tuple[str, dict[str, Column]]:
        shown = [r for r in scope if r.alias not in hidden]
        one = self.choices.pick(shown)
        if len(shown) > 1 or self.choices.chance(40):
            return f"{one.alias}.*", dict(one.columns)
        dropped = self.choices.pick(list(one.columns))
        if len(one.columns) > 1 and self.choices.chance(30):
            rest = {n: c for n, c in one.columns.items() if n != dropped}
            return f"* EXCLUDE ({dropped})", rest
        return "*", dict(one.columns)

    def _grouped(
        self,
        source: str,
        tail: str,
        visible: Sequence[tuple[str, Column]],
        scope: Sequence[Relation],
    ) -> tuple[str, dict[str, Column], None]:
        choices = self.choices
        keys = [self._expression(choices.pick(KINDS), visible) for _ in range(choices.below(3))]
        keys = list({key.sql: key for key in keys if not key.sql.isdigit()}.values())
        measures = [self._measure(visible) for _ in range(1 + choices.below(2))]
        measures = list({m.sql: m for m in measures}.values())
        names = self._names(len(keys) + len(measures))
        taken = {name for name, _ in visible} | {n.split(".")[-1] for n, _ in visible}
        listed, by = [], []
        columns: dict[str, Column] = {}
        for at, (key, name) in enumerate(zip(keys, names, strict=False), 1):
            listed.append(self._item(key, name))
            ways = [key.sql, str(at)] + ([name] if name not in taken else [])
            by.append(choices.pick(ways))
            columns[name] = key
        for measure, name in zip(measures, names[len(keys) :], strict=True):
            listed.append(f"{measure.sql} AS {name}")
            columns[name] = measure
        group = f" GROUP BY {', '.join(by)}" if by else ""
        constant = any(re.match(r"'|\d|TRUE|DATE|\(\d", key.sql) for key in keys)
        if by and not constant and choices.chance(15):  # DataFusion does not sort by constant ones
            sets = ", ".join(key.sql for key in keys)
            every = f"GROUPING SETS (({sets}), ({keys[0].sql}), ())"
            group = f" GROUP BY {choices.pick([f'ROLLUP ({sets})', f'CUBE ({sets})', every])}"
        having = ""
        if choices.chance(40):
            candidates = [n for n in names if n not in taken]
            if candidates and choices.chance(60):
                name = choices.pick(candidates)
                having = f" HAVING {self._predicate(self._named(name, columns[name]))}"
            else:
                having = f" HAVING {self._predicate(choices.pick(measures))}"
        return f"SELECT {', '.join(listed)} FROM {source}{tail}{group}{having}", columns, None

    # --- FROM -------------------------------------------------------------------------------------

    def _from(
        self, depth: int, common: dict[str, dict[str, Column]]
    ) -> tuple[str, list[Relation], set[str]]:
        """FROM's SQL, its relations, and the aliases of those without columns behind it."""
        choices = self.choices
        first = self._relation(depth, common, [])
        if not depth or choices.chance(60):
            return first.sql, [first], set()
        keys = [n for n, c in first.columns.items() if c.kind == "int" and not c.answer]
        if keys and choices.chance(5):
            return self._lateral(first, keys, common)
        second = self._relation(depth - 1, common, [first.alias])
        others = [n for n, c in second.columns.items() if c.kind == "int" and not c.answer]
        if not keys or not others:
            return f"{first.sql}, {second.sql}", [first, second], set()
        words = ["JOIN", "JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
        word = choices.pick([*words, "RIGHT JOIN", "FULL JOIN", "RIGHT SEMI JOIN"])
        hidden = {first.alias if "RIGHT" in word else second.alias}
        hidden = hidden if "SEMI" in word or "ANTI" in word else set()
        same = [name for name in keys if name in others]
        if same and choices.chance(25):
            sql = f"{first.sql} {word} {second.sql} USING ({choices.pick(same)})"
            return sql, [first, second], hidden
        on = f"{first.alias}.{choices.pick(keys)} = {second.alias}.{choices.pick(others)}"
        if choices.chance(25):
            both = self._visible([first, second], set())
            on += f" AND {self._predicate(choices.pick([c for _, c in both]))}"
        return f"{first.sql} {word} {second.sql} ON {on}", [first, second], hidden

    def _lateral(
        self, first: Relation, keys: Sequence[str], common: dict[str, dict[str, Column]]
    ) -> tuple[str, list[Relation], set[str]]:
        """A relation beside a query of each of its rows."""
        inner = self._relation(0, common, [first.alias])
        mine = self._visible([inner], set())
        items = [self._expression(self.choices.pick(KINDS), mine) for _ in range(2)]
        names = self._names(2)
        listed = [self._item(item, name) for item, name in zip(items, names, strict=True)]
        ints = self._columns(mine, "int")
        where = f"{first.alias}.{self.choices.pick(keys)}"
        if first.alias in inner.columns or not ints:
            where = "1"
        condition = f"{self.choices.pick(ints).sql if ints else 1} = {where}"
        alias = self.choices.pick([name for name in NAMES if name != first.alias])
        second = Relation("", alias, dict(zip(names, items, strict=True)))
        query = f"SELECT {', '.join(listed)} FROM {inner.sql} WHERE {condition}"
        return f"{first.sql} CROSS JOIN LATERAL ({query}) AS {alias}", [first, second], set()

    def _relation(
        self, depth: int, common: dict[str, dict[str, Column]], taken: Sequence[str]
    ) -> Relation:
        choices = self.choices
        free = [name for name in NAMES if name not in taken]
        alias = choices.pick(free)
        way = choices.weighted(
            table=4, query=6 if depth else 0, common=5 if common else 0, values=1
        )
        if way == "common":
            name = choices.pick(list(common))
            columns = common[name]
            if name not in taken and choices.chance(50):
                return Relation(name, name, columns)
            return Relation(f"{name} AS {alias}", alias, columns)
        if way == "query":
            sql, columns, _ = self.query(depth - 1, (), common)
            if len(columns) <= len(NAMES) and choices.chance(20):
                names = self._names(len(columns))
                columns = dict(zip(names, columns.values(), strict=True))
                return Relation(f"({sql}) AS {alias}({', '.join(names)})", alias, columns)
            return Relation(f"({sql}) {choices.pick(['AS ', ''])}{alias}", alias, columns)
        tables = [table for table in TABLES if table not in common]
        if way == "values" or not tables:
            rows = "(1, 'a'), (2, NULL), (3, 'c')"
            names = self._names(2)
            kinds = [Column("", "int"), Column("", "text")]
            columns = dict(zip(names, kinds, strict=True))
            return Relation(f"(VALUES {rows}) AS {alias}({', '.join(names)})", alias, columns)
        table = choices.pick(tables)
        columns = {name: Column(name, kind) for name, kind in TABLES[table].items()}
        if table not in taken and choices.chance(40):
            return Relation(table, table, columns)
        return Relation(f"{table} AS {alias}", alias, columns)

    # --- conditions -------------------------------------------------------------------------------

    def _where(
        self,
        depth: int,
        scope: Sequence[Relation],
        visible: Sequence[tuple[str, Column]],
        common: dict[str, dict[str, Column]],
    ) -> str:
        choices = self.choices
        way = choices.weighted(
            plain=8,
            call=3,
            exists=2 if depth else 0,
            scalar=1 if depth else 0,
            among=2 if depth else 0,
        )
        if way == "call":
            return self._predicate(self._expression(choices.pick(("int", "bool", "code")), visible))
        if way == "exists":
            return self._exists(scope, visible, common)
        if way == "scalar":
            return self._predicate(self._scalar(common))
        some = [c for _, c in visible if c.kind not in ("list", "sum")]
        if way == "among" and some:
            column = choices.pick(some)
            sql, columns, _ = self.query(0, (), common, [column.kind])
            other = self._names(1)[0]
            query = f"(SELECT {other}.{next(iter(columns))} FROM ({sql}) AS {other})"
            word = choices.pick(["IN", "IN", "= ANY", "<> ALL" if column.kind == "int" else "IN"])
            return f"{column.sql} {word} {query}"
        return self._predicate(choices.pick([column for _, column in visible]))

    def _scalar(self, common: dict[str, dict[str, Column]]) -> Column:
        """The largest number of a query."""
        sql, columns, _ = self.query(0, (), common, ["int"])
        ((name, column),) = columns.items()
        other = self._names(1)[0]
        inner = f"SELECT max({other}.{name}) FROM ({sql}) AS {other}"
        return Column(f"({inner})", "int", column.calls, column.answer)

    def _exists(
        self,
        scope: Sequence[Relation],
        visible: Sequence[tuple[str, Column]],
        common: dict[str, dict[str, Column]],
    ) -> str:
        """A correlated subquery, in which unqualified names are its own first."""
        taken = [relation.alias for relation in scope]
        inner = self._relation(0, common, taken)
        mine = self._visible([inner], set())
        keys = self._columns(mine, "int")
        outers = [
            Column(f"{r.alias}.{n}", c.kind, c.calls, c.answer)
            for r in scope
            if r.alias not in inner.columns  # DataFusion would take a field of that column
            for n, c in r.columns.items()
            if any(o.sql in (n, f"{r.alias}.{n}") for _, o in visible)
        ]
        ints = [c for c in outers if c.kind == "int" and not c.answer]
        parts = [self._predicate(self.choices.pick([c for _, c in mine]))]
        if keys and ints:
            parts.append(f"{self.choices.pick(keys).sql} = {self.choices.pick(ints).sql}")
            named = {name for name, _ in mine}
            bare = [c for c in outers if "." in c.sql and c.sql.split(".")[1] not in named]
            if bare and self.choices.chance(50):
                parts.append(self._predicate(self.choices.pick(bare)))
        item = self._expression(self.choices.pick(KINDS), mine)
        name = self.choices.pick(NAMES)
        return f"EXISTS (SELECT {item.sql} AS {name} FROM {inner.sql} WHERE {' AND '.join(parts)})"
