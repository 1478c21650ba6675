"""The asynchronous interface: an event loop that goes on, and work that ends with its task."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pyarrow as pa
import pytest
from loopback import Body, Reply, serving

import blendfusion as bf
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, ModelInfo, Task, Usage

pytestmark = pytest.mark.alone

QUERY = "SELECT x FROM t WHERE llm_filter('ok?', x)"
JOIN = "SELECT count(*) AS n FROM range(0, 40000) a JOIN range(0, 40000) b ON a.value < b.value"
BEAT_SECONDS = 0.05


def session(model: object, rows: int = 20, **options: object) -> bf.Session:
    opened = bf.connect(model, cache=None, progress="off", **options)  # type: ignore[arg-type]
    opened.from_pydict({"x": [f"value {n}" for n in range(rows)]}, name="t")
    return opened


def slow(call: bf.Request) -> bool:
    time.sleep(0.05)
    return True


async def beating(work: Awaitable[object]) -> tuple[object, float]:
    """The result, and the longest time in which the event loop did nothing else."""
    longest, going = 0.0, True

    async def beat() -> None:
        nonlocal longest
        while going:
            start = time.perf_counter()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - start - 0.005)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0.02)
    longest = 0.0
    try:
        return await work, longest
    finally:
        going = False
        await heart


def left() -> list[str]:
    """Threads that do not end: what a plan computes to its next batch may hold one up for a
    while."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        names = [t.name for t in threading.enumerate() if t.name.startswith("blendfusion")]
        if not names:
            return []
        time.sleep(0.02)
    return names


async def _listed(frame: bf.Frame) -> list[object]:
    return [row async for batch in frame for row in batch.to_pyarrow().to_pylist()]


WAYS: dict[str, Callable[[bf.Frame], Awaitable[object]]] = {
    "collect_async": lambda frame: frame.collect_async(),
    "to_arrow_table_async": lambda frame: frame.to_arrow_table_async(),
    "async for": _listed,
}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", [QUERY, JOIN])
def test_the_event_loop_goes_on(way: str, query: str) -> None:
    times = []
    for _ in range(3):  # a busy machine may be late, but not each time
        with session(bf.ScriptedModel(slow)) as opened:
            found, longest = asyncio.run(beating(WAYS[way](opened.sql(query))))
        assert found
        times.append(longest)
        if longest < BEAT_SECONDS:
            break
    assert min(times) < BEAT_SECONDS, times
    assert left() == []


def test_results_are_those_of_the_ways_that_block() -> None:
    async def both() -> None:
        frame = session(bf.ScriptedModel(lambda call: call.values[0][-1] in "24")).sql(QUERY)
        table = await frame.to_arrow_table_async()
        assert table.equals(frame.to_arrow_table())
        assert pa.Table.from_batches(await frame.collect_async()).equals(table)
        assert await _listed(frame) == table.to_pylist()
        assert frame.trace.usage.cached == 20

    asyncio.run(both())


@pytest.mark.parametrize("way", WAYS)
def test_to_cancel_is_to_end_the_work(way: str) -> None:
    def script(body: Body) -> Reply:
        time.sleep(0.05)
        return Reply("Yes")

    with serving(script) as server:
        model = f"openai:tiny@{server.url}"
        with session(model, rows=2000, concurrency=4, show_values="off") as opened:

            async def cancelled() -> float:
                task = asyncio.ensure_future(WAYS[way](opened.sql(QUERY)))
                await asyncio.sleep(0.5)
                start = time.perf_counter()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                return time.perf_counter() - start

            late = [asyncio.run(cancelled())]
            while late[-1] >= 1.0 and len(late) < 3:  # a busy machine may be late
                late.append(asyncio.run(cancelled()))
            assert min(late) < 1.0, late
            posted = len(server.bodies)
            time.sleep(0.2)
            assert len(server.bodies) <= posted + 4
            assert left() == []
            assert opened.sql("SELECT count(*) AS n FROM t").to_pydict() == {"n": [2000]}
            assert opened.ledger.usage.values > 0  # what was answered is kept


def test_a_query_without_calls_is_cancelled_too() -> None:
    async def cancelled(opened: bf.Session) -> float:
        heavy = opened.sql(JOIN.replace("40000", "100000"))
        start = time.perf_counter()
        with suppress(TimeoutError):
            await asyncio.wait_for(heavy.collect_async(), 0.3)
        return time.perf_counter() - start

    with session(bf.ScriptedModel(slow)) as opened:
        late = [asyncio.run(cancelled(opened))]
        while late[-1] >= 1.5 and len(late) < 3:
            late.append(asyncio.run(cancelled(opened)))
        assert min(late) < 1.5, late
        assert left() == []


def test_breaking_out_of_an_iteration_ends_the_work() -> None:
    async def first(opened: bf.Session) -> None:
        async for _ in opened.sql(QUERY):
            break

    with session(bf.ScriptedModel(slow), rows=1000, chunk_rows=16) as opened:
        asyncio.run(first(opened))
        assert opened.ledger.usage.values < 500
        assert left() == []


def test_many_tasks_share_a_session() -> None:
    async def all_of_them(opened: bf.Session) -> None:
        frames = [opened.sql(QUERY.replace("ok?", f"ok {n}?")) for n in range(8)]
        tables = await asyncio.gather(*(frame.to_arrow_table_async() for frame in frames))
        assert [len(table) for table in tables] == [20] * 8

    with session(bf.ScriptedModel(lambda call: True)) as opened:
        asyncio.run(all_of_them(opened))


def test_errors_arrive() -> None:
    def broken(call: bf.Request) -> bool:
        raise LookupError("gone")

    async def raises(opened: bf.Session) -> None:
        for way in WAYS.values():
            with pytest.raises(LookupError, match="gone"):
                await way(opened.sql(QUERY))
            with pytest.raises(bf.ExecutionError, match="Cannot cast"):
                await way(opened.sql("SELECT CAST(x AS INT) FROM t"))

    with session(bf.ScriptedModel(broken)) as opened:
        asyncio.run(raises(opened))


class Coroutines:
    """A model of somebody's whose ``answer`` is a coroutine function."""

    info = ModelInfo("coroutines", "coroutines", 4096)
    batch_size = 8

    def __init__(self) -> None:
        self.most = self.now = 0

    def count_tokens(self, text: str) -> int:
        return len(text)

    async def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return list(await asyncio.gather(*(self._one(row) for row in values)))

    async def _one(self, row: Values) -> Answer:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        return Answer("true" if str(row[0]).endswith("7") else "false", usage=Usage(values=1))

    def close(self) -> None:
        pass


class TellingCoroutines(Coroutines):
    async def answer_each(  # type: ignore[no-untyped-def]
        self, task: Task, values: Sequence[Values], told
    ) -> list[Answer]:
        answers = await self.answer(task, values)
        for place, answer in enumerate(answers):
            told(place, answer)
        return answers


@pytest.mark.parametrize("kind", [Coroutines, TellingCoroutines])
def test_a_model_may_be_of_coroutines(kind: type[Coroutines]) -> None:
    model = kind()
    with session(model) as opened:
        assert opened.sql(QUERY).to_pydict() == {"x": ["value 7", "value 17"]}
        assert model.most == 8

        async def inside() -> pa.Table:
            return await opened.sql(QUERY.replace("ok", "good")).to_arrow_table_async()

        assert len(asyncio.run(inside())) == 2
    assert left() == []
