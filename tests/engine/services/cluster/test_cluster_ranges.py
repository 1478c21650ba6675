"""Owners of ranges: each distinct value is given out once, and everybody gets its answer."""

from __future__ import annotations

import random
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import pytest

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.answer_spill import AnswerSpill
from blendfusion.models.stores.key import digests
from blendfusion.services.cluster import peers, ranges
from blendfusion.services.cluster.messages import (
    NewValues,
    Outcome,
    Route,
    decode_message,
    encode_message,
)
from blendfusion.services.cluster.peers import RangeAnswers
from blendfusion.services.cluster.range_messages import (
    NO_BATCH,
    Collect,
    CollectReply,
    Compare,
    Deposit,
    DepositReply,
    EndRange,
    Give,
    Missing,
    Offer,
    Pending,
    Same,
    Take,
    TakeReply,
)
from blendfusion.services.cluster.ranges import (
    HashRange,
    LocalRanges,
    block_digests,
    owners_of,
    range_of,
)
from blendfusion.types import Answer, Usage

A, B, C = ("a" * 50,), ("b" * 50,), ("c" * 50,)


def keys(*values: Values) -> list[bytes]:
    return [*digests(values)]


def offered(held: HashRange, *values: Values, bits: int = 32) -> Missing:
    """The reply to an offer of values, which are in the order of their keys."""
    found = keys(*values)
    heads = [int.from_bytes(key[:8], "big") >> 64 - bits for key in found]
    return held.offer(heads, bits, b"".join(block_digests(found)))


def nothing(values: Sequence[Values]) -> dict[Values, Answer]:
    return {}


def texts(collected: CollectReply) -> list[str | None]:
    assert collected.answers is not None
    return [answer.text for answer in collected.answers]


def test_messages_come_back_as_they_were() -> None:
    answers = {1: Answer("x"), 4: Answer(None, logprob=-0.5), 7: Answer.failed("no")}
    failed = Answer.failed("no", Usage(1))
    listed = {A: Answer("x", usage=Usage(1, seconds=0.5))}
    for message in (
        Offer(b"key", [2, 2, 70_000, 2**55], 56, b"blocks"),
        Offer(b"key", [2], 56, b"blocks", 4),
        Compare(b"key", [0, 2, 255], 8, b"digests"),
        Same(3, [0, 2]),
        Missing(3, [0, 70_000]),
        Missing(3, []),
        Deposit(b"key", [A, (None,)], 3),
        DepositReply(3, 2, {A: Answer("x", usage=Usage(cached=1))}, [7, 9]),
        Collect(b"key", 3),
        CollectReply(None),
        Take(b"key", 5, 9, "7"),
        TakeReply([A, B]),
        Give(b"key", NO_BATCH),
        Pending(3),
        EndRange(b"key"),
        Outcome(3, listed, {B: failed}, Usage(2, seconds=0.5), gone=True, moved=5),
        Outcome(),
    ):
        assert decode_message(encode_message(message)) == message
    given = decode_message(encode_message(Give(b"key", 3, answers)))
    assert {p: (a.text, a.error, a.logprob) for p, a in given.answers.items()} == {
        p: (a.text, a.error, a.logprob) for p, a in answers.items()
    }


def test_a_value_that_two_workers_offer_is_sent_once() -> None:
    held = HashRange(nothing)
    first = offered(held, A, B)
    assert first.places == [0, 1]
    second: list[Missing] = []
    thread = threading.Thread(target=lambda: second.append(offered(held, B, C)))
    thread.start()
    assert held.deposit([A, B], first.ticket).new == 2
    thread.join()
    assert second[0].places == [1]
    assert held.deposit([C], second[0].ticket).new == 1
    assert held.take(0, 9, "") == TakeReply([A, B, C])
    held.give(0, {0: Answer("1"), 1: Answer("2"), 2: Answer("3")})
    assert texts(held.collect(first.ticket)) == ["1", "2"]
    assert texts(held.collect(second[0].ticket)) == ["2", "3"]


def test_who_goes_away_after_an_offer_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_AWAITED_SECONDS", 0.05)
    monkeypatch.setattr(ranges, "_WAIT_SECONDS", 0.01)
    held = HashRange(nothing)
    assert offered(held, A).places == [0]
    assert offered(held, A).places == [0]


def test_stored_answers_are_hits_and_a_batch_that_is_given_back_waits_again() -> None:
    held = HashRange(lambda values: {v: Answer("known") for v in values if v == A})
    deposited = held.deposit([A, B, C], None)
    assert (deposited.new, deposited.hits) == (2, {A: Answer("known")})
    assert held.take(7, 5, "") == TakeReply([B, C])
    assert held.give(7, {0: Answer("b")}) == Pending(1)
    assert held.take(8, 5, "") == TakeReply([C])
    assert held.give(8, {}) == Pending(1)
    assert held.take(9, 5, "") == TakeReply([C])
    held.give(9, {0: Answer("c")})
    assert texts(held.collect(deposited.ticket)) == ["known", "b", "c"]
    assert held.deposit([B], None).new == 0


