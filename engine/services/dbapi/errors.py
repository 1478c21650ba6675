"""The exceptions of DB-API, and which of BlendFusion's errors each stands for."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager

from blendfusion.errors import (
    AnswerError,
    BlendFusionError,
    BudgetExceeded,
    ExecutionError,
    ModelError,
    NotConfirmed,
    OptionError,
    PlanError,
    ProcessError,
    QueryError,
)


class Warning(builtins.Warning):  # noqa: A001 - the name of PEP 249
    """An important warning."""


class Error(Exception):
    """The base of all errors of this interface."""


class InterfaceError(Error):
    """The interface is used wrongly: a cursor is closed, an option is unknown."""


class DatabaseError(Error):
    """The base of errors that the engine reports."""


class DataError(DatabaseError):
    """A value could not be processed: a division by zero, a cast, an answer."""


class OperationalError(DatabaseError):
    """A model is missing or fails, or a budget is spent."""


class IntegrityError(DatabaseError):
    """A violated constraint. DB-API asks for the class; nothing here raises it."""


class InternalError(DatabaseError):
    """The engine met what it does not understand."""


class ProgrammingError(DatabaseError):
    """The text of a query is wrong, or names what does not exist."""


class NotSupportedError(DatabaseError):
    """The engine does not support what was requested."""


_ERRORS: tuple[tuple[type[BlendFusionError], type[Error]], ...] = (
    (QueryError, ProgrammingError),
    (ExecutionError, DataError),
    (AnswerError, DataError),
    (OptionError, InterfaceError),
    (ProcessError, InterfaceError),
    (ModelError, OperationalError),
    (BudgetExceeded, OperationalError),
    (NotConfirmed, OperationalError),
    (PlanError, InternalError),
)


@contextmanager
def translate() -> Iterator[None]:
    """Raise the errors of DB-API in place of BlendFusion's, which are their causes."""
    try:
        yield
    except BlendFusionError as problem:
        kind = next((k for own, k in _ERRORS if isinstance(problem, own)), DatabaseError)
        raise kind(str(problem)) from problem
