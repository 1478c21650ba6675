"""Batch jobs: OpenAI's API on a server of the loopback, and files as ``vllm run-batch`` takes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.errors import ModelFailed
from blendfusion.models.registry.load import load
from blendfusion.models.services.batch import jobs as batch_jobs
from blendfusion.models.services.batch.model import BatchApi, BatchFiles, BatchModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

BOOLEAN = Task("llm_filter", "Does it rhyme?", Constraint("boolean"), ("text",))
Line = dict[str, Any]


def answered(line: Line) -> Line:
    """The reply to one request of a job: yes to a text with 'good', an error to one with 'bad'."""
    body = line["body"]
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
    assert body["response_format"]["type"] == "json_schema"
    text = body["messages"][-1]["content"].rpartition("Text: ")[2]
    if "bad" in text:
        error = {"error": {"message": "too long"}}
        return {"custom_id": line["custom_id"], "response": {"status_code": 400, "body": error}}
    content = json.dumps({"answer": "Yes" if "good" in text else "No"})
    reply = {
        "choices": [{"message": {"content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 3},
    }
    response = {"status_code": 200, "body": reply}
    return {"id": "r", "custom_id": line["custom_id"], "response": response, "error": None}


def run_batch(requests: Path, replies: Path) -> None:
    """The work of ``vllm run-batch -i requests -o replies``."""
    lines = [json.loads(line) for line in requests.read_text("utf-8").splitlines()]
    replies.write_text("".join(f"{json.dumps(answered(line))}\n" for line in reversed(lines)))


class Jobs:
    """A server with OpenAI's batch API. A job needs ``polls`` looks to end as ``status``."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.jobs: dict[str, str] = {}
        self.polls, self.status = 2, "completed"
        self.seen: list[str] = []

    def reply(self, method: str, path: str, content: bytes, kind: str) -> tuple[int, bytes]:
        self.seen.append(f"{method} {path}")
        if (method, path) == ("POST", "/v1/files"):
            parts = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\n\n" + content)
            fields: dict[str, bytes] = {}
            for part in parts.walk():
                name = part.get_param("name", header="content-disposition")
                if name:
                    payload = part.get_payload(decode=True)
                    assert isinstance(payload, bytes)
                    fields[str(name)] = payload
            assert fields["purpose"] == b"batch"
            name = f"file-{len(self.files)}"
            self.files[name] = fields["file"].decode()
            return 200, json.dumps({"id": name}).encode()
        if (method, path) == ("POST", "/v1/batches"):
            wanted = json.loads(content)
            assert wanted["completion_window"] == "24h"
            name = f"batch_{len(self.jobs)}"
            self.jobs[name] = wanted["input_file_id"]
            return 200, json.dumps({"id": name, "status": "validating"}).encode()
        if path.startswith("/v1/batches/"):
            self.polls -= 1
            if self.polls > 0:
                return 200, b'{"status": "in_progress"}'
            state: Line = {"status": self.status}
            if self.status == "completed":
                state["output_file_id"] = self.jobs[path.rpartition("/")[2]] + "-out"
            else:
                state["errors"] = {"data": [{"message": "the account is too new"}]}
            return 200, json.dumps(state).encode()
        if path.endswith("-out/content"):
            name = path.split("/")[3].removesuffix("-out")
            lines = map(json.loads, self.files[name].splitlines())
            return 200, "".join(f"{json.dumps(answered(line))}\n" for line in lines).encode()
        return 404, b"{}"


