"""``llm_answer``, ``llm_summary``, ``llm_members``: functions of a row that read lists of texts."""

from __future__ import annotations

import pytest
from datafusion import SessionContext, col
from datafusion import functions as f
from scripts import Counted, hashed, spoken, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

LISTS: list[object] = [["b", "a"], [], None, ["a", None, " "], ["b", "a"]]
TEXTS: list[object] = ["ab", "", None, "cd", "ab"]


def listed(script: object = spoken, **options: object) -> Counted:
    counted = Counted(script, **options)
    return counted.add("t", {"id": [1, 2, 3, 4, 5], "xs": LISTS, "x": TEXTS})


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
@pytest.mark.parametrize(
    ("column", "expected"),
    [("xs", ["b|a", None, None, "a", "b|a"]), ("x", ["ab", None, None, "cd", "ab"])],
)
def test_a_list_is_read_in_its_order_and_a_text_as_a_list_of_one(
    column: str, expected: list[str | None], planner: bool
) -> None:
    db = listed(planner=planner)
    assert [r[1] for r in db.rows(f"SELECT id, llm_answer('join', {column}) FROM t")] == expected
    assert len(db.model.calls) == 2


def test_the_place_of_an_answer_settles_its_type() -> None:
    db = listed()
    assert db.rows("SELECT id FROM t WHERE llm_answer('size', xs) > 1") == [(1,), (5,)]
    assert db.rows("SELECT id FROM t WHERE llm_answer('holds d', x)") == [(4,)]
    assert {c.constraint.kind for c in db.model.calls} == {"integer", "boolean"}


def test_options_and_the_items_of_an_expression() -> None:
    db = listed()
    sql = "SELECT llm_answer('first', array_agg(x ORDER BY id), options => ['q', 'p']) FROM t"
    assert db.rows(sql) == [("p",)]
    assert db.model.calls[0].values == ("ab", "cd", "ab")


def test_a_summary_of_each_row() -> None:
    db = listed(lambda call: f"{len(call.values)}: {call.values[0]}")
    assert db.rows("SELECT id, llm_summary(xs) FROM t WHERE id <> 5") == [
        (1, "2: b"),
        (2, None),
        (3, None),
        (4, "1: a"),
    ]
    assert [c.task.form for c in db.model.calls] == ["summary"] * 2


def test_a_list_longer_than_the_window_is_read_in_parts() -> None:
    def answer(call: bf.Request) -> Value:
        return "noted" if "Note in" in call.question else "|".join(v or "" for v in call.values)

    model = bf.ScriptedModel(answer, window=600)
    session = bf.connect(model, progress="off")
    session.from_pydict({"xs": [[f"word{i} " * 60 for i in range(12)]]}, name="t")
    assert (
        session.sql("SELECT llm_answer('what?', xs) AS a FROM t")
        .to_pydict()["a"][0]
        .startswith("noted|noted")
    )
    assert len(model.calls) > 2


def test_expressions() -> None:
    db = listed()
    frame = db.session.table("t").select(
        col("id"), bf.llm_answer("join", col("xs")).alias("a"), bf.llm_answer("upper", "x")
    )
    assert [tuple(r.values())[1:] for r in frame.to_pylist()] == [
        ("b|a", "AB"),
        (None, None),
        (None, None),
        ("a", "CD"),
        ("b|a", "AB"),
    ]
    members = bf.llm_members(col("x"), f.make_array(col("x"), col("x")))
    assert db.session.table("t").select(members.alias("m")).to_pydict()["m"][0] == ["ab"]


def test_in_a_plain_context() -> None:
    ctx = SessionContext()
    bf.register(ctx, model=bf.ScriptedModel(spoken))
    ctx.from_pydict({"xs": [["b", "a"]]}, name="t")
    assert ctx.sql("SELECT llm_answer('join', xs) AS a FROM t").to_pydict() == {"a": ["b|a"]}


def kinds(call: bf.Request) -> Value:
    """The options that begin with the first letter of the text."""
    assert call.constraint.item is not None
    letter = (call.values[0] or "")[0]
    return [o for o in call.constraint.item.options if o.startswith(letter)]


def test_members_are_looked_up_before_they_are_asked_for() -> None:
    db = Counted(kinds)
    domain = ["Cafe", "coffee & tea", "thai", None, " "]
    words = ["coffee", "THAI ", "zoo", None, "", "coffee"]
    db.add("t", {"id": list(range(6)), "word": words, "domain": [domain] * 6})
    assert db.rows("SELECT id, llm_members(word, domain) FROM t") == [
        (0, ("coffee & tea",)),
        (1, ("thai",)),
        (2, ()),
        (3, None),
        (4, None),
        (5, ("coffee & tea",)),
    ]
    assert [c.values for c in db.model.calls] == [("coffee",), ("zoo",)]


def test_members_of_nothing_and_of_a_large_set() -> None:
    db = Counted(kinds)
    large = [f"{letter}{i}" for i in range(130) for letter in "ab"]
    db.add("t", {"id": [1, 2], "word": ["apple", "apple"], "domain": [[], large]})
    rows = dict(db.rows("SELECT id, llm_members(word, domain) FROM t"))  # type: ignore[arg-type]
    assert rows == {1: (), 2: tuple(m for m in large if m[0] == "a")}
    assert len(db.model.calls) == 3  # 260 options, at most 100 at once


def test_members_that_fail_are_null() -> None:
    db = Counted(lambda call: ["none of them"])
    db.add("t", {"word": ["apple"], "domain": [["a", "b"]]})
    with pytest.warns(bf.AnswerWarning):
        assert db.rows("SELECT llm_members(word, domain) FROM t") == [(None,)]


def test_planned_and_plain_agree() -> None:
    sql = (
        "SELECT id, llm_answer('q', xs) AS a FROM t WHERE llm_answer('p', xs) OR id > 3 "
        "ORDER BY llm_answer('n', x)::int, id"
    )
    planned, plain = listed(hashed), listed(hashed, planner=False)
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
