"""The choice of a way: by the bank's part for it, reported on the other part."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from blendfusion.models.prompts.canonical import SAME
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.services.tuning.bank import bank
from blendfusion.models.services.tuning.fit import (
    ScoredQuestion,
    area,
    balanced_accuracy,
    fit,
    left_out,
    odds,
    relative_scores,
)
from blendfusion.models.services.tuning.pairs import name_pairs
from blendfusion.models.services.tuning.tune import CANDIDATES, tune
from blendfusion.models.services.verbalizer.query_likelihood import Odds, Score, neutral, way_for
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Answer, Task

RIGHT = {
    (asked.question, text): yes
    for part in ("choose", "report")
    for asked in bank(part, rows=1_000)  # type: ignore[arg-type]
    for text, yes in zip(asked.texts, asked.yes, strict=True)
} | {
    (SAME, "\n".join(pair)): yes
    for part in ("choose", "report")
    for kind in name_pairs(part)  # type: ignore[arg-type]
    for pair, yes in zip(kind.pairs, kind.same, strict=True)
}


class Simulated:
    """Weights that tell a share of the answers by each candidate."""

    abilities = Abilities(scores_options=True)

    def __init__(self, **knows: float) -> None:
        self.knows = knows
        self.texts = 0

    def can_ask(self, way: Way) -> bool:
        return way.prompt != "chat" or "chat" in self.knows

    def answer(self, task: Task, values: Sequence[tuple[str | None, ...]]) -> list[Answer]:
        signals = [self._signal("words", task.question, str(text)) for (text,) in values]
        return [
            Answer(str(one > 0).lower(), logprob=-float(np.logaddexp(0, -abs(one))))
            for one in signals
        ]

    def question_scores(
        self, task: Task, values: Sequence[tuple[str | None, ...]], way: Way
    ) -> list[Score]:
        self.texts += len(values)
        found, question, way = [], task.question, way_for(task, way)
        of = "pairs" if len(task.columns) > 1 else way.prompt
        for row in values:
            text = "\n".join(map(str, row))
            by_question = -20 + self._signal(of, question, text)
            answer = self._signal(f"{of}_answer", question, text) if way.answer else 0.0
            found.append((by_question, answer, 0.0))
        return found

    def _signal(self, name: str, question: str, text: str) -> float:
        share = self.knows.get(name, 0.0)
        right = 2.0 * RIGHT.get((question, text), False) - 1.0
        return 3 * share * right + Random(f"{name}{question}{text}").gauss(0, 1)


@pytest.mark.parametrize(
    ("knows", "prompt", "likelihood", "answer"),
    [
        ({"words": 1.0}, "words", False, False),
        ({"text": 0.3, "text_answer": 0.4}, "text", True, True),
        ({"chat": 0.0, "chat_answer": 1.0, "text": 0.3}, "chat", None, True),
    ],
)
def test_the_best_candidate_is_chosen(
    knows: dict[str, float], prompt: str, likelihood: bool | None, answer: bool
) -> None:
    way = tune(Simulated(**knows), rows=6).way

    assert way.prompt == prompt
    assert bool(way.answer) == answer
    assert likelihood is None or bool(way.likelihood) == likelihood
    assert way.area > 0.8
    assert way.balanced > 0.7


def test_the_odds_beside_known_ideas_are_weighed_by_what_both_know() -> None:
    assert tune(Simulated(text=1.0), rows=6).way.ideas == 3.0
    server = Simulated(text=1.0)
    server.abilities = Abilities()
    assert tune(server, rows=6).way.ideas == 0.0


def test_a_model_that_knows_names_weighs_its_answers_and_their_likeness() -> None:
    found = tune(Simulated(text=1.0, pairs_answer=0.3), rows=6)
    assert found.way.same_answer > 0 < found.way.same_likeness
    assert found.pairs is not None
    assert found.pairs.balanced > 0.85


def test_a_model_that_tells_names_by_chance_leaves_them_to_their_likeness() -> None:
    found = tune(Simulated(text=1.0), rows=6)
    assert found.way.same_answer == 0 < found.way.same_likeness
    assert found.pairs is not None
    assert found.pairs.area > 0.9
    assert found.pairs.balanced > 0.8
    by_words = tune(Simulated(words=1.0), rows=6)
    assert (by_words.way.same_likeness, by_words.pairs) == (0.0, None)


def test_pairs_are_all_of_one_thing_and_the_most_similar_others() -> None:
    kinds = [*name_pairs("choose"), *name_pairs("report")]
    assert len({kind.kind for kind in kinds}) == len(kinds) == 8
    for kind in kinds:
        assert all(a < b for a, b in kind.pairs)
        assert len(set(kind.pairs)) == len(kind.pairs)
        assert 8 <= sum(kind.same) <= len(kind.same) / 2


def test_without_a_template_and_without_any_signal() -> None:
    found = tune(Simulated(), rows=8)

    assert {way.prompt for way, _ in found.compared} == {"words", "text"}
    assert len(found.compared) < len(CANDIDATES)
    assert found.way.area == pytest.approx(0.5, abs=0.1)
    assert abs(found.way.likelihood) < 0.3 > abs(found.way.answer)


def test_weights_fit_the_odds() -> None:
    random = np.random.default_rng(1)
    yes = random.random(400) < 0.5
    near = np.where(yes, 2.0, 0.0) + random.normal(0, 1, 400)
    questions = [
        ScoredQuestion(str(place % 4), np.stack([near, near, near, near], 1), yes)
        for place in range(2)
    ]
    way = fit(Way("text", likelihood=1.0), questions)

    assert way.likelihood == pytest.approx(2.0, abs=0.4)  # log odds of two normal distributions
    assert way.threshold / way.likelihood == pytest.approx(1.0, abs=0.2)
    assert way.answer == 0.0
    assert left_out(way, questions).area == pytest.approx(area(near, yes))
    assert balanced_accuracy(odds(way, questions[0].scores), yes) == pytest.approx(0.84, abs=0.05)


def test_scores_are_relative_to_neutral_texts() -> None:
    one = relative_scores("k", [(-8.0, 2.0, 0.3)], [(-10.0, 1.0, 0.1), (-12.0, 1.0, 0.1)], [True])
    assert one.scores.tolist() == [[3.0, 1.0, 0.3, 1.0]]


def test_the_mean_answer_behind_neutral_texts_is_subtracted_as_far_as_it_tells() -> None:
    random = np.random.default_rng(1)
    means = random.normal(0, 2, 40)  # of the answers to each question
    questions = []
    for place, mean in enumerate(means):
        yes = random.random(100) < 0.5
        answers = 0.5 * mean + np.where(yes, 2.0, 0.0) + random.normal(0, 1, 100)
        scores = [(0.0, answer, 0.0) for answer in answers]
        questions.append(relative_scores(str(place % 4), scores, [(0.0, mean, 0.0)], [*yes]))
    way = fit(Way("chat", answer=1.0), questions)

    assert way.neutral_share == pytest.approx(0.5, abs=0.1)
    assert way.answer == pytest.approx(2.0, abs=0.4)
    behind = Odds(way, neutral([(0.0, means[0], 0.0)]))
    assert behind.log((0.0, 0.5 * means[0] + 1.0, 0.0)) == pytest.approx(0.0, abs=0.3)
