"""Drives rows through one context, many at a time, so that none changes another's logits by a single bit.

Rows are read in large batches, with attention tile by tile, each in its own cells (``cells``), and go on in small ones, where
attention goes token by token over the cells in their order. On a CPU llama.cpp's matrix products sum up each
token by itself, where there are several; some take 16 at a time and what is left over in another way, so batches, and the
logits wanted of them, are filled up to a multiple of 16. ``exactness`` proves it of a context.

A row is what follows the shared prefix. Rows that begin alike should be neighbours: each takes over the whole blocks
that it shares with the one before it, whether that was computed in the same batch (a token then belongs to both) or before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from blendfusion.models.cells import TILE, Places, area, pieces, whole
from blendfusion.models.llama_context import Batch, LlamaContext
from blendfusion.models.slots import Run, Spent, Step

_CELLS = 2048
"""At most, for longer rows in more slots than they need: attention looks at all cells, if only to leave them out."""
_TOGETHER = 16
"""Tokens that matrix products take at a time, at most: those of Q4_K with AVX-512."""
_WRITES = 8
"""Tokens that may be appended to a row, from which on as many rows as possible should go at a time."""

PlacesFor = Callable[[int, int], Places]
"""Given how many slots there are to be, and the tokens of the longest row."""


@dataclass(slots=True)
class _Piece:
    """Tokens of one block in the batch that is being put together."""

    slot: int
    place: int
    """Of the first, in the row."""
    tokens: Sequence[int]
    sequences: list[int]
    ends: _Row | None = None
    """The row whose next logits are those of the last token."""


@dataclass(slots=True, eq=False)
class _Row:
    number: int
    tokens: Sequence[int]
    """Without what is appended."""
    slot: int
    own: int
    """How many tokens lie in cells of other slots."""
    homes: list[tuple[int, int]]
    """The slots that its tokens lie in, each with the place behind the last one there."""
    placed: int
    """How many tokens are computed, or in the batch."""
    appended: list[int] = field(default_factory=list)
    """What is still to be computed of those."""
    computed: int = 0
    """How many were before the batch."""
    pieces: list[_Piece] = field(default_factory=list)
    """What stands behind them in the batch."""

    @property
    def read(self) -> bool:
        return self.placed >= len(self.tokens)


@dataclass(slots=True, eq=False)
class Aligned:
    """Rows on their way behind the prefix that every sequence holds; see ``slots.Run`` for what is given."""

    context: LlamaContext
    start: int
    rows: Sequence[Sequence[int]]
    step: Step
    reserve: Sequence[int]
    spent: Spent
    places_for: PlacesFor
    forget_places: Callable[[], None]
    _places: Places = field(init=False)
    _waiting: list[int] = field(init=False)
    _free: list[int] = field(init=False)
    _sharers: Counter[int] = field(init=False)
    """How many rows see cells of a slot."""
    _live: list[_Row] = field(init=False, default_factory=list)
    _last: _Row | None = field(init=False, default=None)
    """The row that came last; the next one takes over what they share."""

    def to_the_end(self) -> None:
        """Drive all rows there. Leaves nothing that the next ones could see."""
        try:
            for numbers, slots in self._groups():
                if slots:
                    self._drive(numbers, self.places_for(slots, max(map(self._need, numbers))))
                else:
                    self._one_by_one(numbers)
        except BaseException:
            self.forget_places()
            raise

    # -- which rows go together ----------------------------------------------------------------------

    def _groups(self) -> Iterator[tuple[list[int], int]]:
        """Rows that go through the same slots, shorter ones first, and how many those are; none, where there is no room for
        a row to lie apart, whatever the others."""
        by_size: dict[int, list[int]] = {}
        alone: list[int] = []
        for number in range(len(self.rows)):
            need = self._need(number)
            if 0 < self.context.forgets < need or not self._fitting(1, need):
                alone.append(number)
            else:
                by_size.setdefault((max(TILE // 2, need) - 1).bit_length(), []).append(number)
        group: list[int] = []
        slots = tokens = 0
        for _, numbers in sorted(by_size.items()):
            most, possible = max(map(self._need, numbers)), self._slots(numbers)
            if group and possible != slots and self._fitting(slots, most, _CELLS) < slots:
                if tokens >= self.context.batch_tokens:
                    yield group, slots
                    group, tokens = [], 0
                slots = possible
            slots = slots if group else possible
            group += numbers
            tokens += sum(len(self.rows[number]) for number in numbers)
        if group:
            yield group, slots
        if alone:
            yield alone, 0

    def _need(self, number: int) -> int:
        return len(self.rows[number]) + self.reserve[number]

    def _slots(self, numbers: Sequence[int]) -> int:
        """How many of these rows should go at a time, of those that may."""
        most = max(map(self._need, numbers))
        wanted = min(self.context.slots, 8 * -(-len(numbers) // 8))
        if max(self.reserve[number] for number in numbers) < _WRITES:
            rows = self.context.batch_tokens / self._mean(numbers)
            wanted = min(wanted, max(8, 8 * round(rows / 8)))
        return self._fitting(wanted, most)

    def _fitting(self, slots: int, tokens: int, cells: int | None = None) -> int:
        """As many slots, at most ``slots``, as there is room for in so many cells, or in all."""
        left = self.context.cells - self.start - 2 * TILE
        cells = left if cells is None else min(cells, left)
        possible = (n for n in range(slots, 0, -1) if n % 8 == 0 or n < 8)
        return next((n for n in possible if area(n, tokens) <= cells), 0)

    def _mean(self, numbers: Sequence[int]) -> int:
        """About how many tokens of a row are computed."""
        before: Sequence[int] = ()
        count = 0
        for number in numbers:
            row = self.rows[number]
            count += len(row) - _shared(before, row)
            before = row
        return max(1, count // len(numbers))

    def _one_by_one(self, numbers: Sequence[int]) -> None:
        self.forget_places()
        Run(
            self.context,
            self.start,
            [self.rows[number] for number in numbers],
            lambda place, logits: self.step(numbers[place], logits),
            reserve=[self.reserve[number] for number in numbers],
            spent=self.spent,
            slots=1,
        ).to_the_end()

    # -- batch by batch --------------------------------------------------------------------------------

    def _drive(self, numbers: Sequence[int], places: Places) -> None:
        self._places = places
        self._waiting = list(numbers)[::-1]
        self._free = list(range(places.slots, 0, -1))
        self._sharers = Counter()
        mean = self._mean(numbers)
        while self._waiting or self._live:
            if self._reads(mean):
                self._compute(self._reading(), at_least=TILE)
            else:
                self._compute(self._going_on(), at_least=_TOGETHER)
        if self._last is not None:
            self._release(self._last)
            self._last = None

    def _reads(self, mean: int) -> bool:
        """Whether the next batch is one of rows that are read: it should be a full one, or there is no other."""
        if all(row.read for row in self._live) and not self._waiting:
            return False
        if not any(row.appended for row in self._live):
            return True
        free = len(self._free)
        return free * mean >= self.context.batch_tokens or 0 < len(self._waiting) <= free

    def _reading(self) -> list[_Piece]:
        """A batch of rows that are read, old and new ones."""
        self._begin_batch()
        batch: list[_Piece] = []
        left = self.context.batch_tokens
        for row in self._live:
            if not row.read:
                left -= self._place(row, row.tokens[row.placed :], batch, left)
        last = self._last
        if not self._free and last is not None and last not in self._live:
            self._last = None
            self._release(last)
        while self._waiting and self._free and left:
            row = self._admit(self._waiting.pop())
            left -= self._place(row, row.tokens[row.placed :], batch, left)
        return batch

    def _going_on(self) -> list[_Piece]:
        """A batch of what was appended to rows."""
        self._begin_batch()
        batch: list[_Piece] = []
        left = TILE - _TOGETHER
        for row in self._live:
            taken = self._place(row, row.appended, batch, left)
            row.appended = row.appended[taken:]
            left -= taken
        return batch

    def _begin_batch(self) -> None:
        held = self._live if self._last in self._live else [*self._live, self._last]
        for row in held:
            if row is not None:
                row.computed = row.placed
                row.pieces = []

    def _place(self, row: _Row, tokens: Sequence[int], batch: list[_Piece], most: int) -> int:
        """Put as many as fit of a row's next tokens into a batch; returns how many that were."""
        count = min(len(tokens), most)
        if not count:
            return 0
        start = row.placed
        for begin, end in pieces(start, start + count):
            row.pieces.append(
                _Piece(row.slot, begin, tokens[begin - start : end - start], [row.slot])
            )
            batch.append(row.pieces[-1])
        row.placed += count
        if count == len(tokens):
            row.pieces[-1].ends = row
        return count

    def _admit(self, number: int) -> _Row:
        """Give a row a slot, and what it shares with the one before."""
        tokens, last, slot = self.rows[number], self._last, self._free.pop()
        self.spent.given += len(tokens)
        shared = 0 if last is None else min(_shared(last.tokens, tokens), whole(last.placed))
        row = _Row(number, tokens, slot, shared, [(len(tokens), slot)], shared, computed=shared)
        if last is not None and shared:
            row.computed = min(shared, last.computed)
            row.pieces = [piece for piece in last.pieces if piece.place < shared]
            self.context.copy(last.slot, slot, self.start, row.computed)
            for piece in row.pieces:
                piece.sequences.append(slot)
            begin = 0
            for end, home in last.homes:
                if begin < shared:
                    row.homes.insert(-1, (min(end, shared), home))
                begin = end
        self._sharers.update({home for _, home in row.homes})
        self._live.append(row)
        self._last = row
        if last is not None and last not in self._live:
            self._release(last)
        return row

    def _compute(self, content: list[_Piece], at_least: int) -> None:
        """One call, filled up with tokens that nobody sees, and the steps that come of it."""
        places, spare = self._places, self.context.spare
        places.reach(max(piece.place + len(piece.tokens) for piece in content))
        for slot, begin, end in _of_slots(content):
            places.take(slot, begin, end)
        content.sort(key=lambda piece: places.cell(piece.slot, piece.place))
        batch = Batch()
        ends: list[tuple[_Row, int]] = []
        for piece in content:
            added = batch.add(piece.tokens, self.start + piece.place, *piece.sequences)
            if piece.ends is not None:
                batch.want(added[-1])
                ends.append((piece.ends, added[-1]))
        filled = batch.add([0] * (max(at_least, _full(len(batch))) - len(batch)), 0, spare)
        others = (place for place in reversed(range(len(batch))) if not batch.wanted[place])
        for place in list(islice(others, _full(len(ends)) - len(ends))):
            batch.want(place)
        logits = self.context.decode(batch)
        if filled:
            self.context.drop(spare)
        self.spent.calls += 1
        self.spent.tokens += len(batch) - len(filled)
        outputs = batch.outputs()
        for row, place in ends:
            row.appended = list(self.step(row.number, logits[outputs[place]]))
            self.spent.given += len(row.appended)
            if not row.appended:
                self._live.remove(row)
                if row is not self._last:
                    self._release(row)

    def _release(self, row: _Row) -> None:
        """A row has ended, and no other begins with it any more."""
        self._places.give_back(row.slot, row.own, row.placed)
        for home in {home for _, home in row.homes}:
            self._sharers[home] -= 1
            if not self._sharers[home]:
                self._free.append(home)
        self._free.sort(reverse=True)


def _full(count: int) -> int:
    """So many, and those that are missing for the last ones to be taken as the others are."""
    return -(-count // _TOGETHER) * _TOGETHER


def _of_slots(batch: Sequence[_Piece]) -> Iterator[tuple[int, int, int]]:
    """Where in each slot pieces that stand row by row begin and end."""
    for slot, group in groupby(batch, key=lambda piece: piece.slot):
        some = list(group)
        yield slot, some[0].place, some[-1].place + len(some[-1].tokens)


def _shared(before: Sequence[int], row: Sequence[int]) -> int:
    """How many tokens of whole blocks a row begins with as ``before`` does; never its last one, whose logits are wanted."""
    count = 0
    for a, b in zip(before, row[:-1], strict=False):
        if a != b:
            break
        count += 1
    return whole(count)
