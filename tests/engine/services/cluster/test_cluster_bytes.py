"""What travels between a session and its workers: few bytes, each long value once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf
from blendfusion.models.protocol.model import Values
from blendfusion.services.cluster.local import LocalPlace
from blendfusion.services.cluster.messages import (
    AskedAnswers,
    Continue,
    Pose,
    Wants,
    decode_message,
    encode_message,
)
from blendfusion.services.cluster.packing import packed_values, unpacked_values
from blendfusion.types import Answer, Task, Usage

WORDS = (Path(__file__).parents[4] / "README.md").read_text("utf-8").split()


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
        Wants(None, task, values, stops=True),
        Pose((b"model", task), values),
        Pose(None, values),
        AskedAnswers(some),
        AskedAnswers(dict(enumerate(answers))),
        Continue(),
    ):
        assert decode_message(encode_message(message)) == message
    found = decode_message(encode_message(Continue(answers))).answers
    assert [(a.text, a.error, a.logprob, a.model) for a in found] == [
        (a.text, a.error, a.logprob, a.model) for a in answers
    ]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [()],
        [(), ()],
        [("a",), ("b", None)],
        [(None,), (), ("", "x", "ü")],
        [("a", "b"), ("c", None)],
        [tuple(map(str, range(n))) for n in range(300)],
    ],
)
def test_values_of_any_widths_travel(values: list[Values]) -> None:
    assert unpacked_values(packed_values(values)) == values


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


def connected(
    folder: Path, files: int, tables: list[list[str]], workers: int, **options: Any
) -> bf.Session:
    for number in range(files):
        pq.write_table(
            pa.table({"x": tables[number % len(tables)]}), folder / f"{number:02}.parquet"
        )
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h", batch_size=64)
    there = bf.connect(model, cache=None, cluster=f"local:{workers}", progress="off", **options)
    there.register_parquet("t", str(folder))
    return there


def times_the_values(
    moved: list[int],
    folder: Path,
    values: list[str],
    *,
    shared: bool,
    workers: int,
    trace_calls: int = 1_000_000,
) -> float:
    """The bytes that move between all processes, by those of the distinct values."""
    files = 2 * workers
    tables = [values] if shared else [values[number::files] for number in range(files)]
    with connected(folder, files, tables, workers, trace_calls=trace_calls) as there:
        frame = there.sql("SELECT count(*) FROM t WHERE llm_filter('f', x)")
        frame.collect()
        assert frame.trace.usage.values == len(values)
        assert there.cluster is not None
        assert there.cluster.moved
        between = there.cluster.moved
    return (sum(moved) + between) / sum(len(value.encode()) for value in values)


def test_values_do_not_pass_the_session(moved: list[int], tmp_path: Path) -> None:
    """It gets counts, and those that its trace keeps."""
    rng = random.Random(0)
    values = [f"{i} {' '.join(rng.choices(WORDS, k=60))}" for i in range(2_000)]
    with connected(tmp_path, 8, [values], 2, trace_calls=10) as there:
        query = "SELECT count(*) AS c FROM t WHERE llm_filter('f', x)"
        frame = there.sql(query)
        here = bf.connect(bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h"), cache=None)
        here.register_parquet("t", str(tmp_path))
        assert frame.to_pylist() == here.sql(query).to_pylist()
        trace = frame.trace
        assert trace.usage.values == len(trace.calls) + trace.left_out == 2_000
        assert 5 <= len(trace.calls) <= 10
    assert sum(moved) < 0.15 * sum(len(value.encode()) for value in values)


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
    assert times_the_values(moved, tmp_path, values, shared=shared, workers=workers) <= 2


@pytest.mark.parametrize(
    ("workers", "trace_calls"),
    [(4, 1_000_000), pytest.param(8, 1_000_000, marks=[pytest.mark.long, pytest.mark.slow])],
)
def test_random_values_that_all_workers_meet_move_at_most_twice_their_bytes(
    moved: list[int], tmp_path: Path, workers: int, trace_calls: int
) -> None:
    """Ten random bytes each, written as 20 digits; all of them go to the trace."""
    rng = random.Random(workers)
    values = [f"{rng.getrandbits(80):020x}" for _ in range(10_000 if workers == 4 else 30_000)]
    times = times_the_values(
        moved, tmp_path, values, shared=True, workers=workers, trace_calls=trace_calls
    )
    assert times <= 2
