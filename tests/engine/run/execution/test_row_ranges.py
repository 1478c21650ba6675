"""A condition on numbers with bounds, a probability or a score, asks about the rows that some
answers make true and others do not."""

from __future__ import annotations

import random
import re
import warnings
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from amounts import long_after
from decision_server import Decisions
from loopback import serving

import blendfusion as bf
from blendfusion.run.execution.ranges import range_of_values

NAMES = {
    "p": "llm_probability('Is it p?', x)",
    "s": "llm_score('How much?', y, low => 1, high => 5)",
}
BOUNDS = {"p": (0.0, 1.0), "s": (1.0, 5.0)}
SIGNS = ("<", "<=", ">", ">=")


def odds(state: str, question: str, options: list[str]) -> list[float]:
    weights = [1.0 + hash_of(f"{state} {question} {option}") for option in options]
    return [weight / sum(weights) for weight in weights]


def hash_of(text: str) -> int:
    return sum(place * ord(letter) for place, letter in enumerate(text, 1)) % 7


def number(chance: random.Random, free: list[str]) -> str:
    """An amount in which each answer stands once, so that its range is exact."""
    part = free.pop(chance.randrange(len(free)))
    shapes = ("{} + n", "n - {}", "{} * 2.0", "{} * n", "CASE WHEN n > 2 THEN {} ELSE 9.0 END")
    for _ in range(chance.randint(0, 2)):
        part = f"({chance.choice(shapes).format(part)})"
    if free and chance.random() < 0.4:
        part = f"({part} {chance.choice('+-')} {free.pop()})"
    return part


def condition(chance: random.Random) -> tuple[str, list[str]]:
    """(a condition of one or two comparisons, the answers in it)"""
    free = ["p", "s"]
    terms = [f"{number(chance, free)} {chance.choice(SIGNS)} {chance.choice(('n', '1.5', 'm'))}"]
    if free and chance.random() < 0.6:
        terms.append(f"{number(chance, free)} {chance.choice(SIGNS)} {chance.choice(('n', '3'))}")
    joined = f" {chance.choice(('AND', 'OR'))} ".join(terms)
    if chance.random() < 0.2:
        joined = f"NOT ({joined})"
    return joined, [name for name in NAMES if name not in free]


def truths(text: str, used: list[str], n: float | None, m: float | None) -> set[object]:
    """The values of a condition on a row over answers at their bounds and NULL, by DuckDB."""
    corners = [(*BOUNDS[name], sum(BOUNDS[name]) / 2, None) for name in used]
    found = set()
    for answers in product(*corners):
        values = dict(zip(used, answers, strict=True)) | {"n": n, "m": m}
        columns = ", ".join(
            f"CAST({'NULL' if value is None else value} AS DOUBLE) AS {name}"
            for name, value in values.items()
        )
        (row,) = duckdb.sql(f"SELECT ({text}) FROM (SELECT {columns}) AS row").fetchall()
        found.add(row[0])
    return found


@pytest.mark.parametrize("seed", long_after(2, range(6)))
def test_rows_whose_truth_is_known_ask_nothing(seed: int, cases: int) -> None:
    chance = random.Random(seed)
    n = [0.5, 1.0, 2.0, 3.0, 6.0, None]
    rows = {
        "id": [*range(18)],
        "x": [f"x {i}" for i in range(18)],
        "y": [f"y {i}" for i in range(18)],
        "n": n * 3,
        "m": np.repeat([-1.0, 4.0, 8.0], 6).tolist(),
    }
    spared = 0
    with serving(Decisions(odds).systemone) as server:
        model = f"systemone:jev@{server.url.removesuffix('/v1')}"
        sessions = [
            bf.connect(model, cache=None, progress="off", planner=planner)
            for planner in (True, False)
        ]
        for session in sessions:
            session.from_pydict(rows, "t")
        for _ in range(max(cases // 50, 12)):
            text, used = condition(chance)
            query = f"SELECT id FROM t WHERE {_with_calls(text)} ORDER BY id"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bf.PlanWarning)
                bounds = sessions[0].sql(query).estimate()
                planned, plain = (session.sql(query) for session in sessions)
                assert planned.to_pylist() == plain.to_pylist(), query
            possible = [truths(text, used, n, m) for n, m in zip(rows["n"], rows["m"], strict=True)]
            open_ = sum(True in found and len(found) > 1 for found in possible)
            assert planned.trace.values <= open_ * len(used), query
            spared += len(rows["id"]) * len(used) - planned.trace.values
            assert bounds.least <= planned.trace.values <= bounds.most, query
    assert spared


def _with_calls(text: str) -> str:
    return "".join(NAMES.get(sign, sign) for sign in _signs(text))


def _signs(text: str) -> list[str]:
    return re.findall(r"\w+|\W", text)


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.int64(), pa.float64(), pa.bool_(), pa.string()], ids=str
)
def test_the_range_of_nulls_has_no_value(kind: pa.DataType) -> None:
    found = range_of_values(pa.nulls(3, kind))
    assert found.null.all()
    assert not found.value.any()
