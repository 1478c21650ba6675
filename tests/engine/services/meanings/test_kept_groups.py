"""session.groups: groups by meaning that are kept, so that only new values are asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from word_groups import AREAS, TOPICS, ByWord, answer

import blendfusion as bf

TEXTS = [f"{topic} {number}" for topic in TOPICS for number in range(3)]
QUERY = "SELECT llm_group(x, into => 4, name => 'reviews') AS g, count(*) AS n FROM t GROUP BY 1 ORDER BY 1"


def connected(texts: list[str]) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None, embedder=ByWord())
    session.from_pydict({"x": texts}, name="t")
    return session, model


def test_new_rows_ask_new_values_only() -> None:
    session, model = connected(TEXTS)
    first = session.sql(QUERY).to_pylist()
    assert first == [{"g": topic, "n": 3} for topic in sorted(TOPICS)]
    assert len(model.calls) == 4 + len(TEXTS)

    new = ["late 9", "broken 9", "strange 9"]
    session.deregister_table("t")
    session.from_pydict({"x": [*TEXTS, *new, *new]}, name="t")
    frame = session.sql(QUERY)
    assert frame.estimate().total.values == len(new)
    assert [(row["g"], row["n"]) for row in frame.to_pylist()] == [
        *(("broken", 5), ("late", 5), ("other", 2), ("praise", 3), ("price", 3))
    ]
    assert [call.values for call in model.calls[4 + len(TEXTS) :]] == [(x,) for x in sorted(new)]
    assert "groups: 4 names kept; 1 of 15 values fit none" in frame.explain_text(analyze=True)


def test_descriptions_are_asked_once_a_group_and_read_by_each_sorting(tmp_path: Path) -> None:
    def described(request: bf.Request) -> str:
        if "one sentence" in request.question:
            return f"Texts about {answer(request)}."
        return answer(request)

    model = bf.ScriptedModel(described)
    session = bf.connect(model, cache=None, embedder=ByWord())
    session.from_pydict({"x": TEXTS}, name="t")
    query = QUERY.replace("into => 4", "into => 4, describe => true")
    assert [row["g"] for row in session.sql(query).to_pylist()] == sorted(TOPICS)
    assert len(model.calls) == 2 * len(TOPICS) + len(TEXTS)
    meanings = [f"Texts about {topic}." for topic in sorted(TOPICS)]
    sorting = [call.constraint for call in model.calls if call.constraint.options]
    assert {one.meanings for one in sorting} == {(*meanings, "none of the others")}
    kept = session.sql("SELECT description FROM information_schema.groups").to_pylist()
    assert [row["description"] for row in kept] == meanings

    session.sql("SELECT llm_group(x, name => 'reviews') FROM t").to_pylist()
    assert len(model.calls) == 2 * len(TOPICS) + len(TEXTS)
    session.groups.save("reviews", tmp_path / "groups.json")
    assert session.groups.load("again", tmp_path / "groups.json") == session.groups["reviews"]
    plain, _ = connected(TEXTS)
    plain.sql(QUERY).to_pylist()
    with pytest.raises(bf.ArgumentError, match="were made without describe"):
        plain.sql(query).to_pylist()


def test_other_columns_are_sorted_into_the_same_groups() -> None:
    session, model = connected(TEXTS)
    session.sql(QUERY).to_pylist()
    asked = len(model.calls)
    session.from_pydict({"y": ["late 77", "late 0"]}, name="u")
    frame = session.sql("SELECT y, llm_group(y, name => 'reviews') AS g FROM u ORDER BY y")
    assert [row["g"] for row in frame.to_pylist()] == ["late", "late"]
    assert len(model.calls) == asked + 1


@settings(max_examples=25)
@given(st.permutations(TEXTS), st.integers(1, len(TEXTS)), st.data())
def test_groups_do_not_depend_on_the_order_of_rows(
    order: list[str], count: int, data: st.DataObject
) -> None:
    """Neither where they are made, nor where new rows are sorted into them."""
    usual, model = connected(sorted(order[:count]))
    expected = {row["g"]: row["n"] for row in usual.sql(QUERY).to_pylist()}
    questions = {call.values for call in model.calls}
    mixed, model = connected(order[:count])
    assert {row["g"]: row["n"] for row in mixed.sql(QUERY).to_pylist()} == expected
    assert {call.values for call in model.calls} == questions
    made = mixed.groups["reviews"]
    assert made == usual.groups["reviews"]

    before = len(model.calls)
    mixed.deregister_table("t")
    mixed.from_pydict({"x": data.draw(st.permutations(order))}, name="t")
    sizes = {row["g"]: row["n"] for row in mixed.sql(QUERY).to_pylist()}
    assert {name: n for name, n in sizes.items() if name in made.names} == {
        name: sum(text.split()[0] == name for text in order) for name in made.names
    }
    assert len(model.calls) - before == len(order) - count
    assert mixed.groups["reviews"] == made


def test_levels_form_a_tree_and_share_their_questions() -> None:
    session, model = connected(TEXTS)
    query = """SELECT llm_group(x, into => 4, name => 'r', level => 2) AS area,
        llm_group(x, into => 4, name => 'r') AS topic, count(*) AS n FROM t GROUP BY 1, 2"""
    rows = session.sql(query).to_pylist()
    assert {row["topic"]: row["n"] for row in rows} == dict.fromkeys(TOPICS, 3)
    areas = {row["topic"]: row["area"] for row in rows}
    _, second = session.groups["r"].levels
    assert {group.name for group in second} <= {*AREAS.values()}
    for topic, area in areas.items():
        assert area == (AREAS[topic] if AREAS[topic] in {g.name for g in second} else "other")
    # four names, a sort of each text; two names of areas, a sort of each topic
    assert len(model.calls) == 4 + len(TEXTS) + 2 + len(TOPICS)
    session.sql(query).to_pylist()
    assert len(model.calls) == 4 + len(TEXTS) + 2 + len(TOPICS)


def test_kept_groups_are_labels_with_a_table_of_their_own() -> None:
    session, model = connected(TEXTS)
    session.sql(QUERY).to_pylist()
    shown = session.sql(
        "SELECT level, name, parent, samples FROM information_schema.groups WHERE groups = 'reviews'"
    ).to_pylist()
    assert [row["name"] for row in shown] == sorted(TOPICS)
    assert shown[0] == {
        "level": 1,
        "name": "broken",
        "parent": None,
        "samples": ["broken 0", "broken 1", "broken 2"],
    }
    rows = session.sql(
        "SELECT DISTINCT llm_classify(x, labels => (SELECT name FROM information_schema.groups)) AS c FROM t"
    ).to_pylist()
    assert {row["c"] for row in rows} == {*TOPICS}
    assert {call.constraint.options for call in model.calls[-len(TEXTS) :]} == {
        tuple(sorted(TOPICS))
    }


def test_a_new_title_asks_nothing() -> None:
    session, model = connected(TEXTS)
    session.sql(QUERY).to_pylist()
    asked = len(model.calls)
    session.groups.rename("reviews", "late", "slow delivery")
    session.groups.rename("reviews", "price", "slow delivery")
    assert [(row["g"], row["n"]) for row in session.sql(QUERY).to_pylist()] == [
        *(("broken", 3), ("praise", 3), ("slow delivery", 6))
    ]
    assert session.groups["reviews"].names == ("broken", "slow delivery", "praise")
    assert len(model.calls) == asked
    with pytest.raises(bf.ArgumentError, match="have no 'brokn'") as caught:
        session.groups.rename("reviews", "brokn", "x")
    assert "broken" in str(caught.value)


def test_a_file_carries_groups_to_another_session(tmp_path: Path) -> None:
    session, _ = connected(TEXTS)
    session.sql(QUERY.replace("name =>", "level => 2, name =>")).to_pylist()
    session.groups.save("reviews", tmp_path / "g.json")
    model = bf.ScriptedModel(answer)
    other = bf.connect(model, cache=None, embedder=None)
    assert other.groups.load("reviews", tmp_path / "g.json") == session.groups["reviews"]
    other.from_pydict({"x": ["late 5"]}, name="t")
    assert other.sql(QUERY).to_pylist() == [{"g": "late", "n": 1}]
    assert len(model.calls) == 1
    for text in ("{", "[]", '{"by": null, "into": null, "levels": [[{"name": 1}]]}', "[" * 100_000):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(bf.ArgumentError, match="holds no groups"):
            other.groups.load("x", tmp_path / "wrong.json")
    with pytest.raises(bf.ArgumentError, match="cannot read"):
        other.groups.load("x", tmp_path / "none.json")


def test_groups_that_a_query_describes_otherwise_are_refused() -> None:
    session, model = connected(TEXTS)
    session.sql(QUERY).to_pylist()
    asked = len(model.calls)
    with pytest.raises(bf.ArgumentError, match="into => 4, not 3") as caught:
        session.sql(QUERY.replace("4", "3")).to_pylist()
    assert "del session.groups['reviews']" in str(caught.value)
    with pytest.raises(bf.ArgumentError, match="made without by"):
        session.sql(QUERY.replace("into =>", "by => 'faults', into =>")).to_pylist()
    assert len(model.calls) == asked
    del session.groups["reviews"]
    assert "reviews" not in session.groups
    assert len(session.sql(QUERY.replace("4", "3")).to_pylist()) == 4  # one of them "other"


def test_estimates_and_failures_keep_nothing() -> None:
    session, _ = connected(TEXTS)
    assert session.sql(QUERY).estimate().total.values
    assert not session.groups
    broken = bf.connect(
        bf.ScriptedModel(lambda request: answer(request) if request.constraint.options else None),
        cache=None,
        embedder=ByWord(),
    )
    broken.from_pydict({"x": TEXTS}, name="t")
    frame = broken.sql(QUERY)
    with pytest.warns(bf.AnswerWarning):
        assert frame.to_pylist() == [{"g": None, "n": len(TEXTS)}]
    assert not broken.groups


def test_a_budget_that_ends_sorting_keeps_the_names() -> None:
    session, model = connected(TEXTS)
    with pytest.raises(bf.BudgetExceeded):
        session.sql(QUERY, budget=bf.Budget(values=6)).to_pylist()
    assert session.groups["reviews"].names == tuple(sorted(TOPICS))
    session.sql(QUERY).to_pylist()
    assert len(model.calls) == 4 + len(TEXTS)


def test_a_read_only_query_keeps_nothing() -> None:
    session, model = connected(TEXTS)
    with pytest.raises(bf.QueryError, match=r"read-only: llm_group\(…, name => …\) is refused"):
        session.sql(QUERY, read_only=True)
    query = "SELECT llm_group(x, into => 2) AS g FROM t"
    assert session.sql(query, read_only=True).to_pylist()
    assert not session.groups
    assert model.calls
