"""BlendSQL's queries as their authors wrote them: aliases in WHERE, large inferred sets, limits."""

from __future__ import annotations

import base64
import sqlite3

import pytest

import blendfusion as bf

PEOPLE = {"name": ["ann", "bob", "cid"], "city": ["Oslo", "Rome", "Oslo"]}


def session(script: object) -> bf.Session:
    made = bf.connect(bf.ScriptedModel(script), cache=None, progress="off")  # type: ignore[arg-type]
    made.from_pydict(PEOPLE, name="people")
    return made


def test_where_names_an_alias_of_the_select_list() -> None:
    opened = session(lambda request: request.values[0] == "Oslo")
    query = """SELECT name, {{LLMMap('In Norway?', city)}} AS north FROM people
        WHERE NORTH = TRUE AND name != 'ann'"""
    frame = opened.sql(query, dialect="blendsql")
    assert frame.to_pylist() == [{"name": "cid", "north": True}]
    assert frame.trace.usage.values == 2


def test_a_column_hides_an_alias_of_its_name() -> None:
    opened = session(lambda request: "x")
    query = "SELECT upper(city) AS name FROM people WHERE name = 'bob'"
    assert opened.sql(query, dialect="blendsql").to_pylist() == [{"name": "ROME"}]


def test_an_alias_in_a_subquery_is_that_of_the_subquery() -> None:
    opened = session(lambda request: "x")
    query = """SELECT name AS who FROM people
        WHERE city IN (SELECT lower(city) AS low FROM people WHERE low = 'rome') OR who = 'ann'"""
    assert opened.sql(query, dialect="blendsql").to_pylist() == [{"who": "ann"}]


def test_a_set_that_was_inferred_and_is_too_large_is_free_text() -> None:
    opened = session(lambda request: "value 7")
    opened.from_pydict({"name": [f"value {n}" for n in range(1001)]}, name="many")
    query = "SELECT name FROM many WHERE name = {{LLMQA('Which?')}}"
    with pytest.warns(bf.AnswerWarning, match=r"more than 1,000 values: the answer is a free text"):
        assert opened.sql(query, dialect="blendsql").to_pylist() == [{"name": "value 7"}]
    asked = "SELECT name FROM many WHERE name = {{LLMQA('Which?', options=many.name)}}"
    with pytest.raises(bf.QueryError, match="gives more than 1,000 values"):
        opened.sql(asked, dialect="blendsql").collect()


def test_a_set_that_was_inferred_and_is_small_is_closed() -> None:
    seen: list[tuple[str, ...]] = []

    def script(request: bf.Request) -> str:
        seen.append(request.constraint.options)
        return "bob"

    query = "SELECT city FROM people WHERE name = {{LLMQA('Who?')}}"
    assert session(script).sql(query, dialect="blendsql").to_pylist() == [{"city": "Rome"}]
    assert seen == [("ann", "bob", "cid")]


def test_max_tokens_has_no_effect() -> None:
    query = "SELECT {{LLMQA('Who?', (SELECT name FROM people), max_tokens=20)}} AS who"
    assert session(lambda request: "ann").sql(query, dialect="blendsql").to_pylist() == [
        {"who": "ann"}
    ]


def test_below_with_an_alias_of_the_select_list_is_no_column_of_the_tables() -> None:
    opened = session(lambda request: request.values[0])
    query = """WITH places AS (SELECT name AS who, city FROM people WHERE who != 'ann'),
        kinds AS (SELECT *, {{LLMMap('Which?', city)}} AS kind FROM places WHERE kind = 'Oslo')
        SELECT who, kind FROM kinds WHERE city = 'Oslo'"""
    assert opened.sql(query, dialect="blendsql").to_pylist() == [{"who": "cid", "kind": "Oslo"}]


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("VALUES {{LLMQA('Which?', quantifier='{2}')}}", [("a", "b")]),
        ("(VALUES {{LLMQA('Which?', quantifier='{2}')}})", [("a", "b")]),
        ("(VALUES {{LLMQA('Which?', quantifier='{1,3}')}})", [("a",), ("b",)]),
        ("VALUES {{LLMQA('Which?')}}", [("a",), ("b",)]),
        ("(VALUES {{LLMQA('Which?')}}) AS v(x)", [("a",), ("b",)]),
    ],
)
def test_values_are_the_answers_of_a_call(source: str, rows: list[tuple[str, ...]]) -> None:
    opened = session(lambda request: ["a", "b"])
    found = opened.sql(f"SELECT * FROM {source}", dialect="blendsql").to_pylist()
    assert [tuple(row.values()) for row in found] == rows


