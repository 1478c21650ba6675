"""A local model on a GPU: the same answers in any company, more rows at a time, an end when it is
wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from local_model import weights_or_skip

from blendfusion.models.services.llama.library import library
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

pytestmark = pytest.mark.gpu

FILTER = Task("llm_filter", "Is this review positive?", Constraint("boolean"), ("text",))
TEXT = Task("llm_map", "What is it about?", Constraint("text"), ("text",))
THINGS = ("soup", "film", "room", "phone", "book", "ferry", "lamp", "coat")
SAID = ("was lovely", "broke", "is blue", "could be worse", "arrived late", "made me smile")
COLUMN = [(f"The {thing} {what}.",) for thing in THINGS for what in SAID]


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaModel]:
    weights = weights_or_skip()
    if not library().llama_supports_gpu_offload():
        pytest.skip("llama-cpp-python was not built for a GPU")
    model = LlamaModel(weights, Options(n_gpu_layers=-1, max_tokens=12))
    yield model
    model.close()


def texts(model: LlamaModel, task: Task, size: int) -> list[str | None]:
    found: list[str | None] = []
    for start in range(0, len(COLUMN), size):
        found += [answer.text for answer in model.answer(task, COLUMN[start : start + size])]
    return found


@pytest.mark.parametrize("task", [FILTER, TEXT], ids=["chosen", "written"])
def test_answers_do_not_depend_on_the_batch(model: LlamaModel, task: Task) -> None:
    together = texts(model, task, len(COLUMN))

    assert texts(model, task, 8) == together
    assert texts(model, task, 1) == together


def test_an_f16_copy_answers_with_more_rows_at_a_time(model: LlamaModel) -> None:
    model.answer(FILTER, COLUMN[:1])

    assert model.info.settings["weights"].startswith("F16")
    assert model.at_once >= 63


def test_rows_have_streams_of_their_own_and_none_is_computed_again(model: LlamaModel) -> None:
    answers = model.answer(FILTER, COLUMN)

    opened = model._ready()
    assert opened.streams is not None
    assert opened.exact
    assert len(answers) == len(COLUMN)
    again = [model.answer(FILTER, [values])[0] for values in COLUMN[:12]]
    assert [answer.logprob for answer in again] == [answer.logprob for answer in answers[:12]]


def test_a_prefix_longer_than_a_batch_is_computed_in_parts(model: LlamaModel) -> None:
    long = Task(
        "llm_filter", "Is it good? " + "Think of it. " * 700, Constraint("boolean"), ("text",)
    )

    assert model.answer(long, COLUMN[:2])[0].error is None


def test_what_is_stopped_ends_soon(model: LlamaModel) -> None:
    model.answer(TEXT, COLUMN[:1])
    context = model._ready().context
    switch_stopped = threading.Event()

    def stop() -> None:
        time.sleep(0.2)
        context._switch.stop()
        switch_stopped.set()

    threading.Thread(target=stop).start()
    many = [(f"{text} {number}",) for (text,) in COLUMN for number in range(40)]
    start = time.perf_counter()
    with pytest.raises(Exception, match="interrupted"):
        model.answer(TEXT, many)
    assert switch_stopped.is_set()
    assert time.perf_counter() - start < 10
    assert model.answer(FILTER, COLUMN[:1])[0].error is None
