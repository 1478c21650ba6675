"""The idea that a yes or no question asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.services.verbalizer.lexicon import idea_of
from blendfusion.models.services.verbalizer.parse_question import question_idea
from blendfusion.types import Constraint, Task


def idea(question, columns=("text",), **more):
    return question_idea(Task("llm_filter", question, Constraint("boolean"), columns, **more))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Is this review positive?", "positive"),
        ("Is this review negative?", "negative"),
        ("Is {} negative?", "negative"),
        ("is it bad", "bad"),
        ("Is this a bad review?", "bad"),
        ("Is the sentiment of the review positive?", "positive"),
        ("Is the customer very unhappy?", "unhappy"),
        ("Was the food good?", "good"),
        ("Does the review sound angry?", "angry"),
        ("Is this message spam?", "spam"),
        ("Is it a spam message?", "spam"),
        ("Is this a news article?", "news"),
        ("Is this message a question?", "question"),
        ("Is this article about sports?", "sports"),
        ("Is this a sports article?", "sports"),
        ("Is it sports-related?", "sports"),
        ("Does the question ask for a person?", "person"),
        ("Does the review mention the price?", "price"),
        ("Is the customer asking for a refund?", "refund"),
        ("Is this text mainly about travel?", "travel"),
        ("Does this message look like spam?", "spam"),
        ("Does the review express a negative sentiment?", "negative"),
        ("Does it express anger?", "anger"),
        ("Does the review have a positive tone?", "positive"),
        ("the review is positive", "positive"),
        ("{} is negative.", "negative"),
        ("It is about sports", "sports"),
        ("This is a bad review.", "bad"),
        ("The text mentions the price", "price"),
        ("the customer sounds very unhappy", "unhappy"),
        ("The customer asks for a refund", "refund"),
        ("Determine whether the review is negative.", "negative"),
        ("Check if it conveys a positive mood", "positive"),
    ],
)
def test_a_question_asks_for_one_idea(question, name):
    assert idea(question) is idea_of(name)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "positive",
        "?",
        "Is it?",
        "Is this review not negative?",
        "Isn't this review negative?",
        "Is this review positive or negative?",
        "Is it about food and drink?",
        "Is it more than a review?",
        "Is the product better than others in quality?",
        "Is the price mentioned in a positive review?",
        "Would you recommend this restaurant?",
        "Did they like the food?",
        "Does the customer complain about the price?",
        "Is the customer at home?",
        "Is this the first order?",
        "Is this order about the delivery?",
        "Is {a} the same as {b}?",
        "It rained. Is this review negative?",
        "Is the customer from a country where the city that they come from is a place?",
        "Is it a glockenspiel?",
        "Does the hotel have a restaurant?",
        "The hotel has a restaurant",
        "the review is about a product that is bad",
        "It is positive if it is about sports",
        "Determine whether the review is positive or negative.",
        "Determine if",
        "The price",
        "I am happy",
    ],
)
def test_other_questions_ask_for_more_than_a_word(question):
    assert idea(question, ("a", "b")) is None


def test_only_a_question_about_one_text_at_a_time_asks_for_an_idea():
    question = "Is this review negative?"

    assert idea(question, aggregate=True) is None
    assert idea(question, images=True) is None
    assert idea(question, form="statement") is None
    choice = Constraint("choice", options=("yes", "no"))
    assert question_idea(Task("llm_classify", question, choice)) is None


def test_an_idea_stands_against_its_opposite():
    assert idea_of("positive").has_opposite
    assert idea_of("positive").against == idea_of("negative").words
    assert idea_of("negative").against == idea_of("positive").words
    assert idea_of("advertisement").against == idea_of("personal").words


def test_an_idea_without_an_opposite_stands_against_all_others_under_its_heading():
    sports = idea_of("sports")

    assert not sports.has_opposite
    assert {"election", "hospital", "recipe"} <= {*sports.against}
    assert not {*sports.words} & {*sports.against}
    assert "positive" not in sports.against


WORDS = [
    "is",
    "was",
    "does",
    "this",
    "whether",
    "determine",
    "has",
    "tone",
    "the",
    "of",
    "a",
    "an",
    "it",
    "review",
    "customer",
    "not",
    "about",
    "mention",
    "sound",
    "ask",
    "for",
    "spam",
    "negative",
    "good",
    "?",
    ".",
]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)))
def test_any_question_can_be_read(question):
    found = idea(question)

    assert found is None or (found.words and found.against)
