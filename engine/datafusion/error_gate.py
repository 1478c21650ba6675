"""Converts exceptions of DataFusion and Arrow to a BlendFusionError, with values hidden as
configured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import pyarrow as pa

from blendfusion.datafusion.error_translation import (
    REGEX_REMEDY,
    exists,
    form_error,
    missing_parameter,
    unfit,
    words,
)
from blendfusion.datafusion.file_errors import csv_error, extension_error, json_error
from blendfusion.datafusion.foreign_words import foreign, is_planning, text_of
from blendfusion.datafusion.scan_errors import scan_error
from blendfusion.errors import (
    BlendFusionError,
    ExecutionError,
    ModelError,
    QueryError,
    half_a_pair,
    show_values,
)
from blendfusion.redaction import WITHHELD, Redaction

_FUNCTION = re.compile(r"PyErr \{ type: <class '([\w.]+)'>, value: (.*?), traceback: ", re.DOTALL)
"""DataFusion's text of an exception in a Python function of the program."""
_MESSAGE = re.compile(r"""\w++\((['"])(.*)\1,?\)""", re.DOTALL)
"""An exception of one argument, a text."""
_NO_VALUE = re.compile(r"Placeholder '(\$\w+|\?)' was not provided a value")
_REMEDIES = {
    "Divide by zero": "nullif(x, 0) gives NULL in place of a zero.",
    "Cannot cast string": "TRY_CAST(… AS …) gives NULL for what cannot be cast.",
    "regex parse error": REGEX_REMEDY,
    "Scalar subquery returned more than one row": "IN (SELECT …) compares with each row, LIMIT 1 "
    "takes one.",
}
"""Remedies by a part of DataFusion's message."""
_NOT_WRITTEN = "encountered while finalizing writes"
"""A part of DataFusion's message."""
_MISUSE = (TypeError, AttributeError, NotImplementedError, ImportError, Warning)
"""Exceptions that Python raises for a wrong call, not for data."""


def outward(problem: BaseException, redaction: Redaction) -> BaseException:
    """The exception that the caller sees for ``problem``: itself, if it is an error of BlendFusion,
    no error (Ctrl-C, the end of an iteration), or an error of the program; of the last, its class
    alone where ``show_values`` is "off".

    What DataFusion and Arrow raise, and DataFusion's panics, become QueryError or ExecutionError.
    The exceptions behind an error leave with it as far as they say no more than may be seen."""
    if isinstance(problem, BlendFusionError):
        _withhold(problem, redaction)
        _seal(problem, redaction)
        return problem
    if not is_error(problem):
        return problem
    if is_foreign(problem):
        error = _translate(problem, redaction)
        if not error.hint:
            error.__cause__ = problem  # it says nothing else
            _seal(error, redaction)
        return error
    if redaction.show != "off" or isinstance(problem, _MISUSE):
        return problem
    return ExecutionError(
        f"code of the program raised {type(problem).__name__}", hint=show_values(redaction)
    )


@contextmanager
def running(redaction: Redaction, functions: str = "") -> Iterator[None]:
    """Raises exceptions of DataFusion and Arrow inside the block as ``outward`` translates them;
    others pass. ``functions``: the functions in the query that ask a model."""
    try:
        yield
    except BaseException as problem:
        if not is_error(problem) or not is_foreign(problem):
            raise
        raise unfit(str(problem), functions) or outward(problem, redaction) from None


def is_foreign(problem: BaseException) -> bool:
    """``problem`` comes from DataFusion, which raises Exception itself, or has panicked, or from
    Arrow."""
    if is_panic(problem) or isinstance(problem, pa.ArrowException):
        return True
    if isinstance(problem, (BlendFusionError, *_MISUSE)):
        return False
    # What DataFusion's own threads raise comes without a frame of its module.
    is_prefixed = str(problem).startswith(("DataFusion error: ", "Arrow error: "))
    return (type(problem) is Exception and is_prefixed) or _module(problem).startswith(
        ("datafusion", "pyarrow")
    )


