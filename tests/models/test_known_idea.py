"""Yes/no questions about a known idea: the odds by words plus those of the question behind the text."""

from dataclasses import replace
from math import exp, log

import pytest
from local_model import weights_or_skip

from blendfusion.models.llama.model import LlamaModel
from blendfusion.models.verbalizer.calibration_texts import ANY
from blendfusion.models.verbalizer.describe import scored_by
from blendfusion.models.verbalizer.query_likelihood import Odds, neutral
from blendfusion.models.verbalizer.score_as_yes_no import tasks_run
from blendfusion.models.verbalizer.ways import Way, way_of
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Example, Task

ANGRY = Task("llm_filter", "Is the customer angry?", Constraint("boolean"), ("text",))
HOW_ANGRY = replace(
    ANGRY, question="How angry is the customer?", constraint=Constraint("score", scale=(0, 10))
)
WAY = Way("text", likelihood=1.0, threshold=1.0, ideas=2.0)
TEXTS = (
    "Third broken lamp in a row. I want to speak to your manager at once!",
    "Could you tell me whether the shop is open on Sunday?",
    "Thanks, the parcel arrived and everything is fine.",
    "This is outrageous, you have ignored my letters for weeks.",
)


def test_a_known_idea_has_both_readings() -> None:
    words, behind = tasks_run(ANGRY, Options(), way=WAY)
    assert words is ANGRY
    assert behind == replace(ANGRY, form="likelihood")
    assert [one.question for one in tasks_run(HOW_ANGRY, Options(), way=WAY)] == [
        "Is the customer angry?"
    ] * 2


@pytest.mark.parametrize(
    ("task", "way"),
    [
        (ANGRY, None),
        (ANGRY, replace(WAY, ideas=0.0)),
        (replace(ANGRY, columns=("subject", "text")), WAY),
        (replace(ANGRY, examples=(Example(("Never again!",), "true"),)), WAY),
        (replace(ANGRY, question="Does the customer want their money back?"), WAY),
        (replace(ANGRY, constraint=Constraint("text")), WAY),
    ],
)
def test_others_have_one(task: Task, way: Way | None) -> None:
    assert len(tasks_run(task, Options(), way=way)) == 1


def test_explain_names_both() -> None:
    shown = scored_by(*tasks_run(ANGRY, Options(), way=WAY), wordings=True, way=WAY)
    assert shown is not None
    assert shown.startswith("Yes, correct against No, wrong; angry")
    assert shown.endswith("the likelihood of “Is the customer angry?” behind the text")


@pytest.fixture(scope="module")
def model():
    model = LlamaModel(weights_or_skip(), Options(n_ctx=1024))
    yield model
    model.close()


@pytest.fixture(scope="module")
def by_words(model):
    words = model.without_way()
    yield words
    words.close()


def odds_of(answer: Answer) -> float:
    sure = exp(answer.logprob or 0.0)
    return (1 if answer.text == "true" else -1) * log(sure / (1 - sure))


@pytest.mark.local
def test_odds_are_the_sum(model, by_words):
    way = way_of(weights_or_skip())
    assert way is not None
    assert way.ideas > 0
    words = map(odds_of, by_words.answer(ANGRY, [(text,) for text in TEXTS]))
    scores = model.question_scores(ANGRY.question, [*TEXTS, *ANY], way)
    behind = Odds(way, neutral(scores[len(TEXTS) :]))
    both = map(odds_of, model.answer(ANGRY, [(text,) for text in TEXTS]))
    for own, by_word, score in zip(both, words, scores, strict=False):
        assert own == pytest.approx(by_word + way.ideas * behind.log(score), rel=1e-5)


@pytest.mark.local
def test_a_score_is_the_probability_of_yes(model):
    answers = model.answer(ANGRY, [(text,) for text in TEXTS])
    scores = model.answer(HOW_ANGRY, [(text,) for text in TEXTS])
    for answer, score in zip(answers, scores, strict=True):
        probable = 1 / (1 + exp(-odds_of(answer)))
        assert float(score.text or "") == pytest.approx(10 * probable, abs=0.01)


@pytest.mark.local
def test_equal_values_are_read_once_and_long_ones_fail(model, by_words):
    values = [(TEXTS[0],), ("word " * 2_000,), (TEXTS[0],), (TEXTS[1],)]
    first, long, again, other = model.answer(ANGRY, values)
    assert (first.text, first.logprob) == (again.text, again.logprob)
    assert long.too_long
    assert other.text == "false"
    (words,) = by_words.answer(ANGRY, [(TEXTS[1],)])
    tokens = model.count_tokens(TEXTS[1]) + model.count_tokens(ANGRY.question)
    assert other.usage.prompt_tokens > words.usage.prompt_tokens + tokens
    (alone,) = model.answer(ANGRY, [(TEXTS[0],)])
    assert (alone.text, alone.logprob) == (first.text, first.logprob)
