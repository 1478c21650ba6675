"""Runs many rows through one context: prefixes are computed once, and free slots are refilled.

A row consists of the tokens of one tuple of values, behind the shared prefix. After a row's last
token its logits go to ``step``, which appends tokens or ends the row. Rows that begin alike should
be neighbours: each takes over what it shares with the one before it, whether that was computed in
the same batch (a token then belongs to both) or in the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blendfusion.models.services.llama.context import LlamaContext, Logits
from blendfusion.models.services.llama.token_batch import Batch

Step = Callable[[int, Logits], Sequence[int]]
"""Given a row's index and the logits after its last token: the tokens to append; none ends it.
The logits are a view into llama.cpp's memory, valid during the call."""


@dataclass(slots=True)
class RunCost:
    """The cost of runs."""

    calls: int = 0
    """Calls of llama.cpp."""
    tokens: int = 0
    """Computed tokens, without padding."""
    given: int = 0
    """Tokens in all rows, appended ones included, i.e. the cost without prefix sharing. Repeated
    rows count once."""
    again: int = 0
    """Rows that were computed again because of a near-tie."""
    extra: int = 0
    """Tokens that were computed for that."""


@dataclass(slots=True, eq=False)
class _Slot:
    row: int
    tokens: Sequence[int]
    """The tokens of the row, without appended ones."""
    sequence: int
    pending: list[int]
    """The tokens still to compute."""
    position: int
    """The position of the first pending token."""
    computed: int = 0
    """The number of ``tokens`` computed before the current batch."""
    places: list[int] = field(default_factory=list)
    """The positions of the later tokens in the current batch."""


@dataclass(slots=True, eq=False)
class Run:
    """Rows on their way behind the prefix that every sequence holds.

    At most ``slots`` of them go at a time. One slot shares nothing: then no row's logits depend on
    another's. Where that is proven of a context (``exactness``) they never do. In a context whose
    tokens stay in order, rows leave their slots all at once, when none is left on its way.
    """

    context: LlamaContext
    start: int
    """The prefix's length."""
    rows: Sequence[Sequence[int]]
    step: Step
    reserve: Sequence[int]
    """For each row the most tokens that ``step`` will append: rows are admitted only while all
    admitted ones fit the key-value store. The caller makes sure that each row fits alone, with one
    token to spare."""
    spent: RunCost
    """Grows with each call, before the steps that come of it."""
    slots: int
    _needs: list[int] = field(init=False)
    _waiting: list[int] = field(init=False)
    _free: list[int] = field(init=False)
    _cells: int = field(init=False)
    _live: list[_Slot] = field(init=False, default_factory=list)
    _last: _Slot | None = field(init=False, default=None)
    """The slot that was filled last; the next one takes over what they share."""
    _ended: list[_Slot] = field(init=False, default_factory=list)
    """Slots whose rows have ended and whose cells stay, so that no later token gets one of them."""

    def __post_init__(self) -> None:
        self._needs = [len(row) + most for row, most in zip(self.rows, self.reserve, strict=True)]
        self._waiting = list(range(len(self.rows)))[::-1]
        self._free = list(range(self.slots, 0, -1))
        self._cells = self.context.cells - self.start

    def to_the_end(self) -> None:
        """Drive all rows there. Leaves nothing but the prefix in the context, also on errors."""
        try:
            while self._waiting or self._live:
                self._compute()
        finally:
            self.context.trim(self.start)

    def _compute(self) -> None:
        """Decode one batch of pending and new rows, and take their steps."""
        if self._ended and not self._live:
            self._vacate_ended()
        batch = Batch()
        ends: list[tuple[_Slot, int]] = []
        for slot in self._held_slots():
            slot.computed = min(slot.position - self.start, len(slot.tokens))
            slot.places = []
        for slot in self._live:
            self._place(batch, slot, ends)
        self._admit(batch, ends)
        self.spent.tokens += len(batch)
        filled = batch.fill_up(self.context.filling, self.context.spare)
        try:
            logits, outputs = self.context.decode(batch), batch.outputs()
        finally:
            if filled:
                self.context.trim(0, self.context.spare)
        self.spent.calls += 1
        for slot, place in ends:
            slot.pending = list(self.step(slot.row, logits[outputs[place]]))
            self.spent.given += len(slot.pending)
            if not slot.pending:
                self._live.remove(slot)
                if self.context.in_order:
                    self._ended.append(slot)
                elif slot is not self._last:
                    self._vacate(slot)

    def _held_slots(self) -> list[_Slot]:
        """The slots whose tokens are in the key-value store."""
        ended = [] if self._last is None or self._last in self._live else [self._last]
        return self._live + ended

    def _admit(self, batch: Batch, ends: list[tuple[_Slot, int]]) -> None:
        """Fill the rest of the batch with new rows."""
        ended = None if self._last in self._live or self._last in self._ended else self._last
        if ended is not None:
            self._cells += self._needs[ended.row]
        while self._waiting and self._free and len(batch) < self.context.batch_tokens:
            row = self.rows[self._waiting[-1]]
            shared = self._shared_length(self._last, row)
            full = len(batch) + len(row) - shared > self.context.batch_tokens
            if self._live and (full or self._needs[self._waiting[-1]] > self._cells):
                break
            self._fill(batch, row, shared, ends)
        if ended is not None:
            self._last = None if self._last is ended else self._last
            self.context.trim(self.start, ended.sequence)
            self._free.append(ended.sequence)

    def _fill(
        self, batch: Batch, row: Sequence[int], shared: int, ends: list[tuple[_Slot, int]]
    ) -> None:
        """Give the next row a slot, with the tokens that it shares with the last one."""
        slot = _Slot(
            self._waiting.pop(),
            row,
            self._free.pop(),
            pending=list(row[shared:]),
            position=self.start + shared,
        )
        self._cells -= self._needs[slot.row]
        self.spent.given += len(row)
        if shared:
            assert self._last is not None
            slot.computed = min(shared, self._last.computed)
            slot.places = self._last.places[: shared - slot.computed]
            self.context.copy(self._last.sequence, slot.sequence, self.start, slot.computed)
            for place in slot.places:
                batch.share(place, slot.sequence)
        self._live.append(slot)
        self._last = slot if self.slots > 1 else None
        self._place(batch, slot, ends)

    def _place(self, batch: Batch, slot: _Slot, ends: list[tuple[_Slot, int]]) -> None:
        """Put what fits of a slot's pending tokens into the batch; note where it ends, if it
        does."""
        room = self.context.batch_tokens - len(batch)
        if not slot.pending or room <= 0:
            return
        taken, slot.pending = slot.pending[:room], slot.pending[room:]
        slot.places += batch.add(taken, slot.position, slot.sequence)
        slot.position += len(taken)
        if not slot.pending:
            place = slot.places[-1]
            batch.want(place)
            ends.append((slot, place))

    def _vacate(self, slot: _Slot) -> None:
        self.context.trim(self.start, slot.sequence)
        self._free.append(slot.sequence)
        self._cells += self._needs[slot.row]

    def _vacate_ended(self) -> None:
        for slot in self._ended:
            self._vacate(slot)
        self._ended.clear()
        self._last = None

    def _shared_length(self, last: _Slot | None, row: Sequence[int]) -> int:
        """How many tokens a row begins with that ``last`` has, or will have with this batch; never
        the row's last one, whose logits are wanted."""
        if last is None:
            return 0
        count = 0
        for a, b in zip(last.tokens[: last.computed + len(last.places)], row[:-1], strict=False):
            if a != b:
                break
            count += 1
        return count
