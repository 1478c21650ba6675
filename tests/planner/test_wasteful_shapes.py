"""Shapes of queries that need fewer values than there are rows: the values asked, and rows that equal
those without the planner, over 300 reviews whose answers are all yes, 1, or the first label."""

from __future__ import annotations

import random
import warnings

import pytest

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

N = 300
YES, INT, TEXT = "llm_filter('q', r.x)", "llm_int('i', r.x)", "llm_text('t', r.x)"
LABEL = "llm_classify(r.x, ['a', 'b'])"
SUMS = f"SELECT k, sum({INT}) OVER (PARTITION BY k) AS s FROM r"

SHAPES: tuple[tuple[str, int], ...] = (
    # no answer makes a condition true
    (f"SELECT id FROM r WHERE {LABEL} = 'c'", 0),
    (f"SELECT id FROM r WHERE {LABEL} > 'z'", 0),
    (f"SELECT id FROM r WHERE {LABEL} LIKE 'z%'", 0),
    (f"SELECT id FROM r WHERE {LABEL} IN ('c', 'd')", 0),
    (f"SELECT id FROM r WHERE upper({LABEL}) = 'a'", 0),
    (f"SELECT id, CASE WHEN {LABEL} = 'c' THEN 1 ELSE 0 END AS v FROM r", 0),
    (f"SELECT id, CASE {LABEL} WHEN 'c' THEN 1 ELSE 0 END AS v FROM r", 0),
    (f"SELECT count(*) FILTER (WHERE {LABEL} = 'c') AS n FROM r", 0),
    (f"SELECT k, count(*) FILTER (WHERE {LABEL} = 'c') AS n FROM r GROUP BY k", 0),
    ("SELECT id FROM r WHERE llm_sentiment(r.x) = 'Positive'", 0),
    (f"SELECT id FROM r JOIN c ON {LABEL} = c.name", 0),
    (f"SELECT id FROM r WHERE {LABEL} IN (SELECT name FROM c)", 0),
    (f"SELECT id FROM r JOIN c ON {LABEL} = llm_classify(c.name, ['u', 'v'])", 0),
    (f"SELECT c.k FROM c LEFT JOIN r ON r.k = c.k AND {LABEL} = 'c'", 0),
    ("SELECT id FROM r WHERE llm_map('m', r.x, options => (SELECT name FROM c)) = 'ten'", 0),
    ("SELECT id FROM r WHERE llm_score('s', r.x) > 10", 0),
    (f"SELECT id FROM r WHERE {INT} > 5 AND {INT} < 3", 0),
    (f"SELECT id FROM r WHERE {INT} = 5 AND {INT} = 3", 0),
    (f"SELECT id FROM r WHERE {INT} BETWEEN 5 AND 3", 0),
    (f"SELECT id FROM r WHERE {TEXT} = 'a' AND {TEXT} = 'b'", 0),
    # an answer that is not needed
    (f"SELECT id, [k, {INT}][1] AS v FROM r", 0),
    (f"SELECT id, CASE WHEN {YES} THEN k ELSE k END AS v FROM r", 0),
    (f"SELECT sum(id ORDER BY {INT}) AS s FROM r", 0),
    (f"SELECT count(id ORDER BY {INT}) AS n FROM r", 0),
    (f"SELECT id, row_number() OVER (ORDER BY id, {INT}) AS n FROM r", 0),
    (f"SELECT id, count(*) AS n FROM r GROUP BY id, {TEXT}", 0),
    # rows that do not matter
    (f"SELECT id FROM r WHERE {YES} LIMIT 5 OFFSET 1000", 0),
    (f"SELECT k, sum({INT}) AS s FROM r GROUP BY GROUPING SETS ((k), ()) HAVING k = 1", 30),
    (f"SELECT * FROM ({SUMS}) AS q WHERE k IN (SELECT k FROM c WHERE name = 'one')", 30),
    (f"SELECT q.* FROM ({SUMS}) AS q JOIN c ON q.k = c.k WHERE c.name = 'one'", 30),
    (
        "SELECT c.k FROM c LEFT JOIN (SELECT k FROM s WHERE llm_filter('q', s.y)) AS z ON z.k = c.k "
        "WHERE z.k IS NULL",
        48,
    ),
    # sides of a product: the first row of one, then the other
    (f"SELECT r.id FROM r CROSS JOIN c WHERE {YES} AND NOT llm_filter('q', c.name)", 4),
    (f"SELECT r.id FROM c, r WHERE {YES} AND NOT llm_filter('q', c.name)", 3),
    (f"SELECT count(*) AS n FROM r, c WHERE {YES} AND NOT llm_filter('q', c.name)", 4),
    (f"SELECT id, {TEXT} AS t FROM r, c WHERE {YES} AND NOT llm_filter('q', c.name)", 4),
    (
        f"SELECT a.*, b.* FROM (SELECT id FROM r WHERE {YES}) AS a, (SELECT k, count(*) AS n FROM c "
        "WHERE NOT llm_filter('q', name) GROUP BY k) AS b",
        4,
    ),
    (f"SELECT r.id, d.k FROM r, c, c AS d WHERE {YES} AND NOT llm_filter('q', c.name)", 4),
    (f"SELECT r.id FROM r, c WHERE NOT {YES} AND llm_filter('q', c.name)", N),
    (f"SELECT r.id FROM r, c WHERE {YES} AND llm_filter('q', c.name)", N + 3),
    # groups by answers, of which no part can pass
    (f"SELECT {TEXT} AS t, count(*) AS n FROM r GROUP BY t HAVING count(*) > 300", 0),
    (f"SELECT k, {TEXT} AS t, max(id) AS m FROM r GROUP BY k, t HAVING max(id) > 290", 30),
    (f"SELECT k, {TEXT} AS t FROM r GROUP BY k, t HAVING 0 = min(id) AND count(*) < 9", 30),
    # a limit of an outer join, with enough pairs
    (f"SELECT count(*) AS n FROM (SELECT 1 FROM c LEFT JOIN r ON {YES} AND r.k = c.k LIMIT 2)", 2),
    (f"SELECT count(*) AS n FROM (SELECT 1 FROM r FULL JOIN c ON {YES} AND r.k = c.k LIMIT 2)", 2),
    (f"SELECT count(*) AS n FROM (SELECT 1 FROM c LEFT JOIN r ON NOT {YES} LIMIT 2)", N),
    # equal texts under two names
    (
        "SELECT count(*) AS n FROM (SELECT name AS title FROM c) AS a JOIN c AS b "
        "ON llm_classify(a.title, ['u', 'v']) = llm_classify(b.name, ['u', 'v'])",
        3,
    ),
    (f"SELECT {YES} AS f, llm_filter('q', z) AS g FROM (SELECT x, x AS z FROM r) AS r", 300),
    (f"SELECT {YES} AS f, llm_filter('q', lower(upper(r.x))) AS g FROM r", 300),
)


