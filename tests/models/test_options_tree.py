"""Options as a tree of tokens, and other words for them."""

import numpy as np
import pytest

from blendfusion.models.options_tree import build, forks
from blendfusion.models.wordings import words_of
from blendfusion.types import Constraint, Task

END = 0


def test_words_are_scored_in_the_stead_of_the_option():
    root = build([[1], [2]], END, [[1, 3], [4, 5]])
    logits = np.array([0, 1.0, 2.0, 3.0, 4.0, 6.0], np.float32)

    scores = root.scores(logits)

    assert scores[1] - scores[0] == pytest.approx((4 + 6) / 2 - (1 + 3) / 2)
    assert np.exp(scores).sum() == pytest.approx(1)


def test_a_word_that_begins_as_another_option_does_tells_nothing():
    assert build([[1], [2]], END, [[1, 2, 3, 4], [4, 5]]).words == ((1, 3), (5,))


def test_an_option_without_words_that_tell_is_scored_itself():
    root = build([[1], [2]], END, [[3], [3]])
    logits = np.array([0, 1.0, 2.0, 3.0], np.float32)

    assert root.scores(logits).tolist() == build([[1], [2]], END).scores(logits).tolist()


def test_options_that_are_decided_further_down_have_no_other_words():
    root = build([[1, 7], [1, 8], [2]], END, [[3], [4], [5]])

    assert root.words == ((), (5,))
    assert all(not fork.words for fork in forks(root)[1:])


def test_options_that_begin_alike_have_no_other_words():
    assert build([[1, 7], [1, 8]], END, [[3], [4]]).words == ()


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
