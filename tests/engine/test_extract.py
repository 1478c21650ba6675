"""llm_extract in queries: fields of a struct, one question a value wherever they are read."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pydantic
import pytest
from datafusion import SessionContext, col
from scripts import Counted, tuples

import blendfusion as bf

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "x": ["Alien 1979", "Brazil 1985", None, "Alien 1979", "Untitled", "  "],
        "n": [1979, 1, 2, 3, 4, 5],
    }
)
SCHEMA = "name TEXT, year INT, tags LIST, seen STRUCT(on_day DATE, ok BOOLEAN)"
FILM = f"llm_extract(x, '{SCHEMA}', evidence => false)"


def read(call: bf.Request) -> object:
    name, _, year = (call.values[0] or "").partition(" ")
    if name == "Brazil":
        return {"name": name, "year": 1985, "seen": {"on_day": datetime.date(2024, 1, 2)}}
    return {"name": name, "year": int(year) if year else None, "tags": [name[0], "b"]}


@pytest.fixture(params=[True, False], ids=["staged", "plain"])
def db(request: pytest.FixtureRequest) -> Counted:
    return Counted(read, planner=request.param).add("t", TABLE)


ALIEN = {"name": "Alien", "year": 1979, "tags": ["A", "b"], "seen": None}


def test_the_result_is_a_struct_of_the_fields(db: Counted) -> None:
    frame = db.session.sql(f"SELECT {FILM} AS film FROM t ORDER BY id")
    table = frame.to_arrow_table()
    assert table.schema.field("film").type == pa.struct(
        [
            ("name", pa.string()),
            ("year", pa.int64()),
            ("tags", pa.list_(pa.string())),
            ("seen", pa.struct([("on_day", pa.date32()), ("ok", pa.bool_())])),
        ]
    )
    brazil = {
        "name": "Brazil",
        "year": 1985,
        "tags": None,
        "seen": {"on_day": datetime.date(2024, 1, 2), "ok": None},
    }
    untitled = {"name": "Untitled", "year": None, "tags": ["U", "b"], "seen": None}
    assert table["film"].to_pylist() == [ALIEN, brazil, None, ALIEN, untitled, None]
    assert len(db.model.calls) == 3


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT id FROM t WHERE {FILM}['year'] > 1980", [(2,)]),
        (f"SELECT id FROM t WHERE {FILM}.year < 1980 ORDER BY id", [(1,), (4,)]),
        (f"SELECT id FROM t WHERE {FILM}.year = n", [(1,)]),
        (
            f"SELECT id, {FILM}['name'] FROM t WHERE {FILM}['year'] IS NULL ORDER BY id",
            [(3, None), (5, "Untitled"), (6, None)],
        ),
        (
            f"SELECT {FILM}['seen']['on_day'], {FILM}.seen.ok FROM t WHERE id < 3 ORDER BY id",
            [(None, None), (datetime.date(2024, 1, 2), None)],
        ),
        (f"SELECT {FILM}['tags'][2] FROM t WHERE id = 1", [("b",)]),
        (
            f"SELECT f['name'], f['year'] FROM (SELECT id, {FILM} AS f FROM t) WHERE f['year'] > 1900 ORDER BY f['year'] DESC, id LIMIT 2",
            [("Brazil", 1985), ("Alien", 1979)],
        ),
        (
            f"SELECT f.name, f.year FROM (SELECT id, {FILM} AS f FROM t) s ORDER BY f.year DESC, id LIMIT 2",
            [("Brazil", 1985), ("Alien", 1979)],
        ),
        (
            f"SELECT {FILM}.name AS name, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 2",
            [("Alien", 2), (None, 2)],
        ),
        (
            f"SELECT a.id, b.id FROM t a JOIN t b ON llm_extract(a.x, '{SCHEMA}').year = b.n ORDER BY 1",
            [(1, 1), (4, 1)],
        ),
        (f"SELECT max({FILM}['year']), sum({FILM}['year'] + 1) FROM t", [(1985, 5946)]),
    ],
)
def test_fields_are_read_anywhere(db: Counted, query: str, rows: list[tuple[object, ...]]) -> None:
    assert db.rows(query) == rows


def test_one_question_a_value_however_many_fields_are_read_in_however_many_places() -> None:
    db = Counted(read).add("t", TABLE)
    query = f"""
        SELECT {FILM}['name'], {FILM}.year + 1, {FILM}['tags'] FROM t
        WHERE {FILM}['year'] > 1900 AND {FILM}['name'] LIKE 'A%' ORDER BY {FILM}['year'] DESC"""
    assert db.asked(query) == 3
    assert (
        db.asked(f"SELECT {FILM}['name'] FROM t WHERE id < 3 AND n > 2 ORDER BY {FILM}['year']")
        == 1
    )


def test_the_names_in_a_schema_keep_their_case() -> None:
    db = Counted(lambda call: {"Year of release": 3, "N": 4}).add("t", TABLE)
    call = "llm_extract(x, '\"Year of release\" INT, N INT', evidence => false)"
    assert db.rows(f"SELECT {call}['Year of release'], {call}.N FROM t WHERE id = 1") == [(3, 4)]


KEPT = f"llm_extract(x, '{SCHEMA}', on_error => 'keep')"


def test_failed_values_are_null_kept_or_raise() -> None:
    for planner in (True, False):
        db = Counted(
            lambda call: None if call.values == ("Untitled",) else read(call), planner=planner
        )
        db.add("t", TABLE)
        with pytest.warns(bf.AnswerWarning, match="^1 value got no valid answer"):
            assert db.rows(f"SELECT {FILM} FROM t WHERE id = 5") == [(None,)]
        assert db.rows(
            f"SELECT {KEPT}['value']['year'], {KEPT}.error FROM t WHERE id > 3 ORDER BY id"
        ) == [
            (1979, None),
            (None, "no answer"),
            (None, None),
        ]
        assert db.rows(f"SELECT id FROM t WHERE {KEPT}.value.year > 1980") == [(2,)]
        with pytest.raises(bf.AnswerError, match="no valid answer"):
            db.rows(f"SELECT llm_extract(x, '{SCHEMA}', on_error => 'raise') FROM t")


def test_an_answer_outside_the_schema_fails_as_a_whole() -> None:
    db = Counted(lambda call: {"name": "Alien", "year": "late"}).add("t", TABLE)
    [(kept,)] = db.rows(f"SELECT {KEPT} FROM t WHERE id = 1")
    assert kept["value"] is None  # type: ignore[index]
    assert "which is not struct of name text, year integer" in kept["error"]  # type: ignore[index]


class Film(pydantic.BaseModel):
    name: str
    year: int | None = None


def test_a_function_answers_a_list_of_structs() -> None:
    people = [{"name": "A", "age": 3}, {"name": "B", "age": None}]
    db = Counted(lambda call: {"people": people}).add("t", {"x": ["a"]})
    query = "SELECT llm_extract(x, 'people LIST<STRUCT<name TEXT, age INT>>', evidence => false) AS v FROM t"
    assert db.rows(query) == [({"people": people},)]


@pytest.mark.parametrize(
    "schema",
    ["name TEXT, year INT", pa.schema([("name", pa.string()), ("year", pa.int32())]), Film],
)
def test_dataframes_take_every_kind_of_schema(schema: object) -> None:
    film = bf.llm_extract("x", schema)  # type: ignore[arg-type]
    db = Counted(lambda call: dict(zip(("name", "year"), read(call).values(), strict=False)))  # type: ignore[attr-defined]
    db.add("t", TABLE)
    frame = db.session.table("t").filter(film["year"] > 1980).select(col("id"), film["name"])
    assert tuples(frame.to_arrow_table()) == [(2, "Brazil")]


def test_a_question_says_what_to_look_for() -> None:
    db = Counted(read).add("t", TABLE)
    db.rows(
        f"SELECT llm_extract(x, '{SCHEMA}', question => 'Which film is best?') FROM t WHERE id = 1"
    )
    [call] = db.model.calls
    assert call.question == "Which film is best?"


def test_explain_shows_the_schema_and_the_fields_that_are_read() -> None:
    db = Counted(read).add("t", TABLE)
    film = FILM.replace(", evidence => false", "")
    text = db.session.sql(f"SELECT id FROM t WHERE {film}['seen']['ok']").explain_text()
    shown = """llm_extract(t.x, 'name TEXT, year INT, tags TEXT[], seen STRUCT("on_day" DATE, "ok" BOOLEAN)')"""
    assert f"filter 1: {shown}['seen']['ok']\n" in text
    assert "[expected: 3 values of 6 rows (exact)" in text


def test_estimates_assume_answers_of_the_fields() -> None:
    db = Counted(read).add("t", TABLE)
    estimate = db.session.sql(
        f"SELECT llm_int('How old?', x) FROM t WHERE {FILM}['year'] > 0 AND {FILM}['seen']['ok']"
    ).estimate()
    assert estimate.operators[0].values == 3
    assert db.model.calls == []


def test_an_unknown_field_is_an_error_before_any_call(db: Counted) -> None:
    with pytest.raises(bf.QueryError, match=r"(?i)field.*yaer"):
        db.session.sql(f"SELECT {FILM}['yaer'] FROM t").collect()
    assert db.model.calls == []


def test_a_plain_context_has_no_function_of_many_types() -> None:
    context = SessionContext()
    bf.register(context, model=bf.ScriptedModel(read))  # type: ignore[arg-type]
    assert "llm_extract" not in context.udfs()
    assert "llm_score" in context.udfs()
