"""The magic of notebooks: ``%load_ext blendfusion``, then ``%%blendfusion`` above a query."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from blendfusion.datafusion.error_gate import running
from blendfusion.entry_points import connect
from blendfusion.errors import ArgumentError, BlendFusionError
from blendfusion.frame import Frame
from blendfusion.prepare.caller_tables import is_frame
from blendfusion.prepare.session_text import SessionText
from blendfusion.prepare.translators import dialect_names
from blendfusion.session import Session

_NAME = "session"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"%%blendfusion: {message}", hint=self.format_usage().strip())


def _parser() -> _Parser:
    parser = _Parser(prog="%%blendfusion", add_help=False)
    parser.add_argument("name", nargs="?", help="the variable that the frame goes to")
    parser.add_argument("--session", default=_NAME, help="the variable of the session")
    parser.add_argument("--dialect", choices=dialect_names())
    parser.add_argument("--explain", action="store_true")
    return parser


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%blendfusion [NAME] [--session NAME] [--dialect NAME] [--explain]`` to a notebook.

    The cell below it is a query. It runs in the variable ``session``, which is opened if there is
    none. A table that is not registered is read from the variable of its name, a frame of pandas,
    Polars, Arrow or DataFusion. The result is shown, or goes to the variable NAME.
    """
    shell.register_magic_function(lambda line, cell: _run(shell, line, cell), "cell", "blendfusion")


def _run(shell: Any, line: str, cell: str) -> Frame | None:
    try:
        arguments = _parser().parse_args(shlex.split(line))
        session = shell.user_ns.setdefault(arguments.session, None) or connect()
        if not isinstance(session, Session):
            raise ArgumentError(f"{arguments.session} is no session of BlendFusion")
        shell.user_ns[arguments.session] = session
        dialect, variables = arguments.dialect, shell.user_ns
        text = SessionText(cell, None, dialect, None, read_only=False, variables=variables)
        with running(session.options.redaction):
            frame = text.plan(session, None, _dollars(variables, cell))
        if arguments.explain:
            print(frame.explain_text())
            return None
        frame = frame.cache()
    except BlendFusionError as error:
        error.print("python")
        return None
    if arguments.name is None:
        return frame
    shell.user_ns[arguments.name] = frame
    return None


def _dollars(variables: dict[str, Any], cell: str) -> dict[str, Any]:
    """The frames among the variables that the query names with a dollar."""
    return {n: value for n, value in variables.items() if f"${n}" in cell and is_frame(value)}
