"""Comparisons of rows are comparisons of their parts, with the results of DataFusion's structs."""

from __future__ import annotations

import itertools
import warnings

import pyarrow as pa
import pytest
from datafusion import SessionContext
from scripts import Counted, hashed

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.row_values import row_values

PAIRS = [*itertools.product([1, 2, None], ["a", "b", None])]
TABLE: dict[str, list[object]] = {
    "id": [*range(81)],
    "n": [n for n, _ in PAIRS for _ in PAIRS],
    "s": [s for _, s in PAIRS for _ in PAIRS],
    "m": [n for _ in PAIRS for n, _ in PAIRS],
    "t": [s for _ in PAIRS for _, s in PAIRS],
    "x": [f"v{i}" for i in range(81)],
}


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(n, s)", "(m, t)"),
        ("(n, s)", "(1, 'b')"),
        ("(1, 'b')", "(n, s)"),
        ("(n, s)", "(1, NULL)"),
        ("(n, NULL)", "(m, t)"),
        ("(n, s, m)", "(2, t, 1)"),
    ],
)
def test_results_are_those_of_structs(operator: str, left: str, right: str) -> None:
    ctx = SessionContext()
    ctx.from_arrow(pa.table(TABLE), name="t")
    sql = f"SELECT id, {left} {operator} {right} AS v{{}} FROM t ORDER BY id"
    db = Counted(hashed).add("t", TABLE)
    found = [row[:2] for row in db.rows(sql.format(", llm_map('q', x) AS a"))]
    expected = ctx.sql(sql.format("")).to_pydict()
    assert found == [*zip(expected["id"], expected["v"], strict=True)]


@pytest.mark.parametrize("word", ["IN", "NOT IN"])
@pytest.mark.parametrize("rows", ["(1, 'a'), (2, 'b')", "(1, NULL)", "(m, 'a'), (NULL, t)"])
def test_results_are_those_of_lists_of_structs(word: str, rows: str) -> None:
    ctx = SessionContext()
    ctx.from_arrow(pa.table(TABLE), name="t")
    sql = f"SELECT id, (n, s) {word} ({rows}) AS v{{}} FROM t ORDER BY id"
    db = Counted(hashed).add("t", TABLE)
    found = [row[:2] for row in db.rows(sql.format(", llm_map('q', x) AS a"))]
    expected = ctx.sql(sql.format("")).to_pydict()
    assert found == [*zip(expected["id"], expected["v"], strict=True)]


LABEL = "llm_classify(x, ['a', 'b', 'c'])"


@pytest.mark.parametrize(
    ("where", "asked"),
    [  # 27 rows have each n
        (f"(n, {LABEL}) = (1, 'a')", 27),
        (f"ROW({LABEL}, n) = ROW('a', 1)", 27),
        (f"(n, {LABEL}) IN ((1, 'a'), (2, 'b'))", 54),
        (f"(n, {LABEL}) IN ((1, 'a'))", 27),
        (f"(n, {LABEL}) NOT IN ((1, 'a')) AND id < 30", 27),
        (f"(n, {LABEL}) > (1, 'b') AND id < 30", 27),
        (f"(s, m) = ('a', 2) AND {LABEL} = 'a'", 9),
        (f"(n, m, {LABEL}) = (1, m, s)", 27),
        (f"NOT ((n, {LABEL}) <> (1, 'a'))", 27),
    ],
)
def test_the_cheap_part_decides_who_is_asked(where: str, asked: int) -> None:
    planned, plain = (Counted(hashed, planner=p).add("t", TABLE) for p in (True, False))
    sql = f"SELECT id FROM t WHERE {where} ORDER BY id"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planned.session.sql(sql).prepared.reason is None
        assert planned.asked(sql) == asked
    assert planned.rows(sql) == plain.rows(sql)


def test_a_null_decides_a_filter_of_an_aggregate_and_a_truth_test() -> None:
    db = Counted(hashed).add("t", TABLE)
    assert db.asked("SELECT count(*) FILTER (WHERE n = 1 AND llm_filter('q', x)) FROM t") == 27
    assert db.asked("SELECT (n = 1 AND llm_filter('q', x)) IS TRUE AS v FROM t") == 27
    assert db.asked("SELECT (n <> 1 OR llm_filter('q', x)) IS NOT TRUE AS v FROM t") == 54


@pytest.mark.parametrize(
    "text",
    [
        "SELECT f(a, b) = 1",
        "SELECT a IN (1, 2) = TRUE",
        "SELECT (a, b) IN (SELECT 1, 2)",
        "SELECT (a, b) = (SELECT 1, 2)",
        "SELECT (a) = (1)",
        "SELECT (a, b) = (1, 2, 3)",
        "SELECT (a, b) = c",
        "SELECT * FROM t JOIN u USING (a, b) WHERE (a = 1) = (b = 2)",
        "SELECT a NOT IN (1, 2), count(a, b) < (1)",
    ],
)
def test_other_parentheses_stay(text: str) -> None:
    assert row_values(Reader(text)) is None
