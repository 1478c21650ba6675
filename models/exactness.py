"""Whether a context computes rows exactly in small batches: bit for bit as each alone.

``slots`` says why it should. Other builds of llama.cpp may sum up in another order, so it is tried, once
a context: a few tokens in every company that matters, in less than a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blendfusion.models.llama_context import LlamaContext, Logits
from blendfusion.models.slots import EXACT_TOKENS, Run, Spent

_ROWS = (5, 11, 3)
"""Tokens of the rows; a last one fills the batch up to what is allowed."""
_STEPS = 2
"""Tokens that each is gone on with."""
_STRIDE = 37


def proven(context: LlamaContext) -> bool:
    """Whether the logits of rows together are those of each alone. Of a context on a CPU, which must be
    empty and is left so; on a GPU, where small batches would not pay, it is not tried."""
    if context.on_gpu:
        return False
    rows = _rows(context.n_vocab)
    together = _logits(context, rows)
    return all(
        np.array_equal(seen, alone)
        for place, row in enumerate(rows[: len(_ROWS)])
        for seen, alone in zip(together[place], _logits(context, [row])[0], strict=True)
    )


def _rows(n_vocab: int) -> list[tuple[int, ...]]:
    """Rows of different tokens, from all over the vocabulary."""
    sizes = (*_ROWS, EXACT_TOKENS - sum(_ROWS))
    every = [_STRIDE * place % n_vocab for place in range(1, EXACT_TOKENS + 1)]
    return [tuple(every[sum(sizes[:n]) :][:size]) for n, size in enumerate(sizes)]


def _logits(context: LlamaContext, rows: Sequence[tuple[int, ...]]) -> list[list[Logits]]:
    """The logits after each row, and after each of the tokens that it is gone on with."""
    seen: list[list[Logits]] = [[] for _ in rows]

    def step(place: int, logits: Logits) -> Sequence[int]:
        seen[place].append(logits.copy())
        return rows[place][:1] if len(seen[place]) <= _STEPS else ()

    Run(
        context,
        0,
        rows,
        step,
        reserve=[_STEPS] * len(rows),
        spent=Spent(),
        slots=context.slots,
        exact=True,
    ).to_the_end()
    return seen
