"""Files with values are for their owner only; two manifests share no file; threads share a path."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.models.services.shared_stores.segments import SegmentStore
from blendfusion.places.whole_file import replacing, write_private
from blendfusion.services.replay.manifest import Manifest, beside
from blendfusion.types import Answer, Constraint, Task


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def bits(path: Path) -> int:
    return path.stat().st_mode & 0o777


def frame_of(number: int) -> bf.Frame:
    session = bf.connect(bf.ScriptedModel(lambda call: number, fingerprint="f"), cache=None)
    session.from_pydict({"x": ["a"]}, name="t")
    return session.sql("SELECT llm_int('How many?', x) AS n FROM t")


def test_the_page_of_a_trace_is_private(tmp_path: Path) -> None:
    frame = frame_of(1)
    frame.to_pylist()
    page = tmp_path / "page.html"
    page.write_text("old")
    page.chmod(0o666)
    frame.trace.to_html(page)
    assert bits(page) == 0o600
    assert "<html" in page.read_text()


def test_segments_are_private_where_their_folder_is_made(tmp_path: Path) -> None:
    store = SegmentStore((tmp_path / "shared" / "answers").as_uri())
    task = Task("llm_int", "How many?", Constraint("integer"), ("x",))
    store.store_many("m", task, {("a",): Answer("7")})
    store.close()
    made = [tmp_path / "shared", *(tmp_path / "shared").rglob("*")]
    assert {bits(path) for path in made if path.is_dir()} == {0o700}
    assert {bits(path) for path in made if path.is_file()} == {0o600}


def test_segments_in_a_folder_of_a_team_are_the_teams(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    folder.chmod(0o750)
    store = SegmentStore(folder.as_uri())
    store.store_many(
        "m", Task("llm_int", "q", Constraint("integer"), ("x",)), {("a",): Answer("7")}
    )
    store.close()
    assert bits(folder) == 0o750


def test_manifests_with_other_names_have_other_files(tmp_path: Path) -> None:
    for number, name in enumerate(("run.v1", "run.v2", "run.json", "other.json")):
        frame_of(number).manifest().save(tmp_path / name)
    for number, name in enumerate(("run.v1", "run.v2", "run.json", "other.json")):
        assert Manifest.load(tmp_path / name).result.to_pylist() == [{"n": number}]
    assert {bits(path) for path in tmp_path.iterdir()} == {0o600}


def test_a_manifest_with_files_of_earlier_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.v1"
    frame_of(3).manifest().save(path)
    for file, ending in zip(beside(path), ("answers.jsonl", "result.arrow"), strict=True):
        file.rename(tmp_path / f"run.{ending}")
    assert Manifest.load(path).result.to_pylist() == [{"n": 3}]


def test_threads_may_save_one_path(tmp_path: Path) -> None:
    file, failed = tmp_path / "one.json", []
    contents = [bytes([n]) * 50_000 for n in range(4)]

    def save(content: bytes) -> None:
        try:
            for _ in range(50):
                write_private(file, content)
                with replacing(file) as part:
                    part.write_bytes(content)
        except OSError as problem:
            failed.append(problem)

    threads = [threading.Thread(target=save, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert file.read_bytes() in contents
    assert [*tmp_path.iterdir()] == [file]
