"""llm_group: clusters named by the model, and each value sorted into a name."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.models.embedders.embedder import Vectors, normalise
from blendfusion.udfs.services.columns.clusters import clusters
from blendfusion.udfs.services.columns.group_store import Group
from blendfusion.udfs.services.columns.groups import sorted_into

TOPICS = {
    "late": ["The parcel came late", "Delivery took three weeks", "Still waiting for my parcel"],
    "broken": ["It broke at once", "The handle is broken", "Broken on arrival"],
    "praise": ["I love it", "Great bag", "Best bag ever"],
}
TOPIC_OF = {text: topic for topic, texts in TOPICS.items() for text in texts}
TEXTS = [*TOPIC_OF]


class ByTopic:
    """Vectors that differ by topic, and a little by text."""

    name = fingerprint = "by topic"
    batch_size = 64

    def embed(self, texts: list[str]) -> Vectors:
        places = [[*TOPICS].index(TOPIC_OF[text]) for text in texts]
        rows = np.eye(4)[places] + 0.01 * np.array([[len(text) % 7] * 4 for text in texts])
        return normalise(rows)

    def close(self) -> None:
        pass


def answer(request: bf.Request) -> str:
    text = str(request.values[0])
    if request.constraint.options:
        return TOPIC_OF[text] if TOPIC_OF[text] in request.constraint.options else "other"
    first = text.splitlines()[0].removeprefix("- ")
    return TOPIC_OF[first]


def connected(texts: list[str | None]) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None, embedder=ByTopic())
    session.from_pydict({"x": texts}, name="t")
    return session, model


def test_one_question_a_cluster_and_one_a_distinct_value() -> None:
    session, model = connected([*TEXTS, *TEXTS, None, " "])
    frame = session.sql(
        "SELECT llm_group(x, into => 3) AS g, count(*) AS n FROM t GROUP BY 1 ORDER BY g"
    )
    rows = frame.to_pylist()
    assert rows == [
        {"g": "broken", "n": 6},
        {"g": "late", "n": 6},
        {"g": "praise", "n": 6},
        {"g": None, "n": 2},
    ]
    assert len(model.calls) == 3 + len(TEXTS)
    assert {call.constraint.options for call in model.calls[3:]} == {
        ("broken", "late", "praise", "other")
    }
    text = frame.explain_text(analyze=True)
    assert "groups: 3 names of 3 clusters; 0 of 9 values fit none" in text
    assert len(model.calls) == 3 + len(TEXTS)  # remembered


def test_groups_do_not_depend_on_the_order_of_rows() -> None:
    def found(texts: list[str]) -> tuple[set[object], Counter[object]]:
        session, model = connected([*texts])
        rows = session.sql("SELECT x, llm_group(x, into => 2) AS g FROM t").to_pylist()
        return {(row["x"], row["g"]) for row in rows}, Counter(c.values for c in model.calls)

    usual = found(TEXTS)
    assert "other" in {group for _, group in usual[0]}  # type: ignore[misc]
    for seed in range(5):
        assert found(random.Random(seed).sample(TEXTS, len(TEXTS))) == usual


def test_what_groups_are_about_stands_in_the_questions() -> None:
    session, model = connected([*TEXTS])
    session.sql("SELECT llm_group(x, into => 2, by => 'what went wrong') AS g FROM t").to_pylist()
    assert {call.question for call in model.calls} == {
        "What do these texts have in common as to what went wrong? Answer with a name of a few words.",
        "To which group does the text belong as to what went wrong?",
    }


def test_equal_names_are_one_group() -> None:
    model = bf.ScriptedModel(
        lambda request: "A topic." if not request.constraint.options else "A topic"
    )
    session = bf.connect(model, cache=None, embedder=ByTopic())
    session.from_pydict({"x": TEXTS}, name="t")
    rows = session.sql("SELECT DISTINCT llm_group(x, into => 3) AS g FROM t").to_pylist()
    assert rows == [{"g": "A topic"}]


@pytest.mark.parametrize(
    ("probable", "expected"),
    [
        (0.4, TOPIC_OF),
        (0.9999999, dict.fromkeys(TEXTS, "late")),
        (1.0, dict.fromkeys(TEXTS, "late")),
    ],
)
def test_a_model_that_is_unsure_leaves_values_near_their_samples(
    probable: float, expected: dict[str, str]
) -> None:
    """A model that says the same of all texts, and how probable that is."""

    def answered(request: bf.Request) -> object:
        options = request.constraint.options
        if not options:
            return answer(request)
        if probable == 1.0:
            return "late"
        return {one: probable if one == "late" else (1 - probable) / 3 for one in options}

    session = bf.connect(bf.ScriptedModel(answered), cache=None, embedder=ByTopic())
    session.from_pydict({"x": TEXTS}, name="t")
    rows = session.sql("SELECT x, llm_group(x, into => 3) AS g FROM t").to_pylist()
    assert {row["x"]: row["g"] for row in rows} == expected


def test_other_stands_against_the_mean_of_all_groups() -> None:
    """An unsure ``other`` is left where a group is near, a sure one is not."""
    groups = [Group(topic, topic, samples=tuple(texts)) for topic, texts in TOPICS.items()]

    class Unsure:
        def __init__(self, probable: float) -> None:
            self.probable = probable

        def names(self, samples: list[str]) -> list[str | None]:
            return []

        descriptions = names

        def choose(self, texts: list[str], groups: list[Group]) -> list[tuple[str, float] | None]:
            return [("other", self.probable), None]

    def found(probable: float, embedder: ByTopic | None) -> list[str | None]:
        return [*sorted_into(TEXTS[:2], groups, Unsure(probable), embedder)]  # type: ignore[arg-type]

    assert found(0.5, ByTopic()) == ["late", None]
    assert found(1 - 1e-9, ByTopic()) == ["other", None]
    assert found(0.5, None) == ["other", None]


def test_cheap_predicates_come_first_and_the_estimate_counts_both_questions() -> None:
    session, model = connected([*TEXTS])
    frame = session.sql("SELECT llm_group(x, into => 2) AS g FROM t WHERE x LIKE '%bag%'")
    assert frame.estimate().total.values == 4
    assert not model.calls
    frame.to_pylist()
    assert len(model.calls) == 4


def test_without_an_embedder_the_error_says_what_to_do() -> None:
    session = bf.connect(bf.ScriptedModel(answer), cache=None, embedder=None)
    session.from_pydict({"x": TEXTS}, name="t")
    with pytest.raises(bf.QueryError, match="no embedder"):
        session.sql("SELECT llm_group(x) AS g FROM t").to_pylist()


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 99))
def test_clusters_are_the_same_each_time_and_cover_everything(n: int, k: int, seed: int) -> None:
    random_numbers = np.random.default_rng(seed)
    vectors = normalise(random_numbers.normal(size=(n, 3)).round(1))
    numbers = clusters(vectors, k)
    assert numbers.tolist() == clusters(vectors, k).tolist()
    assert len(numbers) == n
    assert set(numbers.tolist()) <= set(range(k))


@pytest.mark.long
@pytest.mark.local
def test_the_packaged_model_names_groups() -> None:
    session = bf.connect(cache=None)
    session.from_pydict({"x": TEXTS}, name="t")
    rows = session.sql("SELECT x, llm_group(x, into => 3) AS g FROM t").to_pylist()
    assert len(rows) == len(TEXTS)
    assert all(row["g"] for row in rows)
