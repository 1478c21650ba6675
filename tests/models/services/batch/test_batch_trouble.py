"""Batch jobs on servers that misbehave: nothing paid for is lost, and every trouble is a clear
error, without keys and values."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.errors import ModelFailed
from blendfusion.models.services.batch.model import BatchApi, BatchModel
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Task

KEY = "sk-batch-secret-key"
TASK = Task("llm_filter", "Is it good?", Constraint("boolean"), ("text",))
Reply = tuple[int, bytes]


class Server:
    """A batch API. ``odd`` may answer a request in its own way; None: as usual. Each reply to a
    value has ``padding`` bytes more."""

    def __init__(self) -> None:
        self.odd: Callable[[str, str], Reply | None] = lambda method, path: None
        self.padding = 0
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
