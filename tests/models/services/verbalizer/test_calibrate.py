"""The prior of an option: what a model answers to nothing in particular."""

import numpy as np
import pytest

from blendfusion.models.services.verbalizer.calibration import (
    CONTENT_FREE,
    MOST_LIFTED,
    SURENESS,
    mean,
    of_column,
    of_idea,
    prior,
    probes,
    weights,
)
from blendfusion.models.services.verbalizer.calibration_texts import BANKS, bank
from blendfusion.models.services.verbalizer.lexicon import idea_of
from blendfusion.types import Constraint, Task

BOOLEAN = Constraint("boolean")


def test_probes_fill_every_column():
    task = Task("llm_filter", "?", BOOLEAN, columns=("a", "b"))

    asked = probes(task)

    assert len(asked) == len(CONTENT_FREE) + len(BANKS["any"])
    assert asked[0] == ("N/A", "N/A")
    assert all(len(values) == 2 for values in asked)


def test_the_probes_of_an_aggregate_are_contexts_of_one_row():
    task = Task("llm_validate", "?", BOOLEAN, columns=("a",), aggregate=True, form="statement")

    assert probes(task)[-1] == (BANKS["any"][-1],)


def test_content_free_inputs_and_the_bank_weigh_the_same():
    scores = [np.array([0.0, -4.0])] * len(CONTENT_FREE) + [np.array([-2.0, 0.0])] * len(
        BANKS["any"]
    )

    assert prior(scores).tolist() == [-1.0, -2.0]


def test_an_option_that_is_hardly_ever_said_is_lifted_so_far_and_no_further():
    scores = [np.array([-0.5, -1.5, -9.0])] * (len(CONTENT_FREE) + len(BANKS["any"]))

    assert prior(scores).tolist() == [-0.5, -1.5, -1.5 - MOST_LIFTED]


def test_content_free_inputs_have_a_mean():
    assert mean([np.array([-1.0, -3.0]), np.array([-3.0, -1.0])]).tolist() == [-2.0, -2.0]


@pytest.mark.parametrize(
    ("question", "columns", "texts"),
    [
        ("Is this review positive?", ("text",), BANKS["review"]),
        ("Does the message answer a question?", ("text",), BANKS["message"]),
        ("Is it urgent?", ("email_body",), BANKS["message"]),
        ("What is the topic?", ("headline",), BANKS["article"]),
        ("What does the question ask for?", ("text",), BANKS["question"]),
        ("Which department gets this request?", ("text",), BANKS["request"]),
        ("Is it red?", ("name",), BANKS["any"]),
        ("", (), BANKS["any"]),
    ],
)
def test_the_bank_is_of_the_kind_of_text_that_is_asked_about(question, columns, texts):
    assert bank(Task("llm_filter", question, BOOLEAN, columns)) == texts


@pytest.mark.parametrize(
    "texts",
    [
        BANKS["any"],
        BANKS["article"],
        BANKS["message"],
        BANKS["question"],
        BANKS["request"],
        BANKS["review"],
    ],
)
def test_a_bank_is_varied(texts):
    assert len(set(texts)) == len(texts) >= 16


def test_a_rare_option_weighs_as_much_as_a_common_one_in_the_prior_of_a_column():
    # One of ten is of the first option; both are told apart by the prior.
    common, rare = np.array([-2.0, -0.2]), np.array([-0.2, -2.0])
    scores = [common] * 9 + [rare]
    even = np.array([-1.1, -1.1])

    assert of_column(scores, even).tolist() == pytest.approx([-1.1, -1.1])


def test_a_column_in_which_one_option_is_found_has_the_tasks_prior():
    scores = [np.array([-2.0, -0.2])] * 5
    known = np.array([-1.0, -1.0])

    assert of_column(scores, known) is known


def test_the_prior_of_a_column_heeds_its_values():
    known = np.array([-1.0, -1.0])
    scores = [np.array([-0.5, -1.5]), np.array([-0.1, -0.3]), np.array([-0.4, -0.2])]

    shifted = of_column(scores, known)

    assert shifted[0] > shifted[1]  # both options were found where the first is likelier


POSITIVE, SPORTS = idea_of("positive"), idea_of("sports")
OF_ALL = len(CONTENT_FREE) * [np.zeros((2, 2))]


def over_the_bank(truth, words):
    """The parts of probes whose log odds by yes and no, and by an idea's words, are these."""
    return OF_ALL + [np.array([[t, 0.0], [w, 0.0]]) for t, w in zip(truth, words, strict=True)]


def counted(parts, idea):
    """What yes and no count, and what the words, before both are made as sure as they are right."""
    truth, words = weights(parts, idea)
    return truth / SURENESS, words / SURENESS


def test_yes_and_no_and_the_words_of_an_idea_vary_alike():
    parts = over_the_bank([1.0, -1.0, 1.0, -1.0], [0.2, -0.2, 0.2, -0.2])

    assert counted(parts, POSITIVE) == pytest.approx((1.0, 5.0))


@pytest.mark.parametrize(
    ("agreement", "share"), [(0.5, 1.0), (0.0, 1.0), (-0.25, 0.5), (-1.0, 0.0)]
)
def test_yes_and_no_count_less_the_more_the_words_contradict_them(agreement, share):
    truth = np.array([1.0, 1.0, -1.0, -1.0])
    words = agreement * truth + np.sqrt(1 - agreement**2) * np.array([1.0, -1.0, 1.0, -1.0])

    assert counted(over_the_bank(truth, words), POSITIVE) == pytest.approx((share, 1.0))
    assert counted(over_the_bank(truth, words), SPORTS) == pytest.approx((share / 3, 1.0))


def test_what_does_not_vary_over_the_bank_does_not_count():
    assert counted(over_the_bank([1.0, -1.0], [2.0, 2.0]), POSITIVE) == (1.0, 0.0)
    assert counted(over_the_bank([1.0, 1.0], [2.0, -2.0]), POSITIVE) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "rarity"), [("sports", 0.5), ("spam", 0.5), ("personal", -0.5), ("positive", 0.0)]
)
def test_the_prior_of_an_idea_is_the_banks_and_higher_where_it_is_true_of_few(name, rarity):
    scores = len(CONTENT_FREE) * [np.array([9.0, 0.0])]
    scores += [np.array([x, -2.0]) for x in (3.0, -1.0)]

    assert of_idea(scores, idea_of(name)).tolist() == [1 + rarity * 2, -2]
