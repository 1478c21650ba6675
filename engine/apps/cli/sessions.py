"""The options of commands that open a session, and the session that they ask for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import blendfusion as bf
from blendfusion.apps.cli.index import add_embedder, add_opened, open_indexes
from blendfusion.errors import QueryError
from blendfusion.models.stores.store_names import MEMORY_WORDS
from blendfusion.options import ReadFiles
from blendfusion.prepare.translators import dialect_names
from blendfusion.run.observe.progress import count_noun
from blendfusion.types import Usage

_NAMED = re.compile(r"([A-Za-z_]\w*)=")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``--model``."""
    parser.add_argument(
        "--model",
        action="append",
        metavar="SPEC",
        help="for example llama:weights.gguf, smollm2, openai:NAME@http://HOST:PORT/v1; "
        "given again: models form a fallback chain, or, where a call promises something "
        "(accuracy => 0.9), two form a cascade",
    )


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the options of a session over files."""
    _add_tables(parser)
    add_opened(parser)
    add_model(parser)
    add_embedder(parser)
    parser.add_argument(
        "--cache",
        default="auto",
        metavar="PLACE",
        help="where answers are kept: a file, postgresql://…, s3://bucket/folder, or 'off' for "
        "nowhere (default: a file in your cache folder)",
    )
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="workers that read large tables and hold models: local, local:4, ray or ray://…",
    )
    _add_spending(parser)
    parser.add_argument(
        "--full-cells", action="store_true", help="show the whole text of each cell of a table"
    )
    parser.add_argument(
        "--show-values",
        choices=("auto", "on", "off"),
        default="auto",
        help="whether messages may show values of your data (default: auto, on a terminal only)",
    )
    parser.add_argument(
        "--read-only",
        action="store_true",
        help="refuse all but reading the tables: for queries that you did not write",
    )
    parser.add_argument(
        "--read-files",
        choices=get_args(ReadFiles),
        default="local",
        help="whether queries may read files by their paths, FROM 'sales.csv': not at all, on this "
        "machine (default), also at URLs; never with --read-only",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the session, such as concurrency=32 or rows_per_prompt=10 (SHOW ALL lists "
        "them); may be repeated",
    )


def _add_tables(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="a table: csv, tsv, json (an array, or one object a line), arrow, parquet, lance or xlsx, a "
        "folder or pattern of such files, a sheet (book.xlsx#Sheet), a URL, or - for standard input; may be "
        "repeated",
    )
    parser.add_argument(
        "--attach",
        action="append",
        default=[],
        metavar="[NAME=]URL",
        help="a database whose tables queries name as NAME.TABLE: a file of SQLite or DuckDB, "
        "postgresql://…, mysql://…; may be repeated",
    )
    parser.add_argument(
        "--encoding",
        metavar="NAME",
        help="the encoding of tables that are text, such as latin-1 (default: UTF-8)",
    )
    parser.add_argument(
        "--dialect",
        choices=dialect_names(),
        help="default: blendsql for a text with {{…}} outside of quotes, else sql",
    )
    parser.add_argument(
        "--enum",
        action="append",
        default=[],
        metavar="TABLE.COLUMN",
        help="a column that suql compares by meaning; may be repeated",
    )
    parser.add_argument(
        "--question",
        action="append",
        default=[],
        metavar="FILE",
        help="a stored question for llm_ask('name', value); may be repeated",
    )


def _add_spending(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        metavar="LIMITS",
        help="the most that may be spent: calls=N,values=N,prompt_tokens=N,completion_tokens=N,"
        "seconds=S,cost=C, any of them; days=N: of all sessions in so many days, user=NAME: of one user",
    )
    parser.add_argument(
        "--price",
        metavar="PRICE",
        help="what the model charges for a million tokens: prompt=P,completion=C, or 'listed'",
    )
    parser.add_argument(
        "--confirm-above",
        type=int,
        default=0,
        metavar="VALUES",
        help="confirm before a query that is expected to ask the model about more values",
    )


def budget_of(arguments: argparse.Namespace, session: bf.Session | None = None) -> bf.Budget | None:
    """The budget of ``--budget``; one over days becomes that of the session, if one is given, and
    None is returned. Raises OptionError."""
    found = None if arguments.budget is None else bf.Budget.parsed(arguments.budget)
    if found is not None and found.days is not None and session is not None:
        session.budget = found
        return None
    return found


@contextmanager
def session_of(arguments: argparse.Namespace) -> Iterator[bf.Session]:
    """The session of a command, with its tables and indexes; closed at the end. Raises
    BlendFusionError for an option, a table or an index that is wrong. A KeyboardInterrupt has the
    message to show."""
    cache = None if arguments.cache.lower() in MEMORY_WORDS else arguments.cache
    price = (
        arguments.price if arguments.price in (None, "listed") else bf.Price.parsed(arguments.price)
    )
    with bf.connect(
        model=arguments.model,
        cache=cache,
        prices=price,
        confirm_above=arguments.confirm_above,
        read_only=arguments.read_only,
        read_files=arguments.read_files,
        embedder=arguments.embedder,
        show_values=arguments.show_values,
        cluster=arguments.cluster,
    ) as session:
        for option in arguments.option:
            name, _, value = option.partition("=")
            session.change_option(name.strip(), value.strip())
        for spec in arguments.table:
            from blendfusion.files.reading import register_spec

            register_spec(session, spec, arguments.encoding)
        for spec in arguments.attach:
            _attach(session, spec)
        open_indexes(session, arguments.index)
        for file in arguments.question:
            session.register_question(file)
        for column in arguments.enum:
            _register_enum(session, column)
        try:
            yield session
        except KeyboardInterrupt as problem:
            problem.args = (interruption(session, Usage(), ends=True),)
            raise


def interruption(session: bf.Session, begun: Usage, *, ends: bool = False) -> str:
    """The message of an interruption: the values that were asked since the session's usage was
    ``begun``, and whether a run again goes on from there. ``ends``: the session ends, too, and only
    answers in a file stay."""
    values = session.ledger.usage.values - begun.values
    if not values:
        return "interrupted"
    own, named = session.models.own_and_named
    parts = [part for model in (*own, *named.values()) for part in model.parts]
    kept = not ends or all(part.store.outlives_process for part in parts)
    answers = "its answer is" if values == 1 else "their answers are"
    then = (
        "kept: run it again to go on from there."
        if kept
        else "lost, as they were in memory only: --cache names a file for them."
    )
    return f"interrupted: {count_noun(values, 'value')} asked; {answers} {then}"


def _attach(session: bf.Session, spec: str) -> None:
    named = _NAMED.match(spec)
    session.attach(spec[named.end() :], named[1]) if named else session.attach(spec)


def _register_enum(session: bf.Session, spec: str) -> None:
    table, dot, column = spec.partition(".")
    if not (table and dot and column):
        raise QueryError(
            f"--enum {spec!r} names no column", hint="Write --enum restaurants.cuisines."
        )
    session.register_enum(table, column)
