"""What an answer looks like follows from the uses that refer to it, by SQL's scopes."""

from __future__ import annotations

import pytest
from scripts import Counted
from sqlglot.tokenizer_core import Token
from sqlglot.tokens import Tokenizer

from blendfusion.language.query_text import sqlglot_tree
from blendfusion.language.query_text.type_calls import type_calls
from blendfusion.language.query_text.typed_query import TypedQuery
from blendfusion.udfs.register.user_functions import known_ingredients

TABLES = {
    '"t"': ("id", "k", "x", "n", "b", "d"),
    '"u"': ("id", "k", "y", "m"),
    '"s"."t"': ("id", "v"),
}


def read(sql: str) -> TypedQuery:
    return type_calls(sql, known_ingredients(), columns=TABLES.get)


def kinds(sql: str) -> list[str]:
    return [call.task.constraint.kind for call in read(sql).calls]


OTHERS = {
    "another table's column": "SELECT a.n FROM (SELECT id, {} AS n FROM t) a JOIN t ON a.id = t.id "
    "WHERE t.n > 1",
    "WHERE: the base column": "SELECT {} AS n, id FROM t WHERE n > 2",
    "a qualified column": "SELECT {} AS n, sum(t.n) FROM t GROUP BY {}",
    "a predicate of another table": "SELECT a.b FROM (SELECT id, {} AS b FROM t) a "
    "JOIN t ON a.id = t.id WHERE t.b",
    "a CTE's column and a table's": "WITH w AS (SELECT k, {} AS b FROM t) "
    "SELECT w.b, count(*) FROM w JOIN t ON w.k = t.k WHERE t.b GROUP BY w.b",
    "literals of another table": "SELECT {} AS k FROM t r JOIN u ON r.id = u.id "
    "WHERE u.k IN ('RED', 'BLU') OR TRUE",
    "an outer column of that name": "SELECT q.v FROM (SELECT length(p.v) AS v FROM "
    "(SELECT {} AS v FROM t) p) q WHERE q.v > 2",
    "an outer predicate of that name": "SELECT q.v FROM (SELECT upper(p.v) = 'W' AS v FROM "
    "(SELECT {} AS v FROM t) p) q WHERE q.v",
    "another CTE": "WITH a AS (SELECT k, {} AS m FROM t), "
    "c AS (SELECT k, sum(m) AS s FROM u GROUP BY k) SELECT * FROM a JOIN c ON a.k = c.k",
    "a window's column": "SELECT {} AS n, sum(n) OVER (ORDER BY n) AS w FROM t",
    "an aggregate's argument": "SELECT {} AS n, sum(n) FROM t GROUP BY {}",
    "an aggregate's order": "SELECT array_agg(id ORDER BY n + 1) AS i, {} AS n FROM t GROUP BY x",
    "GROUP BY: the base column": "SELECT {} AS n FROM t GROUP BY n + 1, x",
    "HAVING: the base column": "SELECT {} AS n FROM t GROUP BY n, x HAVING n > 1",
    "a subquery's own column": "SELECT {} AS m FROM t WHERE EXISTS (SELECT 1 FROM u WHERE m > 3)",
    "a shadowed CTE": "WITH w AS (SELECT {} AS v FROM t) SELECT (SELECT max(v) FROM "
    "(WITH w AS (SELECT 1 AS v) SELECT v FROM w WHERE v > 0)) AS z, v FROM w",
    "the table that a CTE of its name reads": "WITH t AS (SELECT {} AS x, n FROM t WHERE n > 3) "
    "SELECT x FROM t",
    "a qualified table of that name": "WITH t AS (SELECT {} AS v FROM u) "
    "SELECT v FROM s.t WHERE v > 3",
    "another position of a union": "SELECT b FROM (SELECT {} AS a, 1 AS b FROM t UNION ALL "
    "SELECT 'x' AS b, 2 AS a FROM u) WHERE b > 1",
    "the order of a set operation": "SELECT {} AS a FROM t UNION ALL SELECT y AS b FROM u ORDER BY a",
    "another name of a list": "SELECT p FROM (SELECT {} AS v, n FROM t) AS s(p, v) WHERE v > 3",
    "a quoted name in capitals": """SELECT v FROM (SELECT {} AS "V", n AS v FROM t) WHERE v > 3""",
    "a string of that name": "SELECT v FROM (SELECT {} AS v FROM t) WHERE 'v' > 3",
    "the right side of a semi join": "SELECT n FROM t LEFT SEMI JOIN (SELECT id, {} AS n FROM t) s "
    "ON s.id = t.id WHERE n > 3",
    "a place behind columns that nobody knows": "SELECT a FROM (SELECT *, {} AS v FROM "
    "generate_series(1, 2)) AS s(a, b) WHERE a > 3",
    "a star without the column": "SELECT * FROM (SELECT * EXCLUDE (v) FROM (SELECT id, {} AS v, n "
    "AS m FROM t)) AS s(a, v) WHERE v > 3",
}

