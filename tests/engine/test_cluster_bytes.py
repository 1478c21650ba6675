"""What travels between a session and its workers: few bytes, each long value once."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf
from blendfusion.cluster.local import LocalPlace
from blendfusion.cluster.messages import Continue, Pose, Posed, Wants, decoded, encoded
from blendfusion.cluster.offers import Offers
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import digests
from blendfusion.types import Answer, Task, Usage

WORDS = (Path(__file__).parents[2] / "README.md").read_text("utf-8").split()


def any_answer(rng: random.Random) -> Answer:
    if rng.random() < 0.2:
        return Answer.failed("no answer \ud800", Usage(1), too_long=rng.random() < 0.5)
    spent = rng.choice(((), (("small", Usage(1)), ("large", Usage(2)))))
    text = rng.choice((None, "", "true", "ü\ud801", "x" * rng.randrange(70_000)))
    logprob = rng.choice((None, -0.5))
    return Answer(
        text, rng.choice(("complete", "decided")), logprob, Usage(seconds=0.5), spent=spent
    )


@pytest.mark.parametrize("seed", range(20))
def test_messages_come_back_as_they_were(seed: int) -> None:
    rng = random.Random(seed)
    texts = (None, "", "a\0", "\ud800", "ü" * rng.randrange(300), "y" * rng.randrange(70_000))
    width = rng.randrange(1, 4)
    values: list[Values] = [
        tuple(rng.choice(texts) for _ in range(width)) for _ in range(rng.randrange(30))
    ]
    answers = [any_answer(rng) for _ in range(rng.randrange(30))]
    task = Task("llm_filter", "Is it?")
    some = {place: a for place, a in enumerate(answers) if rng.random() < 0.7}
    for message in (
        Wants(None, task, values, stops=True, offered=seed % 2 == 0),
        Pose((b"model", task), values),
        Pose(None, values),
        Posed(some),
        Posed(dict(enumerate(answers))),
        Continue(),
    ):
        assert decoded(encoded(message)) == message
    found = decoded(encoded(Continue(answers))).answers
    assert [(a.text, a.error, a.logprob, a.model) for a in found] == [
        (a.text, a.error, a.logprob, a.model) for a in answers
    ]


def test_a_value_that_two_workers_offer_is_sent_once() -> None:
    offers, a, b, c = Offers(), ("a" * 50,), ("b" * 50,), ("c" * 50,)
    sent: list[list[int]] = []
    with offers.of_one_worker() as first, offers.of_one_worker() as second:
        assert first.begin(b"".join(digests([a, b]))) == [0, 1]

        def offer() -> None:
            sent.append(second.begin(b"".join(digests([b, c]))))

        thread = threading.Thread(target=offer)
        thread.start()
        assert first.completed([a, b]) == [a, b]
        thread.join()
        assert sent == [[1]]
        assert second.completed([c]) == [b, c]


def test_who_goes_away_after_an_offer_keeps_nobody_waiting() -> None:
    offers, keys = Offers(), b"".join(digests([("a" * 50,)]))
    with offers.of_one_worker() as first:
        assert first.begin(keys) == [0]
    with offers.of_one_worker() as second:
        assert second.begin(keys) == [0]


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of all messages and replies from now on."""
    found: list[int] = []
    call = LocalPlace.call

    def counted(place: LocalPlace, message: bytes) -> bytes:
        reply = call(place, message)
        found.append(len(message) + len(reply))
        return reply

    monkeypatch.setattr(LocalPlace, "call", counted)
    return found


def times_the_values(
    moved: list[int], folder: Path, values: list[str], files: int, *, shared: bool, workers: int
) -> float:
    """The bytes that move, by those of the distinct values."""
    for number in range(files):
        some: Any = values if shared else values[number::files]
        pq.write_table(pa.table({"x": some}), folder / f"{number:02}.parquet")
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h", batch_size=64)
    with bf.connect(model, cache=None, cluster=f"local:{workers}", progress="off") as there:
        there.register_parquet("t", str(folder))
        frame = there.sql("SELECT count(*) FROM t WHERE llm_filter('f', x)")
        frame.collect()
        assert frame.trace.usage.values == len(values)
    return sum(moved) / sum(len(value.encode()) for value in values)


@pytest.mark.parametrize(
    ("workers", "shared"),
    [
        (4, False),
        (4, True),
        pytest.param(8, True, marks=[pytest.mark.long, pytest.mark.slow]),
    ],
)
def test_at_most_twice_the_bytes_of_the_values_move(
    moved: list[int], tmp_path: Path, workers: int, shared: bool
) -> None:
    """Texts of 30 words, each in one file or in all of them."""
    rng = random.Random(workers)
    values = [f"{i} {' '.join(rng.choices(WORDS, k=30))}" for i in range(3_000)]
    times = times_the_values(moved, tmp_path, values, 2 * workers, shared=shared, workers=workers)
    assert times <= 2
