"""What Substrait cannot carry is run as it is, and calls around it are minimal: the same rows as
with every call evaluated by DataFusion, and exact numbers of values asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import DataFrame, SessionContext, col, lit
from datafusion import functions as f
from garbage import after_collection
from scripts import Counted, hashed, tuples, unordered

import blendfusion as bf
from blendfusion.planner.ir.opaque_names import CATALOG, QUERIES, TABLES

VECTOR = pa.list_(pa.float32(), 2)
R = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "name": ["Ann", "Bob", None, "Dan", "Ann"],
        "reviews": [["good", "bad"], [], ["fine", "good", None, "good"], None, ["bad"]],
        "Tags": [["x"], ["y", "z"], None, [], ["x", "x"]],
        "nested": [[["p"], ["q", "r"]], [], None, [["p"]], [[], None]],
        "items": [
            [{"sku": "a", "n": 1}],
            [],
            None,
            [{"sku": "b", "n": 2}],
            [{"sku": None, "n": 3}],
        ],
        "emb": pa.array([[1.0, 0.0], [0.0, 1.0], None, [3.0, 4.0], [1.0, 1.0]], VECTOR),
    }
)
D = pa.table(
    {
        "id": [1, 3, 5, 7],
        "city": ["Rome", "Oslo", "Rome", None],
        "v": ["good", "bad", "x", None],
        "vec": pa.array([[1, 2, 3], [4, 5, 6], None, [1, 2, 3]], pa.list_(pa.int32(), 3)),
        "vecs": pa.array([[[1.0, 2.0]], [], None, [[3.0, 4.0], [5.0, 6.0]]], pa.list_(VECTOR)),
        "s": pa.array(
            [
                {"e": [1.0, 2.0], "k": "a"},
                None,
                {"e": None, "k": "b"},
                {"e": [0.0, 0.0], "k": None},
            ],
            pa.struct([("e", VECTOR), ("k", pa.string())]),
        ),
    }
)

SQL = {
    # --- UNNEST in FROM
    "cross join": "SELECT r.id, one FROM r CROSS JOIN UNNEST(r.reviews) AS u(one) WHERE r.id = 3 AND llm_filter('q4', one)",
    "comma": "SELECT * FROM r, UNNEST(r.\"Tags\") AS t(tag) WHERE llm_filter('q4', tag) AND id < 5",
    "an argument without its table": "SELECT u.*, r.name FROM r CROSS JOIN UNNEST(reviews) AS u(v) WHERE llm_filter('q4', v)",
    "self join of unnested tables": "SELECT a.id, u.v, w.v FROM r a, UNNEST(a.reviews) AS u(v), r b, UNNEST(b.reviews) AS w(v) WHERE a.id = b.id AND llm_filter('q4', u.v) AND llm_filter('q2', w.v)",
    "a column named like another": "SELECT u.id, r.id FROM r, UNNEST(r.reviews) AS u(id) WHERE llm_filter('q4', u.id) ORDER BY r.id DESC, u.id LIMIT 3",
    "an alias named like a column": "SELECT v.v FROM r AS v, UNNEST(v.reviews) AS u(v) WHERE llm_filter('q4', u.v)",
    "quoted names": 'SELECT "R".ID, "U"."V" FROM R AS "R", UNNEST("R".reviews) AS "U"("V") WHERE llm_filter(\'q4\', "U"."V")',
    "two of one table": "SELECT id, a, b FROM r, UNNEST(reviews) AS x(a), UNNEST(r.\"Tags\") AS y(b) WHERE llm_filter('q4', a, b)",
    "one of another": "SELECT id, w.x FROM r, UNNEST(nested) AS u(xs), UNNEST(u.xs) AS w(x) WHERE llm_filter('q4', w.x)",
    "structs": "SELECT id, s['sku'] AS sku FROM r, UNNEST(items) AS u(s) WHERE llm_filter('q4', s['sku']) AND s['n'] > 0",
    "distinct": "SELECT DISTINCT v FROM r, UNNEST(reviews) AS u(v) WHERE llm_filter('q4', v) ORDER BY v",
    "having": "SELECT v, count(*) AS n FROM r, UNNEST(reviews) AS u(v) GROUP BY v HAVING count(*) > 1 AND llm_filter('q4', v) ORDER BY n",
    "left join": "SELECT r.id, v FROM r LEFT JOIN UNNEST(r.reviews) AS u(v) ON TRUE WHERE llm_filter('q4', r.name)",
    "lateral": "SELECT r.id, v FROM r CROSS JOIN LATERAL (SELECT unnest(r.reviews) AS v) AS u WHERE llm_filter('q4', v)",
    "window above": "SELECT id, v, row_number() OVER (PARTITION BY id ORDER BY v) AS k FROM r, UNNEST(reviews) AS u(v) WHERE llm_filter('q4', v)",
    "literals": "SELECT * FROM UNNEST(['a', 'b']) AS u(w) CROSS JOIN d WHERE llm_filter('q4', w, city)",
    "aggregate call": "SELECT id, llm_qa('qa', v) FROM r, UNNEST(reviews) AS u(v) GROUP BY id ORDER BY id",
    "case": "SELECT id, CASE WHEN id < 3 THEN llm_map('m', v) ELSE v END AS w FROM r, UNNEST(reviews) AS u(v)",
    # --- unnest() in a select list
    "derived table": "SELECT id, v, llm_map('m', v) AS m FROM (SELECT id, unnest(reviews) AS v FROM r ORDER BY id LIMIT 4 OFFSET 1) AS s WHERE v IS NOT NULL",
    "joined derived tables": "SELECT a.id, a.v, b.v FROM (SELECT id, unnest(reviews) AS v FROM r) a JOIN (SELECT id, unnest(reviews) AS v FROM r) b ON a.id = b.id AND a.v < b.v WHERE llm_filter('q4', a.v) AND llm_filter('q4', b.v)",
    "nested derived tables": "SELECT id, sku FROM (SELECT id, it['sku'] AS sku FROM (SELECT id, unnest(items) AS it FROM r) AS i) AS j WHERE llm_filter('q4', sku)",
    "IN": "SELECT id FROM d WHERE v IN (SELECT unnest(reviews) FROM r) AND llm_filter('q4', city)",
    "NOT IN": "SELECT id FROM d WHERE v NOT IN (SELECT unnest(\"Tags\") FROM r) AND llm_filter('q4', city)",
    "EXISTS": "SELECT id FROM d WHERE EXISTS (SELECT 1 FROM (SELECT id AS i, unnest(reviews) AS w FROM r) AS z WHERE z.i = d.id AND z.w = 'good') AND llm_filter('q4', city)",
    "scalar subquery": "SELECT id, (SELECT max(x) FROM (SELECT unnest(reviews) AS x FROM r) AS y) AS m FROM d WHERE llm_filter('q4', city)",
    "union below": "SELECT v FROM (SELECT unnest(reviews) AS v FROM r UNION ALL SELECT city FROM d) AS u WHERE llm_filter('q4', v)",
    "union beside": "SELECT unnest(reviews) AS v FROM r UNION ALL SELECT city FROM d WHERE llm_filter('q4', city)",
    "union distinct": "SELECT city FROM d WHERE llm_filter('q4', city) UNION SELECT unnest(reviews) FROM r ORDER BY 1",
    "except": "SELECT id, name FROM r WHERE llm_filter('q4', name) EXCEPT SELECT id, unnest(reviews) FROM r",
    "view": "SELECT s.review, d.city FROM single s JOIN d ON d.id = s.id WHERE llm_filter('q4', s.review) AND d.city = 'Rome'",
    "common table": "WITH f AS (SELECT id, unnest(reviews) AS v FROM r) SELECT id FROM f WHERE llm_filter('q4', v) INTERSECT SELECT id FROM d",
    "count above": "SELECT count(*) FROM (SELECT unnest(reviews) AS v FROM r) AS s WHERE llm_filter('q4', v)",
    # --- recursion and table functions
    "recursion": "WITH RECURSIVE c AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM c WHERE x < 20) SELECT x FROM c WHERE x % 2 = 0 AND llm_filter('q4', x)",
    "recursion with columns": "WITH RECURSIVE t(n, s) AS (SELECT id, name FROM r WHERE id < 3 UNION ALL SELECT n + 1, s FROM t WHERE n < 5) SELECT n, llm_map('m', s) FROM t WHERE n > 2",
    "series": "SELECT g.i FROM generate_series(1, 6) AS g(i) WHERE llm_filter('q4', i)",
    # --- vectors
    "vector selected": "SELECT id, emb FROM r WHERE llm_filter('q4', name)",
    "star": "SELECT * FROM r WHERE llm_filter('q4', name) AND id > 1",
    "vector not read": "SELECT id FROM r WHERE llm_filter('q4', name) ORDER BY id OFFSET 1",
    "element": "SELECT id FROM r WHERE emb[1] > 0.5 AND llm_filter('q4', name)",
    "distance": "SELECT id, array_distance(emb, [1.0, 1.0]) AS dist FROM r WHERE llm_filter('q4', name) ORDER BY dist LIMIT 2",
    "order by vector": "SELECT id FROM r WHERE emb IS NOT NULL AND llm_filter('q4', name) ORDER BY emb DESC",
    "group by vector": "SELECT emb, count(*) FROM r WHERE llm_filter('q4', name) GROUP BY emb",
    "join on vectors": "SELECT a.id, b.id FROM r a JOIN r b ON a.emb = b.emb WHERE llm_filter('q4', a.name)",
    "functions of vectors": "SELECT id, array_to_string(emb, ',') AS t, cardinality(emb) AS c, array_append(emb, 9.0) AS e FROM r WHERE llm_filter('q4', name)",
    "vectors in lists and structs": "SELECT id, vec, vecs, s FROM d WHERE llm_filter('q4', city)",
    "field of a struct": "SELECT id, s['e'] AS e, s['k'] AS k FROM d WHERE llm_filter('q4', city) AND s['k'] IS NOT NULL",
    "names swapped": "SELECT emb AS name, name AS emb FROM r WHERE llm_filter('q4', name)",
    "LEFT JOIN USING": "SELECT r.id, d.city FROM r LEFT JOIN d USING (id) WHERE llm_filter('q4', r.name)",
    "RIGHT JOIN USING": "SELECT a.name, count(*) FROM p AS a RIGHT JOIN d AS b USING (id) WHERE llm_filter('q4', b.city) GROUP BY a.name",
    "FULL JOIN USING": "SELECT r.name, d.city FROM r FULL OUTER JOIN d USING (id) WHERE llm_filter('q4', d.city) OR r.id > 3",
    "USING": "SELECT r.*, d.city FROM r JOIN d USING (id) WHERE llm_filter('q4', r.name)",
    "joins in parentheses": "SELECT id FROM (r JOIN d USING (id)) WHERE llm_filter('q4', city)",
    "whole names": "SELECT r.id FROM datafusion.public.r AS r JOIN public.d ON d.id = r.id WHERE llm_filter('q4', name)",
    "view of vectors": "SELECT id, emb FROM vectors WHERE llm_filter('q4', name)",
    "view of vectors with a call": "SELECT a.id, a.emb, d.city FROM asked a JOIN d ON d.id = a.id WHERE a.ok AND a.id > 1",
    "parquet": "SELECT id, emb FROM p WHERE llm_filter('q4', name) AND id >= 2",
    "parquet unnested": "SELECT id, v FROM p, UNNEST(p.reviews) AS u(v) WHERE id = 5 AND llm_filter('q4', v)",
    "files joined": "SELECT p.id FROM p JOIN r ON p.id = r.id WHERE llm_filter('q4', p.name) AND llm_filter('q2', r.name)",
    "lateral subquery": "SELECT d.id, x.name FROM d, LATERAL (SELECT name FROM r WHERE r.id = d.id) AS x WHERE llm_filter('q4', x.name)",
    "two subqueries": "SELECT (SELECT count(*) FROM r WHERE llm_filter('q4', name)) AS n, id FROM d WHERE llm_filter('q4', city)",
    "all at once": "WITH e AS (SELECT id, emb, name FROM r), f AS (SELECT id, unnest(reviews) AS v FROM r) SELECT e.emb, f.v FROM e JOIN f ON e.id = f.id WHERE f.v <> 'bad' AND llm_filter('q4', e.name)",
    # --- calls below
    "calls below": "SELECT id, unnest(reviews) AS v FROM r WHERE llm_filter('q4', name) AND id > 1 ORDER BY v LIMIT 5",
    "calls below, with an alias": "SELECT x.id, unnest(x.reviews) AS v FROM r AS x WHERE llm_filter('q4', x.name) OR x.id = 3",
    "calls below a vector": "SELECT id, unnest(emb) AS e FROM r WHERE llm_filter('q4', name)",
    "calls in a common table below": "WITH f AS (SELECT id, name, reviews FROM r WHERE llm_filter('q4', name)) SELECT f.id, v FROM f, UNNEST(f.reviews) AS u(v)",
    "calls below and above": "SELECT f.id, v FROM (SELECT id, name, reviews FROM r WHERE llm_filter('q4', name)) AS f, UNNEST(f.reviews) AS u(v) WHERE llm_filter('q2', v) AND f.id < 5",
    "columns of calls below": "WITH f AS (SELECT id, reviews, llm_map('m', name) AS m FROM r WHERE id < 5), g AS (SELECT id, m, unnest(reviews) AS v FROM f) SELECT m, v, llm_map('m', v) AS w FROM g WHERE m < 'f'",
    "grouped above calls below": "SELECT v, count(*) FROM (SELECT unnest(reviews) AS v FROM r WHERE llm_filter('q4', name)) AS s GROUP BY v",
    "a subquery above calls": "SELECT city FROM d WHERE v IN (SELECT unnest(reviews) FROM r WHERE llm_filter('q4', name))",
    "a branch above calls": "SELECT unnest(reviews) AS v FROM r WHERE llm_filter('q4', name) UNION ALL SELECT city FROM d WHERE llm_filter('q4', city)",
    "a part read twice": "WITH f AS (SELECT name AS n, emb, \"Tags\" FROM r WHERE llm_filter('q4', name)) SELECT a.n, b.v, a.emb FROM f a JOIN (SELECT n, unnest(\"Tags\") AS v FROM f) b ON a.n = b.n",
    "a recursion over calls": "WITH RECURSIVE g AS (SELECT id FROM r WHERE llm_filter('q4', name)), t AS (SELECT id AS n FROM g UNION ALL SELECT n + 10 FROM t WHERE n < 20) SELECT n FROM t ORDER BY n",
    "two parts": "SELECT a.v, b.v FROM (SELECT unnest(reviews) AS v FROM r WHERE llm_filter('q4', name)) a JOIN (SELECT unnest(\"Tags\") AS v FROM r WHERE llm_filter('q2', name)) b ON a.v <> b.v",
    "a union below": "SELECT unnest(reviews) AS v FROM (SELECT reviews FROM r WHERE llm_filter('q4', name) UNION ALL SELECT \"Tags\" FROM r WHERE llm_filter('q2', name)) AS s",
}  # fmt: skip

ASK = bf.llm_filter("q4", col("name"))
FRAMES: dict[str, Callable[[bf.Session], DataFrame]] = {
    "filter": lambda s: s.table("r").filter(ASK).filter(col("r.id") < lit(3)),
    "text": lambda s: s.table("r").filter("llm_filter('q4', name) AND id < 3").select("id", "emb"),
    "column": lambda s: s.table("r").with_column("m", bf.llm_int("m", col("name"))).sort("id"),
    "expressions": lambda s: s.table("r").select_exprs("emb", "llm_map('m', name)").limit(2),
    "unnest": lambda s: (
        s.table("r")
        .unnest_columns("reviews")
        .filter(bf.llm_filter("q4", col("reviews")))
        .filter(col("r.id") < lit(3))
    ),
    "unnest of two": lambda s: (
        s.table("r")
        .unnest_columns("reviews", '"Tags"', preserve_nulls=False)
        .filter(bf.llm_filter("q4", col("reviews")))
    ),
    "join": lambda s: (
        s.table("r")
        .select("id", "emb", "name")
        .join(s.table("d").select(col("id").alias("n"), "city"), left_on="id", right_on="n")
        .filter(bf.llm_filter("q4", col("name"), col("city")))
    ),
    "self join": lambda s: (
        s.table("r")
        .alias("a")
        .join_on(s.table("r").alias("b"), col("a.id") == col("b.id"))
        .filter(bf.llm_filter("q4", col("a.name")))
        .select(col("a.emb"), col("b.id"))
    ),
    "aggregate": lambda s: s.table("r").filter(ASK).aggregate("name", [f.count(lit(1))]),
    "union": lambda s: (
        s.table("r")
        .select("name")
        .filter(ASK)
        .union(s.sql("SELECT unnest(reviews) AS name FROM r"))
    ),
    "SQL below": lambda s: (
        s.sql("SELECT id, u.v FROM r, UNNEST(reviews) AS u(v)")
        .filter(bf.llm_filter("q4", col("v")))
        .filter(col("id") < lit(3))
    ),
    "SQL with a call below": lambda s: s.sql(
        "SELECT id, emb, llm_map('m', name) AS m FROM r"
    ).filter(col("m") <= lit("d")),
    "parameters": lambda s: s.sql(
        "SELECT id, emb FROM r WHERE id < $k AND llm_filter('q4', name)", param_values={"k": 3}
    ),
    "a frame in SQL": lambda s: s.sql("SELECT id, emb FROM $x WHERE id < 4", x=s.table("r")).filter(
        bf.llm_filter("q4", col("id"))
    ),
    "unnest above": lambda s: s.table("r").filter(ASK).unnest_columns("reviews").select("r.id"),
    "calls below and above unnest": lambda s: (
        s.table("r")
        .filter(ASK)
        .select("id", "reviews")
        .unnest_columns("reviews")
        .filter(bf.llm_filter("q2", col("reviews")))
    ),
    "view": lambda s: s.table("asked").filter(col("asked.ok")).filter(col("id") > lit(1)),
    "renamed": lambda s: s.table("r").with_column_renamed("emb", "e").filter(ASK).select("e"),
    "cached": lambda s: s.table("r").cache().filter(ASK).select("emb"),
    "not registered": lambda s: s.from_arrow(R).filter(ASK).select("emb", "id"),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opaque") / "r.parquet"
    pq.write_table(R, path)
    return path


def database(file: Path, **options: object) -> Counted:
    db = Counted(hashed, **options).add("r", R).add("d", D)
    db.session.register_parquet("p", file)
    db.session.sql("CREATE VIEW single AS SELECT id, unnest(reviews) AS review FROM r")
    db.session.sql("CREATE VIEW asked AS SELECT id, emb, llm_filter('q4', name) AS ok FROM r;")
    db.session.sql("CREATE VIEW vectors AS SELECT id, name, emb FROM r WHERE id < 5")
    return db


def check(planned: Counted, plain: Counted, made: Callable[[bf.Session], DataFrame]) -> None:
    """The frame is staged, has the rows and the schema of the plain one, and asks no more."""
    frame, wanted = made(planned.session), made(plain.session)
    assert isinstance(frame, bf.Frame)
    assert not frame.explain_text(estimates=False).startswith("Plain plan")
    got, want = frame.to_arrow_table(), wanted.to_arrow_table()
    assert unordered(tuples(got)) == unordered(tuples(want))
    assert got.schema == want.schema
    assert {c.values for c in planned.model.calls} <= {c.values for c in plain.model.calls}


@pytest.mark.parametrize("title", SQL)
def test_a_query_is_staged_and_has_the_rows_of_its_plain_plan(title: str, file: Path) -> None:
    check(database(file), database(file, planner=False), lambda s: s.sql(SQL[title]))


@pytest.mark.parametrize("title", FRAMES)
def test_a_frame_is_staged_and_has_the_rows_of_its_plain_plan(title: str, file: Path) -> None:
    check(database(file), database(file, planner=False), FRAMES[title])


def yes(call: bf.Request) -> bool:
    return True


def test_of_an_unnested_row_only_the_elements_up_to_the_limit_are_asked() -> None:
    db = Counted(yes).add("r", R)
    sql = (
        "SELECT r.id, one FROM r CROSS JOIN UNNEST(r.reviews) AS u(one) "
        "WHERE r.id = 3 AND llm_filter('Is it good?', one) LIMIT 1"
    )
    assert db.rows(sql) == [(3, "fine")]
    assert [call.values for call in db.model.calls] == [("fine",)]


def test_a_group_of_unnested_rows_is_asked_about_once(file: Path) -> None:
    db = database(file)
    sql = (
        "SELECT id, llm_summarize(review) FROM (SELECT r.id, unnest(r.reviews) AS review "
        "FROM r JOIN d ON r.id = d.id WHERE d.city = 'Rome') AS x GROUP BY id"
    )
    assert db.asked(sql) == 2


def test_above_a_recursion_only_rows_that_pass_the_cheap_predicates_are_asked() -> None:
    db = Counted(yes)
    sql = (
        "WITH RECURSIVE c AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM c WHERE x < 1000) "
        "SELECT x FROM c WHERE llm_filter('Is it prime?', x) AND x % 100 = 0 AND x > 500"
    )
    assert unordered(db.rows(sql)) == [(1000,), (600,), (700,), (800,), (900,)]
    assert len(db.model.calls) == 5
    db.rows(sql + " LIMIT 2")
    assert len(db.model.calls) == 5


def test_a_table_with_vectors_asks_as_a_table_without() -> None:
    n = 1000
    vectors = pa.array([[float(i), 1.0] for i in range(n)], VECTOR)
    table = pa.table({"id": range(n), "x": [f"v{i}" for i in range(n)]})
    without = Counted(yes).add("t", table)
    with_vectors = Counted(yes).add("t", table.append_column("emb", vectors))
    for sql in (
        "SELECT id FROM t WHERE llm_filter('q', x) LIMIT 3",
        "SELECT id FROM t WHERE llm_filter('q', x) AND id % 500 = 7",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE llm_filter('q', a.x) AND b.id < 4",
        "SELECT llm_map('m', x) FROM t ORDER BY id DESC LIMIT 2",
    ):
        assert with_vectors.asked(sql) == without.asked(sql)
    assert with_vectors.asked("SELECT emb FROM t WHERE emb[1] < 5 AND llm_filter('q', x)") == 5


@pytest.mark.parametrize("column", ["v", "s", "l"])
def test_a_group_of_nulls_among_vectors_ends_no_process(column: str) -> None:
    """DataFusion gives it buffers without an address, which pyarrow reads in a cast to vectors."""
    kinds = {
        "v": pa.array([[1, 2], [3, 4], None, None], VECTOR),
        "s": pa.array([{"a": [1, 2]}, {"a": [3, 4]}, {"a": None}, None], pa.struct({"a": VECTOR})),
        "l": pa.array([[[1, 2]], [None], [], None], pa.list_(VECTOR)),
    }
    with bf.connect(bf.ScriptedModel(yes), cache=None, progress="off") as session:
        session.from_arrow(pa.table({"x": list("abcd"), **kinds}), name="t")
        rows = session.sql(f"SELECT {column}, bool_or(llm_filter('q', x)) AS y FROM t GROUP BY 1")
        nulls = [row["y"] for row in rows.to_pylist() if row[column] is None]
        assert nulls == [True]


def test_calls_below_an_unnest_ask_what_the_cheap_predicates_leave() -> None:
    db = Counted(yes).add("r", R)
    sql = (
        "SELECT id, v FROM (SELECT id, unnest(reviews) AS v FROM r "
        "WHERE llm_filter('below', name) AND id < 4) AS s WHERE llm_filter('above', v) AND v < 'g'"
    )
    assert db.rows(sql) == [(1, "bad")]
    asked = [(call.question, *call.values) for call in db.model.calls]
    assert asked == [("below", "Ann"), ("below", "Bob"), ("above", "bad")]


def test_an_estimate_knows_on_which_answers_a_part_rests() -> None:
    db = Counted(yes).add("r", R)
    estimate = db.session.sql(
        "SELECT v FROM (SELECT unnest(reviews) AS v FROM r WHERE llm_filter('below', name)) AS s "
        "WHERE llm_filter('above', v)"
    ).estimate()
    assert [(op.stage, op.exact) for op in estimate.operators] == [(1, True), (2, False)]


def test_explain_says_what_runs_as_it_is_and_over_which_stage() -> None:
    db = Counted(yes).add("r", R)
    frame = db.session.sql("SELECT id, unnest(reviews) AS v FROM r WHERE llm_filter('q', name)")
    assert frame.explain_text(estimates=False).splitlines()[-3:] == [
        "Stage 2 → result",
        "  from DataFusion:",
        '    run as it is: SELECT id, unnest(reviews) AS v FROM stage 1 AS "r"',
    ]
    frame.collect()
    assert set(db.session.catalog(CATALOG).schema("stages").names()) == set()


def leaves_known(session: bf.Session) -> set[str]:
    """The names of leaves that a session could still resolve."""
    schemas = session.leaf_maker.schemas()
    return {name for schema in schemas.values() for name in schema.names()}


def test_leaves_are_gone_with_their_frame_and_never_listed(file: Path) -> None:
    db = database(file)
    frame = db.session.sql(SQL["all at once"])
    frame.collect()
    assert len(leaves_known(db.session)) == 2
    for schema in (TABLES, QUERIES):
        assert db.session.catalog(CATALOG).schema(schema).table_names == []
    assert db.session.catalog_names() == {"datafusion"}
    del frame
    assert after_collection(lambda: not leaves_known(db.session))


def test_a_view_that_was_replaced_is_the_new_one(file: Path) -> None:
    db, plain = database(file), database(file, planner=False)
    for each in (db, plain):
        each.session.sql("CREATE OR REPLACE VIEW asked AS SELECT id, emb, id > 2 AS ok FROM r")
        assert unordered(each.rows("SELECT id FROM asked WHERE ok")) == [(3,), (4,), (5,)]
    db.session.sql("DROP VIEW asked")
    made = db.session.sql("SELECT id, emb, llm_filter('q2', name) AS ok FROM r")
    db.session.register_view("asked", made)
    assert db.session.sql("SELECT id FROM asked WHERE ok").to_pylist() == (
        made.filter(col("ok")).select("id").to_pylist()
    )


def test_a_frame_sees_the_tables_that_it_was_made_over(file: Path) -> None:
    db = database(file)
    frame = db.session.sql("SELECT id FROM r WHERE llm_filter('q4', name) AND id < 3")
    before = frame.to_pylist()
    db.session.deregister_table("r")
    assert frame.to_pylist() == before


def test_frames_of_one_session_run_beside_each_other(file: Path) -> None:
    db = database(file)
    titles = ["all at once", "union beside", "two of one table", "recursion", "self join of unnested tables"]  # fmt: skip
    wanted = {title: unordered(db.rows(SQL[title])) for title in titles}
    shared = db.session.sql(SQL["two parts"])
    shared_rows = unordered(tuples(shared.to_arrow_table()))
    wrong: list[object] = []

    def run(title: str) -> None:
        try:
            for _ in range(5):
                if unordered(db.rows(SQL[title])) != wanted[title]:
                    wrong.append(title)
                if unordered(tuples(shared.to_arrow_table())) != shared_rows:
                    wrong.append("shared")
        except Exception as problem:
            wrong.append(problem)

    threads = [threading.Thread(target=run, args=(title,)) for title in titles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_unnest_beside_a_table_runs_without_calls_too(file: Path) -> None:
    db = database(file)
    sql = "SELECT r.id, u.v FROM r, UNNEST(r.reviews) AS u(v) WHERE r.id = 1 ORDER BY u.v"
    assert db.rows(sql) == [(1, "bad"), (1, "good")]


def test_what_is_wrong_with_a_query_is_said_as_ever(file: Path) -> None:
    db = database(file)
    with pytest.raises(bf.QueryError, match="unknown column 'nmae'"):
        db.session.sql("SELECT id FROM r WHERE llm_filter('q', nmae)")
    with pytest.raises(bf.QueryError, match="mbiguous"):
        db.session.sql("SELECT id FROM r, UNNEST(reviews) AS u(id) WHERE llm_filter('q', u.id)")


def test_each_part_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: 5), cache=None)
    session.from_pydict({"id": [1], "x": ["a"]}, name="t")
    frame = session.sql(
        "WITH RECURSIVE r AS (SELECT 1 AS i, id, llm_map('q', x) AS v FROM t UNION ALL "
        "SELECT i + 1, r.id, v FROM r WHERE i < 3 AND v > 3) SELECT i, id, v FROM r"
    )
    planned: list[str] = []
    plan = SessionContext.sql

    def counted(session: SessionContext, text: str, *given: Any) -> DataFrame:
        planned.append(text)
        return plan(session, text, *given)

    monkeypatch.setattr(SessionContext, "sql", counted)
    assert frame.to_pydict() == {"i": [1, 2, 3], "id": [1, 1, 1], "v": [5, 5, 5]}
    assert planned
    assert len(planned) == len(set(planned))
