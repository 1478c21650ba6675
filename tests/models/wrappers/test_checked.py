"""A model that somebody else wrote gives a right answer or a failed value, never a wrong one."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Sequence

import pytest

import blendfusion as bf
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import OnAnswer, Values
from blendfusion.models.wrappers.answer_check import CheckedModel
from blendfusion.types import Answer, Constraint, ModelInfo, Task, Usage


class Foreign:
    """A model of another package: it answers whatever ``answers`` says."""

    def __init__(self, answers: object) -> None:
        self._answers = answers
        self.asked = 0

    info = ModelInfo("foreign", "foreign:1", 4096)
    batch_size = 16

    def count_tokens(self, text: str) -> int:
        return len(text)

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        self.asked += len(values)
        made = self._answers
        return made(task, values) if callable(made) else [made for _ in values]  # type: ignore[misc]

    def close(self) -> None:
        pass


def run(model: object, call: str, show_values: str = "auto") -> tuple[list[object], str]:
    options = {"cache": None, "show_values": show_values}
    with warnings.catch_warnings(record=True) as told, bf.connect(model, **options) as session:  # type: ignore[arg-type]
        warnings.simplefilter("always")
        session.from_pydict({"x": ["a", "b"]}, name="t")
        rows = session.sql(f"SELECT {call} AS y FROM t ORDER BY x").to_pydict()["y"]
    return rows, " ".join(str(w.message) for w in told)


CALLS = [
    "llm_classify(x, ['a', 'b'])",
    "llm_map('q', x, regex => '[0-9]+')",
    "llm_bool('q', x)",
    "llm_filter('q', x)",
    "llm_int('q', x)",
    "llm_float('q', x)",
    "llm_date('q', x)",
    "llm_map('q', x, returns => 'timestamp')",
    "llm_list('q', x)",
    "llm_map('q', x, returns => 'list[int]')",
    "llm_extract(x, 'name TEXT, year INT')",
    "llm_score('q', x)",
]


@pytest.mark.parametrize("call", CALLS)
def test_an_answer_outside_of_the_constraint_is_a_failed_value(call: str) -> None:
    rows, told = run(Foreign(Answer("WRONG")), call)
    assert rows == [None, None]
    assert "2 values got no valid answer" in told


@pytest.mark.parametrize(
    "given",
    [
        "true",
        None,
        7,
        Answer(7),  # type: ignore[arg-type]
        Answer("maybe"),
        lambda task, values: [Answer("true")],
        lambda task, values: [Answer("true")] * 3,
        lambda task, values: [],
        lambda task, values: None,
        lambda task, values: "true",
        lambda task, values: {0: Answer("true"), 1: Answer("true")},
    ],
)
def test_whatever_a_model_returns_no_query_ends(given: object) -> None:
    rows, told = run(Foreign(given), "llm_bool('q', x)")
    assert rows == [None, None]
    assert "no valid answer" in told


def test_right_answers_go_through_unchanged() -> None:
    usage = Usage(values=1, calls=1, completion_tokens=3)

    def right(task: Task, values: Sequence[Values]) -> list[Answer]:
        return [Answer("true", logprob=-0.5, usage=usage), Answer.failed("no idea")]

    model = CheckedModel(Foreign(right))
    first, second = model.answer(Task("llm_bool", "q", Constraint("boolean")), [("a",), ("b",)])
    assert (first.text, first.logprob, first.usage) == ("true", -0.5, usage)
    assert second.error == "the model says 'no idea'"


def test_the_usage_of_a_wrong_answer_counts() -> None:
    usage = Usage(values=1, calls=1, completion_tokens=3)
    model = CheckedModel(Foreign(Answer("WRONG", usage=usage)))
    (answer,) = model.answer(Task("llm_bool", "q", Constraint("boolean")), [("a",)])
    assert answer.error == "answered 'WRONG', which is not boolean"
    assert answer.usage.completion_tokens == 3


def test_answers_before_an_error_are_kept() -> None:
    class StreamingModel(Foreign):
        def answer_each(self, task: Task, values: Sequence[Values], told: OnAnswer) -> list[Answer]:
            told(0, Answer("true"))
            told(0, Answer("false"))  # a second time: not heard
            told(9, Answer("true"))  # no such request
            raise bf.ModelFailed("broke")

    heard: dict[int, Answer] = {}
    model = CheckedModel(StreamingModel(None))
    with pytest.raises(bf.ModelFailed):
        model.answer_each(
            Task("llm_bool", "q", Constraint("boolean")), [("a",), ("b",)], heard.__setitem__
        )
    assert {place: answer.text for place, answer in heard.items()} == {0: "true"}


def test_what_a_model_says_of_itself_goes_through() -> None:
    class Seeing(Foreign):
        abilities = Abilities(sees_images=True, at_once=4)

    model = CheckedModel(Seeing(None))
    assert model.abilities == Abilities(sees_images=True, at_once=4)
    assert CheckedModel(Foreign(None)).abilities == Abilities()


def test_a_misspelt_ability_is_an_error() -> None:
    with pytest.raises(TypeError, match="sees_image"):
        Abilities(sees_image=True)  # type: ignore[call-arg]


def test_abilities_of_another_type_are_an_error() -> None:
    class Wrong(Foreign):
        abilities = ("sees_images",)

    with pytest.raises(bf.ModelFailed, match="`abilities` are a tuple"):
        run(Wrong(Answer("true")), "llm_bool('q', x)")


@pytest.mark.parametrize("error", [ValueError, KeyError, TypeError, RecursionError])
def test_an_exception_of_a_model_is_a_failure_of_the_model(error: type[Exception]) -> None:
    def broken(task: Task, values: Sequence[Values]) -> list[Answer]:
        raise error("inside")

    with pytest.raises(bf.ModelFailed, match=rf"foreign raised {error.__name__}: .*inside"):
        run(Foreign(broken), "llm_bool('q', x)")


SECRET = "secret-4711"
PROBLEMS: list[Exception] = [
    ValueError(f"row {SECRET} is bad"),
    KeyError(SECRET),
    bf.ModelFailed(f"cannot read {SECRET}", hint=f"Leave out {SECRET}."),
    bf.ModelNotFound(f"no table for {SECRET}'s row: it's \"{SECRET}\""),
]
"""What a foreign model may raise, with a value in it."""


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_what_a_foreign_model_raises_shows_no_value_with_values_off(problem: Exception) -> None:
    def broken(task: Task, values: Sequence[Values]) -> list[Answer]:
        raise problem

    with pytest.raises(bf.ModelError) as shown:
        run(Foreign(broken), "llm_bool('q', x)", "on")
    assert SECRET in str(shown.value)
    with pytest.raises(bf.ModelError) as failed:
        run(Foreign(broken), "llm_bool('q', x)", "off")
    error = failed.value
    assert SECRET not in "".join(traceback.format_exception(error)) + repr(error)
    assert type(problem).__name__ in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_outages_and_failures_of_foreign_models_show_no_value_with_values_off(
    problem: Exception,
) -> None:
    def broken(task: Task, values: Sequence[Values]) -> list[Answer]:
        raise problem

    failing = Foreign(Answer.failed(f"cannot read {SECRET}'s row, it's {SECRET}"))
    for models in ([Foreign(broken), failing], [failing, Foreign(broken)]):
        for show, seen in (("on", True), ("off", False)):
            rows, told = run(models, "llm_bool('q', x)", show)
            assert rows == [None, None]
            assert "Left out" in told
            assert "no valid answer" in told
            assert (SECRET in told) == seen
    with pytest.raises(bf.ModelFailed, match="no model is left") as failed:
        run([Foreign(broken), Foreign(broken)], "llm_bool('q', x)", "off")
    assert SECRET not in "".join(traceback.format_exception(failed.value))


@pytest.mark.parametrize("size", [0, -1, "8", None, True])
def test_a_batch_of_no_size_is_an_error(size: object) -> None:
    model = Foreign(Answer("true"))
    model.batch_size = size  # type: ignore[assignment]
    with pytest.raises(bf.ModelFailed, match="batch_size"):
        run(model, "llm_bool('q', x)")


@pytest.mark.parametrize("finish", ["complete", "decided"])
def test_an_answer_that_ended_early_is_checked_too(finish: str) -> None:
    rows, told = run(Foreign(Answer("WRONG", finish)), "llm_int('q', x)")  # type: ignore[arg-type]
    assert rows == [None, None]
    assert "2 values got no valid answer" in told


@pytest.mark.parametrize("logprob", [0.5, float("nan"), float("-inf"), "sure"])
def test_a_probability_that_is_none_is_left_out(logprob: object) -> None:
    model = CheckedModel(Foreign(Answer("true", logprob=logprob)))  # type: ignore[arg-type]
    (answer,) = model.answer(Task("llm_bool", "q", Constraint("boolean")), [("a",)])
    assert (answer.text, answer.logprob) == ("true", None)


def test_usage_of_another_type_is_left_out() -> None:
    model = CheckedModel(Foreign(Answer("true", usage=None)))  # type: ignore[arg-type]
    (answer,) = model.answer(Task("llm_bool", "q", Constraint("boolean")), [("a",)])
    assert answer == Answer("true")


def test_models_of_this_package_need_no_check() -> None:
    scripted = bf.ScriptedModel(lambda call: True)
    with bf.connect(scripted) as session:
        assert session.model.inner is scripted
