"""Several questions about a text in one request to a chat server: the same rows, fewer requests and
tokens, and no answer without its question."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from loopback import Body, Loopback, Reply, said, serving

import blendfusion as bf
from blendfusion.models.registry.load import load
from blendfusion.models.services.joint_prompts.several_questions import TogetherModel
from blendfusion.options import Options

TEXTS = [f"text {n} " + " ".join(f"word{n}x{i}" for i in range(28)) for n in range(200)]
QUESTIONS = {
    "late": "llm_filter('Is it late?', x)",
    "rude": "llm_bool('Is it rude?', x)",
    "topic": "llm_classify(x, ['bill', 'crash'])",
    "days": "llm_int('How many days?', x, evidence => false)",
    "day": "llm_date('Which day?', x, evidence => false)",
}
SELECT = ", ".join(f"{call} AS {name}" for name, call in QUESTIONS.items())


def truth(number: int, field: dict[str, Any]) -> Any:
    """The answer about a text by its number, for the schema of a field."""
    options = field.get("enum") or [
        o for one in field.get("anyOf", ()) for o in one.get("enum", ())
    ]
    if options:
        return options[number % len(options)]
    kinds = json.dumps(field)
    if '"boolean"' in kinds:
        return number % 2 == 0
    return number if '"integer"' in kinds else "2024-02-29"


class Chat:
    """A script that answers by the schema of a request. ``forgets`` is a field that it leaves
    out."""

    def __init__(self, forgets: str = "") -> None:
        self.forgets = forgets

    def __call__(self, body: Body) -> Reply:
        number = int(re.findall(r"text (\d+) word", said(body).lower())[-1])
        if "response_format" not in body:
            return Reply("words")
        schema = body["response_format"]["json_schema"]["schema"]["properties"]["answer"]
        if "properties" not in schema:
            return Reply(json.dumps({"answer": truth(number, schema)}))
        found = {
            name: None if name == self.forgets else truth(number, field)
            for name, field in schema["properties"].items()
        }
        return Reply(json.dumps({"answer": found}))


def session_of(server: Loopback, rows: int = len(TEXTS), **options: Any) -> bf.Session:
    session = bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off", **options)
    session.from_pydict({"n": [*range(rows)], "x": TEXTS[:rows]}, name="t")
    return session


def words_of(server: Loopback) -> int:
    """The words and signs of all messages."""
    turns = [str(m["content"]) for body in server.bodies for m in body["messages"]]
    return sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in turns)


def run(script: Chat, query: str, rows: int = len(TEXTS), **options: Any) -> tuple[Any, ...]:
    """(rows, requests, words and signs, trace) of a query."""
    with serving(script) as server:
        frame = session_of(server, rows, **options).sql(query)
        found = frame.to_pylist()
        return found, len(server.bodies), words_of(server), frame.trace


def test_all_questions_about_a_text_go_in_one_request() -> None:
    query = f"SELECT n, {SELECT} FROM t ORDER BY n"
    alone, requests, words, _ = run(Chat(), query)
    found, fewer, fewer_words, trace = run(Chat(), query, together=True)
    assert found == alone
    assert (requests, fewer) == (1000, 200)
    assert (trace.values, trace.readings, trace.requests, trace.failed) == (1000, 200, 200, 0)
    assert round(fewer_words / words, 2) == 0.52


def test_an_estimate_foresees_the_readings() -> None:
    with serving(Chat()) as server:
        session = session_of(server, together=True)
        frame = session.sql(f"SELECT {SELECT}, llm_map('What is it?', x) AS what FROM t LIMIT 40")
        expected = frame.estimate().total
        frame.collect()
        spent = frame.trace.usage
        assert (expected.values, expected.readings) == (spent.values, spent.readings) == (240, 80)


@pytest.mark.parametrize("field", ["q1", "q2", "q5"])
def test_a_question_without_an_answer_is_asked_alone(field: str) -> None:
    query = f"SELECT n, {SELECT} FROM t ORDER BY n"
    found, requests, _, trace = run(Chat(forgets=field), query, rows=20, together=True)
    assert found == run(Chat(), query, rows=20)[0]
    assert requests == trace.requests == 40
    assert trace.failed == 0


def odds(body: Body) -> Reply:
    """An answer with the odds of its tokens, where it is one word."""
    reply = Chat()(body)
    word = "No" if '"No"' in reply.content else "Yes"
    return replace(reply, tokens=[(word, {word: -0.1, "No" if word == "Yes" else "Yes": -2.4})])


@pytest.mark.parametrize(
    ("select", "requests"),
    [
        (
            "CASE WHEN llm_filter('Is it late?', x) THEN llm_int('How many?', x, evidence => false) END AS a",
            30,
        ),
        ("llm_int('How many?', x, evidence => false) AS a, llm_map('What is it?', x) AS b", 40),
        (
            "llm_int('How many?', x, evidence => false) AS a, llm_int('How much?', upper(x), evidence => false) AS b",
            40,
        ),
        (
            "llm_int('How many?', x, evidence => false) AS a, llm_filter('Is it?', x, confidence => 'all') AS b",
            40,
        ),
    ],
)
def test_other_questions_are_requests_of_their_own(select: str, requests: int) -> None:
    with serving(odds) as server:
        session_of(server, 20, together=True).sql(f"SELECT {select} FROM t").collect()
        assert len(server.bodies) == requests


def test_it_is_off_by_default_and_answers_are_stored_apart() -> None:
    name = "openai:tiny@http://127.0.0.1:1/v1"
    usual = load(name, Options())
    together = load(name, Options(together=True))
    assert not isinstance(usual, TogetherModel)
    assert isinstance(together, TogetherModel)
    assert together.info.fingerprint != usual.info.fingerprint
    both = load(name, Options(together=True, rows_per_prompt=10))
    assert both.info.fingerprint not in (together.info.fingerprint, usual.info.fingerprint)
