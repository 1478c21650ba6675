"""Under a limit, orders the pairs of a join so that few distinct values are asked.

A join pairs each value of one side with many of the other. Ten pairs in the join's own order may
have eleven values, while five values can make twenty pairs.
"""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import pyarrow as pa

from blendfusion.planner.ir.nodes import Ask, Block, asks, asks_model, needs_model
from blendfusion.planner.ir.traversal import meets_pairs
from blendfusion.run.execution.expressions import Rows, RowWise
from blendfusion.run.execution.pipeline import Chunks
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.evaluate.distinct import distinct

WINDOW = 8192
"""Rows that are ordered together: a batch of DataFusion."""


def few_values_first(block: Block, chunks: Chunks, rowwise: RowWise) -> Chunks:
    """``chunks`` of the source of ``block``, ordered so that few distinct values are asked, if any
    order is allowed."""
    asks = asks_over_pairs(block)
    return FewValuesFirst(chunks, asks, rowwise) if asks else chunks


def asks_over_pairs(block: Block) -> list[Ask]:
    """The calls that decide, under a limit, which pairs of a join are returned; none for other
    blocks, or if their rows have an order."""
    if block.count is None or not meets_pairs(block.source):
        return []
    found = dict.fromkeys(ask for term in block.where for ask in asks(term))
    return [ask for ask in found if asks_model(ask) and not _indirect(ask)]


def _indirect(ask: Ask) -> bool:
    """Whether a call depends on other answers, or asks about more than its texts."""
    values = any(map(needs_model, ask.args)) or ask.domain is not None
    other = ask.call.ingredient.kind.has_body or ask.call.task.images
    return values or other or ask.call.aggregate


class FewValuesFirst(Chunks):
    """Chunks of the underlying rows, ordered within each ``WINDOW``: rows decided by the first
    values of all calls come first."""

    def __init__(self, chunks: Chunks, asks: list[Ask], rowwise: RowWise) -> None:
        self._chunks = chunks
        self._asks = asks
        self._rowwise = rowwise
        self._window: pa.Table | None = None

    def take(self, n: int) -> pa.Table | None:
        """The next ``n`` rows; fewer at the end of a window, None after the last."""
        if self._window is None:
            table = self._chunks.take(WINDOW)
            if table is None:
                return None
            self._window = self._sort(table)
        out = self._window.slice(0, n)
        self._window = self._window.slice(n) if n < len(self._window) else None
        return out

    def ends_within(self, n: int) -> bool:
        n -= 0 if self._window is None else len(self._window)
        return n >= 0 and self._chunks.ends_within(n)

    def empty(self) -> pa.Table:
        return self._chunks.empty()

    def _sort(self, table: pa.Table) -> pa.Table:
        try:
            return table.take(self._order(table))
        except Exception:  # DataFusion may fail on a value that a gate would exclude, as in 1 / x
            return table

    def _order(self, table: pa.Table) -> np.ndarray:
        """The order assumes that values are asked in turn: the first of each call, then the second
        of each. A row comes when the last of its values is known."""
        rows = Rows(table)
        met = [self._values(ask, rows) for ask in self._asks]
        turns = zip_longest(*([(call, v) for v in values] for call, values, _ in met))
        ranks: dict[object, int] = {}
        for turn in turns:
            for value in turn:
                ranks.setdefault(value, len(ranks))
        last = np.zeros(len(table), dtype=np.int64)
        for call, values, codes in met:
            own = np.array([ranks[call, v] for v in values], dtype=np.int64)
            last = np.maximum(last, own[codes])
        return np.argsort(last, kind="stable")

    def _values(self, ask: Ask, rows: Rows) -> tuple[Call, list[object], np.ndarray]:
        """(call, its values in the order of their first rows, the position among them for each
        row)."""
        found, codes = distinct([self._rowwise.argument(arg, rows, ask.call) for arg in ask.args])
        places = codes.to_numpy(zero_copy_only=False)
        _, first = np.unique(places, return_index=True)
        order = np.argsort(first, kind="stable")
        turned = np.empty_like(order)
        turned[order] = np.arange(len(order))
        return ask.call, [found[i] for i in order], turned[places]
