"""What people write without thinking of types or letters: it runs, or the error says where and
why."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts import Counted

import blendfusion as bf


def script(call: bf.Request) -> object:
    kind, text = call.constraint.kind, " ".join(value or "" for value in call.values)
    if kind == "boolean":
        return len(text) % 2 == 1
    if kind in ("integer", "number"):
        return len(text)
    return ["a", "b"] if kind == "list" else f"T:{text}"


@pytest.fixture(scope="module")
def db() -> Counted:
    made = Counted(script).add(
        "t",
        {"id": [1, 2, 3], "x": ["one", "three", None], "n": [5, None, 7], "b": [True, None, False]},
    )
    made.add("u", {"id": [1, 2], "y": ["p", "qq"], "m": [1, 2]})
    made.add("s", {"x": ["xx", "x" * 10]})  # as texts, '2' comes behind '10'
    made.add("People", {"Id": [1, 2], "Name": ["Ann", "bob"]})
    made.session.from_arrow(
        pa.table({"st": [{"a": 1}], "by": pa.array([b"\xff"]), "xs": [["a"]]}), name="odd"
    )
    return made


F, G = "llm_map('q', x)", "llm_map('q', y)"
TYPES = {
    f"SELECT id FROM t WHERE 3 < ANY (SELECT {G} FROM u)": ("integer", []),
    f"SELECT CASE 3 WHEN {F} THEN 1 END AS c FROM t": ("integer", [1, None, None]),
    f"SELECT greatest({F}, 3) AS c FROM t": ("integer", [3, 5, 3]),
    f"SELECT lag({F}) OVER (ORDER BY id) + 1 AS c FROM t": ("number", [None, 4, 6]),
    f"SELECT max({F}) OVER () > 3 AS c FROM t": ("integer", [True, True, True]),
    f"SELECT first_value({F} ORDER BY id) > 3 AS c FROM t": ("integer", [False]),
    f"SELECT bool_and({F}) AS c FROM t": ("boolean", [True]),
    f"SELECT id FROM t WHERE {F} IS NOT UNKNOWN": ("boolean", [1, 2]),
    f"SELECT {F} & 1 AS c FROM t": ("integer", [1, 1, None]),
    f"SELECT arrow_cast({F}, 'Int32') AS c FROM t": ("integer", [3, 5, None]),
    f"SELECT CAST(DATE '2020-01-01' + {F} AS TEXT) AS c FROM t": (
        "integer",
        ["2020-01-04", "2020-01-06", None],
    ),
    f"SELECT unnest({F}) AS c FROM t WHERE id = 1": ("list of text", ["a", "b"]),
    f"SELECT 'b' = ANY({F}) AS c FROM t": ("list of text", [True, True, None]),
    f"SELECT {F}[2] AS c FROM t": ("list of text", ["b", "b", None]),
    # Only DataFusion knows what it casts the answers to.
    f"SELECT coalesce({F}, n) AS c FROM t": ("integer", [3, 5, 7]),
    f"SELECT [{F}, n] AS c FROM t WHERE id = 1": ("integer", [[3, 5]]),
    f"SELECT m AS c FROM u JOIN (SELECT {G} AS z FROM u) b ON u.m = b.z": ("integer", [1, 2]),
    f"SELECT m AS c FROM u JOIN (SELECT {G} AS m FROM u) b USING (m)": ("integer", [1, 2]),
    f"WITH w AS (SELECT {G} AS z FROM u) SELECT m AS c FROM u, w WHERE m = z": ("integer", [1, 2]),
    # DataFusion gives the branches of a set operation one type.
    f"SELECT {F} AS v FROM t EXCEPT SELECT n FROM t": ("integer", [3]),
    f"SELECT n FROM t INTERSECT SELECT {F} FROM t": ("integer", [5, None]),
    f"SELECT v FROM (SELECT id, {F} AS v FROM t EXCEPT ALL SELECT id, n FROM t) s": (
        "integer",
        [3, 5, None],
    ),
    f"SELECT b FROM t EXCEPT SELECT {F} FROM t": ("boolean", [False]),
    f"SELECT arrow_typeof(v) FROM (SELECT b AS v FROM t WHERE id = 0 UNION ALL SELECT {G} FROM u)": (
        "boolean",
        ["Boolean", "Boolean"],
    ),
    f"SELECT v - v AS v FROM (SELECT DATE '2020-01-01' AS v UNION ALL SELECT CAST({F} AS DATE) "
    "FROM t WHERE id = 0)": ("date", [0]),
    f"SELECT {G} AS v FROM u UNION ALL SELECT m FROM u": ("text", ["1", "2", "T:p", "T:qq"]),
    "WITH RECURSIVE r AS (SELECT 1 AS i, 9 AS v UNION ALL SELECT i + 1, llm_map('q', 'abc') FROM r "
    "WHERE i < 3) SELECT v FROM r": ("integer", [9, 3, 3]),
    "WITH RECURSIVE r AS (SELECT 1 AS i, llm_map('q', 'abc') AS v UNION ALL SELECT i + 1, v FROM r "
    "WHERE i < 3) SELECT v + 1 AS v FROM r": ("number", [4, 4, 4]),
    f"SELECT avg(n) AS v FROM t EXCEPT ALL SELECT {F} AS v FROM t INTERSECT ALL SELECT {F} + 0 FROM t": (
        "number",
        [6],
    ),
    f"SELECT m AS b, id AS w FROM u INTERSECT SELECT {G} AS b, id FROM u INTERSECT ALL "
    "SELECT m + 0.0 AS b, id AS w FROM u": ("integer", [1, 2]),
    f"SELECT {F} AS v FROM t GROUP BY CUBE ({F}) EXCEPT SELECT n FROM t": ("integer", [3]),
    f"SELECT m AS v FROM u WHERE EXISTS (SELECT 1 FROM (SELECT {G} AS n FROM u EXCEPT SELECT id FROM u "
    f"WHERE id > 9) w WHERE w.n = ANY (SELECT {G} FROM u))": ("integer", [1, 2]),
    # With the type to which it casts, DataFusion would have no plan.
    f"SELECT n FROM (SELECT DATE '2020-01-01' AS n WHERE FALSE UNION ALL (SELECT {G} AS b FROM u "
    f"WHERE m = 0 INTERSECT SELECT {G} FROM u)) s": ("text", []),
    # Another column of that name, cast in the same query, says nothing.
    f"SELECT (SELECT max(z) FROM (SELECT {G} AS z FROM u) b) AS c FROM "
    "(SELECT '5' AS z) b WHERE b.z = (SELECT max(n) - 2 FROM t)": ("text", ["T:qq"]),
}


@pytest.mark.parametrize("sql", TYPES)
def test_a_place_says_what_an_answer_looks_like(db: Counted, sql: str) -> None:
    frame = db.session.sql(sql)
    kind, rows = TYPES[sql]
    assert [str(call.task.constraint) for call in frame.prepared.calls] == [kind]
    column = frame.to_arrow_table().column(0).to_pylist()
    assert sorted(column, key=str) == sorted(rows, key=str)


def test_a_call_with_a_type_gives_it_to_another(db: Counted) -> None:
    sql = f"SELECT llm_map('r', x) FROM t EXCEPT SELECT {F} FROM t INTERSECT SELECT n FROM t"
    frame = db.session.sql(sql)
    assert [call.task.constraint.kind for call in frame.prepared.calls] == ["integer", "integer"]
    assert frame.to_arrow_table().column(0).to_pylist() == [3]


def test_a_column_is_followed_down_a_deep_plan(db: Counted) -> None:
    parts = ["w0 AS (SELECT llm_map('q', x) AS v FROM t)"]
    parts += [f"w{i} AS (SELECT v FROM w{i - 1} LIMIT {900 - i})" for i in range(1, 200)]
    sql = f"WITH {', '.join(parts)} SELECT n FROM w199 JOIN t ON v = n"
    assert db.session.sql(sql).to_pylist() == [{"n": 5}]


@pytest.mark.parametrize(
    "other",
    [
        "llm_map('q', (x))",
        "llm_map((('q')), ((T.x)))",
        "(llm_map(E'q', x))",
        '"llm_map"($$q$$, "x")',
        "LLM_MAP($a$q$a$, /* the text */ X)",
    ],
)
def test_ways_of_writing_a_call_are_one_call(db: Counted, other: str) -> None:
    sql = f"SELECT {F} AS a, count(*) AS c FROM t GROUP BY {other} HAVING {other} + 1 > 4"
    frame = db.session.sql(sql)
    assert [call.task.constraint.kind for call in frame.prepared.calls] == ["number"]
    assert frame.to_pydict() == {"a": [5], "c": [1]}


def test_branches_of_case_with_several_types_have_one_type(db: Counted) -> None:
    sql = "SELECT CASE WHEN b THEN n ELSE x END AS c FROM t WHERE llm_filter('q', x)"
    assert db.rows(sql) == [("5",), ("three",)]
    stream = db.session.sql(sql).execute_stream()
    assert [batch.to_pyarrow().schema.types for batch in stream] == [[pa.string()]]


ERRORS = {
    "SELECT llm_filter('q', [*]) FROM t": "llm_filter: * is not a value",
    "SELECT llm_qa('q', [t.*]) FROM t": "llm_qa: * is not a value",
    "SELECT [llm_text('q', st)] FROM odd": "llm_text: a value of type STRUCT is no text",
    "SELECT [id] FROM t JOIN u ON t.id = u.id": "column 'id' is ambiguous: t and u have it",
    "SELECT llm_text('q', [x]) FROM t GROUP BY id": "column 't.x' is in neither GROUP BY nor",
    "SELECT [llm_text('q', x) + 1] FROM t": "Cannot coerce arithmetic expression",
    "SELECT id FROM t WHERE [llm_filter('q', x) AND n]": "Cannot infer common argument type",
    "SELECT id FROM t [LIMIT llm_int('q', 'five')]": "LIMIT takes a number that is known",
    "SELECT llm_text('q', x) FROM t; [SELECT 1]": "one statement, and here are several",
    "SELECT llm_text('q', x) FROM t WHER[E]": "found the end of the query",
    """SELECT ["LLM_FILTER"]('q', x) FROM t""": "Did you mean 'llm_filter'",
    "SELECT id FROM t WHERE llm_filter('q', x) AND id = [$a]": "the parameter $a has no value",
    "SELECT q.[name] FROM people p WHERE llm_filter('q', p.name)": "unknown column 'q.name'",
    "SELECT [array_length(llm_text('q', x))] FROM t": "array_length does not take",
}


@pytest.mark.parametrize("dialect", ["sql", "snowflake"])
@pytest.mark.parametrize("marked", ERRORS)
def test_errors_say_where(db: Counted, marked: str, dialect: str) -> None:
    start, end = marked.index("["), marked.index("]") - 1
    sql = marked.replace("[", "").replace("]", "")
    with pytest.raises(bf.QueryError) as error:
        db.session.sql(sql, dialect=dialect).to_pydict()
    expected = ERRORS[marked]
    if dialect == "snowflake" and "array_length" in marked:  # no function of Snowflake
        expected, end = "ARRAY_LENGTH of Snowflake has no translation", start + len("array_length")
    assert expected in str(error.value)
    assert error.value.span == (start, end)


@pytest.mark.parametrize("values", [None, [1], {"1": 1}])
@pytest.mark.parametrize("where", ["id = ?", "llm_filter('q', x) AND id = ?"])
def test_a_question_mark_is_no_parameter(db: Counted, where: str, values: object) -> None:
    """DataFusion takes values by name or number. The remedy works."""
    with pytest.raises(bf.QueryError, match=r"the parameter \? has no value") as error:
        db.session.sql(f"SELECT id FROM t WHERE {where}", param_values=values).to_pydict()
    assert error.value.hint is not None
    assert error.value.hint.startswith("Write $1")
    good = db.session.sql(f"SELECT id FROM t WHERE {where.replace('?', '$1')}", param_values=[1])
    assert good.to_pydict() == {"id": [1]}


def test_a_name_with_its_sign_is_another_name(db: Counted) -> None:
    with pytest.raises(bf.QueryError, match=r"the parameter \$a has no value") as error:
        db.session.sql("SELECT id FROM t WHERE id = $a", param_values={"$a": 1})
    assert "{'a': …}" in str(error.value.hint)


def test_columns_are_named_as_they_were_written(db: Counted) -> None:
    sql = "SELECT llm_qa('w', name) FILTER (WHERE ID > 0), llm_text('w',  NAME) FROM people GROUP BY NAME"
    names = db.session.sql(sql).schema().names
    assert names == ["llm_qa('w', name) FILTER (WHERE ID > 0)", "llm_text('w', NAME)"]


@pytest.mark.parametrize(
    "where",
    [
        "(answer(x, 'q')) = ('Yes')",
        "(('Yes')) = ((answer(x, 'q')))",
        "(answer(x, 'q')) IN ('Yes')",
        """"answer"(x, 'q') = 'Yes'""",
    ],
)
def test_parentheses_and_quotes_of_suql_change_nothing(db: Counted, where: str) -> None:
    sql = f"SELECT id FROM t WHERE {where}"
    frame = db.session.sql(sql, dialect="suql")
    assert [call.task.constraint.kind for call in frame.prepared.calls] == ["boolean"]
    assert frame.to_pydict() == {"id": [1, 2]}


def test_numbers_to_choose_from_are_not_compared_with_a_text(db: Counted) -> None:
    call = "{{LLMMap('Which?', x, options=(1, 2, 3))}}"
    assert db.session.sql(f"SELECT x FROM t WHERE {call} = 2").prepared.calls
    with pytest.raises(bf.QueryError, match="'D' is a text, and the options are numbers") as error:
        db.session.sql(f"SELECT x FROM t WHERE {call} = 'D'")
    assert error.value.span == (67, 70)


def test_parameters_of_prepared_statements_are_values(db: Counted) -> None:
    session = db.session
    session.sql("PREPARE one(TEXT) AS SELECT llm_filter('q', $1) AS v")
    session.sql("PREPARE two(TEXT, TEXT) AS SELECT llm_text('q', x, $2) AS v FROM t WHERE x = $1")
    assert db.rows("EXECUTE one('abc')") == [(True,)]
    assert db.rows("EXECUTE one('ab')") == [(False,)]
    assert db.rows("EXECUTE two('one', 'more')") == [("T:one more",)]
    with pytest.raises(bf.ArgumentError, match="A prepared question is a literal"):
        session.sql("PREPARE three(TEXT) AS SELECT llm_filter($1, x) FROM t")
    with pytest.raises(bf.QueryError, match="Prepared statement 'four' does not exist"):
        session.sql("EXECUTE four(1)").to_pydict()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM generate_series(1, llm_int('q', 'x'))", r"got llm_int\('q', …\)$"),
        ("SELECT (llm_extract(x, 'a INT')).a > 3 FROM t", r"Write \(…\)\['a'\]"),
    ],
)
def test_errors_hold_no_words_of_the_implementation(db: Counted, sql: str, message: str) -> None:
    with pytest.raises(bf.QueryError, match=message):
        db.session.sql(sql).to_pydict()


def test_a_null_in_a_prompt_gives_null_without_a_call(db: Counted) -> None:
    sql = "SELECT AI.GENERATE_INT(('How many in ', x, ' of ', n, '?')).result AS c FROM t"
    frame = db.session.sql(sql, dialect="bigquery")
    assert frame.to_pydict() == {"c": [5, None, None]}  # of "one 5"
    assert frame.trace.usage.values == 1


def test_a_function_that_is_named_once_is_the_place_of_its_error(db: Counted) -> None:
    with pytest.raises(bf.QueryError, match="llm_search: ") as error:
        db.session.sql("SELECT * FROM t, llm_search('t', 'words', kk => 3)")
    assert error.value.span == (17, 50)


def test_a_name_with_capitals_in_an_expression_is_found_as_in_sql(db: Counted) -> None:
    frame = db.session.table("People").filter("llm_filter('q', Name)")
    same = db.session.sql("SELECT * FROM People WHERE llm_filter('q', Name)")
    assert frame.to_pydict() == same.to_pydict()
    assert len(frame.prepared.calls) == 1


def test_names_in_other_letters_are_one_call(db: Counted) -> None:
    frame = db.session.sql("SELECT x FROM t WHERE llm_filter('q', x) AND NOT llm_filter('q', X)")
    assert len(frame.prepared.calls) == 1
    assert frame.to_pydict() == {"x": []}
    keys = "(llm_map('m', X) IS TRUE), (llm_map('m', x) IS TRUE)"
    rows = db.rows(
        f"SELECT (llm_map('m', x) IS TRUE) a, count(*) FROM t GROUP BY GROUPING SETS ({keys}, ())"
    )
    assert sorted(rows, key=str) == [(False, 1), (False, 1), (None, 3), (True, 2), (True, 2)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT rank() OVER (ORDER BY {} DESC) AS c, x FROM s", [(1, "x" * 10), (2, "xx")]),
        ("SELECT min({}) AS c FROM s", [(2,)]),
        ("SELECT MAX({}) AS c FROM s", [(10,)]),
        ("SELECT x FROM s ORDER BY {} DESC LIMIT 1", [("x" * 10,)]),
        ("SELECT x FROM s WHERE {0} > (SELECT {0} FROM s ORDER BY x LIMIT 1)", [("x" * 10,)]),
    ],
)
def test_blendsql_compares_answers_as_whole_numbers(
    db: Counted, sql: str, rows: list[tuple[object, ...]]
) -> None:
    found = db.session.sql(sql.format("{{LLMMap('How long?', x)}}"))
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == sorted(rows)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("date", datetime.date(2024, 1, 5)),
        ("timestamp", datetime.datetime(2024, 1, 5, 3, 30)),
        ("bigint[]", [3, None, 5]),
        ("bigint", None),
        ("decimal(4, 1)", Decimal("2.5")),
        ("boolean", True),
    ],
    ids=lambda value: str(value),
)
def test_values_as_keywords_are_values(type_: str, value: object) -> None:
    """DataFusion writes them into the text: 2024-01-05 is the number 2018 there."""
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_pydict({"x": ["a"]}, name="one")
    sql = f"SELECT CAST($v AS {type_}) AS v FROM one WHERE llm_filter('q', x)"
    assert session.sql(sql, v=value).to_pylist() == [{"v": value}]
    assert session.sql(sql, param_values={"v": value}).to_pylist() == [{"v": value}]
    either = "SELECT x FROM one WHERE llm_filter('q', x) AND $v IS NOT DISTINCT FROM "
    assert len(session.sql(f"{either}CAST($w AS {type_})", v=value, w=value).to_pylist()) == 1


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**37), 10**37),
    st.floats(),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=9, min_value=-(10**20), max_value=10**20
    ),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(datetime.UTC)),
    st.times(),
    st.timedeltas(datetime.timedelta(-(10**5)), datetime.timedelta(10**5)),
    st.binary(),
    st.uuids(),
)


@given(value=st.one_of(VALUES, st.lists(st.floats(), min_size=1)))
def test_values_as_keywords_are_what_param_values_are(value: object) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    found = session.sql("SELECT $v AS v", v=value).to_arrow_table()
    bound = session.sql("SELECT $v AS v", param_values={"v": value}).to_arrow_table()
    assert repr(found.to_pylist()) == repr(bound.to_pylist())
    expected = value.bytes if isinstance(value, uuid.UUID) else value
    [cell] = bound.column("v").to_pylist()
    assert repr(cell) == repr(expected) or cell == expected


@pytest.mark.parametrize("count", [2, np.int64(2), np.int8(2)], ids=repr)
def test_a_number_by_keyword_is_an_option_of_a_call(count: int) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: 1), cache=None)
    frame = session.sql("SELECT llm_score('w', 'x', low => 0, high => $n) AS v, $n AS n", n=count)
    assert frame.to_pylist() == [{"v": 1, "n": 2}]


def test_a_parameter_is_the_only_value(db: Counted) -> None:
    found = db.session.sql("SELECT llm_text('w', $a) AS v", param_values={"a": "one"})
    assert found.to_pydict() == {"v": ["T:one"]}


@pytest.mark.parametrize(
    ("where", "kind", "rows"),
    [
        ("id = 1 OR ({{LLMQA('any?', (SELECT * FROM u))}})", "boolean", [1]),
        ("id > ({{LLMQA('how many?', (SELECT y FROM u))}})", "integer", []),
        ("TRUE AND ((SELECT llm_qa('any?', y) FROM u))", "boolean", []),
        ("id < ((SELECT llm_qa('how many?', y) FROM u))", "integer", [1, 2, 3]),
    ],
)
def test_parentheses_round_a_subquery_change_no_type(
    db: Counted, where: str, kind: str, rows: list[int]
) -> None:
    frame = db.session.sql(f"SELECT id FROM t WHERE {where} ORDER BY id")
    assert [call.task.constraint.kind for call in frame.prepared.calls] == [kind]
    assert frame.to_pydict()["id"] == rows
