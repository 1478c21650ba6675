"""Indexes on disk, and llm_search over them: real Lance, in a folder of each test's own."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scripts import unordered

import blendfusion as bf
from blendfusion.apps.cli.main import main

pytest.importorskip("lance", reason="needs the extra 'search'")

WORDS = ("bike", "gravel", "road", "bread", "oven", "sourdough", "cake")


def counted(texts: Sequence[str]) -> list[list[float]]:
    """How often each of some words is in a text, and a little of something else."""
    return [
        [*(float(text.lower().split().count(word)) for word in WORDS), 0.1 + len(text) / 1e4]
        for text in texts
    ]


DOCS = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "title": ["Gravel bikes", "Road bikes", "Sourdough", "Ovens", None, "Nothing"],
        "body": [
            "A bike for gravel and mud",
            "A bike for the road, not for gravel",
            "Bread from a hot oven",
            "An oven for bread and cake",
            "  ",
            None,
        ],
        "price": [1500.0, 1200.0, 4.0, 300.0, None, 1.0],
        "tags": pa.array([["bike"], ["bike", "road"], [], None, [], []], pa.list_(pa.string())),
    }
)
PLACES = ["title", "body"]


@pytest.fixture
def embedder() -> bf.ScriptedEmbedder:
    return bf.ScriptedEmbedder(counted, name="words", fingerprint="words")


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(lambda call: "gravel" in call.values[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "docs.index"


@pytest.fixture
def session(embedder: bf.ScriptedEmbedder, model: bf.ScriptedModel, path: Path) -> bf.Session:
    """A session with the table docs and an index over it."""
    session = bf.connect(model, cache=None, embedder=embedder)
    session.from_arrow(DOCS, "docs")
    session.index("docs", columns=PLACES, path=path)
    return session


def found(session: bf.Session, query: str, **options: object) -> list[int]:
    """The ids that a search gives, best first."""
    ids: list[int] = session.search("docs", query, **options).to_pydict()["id"]  # type: ignore[arg-type]
    return ids


def numbered(n: int, first: int = 0) -> pa.Table:
    """Many rows, each with a text of its own."""
    numbers = range(first, first + n)
    return pa.table({"id": numbers, "text": [f"bike number {i} on the road" for i in numbers]})


# --- searching -----------------------------------------------------------------------------------


def test_rows_come_best_first_with_score_and_rank(session: bf.Session) -> None:
    table = session.search("docs", "gravel bike", k=3, mode="text").to_arrow_table()
    assert table.schema.names == [*DOCS.schema.names, "_score", "_rank"]
    assert table["id"].to_pylist() == [1, 2]
    assert table["_rank"].to_pylist() == [1, 2]
    first, second = table["_score"].to_pylist()
    assert first > second > 0
    assert table.drop_columns(["_score", "_rank"]).equals(DOCS.slice(0, 2))


def test_modes(session: bf.Session) -> None:
    assert found(session, "loaf of bread", mode="text") == [3, 4]
    assert found(session, "bread oven cake", k=2, mode="vector") == [4, 3]
    rows = session.search("docs", "gravel bike", k=4).to_pylist()
    assert [row["id"] for row in rows][:2] == [1, 2]
    # The best by words has one of them; the rest is the cosine.
    text = session.search("docs", "gravel bike", k=1, mode="text").to_pylist()[0]
    vector = session.search("docs", "gravel bike", k=1, mode="vector").to_pylist()[0]
    assert text["id"] == vector["id"] == 1
    assert rows[0]["_score"] == pytest.approx(1 + vector["_score"], abs=1e-5)


def test_words_are_compared_by_their_stems_and_stop_words_do_not_count(
    session: bf.Session,
) -> None:
    assert found(session, "baking the BREADS", mode="text") == [3, 4]
    assert found(session, "the and for", mode="text") == []
    assert found(session, "   ") == []


def test_operators_and_phrases(session: bf.Session) -> None:
    assert found(session, "gravel AND road", mode="text") == [2]
    assert found(session, "gravel AND NOT road", mode="text") == [1]
    assert sorted(found(session, "mud OR cake", mode="text")) == [1, 4]
    assert found(session, '"hot oven"', mode="text") == [3]
    # They are conditions in a hybrid search, too: nothing else comes in by its vector.
    assert found(session, '"hot oven" AND NOT cake') == [3]


def test_where_is_met_before_the_best_are_taken_and_a_filter_after(session: bf.Session) -> None:
    assert found(session, "bike", k=1, where="price < 1300", mode="text") == [2]
    assert found(session, "bike oven", k=4, where="price < 10") == [3, 6]
    filtered = session.sql(
        "SELECT id FROM llm_search('docs', 'gravel bike', k => 1) WHERE price < 1300"
    )
    assert filtered.to_pydict() == {"id": []}


def test_rows_that_are_alike_have_an_order(session: bf.Session, path: Path) -> None:
    """Ties are broken by content: not by the order in which rows came."""
    table = pa.table({"id": range(20), "text": ["same words"] * 20})
    session.index("docs", table, columns="text", path=path)
    first = found(session, "words", k=20)
    session.index("docs", table.slice(0, 3), columns="text", path=path)
    session.index("docs", table.take(list(reversed(range(20)))), columns="text", path=path)
    assert found(session, "words", k=20) == first


# --- SQL -----------------------------------------------------------------------------------------

TOPICS = pa.table(
    {"topic": ["gravel", "bread", "stars", None], "id": [10, 20, 30, 40], "year": [1, 2, 3, 4]}
)

QUERIES: dict[str, list[tuple[object, ...]]] = {
    "SELECT id, _rank FROM llm_search('docs', 'gravel bike', mode => 'text', k => 2)": [
        (1, 1),
        (2, 2),
    ],
    "SELECT s.id FROM llm_search('docs', 'bread', 1, 'text') AS s": [(3,)],
    "SELECT llm_search.id FROM llm_search('docs', query => 'bread', mode => 'text') "
    "WHERE llm_search._rank = 2": [(4,)],
    "SELECT d.title, s._rank FROM docs d JOIN llm_search('docs', 'mud', mode => 'text') s "
    "ON d.id = s.id": [("Gravel bikes", 1)],
    "SELECT id FROM llm_search('docs', 'oven', mode => 'text', where => 'title = ''Ovens''')": [
        (4,)
    ],
    "WITH best AS (SELECT * FROM llm_search('docs', 'bread', mode => 'text')) "
    "SELECT count(*), max(_rank) FROM best": [(2, 2)],
    "SELECT id FROM llm_search('docs', 'mud', mode => 'text') UNION ALL "
    "SELECT id FROM llm_search('docs', 'cake', mode => 'text')": [(1,), (4,)],
    "SELECT id FROM docs WHERE id IN (SELECT id FROM llm_search('docs', 'cake', mode => 'text'))": [
        (4,)
    ],
    "SELECT id FROM llm_search('docs', upper('cake'), mode => 'text')": [(4,)],
    "SELECT id FROM llm_search('docs', (SELECT topic FROM topics WHERE year = 1), k => 1)": [(1,)],
    "SELECT id FROM llm_search('docs', NULL)": [],
    "SELECT * FROM (SELECT id FROM LLM_SEARCH('docs', 'mud', mode => 'text'))": [(1,)],
    # For each row of another table.
    "SELECT topic, s.id FROM topics t, LATERAL llm_search('docs', t.topic, k => 1, mode => 'text') s": [
        ("gravel", 1),
        ("bread", 3),
    ],
    "SELECT t.topic, s.id, t.id FROM topics AS t CROSS JOIN "
    "llm_search('docs', t.topic, k => 2, mode => 'text') AS s WHERE s._rank = 2": [
        ("gravel", 2, 10),
        ("bread", 4, 20),
    ],
    "SELECT t.topic, s.title FROM topics t LEFT JOIN LATERAL "
    "llm_search('docs', t.topic, k => 1, mode => 'text') s ON TRUE": [
        ("gravel", "Gravel bikes"),
        ("bread", "Sourdough"),
        ("stars", None),
        (None, None),
    ],
    "SELECT t.topic, s.title FROM topics t JOIN LATERAL "
    "llm_search('docs', t.topic, mode => 'text') s ON s.price < 1000": [
        ("bread", "Sourdough"),
        ("bread", "Ovens"),
    ],
    "SELECT s.* FROM topics t, LATERAL llm_search('docs', t.topic || ' mud', k => 1, "
    "mode => 'text', where => 'price > 1300') s WHERE year < 2": [
        (1, "Gravel bikes", "A bike for gravel and mud", 1500.0, ["bike"], 1.0, 1)
    ],
    "SELECT t.topic, a.id, b.id FROM topics t, llm_search('docs', t.topic, k => 1, mode => 'text') a, "
    "llm_search('docs', a.title, k => 1, mode => 'text') b": [("gravel", 1, 1), ("bread", 3, 3)],
    "SELECT llm_search.title FROM topics, LATERAL llm_search('docs', topic, k => 1, mode => 'text')": [
        ("Gravel bikes",),
        ("Sourdough",),
    ],
}


@pytest.mark.parametrize("query", QUERIES)
def test_queries(session: bf.Session, query: str) -> None:
    session.from_arrow(TOPICS, "topics")
    rows = [tuple(row.values()) for row in session.sql(query).to_arrow_table().to_pylist()]
    wanted = QUERIES[query]
    if query.startswith("SELECT s.*"):  # a score is what BM25 makes of it
        rows = [(*row[:-2], 1.0, row[-1]) for row in rows]
    if "t.topic, s.id, t.id" in query or "t.topic, a.id, b.id" in query:
        names = session.sql(query).schema().names
        assert len(names) == 3
        table = session.sql(query).to_arrow_table()
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert unordered(rows) == unordered(wanted)


def test_every_column_of_both_sides(session: bf.Session) -> None:
    session.from_arrow(TOPICS.select(["topic"]), "topics")
    frame = session.sql(
        "SELECT * FROM topics, LATERAL llm_search('docs', topic, k => 1, mode => 'text')"
    )
    assert frame.schema().names == ["topic", *DOCS.schema.names, "_score", "_rank"]
    assert len(frame.to_pylist()) == 2


def test_parameters(session: bf.Session) -> None:
    session.from_arrow(TOPICS, "topics")
    by_name = session.sql(
        "SELECT id FROM llm_search('docs', $words, k => $k, mode => 'text')",
        param_values={"words": 'it\'s $5 \\ "mud"', "k": 1},
    )
    assert by_name.to_pydict() == {"id": [1]}
    by_number = session.sql(
        "SELECT s.id FROM topics t, LATERAL llm_search('docs', t.topic, k => $1, mode => $2) s "
        "WHERE t.year = $3",
        param_values={"1": 1, "2": "text", "3": 2},
    )
    assert by_number.to_pydict() == {"id": [3]}


def test_a_model_sees_the_rows_that_are_found(session: bf.Session, model: bf.ScriptedModel) -> None:
    frame = session.sql(
        "SELECT id FROM llm_search('docs', 'bike', k => 2, mode => 'text') "
        "WHERE llm_filter('For gravel?', body) AND price < 1400"
    )
    assert "llm_search('docs', 'bike', k => 2, mode => 'text') [id, body]" in frame.explain_text()
    assert frame.to_pydict() == {"id": [2]}
    assert [call.values for call in model.calls] == [("A bike for the road, not for gravel",)]


def test_a_model_may_write_the_query_or_choose_the_rows(
    session: bf.Session, model: bf.ScriptedModel
) -> None:
    session.from_arrow(TOPICS, "topics")
    frame = session.sql(
        "SELECT t.topic, s.id FROM (SELECT topic FROM topics WHERE llm_filter('?', topic)) t, "
        "LATERAL llm_search('docs', t.topic, k => 2, mode => 'text') s "
        "WHERE llm_filter('For gravel?', s.body)"
    )
    assert (
        "llm_search('docs', t.topic, k => 2, mode => 'text') for each row" in frame.explain_text()
    )
    assert unordered(frame.to_pylist()) == unordered(
        [{"topic": "gravel", "id": 1}, {"topic": "gravel", "id": 2}]
    )
    asked = sorted(str(call.values[0]) for call in model.calls)
    assert asked == [
        "A bike for gravel and mud",
        "A bike for the road, not for gravel",
        "bread",
        "gravel",
        "stars",
    ]


def test_equal_queries_of_a_join_are_searched_and_embedded_once(
    session: bf.Session, embedder: bf.ScriptedEmbedder
) -> None:
    session.from_pydict({"q": ["bread"] * 50 + ["mud", "mud"]}, name="many")
    embedder.texts.clear()
    rows = session.sql("SELECT q, s.id FROM many, LATERAL llm_search('docs', q, k => 1) s")
    assert len(rows.to_pylist()) == 52
    assert sorted(embedder.texts) == ["bread", "mud"]


def test_nothing_is_searched_before_a_frame_runs(
    session: bf.Session, embedder: bf.ScriptedEmbedder, path: Path
) -> None:
    embedder.texts.clear()
    frame = session.sql(
        "SELECT id FROM llm_search('docs', 'bread', mode => 'vector', where => 'id > 2') "
        "WHERE _rank = 1"
    )
    frame.explain_text()
    assert embedder.texts == []
    assert frame.to_pydict() == {"id": [4]}
    assert embedder.texts == ["bread"]
    session.index("docs", DOCS.slice(2, 1), columns=PLACES, path=path)
    assert frame.to_pydict() == {"id": [3]}


def test_a_frame_of_other_columns_says_so(session: bf.Session, path: Path) -> None:
    frame = session.sql("SELECT id FROM llm_search('docs', 'bread', mode => 'text')")
    session.from_arrow(TOPICS, "topics")
    joined = session.sql("SELECT s.id FROM topics t, LATERAL llm_search('docs', t.topic) s")
    session.index("docs", DOCS.select(["id", "body"]), path=path)
    for planned in (frame, joined):
        with pytest.raises(
            bf.QueryError, match="has other columns than when this query was planned"
        ):
            planned.to_pylist()


def test_a_plan_without_calls_is_explained_by_datafusion(session: bf.Session) -> None:
    session.from_arrow(TOPICS, "topics")
    for query in (
        "EXPLAIN SELECT id FROM llm_search('docs', 'bread')",
        "explain analyze verbose SELECT s.id FROM topics t, LATERAL llm_search('docs', t.topic) s",
    ):
        assert len(session.sql(query).to_pydict()["plan"]) >= 1


def test_views_and_tables_of_searches(session: bf.Session) -> None:
    session.sql("CREATE VIEW best AS SELECT id FROM llm_search('docs', 'bread', mode => 'text')")
    session.sql("CREATE TABLE kept AS SELECT id FROM llm_search('docs', 'mud', mode => 'text')")
    assert session.sql("SELECT id FROM best ORDER BY id").to_pydict() == {"id": [3, 4]}
    assert session.sql("SELECT id FROM kept").to_pydict() == {"id": [1]}


ERRORS = {
    "SELECT * FROM llm_search('dosc', 'x')": "no index 'dosc'\nHint: Did you mean 'docs'?",
    "SELECT * FROM llm_search('docs')": "llm_search: the query is missing",
    "SELECT * FROM llm_search()": "llm_search: the index is missing",
    "SELECT * FROM llm_search(docs, 'x')": "index => docs is not a literal",
    "SELECT * FROM llm_search('docs', 'x', kk => 3)": "no argument 'kk'\nHint: Did you mean 'k'?",
    "SELECT * FROM llm_search('docs', 'x', k => 0)": "k => 0 is not possible",
    "SELECT * FROM llm_search('docs', 'x', 3, k => 3)": "'k' is given twice",
    "SELECT * FROM llm_search('docs', 'x', k => price)": "k => price is not a literal",
    "SELECT * FROM llm_search('docs', 'x', mode => 'semantic')": "mode => 'semantic' is not possible",
    "SELECT * FROM llm_search('docs', 3)": "the query 3 is not text",
    "SELECT * FROM llm_search('docs', $q)": "the parameter $q has no value",
    "SELECT * FROM llm_search('docs', 'x', where => 'pric > 3')": "unknown column 'pric'\n"
    "Hint: Did you mean 'price'?",
    "SELECT * FROM llm_search('docs', 'x', where => 'price >')": "where => 'price >'",
    "SELECT * FROM llm_search('docs', 'x', where => 'price > $k')": "where => 'price > $k'",
    "SELECT * FROM llm_search('docs', nope.x)": "the query nope.x is not searchable here",
    "SELECT * FROM docs RIGHT JOIN llm_search('docs', docs.title) s ON TRUE": "is not searchable",
    "SELECT title FROM docs, llm_search('docs', docs.body) s": "Qualify a column name",
    "SELECT llm_search('docs', 'x')": "llm_search belongs in FROM",
}


@pytest.mark.parametrize("query", ERRORS)
def test_what_is_wrong_is_said_before_anything_runs(
    session: bf.Session, model: bf.ScriptedModel, query: str
) -> None:
    with pytest.raises(bf.QueryError) as raised:
        session.sql(query)
    assert ERRORS[query] in str(raised.value)
    assert model.calls == []


# --- building ------------------------------------------------------------------------------------


def test_a_report_says_what_was_done(embedder: bf.ScriptedEmbedder, path: Path) -> None:
    session = bf.connect(None, embedder=embedder)
    report = session.index("docs", DOCS, columns=PLACES, path=path)
    assert (report.rows, report.added, report.removed) == (5, 5, 0)
    assert (report.blank, report.embedded, report.rebuilt) == (1, 5, None)
    assert report.path == path
    assert str(report).startswith("index 'docs': 5 rows, 5 added, 0 removed, 1 without text, ")


def test_one_percent_of_new_rows_embeds_one_percent(
    embedder: bf.ScriptedEmbedder, path: Path
) -> None:
    session = bf.connect(None, embedder=embedder)
    rows = numbered(2_000)
    assert session.index("docs", rows, path=path).embedded == 2_000
    embedder.texts.clear()
    report = session.index("docs", pa.concat_tables([rows, numbered(20, 5_000)]), path=path)
    assert (report.rows, report.added, report.removed, report.embedded) == (2_020, 20, 0, 20)
    assert len(embedder.texts) == 20
    assert found(session, "5007", mode="text") == [5_007]
    embedder.texts.clear()
    again = session.index("docs", pa.concat_tables([numbered(20, 5_000), rows]), path=path)
    assert (again.added, again.removed, embedder.texts) == (0, 0, [])


def test_rows_that_are_gone_vanish_and_changed_ones_are_replaced(
    session: bf.Session, embedder: bf.ScriptedEmbedder, path: Path
) -> None:
    changed = DOCS.set_column(
        2, "body", pa.array(["A bike for snow", *DOCS["body"].to_pylist()[1:]])
    ).slice(0, 3)
    report = session.index("docs", changed, columns=PLACES, path=path)
    assert (report.rows, report.added, report.removed) == (3, 1, 3)
    assert found(session, "mud", mode="text") == []
    assert found(session, "snow", mode="text") == [1]
    assert found(session, "cake oven", k=9) == [3, *found(session, "cake oven", k=9)[1:]]
    assert 4 not in found(session, "cake oven", k=9)


def test_a_change_beside_the_text_embeds_nothing(
    session: bf.Session, embedder: bf.ScriptedEmbedder, path: Path
) -> None:
    embedder.texts.clear()
    cheaper = DOCS.set_column(3, "price", pa.array([9.0] * 6))
    report = session.index("docs", cheaper, columns=PLACES, path=path)
    assert (report.added, report.removed, report.embedded) == (5, 5, 0)
    assert embedder.texts == []
    row = session.search("docs", "gravel bike", k=1, mode="vector").to_pylist()[0]
    assert (row["id"], row["price"]) == (1, 9.0)
    assert row["_score"] > 0.9


def test_equal_rows_are_as_many_as_in_the_table(session: bf.Session, path: Path) -> None:
    def rows(*counts: int) -> pa.Table:
        texts = [f"text {i}" for i, n in enumerate(counts) for _ in range(n)]
        return pa.table({"text": texts})

    for counts in ((3, 1), (1, 2), (0, 5), (4, 0)):
        session.index("docs", rows(*counts), path=path)
        got = session.search("docs", "text", k=20, mode="text").to_pydict()["text"]
        assert sorted(got) == rows(*counts)["text"].to_pylist()


def test_other_columns_or_another_embedder_build_it_anew(
    session: bf.Session, embedder: bf.ScriptedEmbedder, path: Path
) -> None:
    embedder.texts.clear()
    report = session.index("docs", columns="body", path=path)
    assert report.rebuilt == "it was over title, body"
    assert (report.rows, report.added) == (4, 4)
    other = bf.connect(None, embedder=bf.ScriptedEmbedder(counted, name="more", fingerprint="m"))
    report = other.index("docs", DOCS, columns="body", path=path)
    assert report.rebuilt == "its vectors were of words"
    assert report.embedded == 4
    with pytest.raises(bf.QueryError, match="has vectors of more, and this session's embedder is"):
        session.search("docs", "bread").to_pylist()
    assert found(session, "bread", mode="text") == [3, 4]
    report = other.index("docs", DOCS, columns="body", path=path, language="German")
    assert (report.rebuilt, report.embedded) == ("its language was English", 0)
    fewer = DOCS.select(["id", "body"])
    report = other.index("docs", fewer, columns="body", path=path, language="German")
    assert (report.rebuilt, report.embedded) == ("the table has other columns", 0)


def test_vectors_of_another_length_under_the_same_name_are_an_error(path: Path) -> None:
    """As of a server that has another model by now."""

    def session_of(width: int) -> bf.Session:
        embedder = bf.ScriptedEmbedder(lambda texts: [[1.0] * width] * len(texts), fingerprint="w")
        return bf.connect(None, embedder=embedder)

    session_of(2).index("docs", DOCS, columns="body", path=path)
    more = pa.concat_tables([DOCS, DOCS.slice(0, 1).set_column(2, "body", pa.array(["new"]))])
    later = session_of(3)
    for language in ("English", "German"):
        with pytest.raises(
            bf.QueryError, match="vectors have 2 numbers, and those of scripted have 3"
        ):
            later.index("docs", more, columns="body", path=path, language=language)
    later.open_index("docs", path)
    for mode in ("vector", "hybrid"):
        with pytest.raises(bf.QueryError, match="another model has that name by now"):
            later.search("docs", "gravel", mode=mode).to_pylist()


def test_without_vectors(path: Path) -> None:
    session = bf.connect(None, embedder=None)
    with pytest.raises(bf.ModelNotFound, match="this session has no embedder"):
        session.index("docs", DOCS, columns=PLACES, path=path)
    assert session.index("docs", DOCS, columns=PLACES, path=path, vectors=False).embedded == 0
    assert found(session, "gravel") == [1, 2]
    with pytest.raises(bf.QueryError, match="has no vectors, which mode => 'hybrid' needs"):
        session.search("docs", "gravel", mode="hybrid")


def test_no_rows_at_all(session: bf.Session, path: Path) -> None:
    report = session.index("docs", DOCS.slice(0, 0), columns=PLACES, path=path)
    assert (report.rows, report.removed) == (0, 5)
    assert found(session, "bread") == []
    empty = bf.connect(None, embedder=bf.ScriptedEmbedder(counted))
    assert empty.index("docs", DOCS.slice(4), columns=PLACES, path=path / "2").rows == 1
    assert empty.index("docs", DOCS.slice(4, 1), columns=PLACES, path=path / "3").rows == 0
    assert found(empty, "bread") == []


def test_tables_frames_and_queries_may_be_indexed(
    session: bf.Session, model: bf.ScriptedModel, path: Path
) -> None:
    cheap = session.sql("SELECT id, title AS t FROM docs WHERE price < 1000")
    assert session.index("cheap", cheap, path=path / "a").rows == 3
    with_calls = session.sql("SELECT id, body FROM docs WHERE llm_filter('For gravel?', body)")
    assert session.index("asked", with_calls, path=path / "b").rows == 2
    assert len(model.calls) == 4
    assert session.search("asked", "mud", mode="text").to_pydict()["id"] == [1]
    assert session.index("named", "docs", columns="title", path=path / "c").rows == 5


def test_every_type_of_column_comes_back(session: bf.Session, path: Path) -> None:
    table = pa.table(
        {
            "text": ["bread", "road"],
            "Upper Case": [1, None],
            "when": pa.array([0, None], pa.timestamp("us", tz="UTC")),
            "amount": pa.array([1, 2], pa.decimal128(9, 2)),
            "raw": pa.array([b"\xff\x00", None], pa.binary()),
            "point": pa.array(
                [{"x": 1, "y": "a"}, None], pa.struct({"x": pa.int8(), "y": pa.utf8()})
            ),
            "vector": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "view": pa.array(["v", "w"], pa.string_view()),
            "flag": [True, None],
        }
    )
    session.index("docs", table, columns="text", path=path)
    got = session.search("docs", "bread", k=1).to_arrow_table().drop_columns(["_score", "_rank"])
    assert got.to_pylist() == table.slice(0, 1).to_pylist()
    report = session.index("docs", table, columns="text", path=path)
    assert (report.added, report.removed) == (0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "dcos"}, "unknown table 'dcos'\nHint: Did you mean 'docs'?"),
        ({"columns": ["titel"]}, "no column 'titel'\nHint: Did you mean 'title'?"),
        ({"columns": []}, "columns=[] leaves no column to search"),
        ({"source": 3}, "int is not a table"),
        ({"source": DOCS.select(["id"])}, "the table has no column of text"),
        (
            {"source": DOCS.rename_columns([*"abcd", "_score"])},
            "the column '_score' cannot be kept",
        ),
        ({"source": DOCS.rename_columns([*"abcd", "x.y"])}, "the column 'x.y' cannot be kept"),
        ({"language": "Klingon"}, "language='Klingon' is not possible"),
    ],
)
def test_what_cannot_be_indexed_is_said(
    session: bf.Session, path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(bf.QueryError) as raised:
        session.index("docs", **{"path": path, **options})  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert found(session, "mud", mode="text") == [1]


def test_a_folder_with_other_files_is_left_alone(session: bf.Session, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(bf.QueryError, match=r"contains other files, for example '.*'"):
        session.index("docs", columns=PLACES, path=tmp_path)
    with pytest.raises(bf.QueryError, match="cannot be the folder of an index"):
        session.index("docs", columns=PLACES, path=tmp_path / "letters.txt")


# --- other sessions and processes ----------------------------------------------------------------


def test_an_index_is_opened_by_its_path(
    session: bf.Session, embedder: bf.ScriptedEmbedder, path: Path
) -> None:
    reader = bf.connect(None, embedder=embedder)
    reader.open_index("docs", path)
    assert found(reader, "mud", mode="text") == [1]
    session.index("docs", DOCS.slice(1), columns=PLACES, path=path)
    assert found(reader, "mud", mode="text") == []
    with pytest.raises(bf.QueryError, match="there is no index in"):
        reader.open_index("other", path / "nothing")


LANCEDB = """
import lancedb, sys
table = lancedb.connect(sys.argv[1]).open_table(sys.argv[2])
print(table.search("mud", query_type="fts").limit(3).to_arrow()["id"].to_pylist())
"""


def test_it_is_a_database_of_lancedb(session: bf.Session, path: Path) -> None:
    """In another process: the import takes modules of tests for libraries of their names."""
    if importlib.util.find_spec("lancedb") is None:
        pytest.skip("needs lancedb, which only this test uses")
    state = json.loads((path / "index.json").read_text())
    command = [sys.executable, "-c", LANCEDB, str(path), state["dataset"]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[1]\n"


def test_indexes_without_a_path_lie_in_the_cache_folder(
    session: bf.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    place = session.index("docs", columns=PLACES).path
    assert place.parent == tmp_path / "cache" / "blendfusion" / "indexes"
    assert place.name.startswith("docs-")
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert session.index("docs", columns=PLACES).path != place


KILLED = """
import os, signal, sys
import pyarrow as pa
import blendfusion as bf
from blendfusion.apps.cli.main import main

