"""Joins with a criterion: what matches need not look alike, so vectors find candidates beside
words."""

from __future__ import annotations

import numpy as np

import blendfusion as bf

CITIES = {"Lyon": "France", "Nice": "France", "Bergen": "Norway", "Porto": "Portugal"}
COUNTRIES = ["France", "Lyonesse", "Nicaragua", "Bergamo", "Portofino", "Norway", "Portugal"]
PLACES = sorted({*CITIES.values()})


def vectors(texts: list[str]) -> np.ndarray:
    """A city lies where its country does; all else elsewhere."""
    found = np.full((len(texts), len(PLACES) + 1), 0.01, dtype=np.float32)
    for row, text in enumerate(texts):
        place = CITIES.get(text, text)
        found[row, PLACES.index(place) if place in PLACES else -1] = 1
    return found


def connected(embedder: object = "toy") -> tuple[bf.Session, bf.ScriptedModel]:
    def right(call: bf.Request) -> str:
        city, listed = call.values
        texts = [line.split(". ", 1)[1] for line in (listed or "").splitlines()]
        country = CITIES[city or ""]
        return str(texts.index(country) + 1) if country in texts else "none"

    model = bf.ScriptedModel(right)
    made = bf.ScriptedEmbedder(vectors) if embedder == "toy" else embedder
    session = bf.connect(model, cache=None, progress="off", embedder=made)  # type: ignore[arg-type]
    session.from_pydict({"city": [*CITIES]}, name="cities")
    session.from_pydict({"country": COUNTRIES}, name="countries")
    return session, model


JOIN = "SELECT city, country FROM cities JOIN countries ON llm_join(city, country, how => 'it lies in it', k => 2)"


def test_vectors_find_what_words_do_not() -> None:
    session, model = connected()
    frame = session.sql(JOIN)
    assert {row["city"]: row["country"] for row in frame.to_pylist()} == CITIES
    assert len(model.calls) == len(CITIES)
    assert "candidates by words and the vectors of scripted" in frame.explain_text(analyze=True)
    assert frame.trace.vectors.embedded + frame.trace.vectors.remembered == 11
    again = session.sql(JOIN)
    assert again.estimate().total.values == 0
    assert again.to_arrow_table().num_rows == 4
    assert len(model.calls) == len(CITIES)


def test_without_an_embedder_words_find_them_alone() -> None:
    session, _ = connected(None)
    frame = session.sql(JOIN)
    assert len(frame.to_pylist()) < len(CITIES)
    assert "vectors of" not in frame.explain_text(analyze=True)


def test_the_same_thing_is_found_by_words_alone() -> None:
    session, _ = connected()
    frame = session.sql("SELECT * FROM cities JOIN countries ON llm_join(city, country, k => 2)")
    frame.collect()
    assert frame.trace.vectors.embedded == 0


def test_few_texts_are_all_candidates_and_nothing_is_embedded() -> None:
    session, _ = connected()
    frame = session.sql(JOIN.replace("k => 2", "k => 10"))
    assert len(frame.to_pylist()) == len(CITIES)
    assert frame.trace.vectors.embedded == 0


def test_equalities_beside_it_make_domains_of_their_own() -> None:
    session, _ = connected()
    session.from_pydict({"city": ["Lyon", "Nice"], "k": [1, 2]}, name="c")
    rows = [(country, k) for k in (1, 2) for country in COUNTRIES]
    session.from_pydict({"country": [c for c, _ in rows], "k": [k for _, k in rows]}, name="d")
    frame = session.sql(
        "SELECT c.city, d.country, d.k FROM c JOIN d "
        "ON llm_join(c.city, d.country, how => 'it lies in it', k => 2) AND c.k = d.k"
    )
    assert sorted(map(tuple, (r.values() for r in frame.to_pylist()))) == [
        ("Lyon", "France", 1),
        ("Nice", "France", 2),
    ]
