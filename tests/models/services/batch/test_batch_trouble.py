"""Batch jobs on servers that misbehave: nothing paid for is lost, and every trouble is a clear
error, without keys and values."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.errors import ModelFailed
from blendfusion.models.services.batch.model import BatchApi, BatchFiles, BatchModel
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Task

KEY = "sk-batch-secret-key"
TASK = Task("llm_filter", "Is it good?", Constraint("boolean"), ("text",))
Reply = tuple[int, bytes]


class Server:
    """A batch API. ``odd`` may answer a request in its own way; None: as usual. Each reply to a
    value has ``padding`` bytes more. ``coding``: that of the contents of files."""

    def __init__(self) -> None:
        self.odd: Callable[[str, str], Reply | None] = lambda method, path: None
        self.padding = 0
        self.coding = ""
        self.jobs = 0
        self.sent: list[dict[str, Any]] = []

    def usual(self, method: str, path: str, content: bytes) -> Reply:
        if (method, path) == ("POST", "/v1/files"):
            text = content.decode()
            start, end = text.index('{"custom_id"'), text.rindex("\r\n--")
            self.sent = [json.loads(line) for line in text[start:end].splitlines() if line.strip()]
            return 200, b'{"id": "file-1"}'
        if (method, path) == ("POST", "/v1/batches"):
            self.jobs += 1
            return 200, b'{"id": "batch_1", "status": "validating"}'
        if path.startswith("/v1/batches/"):
            return 200, b'{"status": "completed", "output_file_id": "file-2"}'
        return 200, b"".join(map(self.line, self.sent))

    def line(self, request: dict[str, Any]) -> bytes:
        message = {"role": "assistant", "content": '{"answer": "Yes"}', "x": "y" * self.padding}
        body = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        response = {"status_code": 200, "body": body}
        line = {"custom_id": request["custom_id"], "response": response, "error": None}
        return json.dumps(line).encode() + b"\n"


@contextmanager
def serving(server: Server) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, method: str) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            odd = server.odd(method, self.path)
            status, payload = odd or server.usual(method, self.path, content)
            self.send_response(abs(status))
            self.send_header("Content-Length", str(len(payload)))
            if server.coding and self.path.endswith("/content"):
                self.send_header("Content-Encoding", server.coding)
            self.end_headers()
            self.wfile.write(payload[: len(payload) // 2] if status < 0 else payload)
            self.close_connection = status < 0

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def log_message(self, *args: object) -> None:
            """Silent."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_address[1]}/v1"
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def ask(url: str, folder: Path, count: int = 2, retries: int = 2) -> list[Answer]:
    options = Options(batch_folder=str(folder), retries=retries)
    api = BatchApi(url, KEY, options, poll_seconds=0.01)
    return BatchModel("m", api, options).answer(TASK, [(f"value {n}",) for n in range(count)])


def first(count: int, reply: Reply, part: str) -> Callable[[str, str], Reply | None]:
    """The first so many requests for a path that holds ``part`` get this reply."""
    left = [reply] * count

    def odd(method: str, path: str) -> Reply | None:
        return left.pop() if left and method == "GET" and part in path else None

    return odd


def test_output_of_any_size_is_read(tmp_path: Path) -> None:
    """Three replies of 6 MB, beyond the limit of the reply to a chat."""
    server = Server()
    server.padding = 6 << 20
    with serving(server) as url:
        answers = ask(url, tmp_path, 3)
    assert [answer.text for answer in answers] == ["true"] * 3


def test_a_line_beyond_every_measure_ends_and_keeps_the_job(tmp_path: Path) -> None:
    server = Server()
    server.padding = 17 << 20
    with serving(server) as url:
        with pytest.raises(ModelFailed, match="a line of the replies is too long"):
            ask(url, tmp_path, 1, retries=0)
        server.padding = 0
        assert [answer.text for answer in ask(url, tmp_path, 1)] == ["true"]
    assert server.jobs == 1


@pytest.mark.parametrize("part", ["/content", "/batches/"])
@pytest.mark.parametrize("status", [404, 403, 409, 429, 500, 502, 503, -200])
def test_what_passes_is_tried_again(tmp_path: Path, part: str, status: int) -> None:
    server = Server()
    server.odd = first(1, (status, b"not yet" * 20), part)
    with serving(server) as url:
        if status == 403:
            with pytest.raises(ModelFailed, match="refused access"):
                ask(url, tmp_path)
        assert [answer.text for answer in ask(url, tmp_path)] == ["true"] * 2
    assert server.jobs == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", ["/content", "/batches/"])
