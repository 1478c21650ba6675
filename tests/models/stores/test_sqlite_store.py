"""The file of stored answers: what it holds, what it survives, and who may use it at once."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import shutil
import sqlite3
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from stored_answers import TASK, found, many

from blendfusion.apps.cli.jsonl import WrongLine, entries_of, lines_of
from blendfusion.errors import CacheWarning
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores import sqlite, sqlite_file
from blendfusion.models.stores.entry import REFRESHED_AFTER_SECONDS
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.types import Answer

SECRET = "the patient's name"


def filled(path: Path, entries: int = 500) -> SqliteStore:
    store = SqliteStore(path)
    store.store_many("m", TASK, many(0, entries))
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "answers.sqlite"


def aside(path: Path) -> list[str]:
    """Files that were set aside, without SQLite's companions."""
    names = [file.name for file in path.parent.glob("*.corrupt-*")]
    return [name for name in names if not name.endswith(("-wal", "-shm"))]


# --- what is in the file -------------------------------------------------------------------------


def test_a_look_up_makes_no_file(path: Path) -> None:
    store = SqliteStore(path)
    assert store.get_many("m", TASK, [("a",)]) == {}
    assert store.earlier("m", TASK, 3) == []
    assert list(store.entries()) == []
    assert store.stats().entries == 0
    store.clear()
    assert not path.parent.exists()