OWN = {
    "a derived table": ("SELECT v FROM (SELECT {} AS v FROM t) WHERE v > 3", "integer"),
    "its alias": ("SELECT v FROM (SELECT {} AS v FROM t) s WHERE s.v > 3", "integer"),
    "an outer join of a lateral": (
        "SELECT s.v FROM t CROSS JOIN LATERAL (SELECT {} AS v) s WHERE s.v > 3",
        "integer",
    ),
    "a CTE": ("WITH w AS (SELECT {} AS v FROM t) SELECT sum(v) FROM w", "number"),
    "a CTE of a CTE": (
        "WITH w AS (SELECT {} AS v FROM t), z AS (SELECT v AS y FROM w) SELECT y FROM z WHERE y",
        "boolean",
    ),
    "names of a CTE": (
        "WITH w(a, b) AS (SELECT id, {} FROM t) SELECT a FROM w WHERE b > 3",
        "integer",
    ),
    "names of an alias": ("SELECT b FROM (SELECT id, {} FROM t) AS s(a, b) WHERE b > 3", "integer"),
    "a recursive CTE": (
        "WITH RECURSIVE w(i, v) AS (SELECT 1, {} FROM t UNION ALL SELECT i + 1, v FROM w WHERE "
        "i < 3) SELECT i FROM w WHERE v > 3",
        "integer",
    ),
    "within a recursive CTE": (
        "WITH RECURSIVE w(i, v) AS (SELECT 1, {} FROM t UNION ALL SELECT i + 1, v FROM w WHERE "
        "v > 3) SELECT i FROM w",
        "integer",
    ),
    "a star": ("SELECT * FROM (SELECT * FROM (SELECT id, {} AS v FROM t)) WHERE v > 3", "integer"),
    "a qualified star": (
        "SELECT v FROM (SELECT a.* FROM (SELECT id, {} AS v FROM t) a JOIN u ON u.id = a.id) "
        "WHERE v > 3",
        "integer",
    ),
    "a star beside a table": (
        "SELECT z FROM (SELECT *, {} AS v FROM t) AS s(a, b, c, d, e, f, z) WHERE z > 3",
        "integer",
    ),
    "the right side of a union": (
        "SELECT a FROM (SELECT y AS a FROM u UNION ALL SELECT {} FROM t) WHERE a > 3",
        "integer",
    ),
    "the third branch": (
        "SELECT a FROM (SELECT y AS a FROM u UNION ALL SELECT k FROM u UNION SELECT {} FROM t) "
        "WHERE a > 3",
        "integer",
    ),
    "a union by name": (
        "SELECT a FROM (SELECT y AS a FROM u UNION ALL BY NAME SELECT 1 AS b, {} AS a FROM t) "
        "WHERE a > 3",
        "integer",
    ),
    "HAVING by an alias": ("SELECT k, {} AS v FROM t GROUP BY k, x HAVING v > 3", "integer"),
    "GROUP BY by an alias": ("SELECT {} AS v, count(*) FROM t GROUP BY v + 1, v", "number"),
    "ORDER BY comes by aliases first": ("SELECT {} AS n FROM t ORDER BY n + 1", "number"),
    "QUALIFY by an alias": (
        "SELECT {} AS v, row_number() OVER (ORDER BY id) r FROM t QUALIFY v > 3",
        "integer",
    ),
    "a correlated subquery": (
        "SELECT id FROM (SELECT id, {} AS v FROM t) s WHERE EXISTS (SELECT 1 FROM u WHERE u.id = s.v + 1)",
        "number",
    ),
    "a correlated subquery, without a qualifier": (
        "SELECT id FROM (SELECT id, {} AS v FROM t) s WHERE EXISTS (SELECT 1 FROM u WHERE v > 3)",
        "integer",
    ),
    "USING": (
        "SELECT v FROM (SELECT {} AS v FROM t) a JOIN (SELECT 1 AS v) b USING (v) WHERE v > 3",
        "integer",
    ),
    "joins in parentheses": (
        "SELECT 1 FROM ((SELECT id, {} AS v FROM t) a JOIN u ON u.id = a.id) WHERE a.v > 3",
        "integer",
    ),
    "other letters": ("SELECT V FROM (SELECT {} AS v FROM t) S WHERE s.V > 3", "integer"),
    "a quoted name": ('SELECT "v" FROM (SELECT {} AS V FROM t) WHERE "v" > 3', "integer"),
    "parentheses": ("SELECT v FROM (SELECT (({})) AS v FROM t) WHERE ((v)) > 3", "integer"),
    "a scalar subquery": ("SELECT id FROM u WHERE 3 < ((SELECT {} FROM t LIMIT 1))", "integer"),
    "a scalar subquery's alias": (
        "SELECT v FROM (SELECT (SELECT {} FROM t LIMIT 1) AS v FROM u) WHERE v > 3",
        "integer",
    ),
    "VALUES": ("SELECT b FROM (VALUES (1, {})) AS v(a, b) WHERE b > 3", "integer"),
    "CREATE TABLE": (
        "CREATE TABLE z AS SELECT v FROM (SELECT {} AS v FROM t) WHERE v > 3",
        "integer",
    ),
    "INSERT": ("INSERT INTO u SELECT v FROM (SELECT {} AS v FROM t) WHERE v > 3", "integer"),
    "COPY": ("COPY (SELECT v FROM (SELECT {} AS v FROM t) WHERE v > 3) TO 'a.csv'", "integer"),
    "EXPLAIN FORMAT": ("EXPLAIN FORMAT TREE SELECT 1 FROM t WHERE {} > 3", "integer"),
    "a branch of CASE": ("SELECT 1 FROM t WHERE CASE WHEN b THEN {} END > 3", "integer"),
    "the else of CASE": ("SELECT 1 FROM t WHERE CASE WHEN b THEN NULL ELSE {} END > 3", "integer"),
    "NULLIF": ("SELECT 1 FROM t WHERE NULLIF({}, 0) > 3", "integer"),
    "max": ("SELECT v FROM (SELECT max({}) AS v FROM t) WHERE v > 3", "integer"),
    "ANY": ("SELECT 1 FROM t WHERE {} > ANY (SELECT 3)", "integer"),
    "an operand of ANY": ("SELECT 1 FROM t WHERE 3 < ANY (SELECT {} FROM t)", "integer"),
    "an operand of ALL": ("SELECT 1 FROM t WHERE 3 < ALL (SELECT {} FROM t)", "integer"),
    "IN of a query": ("SELECT 1 FROM t WHERE {} IN (SELECT 3)", "integer"),
    "a parameter's type": ("PREPARE p(TEXT, INT) AS SELECT 1 FROM t WHERE {} > $2", "integer"),
    "a kept value": (
        "SELECT k.value FROM (SELECT llm_map('q', x, on_error => 'keep') AS k FROM t) "
        "WHERE k.value > 3",
        "integer",
    ),
    "a kept value by a relation": (
        "SELECT s.k.value FROM (SELECT llm_map('q', x, on_error => 'keep') AS k FROM t) s "
        "WHERE s.k.value > 3",
        "integer",
    ),
    "a kept value's alias": (
        "SELECT v FROM (SELECT k['value'] AS v FROM (SELECT llm_map('q', x, on_error => 'keep') "
        "AS k FROM t)) WHERE v > 3",
        "integer",
    ),
}

