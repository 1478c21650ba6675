"""What DataFusion simplifies to something else has its own value, and conditions that read no
column hold above aggregates: alone, beside calls, without the planner, and from statements that were
prepared."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest
from datafusion import SessionContext
from scripts import hashed, unordered

import blendfusion as bf

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "n": [1, None, 3, 0, -2, 7],
        "m": pa.array([2, 3, None, -3, 6, 5], pa.int32()),
        "b": [True, False, None, True, None, False],
        "s": ["abc", "", None, "a\nb", "é", "x"],
    }
)


def sessions() -> Iterator[bf.Session]:
    for planner in (True, False):
        session = bf.connect(bf.ScriptedModel(hashed), planner=planner, progress="off")
        session.from_arrow(ROWS, name="t")
        yield session


def simplifies_nothing() -> SessionContext:
    """DataFusion without the rule that simplifies."""
    context = SessionContext()
    context.remove_optimizer_rule("simplify_expressions")
    context.from_arrow(ROWS, name="t")
    return context


class Expressions:
    """Random expressions of lists, bits and patterns."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def _one(self, *options: str) -> str:
        return self._source.choice(options)

    def _list(self) -> str:
        items = self._source.choices(("1", "3", "0", "7", "-2", "4"), k=3)
        value = self._one("n", "n", "n", "m", "n + m")
        chain = self._one(f"({value} = 1 OR {value} = 3)", f"({value} <> 1 AND {value} <> 0)")
        return self._one(*[f"{value} {self._one('IN', 'NOT IN')} ({', '.join(items)})"] * 3, chain)

    def condition(self, depth: int) -> str:
        if depth == 0:
            return self._one(*[self._list()] * 4, "b", "n > 0")
        one, other = self.condition(depth - 1), self.condition(depth - 1)
        both = f"({one} {self._one('AND', 'OR')} {other})"
        return self._one(
            *(both, both, both, f"NOT {both}", f"({both} AND NOT {both})", f"{both} IS NULL"),
            f"CASE WHEN {one} THEN {other} ELSE {self._one('b', 'false', 'NULL')} END",
            f"CASE WHEN {one} IS NOT NULL THEN {one} ELSE {other} END",
            f"s {self._one('~', '~*', '!~', '!~*')} '{self._one('.*', '', '^a', '.+')}'",
            f"regexp_like(s, '{self._one('.*', '.*', 'a')}'{self._one('', ', chr(105)')})",
        )

    def bits(self, depth: int) -> str:
        if depth == 0:
            return self._one("n", "m", "n", "1", "-3", "id")
        one, other = self.bits(depth - 1), self.bits(depth - 1)
        sign = self._one("&", "|", "^")
        return self._one(
            *(f"({one} {sign} {other})", f"({one} {sign} {one})", f"-({one} {sign} {other})"),
            *(f"({one} {sign} (- {one}))", f"({one} {sign} ({other} {self._one('&', '^')} {one}))"),
        )


@pytest.mark.parametrize("seed", range(6))
def test_expressions_keep_their_values(seed: int) -> None:
    source = random.Random(seed)
    made = Expressions(source)
    plain, ours = simplifies_nothing(), [*sessions()]
    for _ in range(10):
        condition, number = made.condition(source.choice((1, 2))), made.bits(source.choice((1, 2)))
        for query in (
            f"SELECT id, {condition} AS v FROM t",
            f"SELECT id FROM t WHERE {condition}",
            f"SELECT id, {number} AS v FROM t",
            f"SELECT count(*) FILTER (WHERE {made.condition(1)}) AS v, sum({number}) AS w FROM t",
        ):
            table = plain.sql(query).to_arrow_table()
            wanted = unordered([tuple(row.values()) for row in table.to_pylist()])
            beside = query.replace("FROM t", ", llm_filter('q', s) AS f FROM t")
            for session in ours:
                found = session.sql(query).to_pylist()
                assert unordered([tuple(row.values()) for row in found]) == wanted, query
                if "count(" not in query:
                    found = session.sql(beside).to_pylist()
                    rows = [tuple(row.values())[:-1] for row in found]
                    assert unordered(rows) == wanted, beside


CONDITIONS = ("false", "1 > 2", "random() > 2", "(SELECT max(id) FROM t) > 9", "NULL::boolean")
OF_NOTHING = {
    "SELECT count(*) AS c FROM t": 1,
    "SELECT c FROM (SELECT count(*) AS c, max(n) AS m FROM t WHERE b) AS p": 1,
    "SELECT count(*) AS c FROM t WHERE llm_filter('q', s)": 1,
    "SELECT count(*) AS c FROM t GROUP BY ROLLUP (b)": 4,
    "SELECT count(*) AS c FROM t GROUP BY GROUPING SETS ((n), ())": 7,
    "SELECT 1 AS c UNION ALL SELECT count(*) FROM t": 2,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("relation", OF_NOTHING)
def test_a_condition_without_columns_holds_above_aggregates(relation: str, condition: str) -> None:
    nulls = [(i, None) for i in range(1, 7)]
    for session in sessions():
        for text, wanted in (
            (f"SELECT t.id, q.c FROM t LEFT JOIN ({relation}) AS q ON {condition}", nulls),
            (f"SELECT t.id, q.c FROM ({relation}) AS q RIGHT JOIN t ON {condition}", nulls),
            (f"SELECT t.id, q.c FROM t LEFT JOIN ({relation}) AS q ON t.n > 0 AND {condition}", nulls),
            (f"SELECT q.c FROM ({relation}) AS q WHERE {condition}", []),
            (f"SELECT q.c FROM ({relation}) AS q WHERE NOT coalesce({condition}, false)", None),
            (f"SELECT q.c FROM ({relation}) AS q JOIN t ON {condition}", []),
            (f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM ({relation}) AS q WHERE {condition})", []),
        ):  # fmt: skip
            found = [tuple(row.values()) for row in session.sql(text).to_pylist()]
            if wanted is None:
                assert len(found) == OF_NOTHING[relation], text
            else:
                assert unordered(found) == wanted, text


PREPARED = (
    ("SELECT count(*) AS c FROM t HAVING $1 > 2", 0, 1),
    ("SELECT q.c FROM (SELECT count(*) AS c FROM t) AS q WHERE $1 > 2 AND q.c > 0", 0, 1),
    ("SELECT q.c FROM (SELECT count(*) AS c FROM t) AS q JOIN t ON $1 > 2", 0, 6),
    ("SELECT id FROM t LEFT JOIN (SELECT count(*) AS c FROM t) ON $1 > 2 WHERE c IS NULL", 6, 0),
    ("SELECT id FROM t WHERE NOT (n IN (4, 5) AND n IN ($1, 6))", 5, 5),
    ("SELECT id FROM t WHERE (n ^ n) IS NULL AND id > $1", 1, 0),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.n = t.n AND u.id > $1)", 4, 3),
    ("SELECT id FROM t WHERE llm_filter('q', s) IS NULL AND id > $1", 2, 0),
)


