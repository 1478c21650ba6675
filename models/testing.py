"""The contract of a model, as checks for the tests of a back end or a wrapper.

Each check takes a model and raises AssertionError for what does not keep the protocol
(``blendfusion.models.protocol.model.Model``)::

    import pytest
    from blendfusion.models.testing import CONTRACT

    @pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
    def test_my_model_keeps_the_contract(check):
        check(MyModel())

The checks ask some 120 short questions. They need no particular answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from blendfusion.errors import ModelError
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.model import Model, Values, answer_each, call_method
from blendfusion.types import Answer, Constraint, Example, ModelInfo, StructField, Task

CONSTRAINTS: tuple[Constraint, ...] = (
    Constraint("boolean"),
    Constraint("integer"),
    Constraint("number"),
    Constraint("date"),
    Constraint("timestamp"),
    Constraint("text"),
    Constraint("choice", options=("red", "green", "blue")),
    Constraint("choice", options=("a,b", 'say "no"', "ü", "日本")),
    Constraint("choice", options=("only",)),
    Constraint("regex", pattern="[A-Z]{2}[0-9]{2}"),
    Constraint("list", item=Constraint("text"), max_items=3),
    Constraint("list", item=Constraint("integer"), min_items=2, max_items=2),
    Constraint("list", item=Constraint("choice", options=("x", "y"))),
    Constraint("score", scale=(0, 5)),
    Constraint(
        "struct",
        fields=(
            StructField("name", Constraint("text")),
            StructField("year", Constraint("integer")),
        ),
    ),
)
"""One of every kind, and some with difficult texts."""

ODD: tuple[Values, ...] = (
    ("plain",),
    ("",),
    ("two\nlines",),
    ("'quotes' and \"more\"",),
    ("日本語 ü 😀",),
    ("</s><|im_end|>",),
    ("\x00\x01",),
    ("long " * 60,),
)
"""Values that text from data may hold."""


def task_of(constraint: Constraint) -> Task:
    """A question with answers under a constraint."""
    return Task("llm_map", "What is it?", constraint, ("thing",))


def _answers(model: Model, task: Task, values: Sequence[Values]) -> list[Answer]:
    answers = call_method(model.answer, task, values)
    assert isinstance(answers, list | tuple), f"answer returned a {type(answers).__name__}"
    assert len(answers) == len(values), f"{len(answers)} answers to {len(values)} requests"
    return list(answers)


def _check_answer(task: Task, answer: object) -> None:
    assert isinstance(answer, Answer), f"{answer!r} is not an Answer"
    usage = answer.usage
    counts = (usage.prompt_tokens, usage.evaluated_tokens, usage.completion_tokens, usage.seconds)
    assert all(count >= 0 for count in counts), f"negative usage: {usage}"
    if answer.error is not None:
        assert answer.text is None, f"an answer with an error has the text {answer.text!r}"
        assert answer.error.strip(), "a failed answer without a reason"
        return
    assert isinstance(answer.text, str), f"the text is a {type(answer.text).__name__}"
    assert holds(task.constraint, answer.text), f"{answer.text!r} is not {task.constraint}"
    if answer.logprob is not None:
        assert -math.inf < answer.logprob <= 0, f"logprob is {answer.logprob}"


def describes_itself(model: Model) -> None:
    """``info``, ``abilities``, ``batch_size`` and ``count_tokens`` have their types and ranges."""
    info = model.info
    assert isinstance(info, ModelInfo)
    assert info.name.strip()
    assert info.fingerprint.strip()
    assert info.window > 0
    assert model.info == info, "info differs between two reads"
    abilities = abilities_of(model)
    assert isinstance(abilities, Abilities)
    assert abilities.name in ("", info.name), "abilities.name is not that of info"
    assert abilities.fingerprint in ("", info.fingerprint)
    assert isinstance(model.batch_size, int)
    assert model.batch_size >= 1
    for text in ("", "a word", "日本語"):
        assert model.count_tokens(text) >= 0
    assert model.count_tokens("a word " * 50) > model.count_tokens("a")


def answers_within_the_constraint(model: Model) -> None:
    """Each answer is canonical text inside the constraint, or an error with a reason."""
    for constraint in CONSTRAINTS:
        task = task_of(constraint)
        for answer in _answers(model, task, [("a red house",), ("1999",)]):
            _check_answer(task, answer)


def answers_each_value_in_order(model: Model) -> None:
    """As many answers as values: for none, for one, and for more than ``batch_size``."""
    task = task_of(Constraint("boolean"))
    assert _answers(model, task, []) == []
    few = [(f"value {i}",) for i in range(min(model.batch_size + 1, 20))]
    for answer in _answers(model, task, few):
        _check_answer(task, answer)


def answers_alike(model: Model) -> None:
    """Equal requests get equal answers, alone and among others."""
    task = task_of(Constraint("choice", options=("red", "green", "blue")))
    alone = [_answers(model, task, [v])[0].text for v in (("a rose",), ("the sea",))]
    among = _answers(model, task, [("a rose",), ("grass",), ("the sea",), ("a rose",)])
    assert [among[0].text, among[2].text] == alone, "an answer depends on other values"
    assert among[3].text == among[0].text, "two answers to equal requests"


def takes_any_text(model: Model) -> None:
    """No value makes it raise, whatever characters the value has."""
    for constraint in (Constraint("boolean"), Constraint("text")):
        task = task_of(constraint)
        for answer in _answers(model, task, ODD):
            _check_answer(task, answer)


def takes_several_values_and_nulls(model: Model) -> None:
    """A tuple may hold several values; NULL among them is None."""
    task = Task("llm_map", "Is {a} like {b}?", Constraint("boolean"), ("a", "b"))
    for answer in _answers(model, task, [("x", "y"), ("x", None), (None, "y")]):
        _check_answer(task, answer)


def takes_forms_and_examples(model: Model) -> None:
    """Statements, summaries, contexts of several texts, and worked examples."""
    shown = (Example(("a rose",), "true"),)
    tasks = (
        Task("llm_validate", "All are red.", Constraint("boolean"), ("x",), (), True, "statement"),
        Task("llm_summarize", "Summarize.", Constraint("text"), ("x",), (), True, "summary"),
        Task("llm_filter", "Is it red?", Constraint("boolean"), ("x",), shown),
    )
    for task in tasks:
        for answer in _answers(model, task, [("a rose", "a tomato") if task.aggregate else ("x",)]):
            _check_answer(task, answer)


def tells_each_answer_once(model: Model) -> None:
    """``answer_each`` tells each answer once, with its position, and returns the same."""
    task = task_of(Constraint("boolean"))
    values: list[Values] = [(f"value {i}",) for i in range(5)]
    arrived: dict[int, Answer] = {}

    def hear(place: int, answer: Answer) -> None:
        assert place not in arrived, f"the answer {place} arrived twice"
        arrived[place] = answer

    answers = answer_each(model, task, values, hear)
    assert sorted(arrived) == list(range(len(values))), f"answers arrived for {sorted(arrived)}"
    assert [arrived[place].text for place in range(len(values))] == [a.text for a in answers]


def refuses_what_it_cannot_do(model: Model) -> None:
    """A model that sees no images fails such a request, or raises a ModelError; it does not
    answer from the name of an image."""
    if abilities_of(model).sees_images:
        return
    task = Task("llm_vqa", "What is it?", Constraint("text"), ("image",), images=True)
    try:
        answers = _answers(model, task, [("https://localhost/a.png",)])
    except ModelError:
        return
    for answer in answers:
        _check_answer(task, answer)


def may_be_closed_twice(model: Model) -> None:
    """``close`` may be called twice, and the model may be used again."""
    model.close()
    model.close()
    task = task_of(Constraint("boolean"))
    for answer in _answers(model, task, [("again",)]):
        _check_answer(task, answer)


CONTRACT: tuple[Callable[[Model], None], ...] = (
    describes_itself,
    answers_within_the_constraint,
    answers_each_value_in_order,
    answers_alike,
    takes_any_text,
    takes_several_values_and_nulls,
    takes_forms_and_examples,
    tells_each_answer_once,
    refuses_what_it_cannot_do,
    may_be_closed_twice,
)
"""Every check."""
