"""llm_same: entities of a column, in every place of a query."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from datafusion import SessionContext, col
from datafusion import functions as f

import blendfusion as bf

COMPANIES = {
    "IBM": "ibm",
    "IBM Corp.": "ibm",
    "IBM Corporation": "ibm",
    "Apple": "apple",
    "Apple Inc.": "apple",
    "apple": "apple",
    "Appel GmbH": "appel",
}
NAMES = [*COMPANIES, None, " ", "IBM"]


def connected(names: list[str | None] = NAMES) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(
        lambda request: COMPANIES[str(request.values[0])] == COMPANIES[str(request.values[1])]
    )
    session = bf.connect(model, cache=None)
    session.from_pydict({"id": [*range(len(names))], "name": names}, name="t")
    return session, model


def test_group_by_asks_about_pairs_of_distinct_values_once() -> None:
    session, model = connected()
    query = "SELECT llm_same(name) AS e, count(*) AS n FROM t GROUP BY llm_same(name) ORDER BY n DESC, e"
    assert session.sql(query).to_pylist() == [
        {"e": "IBM Corp.", "n": 4},
        {"e": "Apple", "n": 3},
        {"e": None, "n": 2},
        {"e": "Appel GmbH", "n": 1},
    ]
    asked = [frozenset(map(str, call.values)) for call in model.calls]
    assert len(asked) == len(set(asked)) == 6
    assert model.calls[0].question == "Are both the same thing, perhaps written differently?"
    assert session.sql(query).to_pylist()
    assert len(model.calls) == 6  # remembered


def test_results_do_not_depend_on_the_order_of_rows() -> None:
    def found(names: list[str | None]) -> tuple[set[object], set[object]]:
        session, model = connected(names)
        rows = session.sql("SELECT name, llm_same(name) AS e FROM t").to_pylist()
        return {(row["name"], row["e"]) for row in rows}, {call.values for call in model.calls}

    usual = found(NAMES)
    for seed in range(5):
        shuffled = random.Random(seed).sample(NAMES, len(NAMES))
        assert found(shuffled) == usual


@pytest.mark.parametrize(
    ("query", "expected", "asked"),
    [
        # Cheap predicates come first, whatever the order.
        (
            "SELECT id FROM t WHERE llm_same(name) = 'Apple Inc.' AND id IN (3, 4, 6) ORDER BY id",
            [{"id": 3}, {"id": 4}],
            2,
        ),
        ("SELECT count(DISTINCT llm_same(name)) AS n FROM t", [{"n": 3}], 6),
        (
            "SELECT a.id, b.id AS o FROM t a JOIN t b ON llm_same(a.name) = llm_same(b.name) "
            "WHERE a.id < b.id AND a.id BETWEEN 3 AND 6 AND b.id BETWEEN 3 AND 6 ORDER BY 1, 2",
            [{"id": 3, "o": 4}, {"id": 3, "o": 5}, {"id": 4, "o": 5}],
            2,
        ),
        ("SELECT DISTINCT llm_same(name) AS e FROM t WHERE id > 90", [], 0),
        (
            "SELECT id FROM t WHERE id < 3 ORDER BY llm_same(name), id DESC LIMIT 1",
            [{"id": 2}],
            2,
        ),
    ],
)
def test_places(query: str, expected: list[dict[str, object]], asked: int) -> None:
    session, model = connected()
    assert session.sql(query).to_pylist() == expected
    assert len(model.calls) == asked


BOTH = "(SELECT name FROM t WHERE id < 3 UNION ALL SELECT name FROM t WHERE id > 2) AS both_parts"


def test_a_union_is_one_column() -> None:
    session, model = connected()
    query = f"SELECT e, count(*) AS n FROM (SELECT llm_same(name) AS e FROM {BOTH}) "
    rows = session.sql(f"{query} WHERE e LIKE 'IBM%' GROUP BY e").to_pylist()
    assert rows == [{"e": "IBM Corp.", "n": 4}]
    assert len(model.calls) == 6


def test_a_predicate_that_datafusion_moves_into_the_branches_of_a_union_is_refused() -> None:
    session, model = connected()
    frame = session.sql(f"SELECT name FROM {BOTH} WHERE llm_same(name) = 'IBM Corp.'")
    with pytest.raises(bf.QueryError, match="needs the whole column") as caught:
        frame.to_pylist()
    assert "in a subquery" in str(caught.value)
    assert not model.calls


def test_data_frames_take_the_same_call() -> None:
    session, model = connected()
    t = session.table("t")
    grouped = t.aggregate([bf.llm_same("name").alias("e")], [f.count(col("id")).alias("n")])
    assert {(row["e"], row["n"]) for row in grouped.to_pylist()} == {
        ("IBM Corp.", 4),
        ("Apple", 3),
        ("Appel GmbH", 1),
        (None, 2),
    }
    assert len(model.calls) == 6


def test_a_criterion_asks_about_spellings_too() -> None:
    session, model = connected(["Apple", "apple"])
    frame = session.sql("SELECT DISTINCT llm_same(name, by => 'one company') AS e FROM t")
    assert frame.to_pylist() == [{"e": "Apple"}]
    assert [call.question for call in model.calls] == ["Do both match: one company?"]


def test_the_estimate_and_the_plan_count_pairs() -> None:
    session, model = connected()
    frame = session.sql("SELECT llm_same(name) AS e FROM t")
    assert "llm_same(t.name) among the values of stage 1" in frame.explain_text()
    assert 1 <= frame.estimate().total.values <= 3 * len(COMPANIES)
    assert not model.calls
    assert (
        "entities: 3 of 7 values; 1 alike; 6 of 15 pairs asked in 2 rounds, 9 implied"
        in frame.explain_text(analyze=True)
    )
    assert frame.estimate().total.values == 0


def test_a_budget_ends_it_and_a_later_run_goes_on() -> None:
    session, model = connected()
    query = "SELECT llm_same(name) AS e FROM t"
    with pytest.raises(bf.BudgetExceeded):
        session.sql(query, budget=bf.Budget(values=4)).to_pylist()
    assert len(model.calls) <= 4
    assert len({row["e"] for row in session.sql(query).to_pylist()}) == 4
    assert len(model.calls) == 6


def test_failed_pairs_are_different_or_raise() -> None:
    session = bf.connect(bf.ScriptedModel(lambda request: None), cache=None)
    session.from_pydict({"name": ["ab", "abc"]}, name="t")
    with pytest.warns(bf.AnswerWarning):
        rows = session.sql("SELECT llm_same(name) AS e FROM t ORDER BY e").to_pylist()
    assert rows == [{"e": "ab"}, {"e": "abc"}]
    with pytest.raises(bf.AnswerError):
        session.sql("SELECT llm_same(name, on_error => 'raise') AS e FROM t").to_pylist()
    with pytest.raises(bf.ArgumentError, match="keep"):
        session.sql("SELECT llm_same(name, on_error => 'keep') AS e FROM t")


def wrong_about(pair_of: str = "", **options: object) -> bf.Session:
    """A session over two companies, whose model is wrong about the first pair that it is asked of
    those whose values begin with ``pair_of``."""
    names = [f"{company} one{more}" for company in "ab" for more in ("", " x", " y", " z")]
    wrong: list[frozenset[str]] = []

    def judged(request: bf.Request) -> bool:
        pair = frozenset(map(str, request.values))
        first = "".join(sorted(value[0] for value in pair))
        if first == pair_of and not wrong:
            wrong.append(pair)
        return (first in ("aa", "bb")) != (pair in wrong)

    session = bf.connect(bf.ScriptedModel(judged), cache=None, **options)  # type: ignore[arg-type]
    session.from_pydict({"name": names}, name="t")
    return session


def test_answers_that_contradict_others_are_reported_without_being_wanted() -> None:
    session = wrong_about("ab", show_values="on")
    frame = session.sql("SELECT name, llm_same(name, check => 99) AS e FROM t")
    with pytest.warns(bf.ConflictWarning) as caught:
        rows = frame.to_pylist()
    assert all(row["e"][0] == row["name"][0] for row in rows)  # divided
    table = frame.trace.conflicts
    assert table.column_names == ["call", "value", "other", "answer", "same"]
    found = table.to_pylist()
    assert {row["call"] for row in found} == {"llm_same(name, check => 99)"}
    assert {(row["value"][0], row["other"][0], row["same"]) for row in found} == {("a", "b", False)}
    assert [row["answer"] for row in found].count(True) == 1
    assert len(found) > 1
    (message,) = {str(w.message) for w in caught}
    assert message.startswith(
        f"llm_same(name, check => 99): {len(found)} answers contradict what others imply; "
    )
    assert f"{len(found)} pairs are apart in the result, 0 together. First: 'a one'" in message
    assert "frame.trace.conflicts lists them. A larger check => n finds further ones." in message


def test_an_answer_that_the_majority_overrules_is_reported_too() -> None:
    """A model that is wrong about one pair, after others have united its values."""

    def judged(request: bf.Request) -> bool:
        return set(map(str, request.values)) != {"a one y", "a one z"}

    session = bf.connect(bf.ScriptedModel(judged), cache=None, show_values="off")
    session.from_pydict({"name": ["a one", "a one x", "a one y", "a one z"]}, name="t")
    frame = session.sql("SELECT name, llm_same(name, check => 99) AS e FROM t")
    with pytest.warns(bf.ConflictWarning) as caught:
        rows = frame.to_pylist()
    (message,) = {str(w.message) for w in caught}
    assert (
        "1 answer contradicts what others imply; 0 pairs are apart in the result, 1 to" in message
    )
    assert "First: …. " in message
    assert "show_values='on'" in message
    assert len({row["e"] for row in rows}) == 1
    (row,) = frame.trace.conflicts.to_pylist()
    assert [*row.values()][1:] == ["a one y", "a one z", False, True]


def test_answers_that_agree_give_no_warning_and_no_conflicts() -> None:
    frame = wrong_about().sql("SELECT DISTINCT llm_same(name, check => 99) AS e FROM t")
    assert len(frame.to_pylist()) == 2
    assert frame.trace.conflicts.num_rows == 0
    frame.estimate()  # guesses are no answers


def test_without_a_plan_of_ours_the_error_says_why() -> None:
    context = SessionContext()
    bf.register(context, bf.ScriptedModel(lambda request: True))
    context.from_pydict({"name": ["a", "b"]}, name="t")
    with pytest.raises(Exception, match="needs the whole column"):
        context.sql("SELECT llm_same(name) AS e FROM t").collect()


@pytest.mark.long
@pytest.mark.local
def test_the_packaged_model_answers() -> None:
    session = bf.connect(cache=None)
    names = pa.array(["Paris", "paris", "PARIS!", "Los Angeles"])
    session.from_arrow(pa.table({"name": names}), name="t")
    rows = session.sql("SELECT name, llm_same(name) AS e FROM t").to_pylist()
    entity = {row["name"]: row["e"] for row in rows}
    assert entity["Paris"] == entity["paris"] == entity["PARIS!"]
