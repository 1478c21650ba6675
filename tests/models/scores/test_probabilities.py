"""Probabilities of answers as results: of a yes, and of every possible answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from decision_server import Decisions
from hypothesis import given
from hypothesis import strategies as st
from local_model import weights_or_skip
from loopback import Body, Reply, serving

import blendfusion as bf
from blendfusion.models.constraints.constraint import holds, possible_answers
from blendfusion.models.scores.distribution import distribution_of
from blendfusion.models.scores.logprobs import written_odds, written_shares
from blendfusion.models.scores.token import Token
from blendfusion.types import Constraint

TEXTS = ["ab", "abcdef", "abcdefgh", None]
LETTERS = "llm_classify(text, ['a', 'b', 'c'], confidence => 'all')"
SHARES = [(0.2, 0.4, 0.4), (1 / 9, 2 / 9, 6 / 9), (1 / 11, 2 / 11, 8 / 11)]


def share_of_yes(request: bf.Request) -> Any:
    """A longer text is a yes by as many tenths as it has letters, and a ``c`` in proportion."""
    length = len(request.values[0] or "")
    if request.constraint.kind == "boolean":
        return {True: length / 10, False: 1 - length / 10}
    return {"a": 1, "b": 2, "c": length} if request.constraint.options else {1: 1, 3: 3}


def connect(fn: Callable[[bf.Request], Any] = share_of_yes) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(fn)
    session = bf.connect(model, progress="off")
    session.from_pydict({"id": [1, 2, 3, 4], "text": TEXTS}, "t")
    return session, model


def test_the_probability_of_a_yes_shares_its_answers_with_the_filter() -> None:
    session, model = connect()
    rows = session.sql("SELECT llm_probability('Late?', text) AS p FROM t ORDER BY id").to_pydict()
    assert rows == {"p": [0.2, 0.6, 0.8, None]}
    assert len(model.calls) == 3
    late = session.sql("SELECT id FROM t WHERE llm_filter('Late?', text)").to_pydict()
    later = session.sql("SELECT id FROM t WHERE llm_filter('Late?', text, threshold => 0.7)")
    assert (late, later.to_pydict()) == ({"id": [2, 3]}, {"id": [3]})
    assert len(model.calls) == 3


def test_a_threshold_counts_from_its_own_value_on() -> None:
    session, _ = connect()
    query = "SELECT id FROM t WHERE llm_bool('Late?', text, threshold => {}) ORDER BY id"
    for least, ids in ((0.2, [1, 2, 3]), (0.6, [2, 3]), (0.81, []), (0.8, [3])):
        assert session.sql(query.format(least)).to_pydict() == {"id": ids}


def test_every_answer_has_its_probability() -> None:
    session, model = connect()
    frame = session.sql(f"SELECT {LETTERS} AS m FROM t ORDER BY id")
    found = frame.to_pydict()["m"]
    assert found[3] is None
    for pairs, shares in zip(found[:3], SHARES, strict=True):
        assert [name for name, _ in pairs] == ["a", "b", "c"]
        assert [p for _, p in pairs] == pytest.approx(shares, abs=1e-9)
    query = f"SELECT id, {LETTERS}['c'] AS c FROM t WHERE {LETTERS}['c'] > 0.5 ORDER BY id"
    assert session.sql(query).to_pydict()["id"] == [2, 3]
    assert len(model.calls) == 3


def test_yes_and_no_and_the_points_of_a_scale_have_theirs() -> None:
    session, _ = connect()
    rows = session.sql(
        "SELECT llm_filter('Late?', text, confidence => 'all') AS yes, "
        "llm_score('Angry?', text, low => 1, high => 3, confidence => 'all') AS score "
        "FROM t WHERE id = 2"
    ).to_pydict()
    assert rows["yes"] == [[("true", 0.6), ("false", 0.4)]]
    assert rows["score"] == [[("1", 0.25), ("2", 0.0), ("3", 0.75)]]


def test_expected_values_are_aggregates() -> None:
    session, _ = connect()
    row = session.sql(
        f"SELECT sum(llm_probability('Late?', text)) AS late, avg({LETTERS}['b']) AS b FROM t"
    ).to_pylist()[0]
    assert row["late"] == pytest.approx(1.6)
    assert row["b"] == pytest.approx(sum(b for _, b, _ in SHARES) / 3)


def test_a_sum_of_probabilities_is_decided_early() -> None:
    session, model = connect(lambda call: {True: 1, False: 0})
    texts = [f"text {i}" for i in range(500)]
    session.from_pydict({"side": [i % 2 for i in range(500)], "text": texts}, "many")
    query = "SELECT side FROM many GROUP BY side HAVING sum(llm_probability('Late?', text)) > 9"
    assert sorted(session.sql(query).to_pydict()["side"]) == [0, 1]
    assert len(model.calls) < 100


def test_a_map_is_no_answer() -> None:
    session, _ = connect()
    for query in (f"SELECT id FROM t WHERE {LETTERS} = 'a'", f"SELECT id FROM t WHERE {LETTERS}"):
        with pytest.raises(bf.ArgumentError, match="gives a map of answers") as caught:
            session.sql(query)
        assert "['an answer'] > 0.5" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("llm_map('Why?', text, confidence => 'all')", "answers from a closed set, not of text"),
        ("llm_filter('Late?', text, confidence => 'all', accuracy => 0.9, model => ['a', 'b'])", "a cascade"),
        ("llm_map('X?', text, options => ['a', 'b'], consistency => 3, confidence => 'all')", "consistency"),
        ("llm_filter('Late?', text, threshold => 0.9, confidence => 0.8)", "threshold does not go"),
        ("llm_filter('Late?', text, threshold => 1.5)", "threshold => 1.5 is not possible"),
        ("llm_score('Angry?', text, confidence => 0.5)", "not of score from 0 to 10"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_probabilities_is_refused(call: str, problem: str) -> None:
    session, _ = connect()
    with pytest.raises(bf.ArgumentError, match=problem):
        session.sql(f"SELECT {call} FROM t")


def test_a_model_without_probabilities_is_refused() -> None:
    session, _ = connect(lambda call: call.constraint.kind == "boolean" or "a")
    with pytest.raises(bf.QueryError, match="does not tell how probable its answers are"):
        session.sql("SELECT llm_probability('Late?', text) FROM t").collect()
    frame = session.sql(f"SELECT {LETTERS} AS m FROM t")
    with pytest.warns(bf.AnswerWarning, match="a probability for each of one of"):
        assert frame.to_pydict() == {"m": [None] * 4}


def test_estimates_guess_probabilities_too() -> None:
    session, model = connect()
    frame = session.sql(
        f"SELECT id FROM t WHERE llm_probability('Late?', text) > 0.5 AND {LETTERS}['a'] > 0.1"
    )
    assert frame.estimate().total.values > 0
    assert not model.calls


# ---------------------------------------------------------------- models


def test_a_decision_model_states_them() -> None:
    def odds(state: str, question: str, options: Any) -> list[float]:
        return [0.7, 0.3] if list(options) == ["yes", "no"] else [0.1, 0.7, 0.2]

    model = Decisions(odds)
    with serving(model.systemone) as server:
        address = server.url.removesuffix("/v1")
        session = bf.connect(f"systemone:{model.model}@{address}", cache=None, progress="off")
        session.from_pydict({"text": ["some text"]}, "t")
        rows = session.sql(
            f"SELECT llm_probability('Late?', text) AS p, {LETTERS} AS m, "
            "llm_score('Angry?', text, low => 0, high => 2, confidence => 'all') AS s FROM t"
        ).to_pylist()
    assert rows == [
        {
            "p": 0.7,
            "m": [("a", 0.1), ("b", 0.7), ("c", 0.2)],
            "s": [("0", 0.1), ("1", 0.7), ("2", 0.2)],
        }
    ]


def test_a_server_that_gives_logprobs_states_them() -> None:
    def script(body: Body) -> Reply:
        logprobs = {n: math.log(p) for n, p in (("b", 0.5), ("a", 0.3), ("c", 0.1), ("x", 0.1))}
        opening = [(text, {text: 0.0}) for text in ('{"', "answer", '":', ' "')]
        return Reply('{"answer": "b"}', tokens=[*opening, ("b", logprobs), ('"}', {})])

    with serving(script) as server:
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off")
        session.from_pydict({"text": ["some text"]}, "t")
        (row,) = session.sql(f"SELECT {LETTERS} AS m FROM t").to_pylist()
    assert dict(row["m"]) == pytest.approx({"a": 3 / 9, "b": 5 / 9, "c": 1 / 9}, abs=1e-8)


def test_a_server_without_logprobs_is_asked_once_and_fails_each_value() -> None:
    with serving(lambda body: Reply('{"answer": "b"}')) as server:
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off")
        session.from_pydict({"text": ["some text", "another"]}, "t")
        frame = session.sql(f"SELECT {LETTERS} AS m FROM t")
        with pytest.warns(bf.AnswerWarning, match="states no probabilities"):
            assert frame.to_pydict() == {"m": [None, None]}
        assert frame.trace.values == 2


@pytest.mark.long
def test_the_packaged_model_weighs_every_option_as_it_chooses() -> None:
    weights = weights_or_skip()
    texts = ["The screen broke.", "I love it, five stars!", "Where is my parcel?", "It is blue."]
    session = bf.connect(f"llama:{weights}", cache=None, progress="off")
    session.from_pydict({"text": texts}, "t")
    labels = "['complaint', 'praise', 'question about delivery', 'question about price']"
    rows = session.sql(
        f"SELECT llm_classify(text, {labels}, confidence => 'keep') AS best, "
        f"llm_classify(text, {labels}, confidence => 'all') AS m, "
        "llm_probability('Is it a complaint?', text) AS p, "
        "llm_filter('Is it a complaint?', text) AS yes FROM t"
    ).to_pylist()
    for row in rows:
        shares = dict(row["m"])
        assert sum(shares.values()) == pytest.approx(1, abs=1e-6)
        assert shares[row["best"]["value"]] == pytest.approx(row["best"]["confidence"], abs=1e-6)
        assert (row["p"] > 0.5) == row["yes"]
    alone = []
    for text in texts:  # whatever other rows there are
        session = bf.connect(f"llama:{weights}", cache=None, progress="off")
        session.from_pydict({"text": [text]}, "t")
        query = f"SELECT llm_classify(text, {labels}, confidence => 'all') AS m FROM t"
        alone += session.sql(query).to_pydict()["m"]
    assert alone == [row["m"] for row in rows]


# ---------------------------------------------------------------- texts

CHOICE = Constraint("choice", options=("a", "b", 'c"'), distribution=True)


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=3).filter(any))
def test_odds_become_a_valid_distribution(odds: list[float]) -> None:
    text = distribution_of(dict(zip(CHOICE.options, odds, strict=True)), CHOICE)
    assert text is not None
    assert holds(CHOICE, text)


@pytest.mark.parametrize(
    "text",
    ["", "a", "{}", "[]", "3", '{"a": 1, "b": 0}', '{"b": 1, "a": 0, "c\\"": 0}', "[" * 9_999,
     '{"a": 0.5, "b": 0.5, "c\\"": 0.5}', '{"a": true, "b": 0, "c\\"": 0}',
     '{"a": 2, "b": -1, "c\\"": 0}', '{"a": NaN, "b": 1, "c\\"": 0}', '{"a": "1", "b": 0, "c\\"": 0}',
     '{"a": 1, "a": 1, "b": 0, "c\\"": 0}'],
)  # fmt: skip
def test_other_texts_are_none(text: str) -> None:
    assert not holds(CHOICE, text)


@pytest.mark.parametrize("odds", [{}, {"a": 0}, {"x": 1}, {"a": -1}, {"a": math.inf}, {"a": True}])
def test_invalid_odds_are_none(odds: dict[Any, Any]) -> None:
    assert distribution_of(odds, CHOICE) is None


def test_possible_answers_are_options_points_or_both_truths() -> None:
    assert possible_answers(Constraint("boolean")) == ("true", "false")
    assert possible_answers(Constraint("score", scale=(1, 2))) == ("1", "2")
    assert possible_answers(Constraint("text")) == ()


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
def test_shares_of_replies_that_begin_alike(odds: list[float]) -> None:
    total = sum(odds)
    red, gray, green, other = (one / total for one in odds)
    begun = gray + green
    tokens = [
        Token("gr", {"gr": math.log(begun), "red": math.log(red), "?": math.log(other)}),
        Token("ay", {"ay": math.log(gray / begun), "een": math.log(green / begun)}),
    ]
    replies = ("red", "gray", "green")
    shares = written_shares(tokens, replies, "gray")
    assert shares == pytest.approx([red, gray, green])
    single = written_odds(tokens, replies, "gray")
    assert single == pytest.approx(math.log(gray / (red + gray + green)))


def test_a_stored_distribution_is_found_again(tmp_path: Any) -> None:
    fn = bf.ScriptedModel(share_of_yes, fingerprint="lengths")
    query = f"SELECT {LETTERS} AS m FROM t"
    found = []
    for _ in range(2):
        session = bf.connect(fn, cache=str(tmp_path / "answers.db"), progress="off")
        session.from_pydict({"text": ["abcdef"]}, "t")
        found += session.sql(query).to_pydict()["m"]
        session.close()
    assert found[0] == found[1]
    assert len(fn.calls) == 1
    assert json.loads(json.dumps(dict(found[0])))["b"] == pytest.approx(2 / 9)


# ---------------------------------------------------------------- levels with descriptions

LEVELS = "levels => ['can wait', 'this week', 'today']"


def test_levels_are_a_scale_from_zero() -> None:
    session, model = connect(lambda call: {0: 1, 2: 3} if call.values[0] == "ab" else 1)
    rows = session.sql(f"SELECT llm_score('Urgent?', text, {LEVELS}) AS s FROM t ORDER BY id")
    assert rows.to_pydict() == {"s": [1.5, 1.0, 1.0, None]}
    constraint = model.calls[0].constraint
    assert (constraint.scale, constraint.meanings) == ((0, 2), ("can wait", "this week", "today"))


@pytest.mark.parametrize("scheme", ["systemone", "openai", "sglang"])
def test_a_decision_model_reads_the_descriptions_of_levels(scheme: str) -> None:
    model = Decisions(lambda state, question, options: [0.2, 0.3, 0.5])
    path = {"systemone": "", "openai": "/v1", "sglang": "/v1"}[scheme]
    names = {"systemone": "systemone", "openai": "decisions", "sglang": "sglang-decisions"}
    with serving(getattr(model, scheme)) as server:
        address = server.url.removesuffix("/v1") + path
        session = bf.connect(f"{names[scheme]}:{model.model}@{address}", cache=None, progress="off")
        session.from_pydict({"text": ["some text"]}, "t")
        rows = session.sql(f"SELECT llm_score('Urgent?', text, {LEVELS}) AS s FROM t").to_pydict()
        assert "this week" in json.dumps(server.bodies[0])
    assert rows["s"] == [pytest.approx(1.3)]


def test_a_server_is_told_the_descriptions_and_packed_rows_too() -> None:
    def script(body: Body) -> Reply:
        packed = '"1"' in json.dumps(body.get("response_format", {}))
        return Reply('{"1": 2, "2": 0}' if packed else '{"answer": "2"}')

    for options in ({}, {"rows_per_prompt": 2}):
        with serving(script) as server:
            session = bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off", **options)
            session.from_pydict({"text": ["some text", "another"]}, "t")
            session.sql(f"SELECT llm_score('Urgent?', text, {LEVELS}) AS s FROM t").collect()
            told = json.dumps(server.bodies)
        assert all(level in told for level in ("can wait", "this week", "today"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [("levels => ['a']", "is not possible"), ("levels => ['a', 'a']", "is not possible"),
     ("levels => ['a', 3]", "is not possible"), ("levels => ['a', 'b'], low => 1", "do not go")],
)  # fmt: skip
def test_levels_that_are_no_scale_are_refused(options: str, problem: str) -> None:
    session, _ = connect()
    with pytest.raises(bf.ArgumentError, match=problem):
        session.sql(f"SELECT llm_score('Urgent?', text, {options}) FROM t")
