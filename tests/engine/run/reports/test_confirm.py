"""A query that is expected to ask much runs after a yes on the terminal, and not otherwise."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest
from datafusion import SessionContext
from scripts import hashed

import blendfusion as bf

TEXTS = [f"text {i:03}" for i in range(100)]
QUERY = "SELECT x FROM t WHERE llm_filter('holds 7', x)"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Answered = Callable[[str], Terminal]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Answered:
    """Makes standard input and error a terminal at which somebody types a text; gives what is
    shown."""

    def typing(text: str) -> Terminal:
        shown = Terminal()
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr(sys, "stderr", shown)
        return shown

    return typing


def connected(model: bf.ScriptedModel, above: int, **options: object) -> bf.Session:
    session = bf.connect(model, cache=None, progress="off", confirm_above=above, **options)  # type: ignore[arg-type]
    session.from_pydict({"x": TEXTS}, name="t")
    return session


def test_a_query_that_asks_no_more_than_the_limit_is_not_asked_about(terminal: Answered) -> None:
    shown = terminal("")
    model = bf.ScriptedModel(hashed)
    connected(model, 100).sql(QUERY).collect()
    assert len(model.calls) == 100
    assert shown.getvalue() == ""


def test_yes_runs_the_query(terminal: Answered) -> None:
    shown = terminal("y\n")
    model = bf.ScriptedModel(hashed)
    price = bf.Price(prompt=1.0, completion=1.0)
    connected(model, 99, prices=price).sql(QUERY).collect()
    assert len(model.calls) == 100
    assert "Expected: 100 values, 400 prompt tokens" in shown.getvalue()
    assert ", cost 0.0005" in shown.getvalue()
    assert "Ask the model?" in shown.getvalue()


@pytest.mark.parametrize("typed", ["n\n", "\n", ""])
def test_anything_else_does_not(terminal: Answered, typed: str) -> None:
    terminal(typed)
    model = bf.ScriptedModel(hashed)
    frame = connected(model, 99).sql(QUERY)
    with pytest.raises(bf.NotConfirmed, match="was not confirmed: no value was asked"):
        frame.collect()
    assert model.calls == []


def test_without_a_terminal_it_is_an_error() -> None:
    model = bf.ScriptedModel(hashed)
    with pytest.raises(bf.NotConfirmed) as raised:
        connected(model, 99).sql(QUERY).collect()
    assert raised.value.message.startswith(
        "confirm_above=99 requires a yes before this query, and there is no terminal. "
        "Expected: 100 values, "
    )
    assert raised.value.hint == (
        "Raise confirm_above, or set it to 0 and limit the spending: budget=bf.Budget(…)."
    )
    assert model.calls == []


def test_what_the_cache_answers_is_not_confirmed() -> None:
    session = connected(bf.ScriptedModel(hashed), 0)
    session.sql(QUERY).collect()
    session.sql("SET blendfusion.confirm_above = 1")
    session.sql(QUERY).collect()


def test_every_run_is_confirmed_by_itself(terminal: Answered) -> None:
    model = bf.ScriptedModel(hashed)
    frame = connected(model, 10).sql(QUERY)
    terminal("n\n")
    with pytest.raises(bf.NotConfirmed):
        frame.show()
    terminal("y\n")
    frame.limit(3).collect()


def test_an_unknown_number_of_values_is_confirmed(terminal: Answered) -> None:
    terminal("n\n")
    model = bf.ScriptedModel(hashed)
    session = connected(model, 1_000)
    with pytest.raises(bf.NotConfirmed):
        session.sql("SELECT unnest(llm_list('words', x)) AS word FROM t").collect()
    assert model.calls == []


def test_an_update_is_confirmed_by_its_number_of_values(terminal: Answered) -> None:
    terminal("n\n")
    model = bf.ScriptedModel(hashed)
    update = "UPDATE t SET x = 'y' WHERE llm_filter('holds 7', x)"
    with pytest.raises(bf.NotConfirmed):
        connected(model, 99).sql(update).collect()
    assert model.calls == []
    connected(model, 100).sql(update).collect()
    assert len(model.calls) == 100


def test_a_created_table_is_confirmed_by_its_number_of_values(terminal: Answered) -> None:
    terminal("n\n")
    model = bf.ScriptedModel(hashed)
    with pytest.raises(bf.NotConfirmed):
        connected(model, 99).sql(f"CREATE TABLE made AS {QUERY}")
    assert model.calls == []
    connected(model, 100).sql(f"CREATE TABLE made AS {QUERY}")
    assert len(model.calls) == 100


def test_calls_that_options_need_are_expected_too() -> None:
    model = bf.ScriptedModel(hashed)
    session = connected(model, 99)
    session.from_pydict({"y": ["one"]}, name="u")
    frame = session.sql(f"SELECT llm_map('Which?', y, options => ({QUERY})) FROM u")
    with pytest.raises(bf.NotConfirmed, match="Expected: about 100 values"):
        frame.collect()
    assert model.calls == []


def test_registered_functions_cannot_be_confirmed() -> None:
    with pytest.raises(bf.OptionError, match="confirm_above needs a session"):
        bf.register(SessionContext(), bf.ScriptedModel(hashed), cache=None, confirm_above=1)


def test_the_number_is_whole() -> None:
    with pytest.raises(bf.OptionError, match="confirm_above is a whole number, at least 0"):
        bf.connect(bf.ScriptedModel(hashed), cache=None, confirm_above=-1)
