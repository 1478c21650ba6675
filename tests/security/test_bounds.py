"""Texts that would crash DataFusion's parser, or keep it busy for ever, are refused."""

from __future__ import annotations

import time

import pytest
from scripts import Counted, hashed

import blendfusion as bf
from blendfusion.language.query_text.nesting_limits import MOST_CHAINED, MOST_NESTED, check_bounds


@pytest.fixture(scope="module")
def db() -> Counted:
    return Counted(hashed).add("t", {"id": [1, 2], "x": ["a", "b"]})


DEEP = {
    "NOT (": ("NOT (", ")"),
    "(": ("(", ")"),
    "[": ("[", "]"),
    "SELECT": ("(SELECT ", ")"),
    "CAST": ("CAST(", " AS INT)"),
    "llm_map": ("llm_map('q', ", ")"),
    "IN": ("1 IN (", ")"),
}


@pytest.mark.parametrize(("opened", "closed"), DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("depth", [MOST_NESTED + 1, 400, 10_000])
def test_brackets_have_a_depth(db: Counted, opened: str, closed: str, depth: int) -> None:
    for query in (
        f"SELECT\n{opened * depth}x{closed * depth} FROM t",
        f"SELECT\n{opened * depth}x",
    ):
        started = time.monotonic()
        with pytest.raises(bf.QueryError, match=r"line 2: brackets are nested more than 32 deep"):
            db.session.sql(query)
        assert time.monotonic() - started < 5


@pytest.mark.parametrize("opened", ["NOT (", "CASE WHEN ", "CAST(", "NOT (CASE WHEN ", "INTERVAL "])
def test_a_mistake_deep_inside_is_no_endless_search(db: Counted, opened: str) -> None:
    with pytest.raises(bf.QueryError, match="which cannot be found"):
        db.session.sql(f"SELECT {opened * 25} , , FROM t")


@pytest.mark.parametrize(
    "chain", ["x = 'a' AND ", "1 + ", "id::int::", "x || ", "- ", "INTERVAL ", "NOT "]
)
def test_expressions_have_a_length(db: Counted, chain: str) -> None:
    with pytest.raises(bf.QueryError, match="line 1: more than 4,000 operators in one expression"):
        db.session.sql(f"SELECT {chain * 20_000}x FROM t")


def test_a_statement_is_explained_once(db: Counted) -> None:
    for comment in ("", "/* again */", "-- again\n"):
        with pytest.raises(bf.QueryError):
            db.session.sql(f"EXPLAIN {comment}" * 20_000 + "SELECT 1")


def test_set_operations_have_a_length(db: Counted) -> None:
    with pytest.raises(bf.QueryError, match="more than 4,000 operators"):
        db.session.sql("SELECT 1 UNION ALL " * 20_000 + "SELECT 1")


def test_what_is_long_or_deep_as_people_write_it_runs(db: Counted) -> None:
    many = ", ".join(str(n) for n in range(20_000))
    assert db.rows(f"SELECT id FROM t WHERE id IN ({many}) ORDER BY id") == [(1,), (2,)]
    rows = ", ".join(f"({n}, 'a')" for n in range(5_000))
    assert db.number(f"SELECT count(*) FROM (VALUES {rows}) AS v(n, x)") == 5_000
    case = "CASE WHEN id = 3 THEN 1 ELSE " * 20 + "0" + " END" * 20
    assert db.rows(f"SELECT {case} FROM t WHERE llm_filter('q', x) OR id > 0") == [(0,), (0,)]
    deep = "(" * 20 + "id" + ")" * 20
    assert db.number(f"SELECT max({deep}) FROM t") == 2
    check_bounds(" OR ".join(f"x = '{n}'" for n in range(MOST_CHAINED // 2)))


def test_brackets_in_texts_and_comments_do_not_count(db: Counted) -> None:
    brackets = "(" * 200
    assert db.rows(f"SELECT '{brackets}' /* {brackets} */ FROM t LIMIT 1 -- {brackets}") == [
        (brackets,)
    ]


def test_verbs_of_frames_have_the_same_bounds(db: Counted) -> None:
    with pytest.raises(bf.QueryError, match="brackets are nested"):
        db.session.table("t").filter("NOT (" * 60 + "x = 'a'" + ")" * 60)