@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_job_is_forgotten_only_when_it_was_read(tmp_path: Path, part: str, status: int) -> None:
    server = Server()
    server.odd = first(99, (status, b"no"), part)
    with serving(server) as url:
        for _ in range(2):
            with pytest.raises(ModelFailed):
                ask(url, tmp_path, retries=0)
        server.odd = lambda method, path: None
        assert [answer.text for answer in ask(url, tmp_path)] == ["true"] * 2
    assert server.jobs == 1


@pytest.mark.parametrize("part", ["/content", "/batches/"])
@pytest.mark.parametrize(("hours", "sent"), [(47, 1), (49, 2)])
def test_a_job_that_is_unknown_for_two_days_is_sent_again(
    tmp_path: Path, part: str, hours: int, sent: int
) -> None:
    server = Server()
    server.odd = first(99, (500, b"no"), part)
    with serving(server) as url:
        with pytest.raises(ModelFailed):
            ask(url, tmp_path, retries=0)
        [file] = tmp_path.glob("*.job")
        os.utime(file, (time.time() - hours * 3600,) * 2)
        server.odd = first(1, (404, b"no"), part)
        if sent == 1:
            with pytest.raises(ModelFailed, match="404"):
                ask(url, tmp_path, retries=0)
        assert [answer.text for answer in ask(url, tmp_path, retries=0)] == ["true"] * 2
    assert server.jobs == sent
    assert list(tmp_path.iterdir()) == []


ODD_BODIES = (
    *(
        b"",
        b"[]",
        b"null",
        b"7",
        b'"x"',
        b"<html>no</html>",
        b"{",
        b"{}",
        b"\xff\xfe",
        b'{"id": 7}',
    ),
    *(b'{"id": null}', b'{"id": ""}', b'{"id": "a?b"}', b'{"id": "a/../b"}', b'{"id": ["a"]}'),
    *(b'{"id": "' + b"x" * 5_000 + b'"}', b"[" * 100_000, b'{"status": ["completed"]}'),
    *(b'{"status": "completed"}', b'{"status": "completed", "output_file_id": {"a": 1}}'),
    *(b'{"status": "completed", "output_file_id": "a?b=c"}', b'{"status": "failed", "errors": 7}'),
    *(b'{"status": "failed", "errors": {"data": [7, {"message": {"a": 1}}]}}', b"\x00" * 50),
)


