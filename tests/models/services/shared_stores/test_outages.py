"""A shared store that is out of reach for a moment, or far away: what was paid for is stored."""

from __future__ import annotations

import errno
import random
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import new_database
from stored_answers import TASK, found, many
from tcp_proxy import Proxy

import blendfusion as bf
from blendfusion.models.services.shared_stores.postgres import TABLE, PostgresStore
from blendfusion.models.services.shared_stores.segments import SegmentStore
from blendfusion.models.services.shared_stores.shared_store import SharedStore, Unreachable

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def address() -> str:
    return new_database()


def through(address: str, proxy: Proxy) -> str:
    """The address of a database behind the proxy."""
    head, _, tail = address.rpartition("/")
    return f"{head.rpartition(':')[0]}:{proxy.port}/{tail}"


def port_of(address: str) -> int:
    return int(address.rpartition("/")[0].rpartition(":")[2])


@pytest.fixture
def proxy(address: str) -> Iterator[Proxy]:
    with Proxy(port_of(address)) as made:
        yield made


@pytest.mark.parametrize("down", [(0.1, 0.6), (0.2, 9.0)])
def test_an_outage_loses_no_answer(address: str, proxy: Proxy, down: tuple[float, float]) -> None:
    """One that ends while the query runs, and one that ends when the session is closed."""
    timers = [threading.Timer(down[0], proxy.cut), threading.Timer(min(down[1], 3.0), proxy.mend)]
    for timer in timers:
        timer.start()
    store = PostgresStore(through(address, proxy))
    store.write_behind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.CacheWarning)
        for start in range(0, 60, 4):
            store.store_many("m", TASK, many(start, start + 4))
            time.sleep(0.02)
        store.close()
    for timer in timers:
        timer.join()
    assert PostgresStore(address).stats().entries == 60


