"""An estimate says how many values a run asks at least and at most, whatever the answers are."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest
from bounded_queries import bounded_query, limited_query, small_tables
from first_row_queries import FirstRowQueries
from group_queries import Adversary, GroupQueries, extreme_script, grouped_rows, seeded_script
from random_choices import Choices
from random_queries import random_query
from random_tables import VIEWS, tables
from scripts import hashed
from value_bound import in_our_sql

import blendfusion as bf

F = "llm_filter('f', x)"
_Script = Callable[[bf.Request], object]


def _scripts(seed: int) -> list[_Script]:
    """Scripts that depend on the question alone, and one that keeps everything open."""
    extremes = [extreme_script(high=high) for high in (False, True)]
    return [hashed, seeded_script(seed), *extremes, Adversary()]


def _session(script: _Script, named: Mapping[str, pa.Table]) -> bf.Session:
    session = bf.connect(bf.ScriptedModel(script), cache=None, progress="off")  # type: ignore[arg-type]
    for name, table in named.items():
        session.from_arrow(table, name=name)
    for name, (query, _) in VIEWS.items() if "u" in named else ():
        session.sql(f"CREATE VIEW {name} AS {query}")
    return session


def _case(seed: int) -> tuple[str, dict[str, pa.Table]]:
    source, kind = random.Random(f"bounds {seed}"), seed % 5
    if kind < 2:
        queries = (GroupQueries if kind else FirstRowQueries)(source)
        return queries.query(), {"t": grouped_rows(source)}
    if kind < 4:
        draw = bounded_query if kind == 2 else limited_query
        return in_our_sql(draw(Choices.seeded(seed)).template), small_tables(seed % 40)
    return random_query(Choices.seeded(seed)).bounded, tables(seed % 40)


@pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")
@pytest.mark.filterwarnings("ignore::blendfusion.errors.PlanWarning")
def test_a_run_asks_as_many_values_as_its_estimate_allows(pytestconfig: pytest.Config) -> None:
    for seed in range(pytestconfig.getoption("--cases") // 10):
        sql, named = _case(seed)
        script = hashed if "u" in named else _scripts(seed)[seed // 5 % 5]
        frame = _session(script, named).sql(sql)
        expected = frame.estimate()
        frame.to_pylist()
        asked = frame.trace.usage.values
        most = float("inf") if expected.most is None else expected.most
        assert expected.least <= asked <= most, f"{seed}: {sql}\n{expected}"


@pytest.fixture
def db() -> bf.Session:
    ids = range(400)
    keys = {"id": pa.array(ids), "g": pa.array([i % 8 for i in ids])}
    table = pa.table({**keys, "x": pa.array([f"text {i % 300}" for i in ids])})
    return _session(hashed, {"t": table})


@pytest.mark.parametrize(
    ("sql", "least", "most"),
    [
        (f"SELECT id FROM t WHERE {F}", 300, 300),
        (f"SELECT id FROM t WHERE {F} AND llm_filter('g', x)", 300, 600),
        (f"SELECT id, llm_int('i', x) AS i FROM t WHERE {F}", 300, 600),
        (f"SELECT id FROM t WHERE {F} ORDER BY id LIMIT 5", 5, 300),
        (f"SELECT id FROM t WHERE {F} AND id > 396 LIMIT 5", 3, 3),
        (f"SELECT id FROM t WHERE {F} QUALIFY rank() OVER (PARTITION BY g ORDER BY id) < 3",
         16, 300),
        (f"SELECT g FROM t GROUP BY g HAVING count(*) FILTER (WHERE {F}) > 3", 4, 300),
        (f"SELECT g FROM t GROUP BY g HAVING count(*) FILTER (WHERE {F}) >= 0", 0, 0),
        (f"SELECT id, llm_int('i', x) AS i FROM t WHERE {F} LIMIT 3", 3, 600),
        (f"SELECT max(id) AS m FROM (SELECT * FROM t WHERE {F} LIMIT 9) WHERE llm_bool('g', x)",
         9, 600),
    ],
)  # fmt: skip
def test_bounds_of_kinds_of_queries(db: bf.Session, sql: str, least: int, most: int) -> None:
    expected = db.sql(sql).estimate()
    assert (expected.least, expected.most) == (least, most)


def test_stored_answers_are_out_of_both_bounds(db: bf.Session) -> None:
    db.sql(f"SELECT id FROM t WHERE {F} AND id < 100").to_pylist()
    sql = f"SELECT id FROM t WHERE {F} ORDER BY id DESC LIMIT 150"
    expected = db.sql(sql).estimate()
    assert (expected.least, expected.most) == (50, 200)


def test_explain_and_estimate_say_at_least_and_at_most(db: bf.Session) -> None:
    frame = db.sql(f"SELECT id FROM t WHERE {F} ORDER BY id LIMIT 5")
    for text in (frame.explain_text(), str(frame.estimate())):
        assert "Expected: about 9 values (at least 5, at most 300), " in text
