"""Errors of scans in Python. They pass through DataFusion as text with a number, by which the error
itself is found again."""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import count
from threading import Lock

from blendfusion.errors import BlendFusionError

_MOST = 100
_NUMBER = re.compile(r"blendfusion scan error (\d+)")
_numbers = count(1)
_lock = Lock()
_errors: OrderedDict[int, BlendFusionError] = OrderedDict()


class ScanError(Exception):
    """The exception that DataFusion sees in place of an error."""

    def __init__(self, error: BlendFusionError) -> None:
        with _lock:
            number = next(_numbers)
            _errors[number] = error
            while len(_errors) > _MOST:
                _errors.popitem(last=False)
        super().__init__(f"blendfusion scan error {number}")


def scan_error(text: str) -> BlendFusionError | None:
    """The error that a text of DataFusion stands for, once; None for any other text."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    with _lock:
        return _errors.pop(int(found[1]), None)
