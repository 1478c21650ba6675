"""Compares a recorded run with the present of a frame, or of a session's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from blendfusion.errors import BlendFusionError
from blendfusion.services.replay.changes import Change, changes, input_changes
from blendfusion.services.replay.manifest import Manifest
from blendfusion.services.replay.record import (
    Files,
    facts,
    input_facts,
    models_of,
    options_of,
    query_digest,
    rows_of,
    versions,
)
from blendfusion.services.replay.row_changes import RowChanges, row_changes
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame, BaseSession


def compare(frame: BaseFrame, manifest: Manifest) -> tuple[list[Change], RowChanges]:
    """The differences between a recorded run and a run of ``frame`` now: facts, and rows."""
    now = facts(frame, {}, dialect=manifest.sections["query"]["dialect"])
    table = frame.to_arrow_table()
    if frame.prepared.calls:
        now["models"] = models_of(frame)
    return changes(manifest.sections, now), row_changes(manifest.result, table)


def before_a_replay(
    manifest: Manifest, session: BaseSession, text: str, files: Mapping[str, Files]
) -> list[Change]:
    """The differences that are known without planning the query, so that a missing column is named
    as one; ``session`` has the tables that there are."""
    recorded, present = manifest.sections, dict[str, Any]()
    found: list[Change] = []
    for name, old in recorded["inputs"].items():
        if name in files or session.table_exist(quoted_name(name)):
            present[name] = old
            try:
                facts_now = input_facts(rows_of(session, name), files.get(name))
            except BlendFusionError as problem:
                found.append(Change("table", name, f"it cannot be read: {problem.message}"))
            else:
                found += input_changes(name, old, facts_now)
    now = {
        "query": {**recorded["query"], "digest": query_digest(text)},
        "options": options_of(session),
        "versions": versions(),
        "models": recorded["models"],
        "inputs": present,
    }
    embedder = recorded["models"]["embedder"]
    if embedder is not None:
        own = [session.embedder.name, session.embedder.fingerprint]
        now["models"] = {**recorded["models"], "embedder": own}
    return [*changes(recorded, now), *found]
