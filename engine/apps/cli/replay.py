"""``blendfusion replay``: the result of a recorded run again, or what changed since."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datafusion import SessionConfig, SessionContext

import blendfusion as bf
from blendfusion.apps.cli.index import add_embedder
from blendfusion.apps.cli.results import FORMATS, check_output, format_for, named_format, write
from blendfusion.apps.cli.sessions import add_model
from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.files.reading import named_files, named_path, register_spec
from blendfusion.models.stores.recording import KeyedStore
from blendfusion.redaction import Redaction, printable
from blendfusion.run.observe.progress import count_noun
from blendfusion.services.replay.changes import Change, changes
from blendfusion.services.replay.compare import before_a_replay
from blendfusion.services.replay.digests import table_digest
from blendfusion.services.replay.manifest import Manifest
from blendfusion.services.replay.model import RecordedModel
from blendfusion.services.replay.record import Files, models_of, record, registered_files
from blendfusion.services.replay.registrations import fits, register_again
from blendfusion.services.replay.row_changes import RowChanges, row_changes
from blendfusion.udfs.declare.arguments import quoted_name

_SHOWN = 10
"""Rows of each kind that are shown."""
_REQUESTED = Redaction("on")
"""``--update`` prints the rows that changed, as a query prints its rows."""


def add_arguments(replay: argparse.ArgumentParser) -> None:
    """Add the arguments of ``replay``."""
    replay.set_defaults(run=_replay)
    replay.add_argument("manifest", type=Path, metavar="FILE", help="what 'query --manifest' wrote")
    replay.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="where a recorded table lies on this machine (default: the recorded path, from the "
        "folder of the manifest); may be repeated",
    )
    replay.add_argument(
        "--query",
        type=Path,
        metavar="FILE",
        help="the text of the query, if it was recorded with --show-values off",
    )
    replay.add_argument(
        "--update",
        action="store_true",
        help="run on the inputs of today: ask new values only, and show the rows that changed",
    )
    add_model(replay)
    add_embedder(replay)
    replay.add_argument(
        "--format", type=named_format, choices=FORMATS, help="default: by the extension of --output"
    )
    replay.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    replay.add_argument(
        "--record", type=Path, metavar="FILE", help="with --update: record the new run there"
    )


def files_of(specs: Sequence[str], manifest: Path) -> dict[str, Files]:
    """The files of tables, by table, with paths from the folder of the manifest."""
    found = {}
    for spec in specs:
        name, path, files = named_files(spec)
        if files:
            if not os.path.isabs(os.path.expanduser(path)):
                path = os.path.relpath(path, manifest.parent)
            found[name] = Files(path, files)
    return found


def _replay(arguments: argparse.Namespace) -> int:
    if not arguments.update and (arguments.model or arguments.record):
        raise QueryError("a replay asks no model and records nothing", hint="Add --update.")
    style = arguments.format or format_for(arguments.output)
    check_output(style, arguments.output)
    manifest = Manifest.load(arguments.manifest)
    query = manifest.sections["query"]
    text = _text(arguments, query["text"])
    with _session(arguments, manifest) as session:
        files, missing = _register(arguments, session, manifest)
        found = [*missing, *before_a_replay(manifest, session, text, files)]
        gone = {change.name for change in missing}
        found = [c for c in found if c in missing or c.name not in gone]
        if arguments.update:
            if missing:
                raise QueryError(
                    "; ".join(map(str, missing)), hint="Pass the table: --table NAME=PATH."
                )
            return _update(arguments, session, text, manifest, files, found)
        for change in found:
            if change.is_warning:
                _note(f"warning: {change}")
        serious = [change for change in found if not change.is_warning]
        if serious:
            raise QueryError(
                "the run cannot be repeated; what changed:\n"
                + "\n".join(f"  {printable(str(change))}" for change in serious),
                hint="To run on the inputs of today: blendfusion replay … --update.",
            )
        frame = session.sql(text, dialect=query["dialect"], read_only=True)
        table = frame.to_arrow_table()
        if table_digest(table) != manifest.sections["result"]["digest"]:
            _show(row_changes(manifest.result, table), session.options.redaction)
            raise QueryError(
                "the result differs from the recorded one, though no input changed",
                hint="An order of rows without ORDER BY is not fixed; see also the warnings above.",
            )
        write(table, style, arguments.output)
        _note(f"the recorded result: {_summary(table.num_rows, frame.trace.usage.values)}")
    return 0


def _text(arguments: argparse.Namespace, recorded_text: str | None) -> str:
    if arguments.query is not None:
        try:
            text: str = arguments.query.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise QueryError(f"--query {arguments.query}: {problem}") from problem
        return text
    if recorded_text is None:
        raise QueryError(
            f"{arguments.manifest} does not hold the text of its query",
            hint="It was recorded with values hidden, or from a frame. Pass the text: --query FILE.",
        )
    return recorded_text


@contextmanager
def _session(arguments: argparse.Namespace, manifest: Manifest) -> Iterator[bf.Session]:
    """The session of a replay: recorded options, and recorded models unless new values are
    asked."""
    described, tokens = manifest.sections["models"], dict(manifest.tokens)
    store = KeyedStore(manifest.answers)
    options = dict(manifest.sections["options"])
    partitions = options.pop("partitions")
    config = SessionConfig().with_information_schema(True)
    if partitions is not None:
        config = config.with_target_partitions(partitions)
    model: Any = [RecordedModel(one, store, tokens) for one in described["own"]] or None
    if arguments.update:
        model = arguments.model
    with bf.connect(
        model=model,
        cache=store,
        config=config,
        embedder=arguments.embedder,
        read_only=True,
        **options,
    ) as session:
        if not arguments.update:
            for name, one in described["named"].items():
                session.register_model(name, RecordedModel(one, store, tokens))
        yield session


def _register(
    arguments: argparse.Namespace, session: bf.Session, manifest: Manifest
) -> tuple[dict[str, Files], list[Change]]:
    """Register the recorded tables: their files by table, and those that cannot be registered."""
    given = dict(map(named_path, arguments.table))
    files, missing = {}, []
    for name, old in manifest.sections["inputs"].items():
        path = given.pop(name, None)
        if path is None and "path" in old:
            path = str(arguments.manifest.parent / os.path.expanduser(old["path"]))
        if path is None:
            what = (
                f"it was of no file of this machine: pass its rows as a file, --table {name}=PATH"
            )
            missing.append(Change("table", name, what))
            continue
        try:
            files[name] = _register_input(session, name, path, old)
        except BlendFusionError as problem:
            missing.append(Change("table", name, f"it cannot be read: {problem.message}"))
    if given:
        raise QueryError(f"the recorded run read no table {', '.join(map(repr, given))}")
    for table, columns in manifest.sections["query"]["enums"].items():
        for column in columns:
            session.register_enum(table, column)
    return files, missing


def _register_input(
    session: bf.Session, name: str, path: str, recorded: Mapping[str, Any]
) -> Files:
    """Register a recorded table, with the recorded options where the files are of its kind."""
    spec = f"{name}={path}"
    if "read" in recorded and fits(path, recorded["path"]):
        register_again(session, quoted_name(name), path, recorded["read"])
        registered = registered_files(session, name)
        return registered or Files(path, named_files(spec)[2])
    schema, dot, _ = name.partition(".")
    if dot:  # that of a database, which the recorded run had attached
        SessionContext.sql(session, f"CREATE SCHEMA IF NOT EXISTS {quoted_name(schema)}")
    paths = named_files(spec)[2]
    register_spec(session, spec)
    return Files(path, paths)


def _update(
    arguments: argparse.Namespace,
    session: bf.Session,
    text: str,
    manifest: Manifest,
    files: dict[str, Files],
    found: list[Change],
) -> int:
    for change in found:
        _note(f"changed: {change}")
    dialect = manifest.sections["query"]["dialect"]
    frame = session.sql(text, dialect=dialect, read_only=True)
    table = frame.to_arrow_table()
    new_values = frame.trace.usage.values
    if frame.prepared.calls:
        old = manifest.sections
        for change in changes(old, {**old, "models": models_of(frame)}):
            _note(f"changed: {change}")
    _show(row_changes(manifest.result, table), _REQUESTED)
    _note(_summary(table.num_rows, new_values))
    if arguments.record is not None:
        specs = [f"{name}={file.spec}" for name, file in files.items() if file.paths]
        new = record(frame, files_of(specs, arguments.record), dialect=dialect)
        new.save(arguments.record)
    write(table, arguments.format or format_for(arguments.output), arguments.output)
    return 0


def _summary(rows: int, values: int) -> str:
    return f"{count_noun(rows, 'row')}, {count_noun(values, 'value')} asked"


def _note(text: str) -> None:
    print(printable(text), file=sys.stderr)


def _show(rows: RowChanges, redaction: Redaction) -> None:
    """Show on standard error the rows that differ, their values as ``redaction`` allows."""
    if not rows:
        _note("no row of the result changed")
        return
    counts = len(rows.added), len(rows.removed), len(rows.changed)
    _note("rows added: {:,}, removed: {:,}, changed: {:,}".format(*counts))
    for row in rows.added[:_SHOWN]:
        _note(f"+ {redaction.pass_on(str(row))}")
    for row in rows.removed[:_SHOWN]:
        _note(f"- {redaction.pass_on(str(row))}")
    for before, now in rows.changed[:_SHOWN]:
        _note(f"~ {redaction.pass_on(str(before))} → {redaction.pass_on(str(now))}")
