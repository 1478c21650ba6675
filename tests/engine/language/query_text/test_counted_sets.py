"""EXCEPT ALL and INTERSECT ALL count equal rows; the rows are those of Counters in Python."""

from __future__ import annotations

import random
import warnings
from collections import Counter

import pytest
from scripts import Counted, hashed, unordered

import blendfusion as bf
from blendfusion.language.query_text.counted_sets import counted_sets

TABLE: dict[str, list[object]] = {
    "id": [*range(24)],
    "a": [None if i % 7 == 0 else i % 3 for i in range(24)],
    "b": [None if i % 5 == 0 else "xy"[i % 2] for i in range(24)],
    "x": [f"v{i}" for i in range(24)],
}
Bag = Counter[tuple[object, ...]]


@pytest.fixture
def db() -> Counted:
    return Counted(hashed).add("t", TABLE)


def _bag(first: int, end: int) -> Bag:
    return Counter(zip(TABLE["a"][first:end], TABLE["b"][first:end], strict=True))


def _once(bag: Bag) -> Bag:
    return Counter({*bag})


OPERATORS = {
    "EXCEPT ALL": lambda left, right: left - right,
    "INTERSECT ALL": lambda left, right: left & right,
    "UNION ALL": lambda left, right: left + right,
    "EXCEPT": lambda left, right: Counter({*left} - {*right}),
    "INTERSECT": lambda left, right: Counter({*left} & {*right}),
    "UNION": lambda left, right: _once(left + right),
}


@pytest.mark.parametrize("asking", [False, True])
def test_random_chains(db: Counted, asking: bool) -> None:
    """INTERSECT binds closer; the others from the left. Some sides stand in parentheses."""
    for number in range(40):
        source = random.Random(number)

        def operand(source: random.Random = source) -> tuple[str, Bag]:
            first = source.randint(0, 12)
            end = source.randint(first, 24)
            more = " AND llm_filter('q', x) IS NOT NULL" if asking and source.random() < 0.5 else ""
            return f"SELECT a, b FROM t WHERE id >= {first} AND id < {end}{more}", _bag(first, end)

        def chain(words: list[str], depth: int, source: random.Random = source) -> tuple[str, Bag]:
            terms = []
            for _ in range(source.randint(1, 3)):
                if depth and source.random() < 0.2:
                    text, bag = chain(words, depth - 1)
                    terms.append((f"({text})", bag))
                else:
                    terms.append(operand())
            text, bag = terms[0]
            for other, held in terms[1:]:
                word = source.choice(words)
                text, bag = f"{text} {word} {other}", OPERATORS[word](bag, held)
            return text, bag

        closer = [word for word in OPERATORS if word.startswith("INTERSECT")]
        text, bag = chain(closer, 0)
        for _ in range(source.randint(1, 3)):
            word = source.choice([word for word in OPERATORS if word not in closer])
            other, held = chain(closer, 1)
            text, bag = f"{text} {word} {other}", OPERATORS[word](bag, held)
        assert unordered(db.rows(text)) == unordered([*bag.elements()]), text


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT a FROM t EXCEPT ALL SELECT a FROM t WHERE id < 22 ORDER BY a", [(1,), (2,)]),
        ("SELECT a + 1 AS c FROM t WHERE id < 9 INTERSECT ALL SELECT 2 ORDER BY c LIMIT 3", [(2,)]),
        ("SELECT count(*) FROM (SELECT a FROM t EXCEPT ALL SELECT a FROM t WHERE id < 20) u", [(4,)]),
        ("WITH u AS (SELECT a FROM t WHERE id < 9) SELECT a FROM u EXCEPT ALL SELECT a FROM u "
         "WHERE a > 0", [(0,), (0,), (None,), (None,)]),
        ("SELECT a FROM t WHERE id < 3 -- first\nEXCEPT ALL SELECT 1 -- second", [(2,), (None,)]),
        ("SELECT DISTINCT a FROM t WHERE a IN (SELECT 1 UNION ALL SELECT 1 EXCEPT ALL SELECT 1)",
         [(1,)]),
        ("SELECT a FROM t WHERE a = 1 AND llm_filter('q', x) IS NOT NULL EXCEPT ALL "
         "SELECT a FROM t WHERE a = 1 AND id > 1", [(1,)]),
    ],
)  # fmt: skip
def test_rows(db: Counted, sql: str, rows: list[tuple[object, ...]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert unordered(db.rows(sql)) == unordered(rows)


def test_answers_are_counted(db: Counted) -> None:
    number = "SELECT llm_int('n', x) AS n FROM t"
    rows = db.rows(f"{number} EXCEPT ALL {number} WHERE id > 0")
    assert rows == db.rows(f"{number} WHERE id = 0")


def test_names_parameters_and_views(db: Counted) -> None:
    frame = db.session.sql(
        "SELECT a AS \"of a\", llm_map('m', x) FROM t EXCEPT ALL SELECT a, b FROM t WHERE id > $n",
        n=3,
    )
    assert frame.schema().names == ["of a", "llm_map('m', x)"]
    db.session.sql("CREATE VIEW v AS SELECT a FROM t EXCEPT ALL SELECT a FROM t WHERE id < 22")
    assert unordered(db.rows("SELECT * FROM v")) == [(1,), (2,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t WHERE EXISTS (SELECT u.a FROM t u WHERE u.a = t.id EXCEPT ALL SELECT 9)",
        "VALUES (1), (1) EXCEPT ALL VALUES (1)",
    ],
)
def test_sides_that_cannot_be_planned_by_themselves_are_warned_about(db: Counted, sql: str) -> None:
    with pytest.warns(bf.PlanWarning, match="EXCEPT ALL does not count equal rows here"):
        db.session.sql(sql).collect()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * EXCEPT (a) FROM t",
        "SELECT 'a EXCEPT ALL b' AS v FROM t",
        "SELECT a FROM t EXCEPT SELECT ALL a FROM t",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
    ],
)
def test_other_texts_stay(sql: str) -> None:
    def warn(problem: str) -> None:
        raise AssertionError(problem)

    assert counted_sets(sql, lambda common, relation: ["a"], warn) == sql


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_limit_above_is_no_problem(db: Counted, operator: str) -> None:
    """DataFusion 55 fails on a DISTINCT of a window below a LIMIT."""
    left = "SELECT a, b FROM t WHERE id < 15 AND (llm_filter('q', x) OR TRUE)"
    query = f"{left} {operator} SELECT a, b FROM t WHERE id >= 9"
    some = OPERATORS[operator](_bag(0, 15), _bag(9, 24))
    rows = db.rows(f"{query} LIMIT 2")
    assert len(rows) == 2
    assert Counter(rows) <= some
