"""How a table is stored changes neither the rows of a query nor the values that it asks about."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import blendfusion as bf


def test_tables_of_pandas_join_as_others_do() -> None:
    """Their schemas carry different metadata, over which DataFusion's join_selection trips."""
    model = bf.ScriptedModel(lambda call: call.values[0].startswith("A"))
    with bf.connect(model, cache=None, progress="off") as session:
        actions = {"symbol": ["A", "B", "C", "D"] * 36, "action": ["dividend", "x", "y", "z"] * 36}
        names = {"symbol": list("ABCDE"), "name": ["Aa", "Bb", "Ac", "Dd", "Ee"]}
        session.from_pandas(pd.DataFrame(actions), name="h")
        session.from_pandas(pd.DataFrame({**names, "sector": list("iiooi")}), name="k")
        rows = session.sql("""
            SELECT h.action, k.name FROM h JOIN k ON h.symbol = k.symbol
            WHERE k.sector = 'i' AND llm_filter('A?', k.name) AND h.action LIKE '%dividend%'""")
        assert len(rows.to_pylist()) == 36
        assert len(model.calls) == 1
        assert session.table("k").schema().metadata is None


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    data = {"id": [1, 2, 3], "x": ["a", "b", None], "n": [1, None, 3], "b": [True, False, None]}
    made.from_pydict(data, name="t")
    return made


@pytest.mark.parametrize(
    "query",
    [
        """SELECT n IS TRUE, count(*) FROM (SELECT b n, x FROM t) WHERE llm_filter('q', x)
           GROUP BY ROLLUP (n IS TRUE, n = TRUE, n)""",
        """SELECT CASE WHEN FALSE THEN n ELSE n END a, n b, count(*) FROM t WHERE llm_filter('q', x)
           GROUP BY ROLLUP (CASE WHEN FALSE THEN n ELSE n END, n)""",
    ],
)
def test_keys_that_become_the_same_expression(query: str, session: bf.Session) -> None:
    rows = session.sql(query).to_pylist()
    plain = session.sql(query.replace("llm_filter('q', x)", "x IS NOT NULL")).to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, plain))


def test_case_over_a_dictionary_with_nulls(session: bf.Session) -> None:
    letters = pa.array(["a", None, "b", "c"] * 25).dictionary_encode()
    session.from_arrow(pa.table({"id": range(100), "x": ["a"] * 100, "d": letters}), name="dd")
    query = """SELECT CASE WHEN llm_filter('q', x) THEN d ELSE CASE id WHEN 2 THEN d WHEN 1 THEN d END END AS y
        FROM dd ORDER BY id LIMIT 50"""
    rows = session.sql(query).to_pydict()["y"]
    assert rows == letters.to_pylist()[:50]
