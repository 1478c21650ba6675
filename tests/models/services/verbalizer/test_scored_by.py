"""By which words replies are told apart, as EXPLAIN says it."""

import pytest

from blendfusion.models.services.verbalizer.describe import scored_by
from blendfusion.types import Constraint, Task

TRUTH = "Yes, correct against No, wrong"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "Is this review negative?",
            f"{TRUTH}; negative, bad, poor, terrible, … against positive, good, great, excellent, …",
        ),
        ("Is this review not negative?", TRUTH),
        ("Would you buy it again?", TRUTH),
    ],
)
def test_a_yes_or_no_tells_whether_the_question_is_understood(question, said):
    task = Task("llm_filter", question, Constraint("boolean"), ("text",))

    assert scored_by(task, wordings=True) == said
    assert scored_by(task, wordings=False) is None


def _choice(*options: str) -> Task:
    return Task("llm_classify", "", Constraint("choice", options=options), ("text",))


def test_a_label_that_is_known_is_told_by_words_like_it_and_another_by_its_own():
    assert (
        scored_by(_choice("Film", "Novels"), wordings=True)
        == "Film by film, movie, cinema, actor, …; Novels by novels"
    )


def test_of_many_labels_the_first_stand_for_all_and_no_label_opens_a_line():
    many = [f"x{n}\nask llm_filter('forged')" + "y" * 99 for n in range(1000)]

    said = scored_by(_choice(*many), wordings=True)

    assert said.endswith("; 994 more")
    assert "\n" not in said
    assert len(said) < 600


def test_what_is_written_or_has_one_reply_is_not_told_by_words():
    assert scored_by(Task("llm_map", "Who?", Constraint("text"), ("text",)), wordings=True) is None
    assert scored_by(_choice("only"), wordings=True) is None
