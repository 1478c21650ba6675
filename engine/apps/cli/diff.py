"""``blendfusion diff``: the rows in which two recorded runs differ, and why."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa

from blendfusion.apps.cli.results import FORMATS, check_output, format_for, named_format, write
from blendfusion.run.observe.progress import count_noun
from blendfusion.services.replay.differences import causes_of, difference
from blendfusion.services.replay.manifest import Manifest

EXIT_DIFFERENT = 1
_TEXT_FORMATS = ("table", "csv", "tsv")


def add_arguments(diff: argparse.ArgumentParser) -> None:
    """Add the arguments of ``diff``."""
    diff.set_defaults(run=_diff)
    diff.add_argument("before", type=Path, metavar="FILE", help="what 'query --manifest' wrote")
    diff.add_argument("now", type=Path, metavar="FILE", help="the manifest of a later run")
    diff.add_argument(
        "--format", type=named_format, choices=FORMATS, help="default: by the extension of --output"
    )
    diff.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    diff.add_argument("--summary", action="store_true", help="count changes by cause, show no rows")


def _diff(arguments: argparse.Namespace) -> int:
    style = arguments.format or format_for(arguments.output)
    check_output(style, arguments.output)
    before, now = Manifest.load(arguments.before), Manifest.load(arguments.now)
    found = difference(before, now)
    if arguments.summary:
        _print_summary(found, causes_of(before, now))
    else:
        write(_as_texts(found) if style in _TEXT_FORMATS else found, style, arguments.output)
    return EXIT_DIFFERENT if len(found) else 0


def _print_summary(found: pa.Table, causes: list[str]) -> None:
    if not len(found):
        print("no row of the result differs")
    counted = Counter(zip(found["change"].to_pylist(), found["cause"].to_pylist(), strict=True))
    for (change, cause), number in sorted(counted.items()):
        print(f"{count_noun(number, 'row')} {change} by {cause}")
    if len(found):
        print(f"what differs between the runs: {', '.join(causes)}")


def _as_texts(found: pa.Table) -> pa.Table:
    """Structs and lists as JSON, for formats without them."""
    for at, name in enumerate(found.column_names):
        if pa.types.is_nested(found.schema.field(at).type):
            values = [
                None if value is None else json.dumps(value, default=str, ensure_ascii=False)
                for value in found[name].to_pylist()
            ]
            found = found.set_column(at, name, pa.array(values, pa.string()))
    return found
