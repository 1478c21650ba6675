"""Merges blocks in the branches of a UNION ALL into one block above it.

before: ``union all`` of ``block(t) where llm(t.x)`` and ``block(u) where llm(u.y)``, perhaps below
        a limit that DataFusion copied into the branches
after:  one block over the union of the sources, with the column that the call reads. Calls that
        differ see only the rows of their branches: ``where branch <> 1 OR llm(x)``
safe:   a union passes rows on as they are, and each still meets the predicates of its own branch. A
        branch's limit goes only where the limit above takes no more rows than it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from blendfusion.planner.ir.builders import (
    case,
    cast_to_text,
    fetch_bounds,
    function,
    in_list,
    integer_literal,
    limit_rows,
    project,
    text_null,
)
from blendfusion.planner.ir.joins import is_union_all, join_plans
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    literal_like,
    may_move,
    needs_model,
    substitute,
)
from blendfusion.udfs.declare.call import Call

_MOST_OWN_COLUMNS = 32
"""Maximum columns that not all branches have: each row of the union would carry NULLs for the
others."""


def union_pull_up(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "fetch" and is_union_all(plan.inputs[0]):
        return _without_limits_of_branches(plan)
    if is_union_all(plan) and any(map(_movable, plan.inputs)):
        return _above(plan)
    return plan


def _movable(branch: Plan) -> bool:
    """Whether a branch is a block with a call that may run later."""
    return isinstance(branch, Block) and may_move(branch) and branch.calls_here


def _without_limits_of_branches(plan: Rel) -> Plan:
    offset, count = fetch_bounds(plan)
    union = plan.inputs[0]
    if count is None:
        return plan
    enough = offset + count
    branches = tuple(
        replace(b, count=None)
        if isinstance(b, Block)
        and b.offset == 0
        and b.count is not None
        and b.count >= enough
        and not _is_sorted(b.source)
        else b
        for b in union.inputs
    )
    if all(a is b for a, b in zip(branches, union.inputs, strict=True)):
        return plan
    assert isinstance(union, Rel)
    return plan.with_inputs(union.with_inputs(*branches))


def _is_sorted(plan: Plan) -> bool:
    """Whether the rows have an order that a limit above may rely on."""
    while isinstance(plan, Block) or (isinstance(plan, Rel) and plan.kind in ("project", "filter")):
        plan = plan.inputs[0]
    return isinstance(plan, Rel) and plan.kind in ("sort", "fetch")


def _above(plan: Rel) -> Plan:
    branches = [b if _movable(b) else Block(b, (), all_fields(b.width)) for b in plan.inputs]
    blocks = [b for b in branches if isinstance(b, Block)]
    columns = _Columns([b.source for b in blocks])
    where = _where(blocks, columns)
    select = tuple(
        _column(exprs, columns) for exprs in zip(*(b.select for b in blocks), strict=True)
    )
    if sum(not isinstance(what, tuple) for what in columns.found) > _MOST_OWN_COLUMNS:
        return plan
    sources = columns.sources()
    union = replace(plan, inputs=sources, width=sources[0].width)
    return Block(union, where, select)


def _where(blocks: Sequence[Block], columns: _Columns) -> tuple[Expr, ...]:
    if len({len(b.where) for b in blocks}) == 1:
        rows = zip(*(b.where for b in blocks), strict=True)
        together = [_unite(terms, columns) for terms in rows]
        if all(t is not None for t in together):
            return tuple(t for t in together if t is not None)
    branches = _branches_of(
        (columns.own(i, term), i) for i, block in enumerate(blocks) for term in block.where
    )
    return tuple(
        own if len(those) == len(blocks) else function("or", (_is_none_of(those, columns), own))
        for own, those in branches.items()
    )


def _branches_of(terms: Iterable[tuple[Expr, int]]) -> dict[Expr, list[int]]:
    """The branches that have each term, in order of its first use."""
    found: dict[Expr, list[int]] = {}
    for term, branch in terms:
        if branch not in (known := found.setdefault(term, [])):
            known.append(branch)
    return found


def _is_none_of(branches: Sequence[int], columns: _Columns) -> Expr:
    numbers = [integer_literal(i + 1) for i in branches]
    if len(numbers) == 1:
        return function("not_equal", (columns.tag, numbers[0]))
    return function("not", (in_list(columns.tag, numbers),))


def _column(exprs: Sequence[Expr], columns: _Columns) -> Expr:
    """One column of the union: computed in the branches, or the same call on a common column, or
    each branch's expression, selected by the branch's number."""
    if not any(map(needs_model, exprs)):
        return columns.common(exprs)
    together = _unite(exprs, columns)
    if together is not None:
        return together
    branches = _branches_of((columns.own(i, e), i) for i, e in enumerate(exprs))
    *first, last = branches
    return case([(_is_any_of(branches[own], columns), own) for own in first], last)


def _is_any_of(branches: Sequence[int], columns: _Columns) -> Expr:
    numbers = [integer_literal(i + 1) for i in branches]
    if len(numbers) == 1:
        return function("equal", (columns.tag, numbers[0]))
    return in_list(columns.tag, numbers)


def _unite(exprs: Sequence[Expr], columns: _Columns) -> Expr | None:
    """One expression for all branches, if they differ only in the values of their calls."""
    first = exprs[0]
    if isinstance(first, Ask):
        if not all(isinstance(e, Ask) and e.call == first.call for e in exprs):
            return None
        if any(_is_cast(arg) for e in exprs if isinstance(e, Ask) for arg in e.args):
            return None
        rows = zip(*(e.args for e in exprs if isinstance(e, Ask)), strict=True)
        args = [
            _unite(arg, columns) if any(map(needs_model, arg)) else columns.common(arg)
            for arg in rows
        ]
        if any(a is None for a in args):
            return None
        return replace(first, args=tuple(a for a in args if a is not None))
    if literal_like(first) and all(e == first for e in exprs):
        return first
    if not isinstance(first, Node) or first.rels or not needs_model(first):
        return None
    same = all(
        isinstance(e, Node)
        and (e.name, e.template, len(e.children))
        == (first.name, first.template, len(first.children))
        for e in exprs
    )
    if not same:
        return None
    rows = zip(*(e.children for e in exprs if isinstance(e, Node)), strict=True)
    children = [_unite(child, columns) for child in rows]
    if any(c is None for c in children):
        return None
    return replace(first, children=tuple(c for c in children if c is not None))


def _is_cast(arg: Expr) -> bool:
    """Whether DataFusion casts an argument to text, which may be the bytes of an image: only a
    block reads these without the cast, so that the cast must not stand below the union."""
    return cast_to_text(arg) is not None


def _asks_about_text(call: Call) -> bool:
    """Whether every argument of the call's function is text."""
    return all(pa.types.is_string(one) for one in call.value_types)


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
class _Columns:
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
            if needs_model(arg) or _is_cast(arg):
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
