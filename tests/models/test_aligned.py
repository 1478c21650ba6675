"""Rows in aligned cells: each sees what it would see alone, in cells that lie to one another as they always do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blendfusion.models.aligned import Aligned
from blendfusion.models.cells import TILE, Places, area, blocks
from blendfusion.models.llama_context import Batch
from blendfusion.models.slots import Spent

PREFIX = (7, 8, 9)
ROWS = 12


class Store:
    """A context that keeps tokens in place of keys and values, and has llama.cpp's rules: tokens go to free cells in their
    order, positions of a sequence follow one another, and sequences that share a token of a batch hold as much before it."""

    def __init__(
        self, *, slots: int, batch_tokens: int, cells: int = 8192, forgets: int = 0
    ) -> None:
        self.rows, self.slots, self.batch_tokens, self.cells = ROWS, slots, batch_tokens, cells
        self.forgets = forgets
        self.spare = 3 * ROWS + 2
        self.token = [0] * cells
        self.position = [0] * cells
        self.seen_by: list[set[int]] = [set() for _ in range(cells)]
        self.head = 0
        self.batches: list[Batch] = []
        self._fill(PREFIX, range(len(PREFIX)), [set(range(ROWS + 1)) for _ in PREFIX])

    def _fill(
        self, tokens: Sequence[int], positions: Sequence[int], of: Sequence[set[int]]
    ) -> None:
        for token, position, sequences in zip(tokens, positions, of, strict=True):
            order = [*range(self.head, self.cells), *range(self.head)]
            cell = next(cell for cell in order if not self.seen_by[cell])
            self.token[cell], self.position[cell] = token, position
            self.seen_by[cell] = set(sequences)
            self.head = cell + 1

    def _of(self, sequence: int) -> list[int]:
        """Its cells, in the order of positions."""
        found = (cell for cell in range(self.cells) if sequence in self.seen_by[cell])
        return sorted(found, key=self.position.__getitem__)

    def copy(self, source: int, target: int, start: int, count: int) -> None:
        for cell in self._of(source):
            if start <= self.position[cell] < start + count:
                self.seen_by[cell].add(target)

    def drop(self, sequence: int, start: int = 0, count: int = -1) -> None:
        for cell in self._of(sequence):
            if start <= self.position[cell] and (count < 0 or self.position[cell] < start + count):
                self.seen_by[cell].discard(sequence)
                if not self.seen_by[cell]:
                    self.head = min(self.head, cell)

    def trim(self, position: int, sequence: int = -1) -> None:
        for number in range(self.spare + 1) if sequence < 0 else [sequence]:
            self.drop(number, position)

    def occupy(self, sequence: int, start: int, count: int) -> None:
        self._fill([-1] * count, range(start, start + count), [{sequence}] * count)

    def decode(self, batch: Batch) -> np.ndarray:
        assert len(batch) <= self.batch_tokens
        self.batches.append(batch)
        last = {s: max((self.position[c] for c in self._of(s)), default=-1) for s in range(40)}
        begun: dict[int, int] = {}
        for place, sequences in enumerate(batch.sequences):
            assert len({last[s] for s in sequences}) == 1
            for sequence in sequences:
                behind = begun.get(sequence, last[sequence] + 1)
                assert batch.positions[place] == behind
                begun[sequence] = behind + 1
        self._fill(batch.tokens, batch.positions, list(map(set, batch.sequences)))
        seen = []
        for place in range(len(batch)):
            if batch.wanted[place]:
                held = self._of(batch.sequences[place][0])
                seen.append([c for c in held if self.position[c] <= batch.positions[place]])
        logits = np.empty(len(seen), object)
        logits[:] = seen
        return logits

    @property
    def nothing_but_the_prefix(self) -> bool:
        return all(
            {self.token[cell] for cell in self._of(sequence)} == set(PREFIX)
            for sequence in range(ROWS + 1)
        )


def _apart(cells: Sequence[int]) -> bool:
    """Whether cells of a row lie as those of any row: each block in a tile without any other, shifted by its size, and in order."""
    tiles = []
    for begin, end in blocks(len(cells)):
        block = cells[begin:end]
        if list(block) != list(range(block[0], block[0] + len(block))):
            return False
        if block[0] % (end - begin) or block[0] // TILE != block[-1] // TILE:
            return False
        tiles.append(block[0] // TILE)
    return tiles == sorted(set(tiles))


def _drive(
    store: Store, rows: Sequence[tuple[int, ...]], steps: int, *, apart: bool = True
) -> tuple[list[int], Spent]:
    """Which rows ended, in which order, when each was gone on with so many tokens."""
    ended: list[int] = []
    spent = Spent()
    held: list[Places] = []

    def step(place: int, cells: list[int]) -> list[int]:
        row = rows[place]
        seen = tuple(store.token[cell] for cell in cells)
        assert seen[: len(PREFIX) + len(row)] == (*PREFIX, *row)
        assert not apart or _apart(cells[len(PREFIX) :])
        appended = len(seen) - len(PREFIX) - len(row)
        assert all(token == 5 for token in seen[len(PREFIX) + len(row) :])
        if appended < steps:
            return [5, 5][: steps - appended]
        ended.append(place)
        return []

    def places_for(slots: int, tokens: int) -> Places:
        forget()
        held.append(Places(store, len(PREFIX), slots))
        return held[-1]

    def forget() -> None:
        if held:
            held.pop().clear()

    Aligned(
        store,  # type: ignore[arg-type]
        len(PREFIX),
        rows,
        step,  # type: ignore[arg-type]
        reserve=[steps] * len(rows),
        spent=spent,
        places_for=places_for,
        forget_places=forget,
    ).to_the_end()
    assert store.nothing_but_the_prefix
    return ended, spent


def _of_rows(store: Store) -> list[list[int]]:
    """The sequences of each token that was computed for a row."""
    every = (sequences for batch in store.batches for sequences in batch.sequences)
    return [sequences for sequences in every if sequences != [store.spare]]


_ROW = st.lists(st.integers(0, 1), min_size=1, max_size=6).flatmap(
    lambda end: st.sampled_from((0, 3, 8, 15, 16, 17, 31, 40, 70, 130)).map(
        lambda size: (*[0] * size, *end)
    )
)


@given(
    rows=st.lists(_ROW, max_size=25, unique=True),
    ordered=st.booleans(),
    steps=st.integers(0, 20),
    slots=st.integers(1, ROWS),
    batch_tokens=st.sampled_from((TILE, 112, 256)),
)
@settings(deadline=None, max_examples=60)
def test_every_row_sees_itself_in_cells_that_lie_as_ever(
    rows: list[tuple[int, ...]], ordered: bool, steps: int, slots: int, batch_tokens: int
) -> None:
    rows = sorted(rows) if ordered else rows
    store = Store(slots=slots, batch_tokens=batch_tokens)

    ended, spent = _drive(store, rows, steps)

    assert sorted(ended) == list(range(len(rows)))
    assert spent.given == sum(len(row) + steps for row in rows)
    assert spent.calls == len(store.batches)
    assert spent.tokens == len(_of_rows(store))
    for batch in store.batches:
        reads = any(position < len(PREFIX) + min(map(len, rows)) for position in batch.positions)
        assert len(batch) >= (TILE if reads and not steps else 16)
        assert len(batch) % 16 == 0
        assert sum(batch.wanted) % 16 == 0


def test_what_is_read_and_what_is_appended_go_in_batches_of_their_own() -> None:
    rows = [(1, place, place) for place in range(8)]
    store = Store(slots=ROWS, batch_tokens=256)

    _drive(store, rows, steps=6)

    assert [len(batch) >= TILE for batch in store.batches] == [True, *[False] * 3]


def test_rows_share_whole_blocks_within_and_across_batches() -> None:
    rows = sorted((*range(16), a, b) for a in range(8) for b in range(8))
    store = Store(slots=ROWS, batch_tokens=TILE)

    _, spent = _drive(store, rows, steps=0)

    read = _of_rows(store)
    assert len(read) == 16 + 2 * len(rows)
    assert sum(len(sequences) > 1 for sequences in read) == 16
    assert spent.tokens == len(read)
    assert spent.given == 18 * len(rows)


def test_rows_without_room_go_alone_whatever_the_others() -> None:
    long, short = tuple([1] * 150), (1, 2, 3)
    for forgets, cells in ((100, 8192), (0, 9 * TILE)):
        store = Store(slots=4, batch_tokens=128, cells=cells, forgets=forgets)
        ended, _ = _drive(store, [long, short], steps=0, apart=False)
        assert ended == [1, 0]
        assert store.batches[-1].sequences == [[1]] * 22


def test_an_error_leaves_the_prefix_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(slots=3, batch_tokens=TILE)

    def broken(batch: Batch) -> np.ndarray:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "decode", broken)
    with pytest.raises(KeyboardInterrupt):
        _drive(store, [(1, 2), (1, 3)], steps=0)
    assert store.nothing_but_the_prefix


def test_the_area_is_what_the_cells_take() -> None:
    store = Store(slots=5, batch_tokens=TILE)
    places = Places(store, len(PREFIX), 5)
    places.reach(33)

    assert sum(map(bool, store.seen_by)) == TILE + area(5, 33)
    places.clear()
    assert sum(map(bool, store.seen_by)) == len(PREFIX)
