"""Queries in every form that DataFusion takes: quoting, comments, statements, literals as values."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.models.services.prompts.prompt import reference


def answer(call: bf.Request) -> Value:
    """An answer that says its value's length, or the question's."""
    first = call.values[0] or ""
    kind = call.constraint.kind
    if kind == "boolean":
        return first != "bb"
    if kind in ("integer", "number"):
        return len(first)
    if call.constraint.options:
        return call.constraint.options[0]
    return first.upper()


def connected() -> tuple[bf.ScriptedModel, bf.Session]:
    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None)
    session.from_pydict(
        {"id": [1, 2, 3, 4], "n": [5, None, 2, 1], "x": ["a", "bb", None, "dddd"]}, name="t"
    )
    kinds = pa.table({"id": [1], "st": [{"a": 1}], "by": [b"\xff\xfe"], "xs": [["a", "b"]]})
    session.from_arrow(kinds, name="kinds")
    return model, session


def rows(*statements: str, **options: Any) -> list[tuple[object, ...]]:
    _, session = connected()
    for statement in statements:
        found = session.sql(statement, **options).to_pydict()
    return list(zip(*found.values(), strict=True))


FORMS: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "a quoted function": ("""SELECT id FROM t WHERE "llm_filter"('q', x)""", [(1,), (4,)]),
    "a dollar-quoted question": ("SELECT llm_text($$it's$$, x) FROM t WHERE id = 1", [("A",)]),
    "a tagged string": ("SELECT llm_text('q', x) || $t$it's$t$ FROM t WHERE id = 1", [("Ait's",)]),
    "an escaped question": (r"SELECT llm_text(E'it\'s', x) FROM t WHERE id = 1", [("A",)]),
    "comments": (
        "SELECT llm_text /* a */ ( 'q' /* b */ , -- c\n x ) FROM t WHERE id = 1",
        [("A",)],
    ),
    "a comment in a keyword": (
        "SELECT id FROM t WHERE llm_map('q', x) > 1 ORDER /* newest first */ BY id DESC",
        [(4,), (2,)],
    ),
    "an aggregate's order with a comment": (
        "SELECT llm_validate('c', x ORDER/**/BY x DESC) FROM t WHERE id < 3",
        [(False,)],
    ),
    "a pattern": ("SELECT id FROM t WHERE llm_map('q', x) > 1 AND x ~ 'b|d'", [(2,), (4,)]),
    "a hexadecimal string": (
        "SELECT id FROM t WHERE llm_map('q', x) > 1 AND x'AB' <> x'CD'",
        [(2,), (4,)],
    ),
    "options in parentheses": (
        "SELECT llm_classify(x, ((SELECT x FROM t WHERE id = 4))) FROM t WHERE id = 1",
        [("dddd",)],
    ),
    "parentheses": ("SELECT id FROM t WHERE (((llm_map('q', ((x)))))) > 1", [(2,), (4,)]),
    "parentheses around a question": (
        "SELECT llm_text((('q')), (x)) FROM t WHERE id = 1",
        [("A",)],
    ),
    "parentheses around a literal value": ("SELECT llm_text('q', ('x y'))", [("X Y",)]),
    "parentheses around labels": (
        "SELECT llm_classify(x, (['a', 'b'])), llm_classify(x, ((('c', 'd')))) FROM t WHERE id = 1",
        [("a", "c")],
    ),
    "labels in parentheses": ("SELECT llm_classify(x, ('a', 'b')) FROM t WHERE id = 1", [("a",)]),
    "parentheses around a subquery": (
        "SELECT id FROM t WHERE id = 2 OR ((SELECT llm_qa('q', x) FROM t WHERE id = 2))",
        [(2,)],
    ),
    "a comparison with one": (
        "SELECT id FROM t WHERE 1 < ((SELECT llm_qa('q', x) FROM t WHERE id = 2)) AND id = 1",
        [(1,)],
    ),
    "ANY": ("SELECT id FROM t WHERE llm_map('q', x) > ANY (SELECT 2)", [(4,)]),
    "ALL of a column": ("SELECT id FROM t WHERE llm_map('q', x) >= ALL (SELECT id FROM t)", [(4,)]),
    "CASE": ("SELECT id FROM t WHERE CASE WHEN TRUE THEN llm_map('q', x) END > 1", [(2,), (4,)]),
    "NULLIF": ("SELECT id FROM t WHERE NULLIF(llm_map('q', x), 2) > 0", [(1,), (4,)]),
    "max": ("SELECT max(llm_map('q', x)) FROM t HAVING max(llm_map('q', x)) > 3", [(4,)]),
    "a literal": ("SELECT llm_text('q', 'x y')", [("X Y",)]),
    "a literal beside a table": ("SELECT llm_int('q', 'x y') FROM t WHERE id < 3", [(3,), (3,)]),
    "NULL": ("SELECT llm_text('q', NULL)", [(None,)]),
    "a number": ("SELECT llm_text('q', 42)", [("42",)]),
    "a literal to classify": ("SELECT llm_classify('x', ['a', 'b'])", [("a",)]),
    "a literal of an aggregate": ("SELECT llm_summarize('long')", [("LONG",)]),
    "a question alone": (
        "SELECT llm_text('What is the capital of France?')",
        [("(NO TEXT IS GIVEN: ANSWER FROM GENERAL KNOWLEDGE)",)],
    ),
    "a predicate alone": ("SELECT id FROM t WHERE llm_filter('Is 1 odd?') LIMIT 1", [(1,)]),
    "an aggregate alone": ("SELECT llm_qa('How long?') + 0 FROM t", [(49.0,)]),
    "options beside a number of their name": (
        "SELECT llm_classify(x, ['a', 'b', 'c']) AS n FROM t WHERE n > 1 AND x IS NOT NULL",
        [("a",)],
    ),
    "options beside a sum of their name": (
        "WITH a AS (SELECT id, llm_classify(x, ['a', 'b']) AS m FROM t), "
        "c AS (SELECT id, sum(m) AS s FROM (SELECT id, n AS m FROM t) GROUP BY id) "
        "SELECT m, s FROM a JOIN c ON a.id = c.id WHERE a.id = 1",
        [("a", 5)],
    ),
    "a predicate of an answer's name": (
        "SELECT q.v FROM (SELECT upper(p.v) = 'A' AS v FROM (SELECT llm_map('q', x) AS v FROM t) "
        "p) q WHERE q.v",
        [(True,)],
    ),
    "a length of an answer's name": (
        "SELECT q.v FROM (SELECT length(p.v) AS v FROM (SELECT llm_map('q', x) AS v FROM t) p) q "
        "WHERE q.v > 2",
        [(4,)],
    ),
    "a subquery in parentheses, compared with a column": (
        "SELECT id FROM t WHERE id > ((SELECT llm_qa('q', x) FROM t WHERE id = 2)) ORDER BY id",
        [(3,), (4,)],
    ),
    "a row of answers and its place among numbers": (
        "SELECT id, row_number() OVER (ORDER BY n DESC) AS r, llm_text('w', x) AS n FROM t "
        "WHERE id < 3 ORDER BY id",
        [(1, 2, "A"), (2, 1, "BB")],
    ),
    "an aggregate's order by a number": (
        "SELECT array_agg(id ORDER BY n DESC) AS ids, llm_qa('q', x) AS n FROM t WHERE id < 3",
        [([2, 1], "A")],
    ),
    "VALUES": ("VALUES (llm_int('q', 'xyz'), 1)", [(3, 1)]),
    "VALUES in FROM": (
        "SELECT b FROM (VALUES (1, llm_map('q', 'xyz'))) AS v(a, b) WHERE b > 2",
        [(3,)],
    ),
    "two ways of writing a name": (
        "SELECT llm_int('n', x), count(*) FROM t WHERE id < 3 GROUP BY llm_int('n', X) ORDER BY 1",
        [(1, 1), (2, 1)],
    ),
    "a column with and without its relation": (
        "SELECT llm_map('n', t.x) + 1 AS v, count(*) FROM t WHERE id < 3 GROUP BY llm_map('n', x) "
        "ORDER BY 1",
        [(2.0, 1), (3.0, 1)],
    ),
    "the same of an alias": (
        "SELECT llm_map('n', x) AS v FROM t AS r GROUP BY llm_map('n', r.x) HAVING "
        "llm_map('n', R.x) > 2",
        [(4,)],
    ),
    "the same of one of two relations": (
        "SELECT llm_map('n', st.x) AS v FROM kinds JOIN t AS st ON kinds.id = st.id "
        "GROUP BY llm_map('n', x) HAVING llm_map('n', x) > 0",
        [(1,)],
    ),
    "the same in grouping sets": (
        "SELECT (llm_map('m', x) IS TRUE) a, count(*) FROM t GROUP BY GROUPING SETS "
        "((llm_map('m', X) IS TRUE), (llm_map('m', x) IS TRUE)) ORDER BY a, 2",
        [(False, 2), (False, 2), (True, 2), (True, 2)],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_datafusion_takes_runs(form: str) -> None:
    sql, expected = FORMS[form]
    assert rows(sql) == expected


def test_parameters_may_be_the_only_value() -> None:
    assert rows("SELECT llm_text('q', $a)", param_values={"a": "x"}) == [("X",)]
    assert rows("SELECT llm_text('q', $1)", param_values=["x"]) == [("X",)]


@pytest.mark.parametrize(
    ("prepare", "execute", "expected"),
    [
        ("p AS SELECT id FROM t WHERE llm_filter('q', x)", "p", [(1,), (4,)]),
        ("p(INT) AS SELECT id FROM t WHERE llm_filter('q', x) AND id > $1", "p(1)", [(4,)]),
        ("p(INT) AS SELECT id FROM t WHERE llm_map('q', x) > $1", "p(1)", [(2,), (4,)]),
        (
            "p(TEXT, INT) AS SELECT id, x || $1 FROM t WHERE $2 < llm_map('q', x)",
            "p('!', 2)",
            [(4, "dddd!")],
        ),
    ],
)
def test_prepared_statements_ask(
    prepare: str, execute: str, expected: list[tuple[object, ...]]
) -> None:
    assert rows(f"PREPARE {prepare}", f"EXECUTE {execute}") == expected


def test_a_statement_inserts_answers_about_literals() -> None:
    found = rows(
        "CREATE TABLE z (b BOOLEAN, n BIGINT)",
        "INSERT INTO z VALUES (llm_filter('q', 'x'), llm_int('n', 'yy'))",
        "SELECT * FROM z",
    )
    assert found == [(True, 2)]


@pytest.mark.parametrize(
    "explain",
    [
        "EXPLAIN FORMAT TREE SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN FORMAT INDENT SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN FORMAT PGJSON SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN FORMAT GRAPHVIZ SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN VERBOSE SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN CREATE TABLE z AS SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN VERBOSE CREATE OR REPLACE TABLE z AS SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN CREATE VIEW z AS SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN CREATE TABLE z (a INT)",
        "EXPLAIN DROP TABLE t",
        "EXPLAIN PREPARE z AS SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN INSERT INTO t SELECT id, n, x FROM t WHERE llm_filter('q', x)",
    ],
)
def test_explain_neither_asks_nor_carries_out(explain: str) -> None:
    model, session = connected()
    tables = session.catalog().schema().names()
    assert session.sql(explain).to_pydict()["plan"]
    assert not model.calls
    assert session.catalog().schema().names() == tables
    assert session.sql("SELECT count(*) FROM t").to_pydict() == {"count(*)": [4]}


@pytest.mark.parametrize("form", ["", "FORMAT TREE", "FORMAT INDENT", "FORMAT 'pgjson'", "VERBOSE"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT llm_text('q', x) || llm_text('q', x) FROM t ORDER BY llm_score('how?', x) DESC",
        "SELECT llm_qa('q', x) FROM t WHERE llm_similarity(x, 'a') > 0 GROUP BY llm_text('q', x)",
    ],
)
def test_explain_shows_no_internal_names(form: str, query: str) -> None:
    _, session = connected()
    plan = "\n".join(session.sql(f"EXPLAIN {form} {query}").to_pydict()["plan"])
    assert "llm_text" in plan
    assert not re.search(r"[0-9a-f]{12}", plan)
    if form == "FORMAT TREE":
        assert len({len(line) for line in plan.splitlines()}) == 1


@pytest.mark.parametrize(
    "explain",
    ["EXPLAIN /* what? */ ANALYZE", "-- what?\nEXPLAIN ANALYZE", "EXPLAIN ANALYZE FORMAT INDENT"],
)
def test_explain_is_known_in_every_spelling(explain: str) -> None:
    model, session = connected()
    plan = session.sql(f"{explain} SELECT llm_text('q', x) FROM t").to_pydict()["plan"]
    assert plan[0] == "Stage 1 → result"
    assert len(model.calls) == 3


@pytest.mark.parametrize("clause", ["FILTER (WHERE id > 1)", "OVER ()", "OVER w"])
def test_what_belongs_to_aggregates_is_an_error_elsewhere(clause: str) -> None:
    model, session = connected()
    sql = f"SELECT id, llm_text('q', x) {clause} FROM t WINDOW w AS (PARTITION BY id)"
    with pytest.raises(bf.ArgumentError, match=f"llm_text: {clause.split()[0]}") as raised:
        session.sql(sql)
    assert raised.value.span == (11, 27)
    assert not model.calls


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("SELECT llm_text('q', x),\n  nam FROM t", "nam"),
        ("SELECT llm_text('q', x) FROM\n tt", "tt"),
        ("EXPLAIN SELECT llm_text('q', x), llm_txt('q', x) FROM t", "llm_txt"),
        ("SELECT llm_text('q', x)\nFROM t WHERE llm_filter('q', x) GROUP id", "GROUP"),
        (
            "EXPLAIN ANALYZE SELECT id, llm_text('Who is {y}?', x) FROM t",
            "llm_text('Who is {y}?', x)",
        ),
        (
            "SELECT llm_text($question, x), llm_map('q', x, foo => 1) FROM t",
            "llm_map('q', x, foo => 1)",
        ),
        ("SELECT llm_text($question, x), id FROM t LIMIT BY 1 2", "1"),
    ],
)
def test_errors_have_a_place_in_the_users_text(sql: str, wrong: str) -> None:
    _, session = connected()
    with pytest.raises(bf.QueryError) as raised:
        session.sql(sql, param_values={"question": "a long question that moves the rest"})
    start, end = raised.value.span or (0, 0)
    assert start < end
    assert wrong.startswith(sql[start:end])
    assert sql[start:].startswith(wrong)


def test_explain_analyze_creates_nothing() -> None:
    model, session = connected()
    with pytest.raises(bf.QueryError, match="would create it"):
        session.sql("EXPLAIN ANALYZE CREATE TABLE z AS SELECT id FROM t WHERE llm_filter('q', x)")
    assert not model.calls
    assert "z" not in session.catalog().schema().names()


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT llm_filter('q', st) FROM kinds", "llm_filter: a value of type STRUCT"),
        ("SELECT llm_filter('q', *) FROM t", r"llm_filter: \* is not a value"),
        ("SELECT llm_filter('q', t.*) FROM t", r"llm_filter: \* is not a value"),
        ("SELECT llm_text('Who is {}?')", "llm_text: there is no value"),
        ("SELECT llm_vqa('What?')", "llm_vqa: there is no value"),
        ("SELECT llm_classify(['a', 'b'])", "llm_classify: there is no value"),
        ("SELECT llm_text('q', 'x', 'y')", "llm_text: 'x' is a literal"),
        ("SELECT llm_map('q', x, 'int') FROM t", "llm_map: 'int' is a literal"),
        ("SELECT llm_text('Is {{x}} or {y}?', x) FROM t", "refers to {y}"),
    ],
)
def test_what_is_no_value_is_an_error_that_names_the_function(sql: str, problem: str) -> None:
    _, session = connected()
    with pytest.raises(bf.QueryError, match=problem):
        session.sql(sql).collect()


@pytest.mark.parametrize(
    "call", ["llm_filter('q', by)", "llm_score('how?', by)", "llm_text('q', x'FFFE')"]
)
def test_bytes_that_are_no_image_have_no_answer(call: str) -> None:
    """BINARY values are images."""
    model, session = connected()
    with pytest.warns(bf.AnswerWarning, match="no image"):
        assert session.sql(f"SELECT {call} AS a FROM kinds").to_pylist() == [{"a": None}]
    assert model.calls == []


def test_calls_that_differ_in_case_share_their_answers() -> None:
    model, session = connected()
    session.sql(
        "SELECT id FROM t WHERE NOT llm_filter('q', x) OR LLM_FILTER('q', X) IS NULL OR "
        "NOT llm_filter('q', T.x)"
    ).collect()
    assert len(model.calls) == 3


def test_columns_of_two_relations_are_two_calls() -> None:
    model, session = connected()
    session.sql(
        "SELECT llm_map('q', a.x) > 2, llm_map('q', b.x) FROM t a JOIN t b ON a.id = b.id"
    ).collect()
    assert {call.constraint.kind for call in model.calls} == {"integer", "text"}


def test_quoted_names_in_other_letters_are_two_columns() -> None:
    model, session = connected()
    session.from_pydict({"x": ["a"], "X": ["b"]}, name="both")
    found = session.sql("""SELECT llm_text('q', x) AS a, llm_text('q', "X") AS b FROM both""")
    assert found.to_pydict() == {"a": ["A"], "b": ["B"]}
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("Is {{x}} a brace?", "Is {x} a brace?"),
        ("Is {{x}} {x}?", "Is {x} the text?"),
        ("{{{}}}", "{the text}"),
        ("{{}}", "{}"),
        ('{"a": {"b": {"c": 1}}}', '{"a": {"b": {"c": 1}}}'),
        ('{{"a": {{"b": 1}}}}', '{"a": {"b": 1}}'),
        ("Is {X} fine?", "Is the text fine?"),
    ],
)
def test_a_doubled_brace_is_a_brace(question: str, meant: str) -> None:
    assert reference(question, ["x"]) == meant
    assert rows(f"SELECT llm_text('{question}', x) FROM t WHERE id = 1") == [("A",)]
