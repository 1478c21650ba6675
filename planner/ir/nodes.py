"""A plan as a tree of frozen nodes, readable without knowledge of Substrait.

A node keeps its Substrait message without the nested relations and expressions (its *template*), so
that all of DataFusion's content survives the round trip. The parts that a rule may change, inputs,
expressions and calls, are tuples beside it. ``read.py`` converts messages to nodes, and
``write.py`` nodes to messages.

Expressions name the columns of their relation's inputs by position (``Field``): in a join, the
columns of the left input come first. Every relation's output has exactly ``width`` columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from blendfusion.udfs.declare.call import Call

if TYPE_CHECKING:
    from substrait.proto import SortField

T = TypeVar("T")


class cached_field(Generic[T]):  # noqa: N801 it stands where ``property`` does
    """``cached_property`` without the lock that it has before Python 3.12, which costs more than
    most of these: two threads that meet find the same."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work, self.name, self.__doc__ = work, work.__name__, work.__doc__

    def __get__(self, node: object, owner: type) -> T:
        found = node.__dict__[self.name] = self.work(node)
        return found


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the relation's inputs, by position."""

    index: int

    children: ClassVar[tuple[Expr, ...]] = ()
    rels: ClassVar[tuple[Plan, ...]] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """An ingredient call on argument expressions. Equal asks have equal answers.

    ``domain``: in a join by meaning, the plan of the candidates. Its first column holds the texts
    that may match the first argument; its other columns equal the other arguments. Of a call over a
    whole column, the plan of its distinct values; with further arguments, the rows that equal them
    are a column of their own.
    """

    call: Call
    args: tuple[Expr, ...]
    domain: Plan | None = None

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    @property
    def rels(self) -> tuple[Plan, ...]:
        return () if self.domain is None else (self.domain,)


@dataclass(frozen=True, slots=True)
class Node:
    """Any other expression. ``name`` is the name of a function, or Substrait's name of another
    kind."""

    name: str
    template: bytes
    children: tuple[Expr, ...] = ()
    rels: tuple[Plan, ...] = ()
    """Relations of a subquery expression."""


COMPUTES = "row:computes"
"""The name of a test whether expressions have values on a row, and do not fail: the first part of a
predicate of a block. No function of a user has it."""

Expr: TypeAlias = "Field | Ask | Node"
Direction: TypeAlias = "SortField.SortDirection.ValueType"


@dataclass(frozen=True, slots=True)
class Take:
    """The first ``count`` rows in an order, of all rows or of each combination of values of
    ``per``."""

    count: int
    per: tuple[Expr, ...] = ()
    order: tuple[Expr, ...] = ()
    """No key: that in which the rows come."""
    directions: tuple[Direction, ...] = ()
    ties: int = 0
    """The number of first keys of the order in which further rows that equal the last one count,
    too."""
    dense: bool = False
    """Whether ``count`` counts combinations of values of the order instead of rows."""
    of_groups: bool = False
    """Whether 0.0 and -0.0 are one value of ``per``, as in groups; windows tell them apart."""

    @property
    def keys(self) -> tuple[tuple[Expr, Direction], ...]:
        """The order, each key with its direction."""
        return tuple(zip(self.order, self.directions, strict=True))

    def by(self, keys: Sequence[tuple[Expr, Direction]]) -> Take:
        """This take in another order."""
        return replace(self, order=tuple(e for e, _ in keys), directions=tuple(d for _, d in keys))


@dataclass(frozen=True, slots=True)
class Measure:
    """One aggregate of an aggregate relation. ``exprs``: sort keys, then arguments, then filter."""

    name: str
    template: bytes
    exprs: tuple[Expr, ...]
    n_sorts: int
    n_args: int

    @property
    def args(self) -> tuple[Expr, ...]:
        return self.exprs[self.n_sorts : self.n_sorts + self.n_args]

    @property
    def filter(self) -> Expr | None:
        """The condition of its FILTER clause."""
        rest = self.exprs[self.n_sorts + self.n_args :]
        return rest[0] if rest else None


