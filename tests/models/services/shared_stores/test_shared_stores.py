"""Stores that processes share, each kind of them: at once, damaged, out of reach, copied."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PASSWORD, new_database, url_of
from stored_answers import TASK, found, many
from stores import KINDS, TIMED_KINDS, opened, place

from blendfusion.apps.cli.jsonl import entries_of, lines_of
from blendfusion.errors import CacheWarning, OptionError
from blendfusion.models.services.shared_stores import shared_store
from blendfusion.models.services.shared_stores.kept_rows import KeptRows
from blendfusion.models.services.shared_stores.postgres import TABLE, PostgresStore
from blendfusion.models.services.shared_stores.segments import SegmentStore
from blendfusion.models.services.shared_stores.shared_store import SharedStore
from blendfusion.models.stores.address import without_secrets
from blendfusion.models.stores.entry import Entry, row_of
from blendfusion.models.stores.key import KEY_BYTES
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.models.stores.store_names import store_for
from blendfusion.types import Answer

SUPPORT = str(Path(__file__).parents[3] / "support")


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return place(request.param, tmp_path)


@pytest.fixture
def database() -> Iterator[PostgresStore]:
    store = PostgresStore(new_database())
    yield store
    store.close()


@pytest.fixture
def segments(tmp_path: Path) -> SegmentStore:
    return SegmentStore(tmp_path.as_uri())


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


# --- several at once -----------------------------------------------------------------------------

WORKER = """
import random, sys, threading
sys.path.insert(0, {folder!r})
from stored_answers import TASK, found, right
from stores import opened

store = opened({place!r})
wrong = []

def work(seed):
    rng = random.Random(seed)
    mine = {{}}
    for _ in range({rounds}):
        batch = {{(f"value {{rng.randrange({values})}}",): None for _ in range(rng.randint(1, 64))}}
        batch = {{v: right(v[0]) for v in batch}}
        if rng.random() < 0.5:
            store.store_many("m", TASK, batch)
            mine.update(batch)
        else:
            known = found(store, batch | mine)
            if not known.items() <= (batch | mine).items():
                wrong.append("a wrong answer")
            if not mine.items() <= known.items():
                wrong.append("an answer was lost")

