"""Ends a computation of llama.cpp from any thread."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from blendfusion.errors import ModelFailed


class Interruption(ModelFailed):
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
    def is_stopped(self) -> bool:
        return bool(self._stop_flag.value)

    def check(self) -> None:
        """Raise Stopped if somebody wants to stop."""
        if self._stop_flag.value:
            raise Interruption

    def connect(self, lib: Any, context: Any) -> None:
        """Have a context of llama.cpp look here while it computes."""
        strlen = (ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)).strlen
        ask = ctypes.cast(strlen, lib.llama_cpp.ggml_abort_callback)
        lib.llama_set_abort_callback(context, ask, ctypes.cast(self._stop_flag, ctypes.c_void_p))
