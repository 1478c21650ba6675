"""UNNEST beside a table in FROM, which DataFusion cannot run, as unnest() in a select list."""

from __future__ import annotations

import pyarrow as pa
import pytest
from scripts import Counted, hashed, unordered

T = pa.table(
    {
        "id": [1, 2, 3, 4],
        "xs": [["a", "b"], [], None, ["c", None]],
        "ys": [[10], [20], [30, 31], []],
        "deep": [[["p", "q"], []], [], None, [["r"], None]],
    }
)
D = pa.table({"id": [1, 3, 4], "n": ["one", "three", "four"]})

ROWS = {
    "SELECT id, v FROM t CROSS JOIN UNNEST(t.xs) AS u(v)": [
        (1, "a"),
        (1, "b"),
        (4, "c"),
        (4, None),
    ],
    "SELECT t.id, u.v FROM t, UNNEST(xs) u(v) WHERE u.v > 'a'": [(1, "b"), (4, "c")],
    "SELECT u.v, w.v FROM t, UNNEST(t.xs) AS u(v), UNNEST(t.ys) AS w(v)": [("a", 10), ("b", 10)],
    "SELECT w.x FROM t, UNNEST(t.deep) AS u(xs2), UNNEST(u.xs2) AS w(x)": [("p",), ("q",), ("r",)],
    "SELECT id, v FROM t LEFT JOIN UNNEST(t.xs) AS u(v) ON TRUE WHERE id < 4": [
        (1, "a"),
        (1, "b"),
        (2, None),
        (3, None),
    ],
    "SELECT id, v FROM t JOIN UNNEST(t.xs) AS u(v) ON u.v <> 'a'": [(1, "b"), (4, "c")],
    "SELECT t.id, v, n FROM t CROSS JOIN LATERAL (SELECT unnest(t.xs) AS v) AS u JOIN d ON d.id = t.id": [
        (1, "a", "one"),
        (1, "b", "one"),
        (4, "c", "four"),
        (4, None, "four"),
    ],
    "SELECT d.id, y FROM t JOIN d ON d.id = t.id, UNNEST(t.ys) AS u(y)": [
        (1, 10),
        (3, 30),
        (3, 31),
    ],
    "SELECT n, y FROM t, d, UNNEST(t.ys) AS u(y) WHERE t.id = d.id": [
        ("one", 10),
        ("three", 30),
        ("three", 31),
    ],
    "SELECT t.*, u.* FROM t, UNNEST(t.ys) AS u(y) WHERE y = 20": [(2, (), (20,), (), 20)],
    "SELECT u.*, t.id FROM t, UNNEST(t.ys) AS u(y) WHERE y = 20": [(20, 2)],
    "SELECT * FROM t, d, UNNEST(t.ys) AS u(y) WHERE y = 20 AND d.id = 1": [
        (2, (), (20,), (), 1, "one", 20)
    ],
    "SELECT u.id, t.id FROM t, UNNEST(t.ys) AS u(id) WHERE u.id = 31": [(31, 3)],
    'SELECT "T"."Id", U.Y FROM (SELECT id AS "Id", ys FROM t) AS "T", UNNEST("T".ys) AS U(Y) WHERE y > 30': [
        (3, 31)
    ],
    "SELECT s.x FROM (VALUES (1, ['a', 'b']), (2, ['c'])) AS v(i, l), UNNEST(v.l) AS s(x) WHERE i = 2": [
        ("c",)
    ],
    "WITH w AS (SELECT id, ys FROM t WHERE id > 1) SELECT y FROM w, UNNEST(w.ys) AS u(y)": [
        (20,),
        (30,),
        (31,),
    ],
    "SELECT id FROM d WHERE id IN (SELECT t.id FROM t, UNNEST(t.xs) AS u(v) WHERE v = 'c')": [(4,)],
    "SELECT y FROM t, UNNEST(t.ys) AS u(y) WHERE y < 20 UNION ALL SELECT id FROM d WHERE id = 3": [
        (10,),
        (3,),
    ],
    "SELECT sum(u.y) AS s, count(*) FROM t, UNNEST(t.ys) AS u(y) GROUP BY t.id HAVING count(*) > 1": [
        (61, 2)
    ],
    "SELECT u FROM t, UNNEST(t.ys) AS u ORDER BY u.u DESC LIMIT 1": [(31,)],
    "SELECT unnest FROM t, UNNEST(t.ys) WHERE unnest = 30": [(30,)],
    "SELECT y FROM (SELECT id, ys FROM t LIMIT 1) AS s CROSS JOIN UNNEST(s.ys) AS u(y)": [(10,)],
    "SELECT 'FROM t, UNNEST(t.ys) AS u(y)' AS s FROM d WHERE id = 1": [
        ("FROM t, UNNEST(t.ys) AS u(y)",)
    ],
}


@pytest.fixture
def db() -> Counted:
    return Counted(hashed).add("t", T).add("d", D)


@pytest.mark.parametrize("sql", ROWS)
def test_an_unnest_gives_one_row_for_each_element(sql: str, db: Counted) -> None:
    assert unordered(db.rows(sql)) == unordered(list(ROWS[sql]))


def test_the_column_is_called_as_its_alias_says(db: Counted) -> None:
    names = {
        "SELECT u.v, id FROM t, UNNEST(xs) AS u(v)": ["v", "id"],
        "SELECT u.id FROM t, UNNEST(xs) AS u(id)": ["id"],
        "SELECT u.id, t.id FROM t, UNNEST(xs) AS u(id)": ["u.id", "id"],
        "SELECT u FROM t, UNNEST(xs) AS u": ["u"],
    }
    assert {sql: db.session.sql(sql).schema().names for sql in names} == names


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT d.id FROM d LEFT JOIN t ON t.id = d.id, UNNEST(t.xs) AS u(v)",
        "SELECT d.id FROM d, t, UNNEST(make_array(d.id, t.id)) AS u(v)",
        "SELECT t.id FROM t LEFT JOIN UNNEST(t.xs) AS u(v) ON u.v = 'a'",
        "SELECT t.id FROM t JOIN d ON d.id = t.id JOIN UNNEST(t.ys) AS u(y) ON u.y = d.id",
    ],
)
def test_what_would_not_be_the_same_stays_for_datafusion_to_refuse(sql: str, db: Counted) -> None:
    with pytest.raises(Exception, match=r"refers to a table beside it|not implemented"):
        db.rows(sql)
