"""Entities: pairs asked once, implied pairs never, one name for each entity."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from entity_records import SETS, Records, entities_of, implied_by, judge
from hypothesis import given
from hypothesis import strategies as st
from public_sets import datasets

from blendfusion.models.vectors.tfidf import normalize
from blendfusion.udfs.services.columns.closure import Closure, rounds
from blendfusion.udfs.services.columns.entities import Judge, entities
from blendfusion.udfs.services.columns.llm_same import CANDIDATES

NAMES = ["IBM", "ibm", "IBM Corp.", "IBM Corporation", "Apple", "Apple Inc.", "Microsoft"]


def first_word(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
    return [a.split()[0].lower() == b.split()[0].lower() for a, b in pairs]


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=9),
    st.randoms(use_true_random=False),
    st.integers(1, 40),
)
def test_no_pair_is_asked_that_earlier_answers_or_its_round_imply(
    truth: list[int], random: object, size: int
) -> None:
    every = [(a, b) for b in range(len(truth)) for a in range(b)]
    random.shuffle(every)  # type: ignore[attr-defined]
    pairs = every[:size]
    closure = Closure(len(truth))
    answers: dict[tuple[int, int], bool] = {}
    for now in rounds(pairs, closure):
        answers |= {(a, b): truth[a] == truth[b] for a, b in now}
        assert not any(implied_by(answers, pair) for pair in now)
        for pair in now:
            (closure.same if answers[pair] else closure.different)(*pair)
    for a, b in pairs:  # and each pair is decided rightly
        assert closure.implication(a, b) is (truth[a] == truth[b])


def test_texts_of_one_normal_form_are_the_same_without_a_question() -> None:
    found = entities(["IBM", "I.b.m", "ibm"], first_word, 5, None, alike=True)
    assert (found.names, found.questions, found.alike) == (["IBM", "I.b.m", "IBM"], 1, 1)


def test_the_name_of_an_entity_is_its_most_similar_text_then_the_longest() -> None:
    found = entities(NAMES, first_word, 5, None, alike=True)
    assert found.names == [
        *["IBM"] * 4,
        *["Apple Inc."] * 2,
        "Microsoft",
    ]
    assert found.entities == 3


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.data())
def test_new_texts_join_known_entities_and_known_pairs_are_not_asked(
    truth: list[int], data: st.DataObject
) -> None:
    texts = [f"{number} text {place}" for place, number in enumerate(truth)]
    label = dict(zip(texts, truth, strict=True))
    old = data.draw(st.lists(st.sampled_from(texts), unique=True))
    first = {number: f"{number} name" for number in truth if number in map(label.get, old)}
    known = {text: first[label[text]] for text in old} | {name: name for name in first.values()}
    label |= {name: number for number, name in first.items()}
    place = {text: i for i, text in enumerate(label)}
    # Known pairs are answers that nobody gives again: all of one entity, none of two.
    answers = {
        (place[a], place[b]): known[a] == known[b]
        for a in known
        for b in known
        if place[a] < place[b]
    }

    def judged(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        now = [tuple(sorted((place[a], place[b]))) for a, b in pairs]
        assert not {*now} & {*answers}
        answers.update(
            {(a, b): label[x] == label[y] for (a, b), (x, y) in zip(now, pairs, strict=True)}
        )
        assert not any(implied_by(answers, (a, b)) for a, b in now)
        return [label[a] == label[b] for a, b in pairs]

    new = [text for text in texts if text not in known]
    found = entities(new, judged, 20, None, alike=True, known=known)
    own = {**known, **dict(zip(new, found.names, strict=True))}
    assert all((own[a] == own[b]) is (label[a] == label[b]) for a in own for b in own)
    assert found.joined == len({label[text] for text in new} & first.keys())
    assert found.entities == len({label[text] for text in new} - first.keys())


def test_an_unanswered_pair_implies_nothing() -> None:
    none: Judge = lambda pairs: [None for _ in pairs]  # noqa: E731
    found = entities(["ab", "abc", "abcd"], none, 5, None, alike=True)
    assert found.names == ["ab", "abc", "abcd"]
    assert (found.questions, found.unanswered, found.implied, found.left_out) == (3, 3, 0, 0)


def test_a_contradiction_divides_an_entity_by_majority() -> None:
    texts = ["a one", "a one x", "a one y", "b one", "b one x", "b one y"]

    wrong: list[set[str]] = []

    def judged(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        """One wrong yes, to the first question about both entities, unites them."""
        wrong.extend([{a, b} for a, b in pairs if a[0] != b[0] and not wrong][:1])
        return [a[0] == b[0] or {a, b} in wrong for a, b in pairs]

    united = entities(texts, judged, 5, None, alike=True)
    assert united.entities == 1
    found = entities(texts, judged, 5, None, alike=True, check=100)
    assert [name[0] for name in found.names] == [*"aaabbb"]
    assert (found.entities, found.split) == (2, 1)
    assert found.checked == 10
    assert found.contradicted == 8
    right = entities(
        texts, lambda pairs: [a[0] == b[0] for a, b in pairs], 5, None, alike=True, check=9
    )
    assert (right.checked, right.contradicted, right.split) == (2, 0, 0)


@pytest.mark.parametrize("records", SETS, ids=lambda records: records.folder)
def test_a_perfect_model_finds_the_true_pairs_with_three_questions_a_value(
    records: Records,
) -> None:
    data = datasets()
    if data is None:
        pytest.skip("the data sets are not here")
    texts, gold = records.texts(data), records.truth(data)
    alike = zip(sorted(texts, key=normalize), sorted(texts, key=normalize)[1:], strict=False)
    free = [pair for pair in alike if normalize(pair[0]) == normalize(pair[1])]
    same = judge(entities_of(texts, [*gold, *free]), 0.0)
    asked: list[tuple[str, str]] = []

    def answers(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        asked.extend(pairs)
        return [same(*pair) for pair in pairs]

    found = entities(texts, answers, CANDIDATES, None, alike=True)
    name = dict(zip(texts, found.names, strict=True))
    together = sum(name[a] == name[b] for a, b in map(tuple, gold))
    assert together >= 0.95 * len(gold)
    assert len(asked) == len({frozenset(pair) for pair in asked}) <= 3 * len(texts)
    assert all(same(text, name[text]) for text in texts)
