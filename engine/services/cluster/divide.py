"""Decides whether the files of a stage's largest table can be read by several workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from substrait.proto import Rel as RelMessage

from blendfusion.datafusion.substrait.write import write
from blendfusion.options import Options
from blendfusion.planner.ir.builders import literal
from blendfusion.planner.ir.joins import PASSES_ON, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    StoredRows,
    asks,
    has_window,
    is_volatile,
    walk,
)
from blendfusion.planner.ir.opaque_names import is_leaf
from blendfusion.services.cluster.messages import FileTable, Fragment, has_bytes
from blendfusion.udfs.declare.kinds import PairComparison, RowQuestion, Vectors

SHIPPED_BYTES = 64 * 1024 * 1024
"""The largest table in memory that travels to every worker."""


ENDED = "a limit ends it early"
_NOT_DIVIDED = {
    "fetch": ENDED,
    "aggregate": "rows are aggregated first",
    "set": "it reads a union",
}
"""Relations that need the rows of all files, and why."""


@dataclass(frozen=True)
class Files:
    """The files behind a table, and how each of them is registered."""

    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    table: FileTable

    def only(self, path: str) -> FileTable:
        """The table of one of the files, or of one fragment of Lance's."""
        if self.table.method == "register_lance":
            arguments = {**self.table.arguments, "fragment": int(path)}
            return replace(self.table, arguments=arguments)
        return replace(self.table, path=path)


@dataclass(frozen=True)
class Division:
    """A stage as fragments, one for each file of ``table``."""

    table: str
    files: Files
    fragments: tuple[Fragment, ...]


class Whole(Exception):
    """The stage runs in the session as a whole; the text says why."""


def divide(
    block: Block,
    files_of: Callable[[str], Files | None],
    rows_of: Callable[[str], pa.Table | None],
    own_functions: set[str],
    options: Options,
    *,
    adaptive: bool = True,
    time_zone: str | None = None,
) -> Division:
    """The fragments of a stage. ``files_of``: the files behind a table; ``rows_of``: the rows of a
    table in memory that is small enough to travel; ``time_zone``: that of the session. Raises
    Whole."""
    _check_calls(block)
    names = [_table(read) for read in _reads(block.source)]
    for expr in _exprs(block):
        for part in walk(expr):
            if isinstance(part, Node) and part.rels:
                raise Whole("a subquery is in an expression")
            if isinstance(part, Node) and part.name in own_functions:
                raise Whole(f"{part.name} is a function of this program")
    passed_on = [_table(read) for read in _passed_on(block.source)]
    candidates = {name: files_of(name) for name in passed_on if names.count(name) == 1}
    large = {name: files for name, files in candidates.items() if files and len(files.paths) > 1}
    if not large:
        raise Whole("no table of several files passes its rows on")
    chosen = max(large, key=lambda name: sum(large[name].sizes))
    others: dict[str, FileTable | pa.Table] = {}
    for name in set(names) - {chosen}:
        files, rows = files_of(name), None
        if files is None:
            rows = rows_of(name)
            if rows is None:
                raise Whole(f"{name} is neither files nor small")
        others[name] = files.table if files is not None else rows
    plan = write(block.source, {})
    above = replace(block, source=StoredRows(0, block.source.width))
    files = large[chosen]
    fragments = tuple(
        Fragment(
            plan,
            above,
            {**others, chosen: files.only(path)},
            options,
            adaptive,
            time_zone=time_zone,
        )
        for path in files.paths
    )
    if not has_bytes(replace(fragments[0], tables={})):
        raise Whole("a call is declared in this program")
    return Division(chosen, files, fragments)


def _check_calls(block: Block) -> None:
    calls = [ask for e in (*block.where, *block.select) for ask in asks(e)]
    if not calls:
        raise Whole("it has no call")
    if block.has_limit:
        raise Whole(ENDED)
    if block.until is not None:
        raise Whole("answers decide which rows of a group are asked about, in whichever files")
    if block.once:
        raise Whole("one of equal rows is enough, in whichever files they are")
    for ask in calls:
        call = ask.call
        if isinstance(call.ingredient.kind, Vectors):
            raise Whole(f"{call.ingredient.name} needs the session's embedder")
        if not isinstance(call.ingredient.kind, RowQuestion | PairComparison):
            raise Whole(f"{call.ingredient.name} needs more than rows")
        if ask.domain is not None:
            raise Whole(f"{call.ingredient.name} chooses among the rows of another stage")
        if call.targets_with(None) is not None:
            raise Whole("a cascade needs all values at once")
        if call.calibrated or call.review:
            raise Whole("its calibration or its review is the session's")
        constraint = call.task.constraint
        choice = constraint.item or constraint
        queries = (choice.query, call.task.examples_query, call.task.sample_query)
        if queries != (None,) * 3:
            raise Whole("options, examples or a sample come from a subquery")


def _exprs(block: Block) -> Iterator[Expr]:
    yield from (*block.where, *block.select)
    waiting: list[Plan] = [block.source]
    while waiting:
        plan = waiting.pop()
        waiting += plan.inputs
        if isinstance(plan, Rel):
            yield from plan.exprs


def _reads(source: Plan) -> list[Rel]:
    """The scans of a plan that every worker can run. Raises Whole for another plan."""
    found: list[Rel] = []
    waiting: list[Plan] = [source]
    while waiting:
        plan = waiting.pop()
        if not isinstance(plan, Rel):
            raise Whole("it reads the rows of another stage")
        if plan.kind in _NOT_DIVIDED and not _are_alike(plan):
            raise Whole(_NOT_DIVIDED[plan.kind])
        if any(isinstance(part, Node) and part.rels for e in plan.exprs for part in walk(e)):
            raise Whole("a subquery is in an expression")
        if any(map(is_volatile, plan.exprs)):
            raise Whole("a function gives other values each time")
        if plan.kind == "read":
            found.append(plan)
        waiting += plan.inputs
    if not found:
        raise Whole("it reads no table")
    return found


def _are_alike(plan: Rel) -> bool:
    """Whether a plan is a limit over equal rows, as ``EXISTS`` reads it: then each worker may
    compute any of them."""
    if plan.kind != "fetch":
        return False
    below = plan.inputs[0]
    if not isinstance(below, Rel) or below.kind != "project":
        return False
    return len(below.exprs) == below.width and all(literal(e) is not None for e in below.exprs)


def _passed_on(plan: Plan) -> Iterator[Rel]:
    """The scans whose rows all come out, each for itself: the result over the parts of such a table
    is that over the whole."""
    if not isinstance(plan, Rel):
        return
    if plan.kind == "read":
        yield plan
    elif plan.kind == "filter" or (plan.kind == "project" and not any(map(has_window, plan.exprs))):
        yield from _passed_on(plan.inputs[0])
    elif plan.kind in ("join", "cross"):
        kind = join_type(plan)
        for side, kinds in zip(plan.inputs, PASSES_ON, strict=True):
            if kind in kinds:
                yield from _passed_on(side)


def _table(read: Rel) -> str:
    """The name of a scan's table. Raises Whole where it has none that workers know."""
    message = RelMessage.FromString(read.template).read
    names = list(message.named_table.names)
    if not names or is_leaf(names) or (len(names) == 3 and names[:2] != ["datafusion", "public"]):
        raise Whole("it reads something else than a registered table")
    return str(names[-1])
