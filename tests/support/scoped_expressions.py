"""The expressions of random queries whose names collide: columns, calls, aggregates, windows,
conditions, and what each says of the answers in it."""

from __future__ import annotations

from collections.abc import Sequence

from random_choices import Choices
from scoped_parts import KINDS, NAMES, Asked, Column, Relation


class Expressions:
    def __init__(self, choices: Choices, number: int) -> None:
        self.choices = choices
        self.number = number
        self.calls: list[Asked] = []

    def _numeric(self, column: Column) -> str:
        if column.kind == "int":
            column.say("number")
            return f"{column.sql} + 1"
        if column.kind == "bool":
            column.say("boolean")
            return f"NOT {column.sql}"
        return column.sql

    def _direction(self, column: Column) -> str:
        last = "⟦last⟧" if column.answer else ""
        return self.choices.pick(["", f" DESC{last}", f" DESC{last}", " DESC NULLS FIRST", " ASC"])

    def _names(self, number: int) -> list[str]:
        left = list(NAMES)
        return [left.pop(self.choices.below(len(left))) for _ in range(number)]

    def _measure(self, visible: Sequence[tuple[str, Column]]) -> Column:
        way = self.choices.weighted(
            count=3, sum=2, max=3, array=2, filter=1, avg=1, every=1, first=1, joined=1
        )
        if way == "count":
            column = self._expression(self.choices.pick(KINDS), visible)
            return Column(f"count({column.sql})", "int", (), column.answer)
        if way == "sum":
            column = self._expression("int", visible)
            column.say("number")
            return Column(f"sum({column.sql})", "sum", (), column.answer)
        if way == "avg":
            column = self._expression("int", visible)
            column.say("number")
            return Column(f"avg({column.sql})", "num", (), column.answer)
        if way == "every":
            column = self._expression("bool", visible)
            column.say("boolean")
            return Column(f"bool_and({column.sql})", "bool", (), column.answer)
        if way == "first":
            column = self._expression(self.choices.pick(("int", "text", "code")), visible)
            sql = f"first_value({column.sql} ORDER BY {column.sql}{self._direction(column)})"
            return Column(sql, column.kind, column.calls, column.answer)
        if way == "joined":
            column = self._expression("text", visible)
            sql = f"string_agg({column.sql}, '+' ORDER BY {column.sql}{self._direction(column)})"
            return Column(sql, "text", (), column.answer)
        if way == "array":
            ids = [c for c in self._columns(visible, "int") if not c.answer]
            if ids:
                by = self._expression(self.choices.pick(("int", "text", "code")), visible)
                one = self.choices.pick(ids)
                order = f"{by.sql}{self._direction(by)}, {one.sql}{self._direction(one)}"
                return Column(f"array_agg({one.sql} ORDER BY {order})", "list", (), by.answer)
        if way == "filter":
            counted = self._expression("int", visible)
            condition = self._predicate(counted)
            return Column(f"count(*) FILTER (WHERE {condition})", "int", (), counted.answer)
        column = self._expression(self.choices.pick(("int", "text", "code")), visible)
        word = self.choices.pick(["max", "min"])
        return Column(f"{word}({column.sql})", column.kind, column.calls, column.answer)

    def _window(self, visible: Sequence[tuple[str, Column]]) -> tuple[Column, str]:
        """A window function whose value no order among equals changes, and its WINDOW clause."""
        by = self._expression(self.choices.pick(("int", "text")), visible)
        if by.sql.isdigit():
            return Column("1", "int"), ""
        part, answer = "", by.answer
        if self.choices.chance(40):
            column = self._expression(self.choices.pick(("text", "bool")), visible)
            part, answer = f"PARTITION BY {column.sql} ", answer or column.answer
        over, clause = f"({part}ORDER BY {by.sql}{self._direction(by)})", ""
        if self.choices.chance(20):
            name = self.choices.pick(NAMES)
            over, clause = name, f" WINDOW {name} AS {over}"
        way = self.choices.weighted(rank=4, dense_rank=1, count=1, sum=1, max=2)
        if way in ("rank", "dense_rank"):
            return Column(f"{way}() OVER {over}", "int", (), answer), clause
        if way == "max":
            column = self._expression(self.choices.pick(("int", "text", "code")), visible)
            sql = f"{self.choices.pick(['max', 'min'])}({column.sql}) OVER {over}"
            return Column(sql, column.kind, column.calls, answer or column.answer), clause
        column = self._expression("int", visible)
        if way == "sum":
            column.say("number")
        kind = "int" if way == "count" else "sum"
        return Column(f"{way}({column.sql}) OVER {over}", kind, (), answer or column.answer), clause

    def _visible(self, scope: Sequence[Relation], hidden: set[str]) -> list[tuple[str, Column]]:
        """The columns of a scope, by their names, as they are written in it."""
        shown = [r for r in scope if r.alias not in hidden]
        counts: dict[str, int] = {}
        for relation in shown:
            for name in relation.columns:
                counts[name] = counts.get(name, 0) + 1
        found = []
        for relation in shown:
            for name, column in relation.columns.items():
                bare = counts[name] == 1 and self.choices.chance(55)
                sql = name if bare else f"{relation.alias}.{name}"
                found.append((name, Column(sql, column.kind, column.calls, column.answer)))
        return found

    @staticmethod
    def _columns(visible: Sequence[tuple[str, Column]], kind: str) -> list[Column]:
        return [column for _, column in visible if column.kind == kind]

    def _call(self, value: Column) -> Asked:
        function = self.choices.weighted(llm_map=8, llm_int=1, llm_filter=1, llm_text=1)
        call = Asked(self.number, len(self.calls), function, value.sql)
        self.calls.append(call)
        return call

    def _expression(self, kind: str, visible: Sequence[tuple[str, Column]]) -> Column:
        """A column of a kind, an expression of some, or a call whose answers shall be of it."""
        choices = self.choices
        own = self._columns(visible, kind)
        texts = self._columns(visible, "text")
        way = choices.weighted(column=5 if own else 0, call=7 if texts else 0, made=2)
        if way == "column":
            return choices.pick(own)
        if way == "call":
            call = self._call(choices.pick(texts))
            fixed = {"llm_int": "int", "llm_filter": "bool", "llm_text": "text"}
            made = fixed.get(call.function, kind)
            if made != kind:
                call.function = "llm_map"
            return Column(f"⟦{call.number}⟧", kind, (call,), True)
        if own and visible and choices.chance(30):
            one, other = choices.pick(own), choices.pick(own)
            tested = choices.pick([column for _, column in visible])
            sql = f"CASE WHEN {self._predicate(tested)} THEN {one.sql} ELSE {other.sql} END"
            answer = one.answer or other.answer or tested.answer
            return Column(sql, kind, (*one.calls, *other.calls), answer)
        if kind == "text" and texts:
            column = choices.pick(texts)
            return Column(f"upper({column.sql})", "text", (), column.answer)
        if kind == "int" and own:
            column = choices.pick(own)
            if choices.chance(50):
                return Column(
                    f"COALESCE({self._said(column, 'integer').sql}, 0)",
                    "int",
                    column.calls,
                    column.answer,
                )
            if choices.chance(30):
                sql = f"NULLIF({self._said(column, 'integer').sql}, 2)"
                return Column(sql, "int", column.calls, column.answer)
            column.say("number")
            return Column(f"CAST({column.sql} * 2 AS INT)", "int", (), column.answer)
        if kind == "bool" and visible:
            column = choices.pick([c for _, c in visible])
            return Column(f"({column.sql} IS NULL)", "bool", (), column.answer)
        literals = {
            "int": "7",
            "text": "'l'",
            "bool": "TRUE",
            "code": "'AB'",
            "num": "1.5",
            "date": "DATE '2024-01-02'",
        }
        return Column(literals[kind], kind)

    @staticmethod
    def _said(column: Column, kind: str) -> Column:
        column.say(kind)
        return column

    def _predicate(self, column: Column) -> str:
        """A condition on a column, which may say what its values are."""
        sql, kind, pick = column.sql, column.kind, self.choices.pick
        if self.choices.chance(15):
            return f"{sql} IS NOT NULL"
        if kind in ("int", "sum"):
            way = pick(
                [
                    "{} > 1",
                    "{} <= 3",
                    "{} IN (1, 2, 3)",
                    "{} BETWEEN 0 AND 3",
                    "2 < {}",
                    "{} + 1 < 4",
                    "-{} < 0" if column.calls else "{} < 4",
                    "{} > 1.5",
                ]
            )
            column.say("number" if any(s in way for s in ("+", "-", ".")) else "integer")
            return way.format(sql)
        if kind == "num":
            column.say("number")
            return pick(["{} > 1.5", "abs({}) < 2", "{} BETWEEN 0.5 AND 2.5"]).format(sql)
        if kind == "bool":
            column.say("boolean")
            return pick(
                ["{}", "NOT {}", "{} IS TRUE", "{} = TRUE", "CASE WHEN {} THEN TRUE END"]
            ).format(sql)
        if kind == "code":
            column.say("regex")
            return pick(["{} = 'AB'", "{} IN ('AB', 'CD')", "'EF' <> {}"]).format(sql)
        if kind == "date":
            column.say("date")
            return pick(["{} < DATE '2024-01-03'", "{} = DATE '2024-01-02'"]).format(sql)
        if kind == "list":
            return f"cardinality({sql}) > 1"
        return pick(["{} = 'ab'", "{} LIKE 'a%'", "{} || 'z' <> 'az'", "upper({}) > 'B'"]).format(
            sql
        )