@dataclass(frozen=True, slots=True)
class GroupNeed:
    """The parts that are read of the groups that an aggregate makes of a block's rows.

    The first ``n_keys`` columns of the block are the keys. ``measures`` read its columns; literals
    beside them. ``tests``, ``order`` and ``shown`` are expressions over the columns of the groups:
    the keys, then the measures.
    """

    n_keys: int
    measures: tuple[Measure, ...]
    tests: tuple[Expr, ...] = ()
    """A group of which one of these is not TRUE is read no further."""
    n_below_windows: int = 0
    """The number of those tests that a group has to pass to be read by windows."""
    order: tuple[Expr, ...] = ()
    """The order of the others in which a limit counts them; none: any."""
    directions: tuple[Direction, ...] = ()
    offset: int = 0
    count: int | None = None
    """The limit; None: all groups."""
    per: tuple[Expr, ...] = ()
    """The keys for each combination of which the limit counts groups by themselves."""
    ties: bool = False
    """Whether groups that are equal in the order to the last one within the limit are read, too."""
    dense: bool = False
    """Whether ``count`` counts combinations of values of the order instead of groups."""
    shown: tuple[Expr, ...] = ()
    """The expressions that are read of the groups within the limit. Each needs one value."""

    @property
    def has_limit(self) -> bool:
        return self.count is not None


@dataclass(frozen=True)
class Rel:
    """A relation of Substrait; ``kind`` is its name there (read, filter, join, aggregate, …).

    ``exprs`` are its expressions in the message's order; for a project, exactly the output columns.
    """

    kind: str
    template: bytes
    inputs: tuple[Plan, ...]
    exprs: tuple[Expr, ...]
    width: int

    @cached_field
    def _hash(self) -> int:
        return hash((self.kind, self.template, self.inputs, self.exprs))

    def __hash__(self) -> int:
        return self._hash

    @cached_field
    def calls_here(self) -> bool:
        """Whether its own expressions contain a call."""
        return any(map(needs_model, self.exprs))

    @cached_field
    def has_calls(self) -> bool:
        """Whether the relation or one below it contains a call."""
        return self.calls_here or any(map(_asks, relations_below(self)))

    @cached_field
    def has_subqueries(self) -> bool:
        """Whether relations stand in its expressions."""
        return any(map(holds_plans, self.exprs))

    @cached_field
    def kinds(self) -> frozenset[str]:
        """Its kind, and those of all relations below it."""
        return frozenset((self.kind,)).union(*(p.kinds for p in relations_below(self)))

    def with_inputs(self, *inputs: Plan) -> Rel:
        """The relation over other inputs; the relation itself if they are its own."""
        if all(map(is_, inputs, self.inputs)):
            return self
        new = Rel(self.kind, self.template, inputs, self.exprs, self.width)
        return _of_same_expressions(self, new)


