"""Models one after the other: who is asked what, who answers, and what is told of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Body, Reply, closed_port, said, serving

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import Values
from blendfusion.models.registry.model_names import model_for
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.models.wrappers.failover import FallbackModel
from blendfusion.types import Answer, Task

TASK = Task("llm_int", "How many?", bf.Constraint("integer"), ("x",))
TABLE = pa.table({"id": [1, 2, 3, 4], "x": ["a", "bb", "ccc", "dddd"]})


class Down(bf.ScriptedModel):
    """A model that fails as a whole after so many values."""

    def __init__(self, after: int, error: type[bf.ModelError] = bf.ModelFailed) -> None:
        super().__init__(lambda call: 0, name="down")
        self.after = after
        self.error = error

    def answer_each(
        self, task: Task, values: Sequence[Values], told: Callable[[int, Answer], None]
    ) -> list[Answer]:
        left = self.after - len(self.calls)
        if left < len(values):
            super().answer_each(task, values[:left], told)
            raise self.error("it is gone")
        return super().answer_each(task, values, told)


def at_most(length: int, name: str) -> bf.ScriptedModel:
    """The length of a value, up to so much."""
    return bf.ScriptedModel(
        lambda call: n if (n := len(call.values[0] or "")) <= length else None, name=name
    )


def asked(model: bf.ScriptedModel) -> list[str | None]:
    return [call.values[0] for call in model.calls]


def connected(*models: bf.Model, **options: object) -> bf.Session:
    session = bf.connect(list(models), progress="off", show_values="on", **options)
    session.from_arrow(TABLE, name="t")
    return session


YES = Reply('{"answer": true}')


@pytest.fixture
def fruits(tmp_path: Path) -> Path:
    path = tmp_path / "fruits.csv"
    path.write_text("name\nfig\npear\n", encoding="utf-8")
    return path


SQL = "SELECT id, llm_int('How many?', x) AS n FROM t ORDER BY id"


def test_what_one_model_fails_at_the_next_is_asked() -> None:
    one, two, three = at_most(1, "one"), at_most(3, "two"), at_most(9, "three")
    frame = connected(one, two, three).sql(SQL)
    assert frame.to_pydict()["n"] == [1, 2, 3, 4]
    assert asked(one) == ["a", "bb", "ccc", "dddd"]
    assert asked(two) == ["bb", "ccc", "dddd"]
    assert asked(three) == ["dddd"]
    assert frame.trace.calls["model"].to_pylist() == ["one", "two", "two", "three"]
    assert frame.trace.errors.num_rows == 0
    assert frame.trace.usage.values == 4
    assert frame.trace.usage.failed == 0
    by_model = frame.trace.by_model
    assert {name: (u.values, u.failed) for name, u in by_model.items()} == {
        "one": (4, 3),
        "two": (3, 1),
        "three": (1, 0),
    }
    total = frame.trace.usage.prompt_tokens
    assert sum(u.prompt_tokens for u in by_model.values()) == total


def test_a_value_that_no_model_answers_fails_once_with_what_each_said() -> None:
    frame = connected(at_most(1, "one"), at_most(2, "two")).sql(SQL)
    with pytest.warns(bf.AnswerWarning, match="^2 values got no valid answer"):
        assert frame.to_pydict()["n"] == [1, 2, None, None]
    assert frame.trace.errors["values"].to_pylist() == [["ccc"], ["dddd"]]
    assert set(frame.trace.errors["error"].to_pylist()) == {"one: no answer; two: no answer"}


def test_the_error_of_three_models_names_each_once() -> None:
    session = connected(at_most(0, "one"), at_most(0, "two"), at_most(1, "three"))
    kept = "SELECT llm_int('How many?', x, on_error => 'keep')['error'] AS e FROM t WHERE id < 3"
    said = "one: no answer; two: no answer; three: no answer"
    assert session.sql(f"{kept} ORDER BY id").to_pydict()["e"] == [None, said]


def test_the_error_is_raised_or_kept_where_no_model_answers() -> None:
    session = connected(at_most(1, "one"), at_most(3, "two"))
    with pytest.raises(bf.AnswerError, match="'dddd': one: no answer; two: no answer"):
        session.sql("SELECT llm_int('How many?', x, on_error => 'raise') FROM t").collect()
    kept = "SELECT llm_int('How many?', x, on_error => 'keep')['error'] AS e FROM t ORDER BY id"
    assert session.sql(kept).to_pydict()["e"] == [
        None,
        None,
        None,
        "one: no answer; two: no answer",
    ]


def test_each_answer_is_stored_as_of_the_model_that_gave_it() -> None:
    store = MemoryStore()
    one, two = at_most(1, "one"), at_most(9, "two")
    session = connected(one, two, cache=store)
    session.sql(SQL).collect()
    values = [("a",), ("bb",), ("ccc",), ("dddd",)]
    assert list(store.get_many(one.info.fingerprint, TASK, values)) == [("a",)]
    assert set(store.get_many(two.info.fingerprint, TASK, values)) == set(values[1:])
    assert all(not a.model for a in store.get_many(two.info.fingerprint, TASK, values).values())
    again = session.sql(SQL)
    assert again.to_pydict()["n"] == [1, 2, 3, 4]
    # What the first failed at it is asked again, as failures are not stored; the second is not.
    assert (len(one.calls), len(two.calls)) == (7, 3)
    assert again.trace.calls["model"].to_pylist() == ["one", "two", "two", "two"]
    assert again.trace.by_model["two"].cached == 3


def test_stored_answers_of_the_next_model_do_not_come_before_the_first() -> None:
    store = MemoryStore()
    one, two = at_most(9, "one"), bf.ScriptedModel(lambda call: 0, name="two")
    connected(two, cache=store).sql(SQL).collect()
    assert connected(one, two, cache=store).sql(SQL).to_pydict()["n"] == [1, 2, 3, 4]


@pytest.mark.parametrize("error", [bf.ModelFailed, bf.ModelNotFound])
def test_a_model_that_fails_as_a_whole_is_left_out_for_the_run(error: type[bf.ModelError]) -> None:
    down, two = Down(2, error), at_most(9, "two")
    session = connected(down, two)
    frame = session.sql(SQL)
    with pytest.warns(bf.ModelWarning, match="down: 'it is gone'"):
        assert frame.to_pydict()["n"] == [0, 0, 3, 4]
    assert asked(two) == ["ccc", "dddd"]
    assert frame.trace.calls["model"].to_pylist() == ["down", "down", "two", "two"]
    down.after = 10
    session.clear_cache()
    assert session.sql(SQL).to_pydict()["n"] == [0, 0, 0, 0]


def test_a_model_that_cannot_be_reached_is_left_out_before_any_value() -> None:
    class Unreachable(bf.ScriptedModel):
        def look(self) -> None:
            raise bf.ModelFailed("no server answers")

        @property
        def abilities(self) -> Abilities:
            return replace(super().abilities, check=self.look)

    gone, two = Unreachable(lambda call: 0, name="gone"), at_most(9, "two")
    frame = connected(gone, two).sql(SQL)
    with pytest.warns(bf.ModelWarning, match="gone: no server answers"):
        assert frame.to_pydict()["n"] == [1, 2, 3, 4]
    assert gone.calls == []


def test_a_next_model_that_is_gone_leaves_the_failures_of_the_first() -> None:
    frame = connected(at_most(2, "one"), Down(0)).sql(SQL)
    with pytest.warns() as told:
        assert frame.to_pydict()["n"] == [1, 2, None, None]
    assert {w.category for w in told} == {bf.AnswerWarning, bf.ModelWarning}
    assert set(frame.trace.errors["error"].to_pylist()) == {"one: no answer; down: 'it is gone'"}


def test_each_model_that_is_gone_is_told_once() -> None:
    frame = connected(at_most(2, "one"), Down(0), Down(0)).sql(SQL)
    with pytest.warns() as told:
        frame.collect()
    (outages,) = [str(w.message) for w in told if w.category is bf.ModelWarning]
    assert outages == "Left out, as they failed as a whole: down: 'it is gone'; down: 'it is gone'"


def test_no_model_left_is_an_error_that_names_all() -> None:
    session = connected(Down(1), Down(0), Down(0))
    with pytest.raises(bf.ModelFailed) as raised:
        session.sql(SQL).collect()
    assert raised.value.message == (
        "no model is left. down: 'it is gone'; down: 'it is gone'; down: 'it is gone'"
    )


@pytest.mark.parametrize("planner", [True, False])
def test_groups_go_to_the_next_model_too(planner: bool) -> None:
    one = bf.ScriptedModel(lambda call: None, name="one")
    two = bf.ScriptedModel(lambda call: "|".join(map(str, call.values)), name="two")
    frame = connected(one, two, planner=planner).sql("SELECT llm_qa('Which?', x) AS w FROM t")
    assert frame.to_pydict()["w"] == ["a|bb|ccc|dddd"]


def test_explain_names_the_models_in_order() -> None:
    one, two = at_most(1, "one"), at_most(9, "two")
    frame = connected(one, two).sql(SQL)
    assert frame.explain_text().splitlines()[-1] == (
        "Models: one, two; each is asked what those before it fail at"
    )
    counted = frame.explain_text(analyze=True).splitlines()[-2:]
    assert [line.split(",")[0] for line in counted] == [
        "Asked of one: 4 values asked",
        "Asked of two: 3 values asked",
    ]


def test_a_cost_is_that_of_the_models_that_were_asked() -> None:
    prices = {
        "one": bf.Price(prompt=1.0, completion=0),
        "two": bf.Price(prompt=100.0, completion=0),
    }
    session = bf.connect([at_most(1, "one"), at_most(9, "two")], prices=prices, progress="off")
    session.from_arrow(TABLE, name="t")
    frame = session.sql(SQL)
    frame.collect()
    spent = {name: usage.prompt_tokens for name, usage in frame.trace.by_model.items()}
    assert frame.trace.cost == pytest.approx((spent["one"] + 100 * spent["two"]) / 1e6)
    limited = bf.connect(
        [at_most(1, "one"), at_most(9, "three")], prices=prices, budget=bf.Budget(cost=1.0)
    )
    limited.from_arrow(TABLE, name="t")
    with pytest.raises(bf.OptionError, match="the model 'three'"):
        limited.sql(SQL).collect()


def test_servers_stand_in_for_each_other(fruits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def picky(body: Body) -> Reply:
        return Reply(status=400, error="I do not speak of this.") if "pear" in said(body) else YES

    query = "SELECT name FROM fruits WHERE llm_filter('Is it sweet?', name) ORDER BY name"
    table = f"fruits={fruits}"
    with serving(picky, models=("one",)) as server, serving(lambda body: YES) as other:
        models = ["--model", f"openai:one@{server.url}", "--model", f"openai:tiny@{other.url}"]
        assert (
            main(["query", query, "--table", table, "--cache", "off", "--format", "csv", *models])
            == 0
        )
        assert capsys.readouterr().out.replace('"', "").split() == ["name", "fig", "pear"]
        assert ["pear" in said(body) for body in other.bodies] == [True]
        gone = ["--model", f"openai:one@http://127.0.0.1:{closed_port()}/v1", *models[2:]]
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            assert (
                main(["query", query, "--table", table, "--cache", "off", "--format", "csv", *gone])
                == 0
            )
        shown = capsys.readouterr()
        assert shown.out.replace('"', "").split() == ["name", "fig", "pear"]
        assert "warning: Left out, as they failed as a whole: openai:one@" in shown.err


def test_models_are_looked_up_when_connecting(tmp_path: Path) -> None:
    with pytest.raises(bf.ModelNotFound, match=r"no weights at .*missing\.gguf"):
        bf.connect([at_most(1, "one"), str(tmp_path / "missing.gguf")])
    with pytest.raises(bf.ModelNotFound, match="the list of models is empty"):
        bf.connect([])


def test_a_list_of_one_is_that_model() -> None:
    one = at_most(9, "one")
    model = model_for([one], bf.Options(), MemoryStore())
    assert type(model) is CachedModel
    assert model.inner is one


WORDS = ("a", "bb", "ccc", "dddd", "eeeee")


@settings(max_examples=40)
@given(
    failing=st.lists(st.sets(st.sampled_from(WORDS)), min_size=1, max_size=4),
    gone_after=st.lists(st.none() | st.integers(0, 4), min_size=4, max_size=4),
    values=st.lists(st.sampled_from(WORDS), min_size=1, max_size=12),
)
def test_every_value_has_the_answer_of_the_first_model_that_gives_one(
    failing: list[set[str]], gone_after: list[int | None], values: list[str]
) -> None:
    models = []
    for number, (fails, after) in enumerate(zip(failing, gone_after, strict=False)):
        model = Down(99 if after is None else after)
        model._fn = lambda call, n=number, f=fails: None if call.values[0] in f else n
        models.append(model)
    chain = model_for(models, bf.Options(), MemoryStore())
    distinct = list(dict.fromkeys(values))
    expected: dict[str, int | None] = dict.fromkeys(distinct)
    waiting, alive = distinct, False
    for number, (model, fails) in enumerate(zip(models, failing, strict=True)):
        reached = waiting[: model.after] if model.after < len(waiting) else waiting
        alive = alive or (reached == waiting and bool(waiting))
        expected |= {word: number for word in reached if word not in fails}
        waiting = [word for word in waiting if expected[word] is None]
        if not waiting:
            break
    try:
        answers = chain.answer(TASK, [(word,) for word in values])
    except bf.ModelFailed:
        assert not alive
        assert waiting
        return
    said = [None if answer.text is None else int(answer.text) for answer in answers]
    assert said == [expected[word] for word in values]
    assert all((answer.error is None) == (answer.text is not None) for answer in answers)


def test_equal_values_of_a_batch_are_asked_once_of_each() -> None:
    one, two = at_most(1, "one"), at_most(9, "two")
    model = FallbackModel(one, MemoryStore(), CachedModel(two, MemoryStore()))
    model.check()
    answers = model.answer(TASK, [("bb",), ("a",), ("bb",)])
    assert [a.text for a in answers] == ["2", "1", "2"]
    assert (asked(one), asked(two)) == (["bb", "a"], ["bb"])
