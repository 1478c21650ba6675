"""A cast beside the column that it casts, in groups, aggregates and windows; DuckDB has the rows."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
import pytest
from scripts import Counted, spoken, tuples, unordered

import blendfusion as bf
from blendfusion.language.query_text.named_casts import named_casts

TABLE = pa.table(
    {
        "x": ["1", "2", "1", None, "3"],
        "y": [1, 2, 1, None, 3],
        "z": [1.5, 2.0, 3.25, 4.0, None],
        "d": pa.array([0, 31, 0, None, 59], pa.int32()).cast(pa.date32()),
    }
)
QUERIES = [
    "SELECT x, CAST(x AS DOUBLE) AS v, count(*) AS n FROM t GROUP BY 1, 2",
    "SELECT y, CAST(y AS BIGINT) AS v, count(*) AS n FROM t GROUP BY y, CAST(y AS BIGINT)",
    "SELECT x, TRY_CAST(x AS DOUBLE) v, sum(z) AS n FROM t GROUP BY 1, 2 ORDER BY 1",
    "SELECT CAST(x AS DOUBLE) AS v, CAST(x AS INT) AS w, count(*) AS n FROM t GROUP BY 1, 2",
    "SELECT x, x::int AS v, x::double w, count(DISTINCT y) AS n FROM t GROUP BY 1, 2, 3",
    "SELECT d, CAST(d AS VARCHAR) AS v, count(*) AS n FROM t GROUP BY ROLLUP (d, CAST(d AS VARCHAR))",
    "SELECT d, d::varchar AS v, CAST(d AS TIMESTAMP) AS w, max(z) AS n FROM t GROUP BY 1, 2, 3",
    "SELECT x, y::double AS v, count(*) AS n FROM t GROUP BY x, y, y::double HAVING y::double > 1",
    "SELECT x FROM t GROUP BY x, CAST(x AS INT) ORDER BY CAST(x AS INT)",
    "SELECT sum(z) AS n, sum(CAST(z AS DECIMAL(8, 1))) AS v FROM t",
    "SELECT x, max(x) AS m, max(CAST(x AS INT)) AS v FROM t GROUP BY x",
    "SELECT max(x), max(CAST(x AS INT)) FROM t",
    "SELECT x, x::int FROM t",
    "SELECT sum(y) OVER () AS n, sum(CAST(y AS DOUBLE)) OVER () AS v FROM t",
    "SELECT x::varchar(3)::int AS v, x, z::decimal(10, 2)::double AS w, z FROM t",
    "SELECT v, sum(n) AS n FROM (SELECT x, x::int AS v, count(*) AS n FROM t GROUP BY 1, 2) GROUP BY v",
    "WITH c AS (SELECT d, d::varchar AS v, count(*) AS n FROM t GROUP BY 1, 2) SELECT * FROM c",
    "SELECT x, CAST(x AS INT) AS v, count(*) AS n FROM t GROUP BY 1, 2 "
    "UNION ALL SELECT x, CAST(x AS INT), 0 FROM t GROUP BY 1, 2",
    "SELECT x FROM t WHERE y IN (SELECT CAST(x AS INT) FROM t GROUP BY x, CAST(x AS INT))",
]


def found(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Rows in which 2 equals 2.00."""
    return unordered([tuple(float(v) if _is_number(v) else str(v) for v in r) for r in rows])


def _is_number(value: object) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", str(value)) is not None and not isinstance(value, str)


@pytest.mark.parametrize("sql", QUERIES)
def test_rows(sql: str) -> None:
    """Plain, and where the text is an answer."""
    table = duckdb.connect()
    table.register("t", TABLE)
    expected = found(table.execute(sql).fetchall())
    db = Counted(spoken).add("t", TABLE)
    assert found(tuples(db.session.sql(sql).to_arrow_table())) == expected
    if "ORDER BY CAST" in sql:
        return  # DataFusion sorts by no key of groups that is volatile, cast or not
    asking = re.sub(r"\bx\b(?! (?:FROM|=))", "llm_text('upper', x)", sql)
    frame = db.session.sql(asking)
    assert found(tuples(frame.to_arrow_table())) == expected
    assert frame.prepared.reason is None


def test_names_of_columns() -> None:
    """A column without an alias is named as it is written."""
    db = Counted(spoken).add("t", TABLE)
    names = db.session.sql("SELECT max(x), max(CAST(x AS INT)), min(y::double) FROM t").columns
    assert names == ["max(t.x)", "max(CAST(x AS INT))", "min(y::double)"]
    asking = "SELECT max(llm_text('q', x)), max(CAST(llm_text('q', x) AS INT)) FROM t"
    assert db.session.sql(asking).columns == [
        "max(llm_text('q', x))",
        "max(CAST(llm_text('q', x) AS INT))",
    ]


def test_views_and_tables() -> None:
    """A view is planned when it is read; a table is made once."""
    db = Counted(spoken).add("t", TABLE)
    query = "SELECT x, CAST(x AS DOUBLE) AS v, count(*) AS n FROM t GROUP BY 1, 2"
    expected = unordered(db.rows(query))
    for kind in ("VIEW", "TABLE"):
        db.session.sql(f"CREATE {kind} made_{kind.lower()} AS {query}")
        assert unordered(db.rows(f"SELECT * FROM made_{kind.lower()}")) == expected


def test_other_errors_stay() -> None:
    session = bf.connect(bf.ScriptedModel(spoken))
    session.from_arrow(TABLE, name="t")
    for sql, words in (
        ("SELECT x, CAST(x AS NOTHING) AS v, count(*) FROM t GROUP BY 1, 2", "NOTHING"),
        ("SELECT x, CAST(nope AS INT) AS v, count(*) FROM t GROUP BY 1, 2", "nope"),
    ):
        with pytest.raises(bf.QueryError, match=words):
            session.sql(sql)


def test_texts() -> None:
    kinds = {"INT": "Int32", "numeric(5, 2)": "Decimal128(5, 2)", "text": "Utf8View"}
    made = {
        "SELECT a.b::INT::text AS c": "SELECT arrow_cast(arrow_cast(a.b, 'Int32'), 'Utf8View') AS c",
        "SELECT CAST(f(x)::INT AS text) || 'a'": "SELECT arrow_cast(arrow_cast(f(x), 'Int32') , "
        "'Utf8View') || 'a' AS \"CAST(f(x)::INT AS text) || 'a'\"",
        "SELECT 'a::INT', x -- ::INT": None,
        "SELECT x::odd": None,
        "SELECT (a + 1)::numeric(5, 2) q": "SELECT arrow_cast((a + 1), 'Decimal128(5, 2)') q",
    }
    for sql, expected in made.items():
        text = named_casts(sql, kinds.get)
        assert (None if text is None else text.sql) == expected
