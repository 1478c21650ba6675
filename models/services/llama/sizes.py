"""Sizes of a llama.cpp context: sequences, tokens of a batch, cells of the key-value store.

On a CPU 256 tokens a batch were measured to saturate two cores, and more sequences than make such a
batch only lengthen what attention looks at. A GPU wants far more at a time, as much as its memory
lets."""

from __future__ import annotations

from dataclasses import dataclass

MICRO_BATCH = 256
"""Tokens of one pass over the weights on a CPU; on a GPU there are more."""
SMALL_BATCH = 63
"""Most tokens that llama.cpp's attention on a CPU takes one by one; more it takes in tiles."""
MAX_WINDOW = 8192
"""The longest prompt with its answer, where the user does not say it."""
MOST_SEQUENCES = 256
"""llama.cpp's maximum."""
MOST_FILLING = 16
"""The maximum number of tokens of one block of a matrix product (that of Q4_K with AVX-512). The
remainder is computed in another way. Cells are kept for what fills a batch up (``Filling``)."""
CPU_SLOTS = 128
CPU_ROOM = 2048
"""Cells for rows that go together, where the window is small."""
CELLS_PER_ROW = 192
"""Default number of cells for a row and its answer."""
GPU_SHARE = 0.5
"""Share of a GPU's free memory for the key-value store; the rest serves computation."""
STREAM_WINDOW = 1024
"""Cells of a stream (``streams``). Longer rows go alone."""
STREAMS = 64
"""Streams of a context that has one for each row, without the prefix's."""
STREAMS_OF_LARGE = 16
"""Streams where the weights have ``LARGE_BYTES`` or more: a lone row would wait for all."""
LARGE_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Sizes:
    window: int
    """The longest prompt with its answer, in tokens."""
    cells: int
    """Tokens of all sequences together; those that sequences share count once."""
    rows: int
    """Maximum concurrent rows: sequence 0 holds the shared prefix, the next ones a row each."""
    sequences: int
    """With the first one, and on a CPU one for what fills a batch up."""
    batch: int
    """Most tokens of one call."""
    micro_batch: int
    """Tokens that one pass over the weights computes."""

    @property
    def logit_rows(self) -> int:
        """Most tokens of a call whose logits are wanted: no fewer than sequences, or llama.cpp
        aborts."""
        return self.sequences


def on_cpu(trained: int, wanted: int) -> Sizes:
    """Sizes for a model that was trained on ``trained`` tokens. ``wanted``: the window that the
    user wants, in tokens (0: unspecified)."""
    window = _window(trained, wanted)
    cells = max(window, min(window + CPU_ROOM, MAX_WINDOW))
    return Sizes(window, cells, CPU_SLOTS, CPU_SLOTS + 2, batch=512, micro_batch=MICRO_BATCH)


def on_gpu(trained: int, wanted: int, *, free_bytes: int, cell_bytes: int) -> Sizes:
    """The sizes with ``free_bytes`` free on the GPU, at ``cell_bytes`` per token."""
    window = _window(trained, wanted)
    cells = window + (MOST_SEQUENCES - 1) * CELLS_PER_ROW
    cells = max(window, min(cells, int(free_bytes * GPU_SHARE) // max(1, cell_bytes)))
    rows = min(MOST_SEQUENCES - 1, CPU_SLOTS + (cells - window) // CELLS_PER_ROW)
    return Sizes(window, cells, rows, rows + 1, batch=2048, micro_batch=1024)


def of_streams(trained: int, streams: int) -> Sizes:
    """The sizes with a stream for each row, and one for the prefix."""
    window = min(STREAM_WINDOW, trained)
    return Sizes(window, (streams + 1) * window, streams, streams + 1, batch=2048, micro_batch=2048)


def _window(trained: int, wanted: int) -> int:
    return min(wanted or min(trained, MAX_WINDOW), trained)
