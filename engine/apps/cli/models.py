"""``blendfusion models``: lists available models and missing extras."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from blendfusion.apps.cli.inventory import (
    FoundServer,
    missing_extras,
    packaged_runs,
    servers_here,
    weights_here,
)
from blendfusion.models.registry.load import VARIABLE
from blendfusion.models.services.http.client import KEY_VARIABLE, URL_VARIABLE
from blendfusion.redaction import on_one_line

Row: TypeAlias = tuple[str, str, str, str]

_MOST_MODELS = 20
"""Maximum models listed per server; hosted ones have hundreds."""


def add_arguments(models: argparse.ArgumentParser) -> None:
    """Add the arguments of ``models``."""
    models.set_defaults(run=_models)


def _models(arguments: argparse.Namespace) -> int:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("--model", "where", "size", "questions"):
        table.add_column(heading, no_wrap=True)
    for row in _rows():
        table.add_row(*map(on_one_line, row))
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = 10_000  # names are for copying, so they are never cut
    if table.row_count:
        console.print(table)
    else:
        print("no weights and no servers were found")
    for line in _notes():
        print(on_one_line(line))
    return 0


def _rows() -> Iterator[Row]:
    for weights in weights_here():
        yield weights.spec, weights.place, _size(weights.bytes), weights.questions
    for server in servers_here():
        yield from _of_server(server)


def _of_server(server: FoundServer) -> Iterator[Row]:
    if server.problem:
        yield f"openai:NAME@{server.url}", f"{URL_VARIABLE}: {server.problem}", "", ""
    for name, window in server.models[:_MOST_MODELS]:
        size = f"{window:,} tokens" if window else ""
        yield f"openai:{name}@{server.url}", server.software, size, ""
    more = len(server.models) - _MOST_MODELS
    if more > 0:
        yield f"openai:…@{server.url}", f"{more:,} more", "", ""


def _notes() -> Iterator[str]:
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        yield f"auto: {named} ({VARIABLE})"
    elif not packaged_runs():
        yield "auto: nothing, as the extra local is not installed; --model names a model"
    else:
        yield "auto: smollm2"
    if os.environ.get(KEY_VARIABLE) and not os.environ.get(URL_VARIABLE):
        yield f"openai:NAME asks OpenAI, as {KEY_VARIABLE} is set (not asked for a list)"
    missing = missing_extras()
    if missing:
        yield f"not installed: {', '.join(missing)}; pip install 'blendfusion[{','.join(missing)}]'"


def _size(count: int) -> str:
    """A size in bytes, abbreviated.

    >>> _size(91_700_000), _size(4_680_000_000)
    ('92 MB', '4.7 GB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
