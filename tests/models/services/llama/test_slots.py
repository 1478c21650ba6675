"""Rows through slots: each sees what it would see alone, whatever is shared, and nothing
overflows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.services.llama.scheduler import Run, RunCost
from blendfusion.models.services.llama.token_batch import Batch, Filling

PREFIX = (7, 8, 9)
UNFILLED = Filling()


class Store:
    """A context that keeps tokens in place of keys and values, and has llama.cpp's rules: positions
    follow one another, sequences that share a token of a batch hold as much before it, and each
    token gets the next free cell from the last one's or the first freed one on, round the end."""

    def __init__(
        self,
        cells: int,
        batch_tokens: int,
        sequences: int,
        filling: Filling = UNFILLED,
        *,
        in_order: bool = False,
    ) -> None:
        self.cells = cells
        self.batch_tokens = batch_tokens
        self.filling = filling
        self.in_order = in_order
        self.places = [list(range(len(PREFIX))) for _ in range(sequences)] + [[]]
        """The cells of each sequence's tokens."""
        self.next_place = len(PREFIX)
        self.held = [list(PREFIX) for _ in range(sequences)]
        self.held.append([])
        self.spare = sequences
        self.sizes: list[int] = []
        """Of batches, without what fills them up."""

    def copy(self, source: int, target: int, start: int, count: int) -> None:
        if count:
            assert len(self.held[target]) == start
            self.held[target] += self.held[source][start : start + count]
            self.places[target] += self.places[source][start : start + count]
            assert len(self.held[target]) == start + count

    def trim(self, position: int, sequence: int = -1) -> None:
        chosen = range(len(self.held)) if sequence < 0 else [sequence]
        before = self.taken()
        for sequence in chosen:
            del self.held[sequence][position:]
            del self.places[sequence][position:]
        self.next_place = min(before - self.taken() | {self.next_place})

    def taken(self) -> set[int]:
        """The cells that hold something."""
        return {place for places in self.places for place in places}

    def cell(self, tokens: int) -> int:
        """The cell of the next of so many tokens."""
        taken, size = self.taken(), self.cells + max(self.filling) + len(PREFIX)
        place = 0 if self.next_place > len(taken) + 2 * tokens else self.next_place
        while place >= size or place in taken:
            place = 0 if place >= size else place + 1
        self.next_place = place + 1
        return place

    def holds_nothing_more(self) -> bool:
        """Than the prefix."""
        return [list(PREFIX)] * self.spare + [[]] == self.held

    def decode(self, batch: Batch) -> np.ndarray:
        filled = batch.sequences.count([self.spare])
        for count in (len(batch), sum(batch.wanted)):
            assert count >= self.filling.least
            assert count % self.filling.multiple == 0
        assert filled < max(self.filling)
        self.sizes.append(len(batch) - filled)
        assert 0 < self.sizes[-1] <= self.batch_tokens
        before = [len(held) for held in self.held]
        for sequences in batch.sequences:
            assert len({before[sequence] for sequence in sequences}) == 1
        seen = []
        for place, token in enumerate(batch.tokens):
            cell = self.cell(len(batch) - place)
            for sequence in batch.sequences[place]:
                assert len(self.held[sequence]) == batch.positions[place]
                self.held[sequence].append(token)
                self.places[sequence].append(cell)
                assert not self.in_order or self.places[sequence] == sorted(self.places[sequence])
            if batch.wanted[place]:
                (sequence,) = batch.sequences[place][:1]
                seen.append(tuple(self.held[sequence]))
        own = [len(held) - len(PREFIX) for n, held in enumerate(self.held) if n != self.spare]
        assert sum(own) <= self.cells or sum(size > 0 for size in own) == 1
        logits = np.empty(len(seen), object)
        logits[:] = seen
        return logits


def _next(seen: tuple[int, ...], row: Sequence[int], steps: int) -> list[int]:
    """What is appended, by all that the model saw: nothing after so many steps."""
    appended = len(seen) - len(PREFIX) - len(row)
    return [] if appended >= steps else [sum(seen) % 5, len(seen) % 3][: steps - appended]


ROWS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple), max_size=12, unique=True
)


@given(
    rows=ROWS,
    ordered=st.booleans(),
    steps=st.integers(0, 5),
    slots=st.integers(1, 5),
    batch_tokens=st.integers(2, 12),
    cells=st.integers(15, 60),
    filling=st.sampled_from([Filling(), Filling(2), Filling(16, 16)]),
    in_order=st.booleans(),
)
def test_every_row_sees_itself_and_nothing_else(
    rows: list[tuple[int, ...]],
    ordered: bool,
    steps: int,
    slots: int,
    batch_tokens: int,
    cells: int,
    filling: Filling,
    in_order: bool,
) -> None:
    rows = sorted(rows) if ordered else rows
    store = Store(cells + len(PREFIX), batch_tokens, slots + 1, filling, in_order=in_order)
    spent, ended = RunCost(), []

    def step(place: int, seen: tuple[int, ...]) -> list[int]:
        row = rows[place]
        assert seen[: len(PREFIX) + len(row)] == (*PREFIX, *row)
        added = _next(seen, row, steps)
        if not added:
            ended.append(place)
        return added

    Run(
        store,  # type: ignore[arg-type]
        len(PREFIX),
        rows,
        step,  # type: ignore[arg-type]
        reserve=[steps] * len(rows),
        spent=spent,
        slots=slots,
    ).to_the_end()

    assert sorted(ended) == list(range(len(rows)))
    assert store.holds_nothing_more()
    assert spent.given == sum(len(row) + steps for row in rows)
    assert spent.tokens == sum(store.sizes)
    assert spent.calls == len(store.sizes)
    assert spent.tokens <= spent.given
    if slots == 1:
        assert spent.tokens == spent.given


def _spent(rows: Sequence[tuple[int, ...]], batch_tokens: int) -> RunCost:
    store, spent = Store(10_000, batch_tokens, 65), RunCost()
    Run(
        store,  # type: ignore[arg-type]
        len(PREFIX),
        rows,
        lambda place, seen: [],
        reserve=[0] * len(rows),
        spent=spent,
        slots=64,
    ).to_the_end()
    return spent


def test_sorted_rows_cost_the_nodes_of_their_trie_whatever_the_batch() -> None:
    rows = sorted((1, 2, 3, 4, a, b, 5) for a in range(6) for b in range(4))
    nodes = {row[:length] for row in rows for length in range(1, len(row) + 1)}

    for batch_tokens in (8, 32, 256):
        assert _spent(rows, batch_tokens).tokens == len(nodes)


def test_batches_are_full_where_rows_share() -> None:
    rows = sorted((*range(20), a, b) for a in range(8) for b in range(8))

    assert _spent(rows, 32).calls == pytest.approx(_spent(rows, 32).tokens / 32, abs=2)


def test_an_error_leaves_the_prefix_alone() -> None:
    store = Store(100, 16, 4)

    def step(place: int, seen: object) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(
            store,  # type: ignore[arg-type]
            len(PREFIX),
            [(1, 2), (1, 3)],
            step,
            reserve=[0, 0],
            spent=RunCost(),
            slots=3,
        ).to_the_end()
    assert store.holds_nothing_more()
