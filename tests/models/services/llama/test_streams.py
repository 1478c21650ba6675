"""Rows with a stream each: the same bits in every company, and the logits of a lone row.

A GPU runs them so. What they look like does not depend on the device, so a CPU runs them here, on the
small model of the self-test."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_model import bindings_or_skip, weights_or_skip

from blendfusion.models.services.llama import self_test
from blendfusion.models.services.llama.context import LlamaContext, Weights
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.llama.scheduler import Run, RunCost
from blendfusion.models.services.llama.sizes import of_streams
from blendfusion.models.services.llama.streams import Streams, padded_length
from blendfusion.models.services.llama.switch import Switch
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

pytestmark = pytest.mark.local
PREFIX = (3, 1, 4, 1, 5)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    bindings_or_skip()
    file = tmp_path_factory.mktemp("weights") / "small.gguf"
    file.write_bytes(self_test.model())
    weights = Weights(Path(file), n_gpu_layers=0, switch=Switch())
    yield weights
    weights.close()


@pytest.fixture(scope="module")
def streams(weights: Weights) -> Iterator[Streams]:
    context = LlamaContext(weights, n_ctx=0, threads=1, streams=of_streams(1024, 8))
    yield Streams(context)
    context.close()


def rows_of(seed: int, count: int, longest: int) -> list[tuple[int, ...]]:
    """Distinct rows of random tokens."""
    draw = random.Random(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        size = draw.randint(1, longest)
        found[tuple(draw.randrange(self_test.VOCABULARY) for _ in range(size))] = None
    return list(found)


def further(row: tuple[int, ...]) -> list[list[int]]:
    """What a row is gone on with: one to three tokens, up to three times."""
    draw = random.Random(str(row))
    return [
        [draw.randrange(self_test.VOCABULARY) for _ in range(draw.randint(1, 3))]
        for _ in range(draw.randint(0, 3))
    ]


class Seen:
    """Keeps the logits of each row at each step, and goes on with it."""

    def __init__(self, rows: Sequence[tuple[int, ...]]) -> None:
        self.rows = rows
        self.logits: dict[tuple[int, ...], list[np.ndarray]] = {row: [] for row in rows}

    def step(self, place: int, logits: np.ndarray) -> Sequence[int]:
        seen = self.logits[self.rows[place]]
        seen.append(logits.copy())
        steps = further(self.rows[place])
        return steps[len(seen) - 1] if len(seen) <= len(steps) else ()


RESERVE = 9


def in_streams(streams: Streams, rows: Sequence[tuple[int, ...]]) -> Seen:
    seen = Seen(rows)
    assert streams.run(PREFIX, rows, seen.step, [RESERVE] * len(rows), RunCost()) == []
    return seen


def test_rows_are_the_same_bit_for_bit_in_every_company(streams: Streams) -> None:
    assert streams.prove()
    for seed in range(6):
        rows = rows_of(seed, 40, 60)
        together = in_streams(streams, rows)
        some = random.Random(seed).sample(rows, 12)
        for company in (some, some[::-1], some[:1], [*some[3:5], some[0]]):
            found = in_streams(streams, company)
            for row in company:
                assert len(found.logits[row]) == len(further(row)) + 1
                for one, other in zip(found.logits[row], together.logits[row], strict=True):
                    assert np.array_equal(one, other)


def test_rows_have_the_logits_of_a_lone_row(weights: Weights, streams: Streams) -> None:
    rows = rows_of(7, 30, 40)
    context = LlamaContext(weights, n_ctx=512, threads=1)
    try:
        context.decode_prefix(PREFIX)
        context.fan_out()
        alone, spent = Seen(rows), RunCost()
        Run(context, len(PREFIX), rows, alone.step, [RESERVE] * len(rows), spent, 1).to_the_end()
    finally:
        context.close()

    found = in_streams(streams, rows)

    for row in rows:
        for one, other in zip(found.logits[row], alone.logits[row], strict=True):
            assert np.allclose(one, other, atol=0.05)


def test_every_token_counts_once(streams: Streams) -> None:
    rows = rows_of(8, 20, 30)
    seen, spent = Seen(rows), RunCost()

    streams.run(PREFIX, rows, seen.step, [RESERVE] * len(rows), spent)

    tokens = sum(len(row) + sum(map(len, further(row))) for row in rows)
    assert (spent.tokens, spent.given) == (tokens, tokens)


def test_rows_that_are_too_long_are_left(streams: Streams) -> None:
    rows = [*rows_of(9, 3, 20), tuple(range(90)) * 12]
    seen = Seen(rows)

    assert streams.run(PREFIX, rows, seen.step, [RESERVE] * 4, RunCost()) == [3]
    assert not seen.logits[rows[3]]
    assert all(seen.logits[row] for row in rows[:3])


def test_long_rows_share_a_batch_with_fewer(streams: Streams) -> None:
    shape = streams.shape(len(PREFIX), [1] * 600)

    assert shape is not None
    assert shape.streams * shape.length <= streams.context.n_batch
    rows = [tuple(range(90)) * 6 + (n,) for n in range(4)]
    together = in_streams(streams, rows)
    alone = in_streams(streams, rows[2:3])
    assert np.array_equal(together.logits[rows[2]][0], alone.logits[rows[2]][0])


def test_another_prefix_gives_other_logits_and_an_error_leaves_nothing(streams: Streams) -> None:
    [row] = rows_of(10, 1, 12)

    def fails(place: int, logits: np.ndarray) -> Sequence[int]:
        raise ValueError("stop")

    first = in_streams(streams, [row]).logits[row]
    with pytest.raises(ValueError, match="stop"):
        streams.run(PREFIX, [row], fails, [RESERVE], RunCost())
    other = Seen([row])
    streams.run((9, 9), [row], other.step, [RESERVE], RunCost())
    again = in_streams(streams, [row]).logits[row]

    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first[0], other.logits[row][0])


@pytest.mark.long
@pytest.mark.parametrize("constraint", ["text"])
def test_answers_in_streams_are_the_same_alone(
    constraint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packaged model, with streams as on a GPU."""
    model = LlamaModel(weights_or_skip(), Options(max_tokens=4))
    task = Task("llm_map", "How many were there?", Constraint(constraint), ("text",))
    column = [("Two lamps broke.",), ("It was lovely.",), ("All 12 of us came.",), ("No one.",)]
    try:
        opened = model._ready()
        context = LlamaContext(
            opened.weights.thing, n_ctx=0, threads=0, streams=of_streams(1024, 4)
        )
        monkeypatch.setattr(opened, "streams", Streams(context))

        together = model.answer(task, column)

        assert opened.exact
        assert opened.streams is not None
        assert [model.answer(task, [values])[0].text for values in column] == [
            answer.text for answer in together
        ]
        assert all(answer.error is None for answer in together)
        context.close()
    finally:
        monkeypatch.undo()
        model.close()


@pytest.mark.parametrize("length", [1, 7, 8, 9, 63, 65, 100, 511, 900])
def test_padding_is_at_most_a_quarter_of_long_rows(length: int) -> None:
    assert length <= padded_length(length) <= max(length + 7, length * 1.25)
    assert padded_length(padded_length(length)) == padded_length(length)
