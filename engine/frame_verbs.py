"""Methods of DataFrame as methods of Frame: those that build a frame, and those that write one."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from datafusion import DataFrame

from blendfusion.datafusion.interruptible import Pump

if TYPE_CHECKING:
    from blendfusion.frame import Frame

P = ParamSpec("P")


def verb(
    inherited: Callable[Concatenate[DataFrame, P], DataFrame],
) -> Callable[Concatenate[Frame, P], Frame]:
    """Wraps a method of DataFrame that builds another, so that it builds a Frame."""

    def build(self: Frame, /, *args: P.args, **kwargs: P.kwargs) -> Frame:
        return self._next(inherited, *args, **kwargs)

    return update_wrapper(build, inherited)


def writer(
    inherited: Callable[Concatenate[DataFrame, P], None],
) -> Callable[Concatenate[Frame, P], None]:
    """Wraps a method of DataFrame that writes rows, so that it writes the result of a Frame."""

    def write(self: Frame, /, *args: P.args, **kwargs: P.kwargs) -> None:
        result = self._result()
        Pump().call(lambda: inherited(result, *args, **kwargs))

    return update_wrapper(write, inherited)
