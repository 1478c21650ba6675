"""Records a run: its query, options, versions, models, inputs, answers and result."""

from __future__ import annotations

import platform
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from datafusion import SessionContext

from blendfusion.datafusion.scans import scans, table_of
from blendfusion.errors import FileWarning, QueryError
from blendfusion.language.opaque.provenance import written_sql
from blendfusion.models.stores.recording import KeyedStore
from blendfusion.options import OF_MODELS, Options
from blendfusion.planner.ir.document_tables import COLUMNS, Documents, documents_of
from blendfusion.planner.ir.search_tables import search_of
from blendfusion.run.hooks import Text
from blendfusion.run.reports.trace import AnswerWarning
from blendfusion.services.replay.digests import (
    file_digest,
    schema_of,
    table_digest,
    unordered_digest,
)
from blendfusion.services.replay.indexes import input_of, inputs_of_rows, rows_of_index
from blendfusion.services.replay.manifest import Manifest, result_section
from blendfusion.services.replay.model import description
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame, BaseSession
    from blendfusion.services.replay.registrations import Registration

PACKAGES = ("blendfusion", "datafusion", "pyarrow", "llama-cpp-python")
_WITHOUT_EFFECT = frozenset(
    {
        "projector",  # the fingerprint of the model covers its content
        "timeout_seconds",
        "retries",
        "concurrency",
        "concurrency_most",
        "requests_per_minute",
        "tokens_per_minute",
        "threads",
        "n_gpu_layers",
    }
)
_OF_QUERIES = (
    "planner",
    "rules_off",
    "similar_first",
    "planning_ms",
    "names_in_any_case",
    "on_error",
    "image_urls",
    "chunk_rows",
    "first_chunk_rows",
)
OPTIONS = tuple(
    o.name
    for o in fields(Options)
    if o.name in _OF_QUERIES or (o.name in OF_MODELS and o.name not in _WITHOUT_EFFECT)
)
"""The options that may change a result."""
_PARTITIONS = re.compile(r"datafusion\.execution\.target_partitions = (\d+)")


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a table: ``spec`` is the path or the pattern that registers them."""

    spec: str
    paths: tuple[Path, ...]


def record(
    frame: BaseFrame,
    files: Mapping[str, Files] | None = None,
    *,
    dialect: str | None = None,
) -> Manifest:
    """Run ``frame`` and record the run; ``files`` are those of its tables, by table.

    A frame that has not run yet runs twice, the second time on stored answers. Raises QueryError
    for a frame with parameters, and for one that reads more than registered tables."""
    sections = facts(frame, files or {}, dialect=dialect)  # before anything is asked
    session = frame.session
    if frame.prepared.calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AnswerWarning)  # the recorded run gives them
            frame.to_arrow_table()  # every model is known from here
    answers, tokens = KeyedStore(), dict[str, int]()
    with session.models.record_answers(answers, tokens):
        table = frame.to_arrow_table()
    if frame.prepared.calls:
        sections["models"] = models_of(frame)
    failed = sum(a.error is not None for a in answers.answers.values())
    sections["answers"] = {"stored": len(answers.answers) - failed, "failed": failed}
    sections["result"] = result_section(table)
    return Manifest(sections, answers.answers, tokens, table)


def facts(
    frame: BaseFrame, files: Mapping[str, Files], *, dialect: str | None = None
) -> dict[str, Any]:
    """The parts of a manifest that are known before a run. Raises QueryError."""
    session = frame.session
    _check_views(frame)
    return {
        "query": _query(frame, dialect),
        "options": options_of(session),
        "versions": versions(),
        "models": {"own": [], "named": {}, "embedder": None},
        "inputs": {
            name: {
                **input_facts(table, files.get(name) or registered_files(session, name)),
                **registration_facts(session, name),
            }
            for name, table in inputs(frame, session)
        },
    }


def _check_views(frame: BaseFrame) -> None:
    """Raises QueryError where the text of a query names a view, which a replay would not know."""
    if not isinstance(frame.origin, Text):
        return
    text, catalog = written_sql(frame), frame.session.catalog()
    for schema in catalog.schema_names():
        known = catalog.schema(schema)
        listed: Any = known.table_names
        for name in listed() if callable(listed) else listed:
            named = rf"\b(from|join)\s+({re.escape(schema)}\.)?\"?{re.escape(name)}\b"
            if re.search(named, text, re.IGNORECASE) and known.table(name).kind == "view":
                raise QueryError(
                    f"a manifest of a query that reads the view '{name}' is not possible",
                    hint="Write what the view says into the query, or make a table of it.",
                )


def models_of(frame: BaseFrame) -> dict[str, Any]:
    """The part of a manifest that describes the models of a frame that has run."""
    session, vectors = frame.session, frame.trace.vectors
    own, named = session.models.own_and_named
    described: dict[str, Any] = {
        "own": [description(model) for model in own],
        "named": {name: description(model) for name, model in named.items()},
        "embedder": None,
    }
    if vectors.embedded or vectors.stored or vectors.remembered:
        described["embedder"] = [session.embedder.name, session.embedder.fingerprint]
    return described


def _query(frame: BaseFrame, dialect: str | None) -> dict[str, Any]:
    origin, text = frame.origin, written_sql(frame)
    plain = isinstance(origin, Text)
    if isinstance(origin, Text) and (origin.parameters or origin.named):
        raise QueryError(
            "a manifest of a query with parameters is not possible",
            hint="Write the values into the query.",
        )
    if isinstance(origin, Text) and origin.tables:
        raise QueryError(
            "a manifest of a query over a frame of the program is not possible",
            hint="Register the frame: session.from_pandas(df, name='df').",
        )
    source = text if plain else f"{text}\n{frame.logical_plan().display_indent()}"
    hidden = frame.session.options.show_values == "off"
    enums = getattr(frame.session, "enums", {})  # of the dialects, a service
    return {
        "text": text if plain and not hidden else None,
        "digest": query_digest(source),
        "dialect": dialect,
        "enums": {table: sorted(columns) for table, columns in enums.items()},
    }


def query_digest(text: str) -> str:
    """The digest of a query's text, without white space around it."""
    return sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()


