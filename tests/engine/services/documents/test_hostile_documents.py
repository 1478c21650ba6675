"""Damaged and hostile documents end neither a query nor its process, and take limited time and
memory."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_documents import hostile_files, small_files

import blendfusion as bf
from blendfusion.services.documents import process
from blendfusion.services.documents.process import _ENVIRONMENT, Reader
from blendfusion.services.documents.worker import _File

SECONDS, MEGABYTES = 5, 768


def reasons(files: list[tuple[str, bytes]], folder: Path) -> dict[str, list[str]]:
    """Why parts of each file are not read, which one query tells."""
    for name, content in files:
        (folder / name).write_bytes(content)
    session = bf.connect(None, cache=None)
    frame = session.read_documents(folder / "*", seconds=SECONDS, megabytes=MEGABYTES)
    found: dict[str, list[str]] = {name: [] for name, _ in files}
    for row in frame.to_pylist():
        if row["error"] is not None:
            assert row["kind"] == "error"
            assert "\n" not in row["error"]
            found[Path(row["file"]).name].append(row["error"])
    return found


def seconds_of_readers() -> float:
    """Of the processor, so that the load of the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


EXPECTED = {
    "cut1.pdf": None,
    "docx.pdf": "",
    "pdf.docx": "",
    "html.pdf": "it is no PDF",
    "html.docx": "it is no DOCX file",
    "zip.docx": "it is a ZIP archive, and no DOCX, PPTX, EPUB file",
    "empty.pdf": "it is empty",
    "zeros.html": "it is no text",
    "entities.docx": "its XML has a document type",
    "external.docx": "its XML has a document type",
    "deep.docx": "its XML is nested deeper",
    "circle.pdf": "page 1 cannot be read",
    "size.pdf": None,
    "cut1.pptx": None,
    "entities.pptx": "it",
    "external.pptx": "its XML has a document type",
    "zeros.pptx": "it is no PPTX file",
    "cut1.epub": "its archive is damaged",
    "entities.epub": "its XML has a document type",
    "external.epub": "its XML has a document type",
    "climbs.epub": "'../../../../etc/passwd' is not in the archive",
    "many.epub": "",
    "cut2.eml": None,
    "zeros.eml": "it is no e-mail",
    "random.eml": "it is no e-mail",
    "deep.eml": "it",
    "headers.eml": "",
    "words.eml": "",
    "base64.eml": "the coding of a part is damaged",
    "name\\..\\\n'\".txt": "",
}


def test_some_of_them_in_every_run(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (tmp_path / "files").mkdir()
    scratch.mkdir()
    files = [file for file in small_files(scratch) if file[0] in EXPECTED]
    found = reasons(files, tmp_path / "files")
    assert set(found) == set(EXPECTED)
    for name, beginning in EXPECTED.items():
        if beginning is not None:
            shown = found[name][0] if found[name] else ""
            assert shown.startswith(beginning) if beginning else not shown, name


def test_a_reader_is_not_ended_while_it_waits_for_what_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    due: dict[int, float] = {}
    monkeypatch.setattr(signal, "setitimer", due.__setitem__)
    (tmp_path / "a.pdf").write_bytes(dict(small_files(tmp_path))["many.pdf"])

    class Reader(io.StringIO):
        def readline(self, size: int | None = -1) -> str:
            assert set(due.values()) == {0}
            return "null\n"

        def flush(self) -> None:
            assert set(due.values()) == {0}

    monkeypatch.setattr(sys, "stdin", Reader())
    answers = Reader()
    request = {"path": str(tmp_path / "a.pdf"), "ocr": False, "asks": True}
    _File(answers, (5.0, 50.0), request).read()
    assert set(due.values()) == {0}
    assert [*map(json.loads, answers.getvalue().splitlines())][-1] == {"end": True}


@pytest.mark.long
@pytest.mark.slow
def test_two_hundred_files_in_one_query(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (tmp_path / "files").mkdir()
    scratch.mkdir()
    files = [*hostile_files(scratch)]
    assert len(files) >= 200
    start = seconds_of_readers()
    found = reasons(files, tmp_path / "files")
    assert seconds_of_readers() - start < 3 * len(files)
    assert found["bomb.docx"] == ["'word/document.xml' is larger than 256 MB unpacked"]
    for name, part in (("bomb.pptx", "ppt/bomb.xml"), ("bomb.epub", "a.xhtml")):
        assert f"'{part}'" in found[name][0]
        assert "is larger than" in found[name][0]
    assert found["comment.html"] == [f"a part of it takes longer than {SECONDS} s"]
    assert "its reader" in found["content.pdf"][0]


@pytest.mark.long
@pytest.mark.slow
def test_the_memory_of_the_reader_is_bounded(tmp_path: Path) -> None:
    """In a process of its own: a child counts the memory of its parent until it runs a program."""
    (tmp_path / "files").mkdir()
    for name, content in hostile_files(tmp_path):
        if name in ("bomb.docx", "content.pdf", "comment.html", "deep.docx"):
            (tmp_path / "files" / name).write_bytes(content)
    code = (
        "import resource, blendfusion as bf; session = bf.connect(None, cache=None); "
        f"session.read_documents({str(tmp_path / 'files' / '*')!r}, seconds={SECONDS}, "
        f"megabytes={MEGABYTES}).to_pylist(); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < (MEGABYTES << 10)


def test_a_reader_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that takes it over finds nothing that it does not need."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:secret@host/db")
    reader = Reader(SECONDS, MEGABYTES, ocr=False)
    try:
        process = reader._running()
        given = Path(f"/proc/{process.pid}/environ").read_bytes().decode()
    finally:
        reader.close()
    assert "secret" not in given
    assert {part.partition("=")[0] for part in given.split("\0")} <= {*_ENVIRONMENT, ""}


def test_a_reader_that_stands_still_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_PATIENCE", 0.2)
    monkeypatch.setattr(process, "_GRACE_SECONDS", 0.2)
    (tmp_path / "a.txt").write_text("text")
    reader = Reader(SECONDS, MEGABYTES, ocr=False)
    running = reader._running()
    os.kill(running.pid, signal.SIGSTOP)
    (page,) = reader.read(str(tmp_path / "a.txt"), None)
    assert page.reason == f"it crashes its reader (SIGKILL), which has {MEGABYTES} MB"
    assert running.poll() == -signal.SIGKILL
