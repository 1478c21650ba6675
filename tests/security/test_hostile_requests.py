"""What a server is sent: the same turns whatever the texts are, and each text where it belongs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hostile import HOSTILE, LONG
from loopback import Body, Loopback, Reply, form_of, serving

import blendfusion as bf
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

SEEN = [text for text in HOSTILE if text.strip()]
"""A blank value is NULL without a request."""


def lone(body: Body) -> Reply:
    """Says what it was asked last, as a server might that has been persuaded."""
    return Reply(json.dumps({"answer": str(body["messages"][-1]["content"])[:40]}))


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving(lone) as server:
        yield server


def session_at(server: Loopback, **options: object) -> bf.Session:
    server.bodies.clear()
    return bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off", **options)


def turns(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def test_a_value_changes_the_last_turn_alone(server: Loopback) -> None:
    with session_at(server) as session:
        session.from_arrow(pa.table({"x": ["pear", *SEEN]}), name="t")
        session.sql("SELECT llm_text('What is it?', x) FROM t").collect()
    bodies = list(server.bodies)
    (harmless,) = (b for b in bodies if b["messages"][-1]["content"].endswith("Text: pear"))
    contents = set()
    for body in bodies:
        assert set(body) == set(harmless)
        assert turns(body) == turns(harmless)
        assert body["messages"][:-1] == harmless["messages"][:-1]
        assert {k: v for k, v in body.items() if k != "messages"} == {
            k: v for k, v in harmless.items() if k != "messages"
        }
        contents.add(body["messages"][-1]["content"])
    assert contents == {f"Question: What is it?\nText: {text}" for text in ("pear", *SEEN)}


def test_a_long_value_does_too(server: Loopback) -> None:
    model = OpenAIModel("tiny", server.url, options=Options(), window=10_000_000)
    server.bodies.clear()
    task = Task("llm_text", "What is it?", Constraint(), ("x",))
    model.answer(task, [(text,) for text in (*LONG, "b" * 1_000_000)])
    sent = {body["messages"][-1]["content"] for body in server.bodies}
    assert sent == {f"Question: What is it?\nText: {text}" for text in (*LONG, "b" * 1_000_000)}


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("boolean"),
        Constraint("integer"),
        Constraint("date"),
        Constraint("regex", pattern="[A-Z]{2}"),
        Constraint("choice", options=("red", "{}", "<|im_end|>")),
        Constraint("list", item=Constraint("integer")),
    ],
    ids=str,
)
def test_what_a_server_says_outside_the_constraint_is_no_answer(constraint: Constraint) -> None:
    replies = iter([*HOSTILE] * 8)
    with serving(lambda body: Reply(next(replies))) as server:
        model = OpenAIModel(
            "tiny", server.url, options=Options(), retry=Retry(attempts=1, base_seconds=0.001)
        )
        task = Task("llm_map", "Which?", constraint, ("x",))
        answers = model.answer(task, [(str(number),) for number in range(len(HOSTILE))])
    for answer in answers:
        assert answer.error is not None or holds(constraint, answer.text)


@pytest.mark.parametrize("text", SEEN[::3], ids=ascii)
def test_questions_and_labels_are_sent_as_they_are_or_refused(server: Loopback, text: str) -> None:
    server.bodies.clear()
    model = OpenAIModel("tiny", server.url, options=Options())
    task = Task("llm_classify", text, Constraint("choice", options=(text, "other")), (text,))
    try:
        model.answer(task, [("pear",)])
    except bf.BlendFusionError:
        return
    for body in server.bodies:
        assert turns(body)[0] == "system"
        assert turns(body)[-1] == "user"
        assert set(turns(body)) <= {"system", "user", "assistant"}
        form = form_of(body)
        assert (
            form == ""
            or text in json.dumps(body[form], ensure_ascii=False)
            or "\\" in json.dumps(text)
        )
