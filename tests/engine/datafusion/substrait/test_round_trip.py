"""A plan that is read and written again, without any rule, gives the same rows and types."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionContext
from datafusion.substrait import Consumer, Producer, Serde
from scripts import tuples, unordered

from blendfusion.datafusion.substrait.null_aware_anti_join import null_aware, with_nulls
from blendfusion.datafusion.substrait.read import read
from blendfusion.datafusion.substrait.write import write

N = 30
T = pa.table(
    {
        "id": range(N),
        "k": [None if i % 7 == 0 else i % 4 for i in range(N)],
        "x": [None if i % 5 == 0 else "abcd"[i % 4] * (i % 3 + 1) for i in range(N)],
        "f": [i / 3 for i in range(N)],
        "d": [datetime.date(2024, 1, 1 + i % 28) for i in range(N)],
        "ts": pa.array(
            [datetime.datetime(2024, 1, 1, i % 24) for i in range(N)], pa.timestamp("us")
        ),
        "dec": [Decimal(i) / 4 for i in range(N)],
        "flag": [None if i % 6 == 0 else i % 2 == 0 for i in range(N)],
        "v": pa.array([f"w{i % 3}" for i in range(N)], pa.string_view()),
    }
)
U = pa.table({"uid": [0, 1, 2, None], "y": ["a", "bb", None, "c"]})

QUERIES = [
    "SELECT * FROM t",
    "SELECT id + 1, upper(x), f * 2.5 FROM t WHERE k > 1 AND x LIKE 'a%'",
    "SELECT id FROM t WHERE x IN ('a', 'bb') OR k IS NULL",
    "SELECT id FROM t WHERE d >= DATE '2024-01-10' AND ts < TIMESTAMP '2024-01-01 12:00:00'",
    "SELECT id FROM t WHERE dec BETWEEN 1.5 AND 4.25",
    "SELECT CASE k WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE x END FROM t",
    "SELECT COALESCE(x, v), NULLIF(k, 2) FROM t",
    "SELECT CAST(f AS INT), CAST(id AS VARCHAR), d + INTERVAL '1' DAY FROM t",
    "SELECT date_trunc('month', d), extract(day FROM d) FROM t",
    "SELECT id FROM t WHERE v <> 'w1' AND flag IS NOT TRUE",
    "SELECT t.id, u.y FROM t JOIN u ON t.k = u.uid",
    "SELECT t.id, u.y FROM t LEFT JOIN u ON t.k = u.uid",
    "SELECT t.id, u.y FROM t RIGHT JOIN u ON t.k = u.uid AND t.id < 5",
    "SELECT t.id, u.y FROM t FULL JOIN u ON t.k = u.uid",
    "SELECT t.id, u.y FROM t JOIN u ON t.k < u.uid",
    "SELECT t.id, u.uid FROM t CROSS JOIN u",
    "SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.k = b.id",
    "SELECT id FROM t WHERE k IN (SELECT uid FROM u)",
    "SELECT id FROM t WHERE k NOT IN (SELECT uid FROM u)",
    "SELECT id FROM t WHERE k NOT IN (SELECT uid FROM u WHERE uid IS NOT NULL)",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.uid = t.k)",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.uid = t.k)",
    "SELECT id FROM t WHERE k IN (SELECT uid FROM u) OR id = 3",
    "SELECT id FROM t WHERE id > (SELECT max(uid) FROM u)",
    "SELECT id FROM t AS o WHERE f > (SELECT avg(f) FROM t AS i WHERE i.k = o.k)",
    "SELECT k, count(*), sum(f), min(x), avg(dec) FROM t GROUP BY k",
    "SELECT k, count(DISTINCT x), sum(f) FILTER (WHERE flag) FROM t GROUP BY k HAVING count(*) > 3",
    "SELECT k, string_agg(x, ',' ORDER BY id DESC) FROM t GROUP BY k",
    "SELECT k, array_agg(id ORDER BY id) FROM t GROUP BY k",
    "SELECT count(*) FROM t",
    "SELECT k, x, count(*) FROM t GROUP BY ROLLUP (k, x)",
    "SELECT k, x, count(*), grouping(k) FROM t GROUP BY CUBE (k, x)",
    "SELECT k, flag, sum(f) FROM t GROUP BY GROUPING SETS ((k), (flag), (k, flag), ())",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM t",
    "SELECT id, sum(f) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT id, lag(id, 2) OVER (PARTITION BY flag ORDER BY id), rank() OVER (ORDER BY k, id) FROM t",
    "SELECT DISTINCT k, flag FROM t",
    "SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id DESC",
    "SELECT k FROM t UNION SELECT uid FROM u",
    "SELECT k FROM t UNION ALL SELECT uid FROM u",
    "SELECT k FROM t INTERSECT SELECT uid FROM u",
    "SELECT k FROM t EXCEPT SELECT uid FROM u",
    "SELECT id FROM t ORDER BY k DESC NULLS LAST, id LIMIT 7 OFFSET 3",
    "SELECT * FROM (SELECT id FROM t ORDER BY id LIMIT 5) AS s WHERE id % 2 = 0",
    "WITH w AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT * FROM w AS a JOIN w AS b ON a.n = b.n",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT struct(id, x), make_array(id, k) FROM t",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_plan_survives_reading_and_writing(sql: str) -> None:
    context = SessionContext()
    context.from_arrow(T, name="t")
    context.from_arrow(U, name="u")
    frame = context.sql(sql)
    logical = frame.optimized_logical_plan()
    plan = read(Producer.to_substrait_plan(logical, context).encode()).plan
    plan = with_nulls(plan, null_aware(logical.display_indent()))
    data = write(plan, {})
    again = context.create_dataframe_from_logical_plan(
        Consumer.from_substrait_plan(context, Serde.deserialize_bytes(data))
    )
    assert plan.width == len(frame.schema())
    assert [f.type for f in again.schema()] == [f.type for f in frame.schema()]
    assert _rows(again) == _rows(frame)


def _rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows, batch by batch: DataFusion's batches may differ from its schema in nullability."""
    return unordered(
        [row for b in frame.collect() for row in tuples(pa.table(b.columns, _names(b)))]
    )


def _names(batch: pa.RecordBatch) -> list[str]:
    return [str(i) for i in range(batch.num_columns)]