@pytest.mark.long
def test_outages_at_random_moments_lose_no_answer(address: str, proxy: Proxy, cases: int) -> None:
    """Six of them; 60 with ``--cases 6000``."""
    chance = random.Random(49)
    stored = 0
    for _ in range(min(max(cases // 100, 6), 60)):
        begun, length = chance.uniform(0, 1.5), chance.uniform(0.5, 5.0)
        timers = [threading.Timer(begun, proxy.cut), threading.Timer(begun + length, proxy.mend)]
        for timer in timers:
            timer.start()
        store = PostgresStore(through(address, proxy))
        store.write_behind()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.CacheWarning)
            for start in range(stored, stored + 100, 4):
                store.store_many("m", TASK, many(start, start + 4))
                time.sleep(0.06)
            store.close()
        stored += 100
        for timer in timers:
            timer.join()
        assert PostgresStore(address).stats().entries == stored, (begun, length)


def look_up_until_told(store: PostgresStore, given: pytest.WarningsRecorder) -> None:
    """A look-up tells of an outage as soon as the writer has met it."""
    until = time.monotonic() + 30
    while not len(given) and time.monotonic() < until:
        assert found(store, many(0, 8)) == many(0, 8)
        time.sleep(0.02)


def test_answers_of_an_outage_are_found_before_they_are_written(address: str, proxy: Proxy) -> None:
    store = PostgresStore(through(address, proxy))
    store.write_behind()
    proxy.cut()
    store.store_many("m", TASK, many(0, 8))
    with pytest.warns(bf.CacheWarning, match="New answers are kept in memory") as given:
        look_up_until_told(store, given)
    proxy.mend()
    assert store.flush(10)
    assert PostgresStore(address).stats().entries == 8
    store.close()


def test_closing_in_an_outage_says_what_is_missing(
    address: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blendfusion.models.services.shared_stores import shared_store

    monkeypatch.setattr(shared_store, "_CLOSE_SECONDS", 0.5)
    store = PostgresStore(through(address, proxy))
    store.write_behind()
    proxy.cut()
    store.store_many("m", TASK, many(0, 8))
    with pytest.warns(bf.CacheWarning) as given:
        store.close()
    assert [w for w in given if "8 answers are not yet in the answer cache" in str(w.message)]
    proxy.mend()
    store.close()
    assert PostgresStore(address).stats().entries == 8


def test_an_object_store_that_comes_back_gets_what_it_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, down = SegmentStore(tmp_path.as_uri()), threading.Event()
    writes = SegmentStore._write

    def write(self: SegmentStore, rows: list[object]) -> int:
        if down.is_set():
            raise Unreachable("the network is down")
        return writes(self, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(SegmentStore, "_write", write)
    store.write_behind()
    down.set()
    threading.Timer(1.0, down.clear).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.CacheWarning)
        for start in range(0, 40, 4):
            store.store_many("m", TASK, many(start, start + 4))
        store.close()
    assert SegmentStore(tmp_path.as_uri()).stats().entries == 40


def test_batches_do_not_wait_for_a_store_that_is_far(address: str) -> None:
    """20 batches, each of which would wait for a way of 0.1 s, wait for it together."""
    with Proxy(port_of(address), latency=0.1) as proxy:
        store = PostgresStore(through(address, proxy))
        store.write_behind()
        begun = time.monotonic()
        for start in range(0, 80, 4):
            store.store_many("m", TASK, many(start, start + 4))
        assert time.monotonic() - begun < 0.5
        store.close()
    assert PostgresStore(address).stats().entries == 80


NO_ROOM = f"""
CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN
RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION refuse()"""


READ_ONLY = "ALTER DATABASE {} SET default_transaction_read_only = "


def use(store: SharedStore) -> None:
    """Answers that are stored are found, and so are new ones."""
    for _ in range(3):
        store.store_many("m", TASK, many(5, 7))
        for _ in range(2):
            assert found(store, many(0, 7)) == many(0, 7)
        time.sleep(0.2)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    ("trouble", "end", "words"),
    [
        (NO_ROOM, f"DROP TRIGGER refuse ON {TABLE}", "Make room on the disk"),
        (f"{READ_ONLY} on", f"{READ_ONLY} off", "not its standby"),
        (f"BEGIN; LOCK TABLE {TABLE} IN SHARE MODE", "ROLLBACK", "somebody holds a lock"),
    ],
)
def test_what_can_only_not_be_written_is_read(
    address: str, trouble: str, end: str, words: str, behind: bool
) -> None:
    """So much later that a look-up would note the answers as used."""
    first = PostgresStore(address, clock=lambda: 1e9)
    first.store_many("m", TASK, many(0, 5))
    database = address.rpartition("/")[2]
    first._on_server(lambda c: c.execute(trouble.format(database)))
    store = PostgresStore(address, wait_seconds=0.3, clock=lambda: 2e9)
    if behind:
        store.write_behind()
    with pytest.warns(bf.CacheWarning, match=f"cannot be written: .*{words}"):
        use(store)
    first._on_server(lambda c: c.execute(end.format(database)))
    assert store.flush(30)
    assert store._problem is None
    assert PostgresStore(address).stats().entries == 7
    store.close()


def test_segments_of_a_full_disk_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SegmentStore(tmp_path.as_uri()).store_many("m", TASK, many(0, 5))

    def full(*arguments: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SegmentStore, "_add_file", full)
    store = SegmentStore(tmp_path.as_uri())
    with pytest.warns(bf.CacheWarning, match=r"cannot be written: .*No space left"):
        use(store)
    monkeypatch.undo()
    assert store.flush(30)
    assert SegmentStore(tmp_path.as_uri()).stats().entries == 7


def test_sessions_write_behind_their_batches(address: str) -> None:
    store = PostgresStore(address)
    bf.connect(None, cache=store).close()
    assert store._is_behind


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda a: a.rpartition("/")[0] + "/nowhere",
            r'database "nowhere" does not exist.*createdb',
        ),
        (lambda a: a + "?sslmode=require", r"SSL.*\?sslmode=require or verify-full"),
        (lambda a: a.replace("tester", "nobody_here"), r"(password|role).*user"),
    ],
)
def test_what_is_wrong_with_an_address_is_named(address: str, change: object, words: str) -> None:
    assert callable(change)
    store = PostgresStore(change(address))
    with pytest.warns(bf.CacheWarning, match=words) as given:
        store.get_many("m", TASK, list(many(0, 1)))
    assert all("whether the server runs" not in str(w.message) for w in given)
    store.close()
