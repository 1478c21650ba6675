"""Answers with their probabilities in queries: withheld below what a call wants, or kept beside."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import blendfusion as bf

TEXTS = ["sure", "likely", "unsure", "wrong", "", None]
ODDS = {"sure": 0.99, "likely": 0.8, "unsure": 0.55, "wrong": 0.05}


def yes_by_odds(call: bf.Request) -> dict[bool, float]:
    yes = ODDS[str(call.values[0])]
    return {True: yes, False: 1 - yes}


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(yes_by_odds)


@pytest.fixture
def session(model: bf.ScriptedModel) -> bf.Session:
    made = bf.connect(model, cache=None)
    made.from_pydict({"text": TEXTS}, name="t")
    return made


def answers(session: bf.Session, call: str) -> dict[str | None, object]:
    rows = session.sql(f"SELECT text, {call} AS f FROM t").to_pylist()
    return {row["text"]: row["f"] for row in rows}


@pytest.mark.parametrize("planner", [True, False])
def test_an_answer_that_is_less_probable_than_wanted_is_null(
    model: bf.ScriptedModel, planner: bool
) -> None:
    session = bf.connect(model, cache=None, planner=planner)
    session.from_pydict({"text": TEXTS}, name="t")
    call = "llm_filter('Is it?', text, confidence => 0.9)"
    expected = {"sure": True, "likely": None, "unsure": None, "wrong": False, "": None, None: None}
    assert answers(session, call) == expected


def test_a_row_without_a_sure_answer_passes_neither_a_predicate_nor_its_negation(
    session: bf.Session,
) -> None:
    call = "llm_filter('Is it?', text, confidence => 0.75)"
    passed = session.sql(f"SELECT text FROM t WHERE {call}").to_pydict()["text"]
    failed = session.sql(f"SELECT text FROM t WHERE NOT {call}").to_pydict()["text"]
    neither = session.sql(f"SELECT text FROM t WHERE {call} IS NULL").to_pydict()["text"]
    assert (sorted(passed), failed) == (["likely", "sure"], ["wrong"])
    assert set(neither) == {"unsure", "", None}


def test_three_valued_logic_holds_around_a_withheld_answer(session: bf.Session) -> None:
    unsure = "llm_filter('Is it?', text, confidence => 1)"
    row = session.sql(
        f"SELECT {unsure} AND false AS a, {unsure} OR true AS b, coalesce({unsure}, false) AS c, "
        f"CASE WHEN {unsure} THEN 'yes' WHEN NOT {unsure} THEN 'no' ELSE 'open' END AS d "
        "FROM t WHERE text = 'unsure'"
    ).to_pylist()
    assert row == [{"a": False, "b": True, "c": False, "d": "open"}]


def test_calls_share_answers_whatever_confidence_they_want(
    session: bf.Session, model: bf.ScriptedModel
) -> None:
    session.sql(
        "SELECT llm_filter('Is it?', text) AS a, llm_bool('Is it?', text, confidence => 0.6) AS b, "
        "llm_bool('Is it?', text, confidence => 0.9) AS c FROM t"
    ).to_pydict()
    assert len(model.calls) == 4
    call = "llm_filter('Is it?', text, confidence => 0.7)"
    assert answers(session, call)["unsure"] is None
    assert len(model.calls) == 4


def test_the_number_can_be_kept_beside_the_value(session: bf.Session) -> None:
    kept = answers(session, "llm_filter('Is it?', text, confidence => 'keep')")
    assert kept["wrong"] == {"value": False, "confidence": pytest.approx(0.95)}
    assert kept[""] is None
    assert kept[None] is None
    query = (
        "SELECT text FROM t WHERE text <> '' "
        "ORDER BY llm_filter('Is it?', text, confidence => 'keep').confidence LIMIT 2"
    )
    assert session.sql(query).to_pydict()["text"] == ["unsure", "likely"]


def test_the_kept_number_stands_between_value_and_error(session: bf.Session) -> None:
    call = "llm_filter('Is it?', text, confidence => 'keep', on_error => 'keep')"
    frame = session.sql(f"SELECT {call} AS f FROM t WHERE text = 'sure'")
    struct = pa.struct(
        [("value", pa.bool_()), ("confidence", pa.float64()), ("error", pa.string())]
    )
    assert frame.schema().field("f").type == struct
    assert frame.to_pylist() == [
        {"f": {"value": True, "confidence": pytest.approx(0.99), "error": None}}
    ]


def test_of_a_withheld_answer_a_struct_says_why(session: bf.Session) -> None:
    call = "llm_filter('Is it?', text, confidence => 0.9, on_error => 'keep')"
    kept = answers(session, call)
    assert kept["sure"] == {"value": True, "error": None}
    said = "withheld: its probability is 0.55, less than 0.9"
    assert kept["unsure"] == {"value": None, "error": said}


def test_withheld_answers_are_counted_and_are_no_errors(session: bf.Session) -> None:
    query = "SELECT text FROM t WHERE llm_filter('Is it?', text, confidence => 0.9, on_error => 'raise')"
    frame = session.sql(query)
    assert frame.to_pydict() == {"text": ["sure"]}
    assert (frame.trace.unsure, frame.trace.errors.num_rows, frame.trace.usage.failed) == (2, 0, 0)
    plan = session.sql(f"EXPLAIN ANALYZE {query}").to_pydict()["plan"]
    assert "2 withheld" in " ".join(plan)
    page = frame.trace.to_html()
    assert "Withheld" in page
    assert "Probability" in page


def test_options_have_probabilities_too() -> None:
    model = bf.ScriptedModel(lambda call: {"red": 0.5, "green": 0.3, "blue": 0.2})
    session = bf.connect(model, cache=None)
    session.from_pydict({"x": ["a"]}, name="t")
    query = """SELECT llm_classify(x, ['red', 'green', 'blue'], confidence => 0.5) AS a,
        llm_classify(x, ['red', 'green', 'blue'], confidence => 0.6) AS b,
        llm_map('Which?', x, options => ['red', 'green', 'blue'], confidence => 'keep') AS c FROM t"""
    kept = {"value": "red", "confidence": pytest.approx(0.5)}
    assert session.sql(query).to_pylist() == [{"a": "red", "b": None, "c": kept}]


def test_frames_have_it_too(session: bf.Session) -> None:
    sure = bf.llm_filter("Is it?", "text", confidence=0.9)
    kept = bf.llm_bool("Is it?", "text", confidence="keep")
    assert session.table("t").filter(sure).to_pydict() == {"text": ["sure"]}
    rows = session.table("t").select("text", kept.alias("f")).to_pylist()
    assert rows[1]["f"] == {"value": True, "confidence": pytest.approx(0.8)}


def test_the_only_option_is_certain() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: None), cache=None)
    session.from_pydict({"x": ["a"]}, name="t")
    query = "SELECT llm_map('Which?', x, options => (SELECT 'one'), confidence => 1) AS f FROM t"
    assert session.sql(query).to_pylist() == [{"f": "one"}]


def test_a_model_that_tells_no_probabilities_is_an_error() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True, name="mute"), cache=None)
    session.from_pydict({"x": ["a"]}, name="t")
    with pytest.raises(bf.QueryError, match="mute does not tell how probable its answers are"):
        session.sql("SELECT llm_filter('Is it?', x, confidence => 0.9) FROM t").collect()


@pytest.mark.parametrize(
    "call",
    [
        "llm_filter('Is it?', x, confidence => 0.9)",
        "llm_filter('Is it?', x, confidence => 'keep')",
        "llm_filter('Is it?', x, confidence => 'all')",
        "llm_classify(x, ['a', 'b'], confidence => 0.9, on_error => 'keep')",
        "llm_probability('Is it?', x)",
        "llm_filter('Is it?', x, threshold => 0.7)",
    ],
)
def test_missing_probabilities_are_told_before_all_values_are_paid(call: str) -> None:
    model = bf.ScriptedModel(
        lambda call: True if call.constraint.kind == "boolean" else "a", name="mute"
    )
    session = bf.connect(model, cache=None)
    session.from_pydict({"x": [f"v{n}" for n in range(2000)]}, name="t")
    for query in (f"SELECT {call} AS f FROM t", f"SELECT max(x) AS f FROM t GROUP BY {call}"):
        with pytest.raises(bf.QueryError, match="does not tell how probable its answers are"):
            session.sql(query).collect()
    assert len(model.calls) <= 200


def test_one_answer_in_some_without_a_probability_is_no_reason_to_stop() -> None:
    def odds(call: bf.Call) -> object:
        return {True: 0.9, False: 0.1} if call.values[0] != "v3" else True

    session = bf.connect(bf.ScriptedModel(odds), cache=None)
    session.from_pydict({"x": [f"v{n}" for n in range(300)]}, name="t")
    frame = session.sql("SELECT llm_filter('Is it?', x, confidence => 0.8) AS f FROM t")
    assert sum(row["f"] is True for row in frame.to_pylist()) >= 299


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("llm_filter('Is it?', text, confidence => 0)", "confidence => 0 is not possible"),
        ("llm_filter('Is it?', text, confidence => 1.5)", "confidence => 1.5 is not possible"),
        (
            "llm_filter('Is it?', text, confidence => 'high')",
            "confidence => 'high' is not possible",
        ),
        ("llm_int('How many?', text, confidence => 0.9)", "no option 'confidence'"),
        ("llm_map('What?', text, confidence => 0.9)", "closed set, not of text"),
        ("llm_score('How?', text, confidence => 0.9)", "answers from a closed set, not of score"),
    ],
)
def test_what_it_cannot_be_said_of_is_an_error(
    session: bf.Session, call: str, problem: str
) -> None:
    with pytest.raises(bf.ArgumentError, match=problem):
        session.sql(f"SELECT {call} FROM t")


def test_a_struct_where_its_value_is_needed_is_an_error(session: bf.Session) -> None:
    with pytest.raises(
        bf.ArgumentError, match="confidence => 'keep' gives a struct of value and con"
    ):
        session.sql("SELECT text FROM t WHERE llm_filter('Is it?', text, confidence => 'keep')")


def test_estimates_take_answers_for_sure(session: bf.Session, model: bf.ScriptedModel) -> None:
    frame = session.sql("SELECT text FROM t WHERE llm_filter('Is it?', text, confidence => 0.9)")
    assert frame.estimate().total.values == 4
    assert model.calls == []


@pytest.mark.long
@pytest.mark.local
def test_the_packaged_model_tells_how_sure_it_is() -> None:
    with bf.connect("smollm2", cache=None) as session:
        session.from_pydict(
            {"text": ["I loved it!", "Terrible. Never again.", "A chair."]}, name="t"
        )
        query = """SELECT llm_filter('Is this review positive?', text, confidence => 'keep') AS kept,
            llm_filter('Is this review positive?', text, confidence => 0.999999) AS sure FROM t"""
        frame = session.sql(query)
        rows = frame.to_pylist()
    assert all(0.5 <= row["kept"]["confidence"] <= 1 for row in rows)
    assert [row["sure"] for row in rows].count(None) == frame.trace.unsure > 0
    assert frame.trace.usage.values == 3


def random_condition(made: random.Random, depth: int = 0) -> str:
    """A condition of calls that want different probabilities, joined in three-valued logic."""
    kind = made.choice(["call", "call", "and", "or", "not", "case", "coalesce", "null", "plain"])
    if kind == "plain":
        return made.choice(["n > 2", "n IS NULL", "text LIKE '%l%'"])
    if kind == "call" or depth > 2:
        least = made.choice(["", ", confidence => 0.7", ", confidence => 0.9"])
        name = made.choice(["llm_filter", "llm_bool"])
        return f"{name}('Is it {made.choice('ab')}?', text{least})"
    a, b, c = (random_condition(made, depth + 1) for _ in range(3))
    return {
        "and": f"({a} AND {b})",
        "or": f"({a} OR {b})",
        "not": f"(NOT {a})",
        "case": f"(CASE WHEN {a} THEN {b} ELSE {c} END)",
        "coalesce": f"coalesce({a}, {b})",
        "null": f"({a} IS NULL)",
    }[kind]


@pytest.mark.parametrize("seed", range(25))
def test_the_planner_changes_no_row_where_answers_are_withheld(seed: int) -> None:
    condition = random_condition(random.Random(seed))
    found = []
    for planner in (True, False):
        session = bf.connect(bf.ScriptedModel(yes_by_odds), cache=None, planner=planner)
        session.from_pydict({"n": [1, 2, 3, 4, 5, None], "text": TEXTS}, name="t")
        rows = session.sql(f"SELECT n, {condition} AS c FROM t WHERE {condition} OR n < 4")
        found.append(sorted(map(repr, rows.to_pylist())))
    assert found[0] == found[1]
