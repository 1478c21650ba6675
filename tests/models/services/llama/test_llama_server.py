"""A real server of llama-cpp-python on this machine: every kind of answer, over its own HTTP
API."""

from __future__ import annotations

import importlib.util
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_model import SERVER
from loopback import closed_port, is_up

import blendfusion as bf
from blendfusion.models.protocol.python_packages import packaged_weights
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(
        importlib.util.find_spec("llama_cpp") is None or packaged_weights() is None,
        reason="llama-cpp-python or the packaged weights are not installed",
    ),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("uvicorn", "starlette_context")),
        reason="what llama-cpp-python's server needs is not installed",
    ),
]

TEXTS = [
    "The battery died after 3 days, on 2024-05-06. Terrible.",
    "I love it! 2 of my friends bought one as well.",
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the server listens; one process for all tests."""
    port = closed_port()
    said = tmp_path_factory.mktemp("server") / "log.txt"
    command = [*SERVER, "--model", str(packaged_weights())]
    command += ["--model_alias", "smollm2", "--n_ctx", "2048", "--port", str(port)]
    with said.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait_for(f"http://127.0.0.1:{port}/v1", process, said)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(url: str, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        if is_up(url):
            return
        time.sleep(0.1)
    pytest.fail(f"the server did not start: {said.read_text('utf-8', 'replace')[-2000:]}")


@pytest.fixture(scope="module")
def session(url: str) -> Iterator[bf.Session]:
    options = {"max_tokens": 24, "shots": False, "progress": "off"}
    with bf.connect(f"openai:smollm2@{url}", cache=None, **options) as session:
        session.from_pydict({"text": TEXTS}, name="reviews")
        yield session


@pytest.mark.long
def test_every_kind_of_answer(session: bf.Session) -> None:
    frame = session.sql(
        "SELECT llm_filter('Is it positive?', text) AS positive, "
        "llm_classify(text, ['praise', 'complaint']) AS label, "
        "llm_int('How many days or friends?', text) AS number, "
        "llm_map('Which date?', text) = DATE '2024-05-06' AS same, "
        "llm_map('Say it in two words.', text) AS said FROM reviews"
    )
    answers = frame.to_pydict()
    assert frame.trace.usage.failed == 0
    assert set(answers["positive"]) <= {True, False}
    assert set(answers["label"]) <= {"praise", "complaint"}
    assert all(isinstance(number, int) for number in answers["number"])
    assert set(answers["same"]) <= {True, False}
    assert all(isinstance(said, str) and said for said in answers["said"])


@pytest.mark.long
@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("choice", options=("up", "down")),
        Constraint("date"),
        Constraint("regex", pattern=r"[A-Z]{2}-[0-9]{1,3}"),
    ],
    ids=lambda constraint: constraint.kind,
)
def test_no_json_is_written_around_short_answers(url: str, constraint: Constraint) -> None:
    """The server takes grammars; a date in JSON would be another eight tokens."""
    model = OpenAIModel("smollm2", url, None, Options(max_tokens=24, shots=False))
    model.check()
    first, second = model.answer(
        Task("llm_map", "Which?", constraint, ("text",)), [(text,) for text in TEXTS]
    )
    assert (first.error, second.error) == (None, None)
    assert second.usage.calls == 1
    assert second.usage.completion_tokens <= len(str(second.text)) + 1
