"""Joins by meaning: each value meets its match on the other side, whatever the kind of the join."""

from __future__ import annotations

import pytest
from datafusion import col
from scripts import Counted, tuples, unordered

import blendfusion as bf
from blendfusion.models.vectors.tfidf import Nearest

FIRMS = {
    "id": [1, 2, 3, 4, 5, 6],
    "name": ["Apple Inc", "Google LLC", "IBM", "Oracle Corp", None, "Acme"],
    "city": ["a", "b", "a", "b", "a", "b"],
}
STOCKS = {
    "sym": ["AAPL", "GOOG", "IBM", "ORCL", "ORCJ"],
    "title": ["Apple Computer", "Google", "ibm", "Oracle Systems", "Oracle Japan"],
    "town": ["a", "b", "a", "b", "a"],
}
MATCHES = [(1, "AAPL"), (2, "GOOG"), (3, "IBM"), (4, "ORCJ")]
"""With one match a firm: the first among candidates of equal likeness."""
ALL = [*MATCHES, (4, "ORCL")]


def same_word(call: bf.Request) -> object:
    """The candidates, or whether the pair, begin with the same word."""
    value, other = call.values[0] or "", call.values[1] or ""
    if call.constraint.kind == "boolean":
        return value.split()[0].lower() == other.split()[0].lower()
    found = [
        line.split(". ", 1)[0]
        for line in other.splitlines()
        if line.split(". ", 1)[1].split()[0].lower() == value.split()[0].lower()
    ]
    return found if call.constraint.kind == "list" else (found or ["none"])[0]


@pytest.fixture
def db() -> Counted:
    return Counted(same_word).add("firms", {**FIRMS}).add("stocks", {**STOCKS})


def test_an_inner_join_asks_one_value_a_name(db: Counted) -> None:
    sql = "SELECT id, sym FROM firms JOIN stocks ON llm_join(name, title)"
    assert unordered(db.rows(sql)) == MATCHES
    # IBM is the same but for case; NULL meets nothing.
    assert db.asked(sql) == 4
    assert {call.values[0] for call in db.model.calls} == {
        "Apple Inc",
        "Google LLC",
        "Oracle Corp",
        "Acme",
    }


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT id, sym FROM firms LEFT JOIN stocks ON llm_join(name, title)",
            [*MATCHES, (5, None), (6, None)],
        ),
        (
            "SELECT id, sym FROM firms RIGHT JOIN stocks ON llm_join(name, title)",
            [*MATCHES, (None, "ORCL")],
        ),
        (
            "SELECT id, sym FROM firms FULL JOIN stocks ON llm_join(name, title)",
            [*MATCHES, (5, None), (6, None), (None, "ORCL")],
        ),
        (
            "SELECT id, sym FROM firms JOIN stocks ON llm_join(title, name)",
            ALL,
        ),
        (
            "SELECT id, sym FROM firms JOIN stocks ON llm_join(name, title, many => true)",
            ALL,
        ),
        (
            "SELECT id, sym FROM firms LEFT JOIN stocks ON llm_join(name, title, many => true)",
            [*ALL, (5, None), (6, None)],
        ),
        ("SELECT id, sym FROM firms, stocks WHERE llm_join(name, title)", MATCHES),
        (
            "SELECT id, sym FROM firms JOIN stocks ON city = town AND llm_join(name, title)",
            [(1, "AAPL"), (2, "GOOG"), (3, "IBM"), (4, "ORCL")],
        ),
        (
            "SELECT id FROM firms WHERE EXISTS (SELECT 1 FROM stocks WHERE llm_join(name, title))",
            [(1,), (2,), (3,), (4,)],
        ),
        (
            "SELECT id FROM firms WHERE NOT EXISTS (SELECT 1 FROM stocks WHERE llm_join(name, title))",
            [(5,), (6,)],
        ),
        (
            "SELECT id FROM firms LEFT SEMI JOIN stocks ON llm_join(name, title)",
            [(1,), (2,), (3,), (4,)],
        ),
        ("SELECT id FROM firms LEFT ANTI JOIN stocks ON llm_join(name, title)", [(5,), (6,)]),
        (
            "SELECT sym FROM firms RIGHT SEMI JOIN stocks ON llm_join(name, title)",
            [("AAPL",), ("GOOG",), ("IBM",), ("ORCJ",)],
        ),
        ("SELECT sym FROM firms RIGHT ANTI JOIN stocks ON llm_join(name, title)", [("ORCL",)]),
        (
            "SELECT id, sym FROM firms JOIN stocks ON llm_join(name, title) OR id = 6 AND sym = 'GOOG'",
            [*MATCHES, (6, "GOOG")],
        ),
        (
            "SELECT count(*), max(sym) FROM firms JOIN stocks ON llm_join(name, title) WHERE id < 3",
            [(2, "GOOG")],
        ),
    ],
)
def test_every_kind_of_join(sql: str, expected: list[tuple[object, ...]], db: Counted) -> None:
    assert unordered(db.rows(sql)) == unordered(expected)
    assert db.session.sql(sql).prepared.reason is None
    db.asked(sql)  # a second run asks nothing
    assert len(db.model.calls) <= 5


