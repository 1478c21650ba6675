"""Keys with a CASE of a function, in every relation that has keys: DataFusion 55 refuses them."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest
from datafusion import SessionContext
from scripts import hashed, unordered

import blendfusion as bf

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "w": ["open", "Closed", None, "OPEN", "new"],
        "z": [3, -4, 5, None, 4],
    }
)
GROUPS = "(SELECT id, max(w) AS w, max(z) AS z FROM t GROUP BY id) AS n"
JOIN = "(SELECT n.* FROM (SELECT * FROM t WHERE w || 'z' <> 'az') AS n LEFT JOIN t ON n.id = t.id)"
# A key, and its value of each row, computed here.
KEYS = {
    "CASE WHEN abs(z) > 3 THEN z ELSE id END": [1, -4, 5, 4, 4],
    "CASE WHEN length(w) > 3 THEN id END": [1, 2, None, 4, None],
    "CASE WHEN lower(w) = 'open' THEN z ELSE 9 END": [3, 9, 9, None, 9],
    "CASE lower(w) WHEN 'open' THEN id WHEN 'new' THEN -id ELSE abs(z) END": [1, 4, 5, 4, -5],
    "CASE WHEN abs(z) > 3 THEN CASE WHEN abs(z) > 4 THEN id ELSE z END ELSE id END": [
        1, -4, 3, 4, 4,
    ],
    "abs(CASE WHEN abs(z) > 3 THEN z ELSE id END) + 1": [2, 5, 6, 5, 5],
}  # fmt: skip
ASKED = "llm_score('s', w)"


@pytest.fixture(scope="module")
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(hashed), progress="off", cache=None)
    session.from_arrow(TABLE, name="t")
    return session


def _ordered(values: list[object]) -> list[int]:
    """The ids by their values, NULL last, and by id."""
    rows = zip(values, range(1, 6), strict=True)
    return [i for _, i in sorted(rows, key=lambda row: (row[0] is None, row[0] or 0, row[1]))]  # type: ignore[type-var]


def _rows(session: bf.Session, sql: str) -> list[tuple[object, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [tuple(row.values()) for row in session.sql(sql).to_pylist()]


def test_datafusion_refuses_them() -> None:
    """Once this fails, ``case_key_bug`` may go."""
    context = SessionContext()
    context.from_arrow(TABLE, name="t")
    key = next(iter(KEYS))
    with pytest.raises(Exception, match="SanityCheckPlan"):
        context.sql(f"SELECT id FROM {GROUPS} ORDER BY {key}").collect()


@pytest.mark.parametrize("key", KEYS)
def test_orders(session: bf.Session, key: str) -> None:
    ids = _ordered(KEYS[key])
    for call in ("1", ASKED):
        sql = f"SELECT id FROM (SELECT *, {call} AS s FROM {GROUPS}) ORDER BY {key}, id"
        assert [i for (i,) in _rows(session, sql)] == ids
        assert [i for (i,) in _rows(session, f"{sql} LIMIT 2")] == ids[:2]
        sql = f"SELECT id, {call} AS s FROM {GROUPS} ORDER BY {key}, id LIMIT 3 OFFSET 1"
        assert [row[0] for row in _rows(session, sql)] == ids[1:4]
        sql = f"SELECT id, row_number() OVER (ORDER BY {key}, id) AS n, {call} AS s FROM {GROUPS}"
        numbers = {row[0]: row[1] for row in _rows(session, sql)}
        assert numbers == {i: n for n, i in enumerate(ids, 1)}
        sql = f"SELECT array_agg(id ORDER BY {key}, id) AS ids, max({call}) AS s FROM {GROUPS}"
        assert _rows(session, sql)[0][0] == ids


@pytest.mark.parametrize("key", KEYS)
def test_partitions_groups_and_joins(session: bf.Session, key: str) -> None:
    values = KEYS[key]
    counts = {i: values.count(v) for i, v in enumerate(values, 1)}
    for call in ("1", ASKED):
        sql = f"SELECT id, count(*) OVER (PARTITION BY {key}) AS n, {call} AS s FROM {GROUPS}"
        assert {row[0]: row[1] for row in _rows(session, sql)} == counts
        sql = f"SELECT max({call}) AS s, count(*) AS n FROM {GROUPS} GROUP BY {key} ORDER BY {key}"
        assert sorted(row[1] for row in _rows(session, sql)) == sorted(  # type: ignore[type-var]
            values.count(v) for v in {*values}
        )
        sql = f"SELECT id, {call} AS s FROM {JOIN} ORDER BY {key}, id"
        assert [row[0] for row in _rows(session, sql)] == [i for i in _ordered(values) if i != 3]


def test_statements_and_verbs(session: bf.Session) -> None:
    key = next(iter(KEYS))
    ids = _ordered(KEYS[key])
    session.sql(f"CREATE TABLE made AS SELECT id FROM {GROUPS} ORDER BY {key}, id LIMIT 2")
    assert unordered(_rows(session, "SELECT id FROM made")) == unordered([(i,) for i in ids[:2]])
    session.sql(f"INSERT INTO made SELECT id FROM {GROUPS} ORDER BY {key}, id LIMIT 1").collect()
    assert len(_rows(session, "SELECT id FROM made")) == 3
    assert session.sql(f"SELECT id FROM {GROUPS} ORDER BY {key}").count() == 5


def test_an_estimate_counts_their_values(session: bf.Session) -> None:
    key = next(iter(KEYS))
    frame = session.sql(f"SELECT id, llm_score('e', w) AS s FROM {GROUPS} ORDER BY {key} LIMIT 2")
    assert frame.estimate().total.values == 2
