"""Bounds of functions of a number hold for what DataFusion computes, and tell which conditions no
answer can meet."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.run.execution.number_functions import NUMBER_FUNCTIONS

SPELT = {"negate": "-x"} | {
    name: f"{name}(x)" for name in NUMBER_FUNCTIONS if name not in ("negate", "power")
}
WITH_CONSTANTS = {
    f"{name}(x, {constant})": (name, float(constant))
    for name, constants in {
        "round": (0, 1, 2, 5, -1),
        "trunc": (1,),
        "power": (0.5, 2, 3, -1),
    }.items()
    for constant in constants
}
EVERY = {text: (name, 0.0) for name, text in SPELT.items()} | WITH_CONSTANTS


@pytest.mark.parametrize("text", EVERY)
def test_values_lie_between_the_bounds(text: str, cases: int) -> None:
    name, constant = EVERY[text]
    draw = random.Random(text)
    for _ in range(max(8, cases // 25)):
        size = draw.choice((1.0, 1.0, 10.0, 1e6, 1e-3))
        low, high = sorted(
            round(draw.uniform(-size, size) + draw.choice((0, size)), draw.randint(0, 4))
            for _ in range(2)
        )
        tenths = [math.floor(low * 10) / 10 + n / 20 for n in range(40)]
        tried = [low, high, 0.0, -0.0, *tenths, *(draw.uniform(low, high) for _ in range(40))]
        numbers = [number for number in tried if low <= number <= high]
        context = SessionContext()
        context.from_arrow(pa.table({"x": pa.array(numbers, pa.float64())}), name="t")
        ends = np.array([low]), np.array([high])
        with np.errstate(all="ignore"):
            (least,), (most,) = NUMBER_FUNCTIONS[name](*ends, constant)
        try:
            values = context.sql(f"SELECT {text} AS y FROM t").to_pydict()["y"]
        except Exception:  # of a number for which it fails
            assert not math.isfinite(least), (low, high)
            continue
        if math.isfinite(least) and math.isfinite(most):
            assert all(least <= value <= most for value in values), (low, high, least, most)
            continue
        unknown = (name == "round" and constant < 0) or (name in ("power", "trunc") and constant)
        assert unknown or not all(map(math.isfinite, values)) or min(low, -high) <= 0


P = "llm_probability('Is it?', x)"
ALL = "llm_classify(x, ['a', 'b'], confidence => 'all')"
NEVER = (
    f"abs({P}) > 1.5",
    f"round({P}) > 1",
    f"round({P}, 1) > 1.05",
    f"ceil({P}) >= 2",
    f"abs({P} - 0.5) > 0.6",
    f"sqrt({P}) > 1.1",
    f"power({P}, 2) > 1.1",
    f"-{P} > 0.1",
    f"round({P} * 100) > 101",
    f"CAST(round({P} * 10) AS BIGINT) = 11",
    f"nullif({P}, 0) > 1.5",
    f"exp({P}) > 3 OR trunc({P}) < -1",
    "abs(llm_score('How much?', x)) > 10.5",
    f"{ALL}['a'] > 1.5",
    f"map_extract({ALL}, 'a')[1] > 1",
    f"{ALL}['c'] > 0.5",
    f"abs({ALL}['a'] - {ALL}['b']) > 1.1",
    f"greatest({P}, {ALL}['a']) > 1.5",
)
SOME = (
    (f"abs({P}) > n", 1),
    (f"round({P}, 1) >= n", 2),
    (f"{ALL}['a'] > n", 1),
    (f"1 - {ALL}['a'] > n", 1),
)
MAYBE = (f"round({P}) >= 1", f"abs({P} - 0.5) > 0.4", f"ln({P}) < 0", f"{ALL}['a'] >= 1")


def _asked(condition: str) -> int:
    """The values that a condition asks about, of ten, whose rows are those of a plain plan."""
    rows = []
    for planner in (True, False):
        model = bf.ScriptedModel(
            lambda call: {"a": 0.6, "b": 0.4} if call.constraint.kind == "choice" else {True: 0.7}
        )
        session = bf.connect(model, cache=None, progress="off", planner=planner)
        texts = [f"text {n}" for n in range(10)]
        session.from_pydict({"x": texts, "n": [float(n) for n in range(10)]}, "t")
        frame = session.sql(f"SELECT x FROM t WHERE {condition}")
        rows.append((frame.to_pylist(), frame.trace.values))
    (planned, asked), (plain, _) = rows
    assert planned == plain
    return asked


@pytest.mark.filterwarnings("ignore::blendfusion.PlanWarning")
def test_what_no_answer_meets_asks_nothing() -> None:
    for condition in NEVER:
        if "llm_score" not in condition:
            assert _asked(condition) == 0, condition
    for condition, asked in SOME:
        assert _asked(condition) == asked, condition
    for condition in MAYBE:
        assert _asked(condition) == 10, condition


@pytest.mark.parametrize("condition", [NEVER[0], NEVER[12], NEVER[13], NEVER[15]])
def test_a_warning_says_so(condition: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_pydict({"x": ["a text"]}, "t")
    with pytest.warns(bf.PlanWarning, match=r"'c'|for no answer"):
        assert session.sql(f"SELECT x FROM t WHERE {condition}").to_pylist() == []