def test_only_the_owner_may_read_it_and_it_holds_no_question_and_no_value(path: Path) -> None:
    store = SqliteStore(path)
    store.store_many(SECRET, replace(TASK, question=SECRET), {(SECRET,): Answer("7")})
    files = list(path.parent.iterdir())
    assert {file.name for file in files} == {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    if os.name == "posix":
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not any(b"patient" in file.read_bytes() for file in files)
    store.close()


@pytest.mark.parametrize("every", [1, 2])
def test_many_are_found_among_others(path: Path, every: int) -> None:
    """Where most of what lies near is wanted it is scanned, else each key is looked up."""
    store = filled(path, 4_000)
    wanted = dict(list(many(0, 5_000).items())[::every])
    assert found(store, wanted) == {v: a for v, a in many(0, 4_000).items() if v in wanted}


def test_the_first_answer_to_a_key_stays(path: Path) -> None:
    store = filled(path, 1)
    store.store_many("m", TASK, {("value 0",): Answer("another")})
    assert found(store, many(0, 1)) == many(0, 1)
    store.close()


def test_text_that_no_database_holds_is_left_out(path: Path) -> None:
    store = SqliteStore(path)
    store.store_many("m", TASK, {("a",): Answer("\ud800"), ("\ud800",): Answer("b")})
    assert found(store, {("a",): Answer(""), ("\ud800",): Answer("")}) == {("\ud800",): Answer("b")}
    store.close()


def test_nothing_of_forgotten_answers_is_left_in_the_files(path: Path) -> None:
    store = SqliteStore(path)
    store.store_many("m", TASK, {("a",): Answer(SECRET)})
    store.clear("m")
    assert not any(b"patient" in file.read_bytes() for file in path.parent.iterdir())
    store.close()


def test_a_store_that_nobody_closes_lets_go_of_its_file(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        filled(path, 1)
        gc.collect()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# --- room ----------------------------------------------------------------------------------------


def test_the_least_recently_used_answers_go_first(path: Path) -> None:
    now = [1_000_000_000.0]
    store = SqliteStore(path, limit_mb=1, clock=lambda: now[0])
    kept, text = many(0, 100), "x" * 200
    store.store_many("m", TASK, kept)
    for batch in range(200):
        now[0] += REFRESHED_AFTER_SECONDS + 1
        answers: dict[Values, Answer] = {(f"{batch} {i}",): Answer(text) for i in range(100)}
        store.store_many("m", TASK, answers)
        assert found(store, answers) == answers, "what was just kept is there"
        assert found(store, kept) == kept, "what is used every day stays"
        assert store.stats().bytes <= 1_000_000
    assert store.get_many("m", TASK, [(f"0 {i}",) for i in range(100)]) == {}
    assert store.stats().entries > 2_000
    store.close()
    assert path.stat().st_size <= 1_100_000


def test_a_look_up_writes_the_time_of_its_use_once_a_day(path: Path) -> None:
    now = [1_000_000_000.0]
    store = SqliteStore(path, clock=lambda: now[0])
    store.store_many("m", TASK, many(0, 3))
    for seconds, expected in (
        (REFRESHED_AFTER_SECONDS, 1_000_000_000),
        (1, 1_000_000_000 + REFRESHED_AFTER_SECONDS + 1),
        (10, 1_000_000_000 + REFRESHED_AFTER_SECONDS + 1),
    ):
        now[0] += seconds
        found(store, many(0, 3))
        assert store.stats().oldest == expected
    store.close()


# --- damage --------------------------------------------------------------------------------------


def spoil(path: Path, how: Callable[[bytearray], bytes | bytearray]) -> None:
    path.write_bytes(how(bytearray(path.read_bytes())))


def test_garbage_is_set_aside_with_one_warning(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 100)
    store = SqliteStore(path)
    with pytest.warns(CacheWarning, match=r"damaged .*answers\.sqlite\.corrupt-") as caught:
        assert store.get_many("m", TASK, [("a",)]) == {}
    assert len(caught) == 1
    assert len(aside(path)) == 1
    assert (path.parent / aside(path)[0]).read_bytes().startswith(b"no database at all")
    store.store_many("m", TASK, many(0, 5))
    assert found(store, many(0, 9)) == many(0, 5)
    store.close()


@pytest.mark.parametrize("seed", range(24))
def test_damage_anywhere_is_never_a_wrong_answer_nor_a_crash(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    filled(path, 2_000).close()

    def cut(data: bytearray) -> bytearray:
        return data[: rng.randrange(len(data))]

    def flipped(data: bytearray) -> bytearray:
        for _ in range(rng.choice([1, 10, 1000])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return data

    def zeroed(data: bytearray) -> bytearray:
        start = rng.randrange(len(data))
        data[start : start + 4096] = bytes(len(data[start : start + 4096]))
        return data

    spoil(path, [cut, flipped, zeroed][seed % 3])
    asked = many(0, 2_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        store = SqliteStore(path)
        assert found(store, asked).items() <= asked.items()
        store.store_many("m", TASK, asked)
        assert found(store, asked).items() <= asked.items()
        store.earlier("m", TASK, 10)
        store.stats()
        # Answers that were lost can be kept again, in the file or in memory.
        known = found(store, asked)
        store.store_many("m", TASK, {v: a for v, a in asked.items() if v not in known})
        list(store.entries())
        store.close()


def test_a_flipped_bit_in_a_text_is_seen(path: Path) -> None:
    filled(path, 3).close()
    spoil(path, lambda data: data.replace(b"answer to value 1", b"answer to value 9"))
    store = SqliteStore(path)
    with pytest.warns(CacheWarning, match="an answer is not as it was written"):
        assert found(store, many(0, 3)).items() <= many(0, 3).items()
    assert len(aside(path)) == 1
    store.close()


READS: dict[str, Callable[[SqliteStore], object]] = {
    "answers": lambda store: found(store, many(0, 3)),
    "entries": lambda store: list(store.entries()),
    "stats": lambda store: store.stats(),
    "earlier": lambda store: store.earlier("m", TASK, 10),
}
OTHER_VALUES = ("'soon'", "''", "x'00ff'", "1.5", "7", "9e999", "-9e999")


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("column", ["key", "text", "finish", "logprob", "used", "mark"])
def test_a_value_of_another_type_is_damage(path: Path, column: str, read: str) -> None:
    """SQLite holds a value of any type in any column."""
    for value in OTHER_VALUES:
        filled(path, 3).close()
        with closing(sqlite3.connect(path)) as connection, connection:
            first = connection.execute("SELECT min(key) FROM answers").fetchone()[0]
            connection.execute(f"UPDATE answers SET {column} = {value} WHERE key = ?", [first])
        store = SqliteStore(path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            READS[read](store)
            assert found(store, many(0, 3)).items() <= many(0, 3).items()
        assert {str(warning.category.__name__) for warning in caught} <= {"CacheWarning"}
        store.close()
        for file in path.parent.iterdir():
            file.unlink()


@pytest.mark.parametrize(
    "read",
    [
        lambda store: found(store, many(0, 3)),
        lambda store: list(store.entries()),
        lambda store: store.stats(),
    ],
)
def test_a_time_that_is_no_number_is_damage(
    path: Path, read: Callable[[SqliteStore], object]
) -> None:
    filled(path, 3).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE answers SET used = 'soon'")
    store = SqliteStore(path)
    with pytest.warns(CacheWarning, match="an answer is not as it was written"):
        read(store)
    assert len(aside(path)) == 1
    store.close()


def test_the_log_of_a_damaged_file_never_meets_the_new_one(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"x" * 8192)
    path.with_name(path.name + "-wal").write_bytes(b"the log of old answers")
    store = SqliteStore(path)
    with pytest.warns(CacheWarning, match="damaged"):
        store.store_many("m", TASK, many(0, 2))
    assert found(store, many(0, 500)) == many(0, 2)
    log = path.with_name(path.name + "-wal")
    assert b"the log of old answers" not in log.read_bytes()
    assert len(aside(path)) == 1
    store.close()


def _replace(path: Path) -> None:
    other = path.with_name("other.sqlite")
    filled(other, 1).close()
    other.replace(path)


REMOVALS: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: [file.unlink() for file in path.parent.iterdir()],
    "removed without its log": Path.unlink,
    "renamed": lambda path: path.rename(path.with_name("old.sqlite")),
    "replaced": _replace,
}


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("is_away", [False, True])
def test_what_comes_after_an_open_file_was_removed_is_stored(
    path: Path, removal: str, is_away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went into the file that nobody finds any more. ``is_away``: the program is in another
    folder by then."""
    store = filled(path, 3)
    assert len(found(store, many(0, 3))) == 3
    if is_away:
        monkeypatch.chdir(path.parent.parent)
    REMOVALS[removal](path)
    store.store_many("m", TASK, many(3, 6))
    later = SqliteStore(path)
    assert many(3, 6).items() <= found(later, many(0, 6)).items()
    assert many(3, 6).items() <= found(store, many(0, 6)).items()
    store.close()
    later.store_many("m", TASK, many(6, 9))
    assert many(3, 9).items() <= found(later, many(0, 9)).items()
    later.close()


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
def test_a_folder_that_is_gone_is_not_made_again(path: Path) -> None:
    """Who removes a folder of answers, as the end of a cluster does, wants none there. One that was
    renamed has what came afterwards."""
    store = filled(path, 3)
    other = path.parent.rename(path.parent.with_name("old"))
    store.store_many("m", TASK, many(3, 6))
    assert not path.parent.exists()
    renamed = SqliteStore(other / path.name)
    assert found(renamed, many(0, 6)) == many(0, 6)
    renamed.close()
    shutil.rmtree(other)
    store.store_many("m", TASK, many(6, 9))
    assert found(store, many(6, 9)) == many(6, 9)
    store.close()
    assert not path.parent.exists()
    assert not other.exists()


def test_a_file_that_another_process_set_aside_is_not_set_aside_again(path: Path) -> None:
    first = filled(path)
    first.close()
    spoil(path, lambda data: data[:100] + bytes(len(data) - 100))
    first, second = SqliteStore(path), SqliteStore(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        second._open.append(sqlite3.connect(path, check_same_thread=False, isolation_level=None))
        second._identity = (path.stat().st_dev, path.stat().st_ino)
        first.store_many("m", TASK, many(0, 3))
        second.store_many("m", TASK, many(3, 6))
    assert len(aside(path)) == 1
    assert found(first, many(0, 6)) == many(0, 6)
    first.close()
    second.close()


# --- files that cannot be used -------------------------------------------------------------------


def in_memory_with_one_warning(store: SqliteStore, reason: str) -> None:
    with pytest.warns(CacheWarning, match=reason) as caught:
        store.store_many("m", TASK, many(0, 10))
    assert len(caught) == 1
    store.store_many("m", TASK, many(10, 20))
    assert found(store, many(0, 20)) == many(0, 20)
    assert len(store.earlier("m", TASK, 100)) >= 20
    store.close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    in_memory_with_one_warning(
        SqliteStore(tmp_path / "file" / "answers.sqlite"), "directory|exists"
    )


NOBODY = 65534


def _without_rights(work: Callable[[], None]) -> None:
    """Run this in a process that rights bind: those of the superuser are given up."""

    def child() -> None:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        work()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest may have threads
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    process.join(120)
    assert process.exitcode == 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read: pytest's own are its user's alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")  # where another test has imported it
@pytest.mark.parametrize("log", [False, True], ids=["closed", "with a log"])
@pytest.mark.parametrize("writable", [False, True], ids=["", "file writable"])
def test_a_folder_that_is_read_only_is_read(open_folder: Path, log: bool, writable: bool) -> None:
    path = open_folder / "answers.sqlite"
    filled(path, 30).close()
    if log:  # of a process that was killed
        (open_folder / f"{path.name}-wal").write_bytes(b"")
    for file in open_folder.iterdir():
        file.chmod(0o666 if writable else 0o444)
    open_folder.chmod(0o555)

    def work() -> None:
        store = SqliteStore(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert found(store, many(0, 40)) == many(0, 30)
            assert store.stats().entries == 30
            assert len(list(store.entries())) == 30
        in_memory_with_one_warning(store, r"cannot be written: .*\. Stored answers are used; new")

    _without_rights(work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
def test_a_file_that_nobody_may_read(open_folder: Path) -> None:
    path = open_folder / "answers.sqlite"
    filled(path, 30).close()
    path.chmod(0)
    open_folder.chmod(0o555)

    def work() -> None:
        in_memory_with_one_warning(SqliteStore(path), r"cannot be used: .*\. New answers are kept")

    if os.geteuid() == 0:
        _without_rights(work)


def test_a_full_disk(path: Path) -> None:
    store = filled(path, 300)
    pages = store._open[0].execute("PRAGMA page_count").fetchone()[0]
    store._open[0].execute(f"PRAGMA max_page_count = {pages}")
    with pytest.warns(CacheWarning, match="full"):
        store.store_many("m", TASK, many(300, 3_000))
    assert found(store, many(0, 3_000)) == many(0, 3_000)
    store.close()


def test_another_process_that_never_ends_writing(path: Path) -> None:
    filled(path, 30).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = SqliteStore(path, wait_seconds=0.05)
    with pytest.warns(CacheWarning, match="locked"):
        store.store_many("m", TASK, many(30, 60))
    assert found(store, many(0, 60)) == many(0, 60), "reading needs no lock"
    other.close()
    store.close()


@pytest.mark.parametrize("at_close", [False, True])
def test_answers_that_met_a_lock_are_written_once_it_is_free(
    path: Path, monkeypatch: pytest.MonkeyPatch, at_close: bool
) -> None:
    filled(path, 30).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = SqliteStore(path, wait_seconds=0.05)
    with pytest.warns(CacheWarning, match="locked.*until it is free"):
        store.store_many("m", TASK, many(30, 60))
    store.store_many("m", TASK, many(60, 90))  # nobody waits again, and one warning is enough
    assert found(store, many(0, 90)) == many(0, 90)
    other.execute("ROLLBACK")
    if not at_close:
        monkeypatch.setattr(sqlite, "_LOCKED_SECONDS", 0.0)
        store.store_many("m", TASK, many(90, 120))
        assert found(SqliteStore(path), many(0, 120)) == many(0, 120)
    store.close()
    assert found(SqliteStore(path), many(0, 90)) == many(0, 90)
    other.close()


def test_a_file_that_is_locked_while_it_is_opened_is_used_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if one process made the file, and waited for the disk."""
    path.parent.mkdir()
    maker = sqlite3.connect(path, isolation_level=None)
    maker.execute("BEGIN EXCLUSIVE")
    store = SqliteStore(path, wait_seconds=0.05)
    with pytest.warns(CacheWarning, match="locked"):
        assert found(store, many(0, 30)) == {}
    maker.execute("ROLLBACK")
    maker.close()
    monkeypatch.setattr(sqlite, "_LOCKED_SECONDS", 0.0)
    store.store_many("m", TASK, many(0, 30))
    assert found(SqliteStore(path), many(0, 30)) == many(0, 30)


def test_a_database_of_something_else_is_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE customers (name)")
    theirs.close()
    before = path.read_bytes()
    in_memory_with_one_warning(SqliteStore(path), "a database of something else")
    assert path.read_bytes() == before
    assert aside(path) == []


def test_a_file_of_another_version_is_left_as_it_is(path: Path) -> None:
    filled(path, 30).close()
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    in_memory_with_one_warning(SqliteStore(path), r"another version of BlendFusion \(schema 99\)")
    assert aside(path) == []


def test_an_interrupt_in_a_transaction_harms_nothing(path: Path) -> None:
    store = filled(path, 3)
    store._open[0].execute("BEGIN IMMEDIATE")
    store._open[0].execute("DELETE FROM answers")
    store.store_many("m", TASK, many(3, 5))
    assert found(store, many(0, 5)) == many(0, 5)
    store.close()


# --- several at once -----------------------------------------------------------------------------


def test_no_store_opens_a_file_while_another_makes_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor with which a file is made takes all locks of the process with it."""
    other, opened = SqliteStore(path), threading.Event()

    def put() -> None:
        other.store_many("m", TASK, many(0, 10))
        opened.set()

    close = os.close

    def slow_close(descriptor: int) -> None:
        thread = threading.Thread(target=put)
        thread.start()
        early.append(opened.wait(0.5))
        close(descriptor)
        threads.append(thread)

    early: list[bool] = []
    threads: list[threading.Thread] = []
    monkeypatch.setattr(sqlite_file.os, "close", slow_close)
    store = filled(path, 20)
    for thread in threads:
        thread.join()

    assert early == [False]
    assert found(other, many(0, 20)) == found(store, many(0, 20)) == many(0, 20)
    store.close()
    other.close()


def test_stores_of_one_process_may_make_the_file_together(path: Path) -> None:
    stores = [SqliteStore(path) for _ in range(8)]
    begin = threading.Barrier(8)

    def work(number: int) -> None:
        begin.wait()
        stores[number].store_many("m", TASK, many(number * 10, number * 10 + 10))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found(stores[0], many(0, 80)) == many(0, 80)
    for store in stores:
        store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")  # where another test has imported it
def test_a_forked_process_opens_the_file_anew(path: Path) -> None:
    store = filled(path, 10)
    held = store._open[0]

    def child() -> None:
        assert store._open == []
        store.store_many("m", TASK, many(10, 20))
        assert found(store, many(0, 20)) == many(0, 20)
        assert store._open[0] is not held

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest may have threads
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    process.join(120)
    assert process.exitcode == 0
    assert found(store, many(0, 20)) == many(0, 20)
    store.close()


# --- copies --------------------------------------------------------------------------------------


def test_a_copy_as_lines_holds_the_same(path: Path, tmp_path: Path) -> None:
    store, other = filled(path, 7_000), SqliteStore(tmp_path / "other.sqlite")
    store.store_many("m", TASK, {("odd",): Answer(None, "length", float("-inf"))})
    lines = list(lines_of(store.entries()))
    assert len(lines) == 7_002
    assert other.add(entries_of(lines)) == 7_001
    assert other.add(entries_of(lines)) == 0
    assert list(lines_of(other.entries())) == lines
    assert found(other, many(0, 7_000)) == many(0, 7_000)
    store.close()
    other.close()


HEADER = '{"blendfusion": "answers", "keys": 1}'
LINE = {"key": "00" * 24, "text": "x", "finish": "complete", "logprob": None, "used": 5}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "line 1: no JSON"),
        (["[]"], "line 1: no JSON object"),
        (["{}"], "line 1: not answers that"),
        (['{"blendfusion": "answers", "keys": 2}'], "line 1: keys of version 2, not 1"),
        ([HEADER, "{"], "line 2: no JSON"),
        ([HEADER, "", json.dumps(LINE | {"key": "00"})], "line 3: 'key' is not 24 bytes"),
        ([HEADER, json.dumps(LINE | {"key": "zz" * 24})], "line 2: 'key'"),
        ([HEADER, json.dumps(LINE | {"text": 5})], "line 2: 'text'"),
        ([HEADER, json.dumps(LINE | {"finish": "error"})], "line 2: 'finish'"),
        ([HEADER, json.dumps(LINE | {"logprob": "x"})], "line 2: 'logprob'"),
        ([HEADER, json.dumps(LINE | {"used": -1})], "line 2: 'used'"),
    ],
)
def test_a_line_that_is_no_answer_is_refused(lines: list[str], said: str) -> None:
    with pytest.raises(WrongLine, match=said):
        list(entries_of(lines))
