"""Describes what the rows of a view are made of: digests of tables, settings of the session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext

from blendfusion.datafusion.scans import scans, table_of
from blendfusion.errors import BlendFusionError
from blendfusion.models.registry.model_names import ModelNames
from blendfusion.services.replay.digests import file_digest, schema_of, table_digest
from blendfusion.services.replay.record import options_of, table_names, versions
from blendfusion.services.views.registered_tables import UNNAMED, RegisteredTables
from blendfusion.services.views.view_scans import aliases_in, scans_of
from blendfusion.udfs.ask.calibrations import Calibrations
from blendfusion.udfs.ask.reviews import Reviews
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from datafusion.plan import LogicalPlan

    from blendfusion.frame import Frame
    from blendfusion.language.query_text.stored_calls import StoredCall
    from blendfusion.models.embedders.cache import VectorCounts
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.services.views.folder import View

_ROWS = 65_536
_FILES = re.compile(r"^DataSourceExec: file_groups=\{\d+ groups?: (\[.*?\])\}, ")
_ONE_FILE = re.compile(r"([^\[\],]+?)(?::\d+\.\.\d+)?(?=[\],])")
_VOLATILE = re.compile(
    r"\b(rand|random|uuid|uuidv4|now|today|current_date|current_time|current_timestamp|localtimestamp)\b\s*(\(\s*\))?",
    re.IGNORECASE,
)
_SETTINGS = re.compile(
    r"^\s*(datafusion\.(?!.*(?:_concurrency|target_partitions)\b)\S+) = (.*)$", re.MULTILINE
)
"""Settings of the engine, but for those that follow the number of cores; the options have that."""
_WITHOUT_BRACKETS = ("current_date", "current_time", "current_timestamp", "localtimestamp")


def inputs_of(session: RegisteredTables, frame: Frame) -> dict[str, str | None]:
    """A digest of each table that ``frame`` reads, by name: of the contents of its files, or of its
    rows; and of what people answered and measured for its calls. None: its changes cannot be
    told."""
    known, digests = list(table_names(session)), dict[str, str | None]()
    for each in _frames_of(frame):
        names, by_view = scans(each.logical_plan()), dict[str, list[str | None]]()
        views = _views_of(session, each)
        found = scans_of(each, views) if views else []
        if found is None:
            digests |= dict.fromkeys(views)
        elif views:
            names = {scan for v, leaf in found if v is None for scan in scans(leaf)}
            for view, leaf in found:
                if view is not None:
                    by_view.setdefault(view, []).append(_digest_of_scan(session, leaf, known))
        for scan in names:
            name = table_of(scan, known)
            key = scan.split(" projection=")[0][:80] if name is None else name
            if key not in digests:
                digests[key] = None if name is None else _digest_of_table(session, name)
        for view, parts in by_view.items():
            digests[view] = None if None in parts else _digest_of(parts)
    return dict(sorted(digests.items())) | dict(_beside_tables(session, frame))


def _views_of(session: RegisteredTables, frame: BaseFrame) -> set[str]:
    """The names in a plan that are those of views of the session."""
    aliases = aliases_in(frame.logical_plan().display_indent())
    return {name for name in aliases if _is_view(session, name)}


def _is_view(session: RegisteredTables, name: str) -> bool:
    with suppress(Exception):  # DataFusion's own; an alias need not be the name of anything
        *path, last = name.split(".")
        catalog = session.catalog(path[0]) if len(path) == 2 else session.catalog()
        schema = catalog.schema(path[-1] if path else "public")
        return bool(schema.table(last).kind == "view")
    return False


def _frames_of(frame: BaseFrame) -> Iterator[BaseFrame]:
    """The frame, and those from which its calls take labels, examples and samples, which its plan
    does not show."""
    yield frame
    known, engine = frame.engine.calls, frame.engine
    for call in frame.prepared.calls:
        for inner in known.subqueries(engine, call.task).values():
            yield from _frames_of(inner)


def tables_in(frame: Frame) -> set[str]:
    """The names of tables and views in the plan of a frame, and of what is called as they are."""
    plans = [each.logical_plan() for each in _frames_of(frame)]
    scanned = {scan.split(" projection=")[0] for plan in plans for scan in scans(plan)}
    return scanned.union(*(aliases_in(plan.display_indent()) for plan in plans))


def plan_text(frame: Frame) -> str:
    """The plans of all that a run of ``frame`` runs: with what its views and functions say."""
    return "\n".join(each.logical_plan().display_indent() for each in _frames_of(frame))


def _beside_tables(session: RegisteredTables, frame: Frame) -> Iterator[tuple[str, str]]:
    """Digests of the answers of people and of the calibrations that calls name."""
    kept = session.runs.kept
    for call in (call for each in _frames_of(frame) for call in each.prepared.calls):
        if call.review:
            rows = kept.of(Reviews).review_of(call.review).rows
            labels = {key: row.label for key, row in rows.items() if row.label is not None}
            yield f"of review '{call.review}'", _digest_of(sorted(labels.items()))
        if call.calibrated:
            with suppress(BlendFusionError):  # the run says that there is none
                held = kept.of(Calibrations).of_name(call.calibrated)
                yield f"of calibration '{call.calibrated}'", _digest_of(held)


def _digest_of(value: object) -> str:
    return sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()


def _digest_of_table(session: RegisteredTables, name: str) -> str:
    path = ".".join(map(quoted_name, name.split("."))) if "." in name else quoted_name(name)
    try:
        table = SessionContext.table(session, path)
        table.execution_plan()
    except Exception:  # a name with a dot of its own
        path = quoted_name(name)
        table = SessionContext.table(session, path)
    version = session.version_of(name)
    if version is not None:
        return _digest_of((version, schema_of(table.schema())))
    return _digest(table, _plan_in_full(session, path, table))


def _plan_in_full(session: RegisteredTables, path: str, table: DataFrame) -> str:
    """The plan of a table. DataFusion shows few of many files otherwise."""
    plan = table.execution_plan().display_indent()
    if "..." not in plan:
        return plan
    rows = SessionContext.sql(session, f"EXPLAIN VERBOSE SELECT * FROM {path}").to_pydict()
    return str(dict(zip(rows["plan_type"], rows["plan"], strict=True))["physical_plan"])


def _digest_of_scan(
    session: RegisteredTables, scan: LogicalPlan, known: Sequence[str]
) -> str | None:
    """A digest of what a scan of a view reads; None for a function in FROM."""
    (text,) = scans(scan)
    if table_of(text, known) is None and not text.startswith(UNNAMED):
        return None
    table = SessionContext.create_dataframe_from_logical_plan(session, scan)
    return _digest(table, table.execution_plan().display_indent())


def _digest(table: DataFrame, plan: str) -> str:
    """A digest of a table or view with this plan: of the contents of its files, or of its rows."""
    files = _files(plan)
    if files is not None:
        return _digest_of(([(str(f), file_digest(f)) for f in files], schema_of(table.schema())))
    digest = sha256()
    for piece in _pieces(table.schema(), table.execute_stream_partitioned()):
        digest.update(table_digest(piece).encode())
    return digest.hexdigest()


def _files(plan: str) -> list[Path] | None:
    """The files of Parquet on this machine that a plan reads, and nothing else; None for another
    plan, also of files whose rows depend on the options of their reading."""
    found = _FILES.match(plan)
    if found is None or "file_type=parquet" not in plan:
        return None
    if "..." in found[1]:  # of many files, DataFusion shows some
        return None
    files = [Path("/" + text.strip()) for text in _ONE_FILE.findall(found[1])]
    return sorted(set(files)) if files and all(file.is_file() for file in files) else None


def _pieces(schema: pa.Schema, streams: Any) -> Iterator[pa.Table]:
    """The rows of streams in order, in pieces of a fixed number, the last one shorter."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for stream in streams:
        for batch in stream:
            waiting.append(batch.to_pyarrow())
            rows += waiting[-1].num_rows
            while rows >= _ROWS:
                whole = pa.Table.from_batches(waiting)
                yield whole.slice(0, _ROWS)
                waiting, rows = whole.slice(_ROWS).to_batches(), rows - _ROWS
    yield pa.Table.from_batches(waiting) if waiting else schema.empty_table()