def test_who_waits_at_the_end_of_a_run_gets_nothing() -> None:
    held = HashRange(nothing)
    ticket = held.deposit([A], None).ticket
    got: list[CollectReply] = []
    thread = threading.Thread(target=lambda: got.append(held.collect(ticket)))
    thread.start()
    held.end()
    thread.join()
    assert got == [CollectReply(None)]
    assert LocalRanges().reply(Take(b"of another run", 1, 1, "7")) == CollectReply(None)


def little_room(most_bytes: int) -> AnswerSpill:
    spill = AnswerSpill(1)
    spill.most_bytes = most_bytes
    return spill


@pytest.mark.parametrize("room", [10**9, 8_000, 0])
@pytest.mark.parametrize("seed", range(8))
def test_each_value_is_given_out_once_whoever_wants_it(seed: int, room: int) -> None:
    """Fragments of four threads, and three threads that ask, of which batches are given back; with
    ``room`` for all values, for a dozen, or for none."""
    rng = random.Random(seed)
    values: list[Values] = [(f"value {i}",) for i in range(60)]
    spill = little_room(room)
    held, answered, done = HashRange(nothing, spill), Counter[Values](), threading.Event()
    problems: list[Any] = []

    def fragment(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(6):
            some = rng.sample(values, rng.randrange(1, 40))
            if rng.random() < 0.5:
                ticket = held.deposit(some, None).ticket
            else:
                missing = offered(held, *some)
                ticket = missing.ticket
                held.deposit([some[place] for place in missing.places], ticket)
            if texts(held.collect(ticket)) != [v[0] for v in some]:
                problems.append(some)

    def ask(number: int) -> None:
        rng, batch = random.Random(f"{seed} {number}"), number
        while not done.is_set():
            batch += 3
            taken = held.take(batch, rng.randrange(1, 9), str(number)).values
            kept = {p: Answer(v[0]) for p, v in enumerate(taken) if rng.random() < 0.7}
            answered.update(taken[place] for place in kept)
            held.give(batch, kept)
            done.wait(0.001)

    fragments = [threading.Thread(target=fragment, args=(rng.random(),)) for _ in range(4)]
    askers = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for thread in (*fragments, *askers):
        thread.start()
    for thread in fragments:
        thread.join()
    done.set()
    for thread in askers:
        thread.join()
    assert not problems
    assert set(answered.values()) == {1}
    assert (spill.spilled_bytes > 0) == (room < 10**9)


def test_the_memory_of_an_owner_is_bounded_and_its_files_disappear(tmp_path: Path) -> None:
    """Of values that wait, and of answers; what is in files is found by its name."""
    spill = AnswerSpill(1, str(tmp_path))
    held = HashRange(nothing, spill)
    values: list[Values] = [(f"value {i}",) for i in range(8_000)]
    keyed = dict(zip(digests(values), values, strict=True))
    in_order = [keyed[key] for key in sorted(keyed)]
    ticket = held.deposit(in_order[:5_000], None).ticket
    assert held._pending.bytes <= spill.most_bytes
    assert len(held._pending.values) < 2_000
    assert offered(held, *in_order[:5_000], bits=40).places == []
    assert held.deposit(in_order, None).new == 3_000
    given = 0
    while some := held.take(given, 500, "").values:
        held.give(given, {place: Answer(value[0]) for place, value in enumerate(some)})
        given += len(some)
        assert held._answers.bytes + held._pending.bytes <= spill.most_bytes
    assert given == 8_000
    assert len(held._index) + len(held._pending.values) < 4_000
    assert texts(held.collect(ticket)) == [value[0] for value in in_order[:5_000]]
    assert offered(held, *in_order, bits=40).places == []
    assert held.deposit(in_order, None).new == 0
    assert list(tmp_path.iterdir()) == []


class OwnersHere:
    """In the place of workers in other processes: their messages, from and to bytes."""

    own = ""

    def __init__(self, count: int, answer: Callable[[str], str] = str, room: int = 10**9) -> None:
        self._answer = answer
        self.alike: dict[tuple[bytes, str], bool] = {}
        self.owners = {str(number): LocalRanges() for number in range(count)}
        self.moved = 0
        for owner in self.owners.values():
            owner._ranges[b"key"] = HashRange(nothing, little_room(room))

    def call(self, address: str, message: Any) -> Any:
        sent = encode_message(message)
        reply = encode_message(self.owners[address].reply(decode_message(sent)))
        self.moved += len(sent) + len(reply)
        return decode_message(reply)

    def tell(self, message: Any) -> Route:
        """Have the new values answered, each by itself."""
        assert isinstance(message, NewValues)
        for number, new in message.new.items():
            taken = self.call(str(number), Take(b"key", 0, 9_999, "")).values
            assert len(taken) == new
            answers = {p: Answer(self._answer(value[0])) for p, value in enumerate(taken)}
            self.call(str(number), Give(b"key", 0, answers))
        return Route(b"key", tuple(self.owners))


@pytest.mark.parametrize("room", [10**9, 100_000])
@pytest.mark.parametrize("different", [3, 20, 2_000])
def test_values_that_begin_alike_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, different: int, room: int
) -> None:
    """Digests whose first half has but few values: as many owners' heads would have, if there were
    many more values."""

    def few(values: Sequence[Values]) -> list[bytes]:
        starts = [zlib.crc32(str(value).encode()) % different for value in values]
        return [
            blake2b(str(start).encode(), digest_size=8).digest() + key[8:]
            for start, key in zip(starts, digests(values), strict=True)
        ]

    monkeypatch.setattr(peers, "_PART", 16)
    monkeypatch.setattr(ranges, "digests", few)
    monkeypatch.setattr(peers, "digests", few)
    values: list[Values] = [(f"{number} {'x' * 60}",) for number in range(1_500)]
    here, rng = OwnersHere(2, room=room), random.Random(different)
    answers = RangeAnswers(cast(Any, here), here.tell)
    route = Route(b"key", tuple(here.owners))
    for _ in range(8):
        some = rng.sample(values, rng.choice((1_500, rng.randrange(1, 1_000))))
        here.alike.clear()  # as for another worker
        _, found = answers.answers(route, some)
        assert {value: answer.text for value, answer in found.items()} == {v: v[0] for v in some}