@dataclass(frozen=True)
class Block:
    """Row-wise work outside of DataFusion: ``SELECT select FROM source WHERE where LIMIT offset,
    count``.

    Rows keep the order of the source. ``where`` holds the conjuncts that need a model, in
    evaluation order; ``select`` has the output columns. Both name columns of the source. ``count``
    None: no limit.
    """

    source: Plan
    where: tuple[Expr, ...]
    select: tuple[Expr, ...]
    offset: int = 0
    count: int | None = None
    once: bool = False
    """Whether rows that equal other rows of its output may be left out. A limit then counts
    distinct rows, and more of them may come."""
    takes: tuple[Take, ...] = ()
    """The first rows that are read, over the columns of the source, whose order is theirs; the
    second are the first of those that the first leave. More rows may come, in any order."""
    until: GroupNeed | None = None
    """The parts that are read of the groups of its rows. Rows about which no answer can change that
    may be left out, or have NULL in place of answers; then their order is that of the source."""

    kind: ClassVar[str] = "block"

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (*self.where, *self.select)

    @property
    def width(self) -> int:
        return len(self.select)

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.source,)

    @property
    def has_limit(self) -> bool:
        """Whether nothing that is above may go below: what is left out would come there."""
        return self.count is not None or self.offset > 0 or bool(self.takes) or self.drops_failing

    @property
    def drops_failing(self) -> bool:
        """Whether rows are left out on which expressions above fail."""
        firsts = (e.children[0] for e in self.where if isinstance(e, Node) and e.name == "or")
        return any(isinstance(e, Node) and e.name == COMPUTES for e in firsts)

    @cached_field
    def _hash(self) -> int:
        limit = self.offset, self.count, self.once, self.takes
        return hash((self.source, self.where, self.select, *limit, self.until))

    def __hash__(self) -> int:
        return self._hash

    @cached_field
    def calls_here(self) -> bool:
        """Whether its own expressions contain a call."""
        return any(map(needs_model, self.exprs))

    @cached_field
    def has_calls(self) -> bool:
        """Whether the block or a relation below it contains a call."""
        return self.calls_here or any(map(_asks, relations_below(self)))

    @cached_field
    def has_subqueries(self) -> bool:
        """Whether relations stand in its expressions."""
        return any(map(holds_plans, self.exprs))

    @cached_field
    def kinds(self) -> frozenset[str]:
        """Its kind, and those of all relations below it."""
        return frozenset((self.kind,)).union(*(p.kinds for p in relations_below(self)))

    def with_inputs(self, source: Plan) -> Block:
        """The block over another source; the block itself if ``source`` is its own."""
        if source is self.source:
            return self
        limit = self.offset, self.count
        new = Block(source, self.where, self.select, *limit, self.once, self.takes, self.until)
        return _of_same_expressions(self, new)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The output of a pipeline that ran earlier: stage ``stage``, ``width`` columns."""

    stage: int
    width: int

    kind: ClassVar[str] = "stored"
    kinds: ClassVar[frozenset[str]] = frozenset((kind,))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return ()


Plan: TypeAlias = "Rel | Block | StoredRows"


@dataclass(frozen=True)
class Root:
    """A whole plan: the tree and the names of its output columns (nested ones included)."""

    plan: Plan
    names: tuple[str, ...]


R = TypeVar("R", "Rel", "Block")


def _of_same_expressions(old: R, new: R) -> R:
    """``new``, which knows what ``old`` knows of their common expressions."""
    known = old.__dict__
    for name in ("calls_here", "has_subqueries"):
        if name in known:
            new.__dict__[name] = known[name]
    return new


def relations_below(plan: Plan) -> tuple[Plan, ...]:
    """The relations directly below one, and those of subqueries inside its expressions."""
    if isinstance(plan, StoredRows) or not plan.has_subqueries:
        return plan.inputs
    inside = (part for expr in plan.exprs for part in walk(expr))
    return (*plan.inputs, *(rel for part in inside for rel in part.rels))


def once_a_plan(work: Callable[[Plan], T]) -> Callable[[Plan], T]:
    """``work``, whose result each relation remembers, since it never changes."""
    name = f"{work.__module__}.{work.__qualname__}"

    @wraps(work)
    def remember(plan: Plan) -> T:
        if isinstance(plan, StoredRows):
            return work(plan)
        known: dict[str, T] = plan.__dict__
        if name not in known:
            known[name] = work(plan)
        return known[name]

    return remember


def _asks(plan: Plan) -> bool:
    return not isinstance(plan, StoredRows) and plan.has_calls


def holds_plans(expr: Expr) -> bool:
    """Whether ``expr`` contains a subquery."""
    return bool(expr.rels) or any(map(holds_plans, expr.children))


def with_input(plan: Rel | Block, number: int, new: Plan) -> Rel | Block:
    """``plan`` over ``new`` in place of one of its inputs."""
    if isinstance(plan, Block):
        return plan.with_inputs(new)
    return plan.with_inputs(*plan.inputs[:number], new, *plan.inputs[number + 1 :])


def walk(expr: Expr) -> Iterator[Expr]:
    """``expr`` and all of its subexpressions, parents first; relations of subqueries are left
    out."""
    left = [expr]
    while left:
        part = left.pop()
        yield part
        left.extend(part.children[::-1])


def asks(expr: Expr) -> list[Ask]:
    """The calls in ``expr``, outermost first, each once."""
    return list(dict.fromkeys(e for e in walk(expr) if isinstance(e, Ask)))


def asks_model(ask: Ask) -> bool:
    """Whether the call itself needs a language model, whatever its arguments need; false for
    ``llm_embed``."""
    return ask.call.ingredient.kind.asks_model


def is_kept(ask: Ask) -> bool:
    """Whether an answer is kept for a second time."""
    kind = ask.call.ingredient.kind
    return asks_model(ask) and not kind.has_body and not ask.call.aggregate


def has_kept_answers(expr: Expr) -> bool:
    """Whether an expression has calls, about texts of rows, whose answers are all kept."""
    own = asks(expr)
    return bool(own) and all(is_kept(ask) and ask.domain is None for ask in own)


def needs_model(expr: Expr) -> bool:
    """Whether ``expr`` contains a call of this query level."""
    return isinstance(expr, Ask) or (
        isinstance(expr, Node) and any(map(needs_model, expr.children))
    )


def fields(expr: Expr) -> set[int]:
    """The input columns that ``expr`` reads."""
    if isinstance(expr, Field):
        return {expr.index}
    return set().union(*map(fields, expr.children))


def substitute(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """``expr`` with each subexpression replaced for which ``change`` returns another, from the
    top."""
    changed = change(expr)
    if changed is not None:
        return changed
    below = expr.children
    if not below:
        return expr
    new = tuple([substitute(part, change) for part in below])
    if new == below:
        return expr
    if isinstance(expr, Ask):
        return replace(expr, args=new)
    assert isinstance(expr, Node)
    return replace(expr, children=new)


def inline(expr: Expr, columns: Sequence[Expr] | Mapping[int, Expr]) -> Expr:
    """``expr`` over a relation whose column i is ``columns[i]``, as an expression over its
    input."""
    return substitute(expr, lambda e: columns[e.index] if isinstance(e, Field) else None)


def windows(expr: Expr) -> list[Expr]:
    """The window functions in ``expr``, outermost first."""
    return [e for e in walk(expr) if isinstance(e, Node) and e.name.startswith("window:")]


def has_window(expr: Expr) -> bool:
    if isinstance(expr, Node) and expr.name.startswith("window:"):
        return True
    return any(map(has_window, expr.children))


def literal_like(expr: Expr) -> bool:
    """Whether ``expr`` has the same value on every row: it reads no column and contains no call."""
    return not any(isinstance(e, Field | Ask) for e in walk(expr)) and not is_volatile(expr)


def is_volatile(expr: Expr) -> bool:
    """Whether ``expr`` may give another value each time it is evaluated."""
    if isinstance(expr, Node) and expr.name in _VOLATILE:
        return True
    return any(map(is_volatile, expr.children))


GATES = ("and", "or", "if_then", "coalesce", "nullif")
"""Expressions that evaluate their parts only on rows where they matter."""


_VOLATILE = frozenset({"random", "uuid", "uuidv4"})


def is_volatile_block(block: Block) -> bool:
    """Whether a block may give other rows each time it runs over the same source."""
    return any(map(is_volatile, (*block.where, *block.select)))


def may_move(block: Block) -> bool:
    """Whether the result of a block for a row is independent of the other rows."""
    return not block.has_limit and block.until is None and not is_volatile_block(block)


def shift(expr: Expr, by: int) -> Expr:
    """``expr`` with every column position increased by ``by``."""
    return substitute(expr, lambda e: Field(e.index + by) if isinstance(e, Field) else None)


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a conjunction, nested ones flattened, in the written order."""
    if isinstance(expr, Node) and expr.name == "and":
        return [c for child in expr.children for c in conjuncts(child)]
    return [expr]


