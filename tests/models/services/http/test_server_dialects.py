"""Every server gets the form of constraint that it heeds, found out in a few requests."""

from __future__ import annotations

import pytest
from loopback import Loopback, form_of
from server_dialects import (
    LLAMA_SERVER,
    OLDER_OPENAI,
    OLDER_VLLM,
    OLLAMA,
    OLLAMA_CLOUD,
    OPENAI,
    SGLANG,
    VLLM,
    Dialect,
    speaking,
)

from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.structured_output import forms_named
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Task

COLOURS = ("Red", "Blue")
ASKED: dict[str, tuple[Task, tuple[str, ...]]] = {
    "choice": (
        Task("llm_classify", "Which?", Constraint("choice", options=COLOURS), ("text",)),
        COLOURS,
    ),
    "boolean": (Task("llm_filter", "Fine?", Constraint("boolean"), ("text",)), ("Yes", "No")),
    "integer": (Task("llm_int", "How many?", Constraint("integer"), ("text",)), ("12", "-3", "0")),
    "date": (
        Task("llm_date", "When?", Constraint("date"), ("text",)),
        ("2024-02-29", "1999-12-31"),
    ),
    "regex": (
        Task("llm_regex", "Code?", Constraint("regex", pattern=r"[A-Z]{2}-\d+"), ("text",)),
        ("AB-1", "ZZ-999"),
    ),
}
CANONICAL = {"Yes": "true", "No": "false"}


def ask(dialect: Dialect, task: Task, values: tuple[str, ...]) -> tuple[list[Answer], Loopback]:
    with speaking(dialect) as server:
        options = Options(concurrency=1)
        model = OpenAIModel("tiny", server.url, None, options, retry=Retry(attempts=2))
        model.check()
        return model.answer(task, [(f"it is «{value}», they said",) for value in values]), server


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize(
    ("dialect", "form"),
    [
        (VLLM, "structured_outputs"),
        (OLDER_VLLM, "guided"),
        (SGLANG, "regex"),
        (LLAMA_SERVER, "grammar"),
        (OLLAMA, "response_format"),
        (OPENAI, "response_format"),
    ],
    ids=["vLLM", "vLLM 0.9", "SGLang", "llama-server", "Ollama", "OpenAI"],
)
def test_a_server_is_asked_in_the_form_that_it_heeds(
    dialect: Dialect, form: str, kind: str
) -> None:
    task, values = ASKED[kind]
    answers, server = ask(dialect, task, values)
    assert [answer.error for answer in answers] == [None] * len(values)
    assert [answer.text for answer in answers] == [CANONICAL.get(v, v) for v in values]
    assert form_of(server.bodies[-1]).startswith(form)
    assert answers[-1].usage.calls == 1


@pytest.mark.parametrize("dialect", [OLLAMA_CLOUD, OLDER_OPENAI], ids=["Ollama cloud", "gpt-4"])
def test_a_server_that_holds_its_model_to_nothing_is_asked_in_words(dialect: Dialect) -> None:
    task, values = ASKED["choice"]
    answers, server = ask(dialect, task, values)
    assert form_of(server.bodies[-1]) == ""
    assert "not one of {Red, Blue}" in str(answers[-1].error)


def test_what_is_ignored_without_a_word_is_found_out_before_any_value_is_asked() -> None:
    """A proof is one request: held to a word that no model would say, the server says it."""
    task, values = ASKED["integer"]
    _, server = ask(OLDER_VLLM, task, values)
    forms = [form_of(body) for body in server.bodies]
    assert forms == ["structured_outputs", "guided_choice", *["guided_regex"] * 3]
    proofs = [body["messages"] for body in server.bodies[:2]]
    assert proofs[0] == proofs[1]
    assert "text" not in str(proofs)


def test_a_proof_holds_for_all_kinds_of_questions() -> None:
    with speaking(SGLANG) as server:
        model = OpenAIModel("tiny", server.url, None, Options(concurrency=1))
        model.check()
        for task, values in ASKED.values():
            model.answer(task, [(f"«{value}»",) for value in values])
    asked = sum(len(values) for _, values in ASKED.values())
    assert len(server.bodies) == asked + 1


def test_json_is_left_to_a_schema() -> None:
    items = Constraint("list", item=Constraint())
    with speaking(LLAMA_SERVER) as server:
        model = OpenAIModel("tiny", server.url, None, Options(), retry=Retry(attempts=1))
        model.check()
        model.answer(Task("llm_list", "Which?", items, ("text",)), [("a",)])
    assert form_of(server.bodies[0]) == "response_format"


def test_a_server_that_does_not_say_what_it_is_gets_the_standard_form_first() -> None:
    task, values = ASKED["choice"]
    answers, server = ask(Dialect("", VLLM.held), task, values)
    assert [answer.text for answer in answers] == list(values)
    assert {form_of(body) for body in server.bodies} == {"response_format"}


@pytest.mark.parametrize(
    ("pattern", "reply", "obeyed"),
    [
        (r"\p{Lu}\p{L}*", "Ärger", True),
        (r"\p{Lu}\p{L}*", "no word", False),
        ("[a-z&&[^x]]+", "ab", True),
        ("(a+)+b", "a" * 5_000, False),  # Python's engine would try for ever
    ],
)
def test_a_reply_under_a_pattern_is_read_as_the_pattern_was(
    pattern: str, reply: str, obeyed: bool
) -> None:
    (form,) = forms_named(["regex"])
    assert form.is_obeyed(reply, Constraint("regex", pattern=pattern)) == obeyed
