"""The columns of a union of the sources of blocks, from what the blocks read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from blendfusion.planner.ir.builders import (
    cast_to_text,
    integer_literal,
    limit_rows,
    project,
    text_null,
)
from blendfusion.planner.ir.joins import join_plans
from blendfusion.planner.ir.nodes import Ask, Expr, Field, Plan, needs_model, substitute
from blendfusion.udfs.declare.call import Call


@dataclass(frozen=True, slots=True)
class _Own:
    """A column of one branch, NULL in the others."""

    branch: int
    expr: Expr


@dataclass(frozen=True, slots=True)
class _Text:
    """A column of texts: the argument with this number in each branch, or NULL. Equal calls of
    several branches thereby read the same column."""

    number: int


@dataclass(slots=True)
class UnionColumns:
    """The columns of the union below the block: the number of the branch first, then the needed
    ones.

    ``found`` has the contribution of each branch to a column: one expression each, or that of one
    branch.
    """

    below: Sequence[Plan]
    found: dict[tuple[Expr, ...] | _Own | _Text, Field] = field(default_factory=dict)
    texts: dict[int, list[Expr]] = field(default_factory=dict)
    """The text arguments of each branch, in order of their first use."""

    @property
    def tag(self) -> Expr:
        return Field(0)

    def common(self, exprs: Sequence[Expr]) -> Field:
        return self._place(tuple(exprs))

    def own(self, branch: int, expr: Expr) -> Expr:
        """An expression over the branch's source as one over the union."""

        def place(part: Expr) -> Expr | None:
            if isinstance(part, Field):
                return self._place(_Own(branch, part))
            if isinstance(part, Ask) and _asks_about_text(part.call):
                return replace(part, args=tuple(map(argument, part.args)))
            return None

        def argument(arg: Expr) -> Expr:
            if needs_model(arg) or is_cast(arg):
                return self.own(branch, arg)
            own = self.texts.setdefault(branch, [])
            if arg not in own:
                own.append(arg)
            return self._place(_Text(own.index(arg)))

        return substitute(expr, place)

    def _place(self, what: tuple[Expr, ...] | _Own | _Text) -> Field:
        return self.found.setdefault(what, Field(1 + len(self.found)))

    def sources(self) -> tuple[Plan, ...]:
        """The inputs of the union, one a branch, all with the same columns."""
        return tuple(self._source(i) for i in range(len(self.below)))

    def _source(self, branch: int) -> Plan:
        source = self.below[branch]
        columns: list[Expr] = [integer_literal(branch + 1)]
        for what in self.found:
            if isinstance(what, _Text):
                texts = self.texts.get(branch, [])
                columns.append(texts[what.number] if what.number < len(texts) else text_null())
            elif not isinstance(what, _Own):
                columns.append(what[branch])
            elif what.branch == branch:
                columns.append(what.expr)
            else:
                # NULLs with another branch's type: the padding of an outer join without rows.
                columns.append(Field(source.width))
                other = limit_rows(project(self.below[what.branch], (what.expr,)), 0, 0)
                source = join_plans(source, other, (), "left")
        return project(source, tuple(columns))


def is_cast(arg: Expr) -> bool:
    """Whether DataFusion casts an argument to text, which may be the bytes of an image: only a
    block reads these without the cast, so that the cast must not stand below the union."""
    return cast_to_text(arg) is not None


def _asks_about_text(call: Call) -> bool:
    """Whether every argument of the call's function is text."""
    return all(pa.types.is_string(one) for one in call.value_types)
