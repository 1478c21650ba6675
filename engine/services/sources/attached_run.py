"""One run of a query over attached databases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.scan_run import ScanRun
from blendfusion.services.sources.advise_scans import MOST_KEYS, Adviser, names_of
from blendfusion.services.sources.remote_table import RemoteTable
from blendfusion.services.sources.scan_advice import Advice, Key, following
from blendfusion.services.sources.snapshots import Snapshot

if TYPE_CHECKING:
    from blendfusion.services.sources.attachment import Attachment

T = TypeVar("T")
Attached: TypeAlias = "Mapping[str, Attachment]"
"""The attached databases of a session, by their names."""


class AttachedRun(ScanRun):
    """A run whose scans read one state of each database."""

    def __init__(self, session: SessionContext, attached: Attached) -> None:
        super().__init__()
        self._session, self._attached, self._snapshot = session, attached, Snapshot()

    def begin(self, frame: DataFrame, begin: Callable[[], T]) -> T:
        with following(advice_of(self._session, self._attached, frame), self._snapshot):
            return super().begin(frame, begin)

    def close(self) -> None:
        self._snapshot.close()


def advice_of(
    session: SessionContext, attached: Attached, frame: DataFrame
) -> Mapping[Key, Advice]:
    """The advice for the scans of a frame; none for one that cannot be planned."""
    try:
        plan = DataFrame.optimized_logical_plan(frame)
    except Exception:  # the query's own error comes when it runs
        return {}
    return Adviser(partial(_table_of, attached), partial(_keys_of, session)).advise(plan)


def _table_of(attached: Attached, scan: Any) -> RemoteTable | None:
    catalog, schema, name = scan.fqn()
    for found in attached.values():
        if catalog == found.name:
            own = found.catalog.remote_schema(schema)
            return None if own is None else own.remote_table(name)
        is_own = name in found.own_names and schema in (None, "public")
        default = found.default_schema
        if default is not None and (schema == found.name or is_own):
            return default.remote_table(name)
    return None


def _keys_of(session: SessionContext, plan: LogicalPlan, name: str) -> pa.Array | None:
    """The values of a column of a plan, each once; None if it has more rows than keys are sent."""
    place = names_of(plan).index(name)
    frame = SessionContext.create_dataframe_from_logical_plan(session, plan)
    try:
        batches = DataFrame(frame.df).limit(MOST_KEYS + 1).collect()
    except Exception:  # the same
        return None
    if sum(batch.num_rows for batch in batches) > MOST_KEYS:
        return None
    columns = [batch.column(place) for batch in batches]
    kind = frame.schema().field(place).type
    return pa.chunked_array(columns, kind).unique().drop_null()
