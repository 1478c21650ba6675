"""on_error => 'keep': a call gives its value or its error, and loses neither."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from datafusion import col
from scripts import Counted, tuples

import blendfusion as bf

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "x": ["3", "many", None, "12", " "],
        "n": [3, 2, 1, 12, 5],
        "g": ["a", "a", "b", "b", "c"],
    }
)


def read(call: bf.Request) -> object:
    """The number in the first value; none for a word."""
    text = call.values[0] or ""
    if call.task.aggregate:
        return None if "many" in call.values else "|".join(v or "" for v in call.values)
    if not text.isdigit():
        return None
    if call.constraint.kind == "boolean":
        return int(text) > 5
    if call.constraint.kind == "date":
        return datetime.date(2024, 1, int(text))
    return int(text) if call.constraint.kind in ("integer", "number") else text


@pytest.fixture(params=[True, False], ids=["staged", "plain"])
def db(request: pytest.FixtureRequest) -> Counted:
    return Counted(read, planner=request.param).add("t", TABLE)


KEPT = "llm_int('How many?', x, on_error => 'keep')"


def test_one_of_value_and_error_is_set_unless_there_is_nothing_to_ask(db: Counted) -> None:
    assert db.rows(f"SELECT {KEPT} AS k FROM t ORDER BY id") == [
        ({"value": 3, "error": None},),
        ({"value": None, "error": "no answer"},),
        (None,),
        ({"value": 12, "error": None},),
        (None,),
    ]


def test_the_type_is_a_struct_of_the_answers_type_and_text(db: Counted) -> None:
    frame = db.session.sql(
        f"SELECT {KEPT}, llm_filter('q', x, on_error => 'keep'), "
        "llm_list('q', x, on_error => 'keep') FROM t LIMIT 0"
    )
    kinds = [pa.int64(), pa.bool_(), pa.list_(pa.string())]
    assert [field.type for field in frame.to_arrow_table().schema] == [
        pa.struct([("value", kind), ("error", pa.string())]) for kind in kinds
    ]


@pytest.mark.parametrize("access", ["['value']", ".value"])
def test_fields_are_taken_by_brackets_and_by_dots(db: Counted, access: str) -> None:
    assert db.rows(f"SELECT id FROM t WHERE {KEPT}{access} > 5") == [(4,)]
    sql = f"SELECT id FROM t WHERE {KEPT}{access} > 5 OR {KEPT}['error'] IS NOT NULL ORDER BY id"
    assert db.rows(sql) == [(2,), (4,)]


def test_what_is_done_with_the_value_says_what_is_asked(db: Counted) -> None:
    db.rows(
        "SELECT id FROM t WHERE llm_map('a', x, on_error => 'keep')['value'] > 3 "
        "AND llm_map('b', x, on_error => 'keep').value < DATE '2024-01-20' "
        "AND llm_map('c', x, on_error => 'keep')['value']"
    )
    kinds = {c.question: c.constraint.kind for c in db.model.calls}
    assert kinds == {"a": "integer", "b": "date", "c": "boolean"}


def test_what_is_done_with_its_alias_counts_too(db: Counted) -> None:
    sql = "SELECT id, k['error'] FROM (SELECT id, llm_map('q', x, on_error => 'keep') AS k FROM t)"
    assert db.rows(f"{sql} WHERE k['value'] > 3") == [(4, None)]
    assert db.rows(f"{sql} s WHERE s.k.value > 3 OR k.error = 'no answer' ORDER BY id") == [
        (2, "no answer"),
        (4, None),
    ]
    assert {c.constraint.kind for c in db.model.calls} == {"integer"}


def test_beside_a_column_the_value_has_its_type(db: Counted) -> None:
    sql = "SELECT id FROM t WHERE llm_map('q', x, on_error => 'keep')['value'] = n ORDER BY id"
    assert db.rows(sql) == [(1,), (4,)]
    assert {c.constraint.kind for c in db.model.calls} == {"integer"}


def test_kept_and_lost_calls_share_their_answers(db: Counted) -> None:
    with pytest.warns(bf.AnswerWarning, match="^1 value got no valid answer"):
        rows = db.rows(f"SELECT {KEPT}['error'], llm_int('How many?', x) FROM t WHERE id < 3")
    assert rows == [(None, 3), ("no answer", None)]
    assert [c.values for c in db.model.calls] == [("3",), ("many",)]


def test_aggregates_keep_the_errors_of_their_groups(db: Counted) -> None:
    sql = """SELECT g, llm_qa('q', x, on_error => 'keep') AS k FROM t GROUP BY g ORDER BY g"""
    assert db.rows(sql) == [
        ("a", {"value": None, "error": "no answer"}),
        ("b", {"value": "12", "error": None}),
        ("c", None),
    ]
    sql = """SELECT g FROM t GROUP BY g
             HAVING llm_qa('q', x, on_error => 'keep') FILTER (WHERE id > 0)['error'] = 'no answer'"""
    assert db.rows(sql) == [("a",)]


def test_a_question_over_no_options_has_neither(db: Counted) -> None:
    sql = "SELECT llm_map('q', x, options => (SELECT g FROM t WHERE FALSE), on_error => 'keep') FROM t"
    assert db.rows(f"{sql} WHERE id = 1") == [(None,)]


def test_dataframes_keep_errors(db: Counted) -> None:
    kept = bf.llm_int("How many?", "x", on_error="keep")
    frame = (
        db.session.table("t").filter(kept["error"].is_not_null()).select(col("id"), kept["value"])
    )
    assert tuples(frame.to_arrow_table()) == [(2, None)]


def test_nothing_is_warned_of_and_the_trace_has_the_error(db: Counted) -> None:
    frame = db.session.sql(f"SELECT {KEPT} FROM t")
    frame.collect()
    assert frame.trace.errors.select(["ingredient", "question", "values", "error"]).to_pylist() == [
        {"ingredient": "llm_int", "question": "How many?", "values": ["many"], "error": "no answer"}
    ]


def test_the_session_raises_and_a_call_keeps(db: Counted) -> None:
    strict = Counted(read, on_error="raise").add("t", TABLE)
    assert strict.rows(f"SELECT id FROM t WHERE {KEPT}['error'] IS NOT NULL") == [(2,)]


def test_only_rows_that_matter_are_asked() -> None:
    db = Counted(read).add("t", TABLE)
    for sql, asked in (
        (f"SELECT k['value'], id FROM (SELECT {KEPT} AS k, id FROM t) WHERE id = 4", 1),
        (f"SELECT k['value'] FROM (SELECT {KEPT} AS k, id, n FROM t) WHERE n > 10 ORDER BY id", 1),
        (f"SELECT {KEPT}['value'] FROM t WHERE id < 3 AND {KEPT}['error'] IS NULL", 2),
        (f"SELECT {KEPT}['error'] FROM t ORDER BY id LIMIT 1", 1),
    ):
        db.session.clear_cache()
        db.model.calls.clear()
        db.rows(sql)
        assert len(db.model.calls) == asked, sql


def test_a_value_that_is_only_compared_may_end_early() -> None:
    db = Counted(read).add("t", TABLE)
    kept = "llm_map('q', x, on_error => 'keep')"
    decided = db.session.sql(f"SELECT id FROM t WHERE {kept}['value'] > 5")
    assert "until decided for > 5" in decided.explain_text()
    whole = db.session.sql(f"SELECT id FROM t WHERE {kept}['value'] > 5 OR {kept}['error'] = 'x'")
    assert "until decided" not in whole.explain_text()


def test_explain_says_what_is_kept() -> None:
    db = Counted(read).add("t", TABLE)
    text = db.session.sql(f"SELECT id FROM t WHERE {KEPT}['value'] > 5").explain_text()
    assert "llm_int('How many?', t.x, on_error => 'keep')['value'] > 5" in text


def test_values_sort_nulls_last(db: Counted) -> None:
    assert db.rows(f"SELECT id FROM t ORDER BY {KEPT}['value'] DESC LIMIT 2") == [(4,), (1,)]
    assert db.rows(f"SELECT id, {KEPT}.value AS v FROM t ORDER BY v DESC LIMIT 1") == [(4, 12)]


@pytest.mark.parametrize(
    "place",
    [
        "WHERE llm_filter('q', x, on_error => 'keep')",
        "WHERE llm_map('q', x, on_error => 'keep') > 3",
        "WHERE llm_map('q', x, on_error => 'keep') = 'a'",
        "ORDER BY llm_map('q', x, on_error => 'keep') + 1",
        "GROUP BY id HAVING sum(llm_int('q', x, on_error => 'keep')) > 3",
    ],
)
def test_the_struct_itself_is_no_answer(db: Counted, place: str) -> None:
    with pytest.raises(bf.ArgumentError, match=r"struct.*\nHint: Take the value out.*\['value'\]"):
        db.session.sql(f"SELECT id FROM t {place}")
    assert db.model.calls == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT concat(llm_map('q', x, on_error => 'keep'), 'a') FROM t",
        "SELECT id FROM (SELECT id, llm_filter('q', x, on_error => 'keep') AS k FROM t) WHERE k",
        "SELECT llm_map('p', llm_map('q', x, on_error => 'keep')) FROM t",
        "SELECT (llm_map('q', x, on_error => 'keep')).value FROM t",
        "SELECT llm_map('q', x, on_error => 'keep')['valeu'] FROM t",
    ],
)
def test_datafusions_refusals_come_with_the_remedy(db: Counted, query: str) -> None:
    with pytest.raises(bf.QueryError, match=r"\nHint: .*\['value'\]"):
        db.session.sql(query).collect()
    assert db.model.calls == []


def test_a_frames_filter_says_so_too(db: Counted) -> None:
    with pytest.raises(bf.QueryError, match=r"\['value'\]"):
        db.session.table("t").filter(bf.llm_filter("q", "x", on_error="keep")).collect()


def test_the_option_of_a_session_has_no_keep() -> None:
    with pytest.raises(bf.OptionError, match="pass it to the call"):
        bf.connect(bf.ScriptedModel(read), on_error="keep")
    session = bf.connect(bf.ScriptedModel(read))
    with pytest.raises(bf.OptionError, match="pass it to the call"):
        session.sql("SET blendfusion.on_error = 'keep'")


def test_the_body_of_a_users_ingredient_may_keep(db: Counted) -> None:
    kept = pa.struct([("value", pa.int64()), ("error", pa.string())])

    @bf.ingredient(name="number_kept", returns=kept)
    def number_kept(model: bf.UserModel, text: pa.StringArray) -> pa.Array:
        return model.ask("How many?", text, returns="int", on_error="keep")

    assert db.rows("SELECT number_kept(x) FROM t ORDER BY id LIMIT 3") == [
        ({"value": 3, "error": None},),
        ({"value": None, "error": "no answer"},),
        (None,),
    ]
    with pytest.raises(
        bf.ArgumentError, match=r"number_kept: on_error => 'keep'.*\nHint: Ask with"
    ):
        db.session.sql("SELECT number_kept(x, on_error => 'keep') FROM t")
