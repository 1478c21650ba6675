"""Candidates of a join: which texts look most like a text."""

from __future__ import annotations

import itertools
from math import log, sqrt

from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.vectors.tfidf import Nearest, normalize, terms

WORDS = st.text("abc é-", max_size=12)


def test_case_accents_and_punctuation_say_nothing() -> None:
    assert normalize("CAFÉ-Noir,  (Paris)") == normalize("cafe noir paris")
    assert normalize("ﬁne Straße") == "fine strasse"
    assert normalize("...") == ""


def test_the_text_itself_comes_first_and_the_rare_word_decides() -> None:
    texts = ["the red house", "the blue house", "the red barn", "a house"]
    nearest = Nearest(texts)
    assert nearest.of("the blue house", 2)[0] == 1
    assert nearest.of("The BARN", 1) == [2]
    assert nearest.of("housse, blu", 1) == [1]


def test_equals_come_by_their_distance_in_alphabetical_order() -> None:
    assert Nearest(["x y", "z", "y x", "x y"]).of("x y", 3) == [0, 3, 2]
    assert Nearest(["b", "a", "c"]).of("q", 2) == [2, 0]
    assert Nearest(["b", "a"]).of("q", 9) == [0, 1]
    assert Nearest(["b", "a"]).of("A", 9) == [1, 0]
    assert Nearest([f"n{i}" for i in range(9)]).of("n4", 4) == [4, 3, 5, 2]
    assert Nearest([]).of("q", 3) == []


def by_hand(texts: list[str], text: str) -> list[float]:
    """Cosines of TF-IDF weights, computed one by one."""
    counted = [terms(t) for t in texts]
    rarity = {
        term: log(1 + len(texts) / sum(term in c for c in counted)) for c in counted for term in c
    }

    def weights(t: str) -> dict[str, float]:
        return {s: (1 + log(n)) * rarity[s] for s, n in terms(t).items() if s in rarity}

    own = weights(text)
    scores = []
    for other in map(weights, texts):
        length = sqrt(sum(w * w for w in other.values())) or 1.0
        scores.append(sum(w * other.get(s, 0.0) for s, w in own.items()) / length)
    return scores


@given(st.lists(WORDS, min_size=1, max_size=12), WORDS, st.integers(1, 12))
def test_the_first_k_are_those_of_greatest_cosine(texts: list[str], text: str, k: int) -> None:
    scores = by_hand(texts, text)
    found = Nearest(texts).of(text, k)
    assert len(found) == len(set(found)) == min(k, len(texts))
    least = min(scores[i] for i in found)
    assert all(scores[i] <= least + 1e-5 for i in range(len(texts)) if i not in found)
    assert all(scores[a] >= scores[b] - 1e-5 for a, b in itertools.pairwise(found))