@pytest.mark.parametrize(("text", "of_one", "of_three"), PREPARED)
def test_a_prepared_statement_is_the_statement(text: str, of_one: int, of_three: int) -> None:
    for session in sessions():
        session.sql(f"PREPARE p AS {text}")
        for value, wanted in ((1, of_one), (3, of_three)):
            for query in (f"EXECUTE p({value})", text.replace("$1", str(value))):
                assert len(session.sql(query).to_pylist()) == wanted, query
            assert len(session.sql(text, param_values={"1": value}).to_pylist()) == wanted


HELD = "NOT (n IN (1, 2) AND n NOT IN (0, 1))"
"""NULL for n NULL, and true for all others."""
OTHERS = HELD.replace("n ", "u.n ")
NOT_CARRIED = {
    f"SELECT id, unnest([1, 2]) FROM t WHERE {HELD}": 10,
    f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id AND {OTHERS})": 5,
    f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id AND {HELD})": 5,
    f"SELECT id FROM t WHERE (SELECT count(*) FROM t AS u WHERE u.id = t.id AND {OTHERS}) = 1": 5,
    f"SELECT * FROM (SELECT count(*) FILTER (WHERE {HELD}) OVER () AS c FROM t) WHERE c = 5": 6,
    f"SELECT id FROM t QUALIFY count(*) OVER (ORDER BY id RANGE 1 PRECEDING) > 0 AND {HELD}": 5,
    "WITH RECURSIVE r AS (SELECT id, n FROM t WHERE id = 1 UNION ALL SELECT t.id, t.n FROM t "
    f"JOIN r ON t.id = r.id + 1 WHERE {HELD.replace('n ', 't.n ')}) SELECT * FROM r": 1,
    "SELECT id, unnest([1, 2]) FROM t WHERE NOT ((n = 1 OR n = 4 OR n = 9) AND (n = 5 OR n = -6))": 10,
    "SELECT id, unnest([1]) FROM t WHERE NOT (t.n IN (1, 4, 9) AND (t.n = 5 OR b OR t.n = 8))": 4,
    "SELECT id, unnest([1]) FROM t WHERE NOT ((n <> 1 AND n != 3) OR (n <> 2 AND n <> 7)) IS NULL": 5,
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id AND "
    "((n IN (1, 3) AND n IN (4)) IN (true, false)) AND n IN (1, 3, n IN (1)::int))": 3,
}


@pytest.mark.parametrize("text", NOT_CARRIED)
def test_lists_are_two_where_substrait_does_not_carry_the_plan(text: str) -> None:
    for session in sessions():
        assert len(session.sql(text).to_pylist()) == NOT_CARRIED[text]


@pytest.mark.parametrize("seed", range(4))
def test_expressions_keep_their_values_where_substrait_does_not_carry_the_plan(seed: int) -> None:
    source = random.Random(seed)
    made = Expressions(source)
    plain, ours = simplifies_nothing(), [*sessions()]
    for _ in range(8):
        condition, number = made.condition(source.choice((1, 2))), made.bits(source.choice((1, 2)))
        for value, query in (
            (number, f"SELECT id, {number} AS v, unnest([7]) AS u FROM t"),
            (condition, f"SELECT id, {condition} AS v, sum(id) OVER (ORDER BY id RANGE 1 PRECEDING) FROM t"),
            (condition, f"SELECT id, v FROM (SELECT *, unnest([7]), {condition} AS v FROM t) AS q "
             "WHERE llm_filter('q', s) IS NOT NULL OR true"),
            (number, "WITH RECURSIVE r AS (SELECT id FROM t UNION ALL SELECT id + 9 FROM r WHERE id < 0) "
             f"SELECT t.id, {number.replace('id', 't.id')} AS v FROM t JOIN r ON r.id = t.id"),
        ):  # fmt: skip
            table = plain.sql(f"SELECT id, {value} AS v FROM t").to_arrow_table()
            wanted = unordered([tuple(row.values()) for row in table.to_pylist()])
            for session in ours:
                found = [(row["id"], row["v"]) for row in session.sql(query).to_pylist()]
                assert unordered(found) == wanted, query


def test_a_prepared_statement_changes_no_setting() -> None:
    one = bf.connect(cache=None)
    one.sql("SET datafusion.optimizer.max_passes = 7")
    one.sql("PREPARE p AS SELECT $1 + 1 AS n")
    (row,) = one.sql("SHOW datafusion.optimizer.max_passes").to_pylist()
    assert row["value"] == "7"
