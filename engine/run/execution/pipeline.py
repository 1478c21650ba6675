"""Runs chunks of rows through a block: predicates, limit, columns.

A pipeline pulls batches of its source plan on the caller's thread. It owns no thread, so that
closing it, an error, or Ctrl-C leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from time import perf_counter

import numpy as np
import pyarrow as pa

from blendfusion.datafusion.arrow_layouts import plain_batch, plain_schema
from blendfusion.models.embedders.cache import VectorCounts
from blendfusion.options import Options
from blendfusion.planner.ir.nodes import Ask, Block, Field, asks, fields
from blendfusion.run.execution.equal_rows import EqualRows
from blendfusion.run.execution.expressions import Rows, RowWise, is_true
from blendfusion.run.execution.first_rows import FirstRows
from blendfusion.run.execution.open_questions import columns_together, passing_together
from blendfusion.run.execution.predicate_order import Order
from blendfusion.run.execution.predicate_priors import priors
from blendfusion.services import parts
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.joins.matcher import Matches

CHUNK_BYTES = 128 * 1024 * 1024
"""Maximum bytes of a chunk, which is held in memory with copies of some columns."""


@dataclass(slots=True)
class Counts:
    """The counts of a pipeline: rows in, rows out, and its predicates."""

    rows_in: int = 0
    passed: int = 0
    """Rows that passed every predicate; a limit may keep fewer."""
    rows_out: int = 0
    chunks: int = 0
    seconds: float = 0.0
    spared: int = 0
    """Rows about which nothing was asked, of a stage that reads some of its rows only."""
    matched: Mapping[Ask, Matches] = field(default_factory=dict)
    """The matchers of calls that choose matches, over a whole run."""
    vectors: Mapping[Call, VectorCounts] = field(default_factory=dict)
    """The sources of vectors by call, over a whole run."""
    order: Order = field(default_factory=lambda: Order(0, adaptive=False))

    def add(self, rows_in: int, passed: int, rows_out: int) -> None:
        """Count the rows of one more chunk."""
        self.rows_in += rows_in
        self.passed += passed
        self.rows_out += rows_out
        self.chunks += 1

    def restart(self) -> None:
        """The pipeline restarts: its rows count once, its costs add up."""
        self.rows_in = self.passed = self.rows_out = self.chunks = self.spared = 0


class Chunks:
    """Batches of one schema, regrouped into tables of the requested number of rows.

    Text has a layout that Arrow's kernels can filter: see ``arrow_layouts``.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        self._schema = plain_schema(schema)
        self._batches: Iterator[pa.RecordBatch] = (
            plain_batch(batch, self._schema) for batch in batches
        )
        self._rest: pa.RecordBatch | None = None

    def take(self, n: int) -> pa.Table | None:
        """The next ``n`` rows, without copying; None after the last.

        There are fewer at the end, and if ``n`` rows exceed ``CHUNK_BYTES``.
        """
        parts: list[pa.RecordBatch] = []
        missing, room = n, CHUNK_BYTES
        while missing > 0 and room > 0:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            self._rest = None
            if batch is None:
                break
            if batch.num_rows > missing:
                self._rest = batch.slice(missing)
                batch = batch.slice(0, missing)
            parts.append(batch)
            missing -= batch.num_rows
            room -= batch.nbytes
        if missing == n:
            return None
        return pa.Table.from_batches(parts, self._schema)

    def ends_within(self, n: int) -> bool:
        """Whether there are at most ``n`` further rows, as far as a chunk has room for them. They
        are read, and given later."""
        held = [] if self._rest is None else [self._rest]
        rows, room = sum(b.num_rows for b in held), CHUNK_BYTES - sum(b.nbytes for b in held)
        for batch in self._batches:
            held.append(batch)
            rows, room = rows + batch.num_rows, room - batch.nbytes
            if rows > n or room <= 0:
                break
        else:
            self._rest, self._batches = None, iter(held)
            return bool(rows <= n)
        self._rest, self._batches = None, chain(held, self._batches)
        return False

    def empty(self) -> pa.Table:
        """A table of the schema without rows."""
        return self._schema.empty_table()