def test_conditions_beside_it_bound_who_is_asked_and_what_is_chosen_from(db: Counted) -> None:
    sql = (
        "SELECT id, sym FROM firms JOIN stocks ON city = town AND llm_join(name, title) "
        "WHERE id < 5 AND sym <> 'AAPL'"
    )
    assert unordered(db.rows(sql)) == [(2, "GOOG"), (3, "IBM"), (4, "ORCL")]
    assert db.asked(sql) == 3
    seen = {call.values[0]: call.values[1] for call in db.model.calls}
    assert seen == {
        "Apple Inc": "1. Oracle Japan\n2. ibm",
        "Google LLC": "1. Google\n2. Oracle Systems",
        "Oracle Corp": "1. Oracle Systems\n2. Google",
    }


def test_exact_asks_every_pair_and_a_criterion_is_part_of_the_question(db: Counted) -> None:
    sql = (
        "SELECT id, sym FROM firms JOIN stocks ON llm_join(name, title, exact => true, "
        "how => 'one firm') WHERE id < 3"
    )
    assert unordered(db.rows(sql)) == MATCHES[:2]
    assert db.asked(sql) == 10
    assert {call.question for call in db.model.calls} == {"Do both match: one firm?"}


def test_pairs_of_one_table_are_asked_one_by_one(db: Counted) -> None:
    assert db.rows("SELECT id FROM firms WHERE llm_join(name, city) AND id < 4") == []
    assert db.asked("SELECT id FROM firms WHERE llm_join(name, city) AND id < 4") == 3


def test_a_side_that_is_computed_by_a_model(db: Counted) -> None:
    sql = (
        "SELECT id, sym FROM firms JOIN (SELECT sym, llm_map('title?', title) AS t FROM stocks) AS s "
        "ON llm_join(name, s.t)"
    )
    db = Counted(lambda c: c.values[0] if c.question == "title?" else same_word(c))
    db.add("firms", {**FIRMS}).add("stocks", {**STOCKS})
    assert unordered(db.rows(sql)) == MATCHES
    assert db.asked(sql) == 5 + 4


def test_frames(db: Counted) -> None:
    firms, stocks = db.session.table("firms"), db.session.table("stocks")
    joined = firms.llm_join(stocks, "name", "title").select("id", "sym")
    assert unordered(tuples(joined.to_arrow_table())) == MATCHES
    left = firms.llm_join(stocks, "name", "title", join_type="left", many=True).select("id", "sym")
    assert unordered(tuples(left.to_arrow_table())) == unordered([*ALL, (5, None), (6, None)])
    on = firms.join_on(stocks, bf.llm_join(col("name"), col("title"))).select("id", "sym")
    assert unordered(tuples(on.to_arrow_table())) == MATCHES
    with pytest.raises(bf.QueryError, match="duplicate qualified field name"):
        firms.llm_join(firms, "name", "name")
    with pytest.raises(bf.QueryError, match="Column 'nam' not found"):
        firms.llm_join(stocks, "nam", "title")
    with pytest.raises(bf.QueryError, match="how='left' is a kind of join"):
        firms.llm_join(stocks, "name", "title", how="left")


def test_explain_and_the_estimate(db: Counted) -> None:
    frame = db.session.sql("SELECT id, sym FROM firms JOIN stocks ON llm_join(name, title, k => 3)")
    assert frame.estimate().total.values == 4
    assert "llm_join(firms.name, 3 nearest of stage 1)" in frame.explain_text()
    frame.collect()
    text = frame.explain_text(analyze=True)
    assert "matches: 1 alike, 3 chosen of 4 asked: 3 the first" in text
    assert "; 1 without a match" in text