def test_naming_a_value_takes_few_bytes() -> None:
    """Ten thousand random values, which a second worker names."""
    rng = random.Random(0)
    values: list[Values] = [(f"{rng.getrandbits(80):020x}",) for _ in range(10_000)]
    here = OwnersHere(8, lambda text: "true")
    answers = RangeAnswers(cast(Any, here), here.tell)
    route = Route(b"key", tuple(here.owners))
    answers.answers(route, values)
    here.moved = 0
    answers.answers(route, values)
    assert here.moved < 3 * len(values)


@pytest.mark.parametrize(("others", "most"), [(0, 0.4), (20, 1.5), (2_000, 3.5)])
def test_naming_the_values_that_another_worker_has_named_takes_hardly_any(
    others: int, most: float
) -> None:
    """Ten thousand random values, all of which a second worker needs, and so many others."""
    rng = random.Random(0)
    values: list[Values] = [(f"{rng.getrandbits(80):020x}",) for _ in range(10_000)]
    more: list[Values] = [(f"{rng.getrandbits(80):020x}",) for _ in range(others)]
    here = OwnersHere(8, lambda text: "true")
    answers = RangeAnswers(cast(Any, here), here.tell)
    route = Route(b"key", tuple(here.owners))
    answers.answers(route, values)
    here.alike.clear()
    here.moved = 0
    _, found = answers.answers(route, [*more, *values])
    assert len(found) == 10_000 + others
    new = len(encode_message(Deposit(b"key", more, 1))) + 2 * len(encode_message(TakeReply(more)))
    assert here.moved - new < most * len(values)


def test_who_goes_away_after_a_comparison_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranges, "_AWAITED_SECONDS", 0.05)
    monkeypatch.setattr(ranges, "_WAIT_SECONDS", 0.01)
    held = HashRange(nothing)
    digest = ranges.digest_of(keys(A))
    assert held.compare([keys(A)[0][0] >> 7], 1, digest).places == []
    held.deposit([A], None)  # somebody else does not keep the promise
    assert held.compare([keys(A)[0][0] >> 7], 1, digest).places == [0]
    assert held.compare([keys(A)[0][0] >> 7], 1, b"x" * 16).places == []


def test_values_that_begin_alike_go_to_one_owner_and_one_worker() -> None:
    """As long as there are other ones; then workers share them."""
    pairs: list[Values] = [(f"text {i % 9}", f"topic {i // 9}") for i in range(90)]
    owners = owners_of(keys(*pairs), pairs, 4)
    assert len({*owners}) > 1
    assert len({(pair[0], owner) for pair, owner in zip(pairs, owners, strict=True)}) == 9
    single: list[Values] = [(f"text {i}",) for i in range(90)]
    assert owners_of(keys(*single), single, 4) == [range_of(key, 4) for key in keys(*single)]
    held = HashRange(nothing)
    held.deposit(pairs, None)
    begun: dict[str, list[Values]] = {"a": [], "b": []}
    for batch in range(18):
        begun["ab"[batch % 2]] += held.take(batch, 5, "ab"[batch % 2]).values
    firsts = [[*dict.fromkeys(pair[0] for pair in some)] for some in begun.values()]
    assert [*map(len, begun.values())] == [45, 45]
    assert len({*firsts[0]} & {*firsts[1]}) <= 1, "the last one"


def test_ranges_are_equally_large() -> None:
    counts = Counter(range_of(key, 7) for key in digests((str(i),) for i in range(7_000)))
    assert set(counts) == set(range(7))
    assert max(counts.values()) < 1_150
    assert range_of(b"\xff" * 16, 7) == 6
