"""Filters of scans in Python: read from pyarrow's expressions, and evaluated as SQL means them."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import blendfusion as bf
from blendfusion.services.scans.scan_filters import columns_of, conjuncts, expression_of, tree_of

F = pc.field
TABLE = pa.table(
    {
        "i": pa.array([1, 2, None], pa.int64()),
        "x": ["a", None, "c"],
        "f": [math.nan, 1.0, None],
        "b": [True, False, None],
        "a'\nend: 'x": [1, 2, 3],
    }
)
UNKNOWN = pc.scalar(pa.scalar(None, pa.bool_()))


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ((F("i") > 5) & (F("x") == "a'\nend: 'x") | (F("f") < 1.5), [2]),
        (F("a'\nend: 'x") >= 2, [2, None]),
        (~F("x").isin(["a", "b"]), [None]),
        (F("x").isin(pa.array(["a", None])), [1]),
        (~F("x").isin(pa.array(["a", None])), []),
        (F("f") > 5, [1]),
        (F("f") == math.nan, [1]),
        (F("f") <= 1.0, [2]),
        (F("f") != 1.0, [1]),
        (F("b"), [1]),
        (~F("b"), [2]),
        (F("x").is_valid(), [1, None]),
        (F("x").is_null(), [2]),
        ((F("i") == 1) | UNKNOWN, [1]),
    ],
)
def test_a_filter_means_what_sql_means(where: pads.Expression, rows: list[int | None]) -> None:
    tree = tree_of(where)
    assert tree is not None
    found = TABLE.filter(expression_of(tree, TABLE.schema))
    assert found.column("i").to_pylist() == rows


def test_parts_and_columns() -> None:
    tree = tree_of((F("i") > 5) & ((F("x") == "a") & F("b")))
    assert tree is not None
    assert len(conjuncts(tree)) == 3
    assert columns_of(tree) == {"i", "x", "b"}


def test_an_expression_of_another_form_is_none() -> None:
    assert tree_of(F("i").cast(pa.string()) == "1") is not None
    assert tree_of(F(("b", "c"))) is None


def test_null_is_outside_of_no_list_of_a_lance_table(tmp_path: object) -> None:
    lance = pytest.importorskip("lance")
    place = f"{tmp_path}/t.lance"
    lance.write_dataset(pa.table({"x": ["a", None, "c"]}), place)
    session = bf.connect(None, cache=None)
    session.register_lance("t", place)
    found = session.sql("SELECT x FROM t WHERE x NOT IN ('a', 'b', 'd', 'e')")
    assert found.to_pylist() == [{"x": "c"}]
