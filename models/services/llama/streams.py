"""Rows that go together on a GPU, and come out bit for bit as each would in any other company.

What a GPU computes of a row depends on its company in two ways: the shape of a batch selects the
kernels, and cells of other rows in between change the order in which attention sums up. So batches
have few shapes here, and each row has a stream of the key-value store to itself. A row is padded
behind its end to one of a few lengths, which nothing before sees; the number of streams follows
from that length, and streams without a row compute tokens of no meaning. Attention looks at as many
cells as the longest stream has, rounded up: one stream, which holds no row, is kept as long as all
rows of a batch can become. Attention is not fused, since the fused one of CUDA divides its work by
the place of a row in the batch. So a row's logits follow from its own tokens alone. Whether they do
on this device is tried once (``prove``); products of quantised weights do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from blendfusion.errors import ModelFailed
from blendfusion.models.services.llama.context import LlamaContext, Logits
from blendfusion.models.services.llama.scheduler import RunCost, Step
from blendfusion.models.services.llama.switch import Interruption
from blendfusion.models.services.llama.token_batch import Batch

CELLS = 256
"""llama.cpp's attention looks at multiples of so many cells."""
_FILLER, _FIRST = 1, 2
"""The stream that holds no row, and the first one of a row; stream 0 holds the prefix."""
_ANY = 7
"""A token of no meaning."""
_TRIED_PREFIX, _TRIED_SIZES = 150, (5, 7, 8, 70, 72, 300)
"""Tokens before the rows that are tried, and of the rows beside those that fill a batch: kernels
that divide the cells among processors do so from 64 or 128 on."""


