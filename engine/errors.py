"""The tree of errors, each written for the person who meets it.

BlendFusionError
├── QueryError            the text of a query or a call is wrong (before any model call)
│   └── ArgumentError     an argument of an ingredient is wrong
├── ExecutionError        the query failed on its data while it ran: a division by zero, a cast
├── OptionError           a setting of a session is unknown or out of range
├── ProcessError          a session or frame is used in another process than its own
├── ModelError            something about a model
│   ├── ModelNotFound     no such model, file, back end or weights (before any model call)
│   └── ModelFailed       the model could not answer; ``retryable`` says whether to try again
├── AnswerError           a value got no valid answer and the call says on_error => 'raise'
├── BudgetExceeded        a limit of a budget is reached; what was answered is kept
├── NotConfirmed          a query that confirm_above asks about was not confirmed (before any model
call) └── PlanError             the planner met a plan that it does not understand (never seen by a
user: the plain path takes over, and EXPLAIN says why)

CacheWarning (a UserWarning) says that a file of stored answers could not be used, ModelWarning that
one of several models was left out, PlanWarning that a query runs without the planner for a type,
ConflictWarning that answers about pairs of values contradict one another, MatchWarning that matches
may be missed among equally similar values, FileWarning how files were read.
"""

from __future__ import annotations

import difflib
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Literal

from blendfusion.redaction import Redaction, printable
from blendfusion.types import Usage

Surface = Literal["python", "command", "page"]
"""The front end that words a remedy: a program, the command line, the local page."""

_FORM = re.compile("\ue000([^\ue000-\ue002]*)\ue001([^\ue000-\ue002]*)\ue002")
_OF_COMMANDS = "model embedder cache cluster confirm_above show_values read_only read_files".split()
"""Settings of a session that are options of the command line by their own names."""


def by_surface(python: str, command: str) -> str:
    """A remedy as a part of a hint: each front end shows its own words."""
    return f"\ue000{python}\ue001{command}\ue002"


def show_values(redaction: Redaction) -> str:
    """A sentence of a hint on how to show hidden values; '' if nothing is hidden."""
    return redaction.remedy_by(by_surface("show_values='on'", "--show-values on"))


def connect_with(*models: str, **settings: object) -> str:
    """The remedy that a session is opened with these models, a chain if there are several, and
    these settings."""
    first = [repr(models[0])] if len(models) == 1 else [repr([*models])] if models else []
    python = ", ".join([*first, *(f"{name}={value!r}" for name, value in settings.items())])
    command = [f"--model {model}" for model in models]
    for name, value in settings.items():
        known = name in _OF_COMMANDS
        command.append(
            f"--{name.replace('_', '-')} {value}" if known else f"--option {name}={value}"
        )
    return by_surface(f"bf.connect({python})", " ".join(command))


def limit_spending(**limits: float) -> str:
    """The remedy that a run gets a budget."""
    given = ",".join(f"{name}={limit:g}" for name, limit in limits.items())
    return by_surface(f"budget=bf.Budget({given.replace(',', ', ')})", f"--budget {given}")


def table_of(path: str, name: str = "") -> str:
    """The remedy that a file becomes a table."""
    python = f"{path!r}, {name!r}" if name else repr(path)
    return by_surface(
        f"session.register_file({python})", f"--table {f'{name}=' * bool(name)}{path}"
    )


_GENERATED_NAME = re.compile(r"c[0-9a-f]{32}")
"""Names that DataFusion gives to tables without one: nobody typed them."""


def given_names(names: Iterable[str]) -> list[str]:
    """The names that a person gave, in order: those that DataFusion generates are left out."""
    return sorted(name for name in set(names) if not _GENERATED_NAME.fullmatch(name))


class Hint(str):
    """The remedy of an error, in the words of Python, and in those of the command line. The page of
    ``blendfusion ui`` has the options of the command line."""

    command: str

    @classmethod
    def read(cls, text: str) -> Hint:
        """The hint of a text with parts by surface; another hint as it is."""
        if isinstance(text, Hint):
            return text
        hint = cls(printable(_FORM.sub(r"\1", text)))
        hint.command = printable(_FORM.sub(r"\2", text))
        return hint

    def on(self, surface: Surface) -> str:
        """The words for a front end."""
        return str(self) if surface == "python" else self.command

    def map(self, change: Callable[[str], str]) -> Hint:
        """The hint with its words changed in all front ends."""
        hint = Hint(change(str(self)))
        hint.command = change(self.command)
        return hint


class BlendFusionError(Exception):
    """Base of all errors of BlendFusion: the problem, the valid alternatives, the remedy.

    ``hint`` is printed on a line of its own.
    """

    excerpt: str = ""
    """Lines that point at the mistake in what a person typed: a terminal shows them."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.reword(message, hint)

    def reword(self, message: str, hint: str | None) -> None:
        """Replace the message and the hint."""
        self.message = printable(message)
        self.hint: Hint | None = None if hint is None else Hint.read(hint)
        whole = self.message if self.hint is None else f"{self.message}\nHint: {self.hint}"
        self.args = (whole,)

    def print(self, surface: Surface = "command") -> None:
        """Print the message and the hint on standard error, in place of a traceback; on a terminal,
        lines are broken between words."""
        hint = [fit_terminal(f"Hint: {self.hint.on(surface)}")] if self.hint else []
        place = [self.excerpt] * bool(self.excerpt and sys.stderr.isatty())
        print("\n".join([fit_terminal(f"error: {self.message}"), *place, *hint]), file=sys.stderr)

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows: the error and its hint, without DataFusion's own."""
        return [f"{type(self).__name__}: {self.message}"] + [f"Hint: {self.hint}"] * bool(self.hint)


