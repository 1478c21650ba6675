"""Rows that look like a question are asked about first, where a query takes any rows that pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf

COLOURS = ("red", "green", "blue")


def colours(texts: list[str]) -> np.ndarray:
    """A text as how often it names each colour."""
    counts = [[1 + text.count(colour) for colour in COLOURS] for text in texts]
    return np.array(counts, dtype=np.float32)


def connected(similar_first: bool = True) -> tuple[bf.Session, bf.ScriptedModel]:
    def names_it(call: bf.Request) -> bool:
        return call.question.removeprefix("is it ") in (call.values[0] or "")

    model = bf.ScriptedModel(names_it)
    session = bf.connect(
        model,
        cache=None,
        progress="off",
        similar_first=similar_first,
        embedder=bf.ScriptedEmbedder(colours),
    )
    texts = [f"{i} {COLOURS[i % 2]}" for i in range(100)] + ["a blue one", "blue, too", None]
    session.from_pydict({"id": list(range(103)), "x": texts}, name="t")
    return session, model


def test_the_likely_rows_are_asked_first() -> None:
    session, model = connected()
    sql = "SELECT id FROM t WHERE llm_filter('is it blue', x) LIMIT 2"
    assert sorted(session.sql(sql).to_pydict()["id"]) == [100, 101]
    assert len(model.calls) == 2
    other, asked = connected(similar_first=False)
    assert sorted(other.sql(sql).to_pydict()["id"]) == [100, 101]
    assert len(asked.calls) == 102


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t WHERE llm_filter('is it blue', x) ORDER BY id LIMIT 1",
        "SELECT id FROM (SELECT * FROM t ORDER BY id LIMIT 99) WHERE llm_filter('is it green', x) LIMIT 1",
        "SELECT count(*) FROM t WHERE llm_filter('is it blue', x) LIMIT 1",
        "SELECT id FROM t WHERE llm_filter('is it blue', x, CAST(id AS TEXT)) LIMIT 1",
        "SELECT id FROM t WHERE llm_int('is it blue', x) = 1 LIMIT 1",
        "SELECT id, llm_bool('is it blue', x) FROM t LIMIT 1",
    ],
)
def test_where_the_order_is_the_querys_or_decides_nothing(sql: str) -> None:
    session, _ = connected()
    assert "llm_similarity" not in session.sql(sql).explain_text()


@given(st.sampled_from(COLOURS), st.integers(1, 4), st.integers(0, 3), st.integers(0, 100))
def test_what_comes_passes_and_is_as_many(colour: str, limit: int, offset: int, least: int) -> None:
    session, _ = connected()
    where = f"WHERE id >= {least} AND llm_filter('is it {colour}', x)"
    rows = session.sql(f"SELECT id FROM t {where} LIMIT {limit} OFFSET {offset}").to_pydict()["id"]
    passing = session.sql(f"SELECT id FROM t {where}").to_pydict()["id"]
    assert len(rows) == len(set(rows)) == max(0, min(limit, len(passing) - offset))
    assert set(rows) <= set(passing)


def test_without_an_embedder_it_says_so() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), embedder=None, similar_first=True)
    session.from_pydict({"x": ["a"]}, name="t")
    with pytest.raises(bf.BlendFusionError, match="embedder"):
        session.sql("SELECT x FROM t WHERE llm_filter('q', x) LIMIT 1").collect()
