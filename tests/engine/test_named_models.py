"""Calls that name who answers them: ``model => 'large'``."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import blendfusion as bf
from blendfusion.models.protocol.abilities import Abilities

TEXTS = [f"review {i}" for i in range(400)]


def truth(text: str) -> bool:
    return random.Random(text).random() < 0.5


def guess(call: bf.Request) -> dict[bool, float]:
    made = random.Random("a guess at " + str(call.values[0]))
    sure = 0.5 + 0.5 * made.random() ** 0.5
    said = truth(str(call.values[0])) == (made.random() < sure)
    return {said: sure, not said: 1 - sure}


class Three:
    """A session with a model of its own, and a small and a large one that calls may name."""

    def __init__(
        self,
        texts: list[str] = TEXTS[:6],
        large: Callable[[bf.Request], bool | None] = lambda call: truth(str(call.values[0])),
        **options: object,
    ) -> None:
        self.own = bf.ScriptedModel(lambda call: True, name="own")
        self.small = bf.ScriptedModel(guess, name="a small one")
        self.large = bf.ScriptedModel(large, name="a large one")
        self.session = bf.connect(self.own, cache=None, **options)
        self.session.register_model("small", self.small)
        self.session.register_model("large", self.large)
        self.session.from_pydict({"text": texts}, name="t")

    def frame(self, options: str) -> bf.Frame:
        return self.session.sql(f"SELECT text, llm_filter('Good?', text{options}) AS f FROM t")

    @property
    def asked(self) -> tuple[int, int, int]:
        return len(self.own.calls), len(self.small.calls), len(self.large.calls)


def test_a_call_names_who_answers() -> None:
    three = Three()
    rows = three.frame(", model => 'large'").to_pylist()
    assert [row["f"] for row in rows] == [truth(row["text"]) for row in rows]
    assert three.asked == (0, 0, 6)


def test_one_question_to_several_models_is_counted_by_call() -> None:
    three = Three()
    call = "llm_filter('Good?', text"
    frame = three.session.sql(
        f"SELECT {call}) AS a, {call}, model => 'small') AS b, {call}, model => 'large') AS c FROM t"
    )
    assert frame.estimate().total.values == 18
    assert frame.to_pydict()["c"] == [truth(text) for text in TEXTS[:6]]
    assert three.asked == (6, 6, 6)
    assert {name: usage.values for name, usage in frame.trace.by_model.items()} == {
        "own": 6,
        "a small one": 6,
        "a large one": 6,
    }
    text = frame.explain_text(analyze=True)
    assert text.count("[0 values asked (0 expected), 6 cached") == 3
    assert "Asked of a large one: 0 values asked, 6 cached" in text


def test_of_several_each_is_asked_what_those_before_fail_at() -> None:
    three = Three()
    three.session.register_model("none", bf.ScriptedModel(lambda call: None, name="none"))
    three.frame(", model => ['none', 'large']").to_pylist()
    assert three.asked == (0, 0, 6)


def test_a_cascade_by_call() -> None:
    three = Three(TEXTS)
    frame = three.frame(", model => ['small', 'large'], accuracy => 0.9")
    assert "cascade: small decides what it may, large the rest (accuracy ≥ 0.9" in (
        frame.explain_text()
    )
    assert frame.estimate().total.values == 2 * len(TEXTS)
    rows = frame.to_pylist()
    assert sum(row["f"] == truth(row["text"]) for row in rows) >= 0.9 * len(rows)
    own, small, large = three.asked
    assert (own, small) == (0, len(TEXTS))
    assert 0 < large < 0.8 * len(TEXTS)
    (outcome,) = frame.trace.cascades.values()
    assert (outcome.small, outcome.large, outcome.to_large) == ("a small one", "a large one", large)


@pytest.mark.parametrize("options", ["recall => 0.8", "precision => 0.8"])
def test_recall_and_precision_by_call(options: str) -> None:
    three = Three(TEXTS)
    three.frame(f", model => ['small', 'large'], {options}, delta => 0.1").to_pylist()
    own, small, large = three.asked
    assert (own, small) == (0, len(TEXTS))
    assert 0 < large < len(TEXTS)


def test_what_the_session_promises_holds_for_the_two_that_a_call_names() -> None:
    three = Three(TEXTS)
    small, large = three.small, three.large
    session = bf.connect([three.own, three.own], cache=None, accuracy=0.9)
    session.register_model("small", small)
    session.register_model("large", large)
    session.from_pydict({"text": TEXTS}, name="t")
    two = "SELECT llm_filter('Good?', text, model => ['small', 'large']) AS f FROM t"
    session.sql(two).to_pylist()
    assert len(small.calls) == len(TEXTS)
    assert 0 < len(large.calls) < len(TEXTS)
    before = len(large.calls)
    one = session.sql("SELECT llm_filter('Bad?', text, model => 'large') AS f FROM t")
    one.to_pylist()
    assert len(large.calls) == before + len(TEXTS)  # it says who answers: nobody decides for it
    assert three.asked[0] == 0


def test_a_proxy_decides_for_the_model_that_a_call_names() -> None:
    embedder = bf.ScriptedEmbedder(
        lambda texts: [[1.0, float(truth(text) or text == "Good?")] for text in texts]
    )
    three = Three(TEXTS, embedder=embedder)
    three.frame(", model => 'large', recall => 0.8, proxy => 'similarity'").to_pylist()
    own, small, large = three.asked
    assert (own, small) == (0, 0)
    assert 0 < large < len(TEXTS)


def test_the_sessions_own_models_need_no_name() -> None:
    small, large = bf.ScriptedModel(guess, name="s"), bf.ScriptedModel(lambda c: True, name="l")
    session = bf.connect([small, large], cache=None)
    session.from_pydict({"text": TEXTS[:3]}, name="t")
    session.sql("SELECT llm_filter('Good?', text, model => 'l') FROM t").collect()
    assert (len(small.calls), len(large.calls)) == (0, 3)


def test_a_session_may_do_without_a_model_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "blendfusion.models.protocol.python_packages.packaged_weights", lambda: None
    )
    session = bf.connect(cache=None)
    large = bf.ScriptedModel(lambda call: True, name="l")
    session.register_model("large", large)
    session.from_pydict({"text": TEXTS[:3]}, name="t")
    frame = session.sql("SELECT text FROM t WHERE llm_filter('Good?', text, model => 'large')")
    assert len(frame.to_pylist()) == 3
    assert frame.trace.by_model["l"].values == 3
    assert "l ·" in frame.trace.to_html()
    assert "[expected: 3 values" not in frame.explain_text()
    assert "DataFrame()" in repr(frame)


@pytest.mark.parametrize(
    "call",
    [
        "llm_map('Which?', text, options => ['a', 'b'], model => 'large')",
        "llm_extract(text, 'a INT', model => 'large')",
        "llm_score('How good?', text, model => 'large')",
        "llm_answer('Which?', text, model => 'large')",
        "llm_summarize(text, model => 'large')",
        "llm_compare(text, '=', 'another', model => 'large')",
        "llm_members(text, make_array('a', text || 'b'), model => 'large')",
    ],
)
def test_functions_that_ask_may_name_a_model(call: str) -> None:
    three = Three(TEXTS[:2], large=lambda call: None)
    frame = three.session.sql(f"SELECT {call} FROM t")
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    assert three.asked[:2] == (0, 0)
    assert three.asked[2] > 0


@pytest.mark.parametrize(
    "options",
    [
        ", how => 'near'",
        ", exact => true",
        ", labels => ['a', 'b']",
        ", how => 'near', many => true",
    ],
)
def test_joins_may_name_a_model(options: str) -> None:
    three = Three(TEXTS[:3], large=lambda call: None)
    query = (
        f"SELECT * FROM t JOIN (SELECT text || '?' AS o FROM t) u ON llm_join(t.text, u.o{options}"
    )
    frame = three.session.sql(f"{query}, model => 'large')")
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    assert three.asked[2] > 0
    assert three.asked[:2] == (0, 0)


def test_the_images_of_a_call_are_seen_by_the_model_that_it_names() -> None:
    class Blind(bf.ScriptedModel):
        abilities = Abilities()

    three = Three()
    three.session.register_model("blind", Blind(lambda call: "red"))
    query = "SELECT llm_vqa('Which colour?', 'https://a.org/' || replace(text, ' ', '-'), model => 'blind') FROM t"
    with pytest.raises(bf.QueryError, match="reads text only"):
        three.session.sql(query).collect()


def test_frames_name_models_too() -> None:
    three = Three(TEXTS)
    sure = bf.llm_filter(
        "Good?", "text", model=["small", "large"], targets=bf.Targets(accuracy=0.9)
    )
    three.session.table("t").filter(sure).to_pydict()
    own, small, large = three.asked
    assert (own, small) == (0, len(TEXTS))
    assert 0 < large < len(TEXTS)


def test_frames_of_a_name_that_is_none_ask_nobody() -> None:
    three = Three()
    frame = three.session.table("t").filter(bf.llm_filter("Good?", "text", model="huge"))
    with pytest.raises(bf.ModelNotFound, match="knows no model 'huge'"):
        frame.collect()
    assert three.asked == (0, 0, 0)


def test_a_name_may_stand_for_another_model_later() -> None:
    three = Three()
    frame = three.frame(", model => 'large'")
    frame.to_pylist()
    three.session.register_model("large", three.own)
    assert frame.to_pydict()["f"] == [True] * 6
    assert three.asked == (6, 0, 6)


def test_stored_answers_are_those_of_a_model_whatever_names_it() -> None:
    three = Three()
    three.session.register_model("the same", three.large)
    three.frame(", model => 'large'").to_pylist()
    three.frame(", model => 'the same'").to_pylist()
    assert three.asked == (0, 0, 6)
    three.session.clear_cache()
    three.frame(", model => 'the same'").to_pylist()
    assert three.asked == (0, 0, 12)


def test_each_model_has_its_price_and_the_budget_counts_all() -> None:
    prices = {"a large one": bf.Price(prompt=10, completion=0)}
    three = Three(prices=prices, budget=bf.Budget(values=8))
    frame = three.frame(", model => 'large'")
    assert frame.estimate().cost == pytest.approx(frame.estimate().total.prompt_tokens / 1e5)
    frame.to_pylist()
    assert frame.trace.cost == pytest.approx(frame.trace.usage.prompt_tokens / 1e5)
    with pytest.raises(bf.BudgetExceeded):
        three.frame(", model => 'small'").to_pylist()
    assert three.asked == (0, 2, 6)


def test_a_cost_that_is_limited_needs_the_price_of_every_model_that_is_asked() -> None:
    prices = {"own": bf.Price(prompt=10, completion=0)}
    three = Three(prices=prices, budget=bf.Budget(cost=1.0))
    with pytest.raises(bf.OptionError, match="needs the price of the model 'a large one'"):
        three.frame(", model => 'large'").to_pylist()


def test_read_only_queries_name_models_that_are_known_and_no_others() -> None:
    three = Three(read_only=True)
    three.frame(", model => 'large'").to_pylist()
    for spec in ("openai:m@http://127.0.0.1:1/v1", "llama:/tmp/w.gguf", "hf:a/b/c.gguf", "auto"):
        with pytest.raises(bf.ModelNotFound, match="knows no model"):
            three.frame(f", model => '{spec}'")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("model => 'lagre'", "knows no model 'lagre'"),
        ("model => 3", "model => 3 is not possible"),
        ("model => []", r"model => \[\] is not possible"),
        ("model => ['small', 'small']", "names 'small' twice"),
        ("model => 'large', accuracy => 0.9", "of a small model before a large one"),
        (
            "model => ['small', 'large'], recall => 0.9, proxy => 'embedding'",
            "stands for the small",
        ),
    ],
)
def test_what_cannot_be_is_an_error_of_the_query(options: str, problem: str) -> None:
    three = Three()
    with pytest.raises(bf.BlendFusionError, match=problem):
        three.frame(f", {options}")
    with pytest.raises(bf.OptionError, match="is no name of a model"):
        three.session.register_model(" ", three.own)


def test_a_plan_that_datafusion_evaluates_asks_them_too() -> None:
    three = Three(planner=False)
    three.frame(", model => 'large'").to_pylist()
    assert three.asked == (0, 0, 6)


@pytest.mark.long
@pytest.mark.local
def test_packaged_models_are_known_by_their_names() -> None:
    own = bf.ScriptedModel(lambda call: True)
    with bf.connect(own, cache=None) as session:
        session.from_pydict({"text": ["It broke.", "Lovely."]}, name="t")
        session.sql("SELECT llm_filter('Is it praise?', text, model => 'smollm2') FROM t").collect()
    assert own.calls == []