def fit_terminal(text: str) -> str:
    """``text`` in lines as wide as the terminal; unchanged where standard error is none."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapper.fill(line) for line in text.split("\n"))


class QueryError(BlendFusionError):
    """The text of a query is wrong; raised before any model call."""

    span: tuple[int, int] | None = None
    """The position in the text of the query, if known: offsets of the first character, and one past
    the last."""


class ArgumentError(QueryError):
    """An argument of an ingredient is wrong; raised before any model call."""


class ExecutionError(BlendFusionError):
    """The query failed on its data while it ran, with DataFusion's message: a division by zero, a
    value that cannot be cast. The answers so far are kept."""

    span: tuple[int, int] | None = None
    """The position in the text of the query of what failed, if known: see ``QueryError``."""


class OptionError(BlendFusionError):
    """A setting of a session is unknown or out of range."""


class ProcessError(BlendFusionError):
    """A session or frame was used in a fork of its process, or pickled."""


class ModelError(BlendFusionError):
    """An error of a model.

    ``retryable``: the same request may succeed later. ``foreign``: message and hint quote words of
    a server or of another package, which may hold values.
    """

    retryable = False

    def __init__(self, message: str, *, hint: str | None = None, foreign: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.foreign = foreign


class ModelNotFound(ModelError):
    """No such model, file, back end or weights; raised before any model call."""


class ModelFailed(ModelError):
    """The model could not answer."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retryable: bool = False,
        foreign: bool = False,
    ) -> None:
        super().__init__(message, hint=hint, foreign=foreign)
        self.retryable = retryable


class AnswerError(BlendFusionError):
    """A value got no valid answer, and the call has ``on_error => 'raise'``."""


class BudgetExceeded(BlendFusionError):
    """A limit of a budget is reached, and more values would have to be asked.

    The answers so far are in the cache and in the trace: with a larger budget, the same query
    continues from there.
    """

    limit: str = ""
    """The name of the limit, a field of ``Budget``."""
    allowed: float = 0
    """The limit itself."""
    usage: Usage = Usage()
    """The spending under this budget."""
    cost: float | None = None
    """The spending as money; None if the model has no price."""
    pending: int = 0
    """Values that the current step still had to ask; later steps may need more."""


class NotConfirmed(BlendFusionError):
    """A query is expected to ask more values than ``confirm_above``, and was not confirmed."""


class PlanError(BlendFusionError):
    """The planner met a plan that it cannot rewrite; the plain path takes over."""


class ModelWarning(UserWarning):
    """One of several models failed as a whole; the next one took over."""


class MatchWarning(UserWarning):
    """Values may have matches that were not looked at, since too many others are as similar."""


class ConflictWarning(UserWarning):
    """Answers about pairs of values contradict one another; ``trace.conflicts`` lists them."""


class HostedModelWarning(UserWarning):
    """Values go to a hosted server that the model's name leaves out."""


class PlanWarning(UserWarning):
    """A query runs as DataFusion evaluates it, because of a type that it reads: right, but with
    more values asked. Or it compares a call with a text that is none of its options. Given once a
    session for each type and comparison."""


class FileWarning(UserWarning):
    """Something of a table's files was left out, or columns of several files were put together; the
    message says what."""


class CacheWarning(UserWarning):
    """A file of stored answers could not be used; results do not change."""


def check_encodable(text: str) -> None:
    """Raise QueryError for a Python text that no encoding can represent."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise half_a_pair(problem) from problem


def half_a_pair(problem: UnicodeEncodeError) -> QueryError:
    """The error of a Python text that cannot be encoded."""
    line = problem.object.count("\n", 0, problem.start) + 1
    return QueryError(
        f"line {line}: {problem.object[problem.start : problem.end]!r} is half of a surrogate pair, "
        "which is no character",
        hint="It comes from bytes that were decoded wrongly: decode them as UTF-8.",
    )


def require_package(package: str, otherwise: str) -> None:
    """Raise ArgumentError if ``package`` is not installed, before anything is asked for it."""
    if package not in sys.modules and find_spec(package) is None:
        raise ArgumentError(
            f"{package} is not installed", hint=f"pip install {package}; {otherwise}."
        )


def remedy_for(name: str, remedies: Mapping[str, str]) -> str | None:
    """The remedy for ``name``. A key of ``remedies`` is one name, or several between blanks.

    >>> remedy_for("len", {"len length": "size(x)"}), remedy_for("le", {"len length": "size(x)"})
    ('size(x)', None)
    """
    return next((remedy for names, remedy in remedies.items() if name in names.split()), None)


def close_matches(name: str, known: Iterable[str]) -> str:
    """A sentence that names the closest matches, or lists all names; '' without any. Names that
    were generated are left out.

    >>> close_matches("llm_fliter", ["llm_filter", "llm_map"])
    "Did you mean 'llm_filter'?"
    """
    names = given_names(known)
    folded = {known.lower(): known for known in reversed(names)}
    near = difflib.get_close_matches(name, names, n=1) or [
        folded[one] for one in difflib.get_close_matches(name.lower(), folded, n=1)
    ]
    if near:
        return f"Did you mean '{near[0]}'?"
    if not names:
        return ""
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"Known: {shown}."


def level_of_caller() -> int:
    """The stack level, from the caller of this function, of the first code outside of
    BlendFusion."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        "blendfusion"
    ):
        level, frame = level + 1, frame.f_back
    return level