def padded_length(length: int) -> int:
    """The length to which a row of ``length`` tokens is padded: at most a quarter is added to long
    ones."""
    unit = max(8, 1 << max(0, length.bit_length() - 3))
    return -(-length // unit) * unit


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """The shape of the batches of a row."""

    cells: int
    """At how many cells attention looks."""
    length: int
    """Tokens of each stream in the first batch; one in the later ones."""
    streams: int


@dataclass(slots=True, eq=False)
class _Row:
    place: int
    pending: list[int]
    """Its tokens that are not computed yet, without those of the first batch."""


@dataclass(slots=True)
class Streams:
    """Drives rows through a context that has a stream for each."""

    context: LlamaContext
    prefix: tuple[int, ...] | None = None
    """The tokens that all streams begin with; None if uncertain."""
    _filled: int = field(init=False, default=0)
    """Cells of the stream that holds no row."""

    def prove(self) -> bool:
        """Whether rows come out alike in every company. The context is left empty."""
        every = [37 * place % self.context.n_vocab for place in range(_TRIED_PREFIX + 800)]
        sizes = [*(9 + place % 8 for place in range(self.context.rows - 1)), *_TRIED_SIZES]
        prefix, rows = tuple(every[:_TRIED_PREFIX]), []
        for number, size in enumerate(sizes):
            rows.append(tuple(every[5 * number :][:size]))
        try:
            together = self._try_rows(prefix, rows)
            return all(
                np.array_equal(seen, other)
                for company in (rows[::-1], rows[::7], *([row] for row in rows[::20]))
                for row, found in zip(company, self._try_rows(prefix, company), strict=True)
                for seen, other in zip(together[rows.index(row)], found, strict=True)
            )
        except Interruption:
            raise
        except ModelFailed:  # such as a model whose memory is of another kind
            return False
        finally:
            self.forget()

    def _try_rows(
        self, prefix: tuple[int, ...], rows: Sequence[tuple[int, ...]]
    ) -> list[list[Logits]]:
        """The logits after each row, and after each of two tokens that it is gone on with."""
        seen: list[list[Logits]] = [[] for _ in rows]

        def step(place: int, logits: Logits) -> Sequence[int]:
            seen[place].append(logits.copy())
            return rows[place][:1] if len(seen[place]) < 3 else ()

        if self.run(prefix, rows, step, [2] * len(rows), RunCost()):
            raise ModelFailed("the streams are too short")
        return seen

    def run(
        self,
        prefix: tuple[int, ...],
        rows: Sequence[Sequence[int]],
        step: Step,
        reserve: Sequence[int],
        spent: RunCost,
    ) -> list[int]:
        """Drive rows to their end behind ``prefix``, as ``scheduler.Run`` does; the places of those
        that are too long are returned."""
        shapes = [
            self.shape(len(prefix) + most, row) for row, most in zip(rows, reserve, strict=True)
        ]
        fitting: dict[Shape, list[int]] = {}
        for place, shape in enumerate(shapes):
            if shape is not None:
                fitting.setdefault(shape, []).append(place)
        if fitting:
            self._begin(prefix)
        for shape in sorted(fitting):
            places, size = fitting[shape], shape.streams - 1
            for start in range(0, len(places), size):
                self._drive(shape, rows, places[start : start + size], step, spent)
        return [place for place, shape in enumerate(shapes) if shape is None]

    def shape(self, beside: int, row: Sequence[int]) -> Shape | None:
        """The shape of a row with ``beside`` tokens around it; None if it is too long."""
        length = padded_length(len(row))
        streams = min(self.context.rows, 1 << (self.context.n_batch // length).bit_length() - 1)
        cells = -(-(beside + length) // CELLS) * CELLS
        return (
            Shape(cells, length, streams) if cells <= self.context.n_ctx and streams > 1 else None
        )

    def forget(self) -> None:
        self.prefix = None
        self._filled = 0
        self.context.clear()

    def _begin(self, prefix: tuple[int, ...]) -> None:
        if self.prefix == prefix:
            return
        self.forget()
        if prefix:
            self.context.decode_prefix(prefix)
            for stream in range(_FILLER, self.context.rows + 1):
                self.context.copy_all(0, stream)
        self.prefix, self._filled = prefix, len(prefix)

    def _drive(
        self,
        shape: Shape,
        rows: Sequence[Sequence[int]],
        places: Sequence[int],
        step: Step,
        spent: RunCost,
    ) -> None:
        """Compute the rows at ``places``, which have one shape and a stream each."""
        start = len(self.prefix or ())
        self._fill(shape.cells - shape.length)
        streams = range(_FIRST, shape.streams + 1)
        computed = [rows[place] for place in places]
        ends = [start + len(row) for row in computed] + [start] * (len(streams) - len(places))
        batch, wanted = Batch(), []
        self._add_filler(batch, shape.length)
        for number, stream in enumerate(streams):
            row = computed[number] if number < len(computed) else ()
            added = batch.add([*row, *[_ANY] * (shape.length - len(row))], start, stream)
            wanted.append(added[len(row) - 1])
            batch.want(wanted[-1])
        live = [_Row(place, []) for place in places]
        spent.given += sum(map(len, computed))
        try:
            self._compute(batch, [(row, wanted[n]) for n, row in enumerate(live)], step, spent)
            spent.tokens += sum(map(len, computed))
            for stream, end in zip(streams, ends, strict=True):
                self.context.trim(end, stream)
            while any(row.pending for row in live):
                self._advance(shape, live, ends, step, spent)
            for stream in streams:
                self.context.trim(start, stream)
        except BaseException:
            self.forget()
            raise

    def _advance(
        self, shape: Shape, live: list[_Row], ends: list[int], step: Step, spent: RunCost
    ) -> None:
        """Compute one token of each stream: the next one of rows on their way."""
        batch, steps, unreal = Batch(), [], []
        self._fill(shape.cells - 1)
        self._add_filler(batch, 1)
        for number, stream in enumerate(range(_FIRST, shape.streams + 1)):
            row = live[number] if number < len(live) else None
            token = row.pending.pop(0) if row is not None and row.pending else None
            [place] = batch.add([_ANY if token is None else token], ends[number], stream)
            batch.want(place)
            if row is None or token is None:
                unreal.append((ends[number], stream))
                continue
            ends[number] += 1
            spent.tokens += 1
            if not row.pending:
                steps.append((row, place))
        self._compute(batch, steps, step, spent)
        for end, stream in unreal:
            self.context.trim(end, stream)

    def _compute(
        self, batch: Batch, steps: Sequence[tuple[_Row, int]], step: Step, spent: RunCost
    ) -> None:
        logits, outputs = self.context.decode(batch), batch.outputs()
        spent.calls += 1
        for row, place in steps:
            row.pending = list(step(row.place, logits[outputs[place]]))
            spent.given += len(row.pending)

    def _fill(self, cells: int) -> None:
        """Have the stream that holds no row hold so many cells."""
        if self._filled > cells:
            self.context.trim(cells, _FILLER)
        elif self._filled < cells:
            batch = Batch()
            batch.add([_ANY] * (cells - self._filled), self._filled, _FILLER)
            self.context.decode(batch)
        self._filled = cells

    def _add_filler(self, batch: Batch, count: int) -> None:
        batch.want(batch.add([_ANY] * count, self._filled, _FILLER)[-1])
        self._filled += count