def settings_of(
    session: RegisteredTables, frame: Frame, questions: Mapping[str, StoredCall]
) -> dict[str, Any]:
    """The settings that may change the rows, before the query runs: options, settings of the
    engine, versions, the plan, the calls with all that they were given, and the stored questions
    that it asks."""
    enums = getattr(session, "enums", {})  # of the dialects, a service
    calls = sorted(call.name for call in frame.prepared.calls)
    calls += sorted(repr((name, c.sql, c.threshold, c.names)) for name, c in questions.items())
    return {
        "options": {**options_of(session), "approximate": session.options.approximate},
        "settings": dict(_SETTINGS.findall(SessionContext.__repr__(session))),
        "plan": _digest_of(plan_text(frame)),
        "versions": versions(),
        "calls": sha256("\n".join(calls).encode("utf-8", "surrogatepass")).hexdigest(),
        "questions": {name: call.version for name, call in questions.items()},
        "enums": {table: sorted(columns) for table, columns in enums.items()},
    }


def models_of(session: RegisteredTables, vectors: VectorCounts | None = None) -> dict[str, Any]:
    """The fingerprints of the models that a session has asked so far, by name, and that of its
    embedder if a run used ``vectors``."""
    own, named = session.models.own_and_named
    used = vectors and (vectors.embedded or vectors.stored or vectors.remembered)
    return {
        "own": [[part.name, part.fingerprint] for part in own],
        "named": {name: model.fingerprint for name, model in named.items()},
        "embedder": session.embedder.fingerprint if used else None,
    }