@pytest.mark.parametrize("body", ODD_BODIES, ids=range(len(ODD_BODIES)))
@pytest.mark.parametrize("part", ["/files", "/batches"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_odd_reply_is_a_clear_error(tmp_path: Path, method: str, part: str, body: bytes) -> None:
    server = Server()
    server.odd = lambda m, path: (200, body) if m == method and part in path else None
    with serving(server) as url:
        if (method, part) == ("GET", "/files"):  # no line of it is a reply
            assert [answer.text for answer in ask(url, tmp_path, retries=0)] == [None] * 2
            return
        with pytest.raises(ModelFailed) as raised:
            ask(url, tmp_path, retries=0)
    assert len(str(raised.value)) < 700


def test_reasons_of_a_failed_job_are_cut_and_without_the_key(tmp_path: Path) -> None:
    server = Server()
    message = f"no, {KEY} {'A' * 5_000}"
    state = {"status": "failed", "errors": {"data": [{"message": message}]}}
    server.odd = first(99, (200, json.dumps(state).encode()), "/batches/")
    with serving(server) as url, pytest.raises(ModelFailed) as raised:
        ask(url, tmp_path)
    assert KEY not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_the_reason_of_a_value_is_cut_and_has_neither_key_nor_value(tmp_path: Path) -> None:
    server = Server()

    def line(request: dict[str, Any]) -> bytes:
        error = {"message": f"bad input {KEY}: value 0 " + "B" * 5_000}
        return json.dumps({"custom_id": request["custom_id"], "error": error}).encode() + b"\n"

    server.line = line  # type: ignore[method-assign]
    with serving(server) as url:
        [answer, _] = ask(url, tmp_path)
    assert answer.error is not None
    assert answer.error.startswith("bad input …: … B")
    assert len(answer.error) == 300


def test_a_query_ends_in_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Server()
    server.odd = lambda method, path: (200, b"[1]")
    with serving(server) as url:
        session = bf.connect(
            f"openai-batch:m@{url}", cache=None, retries=0, batch_folder=str(tmp_path)
        )
        session.from_pydict({"x": ["a"]}, name="t")
        with pytest.raises(bf.BlendFusionError, match="took no job"):
            session.sql("SELECT llm_filter('q?', x) AS z FROM t").to_pylist()


def test_a_file_that_names_no_job_says_what_to_do(tmp_path: Path) -> None:
    server = Server()
    with serving(server) as url:
        server.odd = first(99, (500, b"no"), "/batches/")
        with pytest.raises(ModelFailed):
            ask(url, tmp_path, retries=0)
        [file] = tmp_path.glob("*.job")
        assert file.stat().st_mode & 0o777 == 0o600
        file.write_bytes(b"../../etc\n\xff")
        with pytest.raises(ModelFailed, match="names no job") as raised:
            ask(url, tmp_path, retries=0)
    assert "Delete it" in str(raised.value)


def verdict(request: dict[str, Any], word: str, **line: Any) -> bytes:
    """The line that answers a request with ``word``."""
    message = {"role": "assistant", "content": json.dumps({"answer": word})}
    body = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    response = {"status_code": 200, "body": body}
    stated = {"custom_id": request["custom_id"], "response": response, "error": None, **line}
    return json.dumps(stated).encode() + b"\n"


def truth(request: dict[str, Any]) -> str:
    """Yes for the values with an even number."""
    number = int(request["body"]["messages"][-1]["content"].rpartition("value ")[2])
    return "No" if number % 2 else "Yes"


class TrueServer(Server):
    """Answers as ``truth`` says; ``files`` makes the contents of output and error file from the
    lines."""

    def __init__(self) -> None:
        super().__init__()
        self.state: dict[str, Any] = {"status": "completed"}

    def files(self, lines: list[bytes]) -> tuple[bytes, bytes]:
        return b"".join(lines), b""

    def usual(self, method: str, path: str, content: bytes) -> Reply:
        if path.startswith("/v1/batches/"):
            files = {"output_file_id": "out", "error_file_id": "err"}
            return 200, json.dumps({**files, **self.state}).encode()
        if path.endswith("/content"):
            output, errors = self.files([verdict(one, truth(one)) for one in self.sent])
            return 200, output if "out" in path else errors
        return super().usual(method, path, content)


TRUE = ["true", "false"] * 3


def test_the_first_good_reply_to_a_value_counts(tmp_path: Path) -> None:
    """Lines that are repeated, in any order, and errors of earlier tries, before and after."""
    server = TrueServer()

    def files(lines: list[bytes]) -> tuple[bytes, bytes]:
        failed = [verdict(one, "Yes", response=None, error={"message": "x"}) for one in server.sent]
        return b"".join([*failed[:2], *lines[::-1], *lines, failed[2]]), b"".join(failed)

    server.files = files  # type: ignore[method-assign]
    with serving(server) as url:
        assert [answer.text for answer in ask(url, tmp_path, 6)] == TRUE


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compressed_output_is_read(tmp_path: Path, coding: str) -> None:
    server = TrueServer()

    def files(lines: list[bytes]) -> tuple[bytes, bytes]:
        pack = gzip.compress if coding == "gzip" else zlib.compress
        return pack(b"".join(lines)), pack(b"")

    server.files, server.coding = files, coding  # type: ignore[method-assign]
    with serving(server) as url:
        assert [answer.text for answer in ask(url, tmp_path, 6)] == TRUE


def test_a_compressed_output_that_is_cut_keeps_the_job(tmp_path: Path) -> None:
    server = TrueServer()
    server.coding, server.files = "gzip", lambda lines: (gzip.compress(b"".join(lines))[:-9], b"")  # type: ignore[method-assign]
    with serving(server) as url:
        with pytest.raises(ModelFailed, match="a later run reads it"):
            ask(url, tmp_path, 6, retries=0)
        server.files = lambda lines: (gzip.compress(b"".join(lines)), gzip.compress(b""))  # type: ignore[method-assign]
        assert [answer.text for answer in ask(url, tmp_path, 6)] == TRUE
    assert server.jobs == 1


def test_an_output_with_fewer_replies_than_the_server_counts_is_read_again(tmp_path: Path) -> None:
    server = TrueServer()
    server.state = {"status": "completed", "request_counts": {"total": 6, "completed": 6}}
    cut = [2, 5]

    def files(lines: list[bytes]) -> tuple[bytes, bytes]:
        return b"".join(lines[: cut.pop()] if cut else lines), b""

    server.files = files  # type: ignore[method-assign]
    server.state["error_file_id"] = None
    with serving(server) as url:
        assert [answer.text for answer in ask(url, tmp_path, 6)] == TRUE


@pytest.mark.parametrize("status", ["COMPLETED", "canceled", "Expired"])
def test_a_job_that_ended_in_other_words_is_read(tmp_path: Path, status: str) -> None:
    server = TrueServer()
    server.state = {"status": status}
    server.files = lambda lines: (b"".join(lines[:3]), b"")  # type: ignore[method-assign]
    with serving(server) as url:
        answers = ask(url, tmp_path, 6)
    assert [answer.text for answer in answers] == [*TRUE[:3], None, None, None]
    assert answers[3].error == "the job has no reply to this value"


def test_a_status_that_nobody_knows_is_no_reason_to_wait(tmp_path: Path) -> None:
    server = TrueServer()
    server.state = {"status": "paused by an admin"}
    with serving(server) as url:
        with pytest.raises(ModelFailed, match="paused by an admin"):
            ask(url, tmp_path, 6)
        server.state = {"status": "completed"}
        assert [answer.text for answer in ask(url, tmp_path, 6)] == TRUE
    assert server.jobs == 1


def test_a_job_whose_files_another_process_removed_is_read(tmp_path: Path) -> None:
    server = TrueServer()

    def odd(method: str, path: str) -> Reply | None:
        if not path.startswith("/v1/batches/") or not list(tmp_path.glob("*.job")):
            return None
        for file in tmp_path.iterdir():
            file.unlink()
        return 200, b'{"status": "in_progress"}'

    server.odd = odd
    with serving(server) as url:
        assert [answer.text for answer in ask(url, tmp_path, 6)] == TRUE
    assert server.jobs == 1


def from_files(folder: Path, numbers: range) -> list[Answer]:
    model = BatchModel("m", BatchFiles("m"), Options(batch_folder=str(folder)))
    return model.answer(TASK, [(f"value {n}",) for n in numbers])


def written(requests: Path) -> list[bytes]:
    sent = map(json.loads, requests.read_text("utf-8").splitlines())
    return [verdict(request, truth(request)) for request in sent]


def test_the_replies_of_another_job_answer_nothing(tmp_path: Path) -> None:
    """Two files of requests whose replies were written to one another's names."""
    for numbers in (range(2), range(1, 3)):
        with pytest.raises(ModelFailed, match="2 requests wait"):
            from_files(tmp_path, numbers)
    first, second = tmp_path.glob("*.jsonl")
    for requests, other in ((first, second), (second, first)):
        replies = requests.with_suffix(".replies.jsonl")
        replies.write_bytes(b"".join(written(other)))
    for numbers in (range(2), range(1, 3)):
        assert [answer.text for answer in from_files(tmp_path, numbers)] == [None] * 2


def test_a_file_that_is_still_written_is_left(tmp_path: Path) -> None:
    with pytest.raises(ModelFailed, match="6 requests wait"):
        from_files(tmp_path, range(6))
    [requests] = tmp_path.iterdir()
    whole = b"".join(written(requests))
    replies = requests.with_suffix(".replies.jsonl")
    half = whole.index(b"\n") + 30
    replies.write_bytes(whole[:half])
    with pytest.raises(ModelFailed, match="ends within a line: 1 of 6 replies") as raised:
        from_files(tmp_path, range(6))
    assert raised.value.retryable
    replies.write_bytes(whole.rstrip())
    assert [answer.text for answer in from_files(tmp_path, range(6))] == TRUE
    assert list(tmp_path.iterdir()) == []