def test_an_answer_is_a_condition_beside_others() -> None:
    opened = session(lambda request: len(request.values) > 9)
    query = """SELECT NOT EXISTS (SELECT * FROM people WHERE city = 'Rome')
        OR ({{LLMQA('Are there many?', (SELECT * FROM people))}}) AS found"""
    assert opened.sql(query, dialect="blendsql").to_pylist() == [{"found": False}]


PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(32)
DATA = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"


@pytest.mark.parametrize(
    ("column", "values", "seen"),
    [
        ("image", [DATA, None], True),
        ("photo", [PIXEL, None], True),
        ("picture", ["https://shots.example/1.PNG?size=9", None], True),
        ("image", ["a cat", None], False),
        ("image", ["https://shots.example/page.html", None], False),
        ("note", [DATA, None], True),
    ],
)
def test_images_are_asked_about_as_images(column: str, values: list[object], seen: bool) -> None:
    model = bf.ScriptedModel(lambda request: "red")
    opened = bf.connect(model, cache=None, progress="off")
    opened.from_pydict({"id": [1, 2], column: values}, name="shots")
    query = f"SELECT id, {{{{LLMMap('Which colour?', {column})}}}} AS colour FROM shots"
    planned = opened.sql(query, dialect="blendsql")
    assert not model.calls
    assert planned.to_pylist() == [{"id": 1, "colour": "red"}, {"id": 2, "colour": None}]
    assert [call.task.images for call in model.calls] == [seen]


def test_no_image_is_looked_for_in_a_view_that_asks() -> None:
    model = bf.ScriptedModel(lambda request: DATA)
    opened = bf.connect(model, cache=None, progress="off")
    opened.from_pydict(PEOPLE, name="people")
    opened.sql("CREATE VIEW shots AS SELECT llm_text('Draw it.', name) AS image FROM people")
    opened.sql("SELECT {{LLMMap('Which colour?', image)}} FROM shots", dialect="blendsql")
    assert not model.calls


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT SUM({{LLMMap('Is it a?', name)}} = TRUE) AS v FROM t", 1),
        ("SELECT AVG({{LLMMap('Is it a?', name)}} = FALSE) AS v FROM t", 0.5),
        ("SELECT SUM(DISTINCT flag = 1 OR name = 'a') AS v FROM t", 1),
        ("SELECT SUM(CASE WHEN flag = 1 THEN 5 END) AS v FROM t", 5),
        ("SELECT count(*) AS v FROM t WHERE flag = TRUE", 1),
        ("SELECT count(*) AS v FROM t WHERE t.Flag <> FALSE AND known = TRUE", 1),
        ("SELECT count(*) AS v FROM t JOIN t AS u ON{{LLMJoin(t.name, u.name)}}", 2),
        ("SELECT count(*) AS v FROM t WHERE NOT{{LLMMap('Is it a?', name)}}OR flag = 1", 2),
    ],
)
def test_forms_of_sqlite(query: str, expected: float) -> None:
    def answer(call: bf.Request) -> bool | str:
        return "none" if call.task.ingredient == "llm_join" else call.values == ("a",)

    opened = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off")
    opened.from_pydict({"name": ["a", "b"], "flag": [1, 0], "known": [True, True]}, name="t")
    assert opened.sql(query, dialect="blendsql").to_pylist() == [{"v": expected}]


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        ("SELECT * FROM nowhere", "line 1, column 36: unknown table 'nowhere'"),
        ("SELECT * FROM t WHERE nope = 1", "line 1, column 44: unknown column 'nope'"),
        ("WITH w AS (SELECT * FROM nowhere) SELECT * FROM w", "unknown table 'nowhere'"),
    ],
)
def test_an_unknown_name_in_a_context_is_named(context: str, problem: str) -> None:
    opened = bf.connect(bf.ScriptedModel(lambda call: "x"), cache=None, progress="off")
    opened.from_pydict({"name": ["a"]}, name="t")
    with pytest.raises(bf.QueryError, match=problem):
        opened.sql(f"SELECT {{{{LLMQA('q', ({context}))}}}}", dialect="blendsql")


