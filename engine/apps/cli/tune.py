"""``blendfusion tune``: chooses how a model is asked yes/no questions, by measurement."""

from __future__ import annotations

import argparse
import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from blendfusion.errors import OptionError
from blendfusion.models.registry.load import load
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.tuning.tune import TuningResult, tune
from blendfusion.models.services.verbalizer.ways import keep_way, user_file
from blendfusion.options import Options
from blendfusion.redaction import printable

_LEAST_ROWS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tune``."""
    parser.set_defaults(run=_tune)
    parser.add_argument(
        "model", metavar="MODEL", help="local weights or a server's model, as --model names them"
    )
    parser.add_argument(
        "--rows", type=int, default=12, help="texts per question of the bank (default: 12)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the choice without keeping it")


def _tune(arguments: argparse.Namespace) -> int:
    if arguments.rows < _LEAST_ROWS:
        raise OptionError(f"--rows {arguments.rows}: at least {_LEAST_ROWS} texts are needed")
    named = load(arguments.model, Options())
    if not isinstance(named, LlamaModel | OpenAIModel):
        named.close()
        raise OptionError(
            f"{arguments.model} is neither a model in process nor one of a single server",
            hint="Name the packaged model (smollm2, gemma), a GGUF file, a file of the Hub, or "
            "'openai:NAME@http://HOST:PORT/v1'.",
        )
    model = named.without_way()
    named.close()
    try:
        found = tune(model, arguments.rows, progress=_report)
    finally:
        model.close()
    _show(found)
    if not arguments.dry_run:
        keep_way(named.digest, found.way, named.display_name)
        print(f"kept in {printable(str(user_file()))}")
    return 0


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(found: TuningResult) -> None:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("candidate", "area", "balanced accuracy"):
        table.add_column(heading, no_wrap=True)
    for way, quality in found.compared:
        table.add_row(str(way), f"{quality.area:.2f}", f"{quality.balanced:.2f}")
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = 10_000
    console.print(table)
    print(f"chosen: {found.way}")
    if found.pairs is not None:
        figures = f"area {found.pairs.area:.2f}, balanced accuracy {found.pairs.balanced:.2f}"
        print(f"whether two names are the same: {figures}")
