"""llm_score in queries: numbers on a scale, and the best rows by them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext, col
from scripts import Counted, tuples

import blendfusion as bf

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6, 7],
        "x": ["bad", "great", None, "great", "so so", "  ", "awful"],
        "n": [5, 4, 3, 2, 1, 0, None],
    }
)
SCORES = {"awful": 0, "bad": 1.5, "so so": {4: 0.5, 5: 0.5}, "great": 9.25}


def read(call: bf.Request) -> object:
    return SCORES[call.values[0] or ""]


@pytest.fixture(params=[True, False], ids=["staged", "plain"])
def db(request: pytest.FixtureRequest) -> Counted:
    return Counted(read, planner=request.param).add("t", TABLE)


SCORE = "llm_score('How good is it?', x)"


def test_a_score_is_a_double_on_the_scale(db: Counted) -> None:
    table = db.session.sql(f"SELECT {SCORE} AS s FROM t ORDER BY id").to_arrow_table()
    assert table.schema.field("s").type == pa.float64()
    assert table["s"].to_pylist() == [1.5, 9.25, None, 9.25, 4.5, None, 0.0]
    assert {str(call.constraint) for call in db.model.calls} == {"score from 0 to 10"}


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT id FROM t ORDER BY {SCORE} DESC, id LIMIT 3", [(2,), (4,), (5,)]),
        (f"SELECT id FROM t ORDER BY {SCORE} LIMIT 2", [(7,), (1,)]),
        (
            f"SELECT id, {SCORE} AS s FROM t ORDER BY s DESC, id LIMIT 2 OFFSET 1",
            [(4, 9.25), (5, 4.5)],
        ),
        (f"SELECT id FROM t WHERE n < 5 ORDER BY {SCORE} DESC, id LIMIT 1", [(2,)]),
        (f"SELECT id FROM t WHERE {SCORE} > 4 ORDER BY {SCORE} DESC, n LIMIT 2", [(4,), (2,)]),
        (f"SELECT id, round({SCORE}) AS s FROM t ORDER BY s DESC, id LIMIT 1", [(2, 9.0)]),
        (f"SELECT id, n AS m, {SCORE} FROM t AS s ORDER BY m DESC LIMIT 1", [(7, None, 0.0)]),
        (f"SELECT avg({SCORE}) FROM t", [(4.9,)]),
        (
            f"SELECT id, rank() OVER (ORDER BY {SCORE} DESC, id) AS r FROM t ORDER BY r LIMIT 2",
            [(2, 1), (4, 2)],
        ),
    ],
)
def test_the_best_rows_are_those_of_the_highest_scores(
    db: Counted, query: str, rows: list[tuple[object, ...]]
) -> None:
    assert db.rows(query) == rows


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (f"SELECT id FROM t ORDER BY {SCORE} DESC LIMIT 2", 4),
        (f"SELECT id FROM t WHERE n > 3 ORDER BY {SCORE} DESC LIMIT 1", 2),
        (f"SELECT id, {SCORE} FROM t WHERE {SCORE} >= 1 ORDER BY {SCORE} DESC LIMIT 1", 4),
        (
            "SELECT t.id FROM t JOIN t u ON t.id = u.id AND u.n = 4 ORDER BY llm_score('?', t.x) LIMIT 1",
            1,
        ),
    ],
)
def test_each_value_that_can_count_is_scored_once(query: str, asked: int) -> None:
    assert Counted(read).add("t", TABLE).asked(query) == asked


def test_what_else_is_asked_is_asked_of_the_best_alone() -> None:
    db = Counted(lambda call: read(call) if call.constraint.kind == "score" else "said")
    db.add("t", TABLE)
    db.rows(f"SELECT llm_map('Why?', x) FROM t ORDER BY {SCORE} DESC, id LIMIT 3")
    assert [call.values[0] for call in db.model.calls if call.question == "Why?"] == [
        "great",
        "so so",
    ]


def test_the_scale_is_part_of_the_question() -> None:
    db = Counted(lambda call: sum(call.constraint.scale or ()) / 2).add("t", TABLE)
    query = "SELECT llm_score('?', x), llm_score('?', x, low => 1, high => 5), llm_score('?', x, low => -5, high => 5) FROM t WHERE id = 1"
    assert db.rows(query) == [(5.0, 3.0, 0.0)]
    text = db.session.sql(query).explain_text()
    assert "llm_score('?', t.x, low => 1, high => 5)" in text
    assert "llm_score('?', t.x)," in text


def test_a_score_off_the_scale_is_no_answer() -> None:
    db = Counted(lambda call: 7).add("t", TABLE)
    query = "SELECT llm_score('?', x, high => 5, on_error => 'keep') FROM t WHERE id = 1"
    assert db.rows(query) == [
        ({"value": None, "error": "answered '7', which is not score from 0 to 5"},)
    ]


def test_dataframes_sort_by_scores(db: Counted) -> None:
    score = bf.llm_score("How good is it?", "x", low=0, high=10)
    best = db.session.table("t").sort(score.sort(ascending=False, nulls_first=False)).limit(2)
    assert sorted(tuples(best.select(col("id")).to_arrow_table())) == [(2,), (4,)]


def test_several_values_and_placeholders() -> None:
    db = Counted(lambda call: len(call.values)).add("t", TABLE)
    assert db.rows("SELECT llm_score('Is {x} like {n}?', x, n) FROM t WHERE id = 1") == [(2.0,)]


def test_explain_says_what_runs_where() -> None:
    db = Counted(read).add("t", TABLE)
    text = db.session.sql(
        f"SELECT id FROM t WHERE n > 3 ORDER BY {SCORE} DESC LIMIT 1"
    ).explain_text()
    assert text.startswith(
        "Stage 1\n"
        "  compute llm_score('How good is it?', t.x)\n"
        "    ask llm_score('How good is it?', t.x) → score from 0 to 10  [expected: 2 values of 2 rows (exact)"
    )
    assert "sort by llm_score('How good is it?', t.x) DESC NULLS LAST" in text


def test_in_a_plain_context_the_usual_scale_holds() -> None:
    context = SessionContext()
    bf.register(context, model=bf.ScriptedModel(read))  # type: ignore[arg-type]
    context.from_arrow(TABLE, name="t")
    query = "SELECT id FROM t ORDER BY llm_score('How good is it?', x) DESC NULLS LAST, id LIMIT 2"
    assert tuples(context.sql(query).to_arrow_table()) == [(2,), (4,)]
