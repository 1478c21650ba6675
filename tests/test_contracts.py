"""Every back end and every wrapper keeps the contract of a model, which is public:
``blendfusion.models.testing``. What does not keep it is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from local_model import weights_or_skip
from loopback import Body, Reply, serving

from blendfusion.errors import ModelFailed
from blendfusion.models.guarantees.vector_classifier import EmbeddingModel
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import Model, Values
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.testing import CONTRACT, task_of
from blendfusion.models.wrappers.answer_check import CheckedModel
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.models.wrappers.cascade import CascadeModel
from blendfusion.models.wrappers.failover import FallbackModel
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, ModelInfo, Request, Task


def scripted() -> ScriptedModel:
    """Answers by a digest of the values: some right, some outside of the constraint, some none."""

    def script(request: Request) -> object:
        digest = hashlib.blake2s(repr(request.values).encode()).digest()[0]
        constraint = request.constraint
        known: dict[str, object] = {
            "boolean": digest % 2 == 0,
            "integer": digest,
            "number": digest / 4,
            "choice": constraint.options[digest % len(constraint.options)]
            if constraint.options
            else "none",
            "score": digest % 6,
            "regex": "AB12",
            "date": "2024-02-29",
            "timestamp": "2024-02-29T12:30:00",
        }
        return known.get(constraint.kind, "some text" if digest % 3 else None)

    return ScriptedModel(script)  # type: ignore[arg-type]


class Foreign:
    """A model of another package, which answers as it likes."""

    def __init__(self, text: str | None = "true") -> None:
        self.text = text

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("foreign", "foreign 1", 4096)

    @property
    def batch_size(self) -> int:
        return 8

    def count_tokens(self, text: str) -> int:
        return len(text) + 1

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return [Answer(self.text) for _ in values]

    def close(self) -> None:
        pass


class Coroutine(Foreign):
    async def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:  # type: ignore[override]
        return [Answer(None, "error", error="it has no answer") for _ in values]


@contextmanager
def on_a_server() -> Iterator[Model]:
    def script(body: Body) -> Reply:
        return Reply(json.dumps({"answer": "2024-02-29"}))

    with serving(script) as server:
        yield OpenAIModel(
            "tiny", server.url, None, Options(), retry=Retry(attempts=2, base_seconds=0.001)
        )


@contextmanager
def local() -> Iterator[Model]:
    path = weights_or_skip()
    from blendfusion.models.services.llama.model import LlamaModel

    model = LlamaModel(path, Options(max_tokens=24))  # texts are long to write, and checked alike
    yield model
    model.close()


def made(model: Callable[[], Model]) -> Callable[[], Iterator[Model]]:
    @contextmanager
    def of() -> Iterator[Model]:
        yield model()

    return of  # type: ignore[return-value]


def cached(inner: Model) -> CachedModel:
    return CachedModel(inner, MemoryStore())


MODELS = {
    "scripted": made(scripted),
    "server": on_a_server,
    "cached": made(lambda: cached(scripted())),
    "failover": made(lambda: FallbackModel(scripted(), MemoryStore(), cached(scripted()))),
    "cascade": made(lambda: CascadeModel(scripted(), MemoryStore(), cached(scripted()))),
    "checked": made(lambda: CheckedModel(Foreign("WRONG"))),
    "checked coroutine": made(lambda: CheckedModel(Coroutine())),
}


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_keeps_the_contract(name: str, check: Callable[[Model], None]) -> None:
    with MODELS[name]() as model:
        check(model)


def test_a_classifier_of_vectors_answers_no_question_itself() -> None:
    with pytest.raises(ModelFailed, match="answers only before a large model"):
        EmbeddingModel().answer(task_of(Constraint("boolean")), [("x",)])


@pytest.fixture(scope="module")
def packaged() -> Iterator[Model]:
    with local() as model:
        yield model


@pytest.mark.long
@pytest.mark.local
@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_the_packaged_model_keeps_the_contract(
    packaged: Model, check: Callable[[Model], None]
) -> None:
    check(packaged)


class Random(Foreign):
    number = 0

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        self.number += 1
        options = task.constraint.options or ("true", "false")
        return [Answer(options[self.number % len(options)]) for _ in values]


class Short(Foreign):
    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return super().answer(task, values)[1:]


class Odd(Foreign):
    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        for row in values:
            "".join(value or "" for value in row).encode("ascii")
        return [Answer(None, "error", error="none") for _ in values]


class Silent(Foreign):
    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return [replace(Answer.failed("x"), error=" ") for _ in values]


class Misdescribed(Foreign):
    abilities = Abilities(name="another name")


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (Foreign("WRONG"), "answers_within_the_constraint"),
        (Random(), "answers_alike"),
        (Short(), "answers_each_value_in_order"),
        (Odd(), "takes_any_text"),
        (Silent(), "answers_within_the_constraint"),
        (Misdescribed(), "describes_itself"),
    ],
)
def test_the_contract_finds_what_is_wrong(model: Model, broken: str) -> None:
    failed = []
    for check in CONTRACT:
        try:
            check(model)
        except (AssertionError, UnicodeEncodeError):
            failed.append(check.__name__)
    assert broken in failed
