"""Random conditions over answers: one that no answer makes true asks nothing, and none changes the
rows. DuckDB tells, over a table of all answers, whether one is possible."""

from __future__ import annotations

import random
import warnings
from itertools import product

import duckdb
import pyarrow as pa
import pytest
from amounts import long_after
from scripts import hashed

import blendfusion as bf

LABELS = ("a", "b", "cc")
CALLS = {
    "l": "llm_classify(x, ['a', 'b', 'cc'])",
    "s": "llm_score('s', x, low => 0, high => 3)",
    "i": "llm_int('i', x)",
    "p": "llm_probability('p', x)",
    "f": "llm_filter('f', x)",
}
ANSWERS: dict[str, list[object]] = {
    "l": [*LABELS, None],
    "s": [*(n / 4 for n in range(13)), None],
    "i": [*range(-3, 9), None],
    "p": [*(n / 8 for n in range(9)), None],
    "f": [True, False, None],
}
TEXTS = (*LABELS, "c", "z", "A")


def _answer(call: bf.Request) -> object:
    value = hashed(call)
    return {value: 0.75, not value: 0.25} if isinstance(value, bool) else value


def _comparison(chance: random.Random) -> str:
    name = chance.choice("lllsiifp")
    sign = chance.choice(("=", "<>", "<", "<=", ">", ">="))
    if name == "f":
        return chance.choice(("{f}", "NOT {f}", "{f} IS NULL", "{f} = false"))
    if name == "l":
        return chance.choice(
            (
                f"{{l}} {sign} '{chance.choice(TEXTS)}'",
                f"{{l}} IN ('{chance.choice(TEXTS)}', '{chance.choice(TEXTS)}')",
                f"{{l}} LIKE '{chance.choice(('%c', 'z%', '_', 'b%'))}'",
                f"upper({{l}}) = '{chance.choice(TEXTS)}'",
                f"length({{l}}) {sign} {chance.randint(0, 3)}",
                "{l} IS NULL",
            )
        )
    if name == "s":
        return chance.choice(
            (f"{{s}} {sign} {chance.choice((-1, 0, 1.5, 3, 4))}", "{s} IS NOT NULL")
        )
    if name == "p":
        return f"{{p}} {sign} {chance.choice((-0.5, 0, 0.5, 1, 1.5))}"
    return chance.choice(
        (f"{{i}} {sign} {chance.randint(0, 5)}", "{i} BETWEEN 2 AND 4", "{i} = 1.5")
    )


def _condition(chance: random.Random, depth: int = 0) -> str:
    if depth > 2 or chance.random() < 0.35:
        return _comparison(chance)
    parts = [_condition(chance, depth + 1) for _ in range(chance.randint(2, 3))]
    return chance.choice(
        (
            f"({' AND '.join(parts)})",
            f"({' AND '.join(parts)})",
            f"({' OR '.join(parts)})",
            f"(NOT {parts[0]})",
            f"(CASE WHEN {parts[0]} THEN {parts[1]} ELSE false END)",
            f"coalesce({parts[0]}, {parts[1]})",
        )
    )


def _possible(condition: str) -> bool:
    """Whether some answers make a condition true."""
    used = [name for name in CALLS if f"{{{name}}}" in condition]
    rows = [*product(*(ANSWERS[name] for name in used))]
    answers = pa.table(
        {name: pa.array(column) for name, column in zip(used, zip(*rows, strict=True), strict=True)}
    )
    found = duckdb.from_arrow(answers).query(
        "answers", f"SELECT 1 FROM answers WHERE {condition.format_map({n: n for n in CALLS})}"
    )
    return bool(found.fetchall())


@pytest.mark.parametrize("seed", long_after(2, range(6)))
def test_a_condition_that_no_answer_makes_true_asks_nothing(seed: int, cases: int) -> None:
    chance = random.Random(seed)
    sessions = [
        bf.connect(bf.ScriptedModel(_answer), cache=None, progress="off", planner=planner)
        for planner in (True, False)
    ]
    data = {"id": [*range(12)], "x": [None if n % 5 == 4 else f"v{n % 7}" for n in range(12)]}
    for session in sessions:
        session.from_pydict(data, "t")
    impossible = 0
    for _ in range(max(cases // 80, 1)):
        condition = _condition(chance)
        asking = condition.format_map(CALLS)
        queries = (
            f"SELECT id FROM t WHERE {asking}",
            f"SELECT id, CASE WHEN {asking} THEN id END AS v FROM t",
            f"SELECT count(*) FILTER (WHERE {asking}) AS n FROM t",
        )
        query = chance.choice(queries)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            planned, plain = (session.sql(query) for session in sessions)
            assert planned.to_pydict() == plain.to_pydict(), query
        assert planned.trace is not None
        if not _possible(condition):
            impossible += 1
            assert planned.trace.values + planned.trace.cached == 0, query
    assert impossible