def test_a_side_that_comes_out_otherwise_each_time_is_asked_in_pairs(db: Counted) -> None:
    sql = (
        "SELECT id, sym FROM firms JOIN (SELECT sym, title FROM stocks ORDER BY random() LIMIT 5) AS s "
        "ON llm_join(name, s.title) WHERE id = 1"
    )
    assert db.rows(sql) == [(1, "AAPL")]


def test_a_value_without_an_answer_has_no_match() -> None:
    db = Counted(lambda call: "nonsense").add("firms", {**FIRMS}).add("stocks", {**STOCKS})
    with pytest.warns(bf.AnswerWarning, match="4 values"):
        rows = db.rows("SELECT id, sym FROM firms JOIN stocks ON llm_join(name, title)")
    assert rows == [(3, "IBM")]
    with pytest.raises(bf.AnswerError):
        db.rows("SELECT id FROM firms JOIN stocks ON llm_join(name, title, on_error => 'raise')")


def towns(n: int) -> Counted:
    """Values whose match is among the first three that look like them, for every fourth the
    13th."""
    names = sorted(f"{word} {i} market town" for i in range(n) for word in ("upper", "lower"))
    near = Nearest(names)
    values = [f"town {i}" for i in range(n)]
    truth = {x: names[near.of(x, 20)[i % 3 if i % 4 else 12]] for i, x in enumerate(values)}

    def choose(call: bf.Request) -> object:
        lines = [line.split(". ", 1) for line in (call.values[1] or "").splitlines()]
        found = [number for number, text in lines if text == truth[call.values[0] or ""]]
        return (found or ["none"])[0]

    return Counted(choose).add("l", {"x": values}).add("r", {"y": names})


@pytest.mark.filterwarnings("ignore:.*may have further matches:blendfusion.MatchWarning")
def test_a_sample_says_how_many_matches_lie_beyond_the_candidates() -> None:
    db = towns(40)
    plain = "SELECT x, y FROM l JOIN r ON llm_join(x, y)"
    checked = "SELECT x, y FROM l JOIN r ON llm_join(x, y, check => 5)"
    assert unordered(db.rows(checked)) == unordered(db.rows(plain))
    assert len(db.rows(plain)) == 30
    assert db.asked(checked) == 40 + 5
    frame = db.session.sql(checked)
    before = frame.explain_text(estimates=False)
    assert "10 nearest of stage 1, check => 5" in before
    assert "recall of 10 candidates: not known yet; a sample of 5 values" in before
    frame.collect()
    after = frame.explain_text(analyze=True)
    assert "recall of 10 candidates: about " in after
    assert "of 5 sampled values" in after
    assert frame.estimate().total.values == 0


def test_a_sample_counts_all_matches_that_a_value_may_have() -> None:
    def choose(call: bf.Request) -> object:
        lines = [line.split(". ", 1) for line in (call.values[1] or "").splitlines()]
        return [number for number, text in lines if text[0] == (call.values[0] or "")[0]]

    letters = "abcdefgh"
    right = [f"{letter} item {i}" for letter in letters for i in range(4)]
    db = Counted(choose).add("l", {"x": [f"{letter} one" for letter in letters]})
    db.add("r", {"y": right})
    call = "llm_join(x, y, many => true, k => 2, check => 8)"
    frame = db.session.sql(f"SELECT x, y FROM l JOIN r ON {call}")
    assert len(frame.to_pylist()) == 16
    said = "recall of 2 candidates: about 50.0 %, at least 50.0 % (95 % confidence)"
    assert said in frame.explain_text(analyze=True)


@pytest.mark.filterwarnings("ignore:.*may have further matches:blendfusion.MatchWarning")
def test_places_say_it_without_a_sample() -> None:
    db = towns(40)
    frame = db.session.sql("SELECT x, y FROM l JOIN r ON llm_join(x, y)")
    frame.collect()
    assert "if as many lie beyond as stand in places 6 to 10 (0)" in frame.explain_text(
        analyze=True
    )
    few = "SELECT x FROM l JOIN r ON llm_join(x, y) WHERE y < 'lower 12'"
    frame = db.session.sql(few)
    frame.collect()
    assert "recall of 10 candidates: 100 %" in frame.explain_text(analyze=True)
