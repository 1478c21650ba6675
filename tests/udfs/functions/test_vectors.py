"""llm_embed and llm_similarity: no language model, each distinct text once, before dear calls."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext, col, lit

import blendfusion as bf

WORDS = ("bike", "gravel", "road", "bread", "oven")


def counted(texts: list[str]) -> list[list[float]]:
    """How often each of some words is in a text, and a little of something else."""
    return [[*(float(text.split().count(word)) for word in WORDS), 0.1] for text in texts]


TEXTS = ["gravel bike", "road bike", "bread oven", None, "  ", "gravel bike"]


@pytest.fixture
def embedder() -> bf.ScriptedEmbedder:
    return bf.ScriptedEmbedder(counted)


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(lambda call: "gravel" in call.values[0])


@pytest.fixture
def session(embedder: bf.ScriptedEmbedder, model: bf.ScriptedModel) -> bf.Session:
    session = bf.connect(model, cache=None, embedder=embedder)
    session.from_pydict({"id": range(6), "text": TEXTS}, name="t")
    return session


def cosine(a: str, b: str) -> float:
    x, y = np.array(counted([a, b]))
    return float(round(x @ y / np.linalg.norm(x) / np.linalg.norm(y), 6))


def test_similarity_is_the_cosine_and_null_for_nothing(
    session: bf.Session, embedder: bf.ScriptedEmbedder, model: bf.ScriptedModel
) -> None:
    got = session.sql(
        "SELECT llm_similarity(text, 'a bike on gravel') AS s FROM t ORDER BY id"
    ).to_pydict()["s"]
    query = "a bike on gravel"
    first, second, third = (cosine(text, query) for text in TEXTS[:3] if text)
    assert got == pytest.approx([first, second, third, None, None, first], abs=1e-6)
    assert got[0] > got[1] > got[2]
    assert sorted(embedder.texts) == sorted(["gravel bike", "road bike", "bread oven", query])
    assert model.calls == []


def test_either_side_may_be_a_column_an_expression_or_a_parameter(session: bf.Session) -> None:
    rows = session.sql(
        "SELECT llm_similarity(text, text) AS same, llm_similarity($q, upper(text)) AS other "
        "FROM t WHERE id = 0",
        param_values={"q": "BIKE"},
    ).to_pylist()
    assert rows == [{"same": 1.0, "other": 1.0}]
    frame = session.table("t").select(bf.llm_similarity("text", lit("gravel bike")).alias("s"))
    assert frame.limit(1).to_pydict()["s"] == [1.0]


def test_embeddings_are_lists_of_length_one(session: bf.Session) -> None:
    frame = session.sql("SELECT llm_embed(text) AS v FROM t ORDER BY id")
    assert frame.schema().field("v").type == pa.list_(pa.float32())
    got = frame.to_pydict()["v"]
    assert got[3] is None
    assert got[4] is None
    assert np.linalg.norm(got[2]) == pytest.approx(1)
    assert session.table("t").select(bf.llm_embed(col("text")).alias("v")).to_pydict()["v"] == got


def test_the_similarity_of_stored_vectors_is_sql(session: bf.Session) -> None:
    """The distance of vectors of length one says their cosine."""
    rows = session.sql(
        "SELECT 1 - power(array_distance(llm_embed(a.text), llm_embed(b.text)), 2) / 2 AS c "
        "FROM t a JOIN t b ON a.id = 0 AND b.id = 1"
    ).to_pydict()["c"]
    assert rows == pytest.approx([cosine("gravel bike", "road bike")], abs=1e-5)


def test_a_model_sees_only_what_similarity_leaves(
    session: bf.Session, model: bf.ScriptedModel
) -> None:
    frame = session.sql(
        "SELECT id FROM t WHERE llm_filter('Is it about gravel?', text) "
        "AND llm_similarity(text, 'bread oven') < 0.5 AND id < 5"
    )
    plan = frame.explain_text()
    assert plan.index("embed llm_similarity(t.text, 'bread oven') → number") < plan.index("ask llm")
    assert frame.to_pydict() == {"id": [0]}
    assert sorted(c.values[0] for c in model.calls) == ["gravel bike", "road bike"]


def test_similarity_decides_a_disjunction_before_a_model_does(
    session: bf.Session, model: bf.ScriptedModel
) -> None:
    frame = session.sql(
        "SELECT id FROM t WHERE (llm_filter('Is it about gravel?', text) "
        "OR llm_similarity(text, 'bread oven') > 0.5) AND id < 3 ORDER BY id"
    )
    assert frame.to_pydict() == {"id": [0, 2]}
    assert sorted(c.values[0] for c in model.calls) == ["gravel bike", "road bike"]


def test_the_most_alike_rows_come_first_and_nulls_last(session: bf.Session) -> None:
    rows = session.sql("SELECT id FROM t ORDER BY llm_similarity(text, 'road bike') DESC, id")
    assert rows.to_pydict()["id"] == [1, 0, 5, 2, 3, 4]


def test_an_estimate_embeds_nothing_and_counts_no_embedding(
    session: bf.Session, embedder: bf.ScriptedEmbedder
) -> None:
    estimate = session.sql(
        "SELECT llm_text('What is it?', text) FROM t "
        "WHERE id < 3 AND llm_similarity(text, 'bike') > 0.9"
    ).estimate()
    assert embedder.texts == []
    assert [op.call for op in estimate.operators] == ["llm_text('What is it?', t.text)"]
    assert not estimate.exact
    assert estimate.total.values == 2  # half of the comparisons hold


def test_an_estimate_knows_what_was_embedded_before(
    session: bf.Session, embedder: bf.ScriptedEmbedder, model: bf.ScriptedModel
) -> None:
    frame = session.sql(
        "SELECT id FROM t WHERE llm_filter('Is it gravel?', text) "
        "AND llm_similarity(text, 'bike') > 0.5"
    )
    frame.collect()
    embedder.texts.clear()
    model.calls.clear()
    session.clear_cache()
    estimate = session.sql(
        "SELECT id FROM t WHERE llm_filter('Is it gravel?', text) "
        "AND llm_similarity(text, 'bike') > 0.5"
    ).estimate()
    assert embedder.texts == []
    assert (estimate.total.values, estimate.exact) == (2, True)


def test_the_planner_changes_no_row(embedder: bf.ScriptedEmbedder, model: bf.ScriptedModel) -> None:
    query = (
        "SELECT a.id, llm_similarity(a.text, b.text) AS s FROM t a JOIN t b ON a.id = b.id + 1 "
        "WHERE llm_similarity(a.text, 'bike') > 0.2 OR llm_filter('?', b.text) ORDER BY a.id"
    )
    results = []
    for planner in (True, False):
        session = bf.connect(model, cache=None, embedder=embedder, planner=planner)
        session.from_pydict({"id": range(6), "text": TEXTS}, name="t")
        results.append(session.sql(query).to_pylist())
    assert results[0] == results[1]
    assert len(results[0]) == 2


def test_no_language_model_is_loaded() -> None:
    session = bf.connect("openai:none@http://127.0.0.1:1/v1", embedder=bf.ScriptedEmbedder(counted))
    rows = session.sql("SELECT llm_similarity('road bike', 'road bike') AS s").to_pydict()
    assert rows == {"s": [1.0]}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT llm_similarity(text) FROM t", "takes 2 values, 1 given"),
        ("SELECT llm_embed(text, text) FROM t", "takes 1 value, 2 given"),
        ("SELECT llm_similarity(text, 'x', options => ['a']) FROM t", "no option 'options'"),
    ],
)
def test_what_is_wrong_with_a_call_is_said(session: bf.Session, query: str, message: str) -> None:
    with pytest.raises(bf.ArgumentError) as raised:
        session.sql(query)
    assert message in str(raised.value)


def test_a_session_without_embedder_says_so() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), embedder=None)
    with pytest.raises(bf.ModelNotFound, match="this session has no embedder"):
        session.sql("SELECT llm_embed('text')").to_pylist()


def test_in_a_plain_context(embedder: bf.ScriptedEmbedder, model: bf.ScriptedModel) -> None:
    context = SessionContext()
    bf.register(context, model, cache=None, embedder=embedder)
    row = context.sql("SELECT llm_similarity('road bike', 'gravel bike') AS s").to_pydict()
    assert row["s"] == pytest.approx([cosine("road bike", "gravel bike")], abs=1e-6)
    assert len(context.sql("SELECT llm_embed('road bike') AS v").to_pydict()["v"][0]) == 6
