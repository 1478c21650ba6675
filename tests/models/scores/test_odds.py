"""How probable an answer from a closed set is: by a function's odds, by the tokens of a server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Body, Reply, serving

from blendfusion.models.scores.logprobs import likeliest, written_odds
from blendfusion.models.scores.token import Token
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

COLOURS = Constraint("choice", options=("red", "green", "gray"))


@pytest.mark.parametrize(
    "odds", [{}, {"red": 0}, {"pink": 1}, {"red": -1, "green": 2}, {"red": math.inf}, {"red": True}]
)
def test_what_are_no_odds_of_the_options_is_no_answer(odds: Mapping[object, object]) -> None:
    assert likeliest(odds, COLOURS) is None


@given(st.lists(st.floats(0, 100), min_size=3, max_size=3).filter(any))
def test_the_likeliest_option_has_its_share(shares: list[float]) -> None:
    found = likeliest(dict(zip(COLOURS.options, shares, strict=True)), COLOURS)
    assert found is not None
    best = max(shares)
    assert found[0] == COLOURS.options[shares.index(best)]
    assert math.exp(found[1]) == pytest.approx(best / sum(shares))


def token(text: str, **others: float) -> Token:
    return Token(text, {name.strip("_"): math.log(share) for name, share in others.items()})


OPENING = [Token(text, {text: 0.0}) for text in ('{"', "answer", '":', ' "')]


@pytest.mark.parametrize(
    ("tokens", "probability"),
    [
        ([token("Yes", Yes=0.8, No=0.2)], 0.8),
        ([*OPENING, token("Yes", Yes=0.6, No=0.2, Maybe=0.2), Token('"}', {})], 0.75),
        ([token("Y", Y=0.5, Yes=0.25, N=0.25), token("es", es=1.0)], 0.75),
        ([token("Yes", Yes=0.9)], 1.0),
        ([token("yes", yes=0.6, Yes=0.2, No=0.2)], 0.8),
    ],
)
def test_a_reply_tells_its_probability_among_the_replies(
    tokens: Sequence[Token], probability: float
) -> None:
    found = written_odds(tokens, ("Yes", "No"), "Yes")
    assert found is not None
    assert math.exp(found) == pytest.approx(probability)


def test_options_that_begin_alike_part_further_on() -> None:
    tokens = [token("g", g=0.8, red=0.2), token("reen", reen=0.75, ray=0.25)]
    found = written_odds(tokens, COLOURS.options, "green")
    assert found is not None
    assert math.exp(found) == pytest.approx(0.6)


def test_an_option_that_another_begins_with_is_told_by_its_end() -> None:
    tokens = [token("art", art=1.0), token('"}', **{'"}': 0.7, "ist": 0.3})]
    found = written_odds(tokens, ("art", "artist"), "art")
    assert found is not None
    assert math.exp(found) == pytest.approx(0.7)


@pytest.mark.parametrize("tokens", [[], [Token("Yes", {})], [token("Perhaps", Perhaps=1.0)]])
def test_tokens_that_tell_nothing_tell_no_probability(tokens: Sequence[Token]) -> None:
    assert written_odds(tokens, ("Yes", "No"), "Yes") is None


@pytest.mark.parametrize("tells", [True, False])
def test_a_server_that_tells_odds_gives_answers_with_probabilities(tells: bool) -> None:
    def script(body: Body) -> Reply:
        assert body["logprobs"] is True
        logprobs = {"No": math.log(0.9), "Yes": math.log(0.1)}
        tokens = [*((t.text, dict(t.logprobs)) for t in OPENING), ("No", logprobs), ('"}', {})]
        return Reply('{"answer": "No"}', tokens=tokens if tells else [])

    task = Task("llm_filter", "Is it?", Constraint("boolean"), ("text",))
    with serving(script) as server:
        answer = OpenAIModel("tiny", server.url, None, Options()).answer(task, [("a",)])[0]
    assert answer.text == "false"
    assert answer.logprob == (pytest.approx(math.log(0.9)) if tells else None)