CALL = "llm_map('q', x)"


@pytest.mark.parametrize("use", OTHERS)
def test_uses_of_another_column_of_that_name_say_nothing(use: str) -> None:
    assert kinds(OTHERS[use].format(*[CALL] * 2)) == ["text"]


@pytest.mark.parametrize("use", OWN)
def test_uses_that_refer_to_the_answer_say_what_it_looks_like(use: str) -> None:
    sql, kind = OWN[use]
    assert kinds(sql.format(CALL)) == [kind]


@pytest.mark.parametrize(
    ("between", "kind"),
    [
        ("x ~ 'a|b'", "integer"),
        ("x !~* 'a|b'", "integer"),
        ("x'AB' IS NOT NULL", "integer"),
        (r"x <> E'a\nb\'c'", "integer"),
        ("x <> $$it's$$", "integer"),
        ("x <> $q$it's$q$", "integer"),
        ("[1] @> [1]", "integer"),
        ("x ^@^ $1::bar", "integer"),  # nobody knows what this is
    ],
)
def test_what_is_beside_a_call_does_not_hide_what_is_said_of_it(between: str, kind: str) -> None:
    assert kinds(f"SELECT v FROM (SELECT {CALL} AS v, x FROM t) WHERE v > 3 AND {between}") == [
        kind
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {} + 1 FROM t ORDER /* newest first */ BY id",
        "SELECT {} + 1, row_number() OVER (PARTITION /**/ BY k) FROM t",
        "SELECT {} + 1 FROM t GROUP -- by what?\nBY x",
        "SELECT /* a /* b */ c */ {} /* d */ + -- e\n 1 FROM t",
    ],
)
def test_comments_may_stand_between_any_words(sql: str) -> None:
    assert kinds(sql.format(CALL)) == ["number"]


