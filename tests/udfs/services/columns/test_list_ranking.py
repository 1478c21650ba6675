"""Ranks by lists: a total order exactly, with few lists, whatever the answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.udfs.services.columns.list_ranking import list_ranking


@given(st.permutations(range(30)), st.integers(1, 30), st.integers(3, 12), st.booleans())
def test_a_total_order_is_exact(order: list[int], k: int, size: int, last: bool) -> None:
    n, implied = len(order), set()

    def judge(lists: Sequence[Sequence[int]]) -> list[list[int]]:
        assert all(2 <= len(own) == len(set(own)) <= size for own in lists)
        for own in lists:  # none whose order is known
            assert not all(
                (a, b) in implied or (b, a) in implied for a in own for b in own if a < b
            )
        answers = [sorted(own, key=lambda place: order[place]) for own in lists]
        implied.update((a, b) for own in answers for i, a in enumerate(own) for b in own[i + 1 :])
        return answers

    found = list_ranking(n, judge, size, -k if last else k, [0.0] * n)
    assert found.places == sorted(range(n), key=lambda place: order[place], reverse=last)[:k]
    assert not found.contradicted
    assert found.lists <= ceil(n / size) + 2 * k + ceil(n / size**2) + 1


@given(st.integers(1, 12), st.integers(3, 5), st.integers(0, 2**32), st.integers(1, 12))
def test_any_answers_give_an_order(n: int, size: int, seed: int, k: int) -> None:
    """Answers that lack some, name some twice or others, contradict one another, or are none."""
    chance = random.Random(seed)

    def judge(lists: Sequence[Sequence[int]]) -> list[list[int] | None]:
        return [
            None if chance.random() < 0.2 else chance.choices([*own, 99], k=len(own))
            for own in lists
        ]

    places = list_ranking(n, judge, size, k, [0.0] * n).places
    assert len(places) == len(set(places)) == min(n, k)
    assert set(places) <= set(range(n))


TEXTS = ["a" * length for length in (3, 9, 1, 14, 6, 12, 2, 8, 11, 5, 4, 13, 7, 10)]


def test_a_query_asks_lists() -> None:
    def longest_first(request: bf.Request) -> list[str]:
        lines = [line.split(". ") for line in str(request.values[0]).splitlines()]
        return [number for number, text in sorted(lines, key=lambda line: -len(line[1]))]

    asked = []
    for seed in range(3):
        model = bf.ScriptedModel(longest_first)
        session = bf.connect(model, cache=None)
        texts = random.Random(seed).sample([*TEXTS, TEXTS[0]], len(TEXTS) + 1)
        session.from_pydict({"x": texts}, name="t")
        query = (
            "SELECT x FROM t ORDER BY llm_prefers('which is longer', x, list_size => 5) {} LIMIT 2"
        )
        frame = session.sql(query.format(""))
        assert 1 <= frame.estimate().total.values <= 15
        assert [len(row["x"]) for row in frame.to_pylist()] == [14, 13]
        assert len(model.calls) <= 5
        asked.append({call.values for call in model.calls})
        text = frame.explain_text(analyze=True)
        assert f"2 of 14 values in order; {len(model.calls)} lists compared in 3 rounds" in text
        last = session.sql(query.format("DESC"))
        assert [len(row["x"]) for row in last.to_pylist()] == [1, 2]
    assert asked == asked[:1] * 3  # whatever the order of rows
