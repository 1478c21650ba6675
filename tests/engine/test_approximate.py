"""Only likely values are asked about, where a call says so: what is promised, what is told, what is
refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import blendfusion as bf

SIZE, EVERY = 2_000, 7
TEXTS = [f"note {i}" for i in range(SIZE)]
RIGHT = set(TEXTS[::EVERY])
LIKELY = "llm_filter('q', x, recall => 0.9, proxy => 'similarity')"
QUERY = f"SELECT x FROM t WHERE {LIKELY}"


def vectors(texts: list[str]) -> np.ndarray:
    """Near to the question what is right, mostly; the joined values of a row count by the first."""
    found = []
    for text in texts:
        first = text.split("\n")[0]
        noise = np.random.default_rng(int(first.partition(" ")[2] or 0))
        angle = 0.0 if first == "q" else abs(noise.normal(0.4 if first in RIGHT else 1.2, 0.15))
        found.append([np.cos(angle), np.sin(angle)])
    return np.array(found, dtype=np.float32)


def connected(
    answer: Callable[[bf.Request], object] | None = None, **options: object
) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(answer or (lambda call: call.values[0] in RIGHT))  # type: ignore[arg-type]
    embedder = bf.ScriptedEmbedder(vectors, name="toy", fingerprint="toy")
    session = bf.connect(model, cache=None, progress="off", embedder=embedder, **options)
    session.from_pydict({"id": range(SIZE), "x": TEXTS, "y": ["", *["z"] * (SIZE - 1)]}, name="t")
    return session, model


def test_it_finds_as_many_as_promised_asks_fewer_and_says_so() -> None:
    session, model = connected()
    frame = session.sql(QUERY)
    before = frame.explain_text()
    assert "approximate: recall ≥ 0.9 with probability 0.95 by similarity" in before
    assert f"about {SIZE:,} values of {SIZE:,} rows (at most)" in before
    passed = set(frame.to_pydict()["x"])
    assert passed <= RIGHT
    assert 0.9 * len(RIGHT) <= len(passed)
    assert len(model.calls) == frame.trace.usage.values < SIZE / 2
    assert frame.trace.approximate
    (outcome,) = frame.trace.cascades.values()
    assert outcome.decided == SIZE - len(model.calls)
    told = str(outcome)
    for part in ("recall ≥ 0.9 by similarity", "the vectors of toy decided", "with a similarity of at most",
                 "of them yes, which makes recall ≥ 0.9", f"that was asked {len(model.calls):,}"):  # fmt: skip
        assert part in told, told
    after = frame.explain_text(analyze=True)
    assert "approximate: recall ≥ 0.9 by similarity: the vectors of toy decided" in after
    assert f"vectors: 0 embedded, {SIZE + 1:,} remembered" in after


def test_what_is_not_approximate_says_nothing() -> None:
    session, _ = connected()
    frame = session.sql("SELECT x FROM t WHERE llm_filter('q', x)")
    assert len(frame.collect()) == 1
    assert not frame.trace.approximate
    assert "approximate" not in frame.explain_text(analyze=True)


def test_a_run_again_asks_nothing_and_gives_the_same_in_any_order_of_rows() -> None:
    session, model = connected()
    first = sorted(session.sql(QUERY).to_pydict()["x"])
    asked = len(model.calls)
    assert sorted(session.sql(QUERY).to_pydict()["x"]) == first
    turned = f"SELECT x FROM (SELECT * FROM t ORDER BY id DESC) WHERE {LIKELY}"
    assert sorted(session.sql(turned).to_pydict()["x"]) == first
    assert len(model.calls) == asked


def test_where_few_are_true_all_are_asked() -> None:
    session, model = connected(lambda call: call.values[0] in TEXTS[:9])
    frame = session.sql(QUERY)
    assert sorted(frame.to_pydict()["x"]) == TEXTS[:9]
    assert len(model.calls) == SIZE
    assert not frame.trace.approximate
    told = str(next(iter(frame.trace.cascades.values())))
    assert "(9 yes, 30 are needed), all 2,000 asked of scripted" in told


@pytest.mark.parametrize(
    "promise", ["recall => 0.9", "accuracy => 0.95", "recall => 0.9, precision => 0.9"]
)
def test_a_classifier_of_vectors_decides_for_one_model(promise: str) -> None:
    session, model = connected()
    frame = session.sql(
        f"SELECT x FROM t WHERE llm_filter('q', x, {promise}, proxy => 'embedding')"
    )
    assert "by embedding" in frame.explain_text()
    passed = set(frame.to_pydict()["x"])
    assert len(passed & RIGHT) >= 0.9 * len(RIGHT)
    assert len(passed - RIGHT) <= (0 if promise == "recall => 0.9" else 0.1 * len(passed) + 1)
    assert len(model.calls) < 0.6 * SIZE
    assert frame.trace.approximate
    assert "embedding decided" in str(next(iter(frame.trace.cascades.values())))


def test_few_values_and_limits_are_exact() -> None:
    session, _ = connected()
    few = session.sql(f"SELECT x FROM t WHERE id < 50 AND {LIKELY}")
    assert set(few.to_pydict()["x"]) == set(TEXTS[:50:EVERY])
    assert "too few values to sample" in str(next(iter(few.trace.cascades.values())))
    limited = session.sql(f"{QUERY} LIMIT 5")
    assert limited.to_arrow_table().num_rows == 5
    assert not limited.trace.approximate


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*) FROM t WHERE {LIKELY} AND id >= 0",
        f"SELECT count(*) FROM t WHERE id < 0 OR {LIKELY}",
        f"SELECT count(*) FROM (SELECT x, {LIKELY} AS f FROM t) WHERE f",
        "SELECT count(*) FROM t WHERE llm_filter('q', x, y, recall => 0.9, proxy => 'similarity')",
        "SELECT count(*) FROM t WHERE llm_map('q', x, returns => 'bool', recall => 0.9, proxy => 'similarity')",
    ],
)
def test_in_any_place(sql: str) -> None:
    session, model = connected()
    found = session.sql(sql).to_arrow_table().column(0)[0].as_py()
    assert 0.9 * len(RIGHT) <= found <= len(RIGHT)
    assert len(model.calls) < SIZE / 2


def test_frames_and_an_index(tmp_path: Path) -> None:
    session, model = connected()
    session.index("t", columns=["x", "y"], path=tmp_path)
    other, model = connected()
    other.open_index("t", tmp_path)
    likely = bf.llm_filter("q", "x", "y", targets=bf.Targets(recall=0.9, proxy="similarity"))
    frame = other.table("t").filter(likely)
    assert 0.9 * len(RIGHT) <= len(frame.to_pylist()) <= len(RIGHT)
    assert len(model.calls) < SIZE / 2
    # The first row's y is blank, so that its text is another than in the index.
    assert frame.trace.vectors.embedded <= 2
    assert frame.trace.vectors.stored >= SIZE - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("llm_filter('q', x, proxy => 'similarity')", "proxy => 'similarity' alone promises nothing"),
        ("llm_filter('q', x, proxy => 'similarity', delta => 0.1)", "can promise recall, and nothing else"),
        ("llm_filter('q', x, accuracy => 0.9, proxy => 'similarity')", "can promise recall"),
        ("llm_filter('q', x, recall => 0.9, precision => 0.9, proxy => 'similarity')", "can promise recall"),
        ("llm_filter('q', x, recall => 0.9, proxy => 'length')", "Write 'similarity' or 'embedding'"),
        ("llm_filter('q', x, recall => 0.9, confidence => 0.9, proxy => 'similarity')", "does not go with confidence"),
        ("llm_int('q', x, recall => 0.9, proxy => 'similarity')", "no option 'recall'"),
    ],
)  # fmt: skip
def test_what_cannot_be_promised(call: str, message: str) -> None:
    session, _ = connected()
    with pytest.raises(bf.QueryError, match=message):
        session.sql(f"SELECT {call} FROM t")


def test_without_an_embedder_it_says_so() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), embedder=None)
    session.from_pydict({"x": TEXTS}, name="t")
    with pytest.raises(bf.BlendFusionError, match="embedder"):
        session.sql(QUERY).collect()
