"""A plan as a tree of frozen nodes, and what can be seen of it without knowing Substrait.

A node keeps its Substrait message with the nested relations and expressions cut out (its
*template*), so that whatever DataFusion puts into a message survives the round trip; what a rule
may change, inputs, expressions and calls, stands beside it as tuples. ``read.py`` makes nodes of
messages, ``write.py`` messages of nodes.

Expressions name the columns of their relation's inputs by position (``Field``): for a join, the
columns of the left input come first. Every relation's output is exactly ``width`` columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from blendfusion.udfs.declare.call import Call


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the relation's inputs, by position."""

    index: int


@dataclass(frozen=True, slots=True)
class Ask:
    """An ingredient call on argument expressions. Equal asks have equal answers.

    ``domain``: for one side of a join by meaning, the plan whose first column holds the texts that
    may match the first argument; its others are equal to the other arguments.
    """

    call: Call
    args: tuple[Expr, ...]
    domain: Plan | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """Any other expression: ``name`` is a function's name, or Substrait's word for the rest."""

    name: str
    template: bytes
    children: tuple[Expr, ...] = ()
    rels: tuple[Plan, ...] = ()
    """Relations of a subquery expression."""


Expr: TypeAlias = "Field | Ask | Node"


@dataclass(frozen=True)
class Rel:
    """A relation of Substrait: ``kind`` is its word there (read, filter, join, aggregate, …).

    ``exprs`` are its expressions in the order in which the message holds them; for a project
    they are exactly the output columns.
    """

    kind: str
    template: bytes
    inputs: tuple[Plan, ...]
    exprs: tuple[Expr, ...]
    width: int

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.template, self.inputs, self.exprs))

    def __hash__(self) -> int:
        return self._hash

    def with_inputs(self, *inputs: Plan) -> Rel:
        return replace(self, inputs=inputs)


@dataclass(frozen=True)
class Block:
    """What runs outside DataFusion: ``SELECT select FROM source WHERE where LIMIT offset, count``.

    All row by row and in the order of the source. ``where`` holds the conjuncts that need a model,
    in the order in which they are tried; ``select`` the output columns; both name columns of
    the source. ``count`` None: no limit.
    """

    source: Plan
    where: tuple[Expr, ...]
    select: tuple[Expr, ...]
    offset: int = 0
    count: int | None = None

    @property
    def width(self) -> int:
        return len(self.select)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.source,)

    @property
    def limited(self) -> bool:
        return self.count is not None or self.offset > 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.source, self.where, self.select, self.offset, self.count))

    def __hash__(self) -> int:
        return self._hash

    def with_inputs(self, source: Plan) -> Block:
        return replace(self, source=source)


@dataclass(frozen=True, slots=True)
class Stored:
    """The output of a pipeline that ran earlier: stage ``stage``, ``width`` columns."""

    stage: int
    width: int

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


