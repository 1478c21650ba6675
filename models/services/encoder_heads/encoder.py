"""An encoder with a head for decisions, open in memory: a number for each option of a prompt."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from blendfusion.errors import ModelFailed
from blendfusion.models.services.encoder_heads.prompt import Layout, Template, type_of
from blendfusion.models.services.llama.context import Weights, tokens_of
from blendfusion.models.services.llama.cpu_cores import cores
from blendfusion.models.services.llama.library import reason
from blendfusion.models.services.llama.switch import Switch

KINDS = ("choice", "score", "boolean")
"""The kinds of questions, in the order of the head's numbers."""
_TYPE = "laya"
_FIRST_CELLS = 512
_LONGEST_TEXT = 1 << 16
_BUCKETS = ((2, "2"), (5, "3_5"), (10, "6_10"))
"""Most options, and the part of the name of their temperature; '11' for more."""


class Encoder:
    """Not safe for threads: the caller locks. Raises ModelFailed for a file without such a head, or
    for a library that does not know it."""

    def __init__(self, path: Path, threads: int, switch: Switch) -> None:
        self._weights = Weights(path, n_gpu_layers=0, switch=switch)
        self._lib, self._model = self._weights.lib, self._weights.model
        self._threads = min(threads or cores(), cores())
        self._context: Any = None
        self._cells = 0
        try:
            self._check(path)
        except BaseException:
            self.close()
            raise

    def _check(self, path: Path) -> None:
        self._prefix = f"{self._fact('general.architecture')}.decision."
        found = self._fact(f"{self._prefix}type")
        template = self._lib.llama_model_chat_template(self._model, b"systemone")
        if found != _TYPE or not template or self.n_scores != len(KINDS):
            what = f"its head is of the kind '{found}'" if found else "it has none"
            raise ModelFailed(
                f"'{path}' is no encoder with a head like Laya's: {what}",
                hint="Other weights are named 'llama:FILE', or served by 'systemone:MODEL@URL'.",
            )
        self.vocabulary = self._lib.llama_model_get_vocab(self._model)
        self.marker = int(self._lib.llama_vocab_mask(self.vocabulary))
        self.separator = int(self._lib.llama_vocab_sep(self.vocabulary))
        self.window = int(self._lib.llama_model_n_ctx_train(self._model))
        self.head_tokens = int(self._fact(f"{self._prefix}max_head_tokens") or 0)
        self.template = Template(template.decode("utf-8", "replace"), self._control_texts())

    @cached_property
    def n_scores(self) -> int:
        """The numbers at each token."""
        count = getattr(self._lib, "llama_model_n_embd_out", None)
        return int(count(self._model)) if count is not None else 0

    def _fact(self, key: str) -> str:
        """A value of the file's metadata as text; '' without it."""
        buffer = ctypes.create_string_buffer(_LONGEST_TEXT)
        size = self._lib.llama_model_meta_val_str(self._model, key.encode(), buffer, _LONGEST_TEXT)
        return buffer.value.decode("utf-8", "replace") if size >= 0 else ""

    def _control_texts(self) -> frozenset[str]:
        lib, vocabulary = self._lib, self.vocabulary
        tokens = range(int(lib.llama_vocab_n_tokens(vocabulary)))
        control = filter(lambda token: lib.llama_vocab_is_control(vocabulary, token), tokens)
        texts = (lib.llama_vocab_get_text(vocabulary, token) for token in control)
        return frozenset(text.decode("utf-8", "replace") for text in texts)

    def temperature(self, kind: str, n_options: int) -> float:
        """The number by which the scores of a question are divided."""
        bucket = next((name for most, name in _BUCKETS if n_options <= most), "11")
        name = f"{self._prefix}temperature.{type_of(kind)}"
        return float(self._fact(f"{name}.{bucket}") or self._fact(name) or 1.0)

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text in which control tokens are named."""
        return tokens_of(self._lib, self.vocabulary, text, special=True)

    def scores(self, layout: Layout, kind: str, switch: Switch) -> list[float]:
        """The head's number for each option of a question. Raises Stopped."""
        self._open(len(layout.tokens), switch)
        lib, count = self._lib, len(layout.tokens)
        batch = lib.llama_batch_init(count, 0, 1)
        try:
            batch.n_tokens = count
            for place, token in enumerate(layout.tokens):
                batch.token[place], batch.pos[place] = token, place
                batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
                batch.logits[place] = 1
            code = lib.llama_encode(self._context, batch)
        finally:
            lib.llama_batch_free(batch)
        switch.check()
        if code:
            raise ModelFailed(f"llama.cpp cannot read a prompt: {reason() or f'code {code}'}")
        column = KINDS.index(kind)
        return [self._number(place, column) for place in layout.markers]

    def _number(self, place: int, column: int) -> float:
        found = self._lib.llama_get_embeddings_ith(self._context, place)
        if not found:
            raise ModelFailed("llama.cpp gave no number for an option")
        return float(found[column])

    def _open(self, tokens: int, switch: Switch) -> None:
        """A context in which so many tokens go at once, as an encoder needs it."""
        if self._context is None or tokens > self._cells:
            cells = min(self.window, max(_FIRST_CELLS, 1 << (tokens - 1).bit_length()))
            self._free_context()
            params = self._lib.llama_context_default_params()
            params.n_ctx = params.n_batch = params.n_ubatch = params.n_outputs_max = cells
            params.n_seq_max = 1
            params.n_threads = params.n_threads_batch = self._threads
            params.embeddings = True
            params.pooling_type = 0  # a number for each token
            params.no_perf = True
            self._context = self._lib.llama_init_from_model(self._model, params)
            if not self._context:
                raise ModelFailed(f"llama.cpp cannot open a context of {cells} tokens: {reason()}")
            self._cells = cells
        switch.connect(self._lib, self._context)

    def _free_context(self) -> None:
        if self._context:
            self._lib.llama_free(self._context)
        self._context = None

    def close(self) -> None:
        """Free context and weights; the object is of no use afterwards."""
        self._free_context()
        self._weights.close()


def probabilities(scores: Sequence[float], temperature: float) -> list[float]:
    """Probabilities of scores."""
    from math import exp

    highest = max(scores)
    powers = [exp((score - highest) / temperature) for score in scores]
    return [power / sum(powers) for power in powers]
