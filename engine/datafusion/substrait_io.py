"""Transfers plans and tables between BlendFusion and a DataFusion context."""

from __future__ import annotations

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.substrait import Consumer, Producer, Serde


def batches_of(table: pa.Table) -> list[pa.RecordBatch]:
    """The table's batches, at least one: without any, DataFusion would not know the columns."""
    return table.to_batches() or [
        pa.RecordBatch.from_arrays(
            [pa.array([], f.type) for f in table.schema], schema=table.schema
        )
    ]


def relation_of(context: SessionContext, name: str) -> bytes:
    """The bytes of the Substrait relation that reads the registered table ``name``."""
    from blendfusion.datafusion.substrait.messages import read_relation

    plan = SessionContext.table(context, name).logical_plan()
    return read_relation(Producer.to_substrait_plan(plan, context).encode())


def frame_of(context: SessionContext, data: bytes) -> DataFrame:
    """A DataFusion frame of the Substrait plan ``data``. Raises what DataFusion raises."""
    plan = Consumer.from_substrait_plan(context, Serde.deserialize_bytes(data))
    return SessionContext.create_dataframe_from_logical_plan(context, plan)
