"""A view whose question changes asks what does not follow from its kept answers, and EXPLAIN CREATE
says how much."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from view_kinds import script

import blendfusion as bf

TEXTS = [f"{word} {n}" for n, word in enumerate(["red", "small", "torn", "fine", "late"] * 4)]
CLASSES = "llm_classify(text, ['size', 'colour', 'price'])"
BEFORE = f"""SELECT id, {CLASSES} AS topic FROM t
WHERE llm_score('How angry?', text) > 3 ORDER BY id"""
ALL = len(TEXTS)

# The new query, and the most values that it may ask: 0 where all follows from kept answers.
DERIVED = {
    "a higher threshold": (BEFORE.replace("> 3", "> 5"), 0),
    "another comparison": (BEFORE.replace("> 3", "BETWEEN 4 AND 6"), 0),
    "another name": (BEFORE.replace("AS topic", "AS subject"), 0),
    "a renamed answer": (
        BEFORE.replace(CLASSES, f"CASE {CLASSES} WHEN 'size' THEN 'fit' ELSE {CLASSES} END"),
        0,
    ),
    "answers put together": (
        f"SELECT count(*) AS n FROM t WHERE llm_score('How angry?', text) > 3 AND {CLASSES} IN ('size', 'price')",
        0,
    ),
    "groups": (
        f"SELECT {CLASSES} AS topic, count(*) AS n FROM t WHERE llm_score('How angry?', text) > 4 GROUP BY 1 ORDER BY 1",
        0,
    ),
    "another type": (BEFORE.replace("SELECT id,", "SELECT CAST(id AS VARCHAR) AS id,"), 0),
    "a score shown": (
        "SELECT id, CAST(llm_score('How angry?', text) AS INT) AS anger FROM t ORDER BY id",
        0,
    ),
    "fewer rows": (BEFORE.replace("WHERE", "WHERE id < 9 AND"), 0),
}
ASKED = {
    "a lower threshold": (BEFORE.replace("> 3", "> 1"), ALL),
    "a new label": (BEFORE.replace("'price'", "'price', 'speed'"), ALL),
    "another wording": (BEFORE.replace("How angry?", "How cross?"), 2 * ALL),
    "a renamed label": (BEFORE.replace("'price'", "'cost'"), ALL),
    "one question more": (BEFORE.replace("WHERE", "WHERE llm_filter('Is it red?', text) AND"), ALL),
}
CHANGES = DERIVED | ASKED

GOOD = "llm_filter('Is it good?', text)"
LIKELY = "llm_probability('Is it good?', text)"
ODDS = {
    "another threshold": f"SELECT id FROM t WHERE {GOOD.replace(')', ', threshold => 0.8)')} ORDER BY id",
    "a lower threshold": f"SELECT id FROM t WHERE {LIKELY} > 0.2 ORDER BY id",
    "the opposite": f"SELECT id FROM t WHERE NOT {GOOD} ORDER BY id",
    "a column": "SELECT id, llm_bool('Is it good?', text) AS good FROM t ORDER BY id",
    "its probability": f"SELECT id, {LIKELY} AS p FROM t ORDER BY id",
    "both probabilities": "SELECT id, llm_bool('Is it good?', text, confidence => 'all') AS p FROM t ORDER BY id",
    "the likeliest": f"SELECT id FROM t ORDER BY {LIKELY} DESC, id LIMIT 3",
    "an expected number": f"SELECT sum({LIKELY}) AS n FROM t",
    "other labels": f"SELECT id, CASE WHEN {LIKELY} > 0.7 THEN 'good' WHEN {LIKELY} < 0.3 THEN 'bad' ELSE 'unsure' END AS c FROM t ORDER BY id",
}


def odds(request: bf.Request) -> object:
    share = len(str(request.values[0])) * 37 % 101 / 100
    return {True: share, False: 1 - share}


@pytest.mark.parametrize("change", ODDS)
def test_what_follows_from_stored_probabilities(change: str, tmp_path: Path) -> None:
    """Of a yes/no question both probabilities are stored: thresholds and types of it ask nothing."""
    table = {"id": list(range(ALL)), "text": [text * (n + 1) for n, text in enumerate(TEXTS)]}
    model = bf.ScriptedModel(odds, fingerprint="by lengths")
    with bf.connect(model, cache=None, progress="off", views_folder=str(tmp_path)) as session:
        session.from_pydict(table, name="t")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE {GOOD} ORDER BY id")
        assert len(model.calls) == ALL
        statement = f"CREATE OR REPLACE MATERIALIZED VIEW v AS {ODDS[change]}"
        plan = "\n".join(session.sql(f"EXPLAIN {statement}").to_pydict()["plan"])
        assert re.search(r"Expected: (?:about )?0 values", plan)
        assert session.sql(statement).to_pylist()[0]["asked"] == 0
        rows = session.sql("SELECT * FROM v").to_pylist()
    full = bf.ScriptedModel(odds)
    with bf.connect(full, cache=None, progress="off") as session:
        session.from_pydict(table, name="t")
        assert rows == session.sql(ODDS[change]).to_pylist()
    assert len(full.calls) > 0


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_question(change: str, tmp_path: Path) -> None:
    query, most = CHANGES[change]
    table = {"id": list(range(ALL)), "text": TEXTS}
    model = bf.ScriptedModel(script, fingerprint="by digests")
    with bf.connect(model, cache=None, progress="off", views_folder=str(tmp_path)) as session:
        session.from_pydict(table, name="t")
        session.sql(f"CREATE MATERIALIZED VIEW v AS {BEFORE}")
        model.calls.clear()
        statement = f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}"
        plan = session.sql(f"EXPLAIN {statement}").to_pydict()["plan"]
        assert model.calls == []
        expected = re.search(r"Expected: (?:about )?(\d+) value", "\n".join(plan))
        assert expected is not None
        asked = session.sql(statement).to_pylist()[0]["asked"]
        assert asked == len(model.calls)
        assert asked <= most
        assert (asked == 0) == (change in DERIVED)
        if change in DERIVED:
            assert int(expected[1]) == 0
        rows = session.sql("SELECT * FROM v").to_pylist()
    full = bf.ScriptedModel(script)
    with bf.connect(full, cache=None, progress="off") as session:
        session.from_pydict(table, name="t")
        assert rows == session.sql(query).to_pylist()
        assert len(full.calls) >= asked


SURE = {text: (n * 7 % ALL + ALL) / (2 * ALL) for n, text in enumerate(TEXTS)}
"""The probability of each text's first label: each another one."""
NEW_QUESTIONS = {
    "a new label": CLASSES.replace("'price'", "'price', 'speed'"),
    "a label less": CLASSES.replace(", 'price'", ""),
    "a renamed label": CLASSES.replace("'price'", "'cost'"),
}


