"""Choices among labels that the lexicon does not know: the similarity of label and text counts."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from local_model import weights_or_skip

from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.verbalizer.label_similarity import label_similarities, label_weight
from blendfusion.models.services.verbalizer.option_trie import build
from blendfusion.models.services.verbalizer.similarity import cosines
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.options import Options
from blendfusion.types import Constraint, Example, Task

WAY = Way("text", likelihood=1.0, labels=6.5)
LABELS = ("exchange rate", "lost card", "identity")
TASK = Task(
    "llm_classify",
    "What is the message about?",
    Constraint("choice", options=LABELS),
    ("text",),
)
TEXTS = (
    "What rate do you use when you exchange my euros?",
    "I lost my card on the train.",
    "Why can I not verify my identity?",
)


def test_the_cosines_tell_subjects() -> None:
    found = label_similarities(TASK, TEXTS)
    assert [row.index(max(row)) for row in found] == [0, 1, 2]


@pytest.mark.parametrize(
    "other",
    [
        replace(TASK, constraint=Constraint("choice", options=("sports", "politics"))),
        replace(TASK, constraint=replace(TASK.constraint, meanings=("a", "b", "c"))),
        replace(TASK, constraint=Constraint("boolean")),
        replace(TASK, examples=(Example(("x",), LABELS[0]),)),
        replace(TASK, columns=("a", "b")),
        replace(TASK, aggregate=True),
    ],
)
def test_other_tasks_are_answered_as_before(other: Task) -> None:
    assert label_weight(TASK, Options(), WAY) == WAY.labels
    assert label_weight(other, Options(), WAY) == 0.0


def test_models_and_options_without_it() -> None:
    assert label_weight(TASK, Options(), None) == 0.0
    assert label_weight(TASK, Options(wordings=False), WAY) == 0.0
    assert label_weight(TASK, Options(calibration="none"), WAY) == 0.0


def test_a_branch_has_the_highest_score_of_its_options() -> None:
    root = build([(1, 2), (1, 3), (4,)], 9)
    assert root.highest([0.25, 0.75, 0.5]).tolist() == [0.75, 0.5]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaModel]:
    made = LlamaModel(weights_or_skip(), Options(n_ctx=1024))
    yield made
    made.close()


@pytest.mark.local
def test_the_packaged_model_knows_such_labels_and_says_so(model: LlamaModel) -> None:
    answers = model.answer(TASK, [(text,) for text in TEXTS])
    assert [answer.text for answer in answers] == list(LABELS)
    assert all((answer.logprob or 0.0) < 0 for answer in answers)

    scored_by = model.abilities.scored_by
    assert scored_by is not None
    assert str(scored_by(TASK)).endswith("; and by the similarity of text and label")


@pytest.mark.local
def test_answers_do_not_depend_on_the_values_beside_them(model: LlamaModel) -> None:
    together = model.answer(TASK, [(text,) for text in TEXTS])
    alone = [model.answer(TASK, [(text,)])[0] for text in TEXTS]
    assert [(a.text, a.logprob) for a in together] == [(a.text, a.logprob) for a in alone]


@pytest.mark.local
def test_a_similarity_depends_on_no_other_text() -> None:
    subjects = ("sport", "the weather in May", "a refund", "cars", "x y z")
    texts = [f"text {number} about {what}" for number in range(50) for what in subjects]
    asked = ["Is it about sports?"]
    assert cosines(texts, asked) == [cosines([text], asked)[0] for text in texts]
