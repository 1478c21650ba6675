"""Steps of attention as llama.cpp's graphs have them, made by hand and put to the compiled
kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Self

import numpy as np

ATTENTION, SET_ROWS = 7, 5
F32, F16, I64 = 0, 1, 27
COMPARED = 4
"""Steps that are computed by llama.cpp as well, at first."""
SCALE = 0.125


class Tensor(ctypes.Structure):
    """As ggml.h has it."""


Tensor._fields_ = (
    ("type", ctypes.c_int32),
    ("buffer", ctypes.c_void_p),
    ("sizes", ctypes.c_int64 * 4),
    ("steps", ctypes.c_size_t * 4),
    ("op", ctypes.c_int32),
    ("params", ctypes.c_float * 16),
    ("flags", ctypes.c_int32),
    ("sources", ctypes.POINTER(Tensor) * 10),
    ("viewed", ctypes.POINTER(Tensor)),
    ("view_offset", ctypes.c_size_t),
    ("data", ctypes.c_void_p),
    ("name", ctypes.c_char * 64),
    ("extra", ctypes.c_void_p),
    ("padding", ctypes.c_char * 8),
)


def tensor(array: np.ndarray, kind: int) -> Tensor:
    """Of an array, whose last axis is ggml's first."""
    made = Tensor(type=kind, data=array.ctypes.data)
    shape, steps = array.shape[::-1], array.strides[::-1]
    for axis in range(4):
        made.sizes[axis] = shape[axis] if axis < len(shape) else 1
        made.steps[axis] = steps[axis] if axis < len(steps) else array.nbytes
    return made


class Steps:
    """The attention of a context that was opened by hand."""

    def __init__(self, kernel: ModuleType, *, lanes: int, threads: int = 2) -> None:
        self._kernel = kernel
        self._handle = kernel.create(threads, lanes, ATTENTION, SET_ROWS, F32, F16, I64)
        kind = ctypes.CFUNCTYPE(
            ctypes.c_bool, ctypes.POINTER(Tensor), ctypes.c_bool, ctypes.c_void_p
        )
        self._observe: Callable[..., bool] = kind(kernel.observe)
        self._store = Tensor()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._kernel.close(self._handle)

    def write(self, cells: Sequence[int]) -> None:
        """A batch begins, whose tokens go to these cells."""
        places = np.array(cells, np.int64)
        node = Tensor(type=F16, op=SET_ROWS, viewed=ctypes.pointer(self._store))
        node.sources[1] = ctypes.pointer(tensor(places, I64))
        assert not self._observe(ctypes.byref(node), True, self._handle)

    def attend(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        visible: np.ndarray,
        theirs: np.ndarray | None = None,
        **said: object,
    ) -> np.ndarray | None:
        """What ``reference.attention`` specifies; None where it is left to llama.cpp, which computes
        ``theirs``.
        ``said``: fields of the step that are otherwise."""
        tokens, heads, dims = queries.shape
        q = np.ascontiguousarray(queries.astype(np.float32).transpose(1, 0, 2))
        k, v = (np.ascontiguousarray(held.astype(np.float16)) for held in (keys, values))
        mask = np.where(visible, 0.0, -np.inf).astype(np.float16)
        out = np.full((tokens, heads, dims), np.nan, np.float32)
        if theirs is not None:
            out[:] = theirs
        node = tensor(out, F32)
        node.op, node.params[0] = ATTENTION, SCALE
        views = [tensor(held.transpose(1, 0, 2), F16) for held in (k, v)]
        views[0].viewed = ctypes.pointer(self._store)
        sources = [tensor(q, F32), *views, tensor(mask, F16)]
        for place, source in enumerate(sources):
            node.sources[place] = ctypes.pointer(source)
        for name, value in said.items():
            setattr(node, name, value)
        if not self._observe(ctypes.byref(node), True, self._handle):
            assert node.op == ATTENTION
            return None
        assert node.op == (ATTENTION if theirs is not None else 0)
        assert self._observe(ctypes.byref(node), False, self._handle)
        assert node.op == ATTENTION
        return out

    def trust(self) -> None:
        """Let it compute what llama.cpp computes as well, until it is believed."""
        one = np.ones((1, 1, 16), np.float32)
        for _ in range(COMPARED):
            self.write([0])
            assert self.attend(one, one, one, np.ones((1, 1), bool), theirs=one) is not None

    def settle(self) -> int:
        return int(self._kernel.settle(self._handle))
