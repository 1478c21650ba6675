"""``llm_compare``: what texts decide is not asked, and a pair is one question."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from datafusion import SessionContext, col, lit
from hypothesis import given
from hypothesis import strategies as st
from scripts import Counted

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.udfs.declare.comparison import Comparing

SAME = {frozenset(("Beijing", "the capital of China")), frozenset(("a dozen", "12"))}
SIZES = ("S", "medium", "very large")


def judged(call: bf.Request) -> Value:
    a, b = map(str, call.values)
    if "mean the same" in call.question:
        return frozenset((a, b)) in SAME
    return a in SIZES and b in SIZES and SIZES.index(a) < SIZES.index(b)


PAIRS = [
    ("5 km", "5000 m"),
    ("Beijing", "the capital of China"),
    ("the capital of China", "Beijing"),
    ("12", "12 apples"),
    (None, "12"),
    (" ", "12"),
    ("S", "very large"),
    ("very large", "S"),
    ("medium", "Medium"),
    ("10", "9"),
]


def compared(script: object = judged, **options: object) -> Counted:
    a, b = zip(*PAIRS, strict=True)
    counted = Counted(script, **options)
    return counted.add("t", {"id": list(range(len(PAIRS))), "a": list(a), "b": list(b)})


def answers(db: Counted, call: str) -> list[object]:
    return [row[1] for row in db.rows(f"SELECT id, {call} FROM t ORDER BY id")]


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
def test_only_what_the_texts_do_not_decide_is_asked_each_pair_once(planner: bool) -> None:
    db = compared(planner=planner)
    same = [True, True, True, False, None, None, False, False, True, False]
    assert answers(db, "llm_compare(a, '=', b)") == same
    assert [call.values for call in db.model.calls] == [
        ("Beijing", "the capital of China"),
        ("12", "12 apples"),
        ("S", "very large"),
    ]


def test_all_ways_to_say_the_same_are_one_question() -> None:
    db = compared()
    same = answers(db, "llm_compare(a, '=', b)")
    assert answers(db, "llm_compare(b, '==', a)") == same
    differ = [None if s is None else not s for s in same]
    assert (
        answers(db, "llm_compare(a, '<>', b)") == answers(db, "llm_compare(b, '!=', a)") == differ
    )
    assert len(db.model.calls) == 3
    less = answers(db, "llm_compare(a, '<', b)")
    assert less == [False, False, False, False, None, None, True, False, False, False]
    asked = len(db.model.calls)
    assert answers(db, "llm_compare(b, '>', a)") == less
    assert answers(db, "llm_compare(a, '>=', b)") == [None if x is None else not x for x in less]
    assert len(db.model.calls) == asked == 3 + 5


OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@given(st.sampled_from(sorted(OPERATORS)), st.integers(0, 3), st.integers(0, 3))
def test_the_two_questions_say_every_operator(written: str, a: int, b: int) -> None:
    comparing = Comparing(written, ("a", "b"))
    first, second = map(int, comparing.canonical(str(a), str(b)))
    answer = first == second if "same" in comparing.question else first < second
    assert (answer != comparing.is_negated) == OPERATORS[written](a, b)
    assert comparing.holds((a > b) - (a < b)) == OPERATORS[written](a, b)


def test_literals_numbers_and_dates_are_values() -> None:
    db = compared()
    assert db.rows("SELECT id FROM t WHERE llm_compare(id, '<', 2)") == [(0,), (1,)]
    assert db.rows("SELECT id FROM t WHERE llm_compare('8', '<=', id)") == [(8,), (9,)]
    assert db.rows("SELECT llm_compare(DATE '2024-02-29', '=', '29 Feb 2024')") == [(True,)]
    assert not db.model.calls


def test_it_joins_and_stands_beside_other_predicates() -> None:
    db = compared()
    db.add("u", {"n": [1, 2], "what": ["the capital of China", "nine"]})
    joined = "SELECT t.id, u.n FROM t JOIN u ON llm_compare(t.a, '=', u.what) AND t.id < 3"
    assert sorted(db.rows(joined)) == [(1, 1), (2, 1)]
    assert len(db.model.calls) == 5  # of six pairs one is equal
    filtered = "SELECT id FROM t WHERE id > 5 AND llm_compare(a, '<', b)"
    assert db.asked(filtered) == 2
    estimate = db.session.sql(filtered).estimate()
    assert (estimate.total.values, estimate.total.cached, estimate.exact) == (0, 2, True)
    db.session.clear_cache()
    assert db.session.sql(filtered).estimate().total.values == 2


def test_decided_pairs_ask_nothing_in_an_estimate_either() -> None:
    db = compared()
    estimate = db.session.sql("SELECT llm_compare(a, '=', b) FROM t").estimate()
    assert (estimate.total.values, estimate.exact) == (3, True)


def test_answers_of_all_kinds_of_failures() -> None:
    db = compared(lambda call: None)
    kept = answers(db, "llm_compare(a, '<>', b, on_error => 'keep')")
    assert kept[0] == {"value": False, "error": None}
    assert kept[1] == {"value": None, "error": "no answer"}
    assert kept[4] is None
    with pytest.raises(bf.AnswerError, match="llm_compare"):
        db.rows("SELECT llm_compare(a, '=', b, on_error => 'raise') FROM t")


def test_as_an_expression() -> None:
    db = compared()
    table = db.session.table("t")
    small = table.filter(bf.llm_compare("a", "<", lit("very large"))).select("id")
    assert small.to_pydict() == {"id": [6, 8]}
    assert table.select(bf.llm_compare(col("a"), "=", "b")).to_pydict() == {
        "llm_compare(a, '=', b)": answers(db, "llm_compare(a, '=', b)")
    }


def test_in_a_plain_context_the_operator_may_come_from_a_column() -> None:
    context = SessionContext()
    model = bf.ScriptedModel(judged)
    bf.register(context, model=model)
    context.from_pydict(
        {"a": ["2", "2", "S"], "o": ["<", ">=", "<"], "b": ["3", "3", "medium"]}, "t"
    )
    found = context.sql("SELECT llm_compare(a, o, b) AS found FROM t").to_pydict()
    assert found == {"found": [True, False, True]}
    assert [call.values for call in model.calls] == [("S", "medium")]


@pytest.mark.parametrize(
    ("call", "problem", "hint"),
    [
        ("llm_compare(a, '~', b)", "'~' is no operator", "=  ==  <>  !=  <  <=  >  >="),
        ("llm_compare(a, b)", "the operator must be a literal between", "llm_compare(a, '<', b)"),
        ("llm_compare(a, id, b)", "the operator must be a literal between", "(a, '<', b)"),
        ("llm_compare(a, '<')", "takes 2 values, 1 given", "llm_compare(a, '<', b)"),
        ("llm_compare(a, '=', b, question => 'x')", "no option 'question'", "operator"),
    ],
)
def test_what_is_wrong_is_said(call: str, problem: str, hint: str) -> None:
    with pytest.raises(bf.ArgumentError) as raised:
        compared().rows(f"SELECT {call} FROM t")
    assert problem in str(raised.value)
    assert hint in str(raised.value)
