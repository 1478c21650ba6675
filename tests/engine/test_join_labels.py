"""Joins by labels: a label for each value in place of a question for each pair."""

from __future__ import annotations

import pytest
from datafusion import col
from scripts import Counted, tuples, unordered

import blendfusion as bf

TEXTS = [f"{'good' if i % 3 else 'bad'} {i}" for i in range(12)]
REVIEWS = {"id": list(range(12)), "film": [i % 2 for i in range(12)], "text": [*TEXTS[:11], None]}
LABELS = "labels => ['positive', 'negative']"
OPPOSITE = "how => 'the reviews express opposite sentiments'"


def sentiment(call: bf.Request) -> object:
    """The label of a text, or whether two texts begin otherwise."""
    if call.constraint.kind == "choice":
        return "positive" if (call.values[0] or "").startswith("good") else "negative"
    value, other = call.values
    return (value or "").split()[0] != (other or "").split()[0]


@pytest.fixture
def db() -> Counted:
    return Counted(sentiment).add("r", {**REVIEWS})


def is_good(i: int) -> bool:
    return i % 3 > 0


def pairs(*, opposite: bool) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i in range(11)
        for j in range(11)
        if i % 2 == j % 2 and (is_good(i) != is_good(j)) == opposite
    ]


def joined(options: str, kind: str = "JOIN", columns: str = "a.id, b.id AS other") -> str:
    return (
        f"SELECT {columns} FROM r AS a {kind} r AS b "
        f"ON a.film = b.film AND llm_join(a.text, b.text, {options})"
    )


@pytest.mark.parametrize(
    ("options", "opposite"),
    [
        (LABELS, False),
        (f"{LABELS}, match => 'same'", False),
        (f"{LABELS}, match => 'different'", True),
        (f"{LABELS}, match => 'different', {OPPOSITE}", True),
        (
            f"{LABELS}, match => [['positive', 'negative'], ['negative', 'positive']]",
            True,
        ),
    ],
)
def test_the_user_says_which_labels_match(options: str, opposite: bool, db: Counted) -> None:
    sql = joined(options)
    assert unordered(db.rows(sql)) == unordered(pairs(opposite=opposite))
    assert db.asked(sql) == 11
    plain = Counted(sentiment, planner=False).add("r", {**REVIEWS})
    assert unordered(plain.rows(sql)) == unordered(pairs(opposite=opposite))
    assert len(plain.model.calls) == 11


def test_labels_are_asked_for_by_the_question_of_the_user(db: Counted) -> None:
    db.rows(joined(f"{LABELS}, label_question => 'What does the critic think?'"))
    assert {call.question for call in db.model.calls} == {"What does the critic think?"}


def test_labels_that_the_query_asks_for_anyway_are_shared(db: Counted) -> None:
    sql = joined(
        f"{LABELS}, match => 'different'",
        columns="a.id, llm_classify(b.text, ['positive', 'negative']) AS label",
    )
    assert db.asked(sql) == 11


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LEFT JOIN", [*pairs(opposite=True), (11, None)]),
        ("RIGHT JOIN", [*pairs(opposite=True), (None, 11)]),
        ("FULL JOIN", [*pairs(opposite=True), (11, None), (None, 11)]),
    ],
)
@pytest.mark.parametrize("options", ["match => 'different'", f"{OPPOSITE}, check => 3"])
def test_outer_joins(
    kind: str, expected: list[tuple[object, ...]], options: str, db: Counted
) -> None:
    assert unordered(db.rows(joined(f"{LABELS}, {options}", kind))) == unordered(expected)


@pytest.mark.parametrize("options", ["match => 'different'", f"{OPPOSITE}, check => 3"])
def test_semi_and_anti_joins(options: str, db: Counted) -> None:
    sql = joined(f"{LABELS}, {options}", "LEFT SEMI JOIN", "a.id")
    assert unordered(db.rows(sql)) == unordered([(i,) for i in range(11)])
    sql = joined(f"{LABELS}, {options}", "LEFT ANTI JOIN", "a.id")
    assert db.rows(sql) == [(11,)]


def test_frames(db: Counted) -> None:
    r = db.session.table("r")
    left = r.select(col("id"), col("text"))
    right = r.select(col("id").alias("other"), col("text").alias("said"))
    found = left.llm_join(right, "text", "said", labels=["positive", "negative"], match="different")
    rows = tuples(found.select("id", "other").to_arrow_table())
    assert len(rows) == 2 * 7 * 4
    condition = bf.llm_join(
        col("text"), col("said"), labels=["positive", "negative"], match=[["positive", "negative"]]
    )
    assert len(tuples(left.join_on(right, condition).to_arrow_table())) == 7 * 4


def many() -> Counted:
    """100 texts a side, of which half are good."""
    texts = [f"{'good' if i % 2 else 'bad'} {i}" for i in range(100)]
    return Counted(sentiment).add("l", {"x": texts}).add("m", {"y": [f"{t}!" for t in texts]})


def test_sampled_pairs_say_which_labels_match() -> None:
    db = many()
    sql = f"SELECT x, y FROM l JOIN m ON llm_join(x, y, {OPPOSITE}, {LABELS})"
    rows = db.rows(sql)
    assert len(rows) == 5000
    assert all(x.split()[0] != y.split()[0] for x, y in rows)
    # A label a text, and 20 pairs of each of four pairs of labels.
    assert db.asked(sql) == 200 + 80
    text = db.session.sql(sql).explain_text(analyze=False, estimates=False)
    assert "labels of stage 2" in text
    frame = db.session.sql(sql)
    assert frame.estimate().total.values == 0  # known by now
    frame.collect()
    assert (
        "matches: 4 of 4 pairs of labels decide by 80 sampled pairs (wrongly for at most 14 % of their "
        "pairs, at 95 % confidence)" in frame.explain_text(analyze=True)
    )


