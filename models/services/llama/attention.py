"""Replaces attention in llama.cpp's graphs on a CPU: faster for many short rows, and independent of
the batch.

``native/attention.cpp`` computes it, step by step as llama.cpp's ``cb_eval`` lets it. Whether its
assumptions about ggml's tensors hold is seen from some that ggml itself makes here; the first steps
of each context it compares with llama.cpp's own. Wherever something is otherwise, llama.cpp goes on
alone."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from operator import mul
from typing import Any, cast

from blendfusion.errors import ModelFailed

try:
    from blendfusion.native import _attention
except ImportError:  # no compiler when it was installed
    _attention = None  # type: ignore[assignment]

ATTENTION_VERSION = 1
"""Version of the arithmetic: other sums may change answers at near-ties."""
_SWITCH = "BLENDFUSION_ATTENTION"


def attends() -> bool:
    """Whether it is installed, this processor is one that it was written for, and it is not
    switched off."""
    return (
        _attention is not None and _attention.lanes > 0 and os.environ.get(_SWITCH) != "llama.cpp"
    )


class Attention:
    """The attention of one context of llama.cpp."""

    def __init__(self, threads: int, operations: tuple[int, int]) -> None:
        self._handle = _attention.create(threads, _attention.lanes, *operations, _F32, _F16, _I64)

    def connect(self, params: Any) -> None:
        """Have the context that is opened with ``params`` compute it so."""
        params.cb_eval = ctypes.cast(_attention.observe, type(params.cb_eval))
        params.cb_eval_user_data = self._handle

    def settle(self) -> bool:
        """To be called after each call of llama.cpp that computed or was stopped: whether all
        attention so far was computed here. Raises ModelFailed if there was no memory for it."""
        became = _attention.settle(self._handle)
        if became < 0:
            raise ModelFailed("there is no memory for attention", hint="Set a smaller n_ctx.")
        return became > 0

    def close(self) -> None:
        """The context is gone, or was not opened."""
        if self._handle:
            _attention.close(self._handle)
            self._handle = 0


def attention(threads: int) -> Attention | None:
    """For a context on a CPU that is to be opened; None where llama.cpp's own should do."""
    operations = _operations() if attends() else None
    return None if operations is None else Attention(threads, operations)


_F32, _F16, _I64 = 0, 1, 27
"""Types of tensors, as GGUF files number them."""
_DIMS, _TOKENS, _HEADS, _CELLS, _KV_HEADS = 32, 3, 6, 10, 2
"""Dimensions of the test attention in ggml, all distinct."""
_SCALE = 0.5


@cache
def _operations() -> tuple[int, int] | None:
    """The numbers of attention, and of the step that writes cells; None if ggml's tensors are not
    as assumed."""
    try:
        from llama_cpp._ggml import libggml

        return _find_operations(libggml)
    except (ImportError, AttributeError, OSError):  # a build of another kind
        return None


def _find_operations(ggml: Any) -> tuple[int, int] | None:
    context = _function(ggml.ggml_init, _Memory)(_Memory(1 << 20, None, False))
    if not context:
        return None
    try:
        return _compare_tensors(ggml, context)
    finally:
        _function(ggml.ggml_free, ctypes.c_void_p)(context)


def _compare_tensors(ggml: Any, context: int) -> tuple[int, int] | None:
    pointer = ctypes.c_void_p
    name = _function(ggml.ggml_get_name, pointer)
    data = _function(ggml.ggml_get_data, pointer)
    operation = _function(ggml.ggml_op_desc, pointer, result=ctypes.c_char_p)
    new = _function(ggml.ggml_new_tensor_4d, pointer, ctypes.c_int, *4 * [ctypes.c_int64])
    set_rows = _function(ggml.ggml_set_rows, *4 * [pointer])
    attend = _function(ggml.ggml_flash_attn_ext, *5 * [pointer], *3 * [ctypes.c_float])

    q = new(context, _F32, _DIMS, _TOKENS, _HEADS, 1)
    k, v = (new(context, _F16, _DIMS, _CELLS, _KV_HEADS, 1) for _ in range(2))
    mask = new(context, _F16, _CELLS, _TOKENS, 1, 1)
    attention = attend(context, q, k, v, mask, _SCALE, 0.0, 0.0)
    store, rows = (new(context, kind, _DIMS, _CELLS, 1, 1) for kind in (_F16, _F32))
    places = new(context, _I64, _CELLS, 1, 1, 1)
    written = set_rows(context, store, rows, places)
    made = {
        attention: (b"FLASH_ATTN_EXT", _F32, (_DIMS, _HEADS, _TOKENS, 1), 4),
        written: (b"SET_ROWS", _F16, (_DIMS, _CELLS, 1, 1), 2),
        q: (b"NONE", _F32, (_DIMS, _TOKENS, _HEADS, 1), 4),
        k: (b"NONE", _F16, (_DIMS, _CELLS, _KV_HEADS, 1), 2),
        places: (b"NONE", _I64, (_CELLS, 1, 1, 1), 8),
    }
    seen = {tensor: _attention.describe(tensor) for tensor in made}
    for tensor, (called, kind, sizes, size) in made.items():
        steps = tuple(size * count for count in accumulate((1, *sizes[:3]), mul))
        believed = (kind, sizes, steps, name(tensor), data(tensor))
        if operation(tensor) != called or believed != tuple(
            seen[tensor][what] for what in ("type", "sizes", "steps", "name", "data")
        ):
            return None
    plain = {seen[tensor]["op"] for tensor in (q, k, places)}
    holds = (
        plain == {0}
        and seen[attention]["sources"] == (q, k, v, mask, 0)
        and seen[attention]["scale"] == _SCALE
        and seen[written]["sources"][:2] == (rows, places)
        and seen[written]["viewed"] == store
    )
    return (seen[attention]["op"], seen[written]["op"]) if holds else None


class _Memory(ctypes.Structure):
    """The parameters of ``ggml_init``."""

    _fields_ = (("size", ctypes.c_size_t), ("at", ctypes.c_void_p), ("only_shapes", ctypes.c_bool))


def _function(function: Any, *arguments: Any, result: Any = ctypes.c_void_p) -> Callable[..., Any]:
    """A function of ggml with its types, apart from what others say of it."""
    return cast(
        "Callable[..., Any]",
        ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0),
    )
