"""Where a library of llama.cpp keeps the fields of the structs that are passed to it by value.

The bindings declare them for one version of the library. Another version may have a field more,
and a value that lands in a wrong field changes answers without an error. So the defaults, which the
library itself gives, are read as bytes and compared with those that are known.
"""

from __future__ import annotations

import ctypes
from typing import Any

from blendfusion.models.services.llama.shared_library import Unfit

_ROOM = 512
"""Bytes for a struct, more than any of them has."""
_BEFORE_FLAGS = bytes.fromhex(
    "0002000000080000 0002000001000000 0000000000000000 0100000004000000 0400000000000000"
    "ffffffffffffffff ffffffffffffffff 0000000000000000 000080bf000080bf 000080bf000080bf"
    "00000000000080bf 0000000000000000 0000000000000000 0100000001000000"
)
"""llama_context_params from n_ctx to type_v, 112 bytes: 512, 2048, 512, 1, 0, 0, 0 (n_outputs_max
and per sequence: 1), 4 and 4 threads, the enums unset, the factors of RoPE and YaRN, no callback,
F16 twice."""
_FLAGS = bytes([0, 1, 1, 1, 1, 0])
"""embeddings, offload_kqv, no_perf, op_offload, swa_full, kv_unified."""
_MODEL = bytes.fromhex(
    "0000000000000000 0000000000000000 ffffffff01000000 ffffffff01000000 0000000000000000"
    "0000000000000000 0000000000000000 0000000000000000 0000000000000000 000001000000"
)
"""llama_model_params up to load_mtp: all layers, split by layer, use_extra_bufts."""
_MODEL_PADDING = slice(36, 40)
"""Bytes of llama_model_params that belong to no field, behind main_gpu."""


class _Raw(ctypes.Structure):
    """Room for a struct of any layout. Structs of more than 16 bytes are returned by their address,
    so that more room than needed does no harm."""

    _fields_ = (("bytes", ctypes.c_uint8 * _ROOM),)


def fit_layout(lib: Any) -> None:
    """Make the bindings ``lib`` pass structs as their library lays them out.

    Raises Unfit if the layout is not known."""
    model = bytearray(_defaults(lib.llama_model_default_params))
    model[_MODEL_PADDING] = bytes(4)
    if not model.startswith(_MODEL):
        raise Unfit("its llama_model_params has another layout than those known")
    flags = flags_at(_defaults(lib.llama_context_default_params))
    declared = lib.llama_context_params
    if flags != declared.embeddings.offset:
        _declare(lib, _with_gap(declared, flags))


def flags_at(defaults: bytes) -> int:
    """The offset of ``embeddings`` in the default context parameters, given as bytes.

    Raises Unfit unless all that is before and after it is as known."""
    if defaults.startswith(_BEFORE_FLAGS):
        for offset in range(len(_BEFORE_FLAGS) + 16, len(_BEFORE_FLAGS) + 48, 8):
            between = defaults[len(_BEFORE_FLAGS) : offset]
            after = defaults[offset + 8 : offset + 32]  # two bytes of padding are left out
            if defaults[offset : offset + len(_FLAGS)] == _FLAGS and not any(between + after):
                return offset
    raise Unfit("its llama_context_params has another layout than those known")


def _defaults(function: Any) -> bytes:
    """The struct that a function without arguments returns, as ``_ROOM`` bytes."""
    result: Any = ctypes.CFUNCTYPE(_Raw)(ctypes.cast(function, ctypes.c_void_p).value or 0)
    return bytes(result().bytes)


def _with_gap(declared: Any, flags: int) -> Any:
    """``declared`` with unnamed bytes before its flags, which then begin at ``flags``."""
    names = [name for name, _ in declared._fields_]
    before = names.index("embeddings")
    gap = flags - declared.embeddings.offset
    if gap < 0:
        raise Unfit("its llama_context_params is shorter than those known")
    fields = list(declared._fields_)
    fields.insert(before, ("_gap", ctypes.c_uint8 * gap))
    return type(declared.__name__, (ctypes.Structure,), {"_fields_": fields})


def _declare(lib: Any, params: Any) -> None:
    lib.llama_context_default_params.restype = params
    arguments = list(lib.llama_init_from_model.argtypes)
    lib.llama_init_from_model.argtypes = [
        params if a is lib.llama_context_params else a for a in arguments
    ]
    lib.llama_context_params = lib.llama_cpp.llama_context_params = params
