"""Attention of our own inside llama.cpp: it computes what llama.cpp's does, and steps aside where
it should."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from local_model import weights_or_skip

from blendfusion.models.services.llama import attention as attention_module
from blendfusion.models.services.llama.attention import _attention, _operations, attends, attention
from blendfusion.models.services.llama.context import LlamaContext, Weights
from blendfusion.models.services.llama.library import library
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.llama.switch import Interruption, Switch
from blendfusion.models.services.llama.token_batch import Batch
from blendfusion.models.services.llama.weights import choose, ready
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(not attends(), reason="attention is llama.cpp's here"),
]
TEXTS = tuple(
    f"The {thing} {said}." for thing in ("film", "ferry") for said in ("was lovely", "broke")
)


@pytest.fixture(scope="module")
def weights() -> Iterator[Weights]:
    # Quantised ones make more of another order of sums (benchmarks/lab.md).
    file = ready(choose(weights_or_skip(), Options(weights="f16")))
    with closing(Weights(file, n_gpu_layers=0, switch=Switch())) as weights:
        yield weights


def _computed(context: LlamaContext, tokens: int = 90) -> np.ndarray:
    """The logits after a beginning, and after rows behind it, in two batches."""
    context.clear()
    context.decode_prefix([500 + 7 * place for place in range(tokens)])
    context.fan_out()
    found = []
    for position in (tokens, tokens + 1):
        batch = Batch()
        for row in range(1, 21):
            batch.want(*batch.add([600 + 11 * row], position, row))
        found.append(context.decode(batch).copy())
    return np.concatenate(found)


def test_it_computes_what_llama_does(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(LlamaContext(weights, n_ctx=512, threads=2)) as context:
        own = _computed(context)
        assert context.attends
    monkeypatch.setenv("BLENDFUSION_ATTENTION", "llama.cpp")
    with closing(LlamaContext(weights, n_ctx=512, threads=2)) as context:
        theirs = _computed(context)
        assert not context.attends

    assert np.abs(own - theirs).max() < 0.1


@pytest.mark.long
def test_who_attends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("llm_filter", "Is it praised?", Constraint("boolean"), ("text",))
    for said, told in (("", "own"), ("llama.cpp", "llama.cpp")):
        monkeypatch.setenv("BLENDFUSION_ATTENTION", said)
        options = Options(weights="original", n_ctx=512 + 256 * bool(said))
        with closing(LlamaModel(weights_or_skip(), options)) as model:
            answers = model.answer(task, [(text,) for text in TEXTS])
            assert model.info.settings["attention"] == told
        assert all(answer.error is None for answer in answers)


def test_other_attention_is_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    own = LlamaModel(weights_or_skip(), Options()).fingerprint
    monkeypatch.setenv("BLENDFUSION_ATTENTION", "llama.cpp")

    assert LlamaModel(weights_or_skip(), Options()).fingerprint != own


@pytest.mark.long
def test_after_an_interruption_it_goes_on(weights: Weights) -> None:
    """A step that was struck out is put back: llama.cpp uses a graph again."""
    with closing(LlamaContext(weights, n_ctx=512, threads=2)) as context:
        expected, stopped = _computed(context), 0
        for place in range(12):
            switch = Switch()
            context.watch(switch)
            timer = threading.Timer(0.02 * place, switch.stop)
            timer.start()
            try:
                _computed(context)
            except Interruption:
                stopped += 1
            timer.cancel()
            timer.join()
            context.watch(Switch())
            assert np.array_equal(_computed(context), expected)
        assert stopped
        assert context.attends


def test_tensors_of_another_layout_are_left_to_llama(monkeypatch: pytest.MonkeyPatch) -> None:
    library()  # the process may have no llama.cpp yet
    _operations.cache_clear()
    assert _operations() is not None
    describe = _attention.describe

    def other(tensor: int) -> object:
        return {**describe(tensor), "viewed": 1}

    monkeypatch.setattr(attention_module._attention, "describe", other)

    assert _operations.__wrapped__() is None


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLENDFUSION_ATTENTION", "llama.cpp")

    assert attention(2) is None