@contextmanager
def serving(jobs: Jobs) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, method: str) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind = self.headers.get("Content-Type") or ""
            status, payload = jobs.reply(method, self.path, content, kind)
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def log_message(self, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def model_at(url: str, folder: Path) -> BatchModel:
    options = Options(batch_folder=str(folder), retries=0)
    return BatchModel("m", BatchApi(url, "k", options, poll_seconds=0.01), options)


def rows(*texts: str) -> list[tuple[str | None, ...]]:
    return [(text,) for text in texts]


def test_a_job_answers_all_values(tmp_path: Path) -> None:
    jobs = Jobs()
    with serving(jobs) as url:
        answers = model_at(url, tmp_path).answer(BOOLEAN, rows("good", "dull", "bad"))
    assert [answer.text for answer in answers] == ["true", "false", None]
    assert answers[2].error == "too long"
    assert sum(answer.usage.calls for answer in answers) == 1
    assert answers[0].usage.prompt_tokens == 20
    assert jobs.seen.count("POST /v1/batches") == 1
    assert list(tmp_path.iterdir()) == [], "the files of a finished job are removed"


def test_a_run_that_was_cut_off_finds_its_job_again(tmp_path: Path) -> None:
    jobs = Jobs()
    with serving(jobs) as url:
        model = model_at(url, tmp_path)
        jobs.reply, reply = _away_after_submission(jobs), jobs.reply  # type: ignore[method-assign]
        with pytest.raises(ModelFailed):
            model.answer(BOOLEAN, rows("good", "dull"))
        jobs.reply = reply  # type: ignore[method-assign]
        assert [answer.text for answer in model.answer(BOOLEAN, rows("good", "dull"))] == [
            "true",
            "false",
        ]
    assert jobs.seen.count("POST /v1/batches") == 1


def _away_after_submission(jobs: Jobs) -> Any:
    reply = jobs.reply

    def away(method: str, path: str, content: bytes, kind: str) -> tuple[int, bytes]:
        if method == "GET":
            return 500, b"{}"
        return reply(method, path, content, kind)

    return away


def test_a_job_that_fails_says_why(tmp_path: Path) -> None:
    jobs = Jobs()
    jobs.status = "failed"
    with serving(jobs) as url, pytest.raises(ModelFailed, match="the account is too new"):
        model_at(url, tmp_path).answer(BOOLEAN, rows("good"))


def test_a_server_without_jobs_says_so(tmp_path: Path) -> None:
    jobs = Jobs()
    jobs.reply = lambda *args: (404, b"{}")  # type: ignore[method-assign]
    with serving(jobs) as url, pytest.raises(ModelFailed, match="took no job") as raised:
        model_at(url, tmp_path).answer(BOOLEAN, rows("good"))
    assert "'openai:…' instead" in str(raised.value)


def test_many_values_are_several_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_jobs, "MOST_REQUESTS", 4)
    jobs = Jobs()
    with serving(jobs) as url:
        answers = model_at(url, tmp_path).answer(BOOLEAN, rows(*(f"good {n}" for n in range(10))))
    assert [answer.text for answer in answers] == ["true"] * 10
    assert jobs.seen.count("POST /v1/batches") == 3


def test_files_wait_for_another_program(tmp_path: Path) -> None:
    session = bf.connect(
        "batch-file:m", cache=str(tmp_path / "a.sqlite"), batch_folder=str(tmp_path / "b")
    )
    session.from_pydict({"x": ["good", "dull", "good", "bad"]}, name="t")
    frame = session.sql("SELECT count(*) AS n FROM t WHERE llm_filter('Does it rhyme?', x)")
    with pytest.raises(ModelFailed, match="3 requests wait in") as raised:
        frame.to_pylist()
    assert "vllm run-batch -i" in str(raised.value)
    assert raised.value.retryable
    (requests,) = (tmp_path / "b").iterdir()
    assert requests.stat().st_mode & 0o077 == 0, "values of the data are in it"
    run_batch(requests, requests.with_suffix(".replies.jsonl"))
    with pytest.warns(bf.AnswerWarning, match="too long"):
        assert frame.to_pylist() == [{"n": 2}]
    assert list((tmp_path / "b").iterdir()) == []
    assert load("batch-file:m", Options()).info.name == "batch-file:m"


def test_a_file_with_other_lines_answers_nothing(tmp_path: Path) -> None:
    options = Options(batch_folder=str(tmp_path))
    model = BatchModel("m", BatchFiles("m"), options)
    with pytest.raises(ModelFailed, match="--model m; then run the query again"):
        model.answer(BOOLEAN, rows("good"))
    (requests,) = tmp_path.iterdir()
    requests.with_suffix(".replies.jsonl").write_text('{"custom_id": "value-7"}\nno json\n[1]\n')
    (answer,) = model.answer(BOOLEAN, rows("good"))
    assert answer.error == "the job has no reply to this value"