@pytest.mark.parametrize("change", NEW_QUESTIONS)
@pytest.mark.parametrize("most", [1, 7, ALL])
def test_the_least_certain_are_asked_first(most: int, change: str, tmp_path: Path) -> None:
    """Within a budget; new values before all. What is asked of the rest later is not asked twice."""

    def unsure(request: bf.Request) -> object:
        first, *others = request.constraint.options
        share = SURE.get(str(request.values[0]), 0.5)
        return {first: share, **dict.fromkeys(others, (1 - share) / len(others))}

    asked: list[str] = []

    def script_of(request: bf.Request) -> object:
        asked.append(str(request.values[0]))
        return unsure(request)

    model = bf.ScriptedModel(script_of, fingerprint="by places", batch_size=1)
    texts = [*TEXTS, "a new one"]
    query = f"SELECT id, {NEW_QUESTIONS[change]} AS topic FROM t ORDER BY id"
    statement = f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}"
    with bf.connect(model, cache=None, progress="off", views_folder=str(tmp_path)) as session:
        session.from_pydict({"id": [*range(ALL)], "text": TEXTS}, name="t")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id, {CLASSES} AS topic FROM t")
        session.deregister_table("t")
        session.from_pydict({"id": [*range(ALL + 1)], "text": texts}, name="t")
        asked.clear()
        session.budget = bf.Budget(values=session.ledger.usage.values + most)
        with pytest.raises(bf.BudgetExceeded):
            session.sql(statement)
        expected = sorted(texts, key=lambda text: SURE.get(text, 0.0))
        assert asked == expected[:most]
        session.budget = None
        session.sql(statement)
        assert sorted(asked) == sorted(texts)
        assert session.sql("SELECT * FROM v").to_pylist() == session.sql(query).to_pylist()
