"""The columns of a row that a function chooses, in the place of answers about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from blendfusion.planner.ir.builders import case, function, project, text_literal
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Plan,
    asks,
    fields,
    inline,
    needs_model,
    prune,
    substitute,
)
from blendfusion.planner.ir.null_values import null_for_nulls


@dataclass(slots=True)
class ChosenColumns:
    """The columns that pass through functions that choose a row, instead of answers."""

    block: Block
    needed: frozenset[Ask]
    """Calls that are asked for all of its rows."""
    carried: list[Expr] = field(default_factory=list)
    """Further columns of the block."""

    def pass_through(
        self, value: Expr, default: Expr | None = None
    ) -> tuple[Field, Callable[[Expr], Expr]] | None:
        """(the column that is chosen instead of the column ``value`` of the block, what this is of
        the chosen one, ``default`` where there is none); None if that spares nothing."""
        value = inline(value, self.block.select)
        read = sorted(fields(value))
        own = asks(value)
        if not own or not read or any(ask.domain is not None or ask in self.needed for ask in own):
            return None
        if len(read) == 1 and null_for_nulls(value) and default is None:
            only = Field(read[0])
            return self.column(only), lambda v: substitute(
                value, lambda part: v if part == only else None
            )
        place: dict[Expr, int] = {Field(column): i for i, column in enumerate(read)}

        def of_struct(chosen: Expr) -> Expr:
            def own(part: Expr) -> Expr | None:
                if part not in place:
                    return None
                return function("get_field", (chosen, text_literal(f"c{place[part]}")))

            return case([(function("is_not_null", (chosen,)), substitute(value, own))], default)

        return self.column(function("struct", tuple(place))), of_struct

    def column(self, expr: Expr) -> Field:
        """The place of a further column of the block."""
        if expr not in self.carried:
            self.carried.append(expr)
        return Field(self.block.width + self.carried.index(expr))

    def source(self, read: Iterable[Expr]) -> tuple[Plan, Callable[[Expr], Expr]]:
        """(what is left of the block, what an expression that is ``read`` is over that)"""
        wide = replace(self.block, select=(*self.block.select, *self.carried))
        block, place = prune(wide, read)
        left: Plan = block
        if not (block.where or block.has_limit or any(map(needs_model, block.select))):
            left = project(block.source, block.select)
        return left, lambda expr: inline(expr, place)
