"""Scores and structs from a server: odds where it tells them, objects under every form."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from loopback import FORM_FIELDS, Body, Loopback, Reply, form_of, serving

from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Task
from blendfusion.udfs.declare.struct_schema import fields_of

SCORE = Task("llm_score", "How good is it?", Constraint("score", scale=(0, 10)), ("text",))
FILM = Task(
    "llm_extract", "", Constraint("struct", fields=fields_of("name TEXT, year INT")), ("t",)
)
FAST = Retry(attempts=3, base_seconds=0.001)


def ask(
    script: Callable[[Body], Reply], task: Task, *texts: str, shots: bool = False
) -> tuple[list[Answer], Loopback]:
    with serving(script) as server:
        options = Options(concurrency=1, shots=shots)
        model = OpenAIModel("tiny", server.url, None, options, retry=FAST)
        return model.answer(task, [(text,) for text in texts]), server


def odds(**shares: float) -> dict[str, float]:
    return {token.removeprefix("n"): math.log(share) for token, share in shares.items()}


def wrapped(point: str, logprobs: dict[str, float]) -> Reply:
    tokens = [*((t, {t: 0.0}) for t in ('{"', "answer", '":', ' "')), (point, logprobs), ('"}', {})]
    return Reply(f'{{"answer": "{point}"}}', tokens=tokens)


def test_the_score_is_what_the_odds_let_expect() -> None:
    answers, server = ask(
        lambda body: wrapped("7", odds(n7=0.5, n8=0.25, n6=0.25)), SCORE, "a", "b"
    )
    assert [answer.text for answer in answers] == ["7", "7"]
    answers, server = ask(lambda body: wrapped("7", odds(n7=0.5, n9=0.25, many=0.25)), SCORE, "a")
    assert [answer.text for answer in answers] == ["7.666667"]
    assert (server.bodies[0]["logprobs"], server.bodies[0]["top_logprobs"]) == (True, 20)
    schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["answer"]["enum"] == [str(n) for n in range(11)]


def test_without_odds_the_number_itself_is_the_score() -> None:
    answers, _ = ask(lambda body: Reply('{"answer": "7"}'), SCORE, "a")
    assert answers[0].text == "7"


def test_only_scores_ask_for_odds() -> None:
    _, server = ask(lambda body: Reply('{"answer": {"name": "x"}}'), FILM, "a")
    assert "logprobs" not in server.bodies[0]


@pytest.mark.parametrize("status", [400, 403, 500])
@pytest.mark.parametrize("most", [5, 0])
def test_a_server_that_tells_fewer_odds_or_none_is_asked_so_from_then_on(
    status: int, most: int
) -> None:
    def script(body: Body) -> Reply:
        if body.get("top_logprobs", 0) > most:
            return Reply(status=status, error="You are not allowed to request so many 'logprobs'")
        if "top_logprobs" in body:
            return wrapped("7", odds(n7=0.5, n8=0.5))
        return Reply('{"answer": "7"}')

    answers, server = ask(script, SCORE, "a", "b", "c")
    assert {answer.text for answer in answers} == {"7.5" if most else "7"}
    assert sum(body.get("top_logprobs", 0) > most for body in server.bodies) == (1 if most else 2)
    assert answers[-1].usage.calls == 1


def test_a_reply_in_the_middle_of_two_points_stays_on_the_scale() -> None:
    script = lambda body: Reply("11") if form_of(body) else Reply("7.5")  # noqa: E731
    answers, _ = ask(script, SCORE, "a")
    assert answers[0].text == "7.5"


WHOLE = '{"name": "Alien", "year": 1979}'


@pytest.mark.parametrize("form", [*FORM_FIELDS, ""])
def test_objects_come_under_every_form(form: str) -> None:
    def script(body: Body) -> Reply:
        if form_of(body) not in (form, ""):
            return Reply(status=400, error=f"Unrecognized argument: {form_of(body)}")
        return Reply(
            f'{{"answer": {WHOLE}}}' if form in ("response_format", "json_schema") else WHOLE
        )

    answers, server = ask(script, FILM, "Alien, 1979", "the same")
    assert [answer.text for answer in answers] == [WHOLE, WHOLE]
    wanted = form if form not in ("guided_choice", "grammar") else ""
    assert form_of(server.bodies[-1]) == wanted


def test_what_an_object_repeats_is_no_part_of_its_tokens() -> None:
    _, server = ask(lambda body: Reply(f'{{"answer": {WHOLE}}}'), FILM, "a")
    assert server.bodies[0]["max_tokens"] == 128 + math.ceil(
        len('{"name": null, "year": null}') / 3
    )


def test_shots_of_objects_are_wrapped_as_their_answers_are() -> None:
    _, server = ask(lambda body: Reply(f'{{"answer": {WHOLE}}}'), FILM, "a", shots=True)
    shots = [
        turn["content"] for turn in server.bodies[0]["messages"] if turn["role"] == "assistant"
    ]
    assert shots
    assert all(isinstance(json.loads(shot)["answer"], dict) for shot in shots)


def test_a_server_that_wants_other_names_of_fields_gets_them_for_objects_too() -> None:
    def script(body: Body) -> Reply:
        if "max_tokens" in body:
            return Reply(status=400, error="Use 'max_completion_tokens' instead.")
        return Reply(f'{{"answer": {WHOLE}}}')

    answers, server = ask(script, FILM, "a", "b")
    assert [answer.text for answer in answers] == [WHOLE, WHOLE]
    assert answers[1].usage.calls == 1
    assert server.bodies[-1]["max_completion_tokens"] > 128
