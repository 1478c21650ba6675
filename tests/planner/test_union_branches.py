"""Branches of UNION ALL with equal calls ask together; the plan has one predicate for each call."""

from __future__ import annotations

import pytest

import blendfusion as bf


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(
        bf.ScriptedModel(lambda call: call.question.endswith(str(len(call.values[0]) % 2))),
        cache=None,
        progress="off",
    )
    made.from_pydict({"x": ["a" * n for n in range(1, 41)], "n": [*range(40)]}, name="t")
    return made


def union(branches: int, questions: int) -> str:
    return " UNION ALL ".join(
        f"SELECT n FROM t WHERE n >= {i} AND llm_filter('q{i % questions}', x)"
        for i in range(branches)
    )


@pytest.mark.parametrize(("branches", "questions"), [(2, 1), (8, 2), (32, 4), (32, 32)])
def test_a_predicate_for_each_call(session: bf.Session, branches: int, questions: int) -> None:
    frame = session.sql(union(branches, questions))
    plan = frame.explain_text(estimates=False)
    assert plan.count("filter ") - plan.count("filter t.n") == questions
    expected = [
        n
        for i in range(branches)
        for n in range(i, 40)
        if f"q{i % questions}".endswith(str((n + 1) % 2))
    ]
    assert sorted(frame.to_pydict()["n"]) == sorted(expected)
    assert frame.trace.usage.values <= 40 * questions


def test_branches_with_several_calls_share_columns_too(session: bf.Session) -> None:
    query = (
        "SELECT llm_text('a', x) AS a FROM t WHERE n < 3 UNION ALL "
        "SELECT llm_text('b', x) || llm_text('a', CAST(n AS VARCHAR)) FROM t WHERE n > 38 UNION ALL "
        "SELECT llm_text('a', x) FROM t WHERE n = 5"
    )
    with bf.connect(
        bf.ScriptedModel(lambda call: f"{call.question}{call.values[0]}"), cache=None
    ) as other:
        other.from_arrow(session.table("t").to_arrow_table(), name="t")
        found = sorted(other.sql(query).to_pydict()["a"])
    assert found == sorted(["aa", "aaa", "aaaa", "b" + "a" * 40 + "a39", "aaaaaaa"])


@pytest.mark.parametrize("other", ["photo", "x"])
def test_images_keep_their_bytes_below_a_union(session: bf.Session, other: str) -> None:
    """DataFusion would read them as text: only a block leaves out the cast of an argument."""
    png = b"\x89PNG\r\n\x1a\n\xff"
    session.from_pylist([{"n": 0, "x": "a", "photo": png}, {"n": 1, "x": "b", "photo": None}], "p")
    seen = bf.ScriptedModel(lambda call: call.values[0] != "a")
    with bf.connect(seen, cache=None, progress="off") as own:
        own.from_arrow(session.table("p").to_arrow_table(), name="p")
        query = (
            "SELECT n FROM p WHERE llm_filter('Seen?', photo) "
            f"UNION ALL SELECT n + 10 FROM p WHERE llm_filter('Seen?', {other})"
        )
        assert sorted(own.sql(query).to_pydict()["n"]) == ([0, 10] if other == "photo" else [0, 11])
