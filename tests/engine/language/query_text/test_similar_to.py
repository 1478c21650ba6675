"""SIMILAR TO as SQL has it, compared with DuckDB and with Python."""

from __future__ import annotations

import random
import re

import duckdb
import pytest
from scripts import Counted, spoken

import blendfusion as bf

TEXTS = ["", "a", "b", "ab", "abc", "a.c", "a%c", "xabcx", "a\nc", "a_c", "AB", "aab", "a^c", "a$"]
PATTERNS = {
    "a": "a",
    "a%": "a.*",
    "%c": ".*c",
    "a_c": "a.c",
    "a.c": r"a\.c",
    "(a|b)": "(a|b)",
    "a|abc": "a|abc",
    "a*b": "a*b",
    "a{2}b": "a{2}b",
    "[ab]%": "[ab].*",
    "[^a]%": "[^a].*",
    "a[%]c": "a[%]c",
    r"a\%c": "a%c",
    r"a\_c": "a_c",
    "a^c": r"a\^c",
    "a$": r"a\$",
    "": "",
}
"""Each with the expression of Python that says the same of a whole text."""


def meant(expression: str) -> list[str]:
    return [t for t in TEXTS if re.fullmatch(expression, t, re.DOTALL)]


@pytest.fixture(scope="module")
def db() -> Counted:
    return Counted(spoken).add("t", {"x": [*TEXTS, None]})


def rows(db: Counted, where: str) -> list[object]:
    return sorted(x for (x,) in db.rows(f"SELECT x FROM t WHERE {where}"))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("spelling", ["SIMILAR TO", "similar  /* as SQL */ to"])
def test_patterns_are_those_of_sql(db: Counted, pattern: str, spelling: str) -> None:
    """Alone, negated, beside a call and of one, and as an expression of a frame."""
    due = sorted(meant(PATTERNS[pattern]))
    others = sorted(set(TEXTS) - set(due))
    test = f"x {spelling} '{pattern}'"
    assert rows(db, test) == due
    assert rows(db, f"x NOT {spelling} '{pattern}'") == others
    assert rows(db, f"{test} IS FALSE") == others
    # A blank text is not asked about.
    assert rows(db, f"{test} AND (x = '' OR llm_filter('holds ', x))") == due
    frame = db.session.table("t")
    assert sorted(frame.filter(test).to_pydict()["x"]) == due
    assert [yes for (yes,) in db.rows(f"SELECT {test} FROM t WHERE x IS NOT NULL")] == [
        x in due for x in TEXTS
    ]


def test_random_patterns_are_those_of_sql(db: Counted, cases: int) -> None:
    rng = random.Random(7)
    pieces = {"a": "a", "b": "b", "c": "c", "%": ".*", "_": ".", ".": r"\.", "(a|b)": "(a|b)"}
    pieces |= {"[abc]": "[abc]", "(bc)?": "(bc)?", "a+": "a+", r"\%": "%", "^": r"\^", "$": r"\$"}
    for _ in range(cases // 20):
        chosen = rng.choices([*pieces], k=rng.randint(1, 4))
        due = sorted(meant("".join(pieces[part] for part in chosen)))
        assert rows(db, f"x SIMILAR TO '{''.join(chosen)}'") == due, chosen


def test_expressions_without_wildcards_are_those_of_duckdb(db: Counted) -> None:
    for pattern in ("a", "(a|b)", "a*b", "[ab]+c", "a{2}b", "(ab|abc)"):
        asked = f"SELECT x FROM (VALUES {', '.join(f'(${n})' for n in range(1, 15))}) t(x)"
        found = duckdb.execute(f"{asked} WHERE x SIMILAR TO '{pattern}'", TEXTS).fetchall()
        assert rows(db, f"x SIMILAR TO '{pattern}'") == sorted(x for (x,) in found)


@pytest.mark.parametrize("test", ["x SIMILAR TO x", "x SIMILAR TO 'a!%' ESCAPE '!'"])
def test_other_patterns_are_refused_with_a_remedy(db: Counted, test: str) -> None:
    with pytest.raises(bf.QueryError, match="SIMILAR TO takes a pattern in quotes") as caught:
        db.session.sql(f"SELECT x FROM t WHERE {test}")
    assert "regexp_like" in str(caught.value.hint)
    assert caught.value.span is not None
    start, stop = caught.value.span
    assert f"SELECT x FROM t WHERE {test}"[start:stop].startswith("SIMILAR")
