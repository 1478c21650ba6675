"""What all requests of a task share is made once, and no request differs for it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Body, Reply, serving

from blendfusion.models.protocol.gate import MOST_DEPTH, Unfit, json_of
from blendfusion.models.services.http.api import ANTHROPIC, GEMINI, OPENAI, Api
from blendfusion.models.services.http.exchange import Exchange
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.server import Server
from blendfusion.models.services.http.structured_output import forms_for
from blendfusion.models.services.http.task_requests import TaskRequests, sent_constraint
from blendfusion.options import Options
from blendfusion.types import Constraint, Example, StructField, Task

TASKS = [
    Task("llm_filter", "Is {} a fruit?", Constraint("boolean"), ("name",)),
    Task("llm_map", "What is it?", Constraint(), ("text",)),
    Task("llm_map", "Both?", Constraint("integer"), ("a", "b")),
    Task("llm_classify", "", Constraint("choice", options=("a", "it's", 'q"\\')), ("text",)),
    Task("llm_score", "How good?", Constraint("score", scale=(0, 10)), ("text",)),
    Task("llm_extract", "", Constraint("struct", fields=(StructField("n", Constraint()),)), ("x",)),
    Task("llm_map", "Shown?", Constraint(), ("x",), (Example(("né",), 'a "b"'),)),
    Task("llm_qa", "All?", Constraint("list", item=Constraint("integer")), ("x",), aggregate=True),
]
ROWS = [
    "plain",
    "",
    'quotes " and \\ and \n lines',
    "né 漢字 😀 \u2028",
    "\x00\x1f\x7f",
    "a" * 5000,
]


def server(api: Api) -> Server:
    return Server.at("http://127.0.0.1:1/v1", "tiny", None, Options(), Retry(), api=api)


def whole(exchange: Exchange, requests: TaskRequests, at: Server, form: Any) -> Body:
    """The body of a request that is made as a whole."""
    body = {"model": "tiny"} | exchange._body(form) | at.chat.sampling.of(requests.constraint)
    body["messages"] = at.chat.sampling.messages(body["messages"])
    request = at.endpoint.request("/chat/completions", body)
    assert isinstance(request.content, bytes)
    return {"url": str(request.url), **json.loads(request.content)}


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC, GEMINI], ids=lambda api: api.name)
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_a_filled_template_is_the_request(task: Task, api: Api) -> None:
    at = server(api)
    requests = TaskRequests(at.chat, task)
    for folds in (False, True):
        if folds:
            less = at.chat.sampling.parts.without("system")
            assert less is not None
            at.chat.sampling._parts = less  # as a server that takes no system's message leaves it
        for form in forms_for(sent_constraint(task)):
            for text in ROWS:
                row = (text,) * max(1, len(task.columns))
                exchange = Exchange(at.chat, None, requests, row)
                assert exchange._content is not None
                made = requests.request(form, at.chat.sampling.parts, exchange._content)
                assert made is not None
                assert isinstance(made.content, bytes)
                found = {"url": str(made.url), **json.loads(made.content)}
                assert found == whole(exchange, requests, at, form)


def test_a_request_follows_what_the_server_was_found_to_take() -> None:
    def script(body: Body) -> Reply:
        if "seed" in body:
            return Reply(status=400, error="unknown field: seed")
        return Reply('{"answer": "Yes"}')

    with serving(script) as at:
        model = OpenAIModel("tiny", at.url, None, Options(concurrency=4))
        answers = model.answer(TASKS[0], [(f"value {n}",) for n in range(40)])
        assert [answer.text for answer in answers] == ["true"] * 40
        asked = [body for body in at.bodies if "seed" not in body]
        assert len(asked) == 40
        assert len(at.bodies) <= 40 + 4
        assert len({body["messages"][-1]["content"] for body in asked}) == 40


# --- JSON of replies ------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_bytes_are_read_as_the_standard_library_reads_them(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "surrogatepass" if ascii_only else "replace")
    assert json_of(data) == json.loads(data)


ODD = [
    b'{"a": 1, "a": 2}',
    b"[1e400, -1e400, 12345678901234567890123456789, -0, 0.1e1]",
    b'"half \\ud83d of a pair"',
    b'\xef\xbb\xbf{"a": 1}',
    '{"a": 1}'.encode("utf-16"),
    '{"a": "[[["}'.encode("utf-32"),
    b' {"a":1} \n',
]


@pytest.mark.parametrize("data", ODD, ids=repr)
def test_odd_json_is_read_as_ever(data: bytes) -> None:
    assert json_of(data) == json.loads(data)


def test_what_is_no_number_is_one() -> None:
    found = json_of(b'{"a": NaN, "b": -Infinity}')
    assert isinstance(found, dict)
    assert math.isnan(found["a"])  # type: ignore[arg-type]
    assert found["b"] == -math.inf


@pytest.mark.parametrize(
    "data", [b"", b"{", b"01", b'"a\tb"', b'"\xff"', b"[1]x", b"nul", b"\x00", b"'a'", b"[1,]"]
)
def test_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(Unfit):
        json_of(data)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize("before", [b"", b'["[[[{{{",'], ids=["alone", "brackets"])
def test_depth_is_bounded_exactly(opening: bytes, before: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    end = b"]" if before else b""

    def nested(depth: int) -> bytes:
        inner = depth - bool(before)
        return before + opening * inner + b"1" + closing * inner + end

    assert json_of(nested(MOST_DEPTH)) == json.loads(nested(MOST_DEPTH))
    for depth in (MOST_DEPTH + 1, 900, 100_000):
        with pytest.raises(Unfit, match="nested"):
            json_of(nested(depth))
