"""Lets every exception leave a session or a frame through ``error_gate.outward``."""

from __future__ import annotations

import inspect
import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from blendfusion.errors import QueryError
from blendfusion.redaction import Redaction

T = TypeVar("T")

_SPECIAL = (
    "__arrow_c_stream__",
    "__aiter__",
    "__getitem__",
    "__iter__",
    "__next__",
    "__repr__",
    "_repr_html_",
)
"""Methods that anybody calls, whatever their names begin with."""
_NO_PATH = re.compile(r"os\.PathLike object.* not '?(\w+)'?")
"""The words of Python about a value in the place of a path."""


def gate_errors(
    redaction: Callable[[Any], Redaction],
    point: Callable[[Any, BaseException], object] = lambda gated, error: None,
) -> Callable[[type[T]], type[T]]:
    """A decorator of a class: every public method, also an inherited one, raises through
    ``outward``. ``redaction`` tells the rule of an object of the class; ``point`` gives an error of
    an object its place in the query."""

    def decorate(kind: type[T]) -> type[T]:
        members = ChainMap(*(dict(vars(base)) for base in kind.__mro__))
        for name, method in members.items():
            is_public = not name.startswith("_") or name in _SPECIAL
            if not is_public or not isinstance(method, FunctionType):
                continue
            if not inspect.iscoroutinefunction(method):  # it waits for another, which is gated
                setattr(kind, name, _guard(method, redaction, point))
        return kind

    return decorate


def _guard(
    method: Callable[..., T],
    redaction: Callable[[Any], Redaction],
    point: Callable[[Any, BaseException], object],
) -> Callable[..., T]:
    @wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> T:
        try:
            return method(self, *args, **kwargs)
        except BaseException as problem:
            from blendfusion.datafusion.error_gate import outward

            error = outward(_path_error(problem, (*args, *kwargs.values())), redaction(self))
            point(self, error)
            if error is problem:
                raise
        # Outside of the handler: what was caught would stay behind the error as its context.
        raise error

    return call


def _path_error(problem: BaseException, given: Iterable[object]) -> BaseException:
    """The exception of a call, or QueryError where Python says that what was given is no path."""
    found = _NO_PATH.search(str(problem)) if isinstance(problem, TypeError) else None
    kinds = {type(one).__name__ for one in given if not isinstance(one, str | os.PathLike)}
    if found is None or found[1] not in kinds:
        return problem
    return QueryError(
        f"a {found[1]} is no path",
        hint="One path may be a folder or a pattern of several files: "
        "session.register_file('logs/*.parquet', 'logs').",
    )
