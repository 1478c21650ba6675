"""What holds of every store, and of the model around a model that keeps answers in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from stores import KINDS, opened, place

from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import Values
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.models.stores.memory import AnswerStore, MemoryStore
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, Comparison, Constraint, Task, Usage

TASK = Task("llm_int", "How many?", Constraint("integer"), ("x",))
OTHER = replace(TASK, question="How long?")
ONE = {("a",): Answer("1", logprob=-0.25), ("b", None): Answer("2", finish="length")}


@pytest.fixture(params=["memory", *KINDS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnswerStore]:
    kind = request.param
    made = MemoryStore() if kind == "memory" else opened(place(kind, tmp_path))
    yield made
    made.close()


def bare(answers: dict[Values, Answer]) -> dict[Values, Answer]:
    return {v: a.with_usage(Usage()) for v, a in answers.items()}


def test_it_has_the_methods_of_a_store(store: AnswerStore) -> None:
    assert isinstance(store, AnswerStore)


def test_what_was_kept_is_found_and_nothing_else(store: AnswerStore) -> None:
    assert store.get_many("m", TASK, [("a",)]) == {}
    store.store_many("m", TASK, ONE)
    asked: list[Values] = [("a",), ("b",), ("b", None), (None, "b"), ("a",)]
    assert bare(store.get_many("m", TASK, asked)) == ONE
    assert store.get_many("m", OTHER, asked) == {}
    assert store.get_many("n", TASK, asked) == {}
    assert store.get_many("m", TASK, []) == {}


@pytest.mark.parametrize("text", [None, "", "x" * 100_000, "a\0b", "東京 😀", '"\n\\', "NULL"])
def test_any_text_comes_back_as_it_was(store: AnswerStore, text: str | None) -> None:
    for answer in (Answer(text), Answer(text, "decided", float("-inf")), Answer(text, "length", 0)):
        store.clear()
        store.store_many("m", TASK, {("a",): answer})
        assert bare(store.get_many("m", TASK, [("a",)])) == {("a",): answer}


def test_more_values_than_one_statement_takes(store: AnswerStore) -> None:
    answers: dict[Values, Answer] = {(str(i),): Answer(str(i)) for i in range(12_001)}
    store.store_many("m", TASK, answers)
    assert bare(store.get_many("m", TASK, list(answers))) == answers
    assert store.stats().entries == 12_001


def test_earlier_answers_are_texts_of_the_task(store: AnswerStore) -> None:
    store.store_many("m", TASK, ONE | {("c",): Answer(None)})
    store.store_many("m", OTHER, {("a",): Answer("no")})
    assert sorted(store.earlier("m", TASK, 10)) == ["1", "2"]
    assert store.earlier("m", TASK, 1)[0] in ("1", "2")
    assert store.earlier("n", TASK, 10) == []


def test_forgetting_one_model_or_all(store: AnswerStore) -> None:
    for model in ("m", "n"):
        store.store_many(model, TASK, ONE)
    assert (store.stats().entries, store.stats().models) == (4, 2)
    store.clear("m")
    assert store.get_many("m", TASK, list(ONE)) == {}
    assert bare(store.get_many("n", TASK, list(ONE))) == ONE
    store.clear()
    assert (store.stats().entries, store.stats().models) == (0, 0)
    assert store.get_many("n", TASK, list(ONE)) == {}


def test_it_may_be_used_again_after_it_was_closed(store: AnswerStore) -> None:
    store.store_many("m", TASK, ONE)
    store.close()
    store.close()
    assert bare(store.get_many("m", TASK, list(ONE))) == ONE


# --- the model around a model --------------------------------------------------------------------


class Early:
    """A model that may end answers early: that of the value "d"."""

    abilities = Abilities(stops_early=True, fingerprint_lasts=True)

    def __init__(self) -> None:
        self.asked: list[tuple[Task, Values]] = []
        self._inner = ScriptedModel(lambda call: 7, fingerprint="early")
        self.info = self._inner.info
        self.batch_size = 8

    def count_tokens(self, text: str) -> int:
        return len(text)

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        self.asked += [(task, v) for v in values]
        return [
            Answer("1", "decided") if task.constraint.decides and v[0] == "d" else Answer("12")
            for v in values
        ]

    def close(self) -> None:
        pass


def test_an_answer_that_ended_early_is_for_its_comparisons_only(store: AnswerStore) -> None:
    compared = replace(TASK, constraint=Constraint("integer", decides=(Comparison(">", ("0",)),)))
    model = Early()
    cached = CachedModel(model, store)
    assert [a.text for a in cached.answer(compared, [("d",), ("w",)])] == ["1", "12"]
    assert cached.known_answers(TASK, [("d",), ("w",)]) == {
        ("w",): Answer("12", usage=Usage(cached=1)),
    }
    assert list(cached.known_answers(compared, [("w",), ("d",)])) == [("w",), ("d",)]
    assert sorted(cached.earlier(compared, 5)) == ["1", "12"]
    assert cached.earlier(TASK, 5) == ["12"]
    cached.answer(TASK, [("d",)])
    assert model.asked[2:] == [(TASK, ("d",))]
    assert cached.known_answers(compared, [("d",)])[("d",)].text == "12"


def test_equal_requests_are_asked_once_and_the_first_pays(store: AnswerStore) -> None:
    cached = CachedModel(ScriptedModel(lambda call: 3, fingerprint="three"), store)
    answers = cached.answer(TASK, [("a",), ("b",), ("a",)])
    assert [(a.usage.values, a.usage.cached) for a in answers] == [(1, 0), (1, 0), (0, 1)]
    again = cached.answer(TASK, [("a",)])
    assert again == [Answer("3", usage=Usage(cached=1))]


def test_failures_are_not_kept(store: AnswerStore) -> None:
    cached = CachedModel(ScriptedModel(lambda call: None, fingerprint="none"), store)
    assert cached.answer(TASK, [("a",)])[0].error == "no answer"
    assert store.stats().entries == 0
    assert cached.known_answers(TASK, [("a",)]) == {}


def test_forget_forgets_the_answers_of_the_model_alone(store: AnswerStore) -> None:
    one, two = (
        CachedModel(ScriptedModel(lambda call: 3, fingerprint=name), store) for name in "ab"
    )
    for cached in (one, two):
        cached.answer(TASK, [("a",)])
    one.forget()
    assert one.known_answers(TASK, [("a",)]) == {}
    assert len(two.known_answers(TASK, [("a",)])) == 1


# --- whose answers may lie in a file -------------------------------------------------------------


def doubled(answer: int) -> Callable[[object], int]:
    return lambda call: answer


def test_functions_that_nobody_vouches_for_never_meet_in_a_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.sqlite")
    for number in (1, 2):
        cached = CachedModel(ScriptedModel(doubled(number)), store)
        assert cached.answer(TASK, [("a",)])[0].text == str(number)
        assert cached.known_answers(TASK, [("a",)])[("a",)].text == str(number)
    assert not store.path.exists()


def test_functions_with_a_name_meet_there(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    for asked in (1, 0):
        store, model = SqliteStore(path), ScriptedModel(doubled(5), fingerprint="five")
        assert CachedModel(model, store).answer(TASK, [("a",)])[0].text == "5"
        assert len(model.calls) == asked
        store.close()


def test_a_model_of_the_users_own_keeps_its_answers_in_memory(tmp_path: Path) -> None:
    class Unsaid(Early):
        abilities = Abilities(stops_early=True)

    store = SqliteStore(tmp_path / "s.sqlite")
    cached = CachedModel(Unsaid(), store)
    cached.answer(TASK, [("a",)])
    assert len(cached.known_answers(TASK, [("a",)])) == 1
    assert not store.path.exists()
    memory = MemoryStore()
    assert CachedModel(Unsaid(), memory).store is memory
