"""Anthropic's and Gemini's own APIs, on servers of the loopback that speak them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.protocol.images import lend_within, name_of
from blendfusion.models.registry.load import load
from blendfusion.models.services.http.api import APIS
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

Body = dict[str, Any]
Script = Callable[[str, Body, dict[str, str]], tuple[int, Body]]
BOOLEAN = Task("llm_filter", "Is it good?", Constraint("boolean"), ("text",))
TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))
IMAGE = Task("llm_vqa", "Is it red?", Constraint("boolean"), ("image",), images=True)


@contextmanager
def serving(script: Script) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, body: Body) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, reply = script(self.path, body, headers)
            payload = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def anthropic(path: str, body: Body, headers: dict[str, str]) -> tuple[int, Body]:
    """Anthropic's Messages API, as strict as the real one in what this client may get wrong."""
    if headers.get("x-api-key") != "sk-ant":
        return 401, _error("authentication_error", "invalid x-api-key")
    assert headers["anthropic-version"] == "2023-06-01"
    if path == "/v1/models":
        return 200, {"data": [{"type": "model", "id": "claude"}]}
    assert path == "/v1/messages", path
    unknown = {*body} - {
        *("model", "messages", "max_tokens", "system", "temperature", "tools", "tool_choice")
    }
    if unknown:
        return 400, _error(
            "invalid_request_error", f"{unknown.pop()}: Extra inputs are not permitted"
        )
    if body["model"] != "claude":
        return 404, _error("not_found_error", f"model: {body['model']}")
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], roles
    asked = body["messages"][-1]["content"]
    text = "".join(part.get("text", "") for part in asked).rpartition("Text:")[2]
    content: list[Body] = [{"type": "text", "text": "a thing"}]
    stop = "end_turn"
    if "tools" in body:
        (tool,) = body["tools"]
        assert body["tool_choice"] == {"type": "tool", "name": tool["name"]}
        schema = tool["input_schema"]["properties"]["answer"]
        good = "good" in text or any(part["type"] == "image" for part in asked)
        answer = ("Yes" if good else "No") if schema.get("enum") == ["Yes", "No"] else 7
        content = [
            {"type": "tool_use", "id": "t", "name": tool["name"], "input": {"answer": answer}}
        ]
        stop = "tool_use"
    if "refuse" in text:
        content, stop = [{"type": "text", "text": "I cannot."}], "refusal"
    usage = {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 15}
    return 200, {"type": "message", "content": content, "stop_reason": stop, "usage": usage}


def _error(kind: str, message: str) -> Body:
    return {"type": "error", "error": {"type": kind, "message": message}}


def gemini(path: str, body: Body, headers: dict[str, str]) -> tuple[int, Body]:
    """Gemini's generateContent."""
    if headers.get("x-goog-api-key") != "g-key":
        reason = [{"reason": "API_KEY_INVALID"}]
        return 400, {"error": {"code": 400, "message": "API key not valid.", "details": reason}}
    if path == "/v1beta/models":
        return 200, {"models": [{"name": "models/flash", "inputTokenLimit": 4321}]}
    assert path == "/v1beta/models/flash:generateContent", path
    assert {*body} <= {"contents", "generationConfig", "systemInstruction"}
    config = body["generationConfig"]
    if "thinkingConfig" in config and gemini_thinks[0]:
        return 400, {"error": {"code": 400, "message": "Thinking cannot be switched off here."}}
    assert {one["role"] for one in body["contents"]} <= {"user", "model"}
    parts = body["contents"][-1]["parts"]
    text = "".join(part.get("text", "") for part in parts).rpartition("Text:")[2]
    said = "a thing"
    if "responseJsonSchema" in config:
        assert config["responseMimeType"] == "application/json"
        good = "good" in text or any("inlineData" in part for part in parts)
        said = json.dumps({"answer": "Yes" if good else "No"})
    if "blocked" in text:
        return 200, {"promptFeedback": {"blockReason": "SAFETY"}}
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 3, "cachedContentTokenCount": 15}
    candidate = {"content": {"parts": [{"text": said}], "role": "model"}, "finishReason": "STOP"}
    return 200, {"candidates": [candidate], "usageMetadata": usage}