def test_columns_of_numbers_are_compared_as_numbers() -> None:
    points = {"a": 9, "b": 50, "c": 100}
    numeric = ("integer", "number")

    def answer(call: bf.Request) -> int | str:
        found = points[call.values[0] or ""]
        return found if call.constraint.kind in numeric else str(found)

    opened = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off")
    opened.from_pydict({"name": list(points)}, name="t")
    asked = "{{LLMMap('How many points?', name)}}"
    for query, expected in (
        (f"SELECT MAX({asked}) AS v FROM t", [100]),
        (f"SELECT MIN({asked}) AS v FROM t", [9]),
        (f"SELECT name AS v FROM t ORDER BY {asked} DESC LIMIT 1", ["c"]),
        (f"SELECT rank() OVER (ORDER BY {asked} DESC) AS v FROM t ORDER BY name", [3, 2, 1]),
        (f"SELECT name AS v FROM t WHERE {asked} > (SELECT MIN({asked}) FROM t)", ["b", "c"]),
    ):
        assert opened.sql(query, dialect="blendsql").to_pydict() == {"v": expected}


def test_rows_among_the_answers_of_a_list_are_found_before_others_are_asked() -> None:
    """The column of unnest(…) without an alias is named after its table, which each run makes."""

    def answer(request: bf.Request) -> list[str] | bool:
        return ["a1", "a2"] if request.constraint.kind == "list" else True

    model = bf.ScriptedModel(answer)
    opened = bf.connect(model, cache=None, progress="off")
    opened.from_pydict({"x": [f"a{i}" for i in range(40)], "y": [*map(str, range(40))]}, name="t")
    found = opened.sql("""SELECT x FROM t WHERE x IN {{LLMQA('Which two?', quantifier='{2}',
        options=NULL)}} AND {{LLMMap('Is it even?', y)}}""")
    assert found.to_pydict() == {"x": ["a1", "a2"]}
    assert len(model.calls) == 3


ROWS = {
    "id": [1, 2, 3, 4, 5],
    "name": ["a", "bbb", "cc", None, "e"],
    "city": ["X", "Y", "X", "Y", "Y"],
    "age": [3, 9, 5, None, 1],
}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name, MAX(age) AS m FROM t",
        "SELECT t.name AS n, MIN(t.age) FROM t AS t WHERE id > 1",
        "SELECT name n, city, MAX(age) FROM t GROUP BY city",
        "SELECT name, MAX(DISTINCT age) FROM t GROUP BY t.city HAVING COUNT(*) > 2",
        "SELECT m FROM (SELECT name AS m, MIN(age) FROM t GROUP BY city) WHERE m <> 'e'",
        "SELECT city, COUNT(*), SUM(age) FROM t GROUP BY id",
        "SELECT DISTINCT city, AVG(age) FROM t GROUP BY lower(city)",
        "SELECT name, MAX(age) OVER () FROM t",
        "SELECT name, (SELECT MAX(age) FROM t) FROM t",
        "SELECT city AS c, COUNT(*) FROM t GROUP BY c UNION SELECT name, 1 FROM t",
        "SELECT city, COUNT(*) FROM t GROUP BY 1",
    ],
)
def test_a_column_beside_an_aggregate_has_the_value_that_sqlite_gives(query: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (id INT, name TEXT, city TEXT, age INT)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", zip(*ROWS.values(), strict=True))
    opened = bf.connect(bf.ScriptedModel(lambda request: None), cache=None, progress="off")
    opened.from_pydict(ROWS, name="t")
    found = opened.sql(query, dialect="blendsql").to_arrow_table()
    rows = [*zip(*(column.to_pylist() for column in found.columns), strict=True)]
    assert sorted(rows, key=str) == sorted(connection.execute(query).fetchall(), key=str)