def run(
    block: Block,
    source: Chunks,
    rowwise: RowWise,
    options: Options,
    counts: Counts,
    *,
    eager: bool,
    adaptive: bool = True,
    most: Callable[[], int] | None = None,
    operator: Callable[..., pa.Table] | None = None,
) -> Generator[pa.Table, None, None]:
    """The block's output, chunk by chunk, in the order of its source; at least one chunk.

    Chunks start small if the caller or a limit may end the work early, and to learn the order of
    predicates (``adaptive``). ``eager``: the caller reads everything. ``most``: the maximum rows at
    a time, for a limit above. ``operator`` runs the whole block instead.
    """
    rowwise.rehearse((*block.where, *block.select), source.empty())
    counts.matched, counts.vectors = rowwise.matchers, rowwise.dispatcher.vectors
    order = counts.order = Order(len(block.where), adaptive=adaptive)
    if operator or block.until:
        yield _whole(block, source, rowwise, options, counts, operator)
        return
    # A cascade needs many values for its thresholds, so it gets all of them at once.
    whole = most is None and not block.has_limit and rowwise.cascades((*block.where, *block.select))
    learning = adaptive and len(block.where) > 1 and not whole
    skip, need, empty = block.offset, block.count, True
    size = _first_size(block, options, whole or (eager and not learning) or bool(block.takes))
    first, equal = _limits_by_key(block, rowwise)
    if block.where and skip and first is None and equal is None and source.ends_within(skip):
        need = 0  # no row is left behind the offset, whatever the answers are
    while (need is None or need > 0) and not (first is not None and first.is_full):
        size = size if most is None else min(size, most())
        if (table := source.take(size)) is None:
            break
        start = perf_counter()
        if learning and not counts.chunks:
            _expect(order, block, Rows(table), rowwise)
        found, spared = _passing(block, Rows(table), rowwise, order, first, equal)
        counts.spared += spared
        order.revise()
        survivors = sum(map(len, found))
        if block.has_limit and equal is None and first is None:
            found = [found[0].slice(skip, len(found[0]) if need is None else need)]
        skip -= min(skip, survivors)
        kept = [rows for rows in found if len(rows)]
        if need is not None and equal is None:
            need -= sum(map(len, kept))
        elif block.count is not None and equal is not None:
            need = block.count - equal.distinct
        counts.add(table.num_rows, survivors, sum(map(len, kept)))
        out = [_select(block, rows, rowwise) for rows in kept]
        counts.seconds += perf_counter() - start
        if out:
            empty = False
            yield pa.concat_tables(out)
        size = _next_size(size, skip, need, counts, options, rowwise.dispatcher.at_once)
    if empty:  # such a chunk has the types of the columns; no model is asked about it
        yield _select(block, Rows(source.empty()), rowwise)


def _expect(order: Order, block: Block, rows: Rows, rowwise: RowWise) -> None:
    """Order the predicates by what is known of them before the first answer."""
    known, in_money = priors(block.where, rows, rowwise)
    order.expect(known, in_money=in_money)


def _limits_by_key(block: Block, rowwise: RowWise) -> tuple[FirstRows | None, EqualRows | None]:
    """The parts that take the first rows of keys, and count equal rows once, if ``block`` does."""
    read = {i for term in block.where for ask in asks(term) for i in fields(ask)}
    first = FirstRows(block.takes, lambda: rowwise.dispatcher.at_once) if block.takes else None
    return first, EqualRows(sorted(read)) if block.once else None


def _passing(
    block: Block,
    rows: Rows,
    rowwise: RowWise,
    order: Order,
    first: FirstRows | None,
    equal: EqualRows | None,
) -> tuple[list[Rows], int]:
    """(the rows of a chunk that pass the block's predicates, as far as its limits need them; the
    number of rows about which nothing is asked because these do not)"""
    tested = 0

    def survivors_of(own: Block, some: Rows) -> Rows:
        nonlocal tested
        tested += len(some)
        return _survivors(own, some, rowwise, order)

    if first is None and equal is None:
        return [survivors_of(block, rows)], 0
    if first is not None:

        def number_rows(some: Rows, number: Field) -> Rows:
            return survivors_of(replace(block, select=(*block.select, number)), some)

        found = list(first.survivors(rows, rowwise.columns, number_rows if block.where else None))
        return found, len(rows) - (tested if block.where else sum(map(len, found)))
    assert equal is not None
    key = partial(columns_together, rowwise, block.select)
    known_of = partial(_known_rows, block, rowwise=rowwise)
    found = list(equal.survivors(rows, key, partial(survivors_of, block), known_of))
    return found, len(rows) - tested


def _whole(
    block: Block,
    source: Chunks,
    rowwise: RowWise,
    options: Options,
    counts: Counts,
    operator: Callable[..., pa.Table] | None,
) -> pa.Table:
    """The rows of a block that ``operator`` takes from all rows of its source; without one, those
    of decided groups."""
    operator = operator or parts("decided_groups")[0]
    chunks = [source.empty(), *iter(lambda: source.take(options.chunk_rows), None)]
    table = pa.concat_tables(c for c in chunks if c is not None).combine_chunks()
    start = perf_counter()

    def survivors(own: Block, rows: Rows) -> Rows:
        passed = _survivors(own, rows, rowwise, counts.order)
        counts.order.revise()
        return passed

    out = operator(block, table, rowwise, survivors, counts)
    counts.rows_in, counts.passed, counts.rows_out = len(table), len(out), len(out)
    counts.chunks += len(chunks) - 1
    counts.seconds += perf_counter() - start
    return out


