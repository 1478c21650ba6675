"""Decimals as answers: money is exact, in fields, in maps and behind casts."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.models.constraints.constraint import holds, regex_of
from blendfusion.types import Constraint
from blendfusion.udfs.declare.returns import constraint_named, type_name
from blendfusion.udfs.declare.struct_schema import fields_of, schema_text, text_of


def session(answer: object, **options: object) -> bf.Session:
    model = bf.ScriptedModel(lambda call: answer)
    made = bf.connect(model, cache=None, progress="off", **options)  # type: ignore[arg-type]
    made.from_pydict({"x": ["a", "b", None]}, name="t")
    return made


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize(
    ("call", "answer", "kind", "value"),
    [
        ("llm_map('q', x, returns => 'decimal(10,2)')", "675.80", (10, 2), "675.80"),
        ("llm_map('q', x, returns => 'NUMERIC(10, 2)')", 0.1, (10, 2), "0.10"),
        ("llm_map('q', x, returns => 'decimal(5)')", -7, (5, 0), "-7"),
        ("CAST(llm_map('q', x) AS DECIMAL(10, 2))", 675.8, (10, 2), "675.80"),
        (
            "llm_extract(x, 'amount DECIMAL(10, 2)', evidence => false)['amount']",
            {"amount": 19.99},
            (10, 2),
            "19.99",
        ),
        ("llm_extract(x, 'a NUMERIC(12,3)', evidence => false).a", {"a": 1}, (12, 3), "1.000"),
        (
            "llm_extract(x, 'a DECIMAL(6,2)[]', evidence => false).a[2]",
            {"a": [1, 2.5]},
            (6, 2),
            "2.50",
        ),
        (
            "llm_extract(x, 'a STRUCT(b DECIMAL(4,1))', evidence => false).a.b",
            {"a": {"b": 0.3}},
            (4, 1),
            "0.3",
        ),
    ],
)
def test_a_decimal_has_its_type_and_all_its_digits(
    call: str, answer: object, kind: tuple[int, int], value: str, planner: bool
) -> None:
    rows = session(answer, planner=planner).sql(f"SELECT {call} AS v FROM t").to_arrow_table()
    assert rows.schema.field("v").type == pa.decimal128(*kind)
    assert rows["v"].to_pylist() == [Decimal(value), Decimal(value), None]


def test_sums_of_decimals_are_exact() -> None:
    made = session(0.1)
    made.from_pydict({"x": [f"text {i}" for i in range(300)]}, name="many")
    query = "SELECT sum(llm_map('q', x, returns => 'decimal(10,2)')) AS s FROM many"
    assert made.sql(query).to_pydict() == {"s": [Decimal("30.00")]}


def test_an_answer_with_more_digits_fails() -> None:
    """It is not rounded: what is stored was said."""
    rows = session("1.005").sql("SELECT llm_map('q', x, returns => 'decimal(10,2)') AS v FROM t")
    with pytest.warns(UserWarning, match="no valid answer"):
        assert rows.to_pydict() == {"v": [None, None, None]}


@pytest.mark.parametrize("precision", range(1, 39))
def test_the_pattern_of_each_decimal_admits_its_numbers_alone(precision: int) -> None:
    for scale in range(precision + 1):
        constraint = constraint_named(f"decimal({precision},{scale})")
        assert constraint == Constraint("number", digits=(precision, scale))
        assert constraint_named(type_name(constraint)) == constraint
        whole, behind = min(precision - scale, 15), min(scale, 6)
        largest = ("9" * whole or "0") + ("." + "9" * behind if behind else "")
        for text in (largest, f"-{largest}", "0"):
            assert holds(constraint, text)
        assert not holds(constraint, f"1{largest}")
        assert not holds(constraint, largest + "9" if "." in largest else largest + ".5")
        assert re.fullmatch(regex_of(constraint), largest)


@pytest.mark.parametrize("schema", ["a DECIMAL(39,2)", "a DECIMAL(2,3)", "a DECIMAL(0)"])
def test_what_is_no_decimal_is_an_error_that_shows_one(schema: str) -> None:
    with pytest.raises(bf.ArgumentError, match=r"Write DECIMAL\(10, 2\)"):
        fields_of(schema)


def test_schemas_of_every_kind_keep_the_digits() -> None:
    (field,) = fields_of("amount DECIMAL(10,2) COMMENT 'in euros'")
    assert schema_text((field,)) == "amount DECIMAL(10, 2) COMMENT 'in euros'"
    assert fields_of(schema_text((field,))) == (field,)
    arrow = pa.schema([("amount", pa.decimal128(10, 2))])
    assert text_of(arrow) == "amount DECIMAL(10, 2)"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, count(DISTINCT d) AS n FROM t GROUP BY k HAVING sum(d) > 2",
        "SELECT k, count(DISTINCT k) AS n, sum(d) AS s FROM t GROUP BY k HAVING sum(d) + 1 > 3",
        "SELECT * FROM (SELECT k, count(DISTINCT d), sum(d) AS s FROM t GROUP BY k) WHERE s > 2",
        "SELECT k, count(DISTINCT d), sum(d) AS s FROM t GROUP BY k HAVING s > 2 ORDER BY s LIMIT 1",
        "SELECT k, count(DISTINCT d) FROM t WHERE llm_filter('q', x) GROUP BY k HAVING sum(d) > 2",
    ],
)
def test_a_sum_beside_distinct_values_is_compared_in_its_type(sql: str) -> None:
    """DataFusion 55 sums twice, and compares the wider type with a literal of the narrow one."""
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    values = pa.array([Decimal("1.50"), Decimal("2.50"), None], pa.decimal128(10, 2))
    session.from_arrow(pa.table({"k": [1, 1, 2], "d": values, "x": ["a", "b", "c"]}), name="t")
    table = session.sql(sql).to_arrow_table()
    assert table.column(0).to_pylist() == [1]
    if "s" in table.column_names:
        assert table.column("s").to_pylist() == [Decimal("4.00")]
        assert table.schema.field("s").type == pa.decimal128(20, 2)
