"""The command ``blendfusion``: a query over files, a demonstration, and further commands."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn, TextIO

import blendfusion as bf
from blendfusion.cli.ask import add_ask_command
from blendfusion.cli.bench import add_bench_command
from blendfusion.cli.cache import add_cache_command
from blendfusion.cli.evaluate import add_evaluate_command
from blendfusion.cli.index import add_index_command
from blendfusion.cli.models import add_models_command
from blendfusion.cli.replay import add_replay_command, files_of
from blendfusion.cli.results import FORMATS, check_output, format_for, write
from blendfusion.cli.sessions import add_model, add_session, budget_of, session_of
from blendfusion.cli.shell import add_shell_command
from blendfusion.cli.tune import add_tune_command
from blendfusion.cli.ui import add_ui_command
from blendfusion.errors import BlendFusionError, QueryError, close_matches
from blendfusion.observe.progress import spent
from blendfusion.redaction import printable
from blendfusion.replay.record import recorded

EXIT_ERROR = 2
_EXAMPLES = """\
examples:
  blendfusion --table reviews.csv
  blendfusion query "SELECT text FROM reviews WHERE llm_filter('Is it a complaint?', text)" --table reviews.csv
  blendfusion query "SELECT * FROM t WHERE llm_int('How many days?', text) > 7" --table t=mails.parquet --explain
"""
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 2 for an error, 130 after Ctrl-C."""
    given = _with_command(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    try:
        arguments, beyond = parser.parse_known_args(given)
        _check_arguments(parser, given[0], beyond)
    except QueryError as error:
        error.print()
        return EXIT_ERROR
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            status: int = arguments.run(arguments)
            sys.stdout.flush()
        except BlendFusionError as error:
            error.print()
            return EXIT_ERROR
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return EXIT_INTERRUPTED
        except BrokenPipeError:
            # The reader (head, less) has stopped; the remaining buffer is discarded.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
    return status


def _with_command(argv: Sequence[str]) -> Sequence[str]:
    """The arguments, with ``shell`` in front where they name no command."""
    alone = not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version"))
    return ["shell", *argv] if alone else argv


class _Commands(argparse.ArgumentParser):
    """A parser whose commands begin their help with what they do, and that knows what is meant in
    their place."""

    def error(self, message: str) -> NoReturn:
        wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(choose", message, re.DOTALL)
        if wrong is None:
            super().error(message)
        word = wrong[1]
        hint = close_matches(word, re.findall(r"'(\w+)'", message[wrong.end(1) :]))
        if " " in word.strip():
            hint = 'A query stands behind a command: blendfusion query "SELECT …".'
        elif "." in word:
            hint = f"A file is a table by --table: blendfusion --table {shlex.quote(word)}."
        raise QueryError(f"no command {word!r}", hint=hint)


def _check_arguments(parser: argparse.ArgumentParser, command: str, beyond: Sequence[str]) -> None:
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
    print(f"warning: {printable(str(message))}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Commands(
        prog="blendfusion",
        description="Language-model functions inside SQL. Without a command: the shell.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"blendfusion {version('blendfusion')}"
    )
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    add_shell_command(commands)

    query = commands.add_parser("query", help="run one SQL query over files")
    query.set_defaults(run=_query)
    query.add_argument("sql", metavar="SQL", help="the query, or - to read it from standard input")
    add_session(query)
    query.add_argument("--format", choices=FORMATS, help="default: by the extension of --output")
    query.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
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

    demo = commands.add_parser("demo", help="a few queries over the example tables")
    demo.set_defaults(run=_demo)
    add_model(demo)
    demo.add_argument(
        "--examples",
        type=Path,
        metavar="DIR",
        help="a folder of other tables reviews.csv, products.csv and tickets.csv",
    )
    add_ui_command(commands)
    add_replay_command(commands)
    add_evaluate_command(commands)
    add_ask_command(commands)
    add_index_command(commands)
    add_cache_command(commands)
    add_models_command(commands)
    add_tune_command(commands)
    add_bench_command(commands)
    for listed in commands._choices_actions:
        commands.choices[listed.dest].description = listed.help
    return parser


def _query(arguments: argparse.Namespace) -> int:
    text = sys.stdin.read() if arguments.sql == "-" else arguments.sql
    if not text.strip():
        raise QueryError("the query is empty")
    style = arguments.format or format_for(arguments.output)
    check_output(style, arguments.output)
    with session_of(arguments) as session:
        frame = session.sql(text, budget=budget_of(arguments), dialect=arguments.dialect)
        with _traced(frame, arguments.trace):
            if arguments.explain or arguments.analyze:
                print(frame.explain_text(analyze=arguments.analyze))
                return 0
            if arguments.manifest is None:
                table = frame.to_arrow_table()
            else:
                files = files_of(arguments.table, arguments.manifest)
                manifest = recorded(frame, files, dialect=arguments.dialect)
                manifest.save(arguments.manifest)
                table = manifest.result
            write(table, style, arguments.output, full_cells=arguments.full_cells)
            if sys.stderr.isatty():
                trace = frame.trace
                vectors = str(trace.vectors) if trace.vectors.embedded else ""
                print(spent(trace.usage, trace.cost, vectors), file=sys.stderr)
    return 0


@contextmanager
def _traced(frame: bf.Frame, path: Path | None) -> Iterator[None]:
    """Write the page of the runs of ``frame`` in this context to ``path``, however they end."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise QueryError(f"--trace {path}: no file can be written there", hint="Name a file.")
    try:
        yield
    finally:
        if path is not None:
            frame.trace.to_html(path)


def _demo(arguments: argparse.Namespace) -> int:
    from blendfusion.cli.demo import run

    run(arguments.model, arguments.examples)
    return 0