def _first_size(block: Block, options: Options, eager: bool) -> int:
    first = min(options.first_chunk_rows, options.chunk_rows)
    if block.count is not None and block.where:
        # At best every row passes, so further rows might be asked in vain.
        return min(first, block.offset + block.count)
    return options.chunk_rows if eager else first


def _next_size(
    size: int, skip: int, need: int | None, counts: Counts, options: Options, at_once: int
) -> int:
    """Twice the last chunk; under a limit less, if the pass rate so far permits.

    As many rows as the limit still needs are never too many. A few more are worth the saved rounds:
    the number that the model answers ``at_once``, or 1/64 of the rows so far.
    """
    doubled = min(2 * size, options.chunk_rows)
    if need is None:
        return doubled
    safe = max(skip + need, at_once, counts.rows_in // 64)
    expected = -(-(skip + need) * counts.rows_in // counts.passed) if counts.passed else doubled
    return max(1, min(doubled, expected, safe))


def _survivors(block: Block, rows: Rows, rowwise: RowWise, order: Order) -> Rows:
    waiting = list(order.places)
    rows = _without_hopeless(block, rows, rowwise)
    if order.adaptive and len(waiting) > 1:
        rows, waiting = _by_stored_answers(block, rows, waiting, rowwise, order)
    ledger = rowwise.dispatcher.ledger
    while waiting and len(rows):
        i = waiting.pop(0)
        seen, tokens, cost = order.seen[i], rowwise.dispatcher.tokens, ledger.cost or 0.0
        computed = rowwise.dispatcher.computed
        seen.rows_in += len(rows)
        later = (*(block.where[j] for j in waiting), *block.select)
        rows = rows.filter(passing_together(rowwise, block.where[i], rows), later)
        seen.rows_out += len(rows)
        seen.tokens += rowwise.dispatcher.tokens - tokens
        seen.cost += (ledger.cost or 0.0) - cost
        seen.computed += rowwise.dispatcher.computed - computed
    return rows


def _without_hopeless(block: Block, rows: Rows, rowwise: RowWise) -> Rows:
    """The rows that some answers let pass every predicate, by the ranges of these."""
    possible = np.full(len(rows), True)
    for term in block.where:
        possible &= rowwise.decided_by_ranges(term, rows)[0]
    return rows if possible.all() else rows.take(np.flatnonzero(possible))


def _by_stored_answers(
    block: Block, rows: Rows, waiting: list[int], rowwise: RowWise, order: Order
) -> tuple[Rows, list[int]]:
    """The rows that no stored answer drops, and the predicates that are left to be asked.

    Stored answers are free, so they decide first, row by row. A repeated query therefore asks
    nothing, whatever order was learned.
    """
    left = []
    for i in waiting:
        known = rowwise.known_rows(block.where[i], rows) if len(rows) else np.zeros(0, dtype=bool)
        if not known.any():
            left.append(i)
            continue
        whole = bool(known.all())
        some = rows if whole else rows.take(np.flatnonzero(known))
        evaluate = rowwise.column if whole else rowwise.from_stored
        passed = is_true(evaluate(block.where[i], some))
        kept = np.full(len(rows), True)
        kept[np.flatnonzero(known)[~passed]] = False
        if whole:
            order.seen[i].rows_in += len(rows)
            order.seen[i].rows_free += len(rows)
            order.seen[i].rows_out += int(passed.sum())
        else:
            left.append(i)
        later = (*(block.where[j] for j in waiting), *block.select)
        rows = rows if kept.all() else rows.filter(pa.array(kept), later)
    return rows, left


def _known_rows(block: Block, rows: Rows, rowwise: RowWise) -> np.ndarray:
    """True for the rows on which no predicate has anything left to ask."""
    known = np.full(len(rows), True)
    for term in block.where:
        known &= rowwise.decided_rows(term, rows)
    return known


def _select(block: Block, rows: Rows, rowwise: RowWise) -> pa.Table:
    if not block.select:
        # A table without columns would lose its number of rows.
        return pa.table({"0": pa.nulls(len(rows), pa.bool_())})
    columns = columns_together(rowwise, block.select, rows)
    return pa.table(columns, names=[str(i) for i in range(len(columns))])
