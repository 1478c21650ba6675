"""Stored questions of views: their versions, owners, names of answers, and checks that run on
refresh."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.services.views.question_checks import CheckFailed, are_too_wrong

CALL = "llm_classify(text, ['size', 'colour', 'price'])"
TEXTS = ["size a", "colour b", "price c", "size d"]
CHECKS = "SELECT text, label FROM labels"


class Shop:
    """A table, labels, and a model that finds a label in a text."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wrong = folder, set[str]()
        self.model = bf.ScriptedModel(self._answer, fingerprint="first word")
        self.session = self.open()
        self.label("size x", "size")

    def _answer(self, call: bf.Request) -> object:
        text = str(call.values[0])
        return "price" if text in self.wrong else text.split()[0]

    def open(self, fingerprint: str = "first word") -> bf.Session:
        model = bf.ScriptedModel(self._answer, fingerprint=fingerprint)
        self.session = bf.connect(model, cache=None, progress="off", views_folder=str(self.folder))
        self.model = model
        self.session.from_pydict({"id": list(range(4)), "text": TEXTS}, name="t")
        return self.session

    def label(self, *texts_and_labels: str) -> None:
        texts, labels = list(texts_and_labels[::2]), list(texts_and_labels[1::2])
        if self.session.table_exist("labels"):
            self.session.deregister_table("labels")
        self.session.from_pydict({"text": texts, "label": labels}, name="labels")

    def ask(self, call: str = CALL, **fields: Any) -> None:
        fields = {"owner": "ann@example.org", "checks": CHECKS, **fields}
        self.session.register_question(bf.StoredQuestion("topic", call, **fields))

    def do(self, statement: str = "REFRESH v") -> dict[str, Any]:
        return dict(self.session.sql(statement).to_pylist()[0])

    def create(self) -> dict[str, Any]:
        return self.do(
            "CREATE MATERIALIZED VIEW v AS SELECT id, llm_ask('topic', text) AS t FROM t"
        )

    def topics(self) -> list[str]:
        return [row["t"] for row in self.session.sql("SELECT t FROM v ORDER BY id").to_pylist()]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "views")


def test_checks_that_hold_are_asked_once(shop: Shop) -> None:
    shop.ask()
    assert shop.create()["asked"] == 4
    assert len(shop.model.calls) == 5
    assert shop.session.refresh_view("v").checked == 0
    shop.label("size x", "size", "colour y", "colour")
    done = shop.session.refresh_view("v")
    assert (done.checked, done.why) == (1, "nothing changed")


def test_a_label_that_comes_later_and_shows_a_wrong_answer_fails_the_refresh(shop: Shop) -> None:
    shop.ask()
    shop.create()
    shop.session.sql("INSERT INTO t VALUES (9, 'size new')").collect()
    shop.label("size x", "size", "size y", "colour")
    calls = len(shop.model.calls)
    with pytest.raises(
        CheckFailed,
        match=r"the stored question topic, version 1 of ann@example\.org fails its checks: of 2 "
        "labelled values, 1 have another answer",
    ):
        shop.do()
    assert len(shop.model.calls) == calls + 1  # nothing but the label was asked
    assert shop.topics() == ["size", "colour", "price", "size"]
    assert shop.session.materialized_views["v"].version == 1


def test_another_model_is_checked_before_it_is_asked_all(shop: Shop) -> None:
    shop.ask()
    shop.create()
    shop.open("another")
    shop.label("size x", "size")
    shop.ask()
    shop.wrong = {"size x"}
    with pytest.raises(CheckFailed):
        shop.do()
    assert len(shop.model.calls) == 1
    shop.wrong = set()
    shop.session.clear_cache()


def test_the_next_version_of_a_question_is_named(shop: Shop) -> None:
    shop.ask()
    shop.create()
    shop.ask(CALL.replace("'price'", "'price', 'speed'"), version=2)
    plan = "\n".join(shop.session.sql("EXPLAIN REFRESH v").to_pydict()["plan"])
    assert "asks the stored question topic, version 2 of ann@example.org" in plan
    assert shop.do()["why"] == "the stored question topic is version 2"


RENAMED = {
    "one label": {"price": "cost"},
    "two labels in one": {"size": "look", "colour": "look"},
    "exchanged": {"size": "colour", "colour": "size"},
    "a quote": {"size": "it's"},
}


