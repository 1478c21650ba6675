"""Kept answers that are asked again: a swapped model is named soon, and the same one seldom."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.services.views.drift import Drift
from blendfusion.types import Answer

QUERY = "SELECT id, llm_int('How many?', text) AS n FROM t"


def simulate(rng: random.Random, values: int, flips: float, noise: float) -> int | None:
    """Of so many values asked again, the number at which the alarm comes; None: it does not. Each
    answer is ``noise`` with that probability; that of the new model is another one in ``flips``
    values."""

    def said(answer: str) -> Answer:
        return Answer(f"{answer}{rng.randrange(3)}" if rng.random() < noise else answer)

    drift = Drift()
    for number in range(1, values + 1):
        kept, now = said("a"), "b" if rng.random() < flips else "a"
        first = said(now)
        second = None if first.text == kept.text else said(now)
        drift = drift.with_answers(kept, first, second)
        if drift.is_alarm:
            return number
    return None


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.4])
def test_the_same_model_is_seldom_named(noise: float) -> None:
    """1,000 refreshes of 10 values each, 100 views."""
    rng = random.Random(f"same {noise}")
    alarms = sum(simulate(rng, 10_000, 0.0, noise) is not None for _ in range(100))
    assert alarms <= 1


@pytest.mark.parametrize(("flips", "noise"), [(0.25, 0.0), (0.4, 0.02), (0.6, 0.1), (1.0, 0.0)])
def test_a_swapped_model_is_named_within_fifty_values(flips: float, noise: float) -> None:
    rng = random.Random(f"swap {flips} {noise}")
    named = sum(simulate(rng, 50, flips, noise) is not None for _ in range(500))
    assert named >= 475


def refreshed(session: bf.Session) -> list[str]:
    """The warnings of a refresh."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session.sql("REFRESH v")
    return [str(one.message) for one in caught]


def test_a_view_asks_again_and_warns(tmp_path: Path) -> None:
    more = [0]
    model = bf.ScriptedModel(
        lambda call: len(call.values[0]) + more[0] * (call.values[0][-1] in "02468"),
        fingerprint="a server's name",
    )
    with bf.connect(model, cache=None, views_folder=str(tmp_path), drift_checks=10) as session:
        texts = [f"{'x' * n}{n}" for n in range(200)]
        session.from_pydict({"id": list(range(200)), "text": texts}, name="t")
        session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
        assert len(model.calls) == 200
        for number in range(1, 6):
            assert refreshed(session) == []
            assert len(model.calls) == 200 + 10 * number
        before = session.sql("SELECT * FROM v ORDER BY id").to_pylist()
        more[0] = 1
        found = [text for _ in range(5) for text in refreshed(session)]
        assert len(found) >= 1
        assert found[0].startswith("view v: the model scripted does not answer as it did: of ")
        assert session.materialized_views["v"].version == 1
        assert session.sql("SELECT * FROM v ORDER BY id").to_pylist() == before
        session.budget = bf.Budget(values=session.ledger.usage.values + 3)
        with pytest.raises(bf.BudgetExceeded):
            session.sql("REFRESH v")


@pytest.mark.long
def test_views_name_a_swapped_model_within_fifty_values(tmp_path: Path) -> None:
    """100 views with five refreshes of ten values behind a swap: two of five answers differ. None
    is warned of in the five refreshes before."""
    named, false = 0, 0
    for seed in range(100):
        swapped = [False]

        def script(call: bf.Request, seed: int = seed, swapped: list[bool] = swapped) -> int:
            number = int(call.values[0])
            differs = swapped[0] and random.Random(f"{seed} {number}").random() < 0.4
            return number + differs

        model = bf.ScriptedModel(script, fingerprint="a server's name")
        with bf.connect(
            model, cache=None, views_folder=str(tmp_path / str(seed)), drift_checks=10
        ) as session:
            session.from_pydict({"id": list(range(150)), "text": [*map(str, range(150))]}, "t")
            session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
            false += any(refreshed(session) for _ in range(5))
            swapped[0] = True
            named += any(refreshed(session) for _ in range(5))
    assert named >= 95
    assert false <= 1


def test_none_is_asked_again_by_default(tmp_path: Path) -> None:
    model = bf.ScriptedModel(lambda call: 1, fingerprint="one")
    with bf.connect(model, cache=None, views_folder=str(tmp_path)) as session:
        session.from_pydict({"id": [1], "text": ["a"]}, name="t")
        session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
        assert refreshed(session) == []
        assert len(model.calls) == 1
