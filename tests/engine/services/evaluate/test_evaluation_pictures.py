"""What an evaluation says to people without statistics: a sentence first, and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import blendfusion as bf


def measured(answers: list[Any], labels: list[Any], kind: str = "llm_bool") -> Any:
    table = {"text": [f"text {i}" for i in range(len(labels))], "label": labels}
    model = bf.ScriptedModel(lambda call: answers[int(str(call.values[0]).split()[1])])
    session = bf.connect(model, cache=None, progress="off")
    session.from_pydict(table, "t")
    options = ", options => ['a', 'b', 'c']" if kind == "llm_map" else ""
    frame = session.sql(f"SELECT {kind}('What?', text{options}) AS answer, label FROM t")
    return frame.evaluate("answer", "label")


@pytest.mark.parametrize(
    ("answers", "labels", "said"),
    [
        ([True] * 20 + [False] * 20, [True] * 20 + [False] * 20, "these answers are better."),
        ([True] * 4, [True, False] * 2, "whether these answers are better."),
        ([False] * 40, [True] * 39 + [False], "these answers are worse."),
    ],
)
def test_yes_and_no_are_measured_against_always_the_same(
    answers: list[bool], labels: list[bool], said: str
) -> None:
    found = measured(answers, labels)
    right = sum(a == b for a, b in zip(answers, labels, strict=True))
    assert found.verdict.startswith(f"{right} of {len(labels)} answers ")
    assert found.verdict.endswith(said)
    assert repr(found).splitlines()[0] == found.verdict


def test_nothing_measured_is_said_so() -> None:
    assert measured([True], [None]).verdict.startswith("No row has both")


@pytest.mark.parametrize("kind", ["llm_bool", "llm_map", "llm_int"])
def test_pictures_are_whole_and_safe(kind: str, tmp_path: Path) -> None:
    values = {"llm_bool": [True, False, True], "llm_map": ["a", "b", "<c>"], "llm_int": [1, 2, 3]}
    answers = ["a", "b", "c"] if kind == "llm_map" else values[kind]
    found = measured(answers, values[kind], kind)
    picture = found.plot()
    root = ElementTree.fromstring(picture._repr_svg_())
    assert root.tag.endswith("svg")
    width = float(root.attrib["width"])
    assert all(float(e.attrib.get("x", 0)) <= width for e in root.iter())
    assert "NaN" not in picture.svg
    assert picture.svg in found._repr_html_()
    picture.save(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text("utf-8") == picture.svg
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert ("<c>" in texts) is (kind == "llm_map")
    assert "<c>" not in picture.svg


def test_variants_are_compared_in_a_sentence() -> None:
    session = bf.connect(
        bf.ScriptedModel(lambda call: "bad" in call.values[0] or "Always" in call.question),
        cache=None,
        progress="off",
    )
    texts = [f"{'bad' if i % 2 else 'good'} {i}" for i in range(40)]
    session.from_pydict({"text": texts, "label": [i % 2 == 1 for i in range(40)]}, "t")
    calls = {"always": "llm_filter('Always?', text)", "bad": "llm_filter('Is it bad?', text)"}
    found = session.evaluate("t", calls, "label")
    assert found.verdict == "bad is better than always: 40 right answers against 20."
    assert repr(found).splitlines()[0] == found.verdict
    assert ElementTree.fromstring(found.plot().svg).tag.endswith("svg")
    turned = session.evaluate("t", dict(reversed(calls.items())), "label")
    assert turned.verdict == "No other variant is right more often than bad."
    few = session.from_pydict({"text": texts[:3], "label": [False, True, False]}, "few")
    doubtful = session.evaluate(few, calls, "label").verdict
    assert "may be chance" in doubtful