@pytest.mark.parametrize("names", RENAMED.values(), ids=RENAMED)
def test_names_of_answers_ask_nothing(names: dict[str, str], shop: Shop) -> None:
    """Labels that are renamed or put together follow from stored answers, and the plan says so."""
    shop.ask(checks="")
    shop.create()
    calls = len(shop.model.calls)
    shop.ask(checks="", version=2, names=names)
    plan = "\n".join(shop.session.sql("EXPLAIN REFRESH v").to_pydict()["plan"])
    assert re.search(r"Expected: (?:about )?0 values", plan)
    assert shop.do()["asked"] == 0
    assert len(shop.model.calls) == calls
    words = [text.split()[0] for text in TEXTS]
    assert shop.topics() == [names.get(word, word) for word in words]
    name = next(iter(names.values()))
    asked = f"""SELECT id FROM t WHERE llm_ask('topic', text) = '{name.replace("'", "''")}' ORDER BY id"""
    found = [row["id"] for row in shop.session.sql(asked).to_pylist()]
    assert found == [n for n, topic in enumerate(shop.topics()) if topic == name]


def test_a_question_with_all_its_parts_reads_back(tmp_path: Path) -> None:
    more: dict[str, Any] = {"owner": 'Ann "A."', "checks": CHECKS, "at_least": 0.9}
    one = bf.StoredQuestion("topic", CALL, 2, names={"price": 'co"st'}, **more)
    one.save(tmp_path / "topic.toml")
    assert bf.StoredQuestion.read(tmp_path / "topic.toml") == one


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("owner = 3", "holds no question"),
        ("at_least = 2", "holds no question"),
        ("names = ['a']", "holds no question"),
        ("names = { a = 1 }", "holds no question"),
        ("threshold = 0.5\nnames = { a = 'b' }", "names of answers and a threshold"),
    ],
)
def test_wrong_parts_are_errors(lines: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text(f"name = 'topic'\ncall = 'x'\n{lines}")
    with pytest.raises(bf.ArgumentError, match=message):
        bf.StoredQuestion.read(tmp_path / "q.toml")


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ("SELECT text FROM labels", "have one column"),
        ("DROP TABLE t", "read-only"),
        ("SELECT text, text, label FROM labels", "has 1 values"),
    ],
)
def test_checks_of_another_form_are_errors(checks: str, message: str, shop: Shop) -> None:
    shop.ask(checks=checks)
    with pytest.raises(bf.QueryError, match=message):
        shop.create()
    assert shop.session.materialized_views == {}


def test_another_threshold_is_another_question(tmp_path: Path) -> None:
    model = bf.ScriptedModel(lambda call: {True: 0.6, False: 0.4}, fingerprint="unsure")
    with bf.connect(model, cache=None, progress="off", views_folder=str(tmp_path)) as session:
        session.from_pydict({"text": ["a"]}, name="t")
        for threshold, rows in ((0.5, 1), (0.7, 0)):
            call = bf.StoredQuestion("good", "llm_filter('Good?', text)", threshold=threshold)
            session.register_question(call)
            rest = "AS SELECT text FROM t WHERE llm_ask('good', text)"
            statement = f"CREATE MATERIALIZED VIEW v {rest}" if rows else "REFRESH v"
            assert session.sql(statement).to_pylist()[0]["rows"] == rows
        assert len(model.calls) == 1


def test_a_yes_no_question_is_checked(shop: Shop) -> None:
    shop.session.register_model("yes", bf.ScriptedModel(lambda call: True))
    checks = "SELECT text, label = 'size' FROM labels"
    shop.ask("llm_filter('Is it about size?', text, model => 'yes')", checks=checks)
    assert shop.create()["rows"] == 4
    shop.label("colour y", "colour")
    with pytest.raises(CheckFailed):
        shop.do()


# --- a share that must be right ------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.7, 0.9, 0.99])
def test_few_questions_that_are_right_enough_ever_fail(share: float) -> None:
    """1,000 labels one after the other, each time with those before: 300 questions that are as
    right as they must be. At most 1 of 100 may fail; 9 of 300 have a probability below 0.004."""
    rng = random.Random(f"labels {share}")
    failed = sum(
        are_too_wrong([rng.random() < share for _ in range(1_000)], share) for _ in range(300)
    )
    assert failed <= 8


@pytest.mark.parametrize(
    ("share", "real", "labels"), [(0.9, 0.6, 60), (0.9, 0.8, 400), (0.99, 0.9, 200)]
)
def test_a_question_that_is_less_right_is_found(share: float, real: float, labels: int) -> None:
    rng = random.Random(f"labels {share} {real}")
    found = sum(
        are_too_wrong([rng.random() < real for _ in range(labels)], share) for _ in range(100)
    )
    assert found >= 95
