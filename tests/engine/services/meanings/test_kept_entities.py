"""session.entities: entities that are kept, so that new values are compared with them."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import blendfusion as bf

OLD = ["IBM", "IBM Corp.", "Apple", "Apple Inc.", "Microsoft"]
QUERY = "SELECT DISTINCT name, llm_same(name, name => 'companies') AS e FROM t ORDER BY name"


def first_word(request: bf.Request) -> object:
    """Whether two names begin with the same word; for a list of names, a written one."""
    if len(request.values) == 1:
        return str(request.values[0]).splitlines()[0].split()[1].upper() + " (group)"
    one, other = (str(value).split()[0].lower() for value in request.values)
    return one == other


def connected(names: list[str]) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(first_word)
    session = bf.connect(model, cache=None)
    fill(session, names)
    return session, model


def fill(session: bf.Session, names: list[str], table: str = "t") -> None:
    if session.table_exist(table):
        session.deregister_table(table)
    session.from_pydict({"name": names}, name=table)


def found(session: bf.Session, query: str = QUERY) -> dict[str, str]:
    return {row["name"]: row["e"] for row in session.sql(query).to_pylist()}


def pairs_of(model: bf.ScriptedModel, begin: int = 0) -> list[frozenset[str]]:
    return [frozenset(map(str, call.values)) for call in model.calls[begin:]]


def test_new_values_are_compared_with_known_entities_and_one_another() -> None:
    session, model = connected(OLD)
    before = found(session)
    assert before == {
        "IBM": "IBM Corp.",
        "IBM Corp.": "IBM Corp.",
        "Apple": "Apple Inc.",
        "Apple Inc.": "Apple Inc.",
        "Microsoft": "Microsoft",
    }
    asked = len(model.calls)
    assert found(session) == before
    assert len(model.calls) == asked

    new = ["IBM Corporation Ltd", "apple!", "Oracle", "Oracle Corp."]
    fill(session, [*OLD, *new])
    frame = session.sql(QUERY)
    assert frame.estimate().total.values > 0
    assert found(session) == {
        **before,
        "IBM Corporation Ltd": "IBM Corp.",
        "apple!": "Apple Inc.",
        "Oracle": "Oracle Corp.",
        "Oracle Corp.": "Oracle Corp.",
    }
    pairs = pairs_of(model, asked)
    assert len(pairs) == len(set(pairs)) <= 3 * len(new)
    assert all(pair & {*new} and "apple!" not in pair for pair in pairs)
    # One member stands for its entity: no value is compared with two of an entity.
    assert not any(
        {a, b} in ({"IBM", "IBM Corp."}, {"Apple", "Apple Inc."})
        for one, other in combinations(pairs, 2)
        if one & other & {*new}
        for a in one - {*new}
        for b in other - {*new}
    )
    fill(session, ["Oracle", "IBM"])
    assert found(session) == {"IBM": "IBM Corp.", "Oracle": "Oracle Corp."}
    assert len(model.calls) == asked + len(pairs)


def test_two_tables_share_entities() -> None:
    session, model = connected(["IBM", "Apple Inc."])
    fill(session, ["I.B.M.", "Apple", "IBM Corp."], "suppliers")
    query = """SELECT a.name AS ours, b.name AS theirs FROM
        (SELECT name, llm_same(name, name => 'c') AS e FROM t) a JOIN
        (SELECT name, llm_same(name, name => 'c') AS e FROM suppliers) b ON a.e = b.e ORDER BY 1, 2"""
    rows = [(row["ours"], row["theirs"]) for row in session.sql(query).to_pylist()]
    assert rows == [("Apple Inc.", "Apple"), ("IBM", "IBM Corp.")]
    # Both columns are one, so that no table comes first and gives the names.
    assert session.entities["c"].names == ("Apple Inc.", "I.B.M.", "IBM Corp.")
    assert len(pairs_of(model)) == len(set(pairs_of(model)))


def test_known_entities_are_declared_without_a_question() -> None:
    session, model = connected(["IBM Ltd", "Appel"])
    session.entities.add("companies", ["IBM", "Apple"])
    session.entities.add("companies", {"Big Blue": "IBM"})
    assert found(session) == {"IBM Ltd": "IBM", "Appel": "Appel"}
    assert {frozenset({"IBM", "Big Blue"}), frozenset({"IBM", "Apple"})}.isdisjoint(pairs_of(model))
    with pytest.raises(bf.ArgumentError, match="'Big Blue' is known as 'IBM'"):
        session.entities.add("companies", ["Big Blue"])
    with pytest.raises(bf.ArgumentError, match="must be a text"):
        session.entities.add("companies", [" "])
    rows = session.sql("SELECT name, value FROM information_schema.entities ORDER BY 2").to_pylist()
    assert rows == [
        *({"name": "Appel", "value": "Appel"}, {"name": "Apple", "value": "Apple"}),
        *({"name": "IBM", "value": "Big Blue"}, {"name": "IBM", "value": "IBM"}),
        {"name": "IBM", "value": "IBM Ltd"},
    ]


def test_a_name_is_written_for_entities_of_several_values() -> None:
    session, model = connected(OLD)
    query = "SELECT name, llm_same(name, write => 'the name of the group', name => 'c') AS e FROM t"
    frame = session.sql(query)
    assert {row["name"]: row["e"] for row in frame.to_pylist()} == {
        **dict.fromkeys(["IBM", "IBM Corp."], "IBM (group)"),
        **dict.fromkeys(["Apple", "Apple Inc."], "APPLE (group)"),
        "Microsoft": "Microsoft",
    }
    asked = [call for call in model.calls if len(call.values) == 1]
    assert [call.values for call in asked] == [
        *(("- Apple\n- Apple Inc.",), ("- IBM\n- IBM Corp.",))
    ]
    assert asked[0].question.endswith("What is the name of the group?")
    fill(session, ["IBM Ltd"])
    count = len(model.calls)
    assert found(session, query) == {"IBM Ltd": "IBM (group)"}
    assert all(len(call.values) == 2 for call in model.calls[count:])
    session.entities.rename("c", "IBM (group)", "IBM")
    assert found(session, query) == {"IBM Ltd": "IBM"}


def test_a_written_name_that_another_entity_has_is_not_used() -> None:
    model = bf.ScriptedModel(lambda r: "Same" if len(r.values) == 1 else first_word(r))
    session = bf.connect(model, cache=None)
    fill(session, OLD)
    frame = session.sql("SELECT name, llm_same(name, write => 'the name') AS e FROM t")
    assert {row["e"] for row in frame.to_pylist()} == {"Same", "IBM Corp.", "Microsoft"}
    assert "1 of 2 entities of several values have a written one" in frame.explain_text(
        analyze=True
    )


def test_known_entities_stay_apart_and_contradictions_leave_them_whole() -> None:
    """A new value that is both: it joins the more similar one; with ``check``, others decide."""

    def judged(request: bf.Request) -> bool:
        return "both" in " ".join(map(str, request.values)) or bool(first_word(request))

    model = bf.ScriptedModel(judged)
    session = bf.connect(model, cache=None)
    session.entities.add("companies", {"a one": "a", "a two": "a", "b one": "b"})
    fill(session, ["both b one"])
    assert found(session) == {"both b one": "b"}
    assert len(model.calls) == 1  # that it is no a follows

    def doubtful(request: bf.Request) -> bool:
        return set(map(str, request.values)) == {"a", "a x"}

    model = bf.ScriptedModel(doubtful)
    session = bf.connect(model, cache=None)
    session.entities.add("companies", {"a one": "a", "a two": "a"})
    fill(session, ["a x"])
    frame = session.sql(QUERY.replace("companies'", "companies', check => 9"))
    with pytest.warns(bf.ConflictWarning, match="contradict what others imply"):
        plan = frame.explain_text(analyze=True)
    assert "2 of 2 implied pairs checked contradict, 1 split" in plan
    assert frame.to_pylist() == [{"name": "a x", "e": "a x"}]
    assert session.entities["companies"].name_of["a one"] == "a"


def test_failures_budgets_and_estimates_keep_nothing(tmp_path: Path) -> None:
    session, _ = connected(OLD)
    session.sql(QUERY).estimate()
    assert not session.entities
    with pytest.raises(bf.BudgetExceeded):
        session.sql(QUERY, budget=bf.Budget(values=1)).to_pylist()
    assert not session.entities
    silent = bf.connect(bf.ScriptedModel(lambda request: None), cache=None)
    fill(silent, OLD)
    with pytest.warns(bf.AnswerWarning):
        assert len(set(found(silent).values())) == len(OLD)
    assert not silent.entities
    found(session)
    session.entities.save("companies", tmp_path / "e.json")
    assert silent.entities.load("companies", tmp_path / "e.json") == session.entities["companies"]
    assert found(silent) == found(session)  # all known
    with pytest.raises(bf.ArgumentError, match="made without by") as caught:
        session.sql(QUERY.replace("companies'", "companies', by => 'owners'")).to_pylist()
    assert "del session.entities['companies']" in str(caught.value)