Plan: TypeAlias = "Rel | Block | Stored"


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The expressions right below ``expr``."""
    if isinstance(expr, Ask):
        return expr.args
    return expr.children if isinstance(expr, Node) else ()


def plans_in(expr: Expr) -> tuple[Plan, ...]:
    """The relations right inside ``expr``: those of a subquery, or what an answer is chosen from."""
    if isinstance(expr, Node):
        return expr.rels
    return (expr.domain,) if isinstance(expr, Ask) and expr.domain is not None else ()


def walk(expr: Expr) -> Iterator[Expr]:
    """``expr`` and everything below it, parents first; relations of subqueries are not entered."""
    yield expr
    for part in parts(expr):
        yield from walk(part)


def asks(expr: Expr) -> list[Ask]:
    """The calls in ``expr``, outermost first, each once."""
    return list(dict.fromkeys(e for e in walk(expr) if isinstance(e, Ask)))


def asks_model(ask: Ask) -> bool:
    """False for a call that needs no language model, whatever its arguments need: ``llm_embed``."""
    return ask.call.ingredient.compute is None


def needs_model(expr: Expr) -> bool:
    """True if a call of this query level stands anywhere in ``expr``."""
    return any(isinstance(e, Ask) for e in walk(expr))


def fields(expr: Expr) -> set[int]:
    """The input columns that ``expr`` reads."""
    return {e.index for e in walk(expr) if isinstance(e, Field)}


def substitute(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """``expr`` with every subexpression for which ``change`` returns one replaced, from the top."""
    changed = change(expr)
    if changed is not None:
        return changed
    below = parts(expr)
    if not below:
        return expr
    new = tuple(substitute(part, change) for part in below)
    if new == below:
        return expr
    if isinstance(expr, Ask):
        return replace(expr, args=new)
    assert isinstance(expr, Node)
    return replace(expr, children=new)


def inline(expr: Expr, columns: tuple[Expr, ...]) -> Expr:
    """``expr`` over a relation whose column i is ``columns[i]``, as an expression over its input."""
    return substitute(expr, lambda e: columns[e.index] if isinstance(e, Field) else None)


def windows(expr: Expr) -> list[Expr]:
    """The window functions in ``expr``, outermost first."""
    return [e for e in walk(expr) if isinstance(e, Node) and e.name.startswith("window:")]


def has_window(expr: Expr) -> bool:
    return bool(windows(expr))


def literal_like(expr: Expr) -> bool:
    """True if ``expr`` has the same value on every row: it reads no column and asks nothing."""
    return not any(isinstance(e, Field | Ask) for e in walk(expr)) and not is_volatile(expr)


def is_volatile(expr: Expr) -> bool:
    """True if ``expr`` may give another value each time it is evaluated."""
    return any(isinstance(e, Node) and e.name in _VOLATILE for e in walk(expr))


GATES = ("and", "or", "if_then", "coalesce", "nullif")
"""Expressions whose parts are evaluated only where they matter."""


_VOLATILE = frozenset({"random", "uuid", "uuidv4"})


def asks_itself(block: Block) -> bool:
    """True if a block has calls of its own."""
    return any(map(needs_model, (*block.where, *block.select)))


def is_volatile_block(block: Block) -> bool:
    """True if a block may give other rows each time it runs over the same source."""
    return any(map(is_volatile, (*block.where, *block.select)))


def may_move(block: Block) -> bool:
    """True if a block gives the same for a row whatever other rows stand beside it, or came before."""
    return not block.limited and not is_volatile_block(block)


def shift(expr: Expr, by: int) -> Expr:
    """``expr`` with every column moved to the right by ``by``."""
    return substitute(expr, lambda e: Field(e.index + by) if isinstance(e, Field) else None)


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a conjunction, nested ones flattened, in the order in which they are written."""
    if isinstance(expr, Node) and expr.name == "and":
        return [c for child in expr.children for c in conjuncts(child)]
    return [expr]


def through_projection(plan: Plan) -> tuple[tuple[Expr, ...], Plan]:
    """(the columns of ``plan``, the relation below it that they read): those of a projection without
    windows and its input, or of ``plan`` itself."""
    if isinstance(plan, Rel) and plan.kind == "project" and not any(map(has_window, plan.exprs)):
        return plan.exprs, plan.inputs[0]
    return all_fields(plan.width), plan


def all_fields(width: int) -> tuple[Field, ...]:
    return tuple(Field(i) for i in range(width))


def side_of(expr: Expr, n_left: int) -> str | None:
    """The side of a join that ``expr`` reads; None if both (or neither)."""
    read = fields(expr)
    if read and all(i < n_left for i in read):
        return "left"
    if read and all(i >= n_left for i in read):
        return "right"
    return None


KEY_COMPARISONS = ("equal", "is_not_distinct_from")
"""What a hash join can compare its keys by."""


def is_key(term: Expr, n_left: int) -> bool:
    """True for an equality of one side with the other: a hash join can use it."""
    if not isinstance(term, Node) or term.name not in KEY_COMPARISONS:
        return False
    return {side_of(child, n_left) for child in term.children} == {"left", "right"}
