"""``blendfusion query``: one query over files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import blendfusion as bf
from blendfusion.apps.cli.results import FORMATS, check_output, format_for, named_format, write
from blendfusion.apps.cli.screens import SCREEN_ROWS, Rows
from blendfusion.apps.cli.sessions import add_session, budget_of, session_of
from blendfusion.apps.cli.typed_text import pointed_at
from blendfusion.errors import OptionError, QueryError
from blendfusion.language.query_text.statements import first_word
from blendfusion.run.observe.progress import count_noun, spending_line

_STATEMENTS = ("CREATE", "INSERT", "COPY", "UPDATE", "DELETE", "DROP")


def add_arguments(query: argparse.ArgumentParser) -> None:
    """Add the arguments of ``query``."""
    query.set_defaults(run=_query)
    query.add_argument("sql", metavar="SQL", help="the query, or - to read it from standard input")
    add_session(query)
    query.add_argument(
        "--format", type=named_format, choices=FORMATS, help="default: by the extension of --output"
    )
    query.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    query.add_argument(
        "--rows",
        type=int,
        default=SCREEN_ROWS,
        metavar="N",
        help="the most rows of a table on the screen; 0: all (default: 40). Files and pipes get all",
    )
    query.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write an HTML page with the plan, questions, answers and usage",
    )
    query.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="record the run for 'blendfusion replay': FILE, its answers and its result beside it",
    )
    shown = query.add_mutually_exclusive_group()
    shown.add_argument(
        "--explain", action="store_true", help="show the plan without asking a model"
    )
    shown.add_argument(
        "--analyze", action="store_true", help="run, and show the plan with measurements"
    )


def _query(arguments: argparse.Namespace) -> int:
    text = sys.stdin.read() if arguments.sql == "-" else arguments.sql
    if not text.strip():
        raise QueryError("the query is empty")
    if arguments.rows < 0:
        raise OptionError(f"--rows {arguments.rows} is not possible", hint="0 shows all rows.")
    style = arguments.format or format_for(arguments.output)
    check_output(style, arguments.output)
    unwritten = [n for n in ("output", "manifest") if getattr(arguments, n) is not None]
    if unwritten and (arguments.explain or arguments.analyze):
        shown = "explain" if arguments.explain else "analyze"
        raise QueryError(
            f"--{shown} prints the plan and writes no rows to --{unwritten[0]}",
            hint="Leave one out. The plan of a run is in its --trace FILE, too.",
        )
    first = first_word(text)
    if arguments.manifest is not None and first in _STATEMENTS:
        raise QueryError(
            f"--manifest records a query, and this is {first}", hint="Record the query in it."
        )
    with pointed_at(text), session_of(arguments) as session:
        frame = session.sql(text, budget=budget_of(arguments, session), dialect=arguments.dialect)
        with _write_trace(frame, arguments.trace):
            if arguments.explain or arguments.analyze:
                print(frame.explain_text(analyze=arguments.analyze))
                return 0
            rows: Rows = frame
            if arguments.manifest is not None:
                from blendfusion.apps.cli.replay import files_of
                from blendfusion.services.replay.record import record

                files = files_of(arguments.table, arguments.manifest)
                manifest = record(frame, files, dialect=arguments.dialect)
                manifest.save(arguments.manifest)
                rows = manifest.result
            count = write(
                rows,
                style,
                arguments.output,
                full_cells=arguments.full_cells,
                most_rows=arguments.rows,
            )
            _report(frame, arguments.output, count)
    return 0


def _report(frame: bf.Frame, output: Path | None, count: int) -> None:
    """Say on standard error what was written and spent, in one line: always for a file, else on a
    terminal."""
    trace = frame.trace
    vectors = str(trace.vectors) if trace.vectors.embedded else ""
    spent = spending_line(trace.usage, trace.cost, vectors)
    if output is not None:
        print(f"written: {output}, {count_noun(count, 'row')} · {spent}", file=sys.stderr)
    elif sys.stderr.isatty():
        print(spent, file=sys.stderr)


@contextmanager
def _write_trace(frame: bf.Frame, path: Path | None) -> Iterator[None]:
    """Write the page of the runs of ``frame`` in this context to ``path``, however they end."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise QueryError(f"--trace {path}: no file can be written there", hint="Name a file.")
    try:
        yield
    finally:
        if path is not None:
            try:
                frame.trace.to_html(path)
            except OSError as problem:
                raise QueryError(f"cannot write '{path}': {problem.strerror}") from problem
