"""The 22 queries of TPC-H: DataFusion's own results, without a call and with one model
predicate."""

from __future__ import annotations

import math

import pytest
import tpch
from datafusion import SessionContext
from scripts import Counted, spoken, tuples

SCALE = 0.05
QUERIES = tpch.queries()
PLACED = tpch.placed()

pytestmark = pytest.mark.skipif(
    tpch.generator() is None, reason="tpchgen-cli, which generates the tables, is not installed"
)


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[SessionContext, Counted]:
    """Plain DataFusion, and a session, over the same files."""
    folder = tmp_path_factory.mktemp("tpch")
    tpch.generate(folder, SCALE)
    plain, counted = SessionContext(), Counted(spoken)
    for context in (plain, counted.session):
        tpch.register(context, folder)
    return plain, counted


def same(found: list[tuple[object, ...]], expected: list[tuple[object, ...]]) -> bool:
    """Equal rows in equal order; floats to nine digits, as sums of them depend on the order."""
    return len(found) == len(expected) and all(
        math.isclose(a, b, rel_tol=1e-9)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for row, other in zip(found, expected, strict=True)
        for a, b in zip(row, other, strict=True)
    )


@pytest.mark.parametrize("name", QUERIES)
def test_a_session_gives_datafusions_result(
    name: str, databases: tuple[SessionContext, Counted]
) -> None:
    plain, counted = databases
    sql = QUERIES[name]
    assert same(counted.rows(sql), tuples(plain.sql(sql).to_arrow_table()))
    assert counted.asked(sql) == 0


@pytest.mark.parametrize("name", PLACED)
def test_a_model_predicate_gives_its_twins_result(
    name: str, databases: tuple[SessionContext, Counted]
) -> None:
    plain, counted = databases
    query = PLACED[name]
    assert counted.session.sql(query.sql).prepared.reason is None
    assert same(counted.rows(query.sql), tuples(plain.sql(query.twin).to_arrow_table()))


@pytest.mark.parametrize("name", PLACED)
def test_a_model_predicate_sees_what_the_cheap_ones_leave(
    name: str, databases: tuple[SessionContext, Counted]
) -> None:
    plain, counted = databases
    query = PLACED[name]
    most = tuples(plain.sql(query.asked).to_arrow_table())[0][0]
    assert isinstance(most, int)
    assert most > 0
    assert counted.asked(query.sql) <= most