def is_error(problem: BaseException) -> bool:
    """Whether ``problem`` is an error of the query, not the end of a program or an iteration."""
    if isinstance(problem, (StopIteration, StopAsyncIteration)):
        return False
    return isinstance(problem, Exception) or is_panic(problem)


def is_panic(problem: BaseException) -> bool:
    """DataFusion has met a mistake of its own, in the caller's thread (no Exception to Python) or
    while it awaits batches."""
    return type(problem).__name__ in ("PanicException", "RustPanic")


def _translate(problem: BaseException, redaction: Redaction) -> BlendFusionError:
    if isinstance(problem, UnicodeEncodeError):
        return half_a_pair(problem)
    carried = scan_error(text_of(problem))
    if carried is not None:
        return carried
    function = _FUNCTION.search(text_of(problem))
    if function is not None:
        raised = function[2] if redaction.shows_all else _without_values(function, redaction)
        return ExecutionError(
            f"a function of the program raised {raised}", hint=show_values(redaction) or None
        )
    if _NOT_WRITTEN in text_of(problem):
        return ExecutionError(
            "the rows could not be written there, or not all of them",
            hint="Is it a path that you may write to, below a folder, and has the disk room?",
        )
    second = exists(text_of(problem))
    if second is not None:
        return second
    parameter = _NO_VALUE.search(text_of(problem))
    if parameter is not None:
        return missing_parameter(parameter[1])
    cause = text_of(problem).rpartition("\ncaused by\n")[2]
    form = form_error(cause) if is_planning(cause) else None
    if form is not None:
        return form
    line = extension_error(text_of(problem)) or csv_error(text_of(problem), redaction)
    line = line or json_error(text_of(problem), redaction)
    if line is not None:
        return line
    original = words(text_of(problem))
    shown = words(foreign(text_of(problem), redaction))
    remedy = show_values(redaction) if shown != original else ""
    known = next((hint for part, hint in _REMEDIES.items() if part in original), "")
    hint = f"{known} {remedy}".strip() or None
    if is_planning(text_of(problem)) or isinstance(problem, (KeyError, OSError)):
        return QueryError(shown, hint=hint)
    return ExecutionError(shown, hint=hint)


def _without_values(function: re.Match[str], redaction: Redaction) -> str:
    """The class of the exception that ``_FUNCTION`` found, and the words of its message that are no
    values; where ``show_values`` is "off", the class alone."""
    kind = function[1].rpartition(".")[2]
    message = _MESSAGE.fullmatch(function[2])
    shown = foreign(message[2], redaction) if message and redaction.show != "off" else WITHHELD
    return kind if shown == WITHHELD else f"{kind}: {shown}"


def _withhold(error: BlendFusionError, redaction: Redaction) -> None:
    """Show what ``error`` and the errors behind it quote of a server or of another package as
    values are shown; where ``show_values`` is "auto", as the text of the program's own
    exceptions is."""
    if redaction.show != "off" and redaction.redact is None:
        return
    for one in _behind(error):
        if isinstance(one, ModelError) and one.foreign:
            one.reword(redaction.reason(one.message), one.hint and one.hint.map(redaction.reason))


def _seal(error: BaseException, redaction: Redaction) -> None:
    """Remove the causes of ``error`` whose messages hold withheld values."""
    if redaction.shows_all:
        return
    for one in _behind(error):
        if _tells(one.__cause__, redaction):
            one.__cause__ = None
        if _tells(one.__context__, redaction):
            one.__context__ = None


def _behind(error: BaseException) -> Iterator[BaseException]:
    """``error`` and the exceptions behind it, each before those behind it are looked up."""
    seen: set[int] = set()  # exceptions may stand behind one another in a circle
    waiting = [error]
    while waiting:
        one = waiting.pop()
        seen.add(id(one))
        yield one
        behind = (one.__cause__, one.__context__)
        waiting += [e for e in behind if e is not None and id(e) not in seen]


def _tells(behind: BaseException | None, redaction: Redaction) -> bool:
    if behind is None or isinstance(behind, BlendFusionError):
        return False
    return foreign(text_of(behind), redaction) != text_of(behind)


def _module(problem: BaseException) -> str:
    """The module in which an exception was raised."""
    trace: TracebackType | None = problem.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", ""))
