"""IS NOT DISTINCT FROM beside equalities of joins: NULL equals NULL in the former alone."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from scripts import Counted, both_ways

ROWS = list(product((None, 1, 2), (None, 1, 2)))
"""The values of ``k`` and ``n``."""
TABLE = pa.table(
    {
        "id": pa.array(range(len(ROWS))),
        "k": pa.array([k for k, _ in ROWS], pa.int64()),
        "n": pa.array([n for _, n in ROWS], pa.int32()),
        "text": [f"text {i}" for i in range(len(ROWS))],
    }
)
EQUAL = ("x.n = y.n", "x.n + 1 = y.n + 1")
FORMS = (
    "{join} t y ON x.k IS NOT DISTINCT FROM y.k AND {equal}",
    "{join} t y ON {equal} AND x.k <=> y.k",
    "{join} t y ON x.k IS NOT DISTINCT FROM y.k WHERE {equal}",
    "{join} t y ON (x.k <=> y.k) WHERE {equal}",
)


@pytest.fixture(scope="module")
def sessions() -> tuple[Counted, Counted]:
    return both_ways(TABLE, lambda call: True)


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "FULL JOIN"])
@pytest.mark.parametrize("form", FORMS)
def test_null_equals_null_only_where_the_query_says_so(
    join: str, form: str, sessions: tuple[Counted, Counted]
) -> None:
    pairs: list[tuple[int | None, int | None]] = [
        (i, j)
        for (i, (k, n)), (j, (k2, n2)) in product(enumerate(ROWS), repeat=2)
        if k == k2 and n == n2 and n is not None
    ]
    alone = [i for i, (_, n) in enumerate(ROWS) if n is None]
    if "WHERE" not in form:
        pairs += [(i, None) for i in alone if join != "JOIN"]
        pairs += [(None, i) for i in alone if join == "FULL JOIN"]
    for equal, read in product(EQUAL, ("x.id, y.id", "x.id, y.id, llm_filter('q', x.text)")):
        query = f"SELECT {read} FROM t x {form.format(join=join, equal=equal)}"
        for session in sessions:
            assert {row[:2] for row in session.rows(query)} == set(pairs), query


@pytest.mark.parametrize("where", ["", " WHERE x.id = y.id"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT y.id FROM t x JOIN (SELECT id, {} AS v FROM t) y ON x.k IS NOT DISTINCT FROM y.v",
        "WITH y AS (SELECT id, {} AS v FROM t) SELECT y.id FROM t x JOIN y ON x.k <=> y.v",
    ],
)
def test_the_other_side_gives_the_type_of_answers(query: str, where: str) -> None:
    db = Counted(lambda call: 1).add("t", TABLE)
    assert db.rows(query.format("llm_map('q', text)") + where)
    assert {call.constraint.kind for call in db.model.calls} == {"integer"}
