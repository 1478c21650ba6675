"""Models of the library outlines as back ends, and its types as patterns.

Where outlines is installed, the packaged weights run through it; a stand-in with its protocol tests
the rest everywhere.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from local_model import bindings_or_skip, weights_or_skip

import blendfusion as bf
from blendfusion.models.constraints.constraint import regex_of
from blendfusion.models.protocol.model import Model
from blendfusion.models.services.outlines import is_outlines
from blendfusion.models.services.outlines.model import OutlinesModel
from blendfusion.models.testing import CONSTRAINTS, CONTRACT
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

REPLIES = {
    "boolean": "true",
    "integer": "12",
    "number": "1.5",
    "date": "2024-02-29",
    "timestamp": "2024-02-29T12:30:00",
    "regex": "AB12",
    "score": "3",
    "struct": '{"name": "Alien", "year": null}',
}


def reply(pattern: str | None) -> str:
    """A text that the pattern of a constraint of the contract allows."""
    if pattern is None:
        return " some text \nmore"
    known = [*REPLIES.values(), "red", "a,b", "[]", "[1, 2]"]
    return next(text for text in known if re.fullmatch(pattern, text))


def stand_in() -> dict[str, types.ModuleType]:
    """The modules of outlines that the back end uses."""
    names = ("outlines", "outlines.inputs", "outlines.types", "outlines.types.dsl")
    modules = {name: types.ModuleType(name) for name in (*names, "outlines.models.base")}

    class Regex:
        def __init__(self, pattern: str) -> None:
            self.pattern = pattern

    class Chat:
        def __init__(self, messages: list[dict[str, str]]) -> None:
            self.messages = messages

    class Generator:
        def __init__(self, model: Any, output_type: Any, backend: str) -> None:
            assert backend == "llguidance"
            self.model, self.type = model, output_type
            model.compiled += 1

        def __call__(self, prompt: Any, **settings: Any) -> str:
            self.model.seen.append((prompt, settings))
            if self.model.broken:
                raise RuntimeError("out of memory")
            return reply(None if self.type is None else self.type.pattern)

        def batch(self, prompts: list[Any], **settings: Any) -> list[list[str]]:
            return [[self(prompt, **settings)] for prompt in prompts]

    class LlamaCpp:
        def __init__(self) -> None:
            self.compiled, self.broken = 0, False
            self.seen: list[tuple[Any, dict[str, Any]]] = []

    class Transformers(LlamaCpp):
        pass

    Regex.__module__ = "outlines.types.dsl"
    LlamaCpp.__module__ = Transformers.__module__ = "outlines.models.llamacpp"
    modules["outlines"].Generator = Generator  # type: ignore[attr-defined]
    modules["outlines"].LlamaCpp = LlamaCpp  # type: ignore[attr-defined]
    modules["outlines"].Transformers = Transformers  # type: ignore[attr-defined]
    modules["outlines.inputs"].Chat = Chat  # type: ignore[attr-defined]
    modules["outlines.types"].Regex = Regex  # type: ignore[attr-defined]
    modules["outlines.types.dsl"].to_regex = lambda term: f"({term.pattern})"  # type: ignore[attr-defined]
    return modules


@pytest.fixture
def outlines(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, module in stand_in().items():
        monkeypatch.setitem(sys.modules, name, module)
    return sys.modules["outlines"]


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_a_model_of_outlines_keeps_the_contract(
    outlines: Any, check: Callable[[Model], None]
) -> None:
    for kind in (outlines.LlamaCpp, outlines.Transformers):
        check(OutlinesModel(kind(), Options()))


def test_a_session_takes_a_model_of_outlines(outlines: Any) -> None:
    inner = outlines.Transformers()
    session = bf.connect(inner, cache=None, max_tokens=20)
    session.from_pydict({"text": ["a", "b", "a", None]}, name="t")
    frame = session.sql("SELECT llm_int('How many?', text) AS n FROM t")
    assert frame.to_pydict() == {"n": [12, 12, 12, None]}
    assert (frame.trace.usage.values, inner.compiled) == (2, 1)
    chat, settings = inner.seen[0]
    assert settings == {"max_new_tokens": 20, "do_sample": False}
    assert [turn["role"] for turn in chat.messages][:: len(chat.messages) - 1] == ["system", "user"]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_the_pattern_of_a_constraint_is_what_outlines_compiles(
    outlines: Any, constraint: Constraint
) -> None:
    inner = outlines.LlamaCpp()
    model = OutlinesModel(inner, Options())
    (answer,) = model.answer(Task("llm_map", "What?", constraint, ("x",)), [("a",)])
    assert answer.error is None
    if constraint.kind == "text":
        assert answer.text == "some text"
    elif len(constraint.options) != 1:
        assert re.fullmatch(regex_of(constraint), answer.text or "")
        assert inner.seen[0][1]["temperature"] == 0.0


def test_what_outlines_raises_fails_the_query_with_its_words(outlines: Any) -> None:
    inner = outlines.LlamaCpp()
    inner.broken = True
    session = bf.connect(inner, cache=None)
    session.from_pydict({"text": ["a"]}, name="t")
    with pytest.raises(bf.ModelFailed, match="outlines:LlamaCpp: RuntimeError"):
        session.sql("SELECT llm_int('How many?', text) FROM t").to_pydict()


def test_a_value_beyond_the_window_fails_alone(outlines: Any) -> None:
    model = OutlinesModel(outlines.LlamaCpp(), Options())
    task = Task("llm_int", "How many?", Constraint("integer"), ("x",))
    short, long = model.answer(task, [("a",), ("word " * 4_000,)])
    assert (short.text, long.too_long) == ("12", True)


def test_types_of_outlines_are_patterns(outlines: Any) -> None:
    session = bf.connect(outlines.LlamaCpp(), cache=None)
    frame = session.from_pydict({"text": ["a"]})
    for pattern in (sys.modules["outlines.types"].Regex("[A-Z]{2}[0-9]{2}"), re.compile("AB12")):
        call = bf.llm_map("Which?", "text", regex=pattern)
        assert frame.select(call.alias("x")).to_pydict() == {"x": ["AB12"]}


def test_other_objects_are_no_models_of_outlines() -> None:
    assert not is_outlines("outlines.models.base")
    with pytest.raises(bf.ModelNotFound):
        bf.connect(object())  # type: ignore[arg-type]


# --- the library itself --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packaged() -> Iterator[Model]:
    if importlib.util.find_spec("outlines") is None:
        pytest.skip("outlines is not installed")
    import outlines  # type: ignore[import-not-found, unused-ignore]

    weights = bindings_or_skip().Llama(str(weights_or_skip()), n_ctx=2048, verbose=False)
    yield OutlinesModel(outlines.from_llamacpp(weights), Options())
    weights.close()


@pytest.mark.local
@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_the_packaged_weights_keep_the_contract_through_outlines(
    packaged: Model, check: Callable[[Model], None]
) -> None:
    check(packaged)
