"""Every function, type, cast, frame and clause of the engine, alone and beside a call.

DataFusion alone is the oracle: values and types beside a call must be the same. The default run
takes a share of each kind; ``--cases 50000`` takes all that DataFusion accepts, some 2,800.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from engine_expressions import Query, alone, beside_a_call, expressions, table

import blendfusion as bf

KINDS = (
    *("type", "cast", "zone", "scalar", "form", "subquery", "aggregate", "window", "frame"),
    "clause",
)
PLANNED = ("zone", "frame")
"""Kinds that run by stages, also beside a call."""
SESSION = 200
"""The queries of a session: DataFusion takes longer to plan, the more functions it knows."""


class Result(NamedTuple):
    types: list[pa.DataType]
    rows: list[str]


@pytest.fixture(scope="module")
def plain() -> SessionContext:
    context = SessionContext(SessionConfig().with_information_schema(True))
    context.register_record_batches("t", [table().to_batches()])
    return context


@pytest.fixture(scope="module")
def queries(plain: SessionContext) -> list[Query]:
    made = expressions(plain)
    random.Random(1).shuffle(made)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_an_expression_beside_a_call_is_what_it_is_alone(
    kind: str, plain: SessionContext, queries: list[Query], cases: int
) -> None:
    most = cases // 45
    tried, wrong = 0, []
    for query, expected in _accepted(plain, [q for q in queries if q.kind == kind]):
        if tried == most:
            break
        if tried % SESSION == 0:
            session = _session()
        tried += 1
        wrong += _differences(session, plain, query, expected)
    assert wrong == []
    assert tried >= min(most, 30), f"DataFusion accepts {tried} queries of this kind"


def _accepted(plain: SessionContext, queries: list[Query]) -> Iterator[tuple[Query, Result]]:
    """The queries that DataFusion runs, with its results."""
    for query in queries:
        try:
            yield query, _result(plain.sql(alone(query)).to_arrow_table())
        except BaseException as problem:  # it also panics
            if isinstance(problem, GeneratorExit | KeyboardInterrupt):
                raise


def _differences(
    session: bf.Session, plain: SessionContext, query: Query, expected: Result
) -> list[str]:
    sql = beside_a_call(query)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.PlanWarning)
            frame = session.sql(sql)
            rows = frame.to_arrow_table()
    except bf.BlendFusionError as problem:
        return [f"{sql}: {problem}"]
    found = _result(rows.drop_columns(["v"]) if "{call}" in query.sql else rows)
    if found != expected and _result(plain.sql(alone(query)).to_arrow_table()) == expected:
        return [f"{sql}: {found} instead of {expected}"]
    if query.kind in PLANNED and frame.prepared.reason is not None:
        return [f"{sql}: {frame.prepared.reason}"]
    return []


def _session() -> bf.Session:
    def answer(request: bf.Request) -> bool | str:
        return True if request.constraint.kind == "boolean" else "w"

    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off")
    session.from_arrow(table(), name="t")
    return session


def _result(rows: pa.Table) -> Result:
    """Types, and rows in one order."""
    columns = [column.to_pylist() for column in rows.columns]
    return Result(rows.schema.types, sorted(map(repr, zip(*columns, strict=True))))
