"""Scores: the expected value over the points of a scale, from a tree of tokens or a server's
odds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.constraints.constraint import closed_set, holds, points, regex_of, schema_of
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.prompts.parse_reply import read_reply
from blendfusion.models.scores.token import Token
from blendfusion.models.services.http.completion import read_completion
from blendfusion.models.services.prompts.prompt import render, replies_of
from blendfusion.models.services.verbalizer.expected_score import (
    chains,
    expected_score,
    of_tokens,
    spread,
)
from blendfusion.models.services.verbalizer.option_trie import build, forks
from blendfusion.types import Constraint, Task

TEN = Constraint("score", scale=(0, 10))
SCALES = [
    Constraint("score", scale=scale) for scale in [(0, 10), (1, 5), (-5, 5), (-3, -1), (95, 105)]
]


@pytest.mark.parametrize("constraint", SCALES, ids=str)
@given(data=st.data())
def test_what_the_regex_admits_holds_and_lies_on_the_scale(
    constraint: Constraint, data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(regex_of(constraint), fullmatch=True))
    low, high = constraint.scale or (0, 0)
    assert holds(constraint, text)
    assert low <= float(text) <= high


@pytest.mark.parametrize("constraint", SCALES, ids=str)
@given(share=st.floats(0, 1))
def test_every_number_of_the_scale_holds(constraint: Constraint, share: float) -> None:
    low, high = constraint.scale or (0, 0)
    assert holds(constraint, canonical(low + share * (high - low), constraint))


@pytest.mark.parametrize("text", ["", "-1", "10.5", "11", "3.1234567", "1e0", "nan", "seven", "7 "])
def test_what_is_no_number_of_the_scale_does_not_hold(text: str) -> None:
    assert not holds(TEN, text)


def test_the_views_of_a_score() -> None:
    assert points(TEN) == tuple(map(str, range(11)))
    assert points(Constraint("integer")) == ()
    assert closed_set(TEN) is None
    assert schema_of(TEN) == {"type": "number", "minimum": 0, "maximum": 10}
    assert replies_of(Task("llm_score", "?", Constraint("score", scale=(1, 3)))) == ("1", "2", "3")
    assert read_reply('{"answer": "7"}', TEN) == "7"
    assert read_reply("7.5", TEN) == "7.5"
    assert read_reply("11", TEN) is None


@pytest.mark.parametrize(
    ("odds", "text"),
    [
        ({7: 1}, "7"),
        ({7: 0.5, 8: 0.5}, "7.5"),
        ({"0": 1, "10": 3}, "7.5"),
        ({3: 0.2, 4: 0.6}, "3.75"),
        ({}, None),
        ({11: 1.0}, None),
        ({1: -1.0, 2: 2.0}, None),
        ({"many": 1.0}, None),
        ({1: "many"}, None),
        ({1: None}, None),
        ({1: math.nan}, None),
        ({1: math.inf}, None),
        ({1: 0.0}, None),
    ],
)
def test_a_mapping_is_odds(odds: dict[int, float], text: str | None) -> None:
    said = canonical(odds, TEN)
    assert said == text if text is not None else not holds(TEN, said)


def test_the_prompt_says_the_scale() -> None:
    task = Task("llm_score", "How good is it?", Constraint("score", scale=(1, 5)), ("text",))
    prompt = render(task)
    assert prompt.ask(("Fine.",)) == "Question: How good is it?\nScale: 1 to 5\nText: Fine."
    assert prompt.shots == ()


# ---------------------------------------------------------------- trees of tokens

DIGITS = [[int(digit) for digit in str(n)] for n in range(11)]
"""The points from 0 to 10 where each digit is a token."""
END = 99


def test_every_fork_is_in_one_chain_below_the_one_before() -> None:
    root = build([[9, 5], [9, 6], [1, 0, 0], [1, 0, 1], [1, 1]], END)
    found = chains(root)
    assert sorted(f.path for chain in found for f in chain) == sorted(f.path for f in forks(root))
    assert found[0][0] is root
    for chain in found:
        for above, below in itertools.pairwise(chain):
            assert below.path[: len(above.path)] == above.path


@given(st.lists(st.floats(-20, 0), min_size=11, max_size=11))
def test_the_odds_of_all_options_add_up_to_one(logits: list[float]) -> None:
    root = build(DIGITS, END)
    scores = {
        fork: np.log(np.exp(logits[: len(fork.tokens)]) / np.exp(logits[: len(fork.tokens)]).sum())
        for fork in forks(root)
    }
    found = spread(root, scores)
    assert sorted(found) == list(range(11))
    assert sum(map(math.exp, found.values())) == pytest.approx(1)
    assert holds(TEN, expected_score(found, TEN))


def test_an_option_is_as_likely_as_its_branches_together() -> None:
    root = build(DIGITS, END)
    [below] = [fork for fork in forks(root) if fork is not root]
    even = {root: np.log(np.full(10, 0.1)), below: np.log(np.array([0.25, 0.75]))}
    found = {place: round(math.exp(logprob), 6) for place, logprob in spread(root, even).items()}
    assert found == {**dict.fromkeys([0, *range(2, 10)], 0.1), 1: 0.025, 10: 0.075}


# ---------------------------------------------------------------- what servers tell


def told(*tokens: tuple[str, dict[str, float]]) -> list[Token]:
    """Tokens with the probabilities of those in their places."""
    return [Token(text, {t: math.log(p) for t, p in odds.items()}) for text, odds in tokens]


def sure(*texts: str) -> list[Token]:
    return told(*((text, {text: 1.0}) for text in texts))


@pytest.mark.parametrize(
    ("tokens", "score"),
    [
        (told(("7", {"7": 0.5, "8": 0.5})), "7.5"),
        (
            [
                *sure('{"', "answer", '":', ' "'),
                *told(("7", {"7": 0.6, "9": 0.2, "many": 0.2})),
                *sure('"}'),
            ],
            "7.5",
        ),
        (told((" 10", {" 10": 0.5, " 0": 0.5})), "5"),
        ([*told(("1", {"1": 0.5, "2": 0.5})), *told(("0", {"0": 0.5, '"': 0.5}))], "3.75"),
        ([*told(("1", {"1": 0.5, "2": 0.5})), *told(('"}', {"0": 0.5, '"}': 0.5}))], "3.75"),
        (told(("1", {"1": 0.5, "2": 0.5})), "1.5"),
        ([*sure("<think>", "3", "?</think>"), *told(("8", {"8": 1.0}))], "8"),
        (sure("no", " idea"), None),
        ([], None),
        ([Token("7", {})], None),
    ],
)
def test_the_odds_of_a_reply_give_its_score(tokens: list[Token], score: str | None) -> None:
    assert of_tokens(tokens, TEN) == score


def test_negative_points_are_read_in_several_tokens() -> None:
    scale = Constraint("score", scale=(-2, 2))
    tokens = told(("-", {"-": 0.5, "2": 0.5}), ("1", {"1": 0.5, "2": 0.5}))
    assert of_tokens(tokens, scale) == "0.25"


def test_a_completion_tells_its_tokens() -> None:
    reply = {
        "choices": [
            {
                "message": {"content": "7"},
                "finish_reason": "stop",
                "logprobs": {
                    "content": [
                        {
                            "token": "7",
                            "logprob": -0.5,
                            "top_logprobs": [
                                {"token": "8", "logprob": -1.0},
                                {"token": "9", "logprob": 10**400},
                                {"token": "6", "logprob": math.nan},
                                {"token": 3},
                                "odd",
                            ],
                        },
                        "odd",
                    ]
                },
            }
        ]
    }
    assert read_completion(reply).tokens == (Token("7", {"7": -0.5, "8": -1.0, "9": 0.0}),)  # type: ignore[arg-type]
    assert (
        read_completion({"choices": [{"message": {"content": "7"}, "logprobs": None}]}).tokens == ()
    )
