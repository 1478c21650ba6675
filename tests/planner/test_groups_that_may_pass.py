"""Groups by answers that no group by the other keys can contain are not asked for."""

from __future__ import annotations

import random

import pytest

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

VALUES = (None, 0, 1, 2, 5, 9)
KEYS = ("k", "llm_classify(x, ['a', 'b'])", "k % 2", "llm_int('i', x)")
AGGREGATES = (
    *("count(*)", "count(n)", "max(n)", "min(n)", "sum(n)", "count(DISTINCT n)", "max(f)"),
    *("count(*) FILTER (WHERE n > 1)", "count(*) FILTER (WHERE llm_filter('q', x))"),
    *("max(n) FILTER (WHERE k = 1)", "min(llm_int('i', x))", "count(n + k)", "min(f)"),
)


def answer(call: bf.Request) -> Value:
    number = sum(map(ord, str(call.values)))
    if call.constraint.options:
        return call.constraint.options[number % 2]
    return number % 3 == 0 if call.constraint.kind == "boolean" else number % 2


def connect(*, planner: bool) -> bf.Session:
    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off", planner=planner)
    draw = random.Random(7)
    rows = range(40)
    data = {"k": [draw.choice((None, 1, 2, 3)) for _ in rows]}
    data |= {"n": [draw.choice(VALUES) for _ in rows], "x": [f"x{row % 25}" for row in rows]}
    session.from_pydict({**data, "f": [draw.choice((None, 0.5, 2.5)) for _ in rows]}, name="t")
    return session


def drawn(draw: random.Random) -> str:
    keys = draw.sample(KEYS, draw.choice((1, 1, 2, 3)))
    tests = []
    for _ in range(draw.choice((1, 1, 2))):
        number = draw.choice((*range(8), 12, 25, "NULL", 1.5))
        pair = [draw.choice(AGGREGATES), str(number)]
        draw.shuffle(pair)
        tests.append(draw.choice((" < ", " <= ", " > ", " >= ", " = ", " <> ")).join(pair))
    having = draw.choice((" AND ", " AND ", " OR ")).join(tests)
    where = draw.choice(("", "", " WHERE n IS NOT NULL", " WHERE llm_filter('w', x)"))
    shown = ", ".join(f"{key} AS g{i}" for i, key in enumerate(keys))
    return f"SELECT {shown}, count(*) AS c FROM t{where} GROUP BY {', '.join(keys)} HAVING {having}"


@pytest.mark.filterwarnings("ignore:.*never equals:blendfusion.errors.PlanWarning")
def test_tests_of_groups_at_random(cases: int) -> None:
    plain, planned = connect(planner=False), connect(planner=True)
    spared = 0
    for seed in range(max(150, cases // 10)):
        query = drawn(random.Random(seed))
        plain.clear_cache()
        planned.clear_cache()
        frames = [session.sql(query) for session in (plain, planned)]
        rows = [sorted(map(repr, frame.to_pylist())) for frame in frames]
        assert rows[0] == rows[1], f"seed {seed}: {query}"
        asked = [frame.trace.values for frame in frames if frame.trace is not None]
        assert asked[1] <= asked[0], f"seed {seed}: {query}"
        spared += "left semi join" in frames[1].explain_text()
    assert spared >= 20
