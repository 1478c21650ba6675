"""A digest of a Python function: equal ones compute the same, as far as its own code tells."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from hashlib import sha256
from types import CodeType
from typing import Any

_PROCESS = uuid.uuid4().hex
_PLAIN = (str, int, float, bool, bytes, type(None))


def code_digest(function: Callable[..., Any]) -> str:
    """The digest of the code, the constants, the defaults and the plain variables of a closure.

    A closure over anything else, and an object without code, has a digest of its own in each
    process: nobody can tell whether it means the same in the next one."""
    code = getattr(function, "__code__", None)
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    parts = [
        _PROCESS + repr(id(function)) if code is None else _text(code),
        repr(getattr(function, "__defaults__", None)),
        repr(getattr(function, "__kwdefaults__", None)),
        *(repr(c) if isinstance(c, _PLAIN) else _PROCESS + repr(id(c)) for c in cells),
    ]
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _text(code: CodeType) -> str:
    constants = [
        _text(c)
        if isinstance(c, CodeType)
        else repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c)
        for c in code.co_consts
    ]
    return repr((code.co_code, code.co_names, code.co_varnames, constants))
