"""IS [NOT] DISTINCT FROM beside AND and OR, compared with Python."""

from __future__ import annotations

import itertools

import pytest
from scripts import Counted, spoken

from blendfusion.language.query_text.distinct_from import distinct_from

VALUES = (True, False, None)
ROWS = [*itertools.product(VALUES, VALUES, VALUES)]
FORMS = {
    "a IS DISTINCT FROM b AND c": lambda a, b, c: both(a is not b, c),
    "a IS NOT DISTINCT FROM b OR c": lambda a, b, c: either(a is b, c),
    "c OR a IS DISTINCT FROM b": lambda a, b, c: either(c, a is not b),
    "NOT a IS DISTINCT FROM b AND c": lambda a, b, c: both(a is b, c),
    "a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM a": lambda a, b, c: a is not b and c is a,
    "CASE WHEN a IS DISTINCT FROM b OR c THEN 1 ELSE 0 END": lambda a, b, c: int(
        either(a is not b, c) is True
    ),
    "(a IS DISTINCT FROM (b AND c))": lambda a, b, c: a is not both(b, c),
    "a IS DISTINCT FROM coalesce(b, a AND c) AND c": lambda a, b, c: both(
        a is not (b if b is not None else both(a, c)), c
    ),
}


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def either(a: bool | None, b: bool | None) -> bool | None:
    return True if a is True or b is True else None if a is None or b is None else False


@pytest.mark.parametrize("form", FORMS)
def test_precedence(form: str) -> None:
    """In a list of columns, in WHERE, and beside a call."""
    a, b, c = (list(column) for column in zip(*ROWS, strict=True))
    table = {"a": a, "b": b, "c": c, "x": [f"t{i}" for i in range(len(ROWS))], "id": [*range(27)]}
    db = Counted(spoken).add("t", table)
    expected = [FORMS[form](*row) for row in ROWS]
    assert db.rows(f"SELECT {form} AS z FROM t ORDER BY id") == [(z,) for z in expected]
    kept = [(i,) for i, z in enumerate(expected) if z]
    if not form.startswith("CASE"):
        assert db.rows(f"SELECT id FROM t WHERE {form} ORDER BY id") == kept
        asking = f"SELECT id FROM t WHERE ({form}) AND llm_filter('starts with t', x) ORDER BY id"
        assert db.rows(asking) == kept
        asking = f"SELECT id FROM t WHERE llm_filter('starts with t', x) AND {form} ORDER BY id"
        assert sorted(db.rows(asking)) == kept or " OR " in form


def test_texts_that_stay() -> None:
    for text in (
        "SELECT a IS DISTINCT FROM b",
        "SELECT a IS DISTINCT FROM b, c AND d FROM t",
        "SELECT a FROM t WHERE (a IS DISTINCT FROM b) AND c",
        "SELECT DISTINCT a FROM t WHERE b AND c",
        "SELECT 'x IS DISTINCT FROM y AND z'",
    ):
        assert distinct_from(text) == text
