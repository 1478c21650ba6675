"""Options as a tree of tokens, and other words for them."""

import numpy as np
import pytest

from blendfusion.models.services.verbalizer.label_words import related_words_of, words_of
from blendfusion.models.services.verbalizer.option_trie import Words, build, forks
from blendfusion.types import Constraint, Task

END = 0


def scored(root):
    return [reading.tokens for reading in root.readings]


def test_words_are_scored_in_the_stead_of_the_option():
    root = build([[1], [2]], END, Words([[1, 3], [4, 5]]))
    logits = np.array([0, 1.0, 2.0, 3.0, 4.0, 6.0], np.float32)

    scores = root.scores(logits)

    assert scores[1] - scores[0] == pytest.approx((4 + 6) / 2 - (1 + 3) / 2)
    assert np.exp(scores).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("exponent", "mean"),
    [(1.0, np.log((np.e**4 + np.e**6) / 2)), (0.5, 2 * np.log((np.e**2 + np.e**3) / 2))],
)
def test_the_exponent_says_how_much_the_likeliest_word_counts(exponent, mean):
    root = build([[1], [2]], END, Words([[1], [4, 5]], exponent))
    logits = np.array([0, 1.0, 2.0, 3.0, 4.0, 6.0], np.float32)

    scores = root.scores(logits)

    assert scores[1] - scores[0] == pytest.approx(mean - 1)


def test_scores_of_very_unlike_words_stay_finite():
    root = build([[1], [2]], END, Words([[1], [2, 3]], 0.25))

    assert np.isfinite(root.scores(np.array([0, 1e4, -1e4, 3.0], np.float32))).all()


def test_readings_of_one_place_are_added_up_by_their_weights():
    root = build([[1], [2]], END, Words([[1], [2]]), Words([[3], [4]], 0.25))
    logits = np.array([0, 1.0, 3.0, 5.0, 4.0], np.float32)

    both = root.weighing((0.5, 3.0)).scores(logits)
    first = root.weighing((1.0,)).scores(logits)

    assert both[1] - both[0] == pytest.approx(0.5 * (3 - 1) + 3 * (4 - 5))
    assert first[1] - first[0] == pytest.approx(3 - 1)


def test_a_further_reading_counts_only_if_it_tells_of_all_options():
    assert len(build([[1], [2]], END, Words([[1], [2]]), Words([[3], [3]])).readings) == 1
    assert len(build([[1], [2]], END, Words([[1], [2]]), Words([[3], []])).readings) == 1


def test_a_word_that_begins_as_another_option_does_tells_nothing():
    root = build([[1], [2]], END, Words([[1, 2, 3, 4], [4, 5]]))

    assert scored(root) == [((1, 3), (5,))]


def test_an_option_without_words_that_tell_is_scored_itself():
    root = build([[1], [2]], END, Words([[3], [3]]))
    logits = np.array([0, 1.0, 2.0, 3.0], np.float32)

    assert root.scores(logits).tolist() == build([[1], [2]], END).scores(logits).tolist()


def test_options_that_are_decided_further_down_have_no_other_words():
    root = build([[1, 7], [1, 8], [2]], END, Words([[3], [4], [5]]))

    assert scored(root) == [((1,), (5,))]
    assert all(scored(fork) == [tuple((t,) for t in fork.tokens)] for fork in forks(root)[1:])


def test_options_that_begin_alike_have_no_other_words():
    assert scored(build([[1, 7], [1, 8]], END, Words([[3], [4]]))) == [((7,), (8,))]


def test_truth_has_several_words():
    task = Task("llm_filter", "?", Constraint("boolean"))
    assert words_of(task) == (("Yes", "correct"), ("No", "wrong"))


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("red", ("red",)),
        ("World", ("world",)),
        ("Sci/Tech", ("sci/tech", "sci", "tech")),
        ("food & drink", ("food & drink", "food", "drink")),
        ("Search and rescue", ("search and rescue", "search", "rescue")),
        ("New York", ("new york",)),
        ("USA", ("USA",)),
        ("/", ("/",)),
    ],
)
def test_a_label_has_the_words_that_it_lists(label, words):
    choice = Constraint("choice", options=(label, "other"))

    assert words_of(Task("llm_classify", "", choice))[0] == words


def test_a_label_has_the_words_of_its_meaning():
    choice = Constraint(
        "choice", options=("thing", "A"), meanings=("an object, animal or food", "x")
    )

    assert words_of(Task("llm_classify", "", choice)) == (
        ("thing", "object", "animal", "food"),
        ("a", "x"),
    )


def test_what_is_no_closed_set_has_no_words():
    assert words_of(Task("llm_map", "?", Constraint("text"))) == ()
    assert words_of(Task("llm_score", "?", Constraint("score", scale=(1, 5)))) == ()


def labelled(*options):
    return Task("llm_classify", "", Constraint("choice", options=options))


def test_labels_have_words_that_say_the_same():
    sports, finance, other = related_words_of(labelled("Sports", "FINANCE", "qwerty"))

    assert {"football", "team"} <= {*sports}
    assert {"money", "bank"} <= {*finance}
    assert other == ()


def test_a_word_of_two_labels_says_neither():
    food, dining, _ = related_words_of(labelled("food", "dining", "meal"))

    assert "meal" not in food
    assert "restaurant" in dining
    assert "food" not in dining


@pytest.mark.parametrize("label", ["not satisfied", "non-spam", "no complaint", "sugar-free", ""])
def test_what_is_denied_has_no_words_of_what_it_denies(label):
    assert related_words_of(labelled(label, "other"))[0] == ()


def test_a_name_of_several_words_is_what_its_last_one_says():
    assert "credit" in related_words_of(labelled("credit cards", "other"))[0]
    assert "doctor" in related_words_of(labelled("public health", "other"))[0]


def test_only_choices_have_related_words():
    assert related_words_of(Task("llm_filter", "?", Constraint("boolean"))) == ()
    assert related_words_of(Task("llm_map", "?", Constraint("text"))) == ()
