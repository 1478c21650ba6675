"""Where tokens of rows lie in the key-value store, so that no row changes another's logits by a single bit.

On a CPU llama.cpp's attention goes by tiles of 64 cells, in batches of 64 tokens or more (``flash_attn_ext`` in
ggml-cpu/ops.cpp), and sums up tile by tile. What comes out for a token depends on which of the cells that it sees lie in
one tile, and on the order of those tiles; not on what else lies there, as that is multiplied by zero, nor on where in the
tile they lie, as long as they are shifted by a power of two that is no smaller than their number. So the tokens of a row
are cut into blocks, always at the same places, and each block lies in a tile without any other of its row, in an order that is
always the same. The tile is filled up with blocks of other rows.

llama.cpp puts the tokens of a batch into the free cells, in their order. So every cell behind the prefix is occupied,
by tokens that nobody sees, until a row's token is to lie there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Protocol

CELLS_VERSION = 1
"""Of what follows: rows that are cut otherwise have other answers where two are about as good."""
TILE = 64
"""Cells that attention sums up together, and the fewest tokens of a batch in which it does."""
_FIRST_BLOCKS = (8, 8, 16, 16, 16)
"""Rows that begin alike share whole blocks, and most of what they share is at the beginning. All others are tiles."""


def blocks(tokens: int) -> Iterator[tuple[int, int]]:
    """Where the blocks of a row of so many tokens begin and end; the last may end behind it.

    >>> list(blocks(20))
    [(0, 8), (8, 16), (16, 32)]
    """
    start = 0
    for size in chain(_FIRST_BLOCKS, repeat(TILE)):
        if start >= tokens:
            return
        yield start, start + size
        start += size


def pieces(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of a row from ``begin`` to ``end``, block by block.

    >>> list(pieces(10, 20))
    [(10, 16), (16, 20)]
    """
    for first, last in blocks(end):
        if last > begin:
            yield max(begin, first), min(end, last)


def whole(tokens: int) -> int:
    """How many of so many tokens lie in whole blocks.

    >>> whole(20)
    16
    """
    return max((end for _, end in blocks(tokens) if end <= tokens), default=0)


def room(tokens: int) -> int:
    """How many tokens have room in the blocks that so many need.

    >>> room(20)
    32
    """
    return max((end for _, end in blocks(tokens)), default=0)


def area(slots: int, tokens: int) -> int:
    """Cells of whole tiles for rows of up to so many tokens, one in each slot.

    >>> area(16, 20)
    512
    """
    return sum(_to_tiles(slots * (end - start)) for start, end in blocks(tokens))


def _to_tiles(cells: int) -> int:
    return -(-cells // TILE) * TILE


class Memory(Protocol):
    """What a context of llama.cpp does with sequences (``LlamaContext``)."""

    rows: int

    def copy(self, source: int, target: int, start: int, count: int) -> None: ...
    def drop(self, sequence: int, start: int = 0, count: int = -1) -> None: ...
    def occupy(self, sequence: int, start: int, count: int) -> None: ...


class Places:
    """Slots for rows behind a prefix of ``start`` tokens. Slot ``n`` is the place of sequence ``n``.

    What occupies a free cell of a slot belongs to one of two other sequences: at first by its place in the row, later by the
    position that its last token had. Blocks that no row has reached take no cells.
    """

    def __init__(self, memory: Memory, start: int, slots: int) -> None:
        self._memory = memory
        self._start = start
        self.slots = slots
        self._first: list[int] = []
        """By place in a row: the cell of slot 0, which nobody has."""
        self._step: list[int] = []
        """By place in a row: how far on the cell of the next slot is."""
        self._used = [bytearray() for _ in range(slots + 1)]
        """Whether a row was at a place of a slot."""
        self._end = start
        """The first cell behind all of these."""

    @property
    def reached(self) -> int:
        """How many tokens of every slot there are cells for."""
        return len(self._first)

    def reach(self, tokens: int) -> None:
        """Have cells for so many tokens of every slot. None of those that there are may be free."""
        self._close_gap()
        for start, end in blocks(tokens):
            if start < self.reached:
                continue
            size = end - start
            filled = _to_tiles(self.slots * size)
            for slot in range(1, filled // size + 1):
                self._memory.occupy(self._new(slot), start, size)
            self._first += range(self._end - size, self._end)
            self._step += [size] * size
            for used in self._used:
                used.extend(bytes(size))
            self._end += filled

    def _close_gap(self) -> None:
        """Begin with a whole tile; what fills that of the prefix is of a few sizes, whatever the prefix."""
        gap = _to_tiles(self._end) - self._end
        for size in (1 << bit for bit in reversed(range(TILE.bit_length() - 1))):
            if gap & size:
                self._memory.occupy(self._gap, TILE - 2 * size, size)
        self._end += gap

    @property
    def _gap(self) -> int:
        return 3 * self._memory.rows + 1

    def _new(self, slot: int) -> int:
        """The sequence of the cells of a slot that no row had."""
        return self._memory.rows + slot

    def _old(self, slot: int) -> int:
        """The sequence of those that a row had."""
        return 2 * self._memory.rows + slot

    def cell(self, slot: int, place: int) -> int:
        """Where the token at a place of a row lies."""
        return self._first[place] + slot * self._step[place]

    def take(self, slot: int, begin: int, end: int) -> None:
        """Free the cells of these places; the next batch fills all free ones, in their order."""
        used = self._used[slot]
        if any(used[begin:end]):
            self._memory.drop(self._old(slot), self._start + begin, end - begin)
        if not all(used[begin:end]):
            self._memory.drop(self._new(slot), begin, end - begin)

    def give_back(self, slot: int, begin: int, end: int) -> None:
        """The row of this slot has ended, whose own tokens are at these places; others may see them still."""
        self._memory.copy(slot, self._old(slot), self._start + begin, end - begin)
        self._memory.drop(slot, self._start)
        self._used[slot][begin:end] = b"\1" * (end - begin)

    def clear(self) -> None:
        """Leave nothing but the prefix."""
        for slot in range(1, self.slots + 1):
            self._memory.drop(slot, self._start)
            self._memory.drop(self._old(slot))
        smallest = min(_FIRST_BLOCKS)
        for slot in range(1, _to_tiles(self.slots * smallest) // smallest + 1):
            self._memory.drop(self._new(slot))
        self._memory.drop(self._gap)
