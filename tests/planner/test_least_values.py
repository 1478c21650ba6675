"""Each question is asked about the fewest values that can matter: shapes of joins against each
other, NULLs beside calls, and ways of storing a column."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scripts import Counted, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

N = 60


def _first_answer(call: bf.Request) -> Value:
    constraint = call.constraint
    if constraint.options:
        return constraint.options[0]
    if constraint.item is not None:
        return [constraint.item.options[0]]
    return {"integer": 1, "text": "w"}.get(constraint.kind, True)


# --- joins that need no answer beside those that do ----------------------------------------------


@pytest.fixture
def shop() -> Counted:
    """60 reviews of 6 products, of which 3 are flagged, 10 are of a recalled product, and all but 4
    are processed."""
    db = Counted(_first_answer)
    texts, skus = [f"t{i}" for i in range(N)], [f"s{i}" for i in range(N)]
    products = [i % 6 for i in range(N)]
    db.add("reviews", {"id": [*range(N)], "text": texts, "sku": skus, "product": products})
    db.add("flagged", {"review_id": [1, 2, 3]})
    db.add("recalled", {"product": [5]})
    db.add("done", {"text": texts[:-4], "sku": skus[:-4]})
    db.add("departments", {"category": ["a", "b"]})
    db.add("shelves", {"product": [*range(6)] * 2, "category": [*"abcdefghijkl"]})
    return db.add("numbers", {"v": [1, 2]})


CHEAP = [  # (a join, a predicate, the reviews that are left)
    ("", "r.id IN (SELECT review_id FROM flagged)", 3),
    ("", "EXISTS (SELECT 1 FROM flagged f WHERE f.review_id = r.id)", 3),
    ("", "r.text NOT IN (SELECT text FROM done)", 4),
    ("", "NOT EXISTS (SELECT 1 FROM done x WHERE x.text = r.text)", 4),
    ("", "NOT EXISTS (SELECT 1 FROM done x WHERE x.text = r.text AND x.sku = r.sku)", 4),
    ("", "r.id < (SELECT max(review_id) FROM flagged)", 3),
    (" JOIN flagged f ON f.review_id = r.id", "TRUE", 3),
    (" JOIN recalled f ON f.product = r.product", "TRUE", 10),
    (", flagged f", "f.review_id = r.id", 3),
    (" LEFT JOIN done x ON x.text = r.text", "x.text IS NULL", 4),
    (" LEFT JOIN flagged x ON x.review_id = r.id", "x.review_id IS NOT NULL", 3),
    (" RIGHT JOIN flagged x ON x.review_id = r.id", "TRUE", 3),
    (" LEFT SEMI JOIN flagged x ON x.review_id = r.id", "TRUE", 3),
    (" LEFT ANTI JOIN done x ON x.sku = r.sku", "TRUE", 4),
]
LABEL = "llm_classify(r.text, ['a', 'b'])"
PAIRS = "(SELECT 1 FROM departments d WHERE llm_filter('q', r.text, d.category))"
IN_NUMBERS = "llm_int('n', r.text) IN (SELECT v FROM numbers)"
COSTLY = [  # (tables, a predicate, the values of a review)
    (f"reviews r JOIN departments d ON {LABEL} = d.category", "TRUE", 1),
    (f"departments d JOIN reviews r ON {LABEL} = d.category", "TRUE", 1),
    (f"reviews r LEFT JOIN departments d ON {LABEL} = d.category", "TRUE", 1),
    (f"departments d RIGHT JOIN reviews r ON {LABEL} = d.category", "TRUE", 1),
    ("reviews r CROSS JOIN departments d", f"{LABEL} = d.category", 1),
    ("reviews r JOIN departments d ON llm_join(r.text, d.category)", "TRUE", 1),
    ("reviews r JOIN departments d ON llm_filter('q', r.text, d.category)", "TRUE", 2),
    ("reviews r", IN_NUMBERS, 1),
    ("reviews r", IN_NUMBERS.replace(" IN ", " NOT IN "), 1),
    ("reviews r", f"EXISTS {PAIRS}", 1),  # the first pair decides
    ("reviews r", f"NOT EXISTS {PAIRS}", 1),
    (f"reviews r JOIN departments d ON {LABEL} = d.category", IN_NUMBERS, 2),
    ("reviews r", "llm_filter('q', r.text)", 1),
]
BOTH = [*itertools.product(enumerate(CHEAP), enumerate(COSTLY))]


@pytest.mark.parametrize(
    ("cheap", "costly", "turned"),
    [(c, d, i % 2 == 0) for (i, c), (j, d) in BOTH if (i + 2 * j) % 5 == 0],
)
def test_cheap_joins_leave_few_values_to_those_on_answers(
    shop: Counted, cheap: tuple[str, str, int], costly: tuple[str, str, int], turned: bool
) -> None:
    (join, where, left), (tables, asking, values) = cheap, costly
    first, second = (where, asking) if turned else (asking, where)
    sql = f"SELECT r.id FROM {tables}{join} WHERE {first} AND {second}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.PlanWarning)  # of few candidates of a join by meaning
        assert shop.session.sql(sql).prepared.reason is None
        assert shop.asked(sql) == left * values


SORTED = f"{LABEL} = d.category ORDER BY r.id DESC LIMIT 3"
PAIR = "llm_filter('q', r.text, d.category)"
MATCH = "llm_join(r.text, d.category)"


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (f"reviews r LEFT JOIN departments d ON {SORTED}", 3),
        (f"departments d RIGHT JOIN reviews r ON {SORTED}", 3),
        (f"reviews r JOIN departments d ON {SORTED}", 3),
        (f"departments d JOIN reviews r ON {SORTED} OFFSET 2", 5),
        (f"reviews r LEFT JOIN departments d ON {PAIR} ORDER BY r.id, d.category LIMIT 3", 6),
        (f"reviews r LEFT JOIN departments d ON {LABEL} = d.category "
         "ORDER BY r.product, d.category, r.id LIMIT 3", 10),
        (f"reviews r WHERE {IN_NUMBERS} ORDER BY r.id LIMIT 3", 3),
        (f"reviews r LEFT JOIN flagged f ON f.review_id = r.id "
         f"LEFT JOIN departments d ON {SORTED}", 3),
        ("reviews r LEFT JOIN flagged f ON f.review_id = r.id AND llm_filter('q', r.text) "
         "ORDER BY r.id LIMIT 3", 2),
        (f"reviews r JOIN departments d ON {MATCH} ORDER BY r.id DESC, d.category LIMIT 3", 3),
        (f"reviews r JOIN departments d ON {MATCH} ORDER BY r.id DESC LIMIT 3", 3),
        (f"departments d JOIN reviews r ON {MATCH} ORDER BY r.id LIMIT 3 OFFSET 2", 5),
        ("reviews r JOIN departments d ON llm_join(r.text, d.category, many => true) "
         "ORDER BY r.id LIMIT 3", 3),
        (f"reviews r JOIN shelves d ON {MATCH} AND d.product = r.product ORDER BY r.id LIMIT 3", 3),
        (f"reviews r WHERE EXISTS {PAIRS} ORDER BY r.id DESC LIMIT 3", 3),
        (f"reviews r WHERE r.product < 3 AND EXISTS {PAIRS} ORDER BY r.id LIMIT 3", 3),
        (f"reviews r WHERE EXISTS {PAIRS} ORDER BY r.product, r.id LIMIT 11", 11),
        ("reviews r WHERE r.id IN (SELECT id FROM reviews WHERE llm_filter('q', text)) "
         "ORDER BY r.id DESC LIMIT 3", 3),
    ],
)  # fmt: skip
def test_a_sort_and_a_limit_above_a_join_on_answers(shop: Counted, sql: str, values: int) -> None:
    query = f"SELECT r.id FROM {sql}"
    warnings.simplefilter("ignore", bf.PlanWarning)  # of few candidates of a join by meaning
    assert shop.session.sql(query).prepared.reason is None
    assert shop.asked(query) == values
    if "product" not in sql:  # ties have any order
        ids = [row[0] for row in shop.rows(query)]
        first = range(N - 1, N - 4, -1) if "DESC" in sql else range(3)
        assert ids[0] == first[2 if "OFFSET" in sql else 0]


@pytest.mark.parametrize(
    ("where", "values"),
    [
        (f"r.id < 57 OR EXISTS {PAIRS}", 3),
        (f"r.id < 57 OR NOT EXISTS {PAIRS}", 3),
        (f"r.id > -1 OR EXISTS {PAIRS}", 0),
        ("r.id < 9 OR EXISTS (SELECT 1 FROM done WHERE llm_filter('q', text))", 1),
        ("r.id > -1 OR EXISTS (SELECT 1 FROM done WHERE llm_filter('q', text))", 0),
        (f"NOT (r.id < 57 AND NOT EXISTS {PAIRS}) AND r.id > 9", 47),
        (f"(r.id < 3 AND EXISTS {PAIRS}) OR (r.id = 9 AND llm_filter('p', r.text))", 4),
        (f"CASE WHEN r.id < 3 THEN EXISTS {PAIRS} ELSE r.id = 9 END", 3),
        ("r.product < 5 OR r.id IN (SELECT id FROM reviews WHERE llm_filter('q', text))", 10),
        ("r.id < 58 OR r.sku IN (SELECT llm_text('w', sku) FROM done)", 56),
        (f"r.id < 57 OR {LABEL} IN (SELECT category FROM departments)", 3),
        ("r.id < 58 OR r.id IN (SELECT id FROM reviews WHERE llm_filter('q', text)) "
         f"OR EXISTS {PAIRS}", 2),
        ("(r.id < 3 AND llm_filter('q', r.text)) OR (r.id < 2 AND llm_filter('p', r.sku))", 3),
    ],
)  # fmt: skip
def test_conditions_of_every_branch_of_an_or(shop: Counted, where: str, values: int) -> None:
    sql = f"SELECT r.id FROM reviews r WHERE {where}"
    assert shop.session.sql(sql).prepared.reason is None
    assert shop.asked(sql) == values


LAST = "(SELECT * FROM departments ORDER BY category DESC LIMIT 1)"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT r.id FROM reviews r JOIN {LAST} d ON {LABEL} = d.category ORDER BY r.id LIMIT 3",
        f"SELECT r.id FROM reviews r WHERE {LABEL} IN {LAST} ORDER BY r.id LIMIT 3",
    ],
)
def test_a_limit_of_the_other_side_decides_which_rows_have_a_partner(sql: str) -> None:
    def script(call: bf.Request) -> Value:
        return "ab"[int(call.values[0][1:]) % 2]

    db = Counted(script).add("reviews", {"id": [*range(N)], "text": [f"t{i}" for i in range(N)]})
    db.add("departments", {"category": ["a", "b"]})
    assert db.rows(sql) == [(1,), (3,), (5,)]


# --- NULL ----------------------------------------------------------------------------------------


@pytest.fixture
def nulls() -> Counted:
    db = Counted(_first_answer)
    columns: dict[str, list[object]] = {
        "id": [1, 2, 3, 4],
        "x": ["a", "b", "c", "d"],
        "y": ["e", "f", None, "h"],
        "z": ["i", None, "k", None],
        "n": [1, None, 3, 4],
    }
    db.add("t", columns)
    db.add("c", {"id": [10, 11], "v": ["a", "b"]})
    return db.add("far", {"id": [100]})


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT id FROM t WHERE llm_filter('f', y) AND llm_filter('g', z)", 2),
        ("SELECT y || llm_text('w', x) AS v FROM t", 3),
        ("SELECT llm_text('w', x) || y AS v FROM t", 3),
        ("SELECT id FROM t WHERE llm_int('n', x) > n", 3),
        ("SELECT id FROM t WHERE llm_filter('q', x) AND llm_int('n', x) < n + 1", 6),
        ("SELECT id FROM t WHERE llm_filter('q', x) AND CAST(NULL AS BOOLEAN)", 0),
        ("SELECT id FROM t WHERE llm_int('n', x) = NULL", 0),
        ("SELECT t.id FROM t JOIN c ON t.z = c.v AND llm_filter('q', t.x)", 0),
        (
            "SELECT t.id FROM t JOIN c ON llm_text('w', t.x) = llm_text('u', c.v) "
            "JOIN far ON t.n > far.id",
            0,
        ),
    ],
)
def test_no_question_that_a_null_decides(nulls: Counted, sql: str, values: int) -> None:
    assert nulls.session.sql(sql).prepared.reason is None
    assert nulls.asked(sql) == values


# --- rows that are there for sure, and relations without a row ------------------------------------

SURE = "SELECT x FROM t WHERE llm_filter('g', z) OR id <> {}"
PAIRED = "SELECT t.x FROM t JOIN c ON llm_text('w', t.x) = llm_text('u', c.v)"


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT max(CASE WHEN llm_filter('f', x) THEN 1 ELSE 0 END) AS m FROM t", 1),
        ("SELECT max(CASE WHEN llm_filter('f', x) THEN 0 ELSE 1 END) AS m FROM t", 4),
        ("SELECT min(CASE WHEN llm_filter('f', x) THEN 0 ELSE 1 END) AS m FROM t", 1),
        ("SELECT max(CASE WHEN llm_filter('f', x) THEN 1 END) AS m FROM t WHERE id > 2", 1),
        ("SELECT max(CASE WHEN llm_filter('f', y) IS NOT TRUE THEN 1 ELSE 0 END) AS m FROM t", 0),
        (
            "SELECT max(CASE WHEN llm_filter('f', x) THEN 1 ELSE 0 END) AS m FROM t "
            "WHERE llm_filter('g', z)",
            2,
        ),
        ("SELECT max(id) AS m FROM t WHERE llm_filter('f', x) OR y IS NOT NULL", 0),
        (
            "SELECT max(CASE WHEN llm_filter('f', t.x) THEN 1 ELSE 0 END) AS m "
            "FROM t JOIN c ON t.x = c.v WHERE llm_filter('g', t.y)",
            2,
        ),
        (
            "SELECT max(CASE WHEN llm_filter('f', y) THEN 1 ELSE 0 END) AS m FROM t WHERE y IS NULL",
            0,
        ),
        (f"{PAIRED} CROSS JOIN far WHERE far.id < 9 AND llm_filter('h', t.y)", 0),
        (
            "SELECT t.x FROM t FULL JOIN c ON llm_text('w', t.x) = llm_text('u', c.v) "
            "CROSS JOIN far WHERE far.id < 9",
            0,
        ),
        (
            "SELECT c.id FROM (SELECT * FROM c WHERE llm_filter('f', v)) c JOIN t ON c.v = t.x "
            "JOIN (SELECT * FROM t WHERE llm_filter('g', y)) d ON d.n = t.n AND d.id > 9",
            0,
        ),
        ("SELECT DISTINCT n > 0 AS p FROM t WHERE llm_filter('f', x) OR id = 4", 1),
        (f"SELECT x FROM t WHERE llm_filter('f', y) UNION {SURE.format(2)}", 1),
        (f"{SURE.format(2)} UNION SELECT x FROM t WHERE llm_filter('f', y)", 1),
        (f"SELECT x FROM t WHERE llm_filter('f', y) EXCEPT {SURE.format(1)}", 2),
        (f"SELECT x FROM t WHERE NOT llm_filter('f', y) INTERSECT {PAIRED}", 3),
        (f"SELECT x FROM t WHERE llm_filter('f', y) INTERSECT {PAIRED} JOIN far ON n > far.id", 0),
    ],
)
def test_no_question_about_rows_that_come_or_go_anyway(
    nulls: Counted, sql: str, values: int
) -> None:
    assert nulls.session.sql(sql).prepared.reason is None
    assert nulls.asked(sql) == values


# --- grouping sets -------------------------------------------------------------------------------

SAME_KEYS = [  # keys that are the same expression once DataFusion has simplified them
    ("ROLLUP (b IS TRUE, b = TRUE, b)", "b IS TRUE AS a, grouping(b) AS g"),
    ("ROLLUP (b = TRUE, b)", "b = TRUE AS a, b"),
    ("CUBE (b = TRUE, n, b)", "b = TRUE AS a, b, n, grouping(b = TRUE) AS g"),
    ("GROUPING SETS ((b = TRUE), (b))", "b = TRUE AS a, b"),
    ("GROUPING SETS ((b = TRUE), (b), (b = TRUE, b), (n, b))", "b = TRUE AS a, b, n"),
    ('GROUPING SETS (("b, n"), (b, n), ("b, n", b))', '"b, n", b, n'),
    ("n, CUBE (b = TRUE, b)", "b = TRUE AS a, b, n"),
    ("ROLLUP (b), CUBE (b = TRUE)", "b = TRUE AS a, b"),
    ("n + 0, 0 + n", "n + 0 AS a, 0 + n AS c"),
    ("n + 0, CUBE (0 + n)", "n + 0 AS a, 0 + n AS c"),
    ("ROLLUP (llm_filter('q', x) = TRUE, llm_filter('q', x))", "llm_filter('q', x) = TRUE AS a"),
    ("ROLLUP (b IS NOT TRUE, n)", "b IS NOT TRUE AS a, n"),  # refused if it is computed once
]


@pytest.mark.parametrize(("grouping", "shown"), SAME_KEYS)
def test_keys_of_grouping_sets_that_coincide(grouping: str, shown: str) -> None:
    columns: dict[str, list[object]] = {
        "id": [*range(6)],
        "b": [True, False, None, True, None, False],
        "n": [1, 2, 2, None, 2, 2],
        "x": [f"v{i}" for i in range(6)],
    }
    planned, plain = (Counted(_first_answer, planner=p).add("u", columns) for p in (True, False))
    source = '(SELECT *, b = TRUE AS "b, n" FROM u)'
    sql = f"""SELECT {shown}, count(*) AS c, min(id) AS m FROM {source}
              WHERE n = 2 AND llm_filter('q', x) GROUP BY {grouping}"""
    assert planned.asked(sql) == 4
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


# --- storage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT x FROM d WHERE c <> 'a' AND llm_filter('q', x) LIMIT 5", 5),
        ("SELECT x FROM d WHERE c IN ('a', 'b') AND llm_filter('q', x) LIMIT 5", 5),
        ("SELECT c, llm_qa('q', x) AS v FROM d GROUP BY c HAVING c = 'a'", 1),
        ("SELECT x FROM files WHERE c = 'a' AND llm_filter('q', x) LIMIT 5", 5),
    ],
)
def test_dictionaries_in_memory_and_in_files(sql: str, values: int, tmp_path: Path) -> None:
    letters = pa.array(["a", "b", "c", "d"] * 10).dictionary_encode()
    rows = pa.table({"x": [f"v{i}" for i in range(40)], "c": letters})
    pq.write_table(rows, tmp_path / "files.parquet")
    db = Counted(_first_answer).add("d", rows)
    db.session.register_parquet("files", str(tmp_path / "files.parquet"))
    assert db.session.sql(sql).prepared.reason is None
    assert db.asked(sql) == values


UNION = pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])])
VIEW = pa.array([[1], [2]], pa.list_view(pa.int64()))
VOID = pa.array([{"a": None}, {"a": None}], pa.struct([("a", pa.null())]))


@pytest.mark.parametrize("column", [UNION, VIEW, VOID], ids=["union", "list view", "NULL field"])
def test_types_that_guide_names_as_limits_are_warned_about(column: pa.Array) -> None:
    db = Counted(_first_answer).add("t", pa.table({"x": ["a", "b"], "c": column}))
    sql = "SELECT * FROM t WHERE llm_filter('q', x)"
    with pytest.warns(bf.PlanWarning, match="runs without the planner"):
        assert db.session.sql(sql).to_arrow_table().num_rows == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db.session.sql(sql).collect()