def through_projection(plan: Plan) -> tuple[tuple[Expr, ...], Plan]:
    """(columns of ``plan``, the relation below it that they read). A projection without windows
    gives its columns and its input; any other plan gives its own columns and itself."""
    if isinstance(plan, Rel) and plan.kind == "project" and not any(map(has_window, plan.exprs)):
        return plan.exprs, plan.inputs[0]
    return all_fields(plan.width), plan


def all_fields(width: int) -> tuple[Field, ...]:
    return tuple(Field(i) for i in range(width))


def side_of(expr: Expr, n_left: int) -> str | None:
    """The side of a join that ``expr`` reads; None for both or neither."""
    read = fields(expr)
    if read and all(i < n_left for i in read):
        return "left"
    if read and all(i >= n_left for i in read):
        return "right"
    return None


KEY_COMPARISONS = ("equal", "is_not_distinct_from")
"""Comparisons that can be keys of a hash join."""


def is_key(term: Expr, n_left: int) -> bool:
    """Whether ``term`` is an equality between both sides, which a hash join can use."""
    if not isinstance(term, Node) or term.name not in KEY_COMPARISONS:
        return False
    return {side_of(child, n_left) for child in term.children} == {"left", "right"}


def below_projections(plan: Plan) -> tuple[tuple[Expr, ...], Plan]:
    """(columns of ``plan``, the first relation below that is no projection)."""
    columns, below = through_projection(plan)
    while below is not plan:
        plan = below
        inner, below = through_projection(plan)
        columns = tuple(inline(e, inner) for e in columns)
    return columns, below


def block_below(plan: Plan) -> tuple[tuple[Expr, ...], Block] | None:
    """(the columns of ``plan`` over the source of the block below its projections, the block); None
    without one whose rows are independent of each other."""
    columns, block = below_projections(plan)
    if not isinstance(block, Block) or block.once or not may_move(block):
        return None
    return tuple(inline(e, block.select) for e in columns), block


def prune(block: Block, read: Iterable[Expr]) -> tuple[Block, dict[int, Field]]:
    """(``block`` with those of its columns alone that expressions read, their places in it)"""
    used = sorted(set().union(*map(fields, read)))
    place = {old: Field(new) for new, old in enumerate(used)}
    return replace(block, select=tuple(block.select[i] for i in used)), place


def over(plan: Plan, old: Plan, new: Plan) -> Plan:
    """``plan`` with ``new`` in place of ``old``, which stands below relations of one input."""
    if plan is old:
        return new
    assert isinstance(plan, Rel)
    return plan.with_inputs(over(plan.inputs[0], old, new))
