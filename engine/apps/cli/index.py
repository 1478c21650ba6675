"""``blendfusion index``: builds or updates an index over a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import blendfusion as bf
from blendfusion.errors import QueryError

if TYPE_CHECKING:
    from blendfusion.session import Session


def add_arguments(index: argparse.ArgumentParser) -> None:
    """Add the arguments of ``index``."""
    index.set_defaults(run=_index)
    index.add_argument("name", metavar="NAME", help="the name for llm_search")
    index.add_argument(
        "--table", required=True, metavar="NAME=PATH", help="the table: as for blendfusion query"
    )
    index.add_argument(
        "--columns", metavar="A,B", help="the columns to search (default: all text columns)"
    )
    index.add_argument(
        "--path",
        type=Path,
        metavar="FOLDER",
        help="a separate folder for this index (default: one in your cache folder)",
    )
    index.add_argument(
        "--language",
        default="English",
        help="the language of stems and stop words, or 'none' (default: English)",
    )
    index.add_argument("--no-vectors", action="store_true", help="build only a full-text index")
    add_embedder(index)


def add_embedder(parser: argparse.ArgumentParser) -> None:
    """Add the option that names an embedder."""
    parser.add_argument(
        "--embedder",
        default="auto",
        metavar="SPEC",
        help="the embedder: wordllama, openai:NAME@http://HOST:PORT/v1",
    )


def add_opened(parser: argparse.ArgumentParser) -> None:
    """Add the option that names indexes which a query may search."""
    parser.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="NAME[=FOLDER]",
        help="an index built by blendfusion index; may be repeated",
    )


def open_indexes(session: Session, specs: list[str]) -> None:
    """Open the indexes ``name=folder``. Raises QueryError."""
    for spec in specs:
        name, equals, path = spec.partition("=")
        if not name.strip() or (equals and not path):
            raise QueryError(
                f"--index {spec!r} is not NAME=FOLDER", hint="For example: --index docs=docs.index"
            )
        session.open_index(name.strip(), path or None)


def _index(arguments: argparse.Namespace) -> int:
    from blendfusion.files.reading import register_spec

    language = None if arguments.language.lower() == "none" else arguments.language
    with bf.connect(None, cache=None, embedder=arguments.embedder) as session:
        table = register_spec(session, arguments.table)
        report = session.index(
            arguments.name,
            table,
            columns=None if arguments.columns is None else arguments.columns.split(","),
            path=arguments.path,
            language=language,
            vectors=not arguments.no_vectors,
        )
    print(report)
    print(report.path)
    return 0
