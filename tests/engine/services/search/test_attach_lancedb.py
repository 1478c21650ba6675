"""A database of LanceDB in a session: its tables, and searches by its own indexes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import blendfusion as bf

lancedb = pytest.importorskip("lancedb", reason="needs the extra 'dev'")

WORDS = ("gravel", "city", "bread")


def vectors(texts: list[str]) -> list[list[float]]:
    """Vectors that count the words of a text."""
    return [[float(text.count(word)) for word in WORDS] + [0.01] for text in texts]


TEXTS = [f"{WORDS[i % 3]} number {i}" + (" gravel gravel" if i == 4 else "") for i in range(30)]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    db = lancedb.connect(tmp_path / "db")
    made = pa.array(vectors(TEXTS), pa.list_(pa.float32(), 4))
    rows = pa.table({"id": range(30), "body": TEXTS, "price": np.arange(30.0), "vector": made})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        db.create_table("docs", rows).create_fts_index("body")
    db.create_table("Plain-Table", pa.table({"x": [1, 2]}))
    return tmp_path / "db"


@pytest.fixture
def session(database: Path) -> bf.Session:
    embedder = bf.ScriptedEmbedder(vectors)
    session = bf.connect(
        bf.ScriptedModel(lambda call: "gravel" in call.values[0]), cache=None, embedder=embedder
    )
    assert session.attach_lancedb(database, vectors=True) == ("Plain-Table", "docs")
    return session


def ids(frame: bf.Frame) -> list[int]:
    return [int(i) for i in frame.to_pydict()["id"]]


def test_its_tables_are_tables_of_the_session(session: bf.Session, database: Path) -> None:
    frame = session.sql(
        "SELECT id FROM docs WHERE price > 25 AND llm_filter('Gravel?', body) ORDER BY id"
    )
    assert "price > 25" in frame.explain_text() or "filter" in frame.explain_text()
    assert (ids(frame), frame.trace.usage.values) == ([27], 4)
    assert session.sql('SELECT sum(x) AS s FROM "Plain-Table"').to_pylist() == [{"s": 3}]
    lancedb.connect(database).open_table("Plain-Table").add(pa.table({"x": [10]}))
    assert session.sql('SELECT sum(x) AS s FROM "Plain-Table"').to_pylist() == [{"s": 13}]


def test_its_indexes_answer_searches(session: bf.Session) -> None:
    by_words = session.sql("SELECT * FROM llm_search('docs', 'bread', 3, 'text') ORDER BY _rank")
    assert [row["body"].split()[0] for row in by_words.to_pylist()] == ["bread"] * 3
    assert by_words.columns == ["id", "body", "price", "vector", "_score", "_rank"]
    where = "llm_search('docs', 'gravel', k => 2, mode => 'text', where => 'price > 20')"
    assert all(i > 20 for i in ids(session.sql(f"SELECT id FROM {where}")))
    assert len(ids(session.sql(f"SELECT id FROM {where}"))) == 2
    near = session.search("docs", "city", 3, mode="vector")
    assert [row["body"].split()[0] for row in near.to_pylist()] == ["city"] * 3
    assert near.to_pylist()[0]["_score"] == pytest.approx(1.0, abs=0.01)
    both = session.search("docs", "gravel", 30)
    assert ids(both)[0] == 4  # more of the word than any other, and near by its vector
    assert set(ids(both)[1:11]) == set(range(0, 30, 3))
    assert session.search("docs", " ", 3).count() == 0


def test_new_rows_are_found(session: bf.Session, database: Path) -> None:
    assert session.search("docs", "unheard", mode="text").count() == 0
    table = lancedb.connect(database).open_table("docs")
    table.add([{"id": 99, "body": "unheard of", "price": 1.0, "vector": [0, 0, 0, 1.0]}])
    table.optimize()
    assert ids(session.search("docs", "unheard", mode="text")) == [99]


def test_a_search_joins_the_rows_of_a_query(session: bf.Session) -> None:
    session.from_pydict({"q": ["bread", "city"]}, name="queries")
    found = session.sql(
        "SELECT q, s.body FROM queries JOIN llm_search('docs', q, k => 1, mode => 'text') AS s ON true ORDER BY q"
    )
    assert [row["body"].split()[0] for row in found.to_pylist()] == ["bread", "city"]


def test_an_index_of_ours_is_a_table_of_lancedb(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    session = bf.connect(None, cache=None)
    session.from_pydict({"id": [1, 2], "body": ["a red bike", "a blue tent"]}, name="docs")
    session.index("docs", columns=["body"], path=tmp_path / "docs.index")
    database = lancedb.connect(tmp_path / "docs.index")
    (name,) = database.list_tables().tables
    table = database.open_table(name)
    assert sorted(table.to_arrow()["body"].to_pylist()) == ["a blue tent", "a red bike"]
    assert table.count_rows("id = 1") == 1
    assert [index.index_type for index in table.list_indices()]
    found = table.search("bike", query_type="fts").limit(1).to_list()
    assert found[0]["body"] == "a red bike"


def test_what_cannot_be_searched_says_why(
    session: bf.Session, database: Path, tmp_path: Path
) -> None:
    with pytest.raises(bf.QueryError, match="has a table 'Plain-Table' already"):
        session.attach_lancedb(database)
    with pytest.raises(bf.QueryError, match="no index 'Plain-Table'"):
        session.search("Plain-Table", "x")
    with pytest.raises(bf.QueryError, match="where => 'nothing > 1'"):
        session.search("docs", "x", where="nothing > 1")
    plain = bf.connect(None, cache=None)
    with pytest.raises(bf.QueryError, match="has no table of LanceDB"):
        plain.attach_lancedb(tmp_path)
    with pytest.raises(bf.QueryError, match="cannot read the database"):
        plain.attach_lancedb(tmp_path / "nowhere")
    plain.attach_lancedb(f"file://{database}")
    assert plain.search("docs", "bread", 2).count() == 2  # words alone
    with pytest.raises(bf.QueryError, match="no vectors of this session's embedder"):
        plain.search("docs", "bread", mode="vector")
    other = bf.connect(
        None, cache=None, embedder=bf.ScriptedEmbedder(lambda t: [[1.0, 2.0]] * len(t))
    )
    other.attach_lancedb(database, vectors=True)
    with pytest.raises(bf.QueryError, match="has 2 dimensions"):
        other.search("docs", "bread", mode="vector").collect()


def test_vector_indexes_keep_their_metric(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 4)).astype("float32")
    table = pa.table(
        {"id": range(300), "vector": pa.array(list(points), pa.list_(pa.float32(), 4))}
    )
    dataset = lance.write_dataset(table, tmp_path / "points.lance")
    dataset.create_index("vector", "IVF_FLAT", num_partitions=1, metric="l2")
    unit = points[7] / np.linalg.norm(points[7])
    embedder = bf.ScriptedEmbedder(lambda texts: [unit.tolist()] * len(texts))
    session = bf.connect(None, cache=None, embedder=embedder)
    session.attach_lancedb(tmp_path, vectors=True)
    wanted = np.argsort(((points - unit) ** 2).sum(axis=1))[:3].tolist()
    assert ids(session.search("points", "any", 3)) == wanted
    with pytest.raises(bf.QueryError, match="has no full-text index"):
        session.search("points", "any", mode="hybrid")


def test_a_connection_of_lancedb_is_a_place_and_a_list_is_none(database: Path) -> None:
    with bf.connect(None, cache=None) as session:
        assert session.attach_lancedb(lancedb.connect(database)) == ("Plain-Table", "docs")
        with pytest.raises(bf.ArgumentError, match="a list is no place of a database"):
            session.attach_lancedb([database])  # type: ignore[arg-type]
