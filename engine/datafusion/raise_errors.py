"""What goes wrong while a query runs, in the words of DataFusion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from blendfusion.datafusion.error_translation import words
from blendfusion.errors import ExecutionError
from blendfusion.redaction import Redaction


@contextmanager
def running(redaction: Redaction) -> Iterator[None]:
    """Raise what DataFusion raises meanwhile as ExecutionError: it quotes values, so they are shown as
    ``redaction`` says. What others raise (a model, a user's function) passes."""
    try:
        yield
    except BaseException as problem:
        if not is_datafusions(problem):
            raise
        said = words(str(problem))
        shown = redaction.reason(said)
        if shown == said:
            raise ExecutionError(said) from problem
        # The cause would tell what the message does not.
        raise ExecutionError(shown, hint=redaction.remedy or None) from None


def is_datafusions(problem: BaseException) -> bool:
    """``problem`` comes from DataFusion, which raises Exception itself, or has panicked."""
    if type(problem).__name__ == "PanicException":
        return True
    if type(problem) is not Exception:
        return False
    # What its own threads raise comes without a frame of its module.
    said = str(problem).startswith(("DataFusion error: ", "Arrow error: "))
    return said or _module(problem.__traceback__).startswith("datafusion.")


def _module(trace: TracebackType | None) -> str:
    """The module in which an exception was raised."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", ""))
