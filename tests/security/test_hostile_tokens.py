"""On token ids of the packaged model: no text changes what stands around it, or becomes a control
token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hostile import CONTROL_TOKENS, FORGED_TURNS, HOSTILE, LONG, SURROGATES
from local_model import weights_or_skip

from blendfusion.models.constraints.constraint import holds
from blendfusion.models.services.llama.batch import TaskBatch
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.verbalizer.running_text import Piece, plain
from blendfusion.options import Options
from blendfusion.types import Constraint, Example, Task

pytestmark = pytest.mark.local

ONE = Task("llm_map", "What is it?", Constraint("integer"), ("x",))
TWO = Task("llm_map", "How well does {x} fit {y}?", Constraint("integer"), ("x", "y"))
JUDGED = Task("llm_filter", "Does {x} fit {y}?", Constraint("boolean"), ("x", "y"))
ROWS = Task("llm_qa", "What is it?", Constraint(), ("x",), aggregate=True)
LABELS = Task("llm_classify", "", Constraint("choice", options=("good", "bad")), ("x",))
TASKS = {"one value": ONE, "two values": TWO, "rows": ROWS, "labels": LABELS, "judged": JUDGED}
VALUES = {"one value": 1, "two values": 2, "rows": 3, "labels": 1, "judged": 2}
CHATS = ("one value", "two values", "rows")
"""Those that the model is asked in the form of a chat; where scores decide, it reads running text.
"""


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaModel]:
    model = LlamaModel(weights_or_skip(), Options(max_tokens=24, n_ctx=1024))
    yield model
    model.close()


class Reader:
    """What a model reads for a task and values, as token ids."""

    def __init__(self, model: LlamaModel, task: Task) -> None:
        self.context = model._ready().context
        self.asking = TaskBatch(model._ready(), task, Options())
        self.prefix = self.asking.prefix
        self.tail = self.asking.tail

    def row(self, *values: str) -> tuple[int, ...]:
        """What follows the shared part."""
        return self.asking.row(values)

    def controls(self, tokens: tuple[int, ...]) -> list[tuple[int, int]]:
        """The control tokens: their places from the end, and their ids."""
        places = range(len(tokens))
        return [(i - len(tokens), tokens[i]) for i in places if self.context.is_control(tokens[i])]

    def ids(self, tokens: tuple[int, ...]) -> list[int]:
        return [token for _, token in self.controls(tokens)]


@pytest.mark.parametrize("shape", TASKS)
def test_the_tail_of_the_template_alone_has_control_tokens(model: LlamaModel, shape: str) -> None:
    reader = Reader(model, TASKS[shape])
    harmless = reader.row(*["pear"] * VALUES[shape])
    assert reader.controls(harmless) == reader.controls(reader.tail)
    assert harmless[-len(reader.tail) :] == reader.tail
    chat = shape in CHATS
    assert (len(reader.controls(reader.tail)) >= 2) == chat
    assert (len(reader.controls(reader.prefix)) >= 3) == chat


@pytest.fixture(scope="module")
def readers(model: LlamaModel) -> dict[str, Reader]:
    return {shape: Reader(model, task) for shape, task in TASKS.items()}


@pytest.mark.parametrize("text", [*HOSTILE, *SURROGATES], ids=ascii)
def test_a_value_stays_between_what_surrounds_it(readers: dict[str, Reader], text: str) -> None:
    for shape, reader in readers.items():
        count = VALUES[shape]
        for place in range(count):
            values = ["pear"] * count
            values[place] = text
            row = reader.row(*values)
            assert row[-len(reader.tail) :] == reader.tail
            assert reader.controls(row) == reader.controls(reader.tail)


@pytest.mark.parametrize("text", LONG, ids=lambda text: ascii(text[:12]))
def test_a_long_value_does_too(model: LlamaModel, text: str) -> None:
    for shape in ("one value", "two values"):
        reader = Reader(model, TASKS[shape])
        row = reader.row(*[text] * VALUES[shape])
        assert reader.controls(row) == reader.controls(reader.tail)
        assert row[-len(reader.tail) :] == reader.tail


def test_a_megabyte_fails_alone(model: LlamaModel) -> None:
    answers = model.answer(ONE, [("Three of them.",), ("Four, " * 170_000,), ("Five.",)])
    assert [answer.error is None for answer in answers] == [True, False, True]
    assert "the window is 1024" in str(answers[1].error)


PLACES = {
    "question": lambda task, text: replace(task, question=f"What is {text}?"),
    "column": lambda task, text: replace(task, columns=(text, "y")),
    "label": lambda task, text: replace(
        task, constraint=Constraint("choice", options=("good", f"{text}?", "bad"))
    ),
    "literal": lambda task, text: replace(task, constraint=Constraint(literals=(text, "b"))),
    "example": lambda task, text: replace(task, examples=(Example((text, text), "true"),)),
}


@pytest.mark.parametrize("text", [*HOSTILE, *SURROGATES], ids=ascii)
def test_words_of_a_task_stay_in_their_turn(model: LlamaModel, text: str) -> None:
    for place in PLACES.values():
        harmless = Reader(model, place(TWO, "pear"))
        reader = Reader(model, place(TWO, text))
        assert reader.ids(reader.prefix) == harmless.ids(harmless.prefix)
        assert reader.tail == harmless.tail
        assert reader.row("a", "b")[-len(reader.tail) :] == reader.tail
        assert reader.controls(reader.row("a", "b")) == harmless.controls(harmless.row("a", "b"))
        for reply in reader.asking.layout.prompt.replies:
            tokens = reader.context.tokenize(reply, special=False)
            assert not any(map(reader.context.is_control, tokens))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_without_a_template_a_value_opens_no_line(text: str) -> None:
    from blendfusion.models.services.prompts.prompt import render

    for task, count in ((ONE, 1), (TWO, 2), (ROWS, 3), (JUDGED, 2)):
        layout = plain(render(task))
        block = layout.block((text,) * count)
        harmless = layout.block(("pear",) * count)
        assert len(block.splitlines()) == len(harmless.splitlines())
        assert layout.tail == (Piece("\nAnswer:", special=False),)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_among_several_values_a_line_is_its_own(text: str) -> None:
    from blendfusion.models.services.prompts.prompt import render

    for task, starts in ((TWO, ("x: ", "y: ")), (ROWS, ("- ",))):
        lines = render(task).block((text, "pear")).splitlines()[1:]
        assert sum(line.startswith(starts) for line in lines) == 2
        assert all(line.startswith(("  ", *starts)) for line in lines if line)


KINDS = {
    "boolean": Constraint("boolean"),
    "integer": Constraint("integer"),
    "labels": Constraint("choice", options=("<|im_end|>", "Yes<|im_start|>", "{}", "a\nb")),
    "regex": Constraint("regex", pattern="[A-Z]{2}"),
}
ASKED = (*CONTROL_TOKENS[:3], *FORGED_TURNS[:4], "\x00", "\u202e1", "")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_keeps_to_its_constraint(model: LlamaModel, kind: str) -> None:
    task = Task("llm_map", "What is it? <|im_end|>", KINDS[kind], ("<|im_start|>",))
    answers = model.answer(task, [(text,) for text in ASKED])
    assert len(answers) == len(ASKED)
    for answer in answers:
        assert answer.error is None
        assert holds(KINDS[kind], answer.text)
