"""Verifies that rows of one batch equal lone rows bit for bit.

They do where attention is our own (``attention``) and matrix products sum up each token by itself.
Those of whole weights do for two tokens or more; those of quantised ones for any number, or by 16
at a time, what is left over being summed up in another way. Which of it holds depends on the build
of llama.cpp and on the processor, so it is tried, once a context: a few hundred tokens in the
companies that matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blendfusion.errors import ModelFailed
from blendfusion.models.llama.context import LlamaContext, Logits
from blendfusion.models.llama.scheduler import Run, Spent
from blendfusion.models.llama.sizes import MOST_FILLING
from blendfusion.models.llama.switch import Stopped
from blendfusion.models.llama.token_batch import Filling

_ALIKE = 9
"""Tokens that the first two rows begin with."""
_ROWS = (14, 20, 5, 70)
"""Tokens of the rows: their number selects the kernel of a matrix product."""
_ALONE = (1, 3)
"""The rows that are also computed alone."""
_STEPS = 2
"""Tokens that each is gone on with."""
_STRIDE = 37


def proven(context: LlamaContext, *, quantised: bool) -> bool:
    """Whether the logits of rows together are those of each alone, with batches filled up from here
    on as that takes. The context must be empty and is left so; where attention is llama.cpp's, it
    is known that they are not."""
    for filling in (Filling() if quantised else Filling(2), Filling(MOST_FILLING, MOST_FILLING)):
        context.filling = filling
        if context.attends and _holds(context):
            return True
    context.filling = Filling()
    return False


def _holds(context: LlamaContext) -> bool:
    rows = _rows(context.n_vocab)
    try:
        together = _logits(context, rows)
        return context.attends and all(
            np.array_equal(seen, alone)
            for place in _ALONE
            for seen, alone in zip(together[place], _logits(context, [rows[place]])[0], strict=True)
        )
    except Stopped:
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
    Run(context, 0, rows, step, reserve, Spent(), slots=len(rows)).to_the_end()
    return seen
