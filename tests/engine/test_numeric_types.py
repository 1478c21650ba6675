"""Numbers of two types beside one another: a frame's types are those of its batches, and a call
beside them changes no value."""

from __future__ import annotations

import itertools
import math
import random
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from scripts import Counted, both_ways, hashed

import blendfusion as bf

KINDS = {
    **{str(kind): kind for kind in (pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64())},
    **{str(kind): kind for kind in (pa.uint8(), pa.uint32(), pa.uint64())},
    **{f"d{digits}_{scale}": pa.decimal128(digits, scale) for digits, scale in ((5, 0), (10, 2))},
    **{f"d{digits}_{scale}": pa.decimal128(digits, scale) for digits, scale in ((12, 5), (38, 10))},
    "d40_3": pa.decimal256(40, 3),
}
OF_TWO = ["a + b", "a - b", "a * b", "a / b", "a % b", "coalesce(a, b)", "greatest(a, b)", "a < b"]
OF_TWO += ["CASE WHEN id = 1 THEN a ELSE b END", "nullif(a, b)", "[a, b]", "sum(a * b)"]
OF_ONE = ["a + 1", "a / 4", "a * 1.5", "4 / a", "round(a, 2)", "sum(a)", "avg(a)", "a IN (1, 3)"]
FORMS = [
    "SELECT {} AS z, llm_text('q', k) AS v FROM t",
    "SELECT z FROM (SELECT {} AS z, k FROM t) WHERE llm_filter('all', k) ORDER BY z LIMIT 3",
    "SELECT z, count(*) AS n FROM (SELECT {} AS z, k FROM t) WHERE llm_filter('all', k) GROUP BY 1",
]
OF_GROUPS = ["SELECT {} AS z FROM t WHERE llm_filter('all', k)"]


def expressions() -> list[str]:
    pairs = itertools.product(KINDS, KINDS)
    made = [_of(form, a, b) for a, b in pairs for form in OF_TWO]
    return made + [_of(form, kind, kind) for kind in KINDS for form in OF_ONE]


def _of(form: str, a: str, b: str) -> str:
    """An expression with these columns for ``a`` and ``b``."""
    names = {"a": f'"{a}"', "b": f'"{b}"'}
    return "".join(names.get(word, word) for word in re.findall(r"\w+|\W", form))


@pytest.fixture(scope="module")
def db() -> Counted:
    columns = {"id": pa.array([1, 2]), "k": pa.array(["a", "b"])}
    for name, kind in KINDS.items():
        fine = pa.types.is_decimal(kind)
        values = [Decimal("3.5" if kind.scale else 3), Decimal(1)] if fine else [3, 1]
        columns[name] = pa.array(values, kind)
    answers = Counted(lambda call: call.question == "all" or hashed(call))
    return answers.add("t", pa.table(columns))


def _found(db: Counted, sql: str) -> tuple[pa.DataType, set[str]]:
    """The type and the values of the column z, whose type is that which its frame promises."""
    frame = db.session.sql(sql)
    rows = frame.to_arrow_table()
    assert frame.schema().types == rows.schema.types, sql
    return rows.schema.field("z").type, {*map(str, rows["z"].to_pylist())}


def test_pairs_of_types(db: Counted, cases: int) -> None:
    """Every 14th expression by default; all are ``--cases 28000``."""
    chosen = expressions()
    random.Random(1).shuffle(chosen)
    for expression in chosen[: cases * len(chosen) // 28_000 + 1]:
        try:
            plain = _found(db, f"SELECT {expression} AS z FROM t")
        except bf.BlendFusionError:
            continue  # DataFusion has no such operation
        grouped = expression.startswith(("sum(", "avg("))
        for form in OF_GROUPS if grouped else FORMS:
            sql = form.format(expression)
            assert _found(db, sql) == plain, sql


EXTREMES = [math.inf, -math.inf, 0.0, -0.0, 2.5, 1e38, None]
PIECES = [[*itertools.product(("min", "max", "sum", "avg"), repeat=2)][i::4] for i in range(4)]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("pairs", PIECES, ids=range(4))
def test_groups_of_extreme_numbers(kind: pa.DataType, pairs: list[tuple[str, str]]) -> None:
    """Tests of groups that answers decide are those of all answers. Each group has a finite number:
    the least of infinity alone is another number in DataFusion, the least of NaN any."""
    groups = [(1.5, *pair) for pair in itertools.product(EXTREMES, repeat=2)]
    values = np.array(groups, kind.to_pandas_dtype()).ravel()
    absent = np.array([value is None for group in groups for value in group])
    table = pa.table(
        {
            "g": [group for group in range(len(groups)) for _ in range(3)],
            "k": [text for i in range(len(groups)) for text in ("one", f"two {i}", f"all {i}")],
            "z": pa.array(values, kind, mask=absent),
        }
    )
    planned, plain = both_ways(
        table, lambda call: call.question == "all" or len(call.values[0]) % 2 == 1
    )
    for (a, b), test in itertools.product(pairs, ("<", ">", "=")):
        sql = (
            f"SELECT g FROM t GROUP BY g HAVING {a}(z) FILTER (WHERE llm_filter('odd', k)) {test} "
            f"{b}(z) FILTER (WHERE llm_filter('all', k)) ORDER BY g"
        )
        assert planned.rows(sql) == plain.rows(sql), sql


BYTES = {"id": [1, 2], "k": ["a", "b"]}


@pytest.fixture
def sizes() -> Counted:
    size = pa.array([1024, 10], pa.uint64())
    return Counted(hashed).add("t", pa.table({**BYTES, "size": size}))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT size / 4 AS z, llm_text('q', k) AS v FROM t",
        "SELECT size / 4 AS z FROM t",
        "SELECT z, llm_text('q', k) AS v FROM view",
        "SELECT z, v FROM made",
        "SELECT unnest([size / 4]) AS z, llm_text('q', k) AS v FROM t",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 2) "
        "SELECT size / 4 AS z, llm_text('q', k) AS v FROM t JOIN r ON r.n = t.id",
    ],
)
@pytest.mark.parametrize("planner", [True, False])
def test_bytes_to_kilobytes(sizes: Counted, sql: str, planner: bool) -> None:
    """An unsigned number of 64 bits divided by a whole number."""
    sizes.session.sql(f"SET blendfusion.planner = '{str(planner).lower()}'")
    sizes.session.sql("CREATE VIEW view AS SELECT size / 4 AS z, k FROM t")
    sizes.session.sql("CREATE TABLE made AS SELECT size / 4 AS z, llm_text('q', k) AS v FROM t")
    kind, values = _found(sizes, sql)
    assert (kind, values) == (pa.decimal128(24, 4), {"256.0000", "2.5000"})
