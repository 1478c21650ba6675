"""Verifies that rows of one batch equal lone rows bit for bit.

They do where attention and matrix products sum up each token by itself. Our own attention does
(``attention``); llama.cpp's does in batches of 2 to 63 tokens, if a row's cells are in the order of
its tokens. Products of whole weights do for two tokens or more; those of quantised ones for any
number, or by 16 at a time, what is left over being summed up in another way. Which of it holds
depends on the build of llama.cpp and on the processor, so it is tried, once a context: a few
hundred tokens in the companies that matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from blendfusion.errors import ModelFailed
from blendfusion.models.services.llama.context import LlamaContext, Logits
from blendfusion.models.services.llama.scheduler import Run, RunCost
from blendfusion.models.services.llama.sizes import MOST_FILLING
from blendfusion.models.services.llama.switch import Interruption
from blendfusion.models.services.llama.token_batch import Filling

_ALIKE = 9
"""Tokens that the first two rows begin with."""
_ROWS = (14, 20, 5, 70)
"""Tokens of the rows: their number selects the kernel of a matrix product."""
_ALONE = (1, 3)
"""The rows that are also computed alone."""
_STEPS = 2
"""Tokens that each is gone on with."""
_STRIDE = 37


def prove_equal_rows(context: LlamaContext, *, quantised: bool) -> bool:
    """Whether the logits of rows together are those of each alone, with batches filled up, and as
    small, from here on as that takes. The context must be empty and is left so."""
    for filling, small in _ways(context, quantised=quantised):
        context.batch_rows(filling, small=small)
        if _holds(context):
            return True
    context.batch_rows(Filling())
    return False


def _ways(context: LlamaContext, *, quantised: bool) -> Iterator[tuple[Filling, bool]]:
    """How batches are filled up and whether they are small: what may make them so, cheapest first.
    That own attention steps aside shows at its first steps."""
    blocks = Filling(MOST_FILLING, MOST_FILLING)
    for filling in (Filling() if quantised else Filling(2), blocks):
        if context.attends:
            yield filling, False
    for filling in (Filling(2), blocks):
        if not context.attends and not context.on_gpu:
            yield filling, True


def _holds(context: LlamaContext) -> bool:
    rows, own = _rows(context.n_vocab), context.attends
    try:
        together = _logits(context, rows)
        return context.attends == own and all(
            np.array_equal(seen, alone)
            for place in _ALONE
            for seen, alone in zip(together[place], _logits(context, [rows[place]])[0], strict=True)
        )
    except Interruption:
        raise
    except ModelFailed:  # a model whose memory is of another kind
        return False
    finally:
        context.clear()


def _rows(n_vocab: int) -> list[tuple[int, ...]]:
    """Rows of different tokens, from all over the vocabulary; two begin alike."""
    every = [_STRIDE * place % n_vocab for place in range(1, sum(_ROWS) + 1)]
    rows = [tuple(every[sum(_ROWS[:n]) :][:size]) for n, size in enumerate(_ROWS)]
    rows[1] = rows[0][:_ALIKE] + rows[1][_ALIKE:]
    return rows


def _logits(context: LlamaContext, rows: Sequence[tuple[int, ...]]) -> list[list[Logits]]:
    """The logits after each row, and after each of the tokens that it is gone on with."""
    seen: list[list[Logits]] = [[] for _ in rows]

    def step(place: int, logits: Logits) -> Sequence[int]:
        seen[place].append(logits.copy())
        return rows[place][:1] if len(seen[place]) <= _STEPS else ()

    reserve = [_STEPS] * len(rows)
    Run(context, 0, rows, step, reserve, RunCost(), slots=len(rows)).to_the_end()
    return seen
