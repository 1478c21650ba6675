"""Queries that somebody might write over the example tables: their EXPLAIN, and what they ask."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest
from golden import check, pages
from scripts import Counted, tuples, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

EXAMPLES = Path(__file__).parents[2] / "examples"


def answer(call: bf.Request) -> Value:
    """Any answer, which the question and the values alone decide; a third of the yes/no ones is
    yes."""
    number = crc32("|".join([call.question, *map(str, call.values)]).encode())
    if call.constraint.kind == "boolean":
        return number % 3 == 0
    if call.constraint.kind == "integer":
        return number % 30
    if call.constraint.kind == "choice":
        return call.constraint.options[number % len(call.constraint.options)]
    if call.constraint.kind == "score":
        return number % 11
    if call.constraint.kind == "struct":
        return {f.name: f"{f.name} {number % 10}" for f in call.constraint.fields[:1]}
    return f"answer {number % 10}"


def example_tables(**options: object) -> Counted:
    counted = Counted(answer, **options)
    for file in sorted(EXAMPLES.glob("*.csv")):
        counted.session.register_csv(file.stem, file)
    return counted


@pytest.mark.parametrize("page", pages("queries"), ids=lambda page: page.stem)
def test_queries_look_like_their_page(page: Path, update_golden: bool) -> None:
    def comes_out(sql: str) -> str:
        # What a session has measured is part of its estimates: each query has its own.
        planned, plain = example_tables(), example_tables(planner=False)
        *before, query = sql.split(";")
        for statement in before:
            planned.session.sql(statement)
            plain.session.sql(statement)
        frame = planned.session.sql(query)
        text = frame.explain_text()
        rows = tuples(frame.to_arrow_table())
        assert unordered(rows) == unordered(plain.rows(query))
        return f"{text}\nvalues asked: {planned.asked(query)}, rows: {len(rows)}"

    check(page, comes_out, update=update_golden)