gemini_thinks = [False]

SERVERS = {
    "anthropic": (anthropic, "/v1", "ANTHROPIC_API_KEY", "sk-ant", "claude"),
    "gemini": (gemini, "/v1beta", "GEMINI_API_KEY", "g-key", "flash"),
}


@pytest.fixture(params=sorted(SERVERS))
def spec(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    script, prefix, variable, key, model = SERVERS[request.param]
    monkeypatch.setenv(variable, key)
    with serving(script) as url:
        yield f"{request.param}:{model}@{url}{prefix}"


def test_a_query_runs(spec: str) -> None:
    session = bf.connect(spec, cache=None)
    session.from_pydict({"x": ["good", "bad", None]}, name="t")
    frame = session.sql("SELECT x FROM t WHERE llm_filter('Is it good?', x)")
    assert frame.to_pylist() == [{"x": "good"}]
    usage = frame.trace.usage
    assert (usage.values, usage.calls, usage.prompt_tokens, usage.evaluated_tokens) == (
        2,
        2,
        40,
        10,
    )
    assert session.sql("SELECT llm_text('What is it?', x) AS a FROM t LIMIT 1").to_pylist() == [
        {"a": "a thing"}
    ]


@pytest.mark.parametrize("provider", sorted(SERVERS))
def test_a_url_without_a_path_has_that_of_the_api(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, _, variable, key, name = SERVERS[provider]
    monkeypatch.setenv(variable, key)
    with serving(script) as url:
        monkeypatch.setenv(APIS[provider].url_variable, url)
        (answer,) = load(f"{provider}:{name}", Options()).answer(BOOLEAN, [("good",)])
    assert answer.text == "true"


def test_an_image_is_sent_in_the_form_of_the_api(spec: str) -> None:
    pixel = b"\x89PNG\r\n\x1a\n"
    name = name_of(pixel)
    assert name is not None
    with lend_within({name: pixel}):
        (answer,) = load(spec, Options()).answer(IMAGE, [(name,)])
    assert answer.text == "true", answer.error


def test_a_refusal_is_an_error_of_that_value(spec: str) -> None:
    bad, good = load(spec, Options(retries=0)).answer(BOOLEAN, [("refuse, blocked",), ("good",)])
    assert bad.error is not None
    assert good.text == "true"


def test_a_wrong_key_is_one_error(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    api = APIS[spec.partition(":")[0]]
    monkeypatch.setenv(api.key_variables[0], "wrong")
    model = load(spec, Options())
    with pytest.raises(ModelFailed, match="refused access") as raised:
        model.answer(BOOLEAN, [("good",), ("bad",)])
    assert f"Set {api.key_variables[0]}" in str(raised.value)


def test_an_unknown_model_is_named_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant")
    with serving(anthropic) as url:
        model = load(f"anthropic:other@{url}/v1", Options())
        with pytest.raises(ModelNotFound, match="It offers: claude"):
            model.answer(BOOLEAN, [("good",)])


def test_a_model_that_always_thinks_is_let_think(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "g-key")
    gemini_thinks[0] = True
    try:
        with serving(gemini) as url:
            answers = load(f"gemini:flash@{url}/v1beta", Options()).answer(BOOLEAN, [("good",)] * 3)
    finally:
        gemini_thinks[0] = False
    assert [answer.text for answer in answers] == ["true"] * 3


def test_the_owner_of_the_api_is_asked_without_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, api in APIS.items():
        for variable in (*api.key_variables, api.url_variable):
            monkeypatch.delenv(variable, raising=False)
        with pytest.raises(ModelNotFound, match=f"{api.key_variables[0]} is not set"):
            load(f"{name}:m", Options())
        monkeypatch.setenv(api.key_variables[0], "k")
        assert load(f"{name}:m", Options()).info.name == f"{name}:m@{api.url}"
