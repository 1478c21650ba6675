"""Cascades of more than two models: what one leaves open the next one decides, and the promise holds
of all of them together."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import blendfusion as bf
from blendfusion.errors import OptionError

SIZE = 1_200
TEXTS = [f"text {number}" for number in range(SIZE)]
CALL = "llm_filter('Is it good?', text)"


def truth(text: str) -> bool:
    return random.Random(text).random() < 0.4


def answering(skill: float, seed: int = 0) -> Callable[[bf.Request], dict[bool, float]]:
    """A model that knows the more the higher ``skill`` is, and how sure it is."""

    def answer(call: bf.Request) -> dict[bool, float]:
        text = str(call.values[0])
        chance = random.Random(f"{skill} {seed} {text}")
        sure = 0.5 + 0.5 * chance.random() ** (1 / (4 * skill))
        yes = truth(text) == (chance.random() < sure)
        return {yes: sure, not yes: 1 - sure}

    return answer


class Levels:
    """A session with three scripted models over a table of texts."""

    def __init__(self, seed: int = 0, texts: list[str] = TEXTS, **options: object) -> None:
        self.models = [
            bf.ScriptedModel(answering(0.3, seed), name="small"),
            bf.ScriptedModel(answering(1.0, seed), name="middle"),
            bf.ScriptedModel(lambda call: truth(str(call.values[0])), name="large"),
        ]
        self.texts = texts
        self.session = bf.connect(self.models, cache=None, **options)  # type: ignore[arg-type]
        self.session.from_pydict({"text": texts}, name="t")

    def answers(self) -> list[bool]:
        frame = self.session.sql(f"SELECT {CALL} AS good FROM t")
        found = frame.to_pydict()["good"]
        (self.outcome,) = frame.trace.cascades.values()
        return list(found)

    @property
    def asked(self) -> list[int]:
        return [len(model.calls) for model in self.models]


def test_each_model_gets_what_the_ones_before_it_left_open() -> None:
    levels = Levels(accuracy=0.8)
    found = levels.answers()
    small, middle, large = levels.asked
    outcome, then = levels.outcome, levels.outcome.then

    assert sum(map(bool.__eq__, found, map(truth, TEXTS))) / SIZE >= 0.8
    assert then is not None
    assert then.decided > 0 < outcome.decided
    assert small == SIZE
    assert middle == then.values == SIZE - outcome.decided - outcome.sampled
    assert large == outcome.to_large == outcome.sampled + then.to_large
    assert large == SIZE - outcome.decided - then.decided


def test_the_trace_tells_of_every_level() -> None:
    levels = Levels(accuracy=0.8)
    levels.answers()
    shown = str(levels.outcome)

    assert shown.startswith("accuracy ≥ 0.8")
    assert "small decided" in shown
    assert "; middle decided" in shown
    assert shown.endswith(f"that was asked {levels.outcome.to_large:,}")


def test_three_models_ask_the_largest_less_than_two() -> None:
    three = Levels(accuracy=0.9)
    three.answers()
    pair = bf.connect([three.models[0], large := bf.ScriptedModel(
        lambda call: truth(str(call.values[0])), name="large")], cache=None, accuracy=0.9)  # fmt: skip
    pair.from_pydict({"text": TEXTS}, name="t")
    pair.sql(f"SELECT {CALL} AS good FROM t").to_pydict()

    assert three.asked[-1] < len(large.calls)


@pytest.mark.parametrize(
    "targets",
    [{"accuracy": 0.85}, {"recall": 0.8}, {"precision": 0.8}, {"recall": 0.8, "precision": 0.8}],
)
def test_promises_hold_of_all_models_together(targets: dict[str, float]) -> None:
    texts = TEXTS[:400]
    kept = 0
    for seed in range(8):
        found = Levels(seed, texts, **targets).answers()
        right = [truth(text) for text in texts]
        both = sum(a and b for a, b in zip(found, right, strict=True))
        figures = {
            "accuracy": sum(map(bool.__eq__, found, right)) / len(texts),
            "recall": both / sum(right),
            "precision": both / max(1, sum(found)),
        }
        kept += all(figures[name] >= least for name, least in targets.items())
    assert kept >= 7  # the promise is 0.95 of runs; 6 of 8 would be chance of one in seventeen


def test_a_call_may_name_three_models() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: None, name="own"), cache=None)
    for model, name in zip(Levels().models, ("a", "b", "c"), strict=True):
        session.register_model(name, model)
    session.from_pydict({"text": TEXTS}, name="t")
    call = "llm_filter('Is it good?', text, model => ['a', 'b', 'c'], accuracy => 0.8)"
    frame = session.sql(f"SELECT {call} AS good FROM t")

    assert "a, then b decide what they may, c the rest" in frame.explain_text(analyze=False)
    found = frame.to_pydict()["good"]
    (outcome,) = frame.trace.cascades.values()
    assert sum(map(bool.__eq__, found, map(truth, TEXTS))) / SIZE >= 0.8
    assert outcome.then is not None


def test_the_estimate_counts_every_level() -> None:
    estimate = Levels(accuracy=0.9).session.sql(f"SELECT {CALL} AS good FROM t").estimate()
    assert estimate.total.values == 3 * SIZE


def test_few_values_go_to_the_large_model() -> None:
    levels = Levels(accuracy=0.9, texts=TEXTS[:20])
    assert levels.answers() == [truth(text) for text in TEXTS[:20]]
    assert levels.asked == [0, 0, 20]


def test_one_model_promises_nothing() -> None:
    with pytest.raises(OptionError, match="a small model before a large one"):
        bf.connect([bf.ScriptedModel(lambda call: True)], accuracy=0.9).model  # noqa: B018
