"""The queries of independent reviews that went wrong once, as they were written."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value


def answered(request: bf.Request) -> Value:
    one = request.constraint
    if one.options:
        return one.options[len(str(request.values)) % len(one.options)]
    number = sum(map(ord, str(request.values))) % 5
    typed = {"boolean": number % 2 == 0, "integer": number, "number": number / 2}
    return typed.get(one.kind, "RED" if one.kind == "regex" else "bwW"[number % 3])


def connected() -> tuple[bf.ScriptedModel, bf.Session]:
    model = bf.ScriptedModel(answered)
    session = bf.connect(model, cache=None, progress="off")
    t = {
        "id": [1, 2, 3, 4],
        "k": [1, 1, 2, 2],
        "x": ["a", "b", None, "c"],
        "n": [3, None, 1, 2],
        "b": [True, None, False, True],
    }
    session.from_pydict(t, name="t")
    u = {"id": [1, 2, 5], "k": ["RED", "BLU", None], "y": ["a", "d", None], "m": [1, 2, 3]}
    session.from_pydict(u, name="u")
    letters = pa.array(["a", None, "b", "c"] * 25).dictionary_encode()
    session.from_arrow(pa.table({"id": range(100), "d": letters, "x": ["u", "v"] * 50}), name="dd")
    return model, session


KINDS = {
    "SELECT a.n FROM (SELECT id, llm_map('q', x) AS n FROM t) a JOIN t ON a.id = t.id WHERE t.n > 1": "text",
    "SELECT llm_map('q', x) AS n, id FROM t WHERE n > 2": "text",
    "SELECT llm_map('q', x) AS n, sum(t.n) FROM t GROUP BY llm_map('q', x)": "text",
    "SELECT a.b FROM (SELECT id, llm_map('q', x) AS b FROM t) a JOIN t ON a.id = t.id WHERE t.b": "text",
    "WITH w AS (SELECT k, llm_qa('s', x) AS b FROM t GROUP BY k) SELECT w.b, count(*) FROM w JOIN t ON w.k = t.k WHERE t.b GROUP BY w.b": "text",
    "SELECT llm_map('Which colour?', r.x) AS k FROM t r JOIN u ON r.id = u.id WHERE u.k IN ('RED','BLU') OR TRUE": "text",
    "SELECT q.v FROM (SELECT length(p.v) AS v FROM (SELECT llm_map('q', x) AS v FROM t) p) q WHERE q.v > 0": "text",
    "SELECT q.v FROM (SELECT upper(p.v) = 'W' AS v FROM (SELECT llm_map('q', x) AS v FROM t) p) q WHERE q.v": "text",
    "SELECT llm_classify(x, ['a','b','c']) AS n FROM t WHERE n > 1": "choice",
    "WITH a AS (SELECT k, llm_classify(x, ['a','b','c']) AS m FROM t), c AS (SELECT n AS k, sum(m) AS s FROM (SELECT 1 AS n, m FROM u) GROUP BY n) SELECT * FROM a JOIN c ON a.k = c.k": "choice",
    "SELECT llm_int('n', x) FROM t GROUP BY llm_int('n', X)": "integer",
    "SELECT id FROM t WHERE llm_map('q', x) > 3 AND x ~ 'a|b'": "integer",
    "SELECT id FROM t WHERE llm_map('q', x) > 3 AND x <> E'a\\nb' ORDER /* newest first */ BY id": "integer",
    "SELECT id, rank() OVER (PARTITION /**/ BY k ORDER BY id) FROM t WHERE llm_map('q', x) IS TRUE": "boolean",
    "SELECT k, count(*) FROM t WHERE llm_map('q', x) > 3 GROUP -- c\n BY k": "integer",
    "SELECT id FROM t WHERE llm_map('q', x) > 3 AND encode(x'AB', 'hex') = 'ab'": "integer",
    "SELECT id FROM t WHERE CASE WHEN TRUE THEN llm_map('q', x) END > 3": "integer",
    "SELECT id FROM t WHERE NULLIF(llm_map('q', x), 0) > 3": "integer",
    "SELECT r.id, llm_map('What did they pay, and why?', r.x) AS price FROM t r JOIN (SELECT id, m AS price FROM u) p ON r.id = p.id WHERE p.price > 0": "text",
    "SELECT id FROM t WHERE llm_map('q', x) IS TRUE AND x ~ 'a|b'": "boolean",
    "SELECT k FROM t GROUP BY k HAVING max(llm_map('q', x)) > 3": "integer",
    "SELECT id FROM t WHERE llm_map('q', x) > ANY (SELECT 3)": "integer",
    "SELECT id FROM t WHERE \"llm_filter\"('q', x)": "boolean",
    "SELECT llm_text($$q's$$, x) FROM t": "text",
    "SELECT llm_text(E'q\\'s', x), $x$it's$x$ FROM t": "text",
    "SELECT llm_text('Is {{x}} fine?', x) FROM t": "text",
    "SELECT llm_text('w', 'a literal')": "text",
    "SELECT llm_text('What is the capital of France?')": "text",
    "SELECT llm_validate('c', x ORDER/**/BY x) FROM t": "boolean",
}  # fmt: skip
"""What the answers of each query's call are, which follows from the uses that refer to it."""


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize("sql", KINDS)
def test_a_name_means_what_sql_says(sql: str, planner: bool) -> None:
    model, session = connected()
    session.sql(f"SET blendfusion.planner = {planner}")
    session.sql(sql).collect()
    assert {call.constraint.kind for call in model.calls} == {KINDS[sql]}


