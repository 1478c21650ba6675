"""The command ``blendfusion``: a query over files, a demonstration, and commands with files of their own."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

import blendfusion as bf
from blendfusion.cache import MEMORY_WORDS
from blendfusion.cli.bench import add_bench_command
from blendfusion.cli.cache import add_cache_command
from blendfusion.cli.index import add_embedder, add_index_command, add_opened, open_indexes
from blendfusion.cli.models import add_models_command
from blendfusion.cli.results import FORMATS, check_output, format_for, write
from blendfusion.cli.tables import register_file
from blendfusion.dialects.dispatch import DIALECTS, OURS
from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.observe.progress import spent
from blendfusion.redaction import printable

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 2 for an error, 130 after Ctrl-C."""
    arguments = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            status: int = arguments.run(arguments)
            sys.stdout.flush()
        except BlendFusionError as error:
            return _fail(error.message, error.hint)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return EXIT_INTERRUPTED
        except BrokenPipeError:
            # The reader (head, less) has seen enough; what is still buffered goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
    return status


def _fail(message: str, hint: str | None) -> int:
    print(f"error: {message}", file=sys.stderr)
    if hint:
        print(f"Hint: {hint}", file=sys.stderr)
    return EXIT_ERROR


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
    parser = argparse.ArgumentParser(
        prog="blendfusion", description="Language-model functions inside SQL."
    )
    parser.add_argument(
        "--version", action="version", version=f"blendfusion {version('blendfusion')}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    query = commands.add_parser("query", help="run one SQL query over files")
    query.set_defaults(run=_query)
    query.add_argument("sql", metavar="SQL", help="the query, or - to read it from standard input")
    query.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="a table: csv, tsv, json (an array, or one object a line), arrow, parquet or lance, a folder "
        "or pattern of such files, or - for standard input; may be repeated",
    )
    query.add_argument(
        "--dialect",
        choices=(OURS, *DIALECTS),
        help="default: blendsql for a text with {{…}} outside of quotes, else sql, ours",
    )
    query.add_argument(
        "--enum",
        action="append",
        default=[],
        metavar="TABLE.COLUMN",
        help="a column that suql compares by meaning; may be repeated",
    )
    add_opened(query)
    _add_model(query)
    add_embedder(query)
    query.add_argument(
        "--cache",
        default="auto",
        metavar="FILE",
        help="where answers are kept, 'off' for nowhere (default: a file in your cache folder)",
    )
    query.add_argument(
        "--budget",
        metavar="LIMITS",
        help="the most that may be spent: calls=N,values=N,prompt_tokens=N,completion_tokens=N,"
        "seconds=S,cost=C, any of them",
    )
    query.add_argument(
        "--price",
        metavar="PRICE",
        help="what the model charges for a million tokens: prompt=P,completion=C",
    )
    query.add_argument(
        "--confirm-above",
        type=int,
        default=0,
        metavar="VALUES",
        help="ask before a query that is expected to put more values to the model",
    )
    query.add_argument("--format", choices=FORMATS, help="default: by the extension of --output")
    query.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    query.add_argument(
        "--full-cells", action="store_true", help="show the whole text of each cell of a table"
    )
    query.add_argument(
        "--show-values",
        choices=("auto", "on", "off"),
        default="auto",
        help="whether messages may show values of your data (default: auto, on a terminal only)",
    )
    query.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a page of HTML with the plan, what was asked, answered and spent",
    )
    query.add_argument(
        "--read-only",
        action="store_true",
        help="refuse all but reading the tables: for queries that you did not write",
    )
    shown = query.add_mutually_exclusive_group()
    shown.add_argument("--explain", action="store_true", help="show the plan, ask nothing")
    shown.add_argument("--analyze", action="store_true", help="run, and show plan and measurements")

    demo = commands.add_parser("demo", help="a few queries over the example tables")
    demo.set_defaults(run=_demo)
    _add_model(demo)
    demo.add_argument(
        "--examples",
        type=Path,
        default=Path("examples"),
        metavar="DIR",
        help="where reviews.csv, products.csv and tickets.csv are (default: ./examples)",
    )
    add_index_command(commands)
    add_cache_command(commands)
    add_models_command(commands)
    add_bench_command(commands)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        metavar="SPEC",
        help="for example llama:weights.gguf, smollm2, openai:NAME@http://HOST:PORT/v1; "
        "given again: what the models before it fail at is put to this one, or, where a call promises "
        "something (accuracy => 0.9), what the first of two may not decide",
    )


def _query(arguments: argparse.Namespace) -> int:
    text = sys.stdin.read() if arguments.sql == "-" else arguments.sql
    if not text.strip():
        raise QueryError("the query is empty")
    cache = None if arguments.cache.lower() in MEMORY_WORDS else arguments.cache
    budget = None if arguments.budget is None else bf.Budget.parsed(arguments.budget)
    price = None if arguments.price is None else bf.Price.parsed(arguments.price)
    style = arguments.format or format_for(arguments.output)
    check_output(style, arguments.output)
    with bf.connect(
        model=arguments.model,
        cache=cache,
        prices=price,
        confirm_above=arguments.confirm_above,
        read_only=arguments.read_only,
        embedder=arguments.embedder,
        show_values=arguments.show_values,
    ) as session:
        for spec in arguments.table:
            register_file(session, spec)
        open_indexes(session, arguments.index)
        for column in arguments.enum:
            _register_enum(session, column)
        frame = session.sql(text, budget=budget, dialect=arguments.dialect)
        with _traced(frame, arguments.trace):
            if arguments.explain or arguments.analyze:
                print(frame.explain_text(analyze=arguments.analyze))
                return 0
            table = frame.to_arrow_table()
            write(table, style, arguments.output, full_cells=arguments.full_cells)
            if sys.stderr.isatty():
                trace = frame.trace
                vectors = str(trace.vectors) if trace.vectors.embedded else ""
                print(spent(trace.usage, trace.cost, vectors), file=sys.stderr)
    return 0


@contextmanager
def _traced(frame: bf.Frame, path: Path | None) -> Iterator[None]:
    """The page of what ``frame`` runs meanwhile goes to ``path``, however that ends."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise QueryError(f"--trace {path}: no file can be written there", hint="Name a file.")
    try:
        yield
    finally:
        if path is not None:
            frame.trace.to_html(path)


def _register_enum(session: bf.Session, spec: str) -> None:
    table, dot, column = spec.partition(".")
    if not (table and dot and column):
        raise QueryError(
            f"--enum {spec!r} names no column", hint="Write --enum restaurants.cuisines."
        )
    session.register_enum(table, column)


def _demo(arguments: argparse.Namespace) -> int:
    from blendfusion.cli.demo import run

    run(arguments.model, arguments.examples)
    return 0
