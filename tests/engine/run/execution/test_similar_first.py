"""Rows that look like a question are asked about first, where a query takes any rows that pass."""

from __future__ import annotations

from pathlib import Path

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


BLUE = "SELECT id FROM t WHERE llm_filter('is it blue', x) LIMIT 2"


def connected(similar_first: bool | str = True) -> tuple[bf.Session, bf.ScriptedModel]:
    def names_it(call: bf.Request) -> bool:
        return call.question.removeprefix("is it ") in (call.values[0] or "")

    model = bf.ScriptedModel(names_it)
    session = bf.connect(
        model,
        cache=None,
        progress="off",
        similar_first=similar_first,
        embedder=bf.ScriptedEmbedder(colours, fingerprint="colours"),
    )
    texts = [f"{i} {COLOURS[i % 2]}" for i in range(100)] + ["a blue one", "blue, too", None]
    session.from_pydict({"id": list(range(103)), "x": texts}, name="t")
    return session, model


def test_the_likely_rows_are_asked_first() -> None:
    session, model = connected()
    assert sorted(session.sql(BLUE).to_pydict()["id"]) == [100, 101]
    assert len(model.calls) == 2
    other, asked = connected(similar_first=False)
    assert sorted(other.sql(BLUE).to_pydict()["id"]) == [100, 101]
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


# -- with an index ---------------------------------------------------------------------------------


def test_an_index_of_the_column_gives_the_order_and_nothing_is_embedded(tmp_path: Path) -> None:
    session, model = connected("auto")
    assert "llm_similarity" not in session.sql(BLUE).explain_text()
    session.index("t", columns="x", path=tmp_path)
    frame = session.sql(BLUE)
    assert sorted(frame.to_pydict()["id"]) == [100, 101]
    assert len(model.calls) == 2
    session.sql("SET blendfusion.similar_first = false")
    assert "llm_similarity" not in session.sql(BLUE).explain_text()
    session.sql("SET blendfusion.similar_first = auto")
    assert "llm_similarity" in session.sql(BLUE).explain_text()

    other, model = connected("auto")
    other.open_index("anything", tmp_path)  # it knows its table
    frame = other.sql(BLUE)
    text = frame.explain_text(analyze=True)
    assert "[vectors: 1 embedded, 102 from an index]" in text
    assert str(frame.trace.vectors) == "1 embedded, 102 from an index"
    assert len(model.calls) == 2
    again = other.sql("SELECT max(llm_similarity(x, 'is it blue')) FROM t")
    again.collect()
    assert again.trace.vectors.embedded == 0


def test_what_the_index_does_not_have_is_embedded(tmp_path: Path) -> None:
    session, model = connected("auto")
    session.index("old", session.sql("SELECT * FROM t WHERE id < 100"), columns="x", path=tmp_path)
    assert "llm_similarity" not in session.sql(BLUE).explain_text()  # it is not known to be t's
    session.open_index("t", tmp_path)  # now it is called so
    frame = session.sql(BLUE)
    assert sorted(frame.to_pydict()["id"]) == [100, 101]
    assert frame.trace.vectors.embedded == 3
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT id FROM t WHERE id > 4 AND llm_filter('q', x) LIMIT 2", True),
        ("SELECT id FROM (SELECT id, x AS y FROM t) WHERE llm_filter('q', y) LIMIT 2", True),
        ("SELECT id FROM t JOIN u ON id = uid WHERE llm_filter('q', t.x) LIMIT 2", True),
        ("SELECT id FROM u JOIN t ON id = uid WHERE llm_filter('q', t.x) LIMIT 2", True),
        ("SELECT id FROM t WHERE id IN (SELECT uid FROM u) AND llm_filter('q', x) LIMIT 2", True),
        ("SELECT id FROM u LEFT JOIN t ON id = uid WHERE llm_filter('q', t.x) LIMIT 2", True),
        ("SELECT id FROM u LEFT JOIN t ON id = uid WHERE llm_filter('q', t.x) OR uid = 7 LIMIT 2", False),
        ("SELECT id FROM t WHERE llm_filter('q', upper(x)) LIMIT 2", False),
        ("SELECT id FROM t WHERE llm_filter('q', y) LIMIT 2", False),
        ("SELECT uid FROM u WHERE llm_filter('q', x) LIMIT 2", False),
        ("SELECT x FROM (SELECT x FROM t UNION ALL SELECT x FROM u) WHERE llm_filter('q', x) LIMIT 2", False),
        ("SELECT x FROM (SELECT max(x) AS x FROM t GROUP BY id) WHERE llm_filter('q', x) LIMIT 2", False),
        ("SELECT id FROM t WHERE llm_filter('q', x) ORDER BY id LIMIT 2", False),
    ],
)  # fmt: skip
def test_only_the_very_column_has_an_order(sql: str, ordered: bool, tmp_path: Path) -> None:
    session, _ = connected("auto")
    session.deregister_table("t")
    session.from_pydict({"id": [1, 5, 6], "x": ["a", "b", "c"], "y": ["d", "e", "f"]}, name="t")
    session.from_pydict({"uid": [1, 5, 7], "x": ["a", "b", "c"]}, name="u")
    session.index("t", columns="x", path=tmp_path)
    text = session.sql(sql).explain_text(estimates=False)
    assert ("llm_similarity" in text) == ordered, text


def test_an_index_of_more_columns_or_of_another_embedder_gives_none(tmp_path: Path) -> None:
    session, _ = connected("auto")
    session.index("t", columns=["id", "x"], path=tmp_path / "both")
    assert "llm_similarity" not in session.sql(BLUE).explain_text()
    session.index("t", columns="x", path=tmp_path / "none", vectors=False)
    assert "llm_similarity" not in session.sql(BLUE).explain_text()
    other = bf.connect(None, embedder=bf.ScriptedEmbedder(colours, name="o", fingerprint="o"))
    table = {"id": [1], "x": ["red"]}
    other.from_pydict(table, name="t")
    other.index("t", columns="x", path=tmp_path / "other")
    session.open_index("t", tmp_path / "other")
    assert "llm_similarity" not in session.sql(BLUE).explain_text()
    unable = bf.connect(None, embedder=None)
    unable.from_pydict(table, name="t")
    unable.open_index("t", tmp_path / "other")
    assert "llm_similarity" not in unable.sql(BLUE).explain_text()


def test_with_packaged_vectors_as_users_have_it(tmp_path: Path) -> None:
    texts = [f"Invoice {i} was paid late" for i in range(30)] + ["My bicycle has a flat tyre"]
    model = bf.ScriptedModel(lambda call: "tyre" in (call.values[0] or ""))
    builder = bf.connect(None, cache=None)
    builder.from_pydict({"text": texts}, name="notes")
    builder.index("notes", path=tmp_path)
    session = bf.connect(model, cache=None, progress="off")
    session.from_pydict({"text": texts}, name="notes")
    session.open_index("notes", tmp_path)
    frame = session.sql(
        "SELECT text FROM notes WHERE llm_filter('Is it about a bike?', text) LIMIT 1"
    )
    assert frame.to_pydict()["text"] == texts[-1:]
    assert len(model.calls) == 1
    assert (frame.trace.vectors.stored, frame.trace.vectors.embedded) == (31, 1)
