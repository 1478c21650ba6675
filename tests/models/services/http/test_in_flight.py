"""How many requests are in flight: by a clock of the tests' own, then before servers with a
capacity."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time

import pytest
from loopback import Body, Reply, serving

from blendfusion.models.services.http.adaptive_concurrency import InFlight
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))


class Machine:
    """A server in a time of its own: it works on ``capacity`` requests at a time, ``service``
    seconds each, keeps the others waiting, and refuses at once what is more than ``room``."""

    def __init__(self, usual: int, most: int, capacity: int, room: int = 1_000_000) -> None:
        self.now = 0.0
        self.in_flight = InFlight(usual, most, clock=lambda: self.now)
        self._capacity, self._room = capacity, room
        self.refusals = 0

    def run(self, requests: int, service: float = 1.0) -> float:
        """Send so many, as many at a time as are let in; the seconds that it took."""
        begun, free = self.now, [self.now] * self._capacity
        under_way: list[tuple[float, float, bool]] = []  # when it ends, when it was sent, its fate
        left = requests
        while left or under_way:
            while left and len(under_way) < self.in_flight.limit:
                left -= 1
                if len(under_way) >= self._room:
                    heapq.heappush(under_way, (self.now, self.now, False))
                    continue
                ends = max(self.now, heapq.heappop(free)) + service
                heapq.heappush(free, ends)
                heapq.heappush(under_way, (ends, self.now, True))
            self.now, sent_at, good = heapq.heappop(under_way)
            if good:
                self.in_flight.note_answer(sent_at)
            else:
                self.refusals += 1
                left += 1
                self.in_flight.note_refusal(sent_at)
        return self.now - begun


def test_as_many_as_usual_are_let_in_if_nothing_else_is_said() -> None:
    machine = Machine(usual=16, most=0, capacity=1000)
    machine.run(1000)
    assert machine.in_flight.limit == machine.in_flight.most == 16


@pytest.mark.parametrize("capacity", [4, 50, 200])
def test_what_is_in_flight_grows_until_the_server_is_full(capacity: int) -> None:
    machine = Machine(usual=4, most=256, capacity=capacity)
    machine.run(3000)
    assert capacity <= machine.in_flight.limit <= 3 * capacity
    assert machine.run(5000) <= 1.15 * 5000 / capacity


def test_it_never_grows_beyond_what_is_allowed() -> None:
    machine = Machine(usual=4, most=20, capacity=1000)
    machine.run(1000)
    assert machine.in_flight.limit == 20


def test_a_slow_server_still_gets_as_many_as_usual() -> None:
    """Who set ``concurrency`` knows the server: latency alone never goes below."""
    machine = Machine(usual=16, most=64, capacity=1)
    machine.run(500)
    assert machine.in_flight.limit >= 16


@pytest.mark.parametrize("room", [1, 3, 10])
def test_a_server_that_refuses_is_sent_what_it_takes(room: int) -> None:
    machine = Machine(usual=16, most=0, capacity=room, room=room)
    machine.run(1000)
    assert machine.in_flight.limit <= room + 1
    refused = machine.refusals
    machine.run(1000)
    assert machine.refusals - refused <= 1000 / min(room, 8)


def test_requests_that_are_refused_together_count_once() -> None:
    machine = Machine(usual=16, most=0, capacity=1)
    machine.now = 5.0
    for _ in range(16):
        machine.in_flight.note_refusal(sent_at=4.0)
    assert machine.in_flight.limit == 12
    for limit in (12, 9):  # one in eight is borne
        machine.in_flight.note_refusal(sent_at=5.0)
        assert machine.in_flight.limit == limit


def test_it_comes_back_by_one_a_round() -> None:
    machine = Machine(usual=8, most=0, capacity=1000)
    for _ in range(2):
        machine.in_flight.note_refusal(sent_at=0.0)
    limits = []
    for _ in range(4):
        machine.run(machine.in_flight.limit)
        limits.append(machine.in_flight.limit)
    assert limits == [7, 8, 8, 8]


def test_another_question_has_another_pace() -> None:
    machine = Machine(usual=4, most=64, capacity=1000)
    machine.in_flight.expect("choices")
    machine.run(100, service=0.1)
    grown = machine.in_flight.limit
    machine.in_flight.expect("long texts")
    machine.run(100, service=10.0)
    assert machine.in_flight.limit >= grown


def test_the_gate_holds_and_survives_those_who_leave() -> None:
    gate = InFlight(2)
    inside: list[int] = []
    most = 0

    async def one(number: int, forever: bool) -> None:
        nonlocal most
        await gate.enter()
        inside.append(number)
        most = max(most, len(inside))
        try:
            await asyncio.sleep(60 if forever else 0)
        finally:
            inside.remove(number)
            gate.leave()

    async def main() -> None:
        stuck = [asyncio.create_task(one(n, forever=True)) for n in range(2)]
        waiting = [asyncio.create_task(one(n, forever=False)) for n in range(2, 8)]
        await asyncio.sleep(0.01)
        for task in (waiting[0], stuck[0]):  # one that waits, then one that is inside
            task.cancel()
        await asyncio.gather(waiting[0], *waiting[1:], return_exceptions=True)
        stuck[1].cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        await asyncio.wait_for(one(9, forever=False), 5)

    asyncio.run(main())
    assert most == 2


# ---------------------------------------------------------------- over sockets


def ask(server_url: str, values: int, retry: Retry | None = None, **options: object) -> list[str]:
    model = OpenAIModel("tiny", server_url, None, Options().with_(**options), retry=retry)
    answers = model.answer(TEXT, [(f"text {number}",) for number in range(values)])
    return [str(answer.text or answer.error) for answer in answers]


def test_a_server_for_four_answers_all_though_sixteen_were_meant() -> None:
    """Without adapting, most values would meet 429 at each of their tries."""
    room = threading.Semaphore(4)

    def script(body: Body) -> Reply:
        if not room.acquire(blocking=False):
            return Reply(status=429, error="too many at once")
        try:
            time.sleep(0.005)
            return Reply("fine")
        finally:
            room.release()

    with serving(script) as server:
        patient = Retry(attempts=5, base_seconds=0.005)
        assert set(ask(server.url, 200, patient)) == {"fine"}
        assert server.most_in_flight <= 16


def test_a_server_with_room_gets_more_than_usual() -> None:
    requests = itertools.count(1)
    third = threading.Event()

    def script(body: Body) -> Reply:
        number = next(requests)
        if server.in_flight > 2:
            third.set()
        return Reply("fine", wait=third if number > 2 else None)

    with serving(script) as server:
        assert set(ask(server.url, 120, concurrency=2, concurrency_most=12)) == {"fine"}
        assert 2 < server.most_in_flight <= 12


def test_concurrency_is_the_bound_where_no_other_is_set() -> None:
    def script(body: Body) -> Reply:
        time.sleep(0.002)
        return Reply("fine")

    with serving(script) as server:
        assert set(ask(server.url, 60, concurrency=3)) == {"fine"}
        assert server.most_in_flight <= 3
