"""Two models as a cascade: the small one decides what it may, and the large one answers the
rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

import blendfusion as bf

SIZE = 600
TEXTS = [f"review {i}" for i in range(SIZE)]


def truth(text: str) -> bool:
    return random.Random(text).random() < 0.5


def doubts(text: str) -> float:
    """How probable a small model holds what is true: mostly much, sometimes too little."""
    return 0.5 + 0.5 * random.Random("doubts" + text).random() ** 0.5


def small_answer(call: bf.Request) -> Mapping[bool, float]:
    text = str(call.values[0])
    sure = doubts(text)
    right = random.Random("slips" + text).random() < sure
    said = truth(text) if right else not truth(text)
    return {said: sure, not said: 1 - sure}


def large_answer(call: bf.Request) -> bool:
    return truth(str(call.values[0]))


class Pair:
    """A session with two scripted models over a table of texts."""

    def __init__(
        self,
        small: Callable[[bf.Request], object] = small_answer,
        large: Callable[[bf.Request], object] = large_answer,
        texts: list[str] = TEXTS,
        **options: object,
    ) -> None:
        self.small = bf.ScriptedModel(small, name="small")  # type: ignore[arg-type]
        self.large = bf.ScriptedModel(large, name="large")  # type: ignore[arg-type]
        self.session = bf.connect([self.small, self.large], cache=None, **options)
        self.session.from_pydict({"text": texts}, name="t")

    def passed(self, options: str = "") -> list[str]:
        call = f"llm_filter('Is it good?', text{options})"
        return list(self.session.sql(f"SELECT text FROM t WHERE {call}").to_pydict()["text"])

    @property
    def asked(self) -> tuple[int, int]:
        return len(self.small.calls), len(self.large.calls)


def test_the_small_model_decides_what_it_may() -> None:
    pair = Pair(accuracy=0.9)
    passed = set(pair.passed())
    right = sum((text in passed) == truth(text) for text in TEXTS)
    assert right / SIZE >= 0.9
    small, large = pair.asked
    assert small == SIZE
    assert 100 <= large < 0.7 * SIZE


@pytest.mark.parametrize(
    "options", [{"recall": 0.9}, {"precision": 0.9}, {"recall": 0.8, "precision": 0.9}]
)
def test_filters_keep_recall_and_precision(options: dict[str, float]) -> None:
    pair = Pair(**options)
    passed = set(pair.passed())
    right = {text for text in TEXTS if truth(text)}
    assert len(passed & right) >= options.get("recall", 1.0) * len(right)
    assert len(passed & right) >= options.get("precision", 1.0) * len(passed)
    assert pair.asked[1] < SIZE


@pytest.mark.parametrize("leans_to_yes", [True, False])
@pytest.mark.parametrize(
    "options", [{"recall": 0.9}, {"precision": 0.9}, {"recall": 0.9, "precision": 0.9}]
)
def test_promises_hold_where_the_small_model_always_says_the_same(
    options: dict[str, float], leans_to_yes: bool
) -> None:
    """Its order is good, and its own answers are all yes, or all no."""

    def leaning(call: bf.Request) -> Mapping[bool, float]:
        odds = small_answer(call)
        yes = odds[True] / 2 + (0.5 if leans_to_yes else 0.0)
        return {True: yes, False: 1 - yes}

    pair = Pair(small=leaning, **options)
    passed = set(pair.passed())
    right = {text for text in TEXTS if truth(text)}
    assert len(passed & right) >= options.get("recall", 1.0) * len(right)
    assert len(passed & right) >= options.get("precision", 1.0) * len(passed)
    assert pair.asked[1] < SIZE


def test_a_call_may_say_what_it_wants() -> None:
    pair = Pair()
    pair.passed(", accuracy => 0.9, delta => 0.1")
    small, large = pair.asked
    assert small == SIZE
    assert large < SIZE


def test_without_a_promise_models_are_fall_backs() -> None:
    pair = Pair()
    pair.passed()
    assert pair.asked == (SIZE, 0)


def test_a_promise_that_nothing_can_keep_leaves_all_to_the_large_model() -> None:
    pair = Pair(small=lambda call: {True: 0.51, False: 0.49}, accuracy=0.99)
    frame = pair.session.sql("SELECT text FROM t WHERE llm_filter('Is it good?', text)")
    assert set(frame.to_pydict()["text"]) == {text for text in TEXTS if truth(text)}
    (outcome,) = frame.trace.cascades.values()
    assert (outcome.decided, outcome.to_large) == (0, SIZE)
    assert "certified thresholds would save nothing, all 600 asked of large" in str(outcome)
    assert len(pair.large.calls) == SIZE


def test_few_values_are_asked_of_the_large_model_alone() -> None:
    pair = Pair(texts=TEXTS[:50], accuracy=0.9)
    pair.passed()
    assert pair.asked == (0, 50)


def test_labels_are_a_closed_set_too() -> None:
    def spread(call: bf.Request) -> Mapping[str, float]:
        odds = small_answer(call)
        return {"good": odds[True], "bad": odds[False], "mixed": 0.0}

    pair = Pair(spread, lambda call: "good" if large_answer(call) else "bad", accuracy=0.9)
    rows = pair.session.sql("SELECT text, llm_classify(text, ['good', 'bad', 'mixed']) AS f FROM t")
    right = sum((row["f"] == "good") == truth(row["text"]) for row in rows.to_pylist())
    assert right / SIZE >= 0.9
    assert pair.asked[1] < SIZE


def test_what_is_no_closed_set_is_asked_of_the_large_model() -> None:
    pair = Pair(lambda call: 1, lambda call: 2, texts=TEXTS[:70], accuracy=0.9)
    rows = pair.session.sql("SELECT llm_int('How many?', text) AS n FROM t").to_pydict()
    assert set(rows["n"]) == {2}
    assert pair.asked == (0, 70)


def test_a_run_again_asks_nothing_and_gives_the_same() -> None:
    pair = Pair(accuracy=0.9)
    first = pair.passed()
    before = pair.asked
    assert pair.passed() == first
    assert pair.asked == before


def test_what_is_stored_does_not_change_who_decides() -> None:
    fresh, used = Pair(accuracy=0.9), Pair(accuracy=0.9)
    ahead = "SELECT llm_filter('Is it good?', text) AS f FROM t WHERE text LIKE '%1'"
    assert used.session.sql(ahead).to_pydict()
    assert used.passed() == fresh.passed()


def test_order_and_plan_do_not_change_it() -> None:
    shuffled = random.Random(3).sample(TEXTS, SIZE)
    assert sorted(Pair(accuracy=0.9).passed()) == sorted(
        Pair(texts=shuffled, accuracy=0.9).passed()
    )
    plain = Pair(accuracy=0.9, planner=False)
    assert sorted(plain.passed()) == sorted(Pair(accuracy=0.9).passed())


def test_several_predicates_each_keep_their_promise() -> None:
    pair = Pair(accuracy=0.9)
    query = "SELECT text FROM t WHERE llm_filter('Is it good?', text) AND llm_filter('Is it red?', text)"
    frame = pair.session.sql(query)
    frame.to_pydict()
    first, second = frame.trace.cascades.values()
    assert first.values == SIZE
    assert second.values < SIZE
    assert frame.last_counts[0].chunks == 1


def test_what_the_small_model_fails_at_the_large_one_answers() -> None:
    def fails(call: bf.Request) -> Mapping[bool, float] | None:
        return None if str(call.values[0]).endswith("7") else small_answer(call)

    pair = Pair(small=fails, accuracy=0.9)
    frame = pair.session.sql("SELECT text, llm_filter('Is it good?', text) AS f FROM t")
    rows = frame.to_pylist()
    assert all(row["f"] == truth(row["text"]) for row in rows if row["text"].endswith("7"))
    assert (frame.trace.errors.num_rows, frame.trace.usage.failed) == (0, 0)


def test_what_the_large_model_fails_at_has_failed() -> None:
    def fails(call: bf.Request) -> bool | None:
        return None if str(call.values[0]).endswith("7") else large_answer(call)

    pair = Pair(large=fails, accuracy=0.8)
    frame = pair.session.sql(
        "SELECT llm_filter('Is it good?', text, on_error => 'keep') AS f FROM t"
    )
    errors = [row["f"]["error"] for row in frame.to_pylist() if row["f"]["error"]]
    assert set(errors) == {"no answer"}
    assert len(errors) == frame.trace.errors.num_rows


def test_under_a_limit_it_works_as_it_goes() -> None:
    pair = Pair(accuracy=0.9)
    query = "SELECT text FROM t WHERE llm_filter('Is it good?', text) LIMIT 3"
    assert len(pair.session.sql(query).to_pydict()["text"]) == 3
    assert pair.asked[1] < 64


def test_each_model_is_accounted_for() -> None:
    prices = {
        "small": bf.Price(prompt=1.0, completion=0.0),
        "large": bf.Price(prompt=100.0, completion=0.0),
    }
    pair = Pair(accuracy=0.9, prices=prices)
    frame = pair.session.sql("SELECT text FROM t WHERE llm_filter('Is it good?', text)")
    assert "small decides what it may, large the rest (accuracy ≥ 0.9" in frame.explain_text()
    assert frame.estimate().total.values == 2 * SIZE
    frame.to_pydict()
    by_model, usage = frame.trace.by_model, frame.trace.usage
    small, large = pair.asked
    assert (by_model["small"].values, by_model["large"].values) == (small, large)
    assert usage.values == small + large
    spent = by_model["small"].prompt_tokens + 100 * by_model["large"].prompt_tokens
    assert frame.trace.cost == pytest.approx(spent / 1e6)
    text = frame.explain_text(analyze=True)
    assert f"of large; that was asked {large}" in text
    assert "Asked of large: 0 values asked" in text
    assert "Asked of small: 0 values asked, 600 cached" in text
    assert "cascade" in frame.trace.to_html().lower()


def test_a_budget_bounds_both() -> None:
    pair = Pair(accuracy=0.9, budget=bf.Budget(values=SIZE + 10))
    with pytest.raises(bf.BudgetExceeded):
        pair.passed()
    assert sum(pair.asked) == SIZE + 10


def test_a_small_model_without_probabilities_is_an_error() -> None:
    pair = Pair(small=large_answer, accuracy=0.9)
    with pytest.raises(bf.QueryError, match="small does not tell how probable its answers are"):
        pair.passed()
    assert pair.asked[1] == 0


def test_each_model_must_tell_probabilities_where_they_are_wanted() -> None:
    pair = Pair(accuracy=0.9)
    with pytest.raises(bf.QueryError, match="large does not tell how probable its answers are"):
        pair.passed(", confidence => 0.9")


def test_a_displayed_frame_shows_no_answers_of_one_model_for_those_of_two() -> None:
    pair = Pair(accuracy=0.9)
    frame = pair.session.sql("SELECT llm_filter('Is it good?', text) AS f FROM t")
    frame.to_pydict()
    before = pair.asked
    assert "not run" in repr(pair.session.sql("SELECT llm_filter('Is it good?', text) AS f FROM t"))
    assert pair.asked == before


def test_one_model_can_promise_nothing() -> None:
    model = bf.ScriptedModel(lambda call: True)
    with pytest.raises(bf.OptionError, match="a small model before a large one"):
        bf.connect(model, recall=0.9)
    session = bf.connect(model, cache=None)
    session.from_pydict({"text": TEXTS}, name="t")
    with pytest.raises(bf.QueryError, match=r"recall ≥ 0\.9 is promised of a small model"):
        session.sql("SELECT llm_filter('Is it?', text, recall => 0.9) FROM t").collect()
    assert model.calls == []


def test_targets_without_a_small_model_are_an_error_before_anything_is_asked() -> None:
    model = bf.ScriptedModel(lambda call: True)
    session = bf.connect(model, cache=None)
    session.from_pydict({"x": ["a", "b"], "y": ["c", "d"]}, name="t")
    for condition in (
        "llm_filter('One?', x) AND llm_filter('Two?', y, accuracy => 0.9)",
        "llm_filter('One?', x) AND llm_filter('Two?', y, recall => 0.9, precision => 0.9)",
        "llm_int('One?', x) > 3 OR llm_classify(y, ['a', 'b'], accuracy => 0.9) = 'a'",
    ):
        with pytest.raises(bf.QueryError, match="of a small model before a large one"):
            session.sql(f"SELECT x FROM t WHERE {condition}").collect()
    assert model.calls == []


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("llm_filter('?', text, recall => 0)", "recall => 0 is not possible"),
        ("llm_filter('?', text, recall => 1.1)", "recall => 1.1 is not possible"),
        ("llm_filter('?', text, accuracy => 0.9, recall => 0.9)", "cannot be promised together"),
        ("llm_filter('?', text, delta => 0.1)", "delta alone promises nothing"),
        ("llm_classify(text, ['a', 'b'], recall => 0.9)", "no option 'recall'"),
        ("llm_int('?', text, accuracy => 0.9)", "no option 'accuracy'"),
        ("llm_validate('?', text, accuracy => 0.9)", "no option 'accuracy'"),
    ],
)
def test_what_cannot_be_promised_is_an_error(call: str, problem: str) -> None:
    with pytest.raises(bf.ArgumentError, match=problem):
        Pair().session.sql(f"SELECT {call} FROM t")


def test_frames_have_it_too() -> None:
    pair = Pair()
    sure = bf.llm_filter("Is it good?", "text", targets=bf.Targets(accuracy=0.9))
    pair.session.table("t").filter(sure).to_pydict()
    assert 0 < pair.asked[1] < SIZE


def test_it_can_be_set() -> None:
    pair = Pair()
    pair.session.sql("SET blendfusion.accuracy = 0.9")
    pair.passed()
    assert 0 < pair.asked[1] < SIZE


def embedded(text: str) -> list[float]:
    """A vector that tells what is true, mostly."""
    made = random.Random("vector" + text)
    return [made.gauss(1.2 if truth(text) else -1.2, 1.0), made.gauss(0.0, 1.0), 1.0]


def test_a_classifier_of_vectors_may_stand_for_the_small_model() -> None:
    large = bf.ScriptedModel(large_answer, name="large")
    options: dict[str, object] = {
        "cache": None,
        "embedder": bf.ScriptedEmbedder(lambda texts: [embedded(text) for text in texts]),
        "accuracy": 0.9,
    }
    with bf.connect(
        ["embedding", large], prices=bf.Price(prompt=1, completion=1), **options
    ) as session:
        session.from_pydict({"text": TEXTS}, name="t")
        frame = session.sql("SELECT text, llm_filter('Is it good?', text) AS f FROM t")
        assert frame.estimate().total.values == SIZE
        rows = frame.to_pylist()
        (outcome,) = frame.trace.cascades.values()
        assert outcome.small == "embedding"
        assert outcome.to_large == len(large.calls) < 0.7 * SIZE
        assert frame.trace.usage.values == len(large.calls)
        assert frame.to_pylist() == rows
        assert outcome.to_large == len(large.calls)
    assert sum(row["f"] == truth(row["text"]) for row in rows) / SIZE >= 0.9


def test_too_few_values_are_not_learned_from() -> None:
    large = bf.ScriptedModel(large_answer)
    options: dict[str, object] = {
        "cache": None,
        "embedder": bf.ScriptedEmbedder(lambda texts: [embedded(text) for text in texts]),
        "recall": 0.9,
    }
    with bf.connect(["embedding", large], **options) as session:
        session.from_pydict({"text": TEXTS[:150]}, name="t")
        session.sql("SELECT llm_filter('Is it good?', text) AS f FROM t").to_pydict()
    assert len(large.calls) == 150


def test_vectors_alone_answer_nothing() -> None:
    with bf.connect("embedding", cache=None) as session:
        session.from_pydict({"text": ["a"]}, name="t")
        with pytest.raises(bf.ModelFailed, match="only before a large model"):
            session.sql("SELECT llm_filter('Is it good?', text) AS f FROM t").collect()


@pytest.mark.long
@pytest.mark.local
def test_the_packaged_model_decides_for_a_larger_one() -> None:
    words = ("lovely", "great", "awful", "broken", "superb", "dull", "fine", "bad")
    texts = [f"{a}, {b}" for a in words for b in words] + ["so good"]
    good = {"lovely", "great", "superb", "fine"}
    large = bf.ScriptedModel(lambda call: str(call.values[0]).split(",")[0] in good, name="large")
    with bf.connect(["smollm2", large], cache=None, accuracy=0.7) as session:
        session.from_pydict({"text": texts}, name="t")
        frame = session.sql("SELECT text, llm_filter('Is this praise?', text) AS f FROM t")
        rows = frame.to_pylist()
        (outcome,) = frame.trace.cascades.values()
        spent = frame.trace.by_model
    assert sum(row["f"] == (row["text"].split(",")[0] in good) for row in rows) / len(rows) >= 0.7
    assert outcome.decided + len(large.calls) == len(texts)
    assert outcome.decided > 0
    assert spent[outcome.small].values == len(texts)
