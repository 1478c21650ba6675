"""The command ``blendfusion``: a query over files, a demonstration, and further commands."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn, TextIO

from blendfusion.apps.cli.termination import Termination, terminable
from blendfusion.errors import (
    AnswerError,
    BlendFusionError,
    BudgetExceeded,
    ModelError,
    QueryError,
    close_matches,
    fit_terminal,
)
from blendfusion.redaction import printable

EXIT_ERROR, EXIT_BUDGET, EXIT_MODEL = 2, 3, 4
_OBJECTS = 200_000
"""New objects between two collections of garbage: imports make many that stay."""
_EXAMPLES = """\
examples:
  blendfusion --table reviews.csv
  blendfusion --attach shop.db "SELECT count(*) FROM shop.orders"
  blendfusion query "SELECT text FROM reviews WHERE llm_filter('Is it a complaint?', text)" --table reviews.csv
  blendfusion query "SELECT * FROM t WHERE llm_int('How many days?', text) > 7" --table t=mails.parquet --explain
"""
EXIT_INTERRUPTED = 130
_COMMANDS = {
    "shell": "type queries one after the other (the default)",
    "query": "run one SQL query over files",
    "demo": "a few queries over the example tables",
    "ui": "queries, plans and answers in a browser, on this machine",
    "serve": "queries for ADBC, JDBC and ODBC drivers, over Arrow Flight SQL",
    "mcp": "tools for agents, over the Model Context Protocol",
    "replay": "repeat a recorded run without asking a model",
    "diff": "the rows in which two recorded runs differ, and why",
    "refresh": "bring materialised views up to date: ask what is new",
    "evaluate": "measure calls against a column of labels",
    "ask": "draft a query for a question in plain words",
    "index": "build or update an index over a file, for llm_search: see docs/search.md",
    "cache": "manage stored answers: stats, clear, export, import",
    "models": "list the models that --model can name here",
    "tune": "choose how a model is asked yes/no questions, by measurement",
    "bench": "measure the rows per second of a model",
}
"""The commands in the order of the help. Each is a module of its name, which adds its arguments."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 2 for an error, 3 where a budget ended it, 4
    where a model could not answer, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # the end of the process looks for no garbage: a fifth of a query
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed when the command began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the end
    with suppress(AttributeError):  # tests and notebooks replace it by a stream without encoding
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with terminable():
            return _main(_with_command(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt as problem:  # also while modules are imported
        print(fit_terminal(str(problem) or "interrupted"), file=sys.stderr)
        return problem.status if isinstance(problem, Termination) else EXIT_INTERRUPTED


def _main(given: Sequence[str]) -> int:
    try:
        parser, of_one = _parsers(given[0])
        arguments, beyond = parser.parse_known_args(given)
        queries = [part for part in beyond if len(part.split()) > 1]
        if given[0] == "shell" and len(queries) == 1:  # blendfusion --attach shop.db "SELECT …"
            rest = [part for part in given[1:] if part is not queries[0]]
            return _main(["query", *queries, *rest])
        _check_arguments(of_one, given[0], beyond)
    except QueryError as error:
        error.print()
        return EXIT_ERROR
    except ModuleNotFoundError as problem:  # a service that was taken out
        if not (problem.name or "").startswith("blendfusion."):
            raise
        QueryError(f"'{given[0]}' needs {problem.name}, which is not installed").print()
        return EXIT_ERROR
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            status: int = arguments.run(arguments)
            sys.stdout.flush()
        except BlendFusionError as error:
            error.print()
            return status_of(error)
        except BrokenPipeError:
            # The reader (head, less) has stopped; the remaining buffer is discarded.
            _discard_output()
            return 0
        except OSError as problem:  # a full disk, a folder that is not to be written
            place = f" '{problem.filename}'" if problem.filename else ""
            QueryError(f"cannot read or write{place}: {problem.strerror or problem}").print()
            _discard_output()
            return EXIT_ERROR
    return status


def status_of(error: BlendFusionError) -> int:
    """The exit status of an error, by its cause: what was asked for, a budget, or a model."""
    if isinstance(error, BudgetExceeded):
        return EXIT_BUDGET
    return EXIT_MODEL if isinstance(error, ModelError | AnswerError) else EXIT_ERROR


def _discard_output() -> None:
    """Discard what standard output could not take, which would be tried again at the end."""
    with suppress(OSError):  # a stream of this process only
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_command(argv: Sequence[str]) -> Sequence[str]:
    """The arguments, with ``shell`` in front where they name no command."""
    alone = not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version"))
    return ["shell", *argv] if alone else argv


class _Arguments(argparse.ArgumentParser):
    """A parser whose errors are as others: what is wrong, and what is meant in its place."""

    def error(self, message: str) -> NoReturn:
        raise self.problem(message)

    def problem(self, message: str) -> QueryError:
        """The error of arguments that do not fit."""
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        near = close_matches(unknown[1].split("=")[0], flags) if unknown else ""
        listed = f"{self.prog} --help lists the arguments."
        return QueryError(message, hint=near if "mean" in near else listed)


class _Commands(_Arguments):
    """A parser whose commands begin their help with what they do, and that knows what is meant in
    their place."""

    def problem(self, message: str) -> QueryError:
        wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(choose", message, re.DOTALL)
        if wrong is None:
            return super().problem(message)
        word = wrong[1]
        hint = close_matches(word, re.findall(r"'(\w+)'", message[wrong.end(1) :]))
        if " " in word.strip():
            hint = 'A query stands behind a command: blendfusion query "SELECT …".'
        elif "." in word:
            hint = f"A file is a table by --table: blendfusion --table {shlex.quote(word)}."
        return QueryError(f"no command {word!r}", hint=hint)


def _check_arguments(parser: _Arguments, command: str, beyond: Sequence[str]) -> None:
    """Raises QueryError for arguments that the command does not have: most often a file."""
    if not beyond:
        return
    if beyond[0].startswith("-"):
        parser.error(f"unrecognized arguments: {' '.join(beyond)}")
    raise QueryError(
        f"'{command}' has no place for {beyond[0]!r}",
        hint=f"A file is a table by --table {shlex.quote(beyond[0])}.",
    )


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(fit_terminal(f"warning: {printable(str(message))}"), file=sys.stderr)


def _parsers(command: str) -> tuple[_Arguments, _Arguments]:
    """The parser of all commands, and that of ``command``, which alone has its arguments: the
    others would be imported for nothing."""
    parser = _Commands(
        prog="blendfusion",
        description="Language-model functions inside SQL. Without a command: the shell.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"blendfusion {version('blendfusion')}"
    )
    of_one: _Arguments = parser
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Arguments)
    for name, what in _COMMANDS.items():
        parser_of_one = commands.add_parser(name, help=what, description=what)
        if name == command:
            import_module(f"blendfusion.apps.cli.{name}").add_arguments(parser_of_one)
            of_one = parser_of_one
    return parser, of_one