def test_catalogue_is_asked_only_where_it_decides() -> None:
    seen: list[str] = []

    def columns(table: str) -> tuple[str, ...]:
        seen.append(table)
        return TABLES[table]

    for sql in (
        "SELECT llm_map('q', x) AS v, n FROM t WHERE n > 3 ORDER BY v",
        "SELECT v FROM (SELECT llm_map('q', x) AS v FROM t) WHERE v > 3",
        "SELECT n, llm_map('q', x) AS v FROM t GROUP BY n, x",
    ):
        type_calls(sql, known_ingredients(), columns=columns)
    assert seen == []
    type_calls(
        "SELECT llm_map('q', x) AS v FROM t GROUP BY v", known_ingredients(), columns=columns
    )
    assert seen == ['"t"']


# --- NULLS LAST ------------------------------------------------------------------------------------

ORDERS = {
    "SELECT id, n FROM t WHERE EXISTS (SELECT llm_int('q', y) AS n FROM u) ORDER BY n DESC": 0,
    "SELECT row_number() OVER (ORDER BY n DESC) AS r, llm_text('w', x) AS n FROM t": 0,
    "SELECT array_agg(id ORDER BY n DESC) AS ids, llm_qa('q', x) AS n FROM t": 0,
    "SELECT llm_int('q', x) AS n, t.n AS m FROM t ORDER BY m DESC": 0,
    "SELECT s.n FROM (SELECT llm_int('q', x) AS n FROM t) s, t ORDER BY t.n DESC": 0,
    "SELECT llm_int('q', x) AS v FROM t ORDER BY v DESC": 1,
    "SELECT llm_int('q', x) AS v FROM t ORDER BY v DESC NULLS FIRST": 0,
    "SELECT llm_int('q', x) AS v FROM t ORDER BY v ASC, id DESC": 0,
    "SELECT llm_int('q', x) AS v FROM t ORDER BY 1 DESC": 1,
    "SELECT llm_int('q', x) AS v, id FROM t ORDER BY 2 DESC": 0,
    "SELECT llm_int('q', x) + 1 AS v FROM t ORDER BY -v DESC, id DESC": 1,
    "SELECT * FROM (SELECT llm_int('q', x) + 1 AS v FROM t) ORDER BY v DESC": 1,
    "SELECT rank() OVER (ORDER BY v DESC) FROM (SELECT llm_int('q', x) AS v FROM t)": 1,
    "SELECT rank() OVER z AS r FROM t WINDOW z AS (ORDER BY llm_int('q', x)) ORDER BY r DESC": 1,
    "SELECT rank() OVER z AS r, llm_int('q', x) AS v FROM t WINDOW y AS (ORDER BY llm_int('q', x)), "
    "z AS (ORDER BY id) ORDER BY r DESC": 0,
    "SELECT (SELECT max(m) FROM u WHERE llm_filter('q', y)) AS v, id FROM t ORDER BY v DESC": 0,
    "SELECT (SELECT max(llm_int('q', y)) FROM u) AS v, id FROM t ORDER BY v DESC": 1,
    "SELECT id FROM t ORDER BY id IN (SELECT m FROM u WHERE llm_filter('q', y)) DESC": 0,
    "SELECT y AS a FROM u UNION ALL SELECT llm_text('q', x) FROM t ORDER BY a DESC": 1,
    "SELECT id FROM t ORDER BY llm_int('q', x) DESC, id DESC": 1,
    "SELECT llm_qa('q', x ORDER BY n DESC) FROM t": 0,
    "SELECT llm_qa('q', x ORDER BY llm_int('q', x) DESC) FROM t": 1,
    "SELECT id FROM t ORDER BY llm_int('q', x) DESC, x ^@^ 'a'": 1,
}


