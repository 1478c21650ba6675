"""Plans of any depth are rewritten, and run."""

from __future__ import annotations

import pyarrow as pa
import pytest
from scripts import Counted, hashed, tuples, unordered

from blendfusion.run.execution.executor import HIDDEN_CATALOG, STAGE_SCHEMA


@pytest.fixture
def db() -> Counted:
    structs = [{"p": i, "q": [i]} for i in range(6)]
    return Counted(hashed).add("t", pa.table({"id": range(6), "x": list("abcabc"), "s": structs}))


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_long_chains_of_predicates(word: str, db: Counted) -> None:
    cheap = f" {word} ".join(f"x LIKE '{i}%'" for i in range(60))
    dear = f" {word} ".join(f"llm_filter('q{i}', x)" for i in range(60))
    frame = db.session.sql(f"SELECT id FROM t WHERE (({cheap}) {word} {dear}) IS NOT NULL")
    assert frame.count() == 6
    assert frame.prepared.reason is None


def test_a_chain_of_joins(db: Counted) -> None:
    n = 20
    joins = " ".join(f"JOIN t AS t{i} ON t{i}.id = t{i - 1}.id" for i in range(1, n))
    calls = " AND ".join(f"llm_filter('q{i}', t{i}.x) IS NOT NULL" for i in range(n))
    frame = db.session.sql(f"SELECT t0.id FROM t AS t0 {joins} WHERE {calls}")
    assert frame.count() == 6
    assert frame.prepared.reason is None


@pytest.mark.parametrize("n", [45, 90, 110])
def test_more_joins_than_datafusion_reads_at_once(n: int, db: Counted) -> None:
    joins = " ".join(f"JOIN t AS t{i} ON t{i}.id = t{i - 1}.id" for i in range(1, n))
    frame = db.session.sql(
        f"SELECT t0.id, t1.s FROM t AS t0 {joins} WHERE llm_filter('q', t{n - 1}.x) IS NOT NULL"
    )
    rows = tuples(frame.to_arrow_table())
    assert unordered(rows) == [(i, {"p": i, "q": [i]}) for i in range(6)]
    assert frame.prepared.reason is None
    assert len(db.model.calls) == 3
    assert not db.session.catalog(HIDDEN_CATALOG).schema(STAGE_SCHEMA).names()