threads = [threading.Thread(target=work, args=({seed} * 4 + i,)) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
store.close()
print(wrong)
"""


@pytest.mark.long
def test_two_processes_with_four_threads_each_share_answers(where: str) -> None:
    codes = [
        WORKER.format(
            folder=SUPPORT,
            place=where,
            rounds=40 if "sqlite" in where else 15,
            values=3_000,
            seed=number,
        )
        for number in (0, 1)
    ]
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for code in codes
    ]
    for process in running:
        out, err = process.communicate(timeout=300)
        assert (out.strip(), err) == ("[]", "")
    store = opened(where)
    everything = many(0, 3_000)
    known = found(store, everything)
    assert known.items() <= everything.items()
    assert len(known) == store.stats().entries > 300
    store.close()


STRESS = """
import random, sys, threading, time
sys.path.insert(0, {folder!r})
from stored_answers import TASK, found, many
from stores import opened
stores = [opened({place!r}) for _ in range(2)]
end = time.time() + {seconds}
wrong = []

def work(number):
    rng, store = random.Random(number), stores[number % 2]
    while time.time() < end:
        start = rng.randrange(3_000)
        batch, what = many(start, start + rng.randrange(1, 60)), rng.random()
        if what < 0.45:
            store.store_many("m", TASK, batch)
        elif what < 0.9:
            if not found(store, batch).items() <= batch.items():
                wrong.append("a wrong answer")
        elif what < 0.95:
            store.clear()
        else:
            store.close()

threads = [threading.Thread(target=work, args=({seed} * 8 + i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for store in stores: store.close()
print(wrong)
"""


class OrderedLock:
    """A lock that must not be taken by a thread that holds ``inner`` alone."""

    def __init__(self, lock: Any, inner: OrderedLock | None = None) -> None:
        self.lock, self.inner, self.depth = lock, inner, 0

    def __enter__(self) -> None:
        assert self.depth or self.inner is None or not self.inner.depth, "the other order"
        self.lock.acquire()
        self.depth += 1

    def __exit__(self, *exception: object) -> None:
        self.depth -= 1
        self.lock.release()


@pytest.mark.parametrize("is_behind", [False, True])
def test_locks_are_taken_in_one_order(segments: SegmentStore, is_behind: bool) -> None:
    """Else a thread that closes the store and one that writes wait for each other."""
    store: Any = segments
    store._lock = OrderedLock(store._lock)
    store._write_lock = OrderedLock(store._write_lock, store._lock)
    if is_behind:
        store.write_behind()
        store._wake = lambda: None  # all in this thread
    store.store_many("m", TASK, many(0, 3))
    assert found(store, many(0, 6)) == many(0, 3)
    store.store_many("m", TASK, many(3, 6))
    assert store.flush()
    assert store.earlier("m", TASK, 1)
    store.clear("n")
    store.close()
    assert store.stats().entries == 6


@pytest.mark.long
@pytest.mark.parametrize("kind", TIMED_KINDS)
def test_three_processes_forget_close_and_make_the_place_together(
    kind: str, tmp_path: Path, cases: int
) -> None:
    """Each round begins with nothing: two stores and eight threads in every process."""
    for number in range(max(2, cases // 1000) if kind == "file" else 1):
        where = place(kind, tmp_path / str(number))
        running = [
            subprocess.Popen(
                [
                    *(sys.executable, "-W", "error", "-c"),
                    STRESS.format(folder=SUPPORT, place=where, seconds=0.3, seed=number * 3 + n),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for n in range(3)
        ]
        for process in running:
            assert process.communicate(timeout=300) == ("[]\n", "")
        if kind == "file":
            assert [file.name for file in Path(where).parent.iterdir()] == [Path(where).name]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")  # where another test has imported it
def test_a_forked_process_goes_on_by_itself(where: str) -> None:
    store = opened(where)
    store.store_many("m", TASK, many(0, 10))

    def child() -> None:
        store.store_many("m", TASK, many(10, 20))
        assert found(store, many(0, 20)) == many(0, 20)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest may have threads
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    process.join(120)
    assert process.exitcode == 0
    assert found(store, many(0, 20)) == many(0, 20)
    store.close()


# --- copies --------------------------------------------------------------------------------------


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    ("kind", "target"), [("file", "postgres"), ("postgres", "segments"), ("segments", "file")]
)
def test_a_copy_as_lines_holds_the_same(kind: str, target: str, tmp_path: Path) -> None:
    store, other = opened(place(kind, tmp_path)), opened(place(target, tmp_path / "copy"))
    assert isinstance(store, SqliteStore | SharedStore)
    assert isinstance(other, SqliteStore | SharedStore)
    store.store_many("m", TASK, many(0, 900))
    store.store_many("n", TASK, {("odd",): Answer(None, "length", float("-inf"))})
    lines = list(lines_of(store.entries()))
    assert len(lines) == 902
    assert other.add(entries_of(lines)) == 901
    assert other.add(entries_of(lines)) == 0
    assert list(lines_of(other.entries())) == lines
    assert found(other, many(0, 901)) == many(0, 900)
    assert (other.stats().entries, other.stats().models) == (901, 2)
    store.close()
    other.close()


# --- damage --------------------------------------------------------------------------------------


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    "change",
    [
        "text = 'answer to value 9'",
        "text = NULL",
        "text = '\\xff'",
        "finish = 'length'",
        "logprob = logprob - 1",
        "logprob = NULL",
        "mark = mark + 1",
        "key = set_byte(key, 23, get_byte(key, 23) # 1)",
    ],
)
def test_a_row_that_somebody_changed_is_asked_again(database: PostgresStore, change: str) -> None:
    database.store_many("m", TASK, many(0, 9))
    sql = f"UPDATE {TABLE} SET {change} WHERE mod(mark, 2) = 0"
    assert database._on_server(lambda c: c.execute(sql).rowcount) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        known = found(database, many(0, 9))
        assert known.items() < many(0, 9).items()
        database.store_many("m", TASK, many(0, 9))
        assert found(database, many(0, 9)) == many(0, 9), "damaged rows made room for right ones"


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    "change",
    [
        "text TYPE text USING encode(text, 'escape')",
        "logprob TYPE text",
        "logprob TYPE numeric",
        "used TYPE text",
        "used TYPE numeric",
        "mark TYPE text",
        "key TYPE text USING encode(key, 'hex')",
    ],
)
def test_a_column_of_another_type_gives_no_wrong_answer(
    database: PostgresStore, change: str
) -> None:
    database.store_many("m", TASK, many(0, 9))
    database._on_server(lambda c: c.execute(f"ALTER TABLE {TABLE} ALTER {change}"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert found(database, many(0, 9)).items() <= many(0, 9).items()
        database.earlier("m", TASK, 9)
        database.stats()
    assert {warning.category for warning in caught} <= {CacheWarning}


@pytest.mark.parametrize("seed", range(9))
def test_damage_to_a_segment_is_never_a_wrong_answer(
    segments: SegmentStore, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    for start in range(0, 400, 100):
        segments.store_many("m", TASK, many(start, start + 100))
    spoiled = rng.choice(files(tmp_path))
    data = bytearray(spoiled.read_bytes())
    position = rng.randrange(len(data))
    if seed % 3 == 0:
        data = data[:position]
    elif seed % 3 == 1:
        data[position] ^= 1 << rng.randrange(8)
    else:
        data[position : position + 512] = bytes(len(data[position : position + 512]))
    spoiled.write_bytes(data)
    store = SegmentStore(tmp_path.as_uri())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CacheWarning)
        known = found(store, many(0, 400))
    same = bytes(data) == spoiled.read_bytes() and len(known) == 400
    assert same or ["damaged segment" in str(w.message) for w in caught] == [True]
    assert known.items() <= many(0, 400).items()
    assert len(known) >= 300
    store.store_many("m", TASK, many(0, 400))
    assert found(store, many(0, 400)) == many(0, 400)


def test_a_file_of_somebody_else_is_no_segment(segments: SegmentStore, tmp_path: Path) -> None:
    segments.store_many("m", TASK, many(0, 3))
    (files(tmp_path)[0].parent / "notes-1-2-3.parquet").write_text("hello")
    with pytest.warns(CacheWarning, match="damaged segment"):
        assert found(SegmentStore(tmp_path.as_uri()), many(0, 3)) == many(0, 3)


# --- segments ------------------------------------------------------------------------------------


def test_many_small_segments_become_few(segments: SegmentStore, tmp_path: Path) -> None:
    for i in range(300):
        segments.store_many("m", TASK, many(i, i + 1))
    assert len(files(tmp_path)) < 50
    assert found(segments, many(0, 301)) == many(0, 300)
    again = SegmentStore(tmp_path.as_uri())
    assert found(again, many(0, 301)) == many(0, 300)
    assert again.stats().entries == 300


def test_a_killed_writer_leaves_no_segment(segments: SegmentStore, tmp_path: Path) -> None:
    segments.store_many("m", TASK, many(0, 3))
    (files(tmp_path)[0].parent / ".0000000000001-1-aa-bb.parquet.part").write_bytes(b"PAR1")
    assert found(SegmentStore(tmp_path.as_uri()), many(0, 5)) == many(0, 3)


def test_merging_brings_nothing_back_that_was_forgotten(tmp_path: Path) -> None:
    one, two = SegmentStore(tmp_path.as_uri()), SegmentStore(tmp_path.as_uri())
    for i in range(15):
        one.store_many("m", TASK, many(i, i + 1))
    add = one._add_file

    def slow_add_file(*arguments: object) -> str:
        name = add(*arguments)  # type: ignore[arg-type]
        if len(one._shelves and next(iter(one._shelves.values())).held) > 16:
            two.clear()
            add(*arguments)  # type: ignore[arg-type]
        return name

    one._add_file = slow_add_file  # type: ignore[method-assign]
    one.store_many("m", TASK, many(15, 16))
    assert len(found(two, many(0, 16))) <= 16
    two.clear()
    assert found(SegmentStore(tmp_path.as_uri()), many(0, 16)) == {}


# --- out of reach --------------------------------------------------------------------------------


@pytest.mark.xdist_group("postgres")
def test_a_server_that_comes_back_gets_what_it_missed(
    database: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.store_many("m", TASK, many(0, 3))
    database.close()
    there, database._url = database._url, url_of("postgres").replace("127.0.0.1:", "127.0.0.1:1")
    with pytest.warns(CacheWarning, match=r"cannot be used: .*New answers are kept in memory"):
        database.store_many("m", TASK, many(3, 6))
    assert found(database, many(0, 6)) == many(3, 6)
    database._url = there
    monkeypatch.setattr(shared_store, "_PAUSE_SECONDS", 0.0)
    database._read_at = database._write_at = 0.0
    assert found(database, many(0, 6)) == many(0, 6)
    assert PostgresStore(there).stats().entries == 6


@pytest.mark.xdist_group("postgres")
def test_a_connection_that_the_server_ends_is_opened_again(database: PostgresStore) -> None:
    database.store_many("m", TASK, many(0, 3))
    killer = PostgresStore(database._url)
    killer._read(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()",
        (),
    )
    killer.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found(database, many(0, 3)) == many(0, 3)


@pytest.mark.xdist_group("postgres")
def test_who_may_only_read_reads(database: PostgresStore) -> None:
    database.store_many("m", TASK, many(0, 3))
    database._on_server(lambda c: c.execute("DROP ROLE IF EXISTS reader"))
    database._on_server(lambda c: c.execute("CREATE ROLE reader LOGIN PASSWORD 'r'"))
    database._on_server(lambda c: c.execute(f"GRANT SELECT ON {TABLE} TO reader"))
    reader = PostgresStore(database._url.replace("tester:p%40ss%3Aw%2Frd", "reader:r"))
    assert found(reader, many(0, 3)) == many(0, 3)
    with pytest.warns(CacheWarning, match=r"cannot be written: permission denied.*Grant this user"):
        reader.store_many("m", TASK, many(3, 6))
    assert found(reader, many(0, 6)) == many(0, 6)
    assert found(database, many(0, 6)) == many(0, 3)
    reader.close()
    database._on_server(lambda c: c.execute("DROP OWNED BY reader; DROP ROLE reader"))


@pytest.mark.xdist_group("postgres")
def test_a_wrong_password_is_told_and_none_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    store = PostgresStore(url_of(password="wrong%2Fsecret"))
    with pytest.warns(CacheWarning, match=r"authentication failed.*Set PGPASSWORD") as caught:
        store.store_many("m", TASK, many(0, 3))
    right = PostgresStore(url_of())
    shown = f"{caught[0].message} {store!r} {store.path} {right!r} {capsys.readouterr()}"
    for secret in ("wrong/secret", "wrong%2Fsecret", PASSWORD, "p%40ss"):
        assert secret not in shown
    assert "tester:***@127.0.0.1" in shown


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SegmentStore((tmp_path / "file").as_uri())
    with pytest.warns(CacheWarning, match=r"cannot be used: .*Check the address, the rights"):
        store.store_many("m", TASK, many(0, 3))
    assert found(store, many(0, 3)) == many(0, 3)


@pytest.mark.parametrize(
    "address", ["postgresql://ann:hush@h/x?nonsense=1", "gopher://ann:hush@h/x", "file://x/y z"]
)
def test_wrong_addresses(address: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(OptionError, match=r"is no address of .*\nHint: Write") as caught:
        store_for(address, 10)
    assert "hush" not in str(caught.value)


def test_no_address_shows_a_secret() -> None:
    for address in (
        "postgresql://ann:hush@db:5432/x",
        "postgresql://ann@db/x?password=hush",
        "postgresql://ann:hu%20sh@[::1]/x",
        "postgresql://ann:hu@sh@db/x",
        "s3://key:hush@bucket/x?region=eu",
        "postgresql://ann:hush@[broken",
    ):
        assert "hu" not in without_secrets(address).replace("***", "")


def test_rows_that_wait_outlive_their_process_and_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keys = [bytes([n]) * KEY_BYTES for n in range(4)]
    made = [row_of(Entry(keys[n], Answer("é\n{", "stop", -0.1 - n), 1)) for n in range(4)]
    rows = [row for row in made if row is not None]
    killed = KeptRows("here")
    killed.add(rows[:2])
    killed.add(rows)
    (file,) = (tmp_path / "blendfusion" / "unwritten").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert KeptRows("elsewhere").take() == []
    assert KeptRows("here").take() == rows
    whole = file.read_bytes()
    for cut in range(0, len(whole), 7):  # wherever it was killed
        file.write_bytes(whole[:cut])
        assert KeptRows("here").take() == rows[: whole[: cut + 1].count(b"\n")]
        file.write_bytes(whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :])
        left = KeptRows("here").take()
        assert {row[:4] for row in left} <= {row[:4] for row in rows}  # not the time of use
    file.write_bytes(whole)
    reader = KeptRows("here")
    assert reader.take() == rows
    file.write_bytes(whole + b"more")
    reader.clear()
    assert file.exists()  # its process is alive
    assert len(reader.take()) == 4
    reader.clear()
    assert not file.exists()


def test_a_machine_that_cannot_be_written_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    kept = KeptRows("here")
    row = row_of(Entry(bytes(KEY_BYTES), Answer("a"), 1))
    assert row is not None
    kept.add([row])
    kept.clear()
    assert KeptRows("here").take() == []