def other_models(session: RegisteredTables, recorded: Mapping[str, Any]) -> str | None:
    """The difference between the models of a view and those of the session; None: there is none.
    Loads no model that says its fingerprint by itself."""
    options = session.options
    try:
        session.models.own(options)
        now = {
            name: session.models.of(ModelNames((name,)), options).fingerprint
            for name in recorded["named"]
        }
        vectors = recorded.get("embedder")
        if vectors is not None and session.embedder.fingerprint != vectors:
            return "the embedder changed"
    except BlendFusionError as problem:
        return problem.message
    found = models_of(session)["own"]
    if found != recorded["own"]:
        names = ", ".join(name for name, _ in found)
        was = ", ".join(name for name, _ in recorded["own"])
        return f"the model {was} became {names}" if names != was else f"the model {names} changed"
    changed = [name for name, fingerprint in recorded["named"].items() if now[name] != fingerprint]
    return f"the model {changed[0]} changed" if changed else None


def volatile_call(frame: Frame, query: str) -> str | None:
    """A function of the query whose value is another one in each run; None without one."""
    for found in _VOLATILE.finditer(f"{query}\n{plan_text(frame)}"):
        name = found[1].lower()
        if found[2] or name in _WITHOUT_BRACKETS:
            return name
    return None


def reasons(view: View, inputs: Mapping[str, str | None], settings: Mapping[str, Any]) -> list[str]:
    """The reasons why the rows of a view may not be those of its query any more; none: they are."""
    found = []
    for name in sorted({*inputs, *view.inputs}):
        if name not in view.inputs or name not in inputs:
            found.append(f"the query reads {name} {'no more' if name in view.inputs else 'now'}")
        elif inputs[name] is None:
            found.append(f"what changed in {name} cannot be told")
        elif inputs[name] != view.inputs[name]:
            found.append(f"the table {name} changed")
    for part in ("options", "settings", "versions"):
        old, new = view.settings.get(part), settings[part]
        if old is None:
            found.append(f"its {part} were not kept")
        elif new != old:
            found += [f"{part[:-1]} {n} changed" for n in new if new[n] != old.get(n)]
    if settings["calls"] != view.settings.get("calls"):
        old, new = view.settings.get("questions", {}), settings["questions"]
        others = [f"{name} is version {new[name]}" for name in new if new[name] != old.get(name)]
        found.append(
            f"the stored question {', '.join(others)}" if others else "a stored question changed"
        )
    if settings["enums"] != view.settings.get("enums"):
        found.append("other columns are compared by meaning")
    if view.settings.get("volatile"):
        found.append(f"{view.settings['volatile']}() is another value in each run")
    if view.failed:
        found.append(f"{view.failed:,} values had no valid answer")
    if not found and settings["plan"] != view.settings.get("plan"):
        found.append("a view or a function that the query names changed")
    return found
