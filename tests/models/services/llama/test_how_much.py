"""The yes or no question behind "how much", and scores by how probable its yes is."""

from contextlib import closing

import pytest
from local_model import weights_or_skip

import blendfusion as bf
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.verbalizer.score_as_yes_no import rewrite_task
from blendfusion.options import Options
from blendfusion.types import Constraint, Example, Task

SCALE = Constraint("score", scale=(1, 5))


def _task(question, **more):
    return Task("llm_score", question, SCALE, ("text",), **more)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How positive is this review?", "Is this review positive?"),
        ("how  angry\nis the customer", "Is the customer angry?"),
        ("How urgent does it sound?", "Does it sound urgent?"),
        ("How good is {text}?", "Is {text} good?"),
        ("How angry?", "Is it angry?"),
        ("How much is this about sports?", "Is this about sports?"),
        ("How much does this message look like spam?", "Does this message look like spam?"),
        ("To what extent is the tone negative?", "Is the tone negative?"),
    ],
)
def test_a_score_of_a_known_idea_asks_whether_it_holds(question, asked):
    put = rewrite_task(_task(question), Options())

    assert put.question == asked
    assert put.constraint == Constraint("boolean")
    assert put.columns == ("text",)


@pytest.mark.parametrize(
    "question",
    [
        "How long was the journey?",
        "How likely is it that the customer comes back?",
        "How easy is it to cancel?",
        "How happy or sad is the customer?",
        "How much does the customer like it?",
        "How much?",
        "How {0} is {text.__class__}?",
        "",
        "Is this review positive?",
    ],
)
def test_any_other_score_is_asked_as_it_is(question):
    task = _task(question)

    assert rewrite_task(task, Options()) is task


def test_what_has_numbers_for_examples_or_no_words_is_asked_by_numbers():
    task = _task("How positive is this review?")
    shown = _task(task.question, examples=(Example(("Fine.",), "3"),))

    assert rewrite_task(shown, Options()) is shown
    assert rewrite_task(task, Options(wordings=False)) is task
    assert rewrite_task(task, Options(calibration="none")) is task
    assert rewrite_task(
        Task("llm_filter", task.question, Constraint("boolean")), Options()
    ).question == (task.question)


GOOD = ["It works perfectly, I love it.", "The best meal we ever had, and such kind waiters."]
BAD = ["It broke after two days, what a waste of money.", "Cold food, rude staff, never again."]


@pytest.fixture(scope="module")
def model():
    with closing(LlamaModel(weights_or_skip(), Options(n_ctx=768))) as model:
        yield model


def _scores(model, question, texts):
    return [float(answer.text) for answer in model.answer(_task(question), [(t,) for t in texts])]


@pytest.mark.long
@pytest.mark.local
@pytest.mark.parametrize(
    ("question", "high", "low"),
    [("How positive is this review?", GOOD, BAD), ("How angry is the customer?", BAD, GOOD)],
)
def test_what_holds_more_scores_higher_in_any_company(model, question, high, low):
    scores = _scores(model, question, high + low)

    assert 1 <= max(scores[2:]) < min(scores[:2]) <= 5
    assert [*_scores(model, question, low[::-1]), *_scores(model, question, high[:1])] == [
        *scores[:1:-1],
        scores[0],
    ]


@pytest.mark.long
@pytest.mark.local
def test_estimates_and_the_page_know_what_is_asked():
    weights_or_skip()
    with bf.connect("smollm2", cache=None, progress="off", n_ctx=768) as session:
        session.from_pydict({"text": GOOD + BAD}, name="t")
        frame = session.sql("SELECT llm_score('How positive is it?', text) AS s FROM t")
        session.sql("SELECT llm_filter('Is it red?', text) FROM t").collect()
        expected = frame.estimate().total.prompt_tokens
        frame.collect()

        assert "scored by: Yes, correct against No, wrong; positive, good" in frame.explain_text()
        assert "Question: Is it positive?" in frame.trace.to_html()
        assert expected == pytest.approx(frame.trace.usage.prompt_tokens, rel=0.25)
