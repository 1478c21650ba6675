"""The scripted model: canonical text of Python values, refusals, exceptions, the list of calls."""

from __future__ import annotations

import datetime
import threading
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.prompts.canonical import Value, canonical
from blendfusion.models.protocol.model import Model
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.types import Constraint, ConstraintKind, Request, Task

DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12)


def answer_of(value: Value | None, constraint: Constraint) -> str | None:
    task = Task("llm_map", "What?", constraint)
    return ScriptedModel(lambda call: value).answer(task, [("a",)])[0].text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, "boolean", "true"),
        (False, "boolean", "false"),
        ("true", "boolean", "true"),
        (3, "integer", "3"),
        (3.0, "integer", "3"),
        (-0.0, "number", "0"),
        (Decimal("1.50"), "number", "1.5"),
        (0.1 + 0.2, "number", "0.3"),
        (12, "number", "12"),
        (DAY, "date", "2024-02-29"),
        (datetime.datetime(2024, 2, 29), "date", "2024-02-29"),
        (NOON, "timestamp", "2024-02-29T12:00:00"),
        (DAY, "timestamp", "2024-02-29T00:00:00"),
        ("two words", "text", "two words"),
        (7, "text", "7"),
    ],
)
def test_a_value_becomes_its_canonical_text(value: Value, kind: ConstraintKind, text: str) -> None:
    assert answer_of(value, Constraint(kind)) == text


@pytest.mark.parametrize(
    ("value", "item", "text"),
    [
        (["a", 'b "c"'], "text", '["a", "b \\"c\\""]'),
        ([1, 2.0], "integer", "[1, 2]"),
        ([0.5], "number", "[0.5]"),
        ([True], "boolean", '["true"]'),
        ([DAY], "date", '["2024-02-29"]'),
        ([], "text", "[]"),
    ],
)
def test_a_list_becomes_json(value: list[Value], item: ConstraintKind, text: str) -> None:
    assert answer_of(value, Constraint("list", item=Constraint(item))) == text


@pytest.mark.parametrize(
    ("value", "constraint"),
    [
        (1, Constraint("boolean")),
        (True, Constraint("integer")),
        (3.5, Constraint("integer")),
        ("three", Constraint("integer")),
        (float("nan"), Constraint("number")),
        (float("inf"), Constraint("number")),
        (NOON, Constraint("date")),
        ("2024-02-31", Constraint("date")),
        ("green", Constraint("choice", options=("red", "blue"))),
        ("abc", Constraint("regex", pattern="[0-9]+")),
        (["x"], Constraint("list", item=Constraint("integer"))),
        ("[", Constraint("list")),
    ],
    ids=str,
)
def test_a_value_outside_the_constraint_is_refused_not_coerced(
    value: Value, constraint: Constraint
) -> None:
    answer = ScriptedModel(lambda call: value).answer(Task("f", "?", constraint), [("a",)])[0]
    assert answer.text is None
    assert answer.finish == "error"
    assert str(constraint) in str(answer.error)
    assert answer.usage.failed == 1


def test_none_is_no_answer() -> None:
    answers = ScriptedModel(lambda call: None).answer(Task("f", "?"), [("a",)])
    assert answers[0].error == "no answer"


def test_model_failed_fails_one_value_and_other_exceptions_propagate() -> None:
    def script(call: Request) -> str:
        if call.values == ("bad",):
            raise ModelFailed("out of order")
        if call.values == ("bug",):
            raise ZeroDivisionError
        return "fine"

    model = ScriptedModel(script)
    answers = model.answer(Task("f", "?"), [("good",), ("bad",), ("good",)])
    assert [answer.error for answer in answers] == [
        None,
        "the function says 'out of order'",
        None,
    ]
    with pytest.raises(ZeroDivisionError):
        model.answer(Task("f", "?"), [("bug",)])
    assert [call.values for call in model.calls] == [("good",), ("bad",), ("good",), ("bug",)]


def test_it_is_a_model_with_a_fingerprint_of_its_own() -> None:
    def script(call: Request) -> str:
        return "x"

    one, other = ScriptedModel(script), ScriptedModel(script, name="other", window=10, batch_size=3)
    assert isinstance(one, Model)
    assert one.info.fingerprint != other.info.fingerprint
    assert (other.info.name, other.info.window, other.batch_size) == ("other", 10, 3)
    one.close()
    one.close()
    assert [one.count_tokens(text) for text in ("", "abcd", "abcde")] == [0, 1, 2]


def test_the_usage_of_a_batch_is_the_sum_of_its_answers() -> None:
    model = ScriptedModel(lambda call: call.values[0])
    answers = model.answer(Task("f", "four"), [("abcd", None), ("abcdefgh", "ij")])
    total = answers[0].usage + answers[1].usage
    assert (total.values, total.calls, total.prompt_tokens, total.completion_tokens) == (2, 1, 6, 3)


def test_threads_may_share_it() -> None:
    model = ScriptedModel(lambda call: "x")
    task = Task("f", "?")
    rows = [(str(number),) for number in range(500)]
    threads = [threading.Thread(target=model.answer, args=(task, rows)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(model.calls) == 2000


@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_every_integer_of_eighteen_digits_holds(value: int) -> None:
    assert holds(Constraint("integer"), canonical(value, Constraint("integer")))


@given(st.floats(-(10**14), 10**14) | st.decimals(-(10**14), 10**14, places=3))
def test_every_number_of_ordinary_size_holds(value: float | Decimal) -> None:
    text = canonical(value, Constraint("number"))
    assert holds(Constraint("number"), text)
    assert abs(float(text) - float(value)) <= 1e-6 * max(1, abs(float(value)))


@given(st.dates())
def test_every_day_of_every_year_holds(value: datetime.date) -> None:
    assert holds(Constraint("date"), canonical(value, Constraint("date")))


@given(st.lists(st.text()))
def test_every_list_of_texts_holds(value: list[str]) -> None:
    constraint = Constraint("list", item=Constraint())
    assert holds(constraint, canonical(value, constraint))


@pytest.mark.parametrize(
    ("value", "constraint"),
    [
        ("cut \ud83d", Constraint()),
        (["fine", "cut \ud83d"], Constraint("list", item=Constraint("text"))),
    ],
)
def test_half_an_emoji_is_no_text(value: Value, constraint: Constraint) -> None:
    """No column holds it: it fails its value, and not the query."""
    assert answer_of(value, constraint) is None