@pytest.mark.parametrize("sql", ORDERS)
def test_nulls_come_last_where_an_answer_is_sorted_by(sql: str) -> None:
    assert read(sql).sql.count(" NULLS LAST") == ORDERS[sql]


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        (
            "SELECT id, n FROM t WHERE EXISTS (SELECT llm_int('q', u.y) AS n FROM u) ORDER BY n DESC",
            "SELECT id, n FROM t ORDER BY n DESC",
        ),
        (
            "SELECT id, row_number() OVER (ORDER BY n DESC) AS r FROM (SELECT id, n, x FROM t) "
            "WHERE llm_text('w', x) IS NOT NULL OR TRUE",
            "SELECT id, row_number() OVER (ORDER BY n DESC) AS r FROM t",
        ),
    ],
)
def test_ordinary_columns_sort_as_datafusion_sorts_them(sql: str, plain: str) -> None:
    counted = Counted(lambda call: 1)
    counted.session.from_pydict(
        {"id": [1, 2, 3], "n": [1, None, 3], "x": ["a", None, "c"]}, name="t"
    )
    counted.session.from_pydict({"y": ["a"]}, name="u")
    assert counted.rows(sql) == counted.rows(plain)


def test_explain_names_what_says_nothing_of_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlglot_tree, "_operators", lambda tokens: tokens)  # which reads no ~
    counted = Counted(lambda call: 1).add("t", {"id": [1], "x": ["a"]})
    sql = "SELECT id FROM t WHERE llm_map('q', x) > 3 AND x  ~ 'a|b'"
    assert kinds(sql) == ["integer"]
    assert read(sql).unread == ("x ~ 'a|b'",)
    plan = counted.session.sql(f"EXPLAIN {sql}").to_pydict()["plan"]
    assert plan[-1] == "Not read for the types of answers: x ~ 'a|b'"


def test_a_query_is_tokenised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(lambda call: 1).add("t", {"id": [1], "x": ["a"], "n": [1]})
    scanned: list[str] = []
    scan = Tokenizer.tokenize

    def counting(self: Tokenizer, sql: str) -> list[Token]:
        scanned.append(sql)
        return scan(self, sql)

    monkeypatch.setattr(Tokenizer, "tokenize", counting)
    for sql in (
        "SELECT llm_map('q', x) + 1 AS v, id /* why? */ FROM t WHERE n > 0 ORDER -- first\n BY v DESC",
        "WITH w AS (SELECT llm_int('q', x) AS v FROM t) SELECT v, count(*) FROM w GROUP BY v",
        "SELECT id FROM t WHERE llm_map('q', x) IN ('AB', 'CD') AND llm_filter('r', x)",
    ):
        scanned.clear()
        counted.session.sql(sql)
        assert len(scanned) == 1, scanned