ORDERS = {
    "SELECT id, n FROM t WHERE EXISTS (SELECT llm_int('q', u.y) AS n FROM u) ORDER BY n DESC": "SELECT id, n FROM t ORDER BY n DESC",
    "SELECT id, row_number() OVER (ORDER BY n DESC) AS r, llm_text('w', x) AS n FROM t": "SELECT id, row_number() OVER (ORDER BY n DESC) AS r, 1 AS n FROM t",
    "SELECT array_agg(id ORDER BY n DESC) AS ids, llm_qa('q', x) AS n FROM t": "SELECT array_agg(id ORDER BY n DESC) AS ids, 1 AS n FROM t",
}  # fmt: skip


@pytest.mark.parametrize("sql", ORDERS)
def test_an_ordinary_column_has_nulls_where_datafusion_has_them(sql: str) -> None:
    _, session = connected()
    found, wanted = (session.sql(one).to_arrow_table() for one in (sql, ORDERS[sql]))
    assert found.column(0).to_pylist() == wanted.column(0).to_pylist()
    assert found.column_names == wanted.column_names


EQUAL = {
    "SELECT (llm_map('m', x) IS TRUE) a, count(*) FROM t GROUP BY GROUPING SETS ((llm_map('m', X) IS TRUE), (llm_map('m', x) IS TRUE), ())",
    "SELECT n IS TRUE, count(*) FROM (SELECT b n, x FROM t) WHERE llm_filter('q', x) GROUP BY ROLLUP (n IS TRUE, n = TRUE, n)",
    "SELECT CASE WHEN FALSE THEN n ELSE n END a, n b, count(*) FROM t WHERE llm_filter('q', x) GROUP BY ROLLUP (CASE WHEN FALSE THEN n ELSE n END, n)",
    "SELECT CASE WHEN llm_filter('q', x) THEN d ELSE CASE id WHEN 2 THEN d WHEN 1 THEN d END END FROM dd ORDER BY id LIMIT 50",
    "SELECT llm_text('w', x) FROM t WHERE llm_filter('q', x) AND NOT llm_filter('q', X)",
    "SELECT id FROM t WHERE llm_filter('q', x) AND x NOT IN ('y', CASE k WHEN 1 THEN '' END)",
}  # fmt: skip


@pytest.mark.parametrize("sql", sorted(EQUAL))
def test_the_planner_changes_no_rows(sql: str) -> None:
    model, session = connected()
    rows = []
    for planner in (False, True):
        session.sql(f"SET blendfusion.planner = {planner}")
        model.calls.clear()
        rows.append(sorted(map(str, session.sql(sql).to_pylist())))
        asked = [(call.question, call.values) for call in model.calls]
        assert len(asked) == len(set(asked))
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN FORMAT TREE SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN FORMAT INDENT SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN CREATE TABLE z AS SELECT id FROM t WHERE llm_filter('q', x)",
        "EXPLAIN VERBOSE CREATE TABLE z AS SELECT id FROM t WHERE llm_filter('q', x)",
    ],
)
def test_every_explain_says_what_is_asked(sql: str) -> None:
    model, session = connected()
    assert "llm_filter" in str(session.sql(sql).to_pylist())
    assert not model.calls


def test_a_prepared_statement_asks() -> None:
    model, session = connected()
    session.sql("PREPARE p(INT) AS SELECT id FROM t WHERE id < $1 AND llm_filter('q', x)")
    session.sql("EXECUTE p(3)").collect()
    assert {call.values for call in model.calls} == {("a",), ("b",)}
    found = session.sql("SELECT llm_text('w', $a) AS v", param_values={"a": "b"}).to_pylist()
    assert found[0]["v"] in ("b", "w", "W")


# --- ported programs -----------------------------------------------------------------------------


