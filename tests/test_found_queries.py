"""Queries that once came out wrong, most of them met by random ones: their rows, kept as pages."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest
from golden import check, pages
from scripts import Counted, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.planner.rules import RULES, SIMILAR_FIRST
from blendfusion.planner.run_switches import PREDICATE_ORDER

OPTIONAL = (*(rule.name for rule in RULES if not rule.required), PREDICATE_ORDER)


def answer(call: bf.Request) -> Value:
    """An answer that says the values alone, so that the pages outlive how requests are written."""
    number = crc32("|".join(v or "" for v in call.values).encode()) >> 3  # told apart better
    if call.constraint.kind == "boolean":
        return number % 2 == 0
    if call.constraint.kind == "integer":
        return number % 7
    return (call.constraint.options or "abcdefg")[
        number % len(call.constraint.options or "abcdefg")
    ]


def rows(given: str, *, rules_off: tuple[str, ...] = (), **options: object) -> tuple[str, int]:
    """The rows of the last statement after all those before it, as text, and the values asked."""
    *before, query = given.split(";\n")
    counted = Counted(answer, **options)
    for statement in before:
        counted.session.sql(statement)
    counted.session.plans.rules_off = rules_off or (SIMILAR_FIRST,)
    found = counted.rows(query)
    text = [", ".join(map(repr, row)) for row in unordered(found)]
    return "\n".join(text or ["no rows"]), len(counted.model.calls)


@pytest.mark.parametrize("page", pages("found"), ids=lambda page: page.stem)
def test_what_was_wrong_once_is_right(page: Path, update_golden: bool) -> None:
    def comes_out(given: str) -> str:
        right, _ = rows(given, planner=False)
        found, asked = rows(given)
        assert found == right
        assert rows(given, rules_off=OPTIONAL)[0] == right
        assert rows(given, first_chunk_rows=1, chunk_rows=2)[0] == right
        return f"{found}\nvalues asked: {asked}"

    check(page, comes_out, update=update_golden)