def embed(texts):
    with open({log!r}, "a") as file:
        file.write("".join(text + "\\n" for text in texts))
    if len(open({log!r}).readlines()) > 20_000:
        os.kill(os.getpid(), signal.SIGKILL)
    return [[float(len(text)), 1.0] for text in texts]

session = bf.connect(None, embedder=bf.ScriptedEmbedder(embed, fingerprint="lengths"))
numbers = range(30_000)
rows = pa.table({{"id": numbers, "text": [f"bike number {{i}} on the road" for i in numbers]}})
session.index("docs", rows, path={path!r})
"""


def test_a_build_that_is_killed_goes_on_and_nobody_sees_half_of_it(tmp_path: Path) -> None:
    path, log = tmp_path / "docs.index", tmp_path / "log"
    embedder = bf.ScriptedEmbedder(
        lambda texts: [[float(len(t)), 1.0] for t in texts], fingerprint="lengths"
    )
    session = bf.connect(None, embedder=embedder)
    session.index("docs", numbered(10), path=path)
    code = KILLED.format(path=str(path), log=str(log))
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    embedded = set(log.read_text().splitlines())
    assert 20_000 < len(embedded) < 21_000
    # What was served before is served still.
    assert found(session, "bike", k=20, mode="text") == found(session, "road", k=20, mode="text")
    assert len(found(session, "bike", k=20, mode="text")) == 10

    report = session.index("docs", numbered(30_000), path=path)
    assert (report.rows, report.removed) == (30_000, 0)
    # One chunk of 8,192 rows, at most, is embedded again.
    assert report.embedded <= 30_000 - len(embedded) + 8_192
    assert found(session, "29123", mode="text") == [29_123]
    assert session.index("docs", numbered(30_000), path=path).added == 0


def test_an_error_while_building_leaves_what_was_served(
    session: bf.Session, embedder: bf.ScriptedEmbedder, path: Path
) -> None:
    def fails(texts: list[str]) -> list[list[float]]:
        raise bf.ModelFailed("no vectors today")

    broken = bf.connect(None, embedder=bf.ScriptedEmbedder(fails, fingerprint="words"))
    with pytest.raises(bf.ModelFailed, match="no vectors today"):
        broken.index("docs", numbered(5), path=path)
    assert found(session, "mud", mode="text") == [1]
    broken.open_index("docs", path)
    with pytest.raises(bf.ModelFailed, match="no vectors today"):
        broken.search("docs", "mud").to_pylist()


def test_one_writes_after_the_other_while_others_read(path: Path) -> None:
    """Writers in threads wait for each other; readers see whole versions only."""
    embedder = bf.ScriptedEmbedder(counted, fingerprint="words")
    sizes = (40, 60, 80)
    first = bf.connect(None, embedder=embedder)
    first.index("docs", numbered(sizes[0]), path=path)
    problems: list[BaseException] = []
    seen: set[int] = set()
    stop = threading.Event()

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as problem:
                problems.append(problem)

        return run

    def write() -> None:
        session = bf.connect(None, embedder=embedder)
        for n in (*sizes, *reversed(sizes)):
            session.index("docs", numbered(n), path=path)

    def read() -> None:
        session = bf.connect(None, embedder=embedder)
        session.open_index("docs", path)
        while not stop.is_set():
            seen.add(len(found(session, "bike", k=200, mode="text")))

    writers = [threading.Thread(target=guarded(write)) for _ in range(2)]
    readers = [threading.Thread(target=guarded(read)) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert problems == []
    assert seen <= set(sizes)


def test_wordllama_by_default(path: Path) -> None:
    pytest.importorskip("wordllama", reason="needs the extra 'search'")
    session = bf.connect(None)
    session.index("docs", DOCS, columns=PLACES, path=path)
    assert found(session, "cycling off the asphalt", k=2, mode="vector")[0] in (1, 2)
    assert found(session, "baking a loaf", k=2, mode="vector")[0] in (3, 4)
    assert np.isclose(session.embedder.embed(["x"]).shape[1], 256)


def test_without_the_library_the_error_names_the_extra(
    session: bf.Session, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "lance" else real(name, *more),
    )
    for use in (
        lambda: session.index("docs", columns=PLACES, path=path),
        lambda: session.open_index("docs", path),
        lambda: session.register_lance("t", path),
    ):
        with pytest.raises(bf.ModelNotFound, match=r"pip install 'blendfusion\[search\]'"):
            use()


# --- clusters, fragments, the command line -------------------------------------------------------


def test_many_rows_are_searched_by_clusters(
    session: bf.Session, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blendfusion.services.search import build

    monkeypatch.setattr(build, "CLUSTERED_ROWS", 1_000)
    monkeypatch.setattr(build, "CLUSTER_ROWS", 64)
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(40, 16))

    def embed(texts: list[str]) -> np.ndarray:
        numbers = [int(text.split()[1]) for text in texts]
        noise = [np.random.default_rng(n).normal(size=16) for n in numbers]
        return np.array([kinds[n % 40] + 0.3 * e for n, e in zip(numbers, noise, strict=True)])

    session = bf.connect(None, embedder=bf.ScriptedEmbedder(embed, fingerprint="kinds"))
    rows = pa.table({"n": range(4_000), "text": [f"number {i}" for i in range(4_000)]})
    session.index("docs", rows.slice(0, 3_000), columns="text", path=path)
    assert json.loads((path / "index.json").read_text())["clustered"] == 3_000
    session.index("docs", rows, columns="text", path=path)
    for n in (5, 77, 3_500):  # the last one came after the clusters were made
        got = session.search("docs", f"number {n}", k=20, mode="vector").to_pydict()["n"]
        assert got[0] == n
        assert sum(i % 40 == n % 40 for i in got) >= 18


def test_many_small_updates_are_put_together(
    session: bf.Session, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blendfusion.services.search import build

    monkeypatch.setattr(build, "_MOST_FRAGMENTS", 3)
    for n in range(1, 9):
        session.index("docs", numbered(n * 10), path=path)
        assert len(found(session, "bike", k=200, mode="text")) == n * 10
        assert len(found(session, "bike", k=200, mode="vector")) == n * 10
    report = session.index("docs", numbered(40, 20), path=path)
    assert (report.added, report.removed, report.rows) == (0, 40, 40)
    assert sorted(found(session, "bike", k=200, mode="text")) == list(range(20, 60))


def test_old_versions_are_dropped_when_the_next_update_begins(
    session: bf.Session, path: Path
) -> None:
    import lance

    for n in range(1, 6):
        session.index("docs", numbered(n * 10), path=path)
    (dataset,) = path.glob("rows-*.lance")
    versions = lance.dataset(dataset).versions()
    assert len(versions) <= 6  # those of the last two updates
    session.index("docs", DOCS, columns=PLACES, path=path)
    session.index("docs", DOCS.slice(0, 2), columns=PLACES, path=path)
    assert len(list(path.glob("rows-*.lance"))) == 1


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("wordllama", reason="needs the extra 'search'")
    table, folder = tmp_path / "docs.csv", tmp_path / "docs.index"
    table.write_text("id,text\n1,a red bicycle\n2,fresh bread\n")
    build = ["index", "docs", "--table", f"t={table}", "--columns", "text", "--path", str(folder)]
    assert main(build) == 0
    assert capsys.readouterr().out.startswith("index 'docs': 2 rows, 2 added, 0 removed, 2 texts")
    query = "SELECT id FROM llm_search('docs', 'bike', k => 1)"
    assert main(["query", query, "--index", f"docs={folder}", "--format", "json"]) == 0
    assert capsys.readouterr().out == '{"id": 1}\n'
    assert main(["query", query, "--index", "docs="]) != 0
    assert "is not NAME=FOLDER" in capsys.readouterr().err
