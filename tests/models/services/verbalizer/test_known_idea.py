"""Yes/no questions about a known idea: the odds by words plus those of the question behind the
text."""

from dataclasses import replace
from math import exp, log

import pytest
from local_model import weights_or_skip

from blendfusion.models.services.llama import known_idea
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.verbalizer.calibration_texts import ANY
from blendfusion.models.services.verbalizer.describe import scored_by
from blendfusion.models.services.verbalizer.query_likelihood import Odds, neutral
from blendfusion.models.services.verbalizer.score_as_yes_no import model_tasks
from blendfusion.models.services.verbalizer.ways import ALONE, Way, way_of
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Example, Task

SPORT = Task("llm_filter", "Is it about sports?", Constraint("boolean"), ("text",))
HOW_MUCH = replace(
    SPORT, question="How much is it about sports?", constraint=Constraint("score", scale=(0, 10))
)
WAY = Way("text", likelihood=1.0, threshold=1.0, ideas=2.0)
TEXTS = (
    "The keeper saved two penalties, and the home side won the cup.",
    "Could you tell me whether the shop is open on Sunday?",
    "The bank raised its interest rates again.",
    "After the match the coach praised his defenders.",
)


def test_a_known_idea_has_both_readings() -> None:
    words, behind = model_tasks(SPORT, Options(), way=WAY)
    assert words is SPORT
    assert behind == replace(SPORT, form="likelihood")
    assert [one.question for one in model_tasks(HOW_MUCH, Options(), way=WAY)] == [
        "Is it about sports?"
    ] * 2


def test_words_that_do_not_count_are_not_read() -> None:
    way = replace(WAY, ideas=ALONE)
    for task in (SPORT, HOW_MUCH):
        [behind] = model_tasks(task, Options(), way=way)
        assert (behind.form, behind.question) == ("likelihood", SPORT.question)
    angry = replace(SPORT, question="Is the customer angry?")
    assert model_tasks(angry, Options(), way=way) == (angry,)


@pytest.mark.parametrize(
    ("task", "way"),
    [
        (SPORT, None),
        (SPORT, replace(WAY, ideas=0.0)),
        (replace(SPORT, columns=("subject", "text")), WAY),
        (replace(SPORT, examples=(Example(("Goal!",), "true"),)), WAY),
        (replace(SPORT, question="Does the customer want their money back?"), WAY),
        (replace(SPORT, question="Is the customer angry?"), WAY),  # it has an opposite
        (replace(SPORT, constraint=Constraint("text")), WAY),
    ],
)
def test_others_have_one(task: Task, way: Way | None) -> None:
    assert len(model_tasks(task, Options(), way=way)) == 1


def test_explain_names_both() -> None:
    shown = scored_by(*model_tasks(SPORT, Options(), way=WAY), wordings=True, way=WAY)
    assert shown is not None
    assert shown.startswith("Yes, correct against No, wrong; sports")
    assert shown.endswith("the likelihood of “Is it about sports?” behind the text")


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


@pytest.mark.long
@pytest.mark.local
def test_odds_are_the_sum(model, by_words):
    way = way_of(weights_or_skip())
    assert way is not None
    assert way.ideas > 0
    words = map(odds_of, by_words.answer(SPORT, [(text,) for text in TEXTS]))
    scores = model.question_scores(SPORT, [(text,) for text in (*TEXTS, *ANY)], way)
    behind = Odds(way, neutral(scores[len(TEXTS) :]))
    both = map(odds_of, model.answer(SPORT, [(text,) for text in TEXTS]))
    for own, by_word, score in zip(both, words, scores, strict=False):
        assert own == pytest.approx(by_word + way.ideas * behind.log(score), rel=1e-5)


@pytest.mark.long
@pytest.mark.local
def test_a_score_is_the_probability_of_yes(model):
    answers = model.answer(SPORT, [(text,) for text in TEXTS])
    scores = model.answer(HOW_MUCH, [(text,) for text in TEXTS])
    for answer, score in zip(answers, scores, strict=True):
        probable = 1 / (1 + exp(-odds_of(answer)))
        assert float(score.text or "") == pytest.approx(10 * probable, abs=0.01)


@pytest.mark.long
@pytest.mark.local
@pytest.mark.parametrize(
    "question",
    ["Is it about sports?", "Is the writer pleased?", "Does someone want to know a time?"],
)
def test_a_sample_moves_the_threshold_as_a_column_of_its_texts(model, question: str) -> None:
    """By words and likelihood, by words, by likelihood; and for each value alone."""
    values = [(text,) for text in TEXTS]
    task = replace(SPORT, question=question)
    by_sample = replace(task, sample=tuple(values))
    column = LlamaModel(weights_or_skip(), Options(n_ctx=1024, calibration="column"))
    together = model.answer(by_sample, values)
    of_column = list(map(odds_of, column.answer(task, values)))
    assert list(map(odds_of, together)) == pytest.approx(of_column, rel=1e-4, abs=1e-4)
    assert of_column != pytest.approx(list(map(odds_of, model.answer(task, values))), abs=1e-3)
    for asked in (model, column):  # values asked together do not count beside a sample
        alone = [asked.answer(by_sample, [value])[0] for value in values]
        assert [(a.text, a.logprob) for a in alone] == [(a.text, a.logprob) for a in together]
    too_long = replace(by_sample, sample=(*by_sample.sample, ("word " * 2_000,)))
    assert model.answer(too_long, values[:1])[0].logprob == together[0].logprob
    column.close()


@pytest.mark.long
@pytest.mark.local
def test_equal_values_are_read_once_and_long_ones_fail(model, by_words):
    values = [(TEXTS[0],), ("word " * 2_000,), (TEXTS[0],), (TEXTS[1],)]
    first, long, again, other = model.answer(SPORT, values)
    assert (first.text, first.logprob) == (again.text, again.logprob)
    assert long.too_long
    assert other.text == "false"
    (words,) = by_words.answer(SPORT, [(TEXTS[1],)])
    tokens = model.count_tokens(TEXTS[1]) + model.count_tokens(SPORT.question)
    assert other.usage.prompt_tokens > words.usage.prompt_tokens + tokens
    (alone,) = model.answer(SPORT, [(TEXTS[0],)])
    assert (alone.text, alone.logprob) == (first.text, first.logprob)


@pytest.mark.long
@pytest.mark.local
def test_answers_come_portion_by_portion(model, monkeypatch):
    texts = [(f"{text} {number}",) for number in range(2) for text in TEXTS]
    together = model.answer(SPORT, texts)
    context = model._ready().context
    decode, computed, told = context.decode, [], []
    monkeypatch.setattr(known_idea, "PORTION", 3)
    monkeypatch.setattr(context, "decode", lambda batch: computed.append(batch) or decode(batch))

    answers = model.answer_each(SPORT, texts, lambda place, answer: told.append(len(computed)))

    assert [(a.text, a.logprob) for a in answers] == [(a.text, a.logprob) for a in together]
    assert len(told) == len(texts)
    assert told[0] <= len(computed) / 2, "the first answer waits for the others"