def _answer(call: bf.Request) -> Value:
    if call.constraint.options:
        return call.constraint.options[0]
    return {"boolean": True, "text": "t"}.get(call.constraint.kind, 1)


def _session(*, planner: bool) -> bf.Session:
    made = bf.connect(bf.ScriptedModel(_answer), cache=None, progress="off", planner=planner)
    numbers = range(N)
    made.from_pydict(
        {"id": [*numbers], "k": [i // 30 for i in numbers], "x": [f"r{i}" for i in numbers]}, "r"
    )
    made.from_pydict({"k": [0, 1, 2], "name": ["zero", "one", "two"]}, "c")
    twice = range(2 * N)
    made.from_pydict({"k": [i % 10 for i in twice], "y": [f"s{i // 3}" for i in twice]}, "s")
    return made


@pytest.mark.parametrize(("query", "most"), SHAPES)
def test_a_shape_asks_no_more_than_it_needs(query: str, most: int) -> None:
    rows = []
    for planner in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.PlanWarning)
            frame = _session(planner=planner).sql(query)
            rows.append(sorted(map(repr, frame.to_pylist())))
        assert frame.trace is not None
        if planner:
            assert frame.trace.values <= most
    assert rows[0] == rows[1]


def test_a_question_that_names_its_value_has_a_key_with_the_name() -> None:
    session = _session(planner=True)
    frame = session.sql(
        "SELECT llm_filter('Is {x} it?', x) AS f, llm_filter('Is {z} it?', z) AS g "
        "FROM (SELECT x, x AS z FROM r WHERE id < 5) AS r"
    )
    frame.collect()
    assert frame.trace is not None
    assert frame.trace.values == 10


KEYS = ("id", "k", "id % 7", "k % 3")


@pytest.mark.parametrize("seed", range(12))
def test_numbers_groups_and_sets_at_random(seed: int) -> None:
    """Variants of the shapes that look at ties and at keys: rows as without the planner."""
    chance = random.Random(seed)
    a, b = chance.sample(KEYS, 2)
    where = chance.choice(("", f" WHERE {YES}", " WHERE id % 5 = 1"))
    number = chance.choice(("row_number", "rank", "dense_rank"))
    part = chance.choice(("", f"PARTITION BY {b} "))
    top = chance.choice(("= 1", "> 0", "IN (0, 2)", "IS NULL", "< 2 OR k % 3 = 1"))
    queries = (
        f"SELECT id, {number}() OVER ({part}ORDER BY {a}, id, {INT}) AS n FROM r{where}",
        f"SELECT {a} AS a, count(*) AS n, min(id) AS m FROM r{where} GROUP BY {a}, {b}, {INT}",
        f"SELECT {a} AS a, {b} AS b, sum({INT}) AS s FROM r{where} GROUP BY ROLLUP ({a}, {b}) "
        f"HAVING {a} {top.replace('k % 3', a)}",
        f"SELECT * FROM (SELECT k % 3 AS g, id, sum({INT}) OVER (PARTITION BY k % 3 ORDER BY id) AS s "
        f"FROM r{where}) AS q WHERE g IN (SELECT k FROM c WHERE name <> 'two')",
        f"SELECT id FROM r{where or ' WHERE ' + YES} ORDER BY id LIMIT 4 OFFSET {chance.randint(0, 400)}",
        f"SELECT c.k, c.name FROM c LEFT JOIN (SELECT id AS j FROM r{where or ' WHERE ' + YES}) AS z "
        f"ON z.j = c.k * {chance.randint(1, 200)} WHERE z.j IS NULL",
    )
    for query in queries:
        planned, plain = (
            sorted(map(repr, _session(planner=planner).sql(query).to_pylist()))
            for planner in (True, False)
        )
        assert planned == plain, query
