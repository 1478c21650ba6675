"""A call may stand wherever DataFusion takes a function: planned as plain, and planned at all."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionConfig
from scripts import Counted, hashed, tuples, unordered

import blendfusion as bf

N = 50
TABLE = pa.table(
    {
        "id": range(N),
        "n": [i % 3 for i in range(N)],
        "a": [f"v{i % 7}" for i in range(N)],
        "s": [{"p": f"x{i % 4}", "q": i} for i in range(N)],
        "l": [[f"e{i % 5}", "f"] for i in range(N)],
    }
)
STRUCT_FIELD = "a field of a struct is a nested reference, which runs plainly"

QUERIES = [
    "SELECT id FROM t WHERE llm_filter('q', s['p']) ORDER BY id LIMIT 3",
    "SELECT id, s FROM t WHERE llm_filter('q', a) AND s['q'] > 10 ORDER BY id LIMIT 2",
    "SELECT id, l FROM t WHERE llm_filter('q', l) ORDER BY id LIMIT 2",
    "SELECT id FROM t WHERE llm_filter('q', l[1]) ORDER BY id LIMIT 2",
    "SELECT id FROM t WHERE llm_map('m', a) = ANY(SELECT 'a') ORDER BY id",
    "SELECT id FROM t WHERE a LIKE llm_map('m', a) ORDER BY id",
    "SELECT id FROM t WHERE llm_map('m', a) LIKE 'a%' ORDER BY id",
    "SELECT id FROM t WHERE 'a' = ANY(llm_list('m', a)) ORDER BY id",
    "SELECT id FROM t WHERE array_has(llm_list('m', a), 'a') ORDER BY id",
    "SELECT id, random() < 2 FROM t WHERE llm_filter('q', a) ORDER BY id LIMIT 2",
    "SELECT id FROM t WHERE random() < 2 AND llm_filter('q', a) ORDER BY id LIMIT 2",
    "SELECT id FROM t WHERE llm_filter('q', a) AND llm_filter('q', a) ORDER BY id LIMIT 2",
    "SELECT n, llm_qa('q', a ORDER BY id) FROM t GROUP BY n ORDER BY n",
    "SELECT n, llm_qa('q', DISTINCT a) FROM t GROUP BY n ORDER BY n",
    "SELECT n, llm_qa('q', a) OVER (PARTITION BY n) FROM t ORDER BY id LIMIT 2",
    "SELECT llm_filter('q', a) AS g, llm_qa('q', a), llm_qa('q2', a) FROM t GROUP BY g ORDER BY g",
    "SELECT t1.id FROM t t1, LATERAL (SELECT 1) x WHERE llm_filter('q', t1.a) ORDER BY 1 LIMIT 2",
    "SELECT id FROM t ORDER BY CASE WHEN n = 0 THEN llm_int('i', a) END, id LIMIT 3",
    "SELECT n, count(*) c FROM t GROUP BY n HAVING llm_qa('k', a) IS NOT NULL ORDER BY llm_qa('k', a), n",
    "SELECT * FROM t WHERE llm_filter('q', a) AND id IN (SELECT id FROM t WHERE llm_filter('q', a) LIMIT 5) ORDER BY id",
    "SELECT (SELECT llm_map('m', a) FROM t WHERE id = 3)",
    "SELECT id, (SELECT count(*) FROM t u WHERE u.n = t.n AND llm_filter('q', u.a)) FROM t ORDER BY id LIMIT 3",
    "SELECT id FROM t WHERE CASE WHEN n=0 THEN llm_int('i', a) WHEN n=1 THEN 2 ELSE 1.5 END > 1 ORDER BY id",
    "SELECT id % 2 = 0 AND llm_filter('q', a) AS b, count(*) FROM t GROUP BY b ORDER BY b",
    "SELECT a AS x, a AS y, llm_filter('q', a) FROM t ORDER BY id LIMIT 2",
    "SELECT TRY_CAST(llm_map('m', a) AS INT) FROM t ORDER BY id LIMIT 2",
    "SELECT sum(CASE WHEN llm_filter('q', a) THEN 1 ELSE 0 END) * 1.0 / count(*) FROM t",
    "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY llm_classify(a, ['x','y']) ORDER BY id) = 1 ORDER BY id",
    "SELECT lower(llm_map('m', a)) || '!' AS z, count(*) FROM t GROUP BY z ORDER BY z LIMIT 3",
    "SELECT * EXCLUDE (s, l) FROM t WHERE llm_filter('q', a) ORDER BY id LIMIT 1",
    "SELECT x.* FROM (SELECT id, llm_map('m', a) FROM t) x ORDER BY id LIMIT 2",
    "SELECT count(DISTINCT llm_map('m', a)), count(DISTINCT n) FROM t",
    "SELECT first_value(llm_map('m', a) ORDER BY id) FROM t",
    "SELECT id FROM t JOIN (SELECT n AS m, llm_qa('q', a) AS qa FROM t GROUP BY n) g ON n = m WHERE qa IS NOT NULL AND llm_filter('q', a) ORDER BY id LIMIT 2",
]


def session(**options: object) -> Counted:
    counted = Counted(hashed, **options)
    counted.session.register_record_batches("t", [TABLE.to_batches(max_chunksize=7)])
    return counted


@pytest.mark.parametrize("sql", QUERIES)
def test_a_call_may_stand_there(sql: str) -> None:
    planned = session()
    plain = session(planner=False, config=SessionConfig().with_target_partitions(1))
    assert planned.session.sql(sql).prepared.reason is None
    assert planned.rows(sql) == plain.rows(sql)


@pytest.mark.parametrize(
    "item",
    [
        "sum(n) FILTER (WHERE n < 3) OVER (ORDER BY id)",
        "first_value(nullif(n, 1)) IGNORE NULLS OVER (ORDER BY id)",
        "count(DISTINCT n) OVER (PARTITION BY n % 2)",
    ],
)
def test_what_substrait_would_lose_is_not_lost(item: str) -> None:
    rows = []
    for planner in (True, False):
        db = Counted(hashed, planner=planner)
        db.add("v", pa.table({"id": range(6), "n": [1, None, 1, 4, 2, 2], "x": list("abcabc")}))
        rows.append(db.rows(f"SELECT id, {item} FROM v WHERE llm_filter('q', x) IS NOT NULL"))
    assert unordered(rows[0]) == unordered(rows[1])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, NULL AS z FROM v WHERE llm_filter('q', x)",
        "SELECT id, CASE WHEN llm_filter('q', x) THEN NULL END AS z FROM v",
        "SELECT z IS NULL, z FROM (SELECT NULL AS z FROM v WHERE llm_filter('q', x)) AS s",
        "SELECT NULL AS z, llm_bool('q', x) AS b FROM v UNION ALL SELECT x, true FROM v",
        "SELECT count(z), max(z) FROM (SELECT NULL AS z, llm_bool('q', x) AS b FROM v) AS s WHERE b",
    ],
)
def test_null_without_a_type(sql: str) -> None:
    results = []
    for planner in (True, False):
        db = Counted(hashed, planner=planner).add("v", {"id": [1, 2, 3], "x": ["a", "b", None]})
        frame = db.session.sql(sql)
        assert (frame.prepared.reason is None) == planner
        table = frame.to_arrow_table()
        results.append((table.schema.types, unordered(tuples(table))))
    assert results[0] == results[1]


def test_rules_are_switched_off_by_an_option_or_a_statement() -> None:
    data = {"id": list(range(4)), "x": ["a", "b", "a", "c"]}
    sql = "SELECT llm_int('n', x) FROM v ORDER BY id LIMIT 1"
    assert Counted(hashed).add("v", data).asked(sql) == 1
    without = Counted(hashed, rules_off="late_projection, predicate_order, needs").add("v", data)
    assert without.asked(sql) == 3
    without.session.sql("SET blendfusion.rules_off = ''")
    assert without.asked(sql) == 1
    with pytest.raises(bf.OptionError, match="no rule 'push_limits' to switch off") as wrong:
        Counted(hashed, rules_off="push_limits")
    assert "push_limit" in (wrong.value.hint or "")


def test_former_names_switch_off_the_rules_that_do_the_same_now() -> None:
    data = {"k": [1, 1, 1, 1], "x": ["a", "b", "c", "d"]}
    sql = "SELECT DISTINCT k FROM v WHERE llm_filter('f', x)"
    every = Counted(lambda call: True, rules_off="one_of_equal_rows, predicate_order")
    assert Counted(lambda call: True).add("v", data).asked(sql) == 1
    assert every.add("v", data).asked(sql) == 4


def test_a_null_beside_a_concatenation_spares_its_call() -> None:
    model = bf.ScriptedModel(lambda call: "v")
    with bf.connect(model, cache=None, progress="off") as session:
        session.from_pydict({"k": ["1", None, "2"], "x": ["a", "b", "c"]}, name="t")
        rows = session.sql("SELECT k || llm_text('w', x) || '!' AS y FROM t").to_pydict()["y"]
        assert rows == ["1v!", None, "2v!"]
        assert len(model.calls) == 2
