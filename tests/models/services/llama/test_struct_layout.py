"""Layouts of llama.cpp's structs: two are known, all others are refused."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from blendfusion.models.services.llama.shared_library import Unfit
from blendfusion.models.services.llama.struct_layout import (
    _BEFORE_FLAGS,
    _FLAGS,
    _with_gap,
    flags_at,
)

TAIL = bytes(26)


def defaults(*, gap: int = 16, before: bytes = _BEFORE_FLAGS, flags: bytes = _FLAGS) -> bytes:
    """The default parameters of a library with ``gap`` bytes between type_v and its flags."""
    return (before + bytes(gap) + flags + TAIL).ljust(512, b"\0")


@pytest.mark.parametrize(("gap", "offset"), [(16, 128), (24, 136), (32, 144)])
def test_flags_are_found(gap: int, offset: int) -> None:
    assert flags_at(defaults(gap=gap)) == offset


def test_what_padding_holds_does_not_matter() -> None:
    said = bytearray(defaults())
    said[134:136] = b"\xa5\xa5"
    assert flags_at(bytes(said)) == 128


@pytest.mark.parametrize(
    "other",
    [
        defaults(flags=bytes([1, 1, 1, 1, 1, 0])),
        defaults(flags=bytes([0, 1, 1, 1, 1, 1])),
        defaults(gap=8),
        defaults(gap=80),
        defaults(gap=12),
        defaults(before=_BEFORE_FLAGS[4:]),
        defaults(before=b"\1\0\0\0" + _BEFORE_FLAGS),
        defaults(before=_BEFORE_FLAGS.replace(b"\0\2\0\0", b"\0\4\0\0")),
        bytes(512),
        b"\xff" * 512,
    ],
)
def test_others_are_refused(other: bytes) -> None:
    with pytest.raises(Unfit, match="llama_context_params has another layout"):
        flags_at(other)


def test_one_changed_byte_is_seen() -> None:
    known = defaults()
    for place in range(len(_BEFORE_FLAGS) + 16 + len(_FLAGS)):
        other = bytearray(known)
        other[place] ^= 0x40
        with pytest.raises(Unfit):
            flags_at(bytes(other))


class Declared(ctypes.Structure):
    _fields_ = (
        ("n_ctx", ctypes.c_uint32),
        ("embeddings", ctypes.c_bool),
        ("last", ctypes.c_void_p),
    )


def test_a_gap_moves_the_flags_and_what_follows() -> None:
    wider: Any = _with_gap(Declared, 12)
    assert (wider.n_ctx.offset, wider.embeddings.offset, wider.last.offset) == (0, 12, 16)
    with pytest.raises(Unfit, match="shorter"):
        _with_gap(Declared, 0)


@pytest.mark.local
def test_the_bindings_fit_the_library() -> None:
    from blendfusion.models.services.llama.library import library

    lib = library()
    params = lib.llama_context_default_params()
    assert [params.n_ctx, params.n_batch, params.type_v] == [512, 2048, 1]
    flags = ("embeddings", "offload_kqv", "no_perf", "op_offload", "swa_full", "kv_unified")
    assert [getattr(params, name) for name in flags] == [False, True, True, True, True, False]
    assert SimpleNamespace(type=type(params)).type is lib.llama_context_params