def scored(sql: str) -> list[dict[str, Any]]:
    points = {"a": "9", "b": "50", "c": "100"}
    session = bf.connect(bf.ScriptedModel(lambda request: points[request.values[0]]), cache=None)
    session.from_pydict({"name": ["a", "b", "c"]}, name="t")
    return session.sql(sql, dialect="blendsql").to_pylist()


MAP = "{{LLMMap('How many points?', name)}}"


def test_numbers_are_compared_as_numbers() -> None:
    assert scored(f"SELECT MAX({MAP}) AS v FROM t") == [{"v": 100}]
    assert scored(f"SELECT MIN({MAP}) AS v FROM t") == [{"v": 9}]
    assert scored(f"SELECT name FROM t ORDER BY {MAP} DESC LIMIT 1") == [{"name": "c"}]
    ranked = scored(f"SELECT name, rank() OVER (ORDER BY {MAP} DESC) AS r FROM t ORDER BY r")
    assert [row["name"] for row in ranked] == ["c", "b", "a"]
    above = f"SELECT name FROM t WHERE {MAP} > (SELECT {MAP} FROM t WHERE name = 'a') ORDER BY name"
    assert scored(above) == [{"name": "b"}, {"name": "c"}]


def test_a_join_of_two_pandas_tables_is_planned() -> None:
    model = bf.ScriptedModel(lambda request: request.values[0].startswith("A"))
    session = bf.connect(model, cache=None)
    actions = {"symbol": [*"ABCD"] * 36, "action": ["dividend", "x", "y", "dividend"] * 36}
    names = {"symbol": [*"ABCDE"], "name": ["Aa", "Bb", "Ac", "Dd", "Ee"]}
    session.from_pandas(pd.DataFrame(actions), name="h")
    sectors = {"sector": ["IT", "IT", "X", "Y", "IT"]}
    session.from_pandas(pd.DataFrame({**names, **sectors}), name="k")
    sql = (
        "SELECT h.action, k.name FROM h JOIN k ON h.symbol = k.symbol WHERE k.sector='IT' "
        "AND llm_filter('A?', k.name) AND lower(h.action) LIKE '%dividend%'"
    )
    assert session.sql(sql).count() == 36
    assert [call.values for call in model.calls] == [("Aa",)]


def test_a_function_of_the_user_sees_each_row_of_values_once() -> None:
    seen: list[str] = []

    @bf.ingredient(name="len_of_review")
    def len_of_review(model: bf.UserModel, text: pa.StringArray) -> pa.Int64Array:
        seen.extend(text.to_pylist())
        return pa.array([len(t) for t in text.to_pylist()], pa.int64())

    session = bf.connect(bf.ScriptedModel(answered), cache=None)
    session.from_pydict({"b": ["a", "abcd", "abcde", "xy"] * 35}, name="t2")
    sql = "SELECT b, len_of_review(b) AS n FROM t2 WHERE len_of_review(b) > 3 LIMIT 12"
    assert session.sql(sql).count() == 12
    assert len(seen) == len(set(seen)) <= 4


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT id FROM t WHERE id = 1 OR ({{LLMQA('any?', (SELECT y FROM u))}})", "boolean"),
        ("SELECT id FROM t WHERE id > ({{LLMQA('how many?', (SELECT y FROM u))}})", "integer"),
        ("SELECT t.id FROM t JOIN u ON{{LLMJoin(t.x, u.y)}}", None),
    ],
)
def test_forms_of_blendsql(sql: str, kind: str | None) -> None:
    model, session = connected()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.AnswerWarning)
        session.sql(sql, dialect="blendsql").collect()
    assert model.calls
    if kind is not None:
        assert {call.constraint.kind for call in model.calls} == {kind}


def test_our_own_parentheses_around_a_subquery() -> None:
    model, session = connected()
    session.sql("SELECT TRUE AND ((SELECT llm_qa('any?', y) FROM u)) AS v").collect()
    assert [call.constraint.kind for call in model.calls] == ["boolean"]


def test_a_list_of_structs_is_answered() -> None:
    people = {"people": [{"name": "A", "age": 3}]}
    session = bf.connect(bf.ScriptedModel(lambda request: people), cache=None)
    session.from_pydict({"x": ["A is 3."]}, name="t")
    call = "llm_extract(x, 'people LIST<STRUCT<name TEXT, age INT>>')"
    assert session.sql(f"SELECT {call} AS v FROM t").to_pylist() == [{"v": people}]


def test_an_unknown_table_of_a_context_is_named() -> None:
    _, session = connected()
    with pytest.raises(bf.QueryError, match="unknown table 'nobody'"):
        session.sql("SELECT {{LLMQA('any?', (SELECT * FROM nobody))}}", dialect="blendsql")
