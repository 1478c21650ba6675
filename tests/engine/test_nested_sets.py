"""Random set operations in each other, with limits, joins and calls, over folders of several files:
the rows of DuckDB, with calls that it can compute."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from amounts import long_after
from time_limit import within

import blendfusion as bf

YES, LENGTH = "llm_filter('even', x)", "llm_int('length', x)"
_LENGTH_IN_SQL = "(CASE WHEN trim(x) <> '' THEN length(x) END)"
PLAIN = {YES: f"({_LENGTH_IN_SQL} % 2 = 0)", LENGTH: _LENGTH_IN_SQL}
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("x", pa.string())])
SET_OPERATORS = ("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")
CONDITIONS = (
    *("", f"WHERE {YES}", f"WHERE NOT {YES}", f"WHERE {LENGTH} > 1", f"WHERE {YES} AND k = 1"),
    *(f"WHERE {YES} OR k IS NULL", "WHERE k < 2", f"WHERE {LENGTH} = k + 1"),
    f"WHERE {YES} IS NULL",
)
Row = tuple[object, ...]


def _answer(call: bf.Request) -> bool | int:
    size = len(call.values[0] or "")
    return size % 2 == 0 if call.question == "even" else size


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    source = random.Random(7)
    made: dict[str, Path] = {}
    for name in "abc":
        made[name] = tmp_path_factory.mktemp(name)
        for number in range(4):
            rows = [
                {
                    "id": source.randint(0, 12),
                    "k": source.choice([None, 0, 1, 2]),
                    "x": source.choice([None, "", "u", "vv", "www", "xxxx"]),
                }
                for _ in range(9)
            ]
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), made[name] / f"{number}.parquet")
    return made


def _leaf(source: random.Random) -> str:
    key = source.choice(["id", "k", "id % 3"])
    value = source.choice(["x", "x", f"CAST({LENGTH} AS VARCHAR)", "CAST(id AS VARCHAR)"])
    table, condition = source.choice("abc"), source.choice(CONDITIONS)
    return f"SELECT {key} AS p, {value} AS q FROM {table} {condition}"


def _query(source: random.Random, depth: int) -> str:
    if depth == 0:
        return _leaf(source)

    def below() -> str:
        return _query(source, depth - 1)

    form = source.choice([*SET_OPERATORS, "filter", "limit", "group", "join", "exists", "in"])
    if form == "filter":
        condition = source.choice(["> 1", "IS NOT NULL", "= 2"])
        return f"SELECT p, q FROM ({below()}) AS z{depth} WHERE p {condition}"
    if form == "limit":
        order = f"p {source.choice(['', 'DESC'])} NULLS {source.choice(['FIRST', 'LAST'])}"
        bounds = f"LIMIT {source.randint(1, 9)}{source.choice([' OFFSET 2', ''])}"
        return f"SELECT p, q FROM (({below()}) ORDER BY {order}, q NULLS LAST {bounds}) AS z{depth}"
    if form == "group":
        return f"SELECT max(p) AS p, q FROM ({below()}) AS z{depth} GROUP BY q"
    if form == "join":
        kind = source.choice(["", "LEFT", "FULL", "RIGHT"])
        sides = f"({below()}) AS u{depth} {kind} JOIN ({below()}) AS v{depth}"
        return f"SELECT u{depth}.p, v{depth}.q FROM {sides} ON u{depth}.p = v{depth}.p"
    if form == "exists":
        inner = f"SELECT 1 FROM ({below()}) AS y{depth} WHERE y{depth}.p = z{depth}.p"
        word = source.choice(["", "NOT "])
        return f"SELECT p, q FROM ({below()}) AS z{depth} WHERE {word}EXISTS ({inner})"
    if form == "in":
        inner = f"SELECT p FROM ({below()}) AS y{depth}"
        return f"SELECT p, q FROM ({below()}) AS z{depth} WHERE p IN ({inner})"
    return f"({below()}) {form} ({below()})"


def _random_query(number: int) -> tuple[str, bool]:
    """(a query, whether its rows are in order)"""
    source = random.Random(number)
    text = _query(source, source.randint(1, 3))
    top = source.choice(["", "count", "order"])
    if top == "count":
        return f"SELECT count(*) AS p, count(q) AS q FROM ({text}) AS top", False
    if top == "order":
        order = f"p {source.choice(['', 'DESC'])} NULLS LAST, q NULLS FIRST"
        bounds = f"LIMIT {source.randint(1, 7)} OFFSET {source.randint(0, 3)}"
        return f"SELECT p, q FROM ({text}) AS top ORDER BY {order} {bounds}", True
    return text, False


def _in_order(rows: list[Row], *, ordered: bool) -> list[Row]:
    return rows if ordered else sorted(rows, key=str)


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This query runs without the planner")
@pytest.mark.parametrize("part", long_after(2, range(4)))
def test_random_sets(folders: dict[str, Path], part: int, cases: int) -> None:
    plain = duckdb.connect()
    plain.execute("SET default_null_order = 'nulls_last'")
    sessions = [
        bf.connect(bf.ScriptedModel(_answer), cache=None, progress="off", planner=planner)
        for planner in (True, False)
    ]
    for name, folder in folders.items():
        plain.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/*.parquet'")
        for session in sessions:
            session.register_parquet(name, folder)
    for number in range(part, cases // 25, 4):
        sql, ordered = _random_query(number)
        in_sql = sql
        for call, expression in PLAIN.items():
            in_sql = in_sql.replace(call, expression)
        expected = _in_order(plain.execute(in_sql).fetchall(), ordered=ordered)
        for session in sessions:
            with within(60, sql):
                rows = _rows(session.sql(sql).to_arrow_table())
            assert _in_order(rows, ordered=ordered) == expected, sql


def test_brackets_around_all_of_a_query(folders: dict[str, Path]) -> None:
    """EXCEPT ALL counts between two queries in brackets, also where nothing stands around them."""
    session = bf.connect(bf.ScriptedModel(_answer), cache=None, progress="off")
    session.from_pydict({"v": [1, 1, 1, 2]}, name="t")
    for left, right in (("(SELECT v FROM t)", "(SELECT 1)"), ("((SELECT v FROM t))", "SELECT 1")):
        found = session.sql(f"{left} EXCEPT ALL {right} ORDER BY 1").to_arrow_table()
        assert found.column(0).to_pylist() == [1, 1, 2]


@pytest.mark.parametrize("word", ["INTERSECT", "EXCEPT"])
@pytest.mark.parametrize("between", [" -- a, '\n", " /* b */ ", "\n\t"])
def test_comments_between_the_words_of_an_operator(word: str, between: str) -> None:
    session = bf.connect(bf.ScriptedModel(_answer), cache=None, progress="off")
    session.from_pydict({"v": [1, 1, 1, 2]}, name="t")
    found = session.sql(f"SELECT v FROM t {word}{between}all SELECT 1 ORDER BY 1").to_arrow_table()
    assert found.column(0).to_pylist() == ([1] if word == "INTERSECT" else [1, 1, 2])