def options_of(session: BaseSession) -> dict[str, Any]:
    """The options that may change a result, and the number of partitions, which orders rows."""
    shown = _PARTITIONS.search(SessionContext.__repr__(session))  # SHOW needs a setting
    chosen = {name: getattr(session.options, name) for name in OPTIONS}
    return {**chosen, "partitions": None if shown is None else int(shown[1])}


def versions() -> dict[str, str | None]:
    """The versions of what computes a result; None: not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def inputs(frame: BaseFrame, session: BaseSession) -> Iterator[tuple[str, pa.Table]]:
    """The tables that ``frame`` reads, in the order of their names, each once. Raises QueryError
    for a source that is no registered table."""
    known, plan = list(table_names(session)), frame.logical_plan()
    read = set(inputs_of_rows(plan.display_indent(), session))
    for scan in scans(plan):
        name = table_of(scan, known) or input_of(scan.split(" projection=")[0], session)
        if name is None or "/" in name:  # a file that the query names
            raise _more_than_tables(scan.split(" projection=")[0])
        read.add(name)
    for name in sorted(read):
        yield name, rows_of(session, name)


def _more_than_tables(scan: str) -> QueryError:
    """The refusal of a scan of no registered table, in the words of the query."""
    names = scan.split(".", 2)
    documents, search = documents_of(names), search_of(names)
    hint = "Store the rows of a search or a file in a table, and query that."
    if documents is not None:
        given = asdict(documents)
        usual = asdict(Documents(given["path"]))
        options = [f"{key}={given[key]!r}" for key in usual if given[key] != usual[key]]
        call = ", ".join(["'documents'", repr(given["path"]), *options])
        hint = f"Register them, session.register_documents({call}), and query that table."
    elif search is not None:
        hint = "Store what the search finds in a table, and query that."
    elif names[:2] == ["__blendfusion", "unnamed"]:
        scan = "a frame of the program"
        hint = "Register its file, session.register_file('rows.parquet', 'name'), and query that table."
    elif "/" in scan:
        hint = f"Register it, session.register_file({scan!r}, 'name'), and query that table."
    return QueryError(
        "a manifest of a query that reads more than registered tables is not possible: "
        f"'{documents or search or scan}'",
        hint=hint,
    )


def registered_files(session: BaseSession, name: str) -> Files | None:
    """The files of a table that the session registered from files on this machine."""
    made = _registration_of(session, name)
    return None if made is None else Files(made.path, made.files(session))


def registration_facts(session: BaseSession, name: str) -> dict[str, Any]:
    """The part of a manifest that says how files became a table; empty for one in memory."""
    made, known = _registration_of(session, name), cast("Any", session)
    if made is None and not known.is_in_memory(name):
        warnings.warn(
            f"table {name}: a manifest cannot hold how its files became a table. A replay needs its "
            f"rows as a file, --table {name}=PATH.",
            FileWarning,
            stacklevel=2,
        )
    return {} if made is None else {"read": {"method": made.method, "options": made.options}}


def _registration_of(session: BaseSession, name: str) -> Registration | None:
    known: Any = session  # with this service's part of it
    return cast("Registration | None", known.registration_of(name))


def rows_of(session: BaseSession, name: str) -> pa.Table:
    """The rows of a registered table, by its name as a plan shows it, or of an index among the
    inputs, in the order of its parts, whichever is read first."""
    found = rows_of_index(name, session)
    if found is not None:
        return found
    path = ".".join(map(quoted_name, name.split(".")))
    frame = SessionContext.table(session, path)
    batches = [batch for part in frame.collect_partitioned() for batch in part]
    return pa.Table.from_batches(batches, schema=frame.schema())


def table_names(session: BaseSession) -> Iterator[str]:
    """The names of registered tables, as a plan shows them."""
    catalog = session.catalog()
    for schema in catalog.schema_names():
        listed: Any = catalog.schema(schema).table_names
        for table in listed() if callable(listed) else listed:  # a list in a schema of Python
            yield table
            yield f"{schema}.{table}"
            yield f"datafusion.{schema}.{table}"


def _with_moved_files(table: pa.Table, spec: str) -> pa.Table:
    """A table of documents with the files as they lie from their folder, which may be another one
    in a replay; any other table as it is."""
    if tuple(table.schema.names) != COLUMNS:
        return table
    path = Path(spec.partition("*")[0]).expanduser().absolute()
    base = path if path.is_dir() else path.parent
    moved = [
        str(Path(f).absolute().relative_to(base)) if Path(f).absolute().is_relative_to(base) else f
        for f in table["file"].to_pylist()
    ]
    return table.set_column(0, table.schema.field(0), pa.array(moved, table.schema.field(0).type))


def input_facts(table: pa.Table, files: Files | None) -> dict[str, Any]:
    """The part of a manifest that describes one input."""
    if files is not None:
        table = _with_moved_files(table, files.spec)
    facts: dict[str, Any] = {
        "columns": schema_of(table.schema),
        "rows": table.num_rows,
        "digest": table_digest(table),
        "any_order": unordered_digest(table),
    }
    if files is not None:
        facts["path"] = files.spec
        facts["files"] = {path.name: file_digest(path) for path in files.paths}
    return facts
