"""``blendfusion cache``: statistics, deletion and copies of stored answers, wherever they are."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from blendfusion.apps.cli.jsonl import WrongLine, entries_of, lines_of
from blendfusion.errors import CacheWarning, OptionError
from blendfusion.models.stores.sqlite import MEGABYTE
from blendfusion.models.stores.store_names import CACHE_VARIABLE, CopiedStore, store_for
from blendfusion.options import Options


def add_arguments(cache: argparse.ArgumentParser) -> None:
    """Add the arguments of ``cache``."""
    actions = cache.add_subparsers(required=True, metavar="ACTION")

    def action(
        name: str, what: str, run: Callable[[CopiedStore, argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=what)
        parser.set_defaults(run=lambda arguments: _with_store(run, arguments))
        parser.add_argument(
            "--path",
            metavar="PLACE",
            help="a file, postgresql://…, file:///folder or s3://bucket/folder; default: what "
            f"{CACHE_VARIABLE} names, else the file in your cache folder",
        )
        return parser

    action("stats", "how many answers there are, and how much room they take", _stats)
    action("clear", "forget every answer", _clear)
    export = action("export", "write all answers as lines of JSON", _export)
    export.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: - (output)")
    imported = action("import", "add answers that 'export' wrote", _import)
    imported.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: - (input)")


def _with_store(
    run: Callable[[CopiedStore, argparse.Namespace], int], arguments: argparse.Namespace
) -> int:
    place = arguments.path or "auto"
    store = store_for(place, Options().cache_size)
    if not isinstance(store, CopiedStore):
        reason = f"there is no file of stored answers: {CACHE_VARIABLE} is off"
        raise OptionError(reason, hint="Pass --path PLACE.")
    try:
        if arguments.path and run is not _import and _is_missing(store.path):
            raise OptionError(f"there is no file of stored answers at '{arguments.path}'")
        with warnings.catch_warnings():
            warnings.simplefilter("error", CacheWarning)  # no file of answers, or a damaged one
            return run(store, arguments)
    except CacheWarning as problem:
        raise OptionError(str(problem)) from problem
    finally:
        store.close()


def _is_missing(place: object) -> bool:
    return isinstance(place, Path) and not place.exists()


def _stats(store: CopiedStore, arguments: argparse.Namespace) -> int:
    stats = store.stats()
    table = Table(box=SIMPLE_HEAD, show_header=False, show_edge=False, pad_edge=False)
    table.add_row("file" if isinstance(store.path, Path) else "place", str(store.path))
    table.add_row("answers", f"{stats.entries:,}")
    table.add_row("models", f"{stats.models:,}")
    table.add_row("size", f"{stats.bytes / MEGABYTE:,.1f} MB")
    table.add_row("least recent use", _moment(stats.oldest))
    table.add_row("last use", _moment(stats.newest))
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = max(console.width, len(str(store.path)) + 40)  # paths are never cut
    console.print(table)
    return 0


def _moment(seconds: int | None) -> str:
    if seconds is None:
        return "never"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _clear(store: CopiedStore, arguments: argparse.Namespace) -> int:
    entries = store.stats().entries
    store.clear()
    print(f"forgot {entries:,} answers")
    return 0


def _export(store: CopiedStore, arguments: argparse.Namespace) -> int:
    to_output = arguments.file == "-"
    try:
        # Answers are as private as the file that they come from.
        target = nullcontext(sys.stdout) if to_output else _private(Path(arguments.file))
        with target as out:
            out.writelines(lines_of(store.entries()))
    except OSError as problem:
        if isinstance(problem, BrokenPipeError):
            raise
        raise OptionError(f"'{arguments.file}' cannot be written: {problem}") from problem
    return 0


def _private(path: Path) -> TextIO:
    path.touch(mode=0o600)
    if path.is_file():  # also one that was there; no device, no pipe
        path.chmod(0o600)
    return path.open("w", encoding="utf-8")


def _text(path: Path) -> TextIO:
    return path.open(encoding="utf-8")


def _import(store: CopiedStore, arguments: argparse.Namespace) -> int:
    from_input = arguments.file == "-"
    try:
        with nullcontext(sys.stdin) if from_input else _text(Path(arguments.file)) as lines:
            new = store.add(entries_of(lines))
    except WrongLine as problem:
        first = str(problem).startswith("line 1:")
        hint = "It is no file of 'cache export'." if first else "The lines above it were added."
        raise OptionError(f"{arguments.file}: {problem}", hint=hint) from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise OptionError(
            f"'{arguments.file}' cannot be read into the cache: {problem}"
        ) from problem
    print(f"added {new:,} answers")
    return 0