def test_labels_that_do_not_decide_leave_the_pairs_to_be_asked() -> None:
    def by_number(call: bf.Request) -> object:
        if call.constraint.kind == "choice":
            return sentiment(call)
        value, other = (int((v or "").strip("!").split()[1]) for v in call.values)
        # Two good ones never match, others by their numbers.
        return False if value % 2 and other % 2 else value % 5 == other % 5

    db = many()
    db = Counted(by_number).add("l", db.session.table("l").to_pydict())
    db.add("m", many().session.table("m").to_pydict())
    sql = f"SELECT x, y FROM l JOIN m ON llm_join(x, y, {OPPOSITE}, {LABELS})"
    rows = db.rows(sql)
    numbers = [(int(x.split()[1]), int(y.strip("!").split()[1])) for x, y in rows]
    assert sorted(numbers) == [
        (i, j) for i in range(100) for j in range(100) if i % 5 == j % 5 and not (i % 2 and j % 2)
    ]
    # Of four pairs of labels one decides by its 20 sampled pairs; of the others all pairs are
    # asked.
    assert db.asked(sql) == 200 + 20 + 3 * 2500
    frame = db.session.sql(sql)
    frame.collect()
    assert "1 of 4 pairs of labels decide" in frame.explain_text(analyze=True)
    assert "7,500 pairs of the others asked one by one" in frame.explain_text(analyze=True)


def test_what_the_user_says_is_checked_where_that_is_wanted() -> None:
    db = many()
    wrong = f"SELECT x, y FROM l JOIN m ON llm_join(x, y, {OPPOSITE}, {LABELS}, match => 'same'"
    assert all(x.split()[0] == y.split()[0] for x, y in db.rows(f"{wrong})"))
    rows = db.rows(f"{wrong}, check => 10)")
    assert len(rows) == 5000
    assert all(x.split()[0] != y.split()[0] for x, y in rows)


def test_the_same_sample_is_asked_in_every_run() -> None:
    sql = f"SELECT x, y FROM l JOIN m ON llm_join(x, y, {OPPOSITE}, {LABELS})"
    first, second = many(), many()
    first.rows(sql)
    second.rows(sql)
    assert {c.values for c in first.model.calls} == {c.values for c in second.model.calls}


def test_the_sample_does_not_depend_on_the_order_of_the_rows() -> None:
    """Threads that read several files deliver them in any order."""
    asked = []
    for step in (1, -1):
        texts = [f"{'good' if i % 2 else 'bad'} {i}" for i in range(100)][::step]
        db = Counted(sentiment).add("l", {"x": texts}).add("m", {"y": [f"{t}!" for t in texts]})
        db.rows(f"SELECT x, y FROM l JOIN m ON llm_join(x, y, {OPPOSITE}, {LABELS})")
        asked.append({c.values for c in db.model.calls})
    assert asked[0] == asked[1]


def test_a_limit_ends_before_all_values_are_labelled() -> None:
    db = many()
    sql = f"SELECT x, y FROM l JOIN m ON llm_join(x, y, {LABELS}, match => 'different') LIMIT 10"
    rows = db.rows(sql)
    assert len(rows) == 10
    assert all(x.split()[0] != y.split()[0] for x, y in rows)
    assert db.asked(sql) <= 12


def test_a_value_without_a_label_matches_nothing() -> None:
    def silent(call: bf.Request) -> object:
        return None if call.values == ("bad 0",) else sentiment(call)

    db = Counted(silent).add("r", {**REVIEWS})
    with pytest.warns(bf.AnswerWarning, match="1 value"):
        rows = db.rows(joined(f"{LABELS}, match => 'different'"))
    assert unordered(rows) == unordered([p for p in pairs(opposite=True) if 0 not in p])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("match => 'same'", "match without labels"),
        ("check => 3, exact => true", "check and exact exclude each other"),
        (f"{LABELS}, k => 3", "k and labels exclude each other"),
        (f"{LABELS}, exact => true", "exact and labels exclude each other"),
        (f"{LABELS}, match => 'opposite'", "match => 'opposite' is not possible"),
        (f"{LABELS}, match => [['positive']]", "no pair of labels"),
        (f"{LABELS}, match => [['positive', 'bad']]", "'bad', which is none of the labels"),
        (f"{LABELS}, check => 3", "check without how"),
        (f"{LABELS}, {OPPOSITE}, check => 0", "check => 0 without match"),
        (f"{LABELS}, {OPPOSITE}, check => -1", "check => -1 is not possible"),
        ("labels => (SELECT 'a')", r"labels => \(SELECT …\) is not a literal"),
    ],
)
def test_what_is_not_possible_is_said(options: str, message: str, db: Counted) -> None:
    with pytest.raises(bf.ArgumentError, match=message):
        db.session.sql(joined(options))


def test_the_first_rows_do_not_decide_for_all_others() -> None:
    """Labels decide for the first chunk, and not for those behind it."""

    def judged(call: bf.Request) -> object:
        if call.constraint.kind == "choice":
            return "positive"
        return (call.values[0] or "").startswith("early")

    early, late = [f"early {i}" for i in range(50)], [f"late {i}" for i in range(150)]
    db = Counted(judged).add("l", {"x": early + late}).add("r", {"y": ["a", "b", "c"]})
    db.session.sql("SET blendfusion.chunk_rows = 50")
    sql = f"SELECT x, y FROM l JOIN r ON llm_join(x, y, {LABELS}, how => 'it is so')"
    assert len(db.rows(sql)) == 50 * 3
