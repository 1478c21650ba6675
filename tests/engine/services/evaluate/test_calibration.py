"""Calibrations: monotone maps from probabilities to shares of labels, by wording and model."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import blendfusion as bf
from blendfusion.services.evaluate.calibrate import isotonic

CALL = "llm_filter('Late?', text)"
TEXTS = [f"text {i}" for i in range(600)]
STATED = {text: random.Random(f"stated {text}").random() for text in TEXTS}
LABELS = [random.Random(f"label {text}").random() < STATED[text] ** 3 for text in TEXTS]
"""A model that is far too sure of a yes."""


def odds(call: bf.Request) -> dict[bool, float]:
    yes = STATED[str(call.values[0])]
    return {True: yes, False: 1 - yes}


def connect(model: bf.Model | None = None) -> bf.Session:
    session = bf.connect(
        model or bf.ScriptedModel(odds, fingerprint="late"), cache=None, progress="off"
    )
    session.from_pydict({"text": TEXTS[:400], "label": LABELS[:400]}, name="labelled")
    session.from_pydict({"text": TEXTS[400:], "label": LABELS[400:]}, name="later")
    return session


def test_a_calibrated_probability_is_the_share_of_yes_on_other_rows() -> None:
    session = connect()
    made = session.calibrate(CALL, "labelled", name="late")
    assert (made.version, made.model, made.values, made.question) == (1, "scripted", 400, "Late?")
    assert made.measured["before"] > 0.15
    assert made.measured["after"] < 0.08
    frames = [
        session.sql(f"SELECT llm_probability('Late?', text{option}) AS p, label FROM later")
        for option in ("", ", calibrated => 'late'")
    ]
    stated, calibrated = (frame.evaluate("p", "label") for frame in frames)
    assert calibrated.accuracy > stated.accuracy + 0.1
    expected = [made.share(STATED[text]) for text in TEXTS[400:]]
    assert frames[1].to_pydict()["p"] == pytest.approx(expected, abs=1e-8)


def test_every_use_of_a_probability_is_calibrated_and_asks_nothing_again() -> None:
    model = bf.ScriptedModel(odds)
    session = connect(model)
    made = session.calibrate(CALL, "labelled", name="late")
    asked = len(model.calls)
    share = [made.share(STATED[text]) for text in TEXTS[:400]]
    columns = (
        "llm_filter('Late?', text, calibrated => 'late') AS yes, "
        "llm_bool('Late?', text, calibrated => 'late', threshold => 0.3) AS likely, "
        "llm_filter('Late?', text, calibrated => 'late', confidence => 0.7) AS sure, "
        "llm_filter('Late?', text, calibrated => 'late', confidence => 'all')['true'] AS p"
    )
    found = session.sql(f"SELECT {columns} FROM labelled").to_pydict()
    assert found["yes"] == [p >= 0.5 for p in share]
    assert found["likely"] == [p >= 0.3 for p in share]
    assert found["sure"] == [None if 0.3 < p < 0.7 else p >= 0.5 for p in share]
    assert found["p"] == pytest.approx(share, abs=1e-8)
    where = "llm_filter('Late?', text, threshold => 0.3, calibrated => 'late')"
    counted = session.sql(f"SELECT count(*) AS n FROM labelled WHERE {where}").to_pydict()
    assert counted == {"n": [sum(p >= 0.3 for p in share)]}
    frame = session.table("labelled").select(
        bf.llm_probability("Late?", "text", calibrated="late").alias("p")
    )
    assert frame.to_pydict()["p"] == pytest.approx(share, abs=1e-8)
    assert len(model.calls) == asked


def test_versions_and_files(tmp_path: Path) -> None:
    session = connect()
    first = session.calibrate(CALL, {"text": TEXTS[:50], "label": LABELS[:50]}, name="late")
    second = session.calibrate(CALL, "labelled", name="late")
    assert (first.version, second.version) == (1, 2)
    first.save(tmp_path / "late.toml")
    other = connect()
    read = other.register_calibration(tmp_path / "late.toml")
    assert read == first
    assert read.measured == first.measured
    one = "SELECT llm_probability('Late?', text, calibrated => '{}') AS p FROM later"
    results = {name: session.sql(one.format(name)).to_pydict() for name in ("late", "late@1")}
    assert results["late"] == session.sql(one.format("late@2")).to_pydict() != results["late@1"]
    assert other.sql(one.format("late")).to_pydict() == results["late@1"]
    whole = (tmp_path / "late.toml").read_text("utf-8")
    (tmp_path / "late.toml").write_text(
        f"measured = 3\n{whole.partition('[measured]')[0]}", "utf-8"
    )
    with pytest.raises(bf.ArgumentError, match="holds no calibration"):
        other.register_calibration(tmp_path / "late.toml")
    (tmp_path / "late.toml").write_text("name = 'late'", "utf-8")
    with pytest.raises(bf.ArgumentError, match="holds no calibration"):
        other.register_calibration(tmp_path / "late.toml")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            "llm_filter('Too late?', text, calibrated => 'late')",
            "is of another question, 'Late\\?'",
        ),
        ("llm_filter('Late?', text, calibrated => 'lote')", "no calibration is called 'lote'"),
        ("llm_filter('Late?', text, calibrated => 'late@7')", "no calibration is called 'late@7'"),
        ("llm_filter('Late?', text, calibrated => '')", "must be a text"),
        ("llm_filter('Late?', text, calibrated => 'late', recall => 0.9)", "go with a cascade"),
        ("llm_filter('Late?', text, calibrated => 'late', model => 'other')", "and other answers"),
    ],
)
def test_a_map_of_another_wording_or_model_is_refused(call: str, problem: str) -> None:
    session = connect()
    session.register_model("other", bf.ScriptedModel(odds, name="other"))
    session.calibrate(CALL, "labelled", name="late")
    with pytest.raises(bf.BlendFusionError, match=problem):
        session.sql(f"SELECT {call} FROM later").to_pydict()


def test_a_model_that_is_not_what_it_was_is_refused() -> None:
    session = connect(bf.ScriptedModel(odds, fingerprint="first"))
    made = session.calibrate(CALL, "labelled", name="late")
    other = connect(bf.ScriptedModel(odds, fingerprint="second"))
    other.register_calibration(made)
    with pytest.raises(bf.QueryError, match="is not what it was when 'late' was measured"):
        other.sql("SELECT llm_filter('Late?', text, calibrated => 'late') FROM later").to_pydict()


@pytest.mark.parametrize(
    ("call", "rows", "problem"),
    [
        (CALL, 10, "needs 20 different labelled values"),
        ("llm_classify(text, ['a', 'b'])", 50, "is no yes/no question"),
        ("llm_filter('Late?', text, threshold => 0.8)", 50, "without threshold"),
        ("upper(text)", 50, "not one call on columns"),
    ],
)
def test_what_cannot_be_calibrated(call: str, rows: int, problem: str) -> None:
    labels = {"text": TEXTS[:rows], "label": LABELS[:rows]}
    with pytest.raises(bf.BlendFusionError, match=problem):
        connect().calibrate(call, labels, name="late")


def test_a_model_without_probabilities_is_refused() -> None:
    session = connect(bf.ScriptedModel(lambda call: STATED[call.values[0]] > 0.5))
    with pytest.raises(bf.QueryError, match="does not tell how probable"):
        session.calibrate(CALL, "labelled", name="late")


def test_the_map_is_the_isotonic_fit() -> None:
    """Against its definition: the highest of the lowest means of stretches around a value."""
    for seed in range(100):
        made = np.random.default_rng(seed)
        stated = made.integers(0, 12, 40) / 12
        shares = (made.random(40) < stated).astype(float)
        points = dict(isotonic(stated, shares))
        levels = np.unique(stated)
        for i, level in enumerate(levels):
            fit = max(
                min(
                    shares[(stated >= levels[a]) & (stated <= levels[b])].mean()
                    for b in range(i, len(levels))
                )
                for a in range(i + 1)
            )
            found = np.interp(level, [*points], [*points.values()])
            assert found == pytest.approx(min(max(fit, 1 / 42), 41 / 42), abs=2e-6)


def test_an_evaluation_shows_how_far_confidences_hold() -> None:
    session = connect()
    query = "SELECT llm_filter('Late?', text, confidence => 'keep') AS yes, label FROM labelled"
    text = repr(session.sql(query).evaluate("yes", "label"))
    assert "confidence   rows   mean    right" in text
    assert "0.9 to 1.0" in text
