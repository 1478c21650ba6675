"""Views as they were: ``FROM v AS OF MODEL 'name' | DATE '…' | TIMESTAMP '…' | VERSION n``."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.services.views import views
from blendfusion.services.views.folder import _MOST_VERSIONS, ViewFolder

QUERY = "SELECT id, llm_text('Echo', text) AS said FROM t"
BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock(datetime):
    """A clock that a test sets."""

    days = 0.0

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return BEGIN + timedelta(days=cls.days)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    monkeypatch.setattr(views, "datetime", Clock)
    Clock.days = 0.0
    return Clock


class Named(bf.ScriptedModel):
    """A model with a name, that says it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            lambda call: f"{name} {call.values[0]}", fingerprint=f"{name}-0", name=name
        )


def opened(folder: Path, model: str, texts: list[str]) -> bf.Session:
    session = bf.connect(Named(model), cache=None, progress="off", views_folder=str(folder))
    session.from_pydict({"id": list(range(len(texts))), "text": texts}, name="t")
    return session


def rows_as_of(session: bf.Session, clause: str) -> list[str]:
    found = session.sql(f"SELECT said FROM v AS OF {clause} ORDER BY id").to_pylist()
    return [row["said"] for row in found]


def test_a_view_as_it_was(tmp_path: Path, clock: type[Clock]) -> None:
    opened(tmp_path, "small", ["a"]).sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    clock.days = 2
    opened(tmp_path, "small", ["a", "b"]).sql("REFRESH v")
    clock.days = 4
    session = opened(tmp_path, "large", ["a", "b"])
    session.sql("REFRESH v")
    small, large = ["small a", "small b"], ["large a", "large b"]
    print_of_small = session.materialized_views["v"].history[0]["models"]["small"]
    expected = {
        "MODEL 'small'": small,
        "MODEL 'large'": large,
        f"MODEL '{print_of_small}'": small,
        "VERSION 1": ["small a"],
        "DATE '2026-01-01'": ["small a"],
        "DATE '2026-01-02'": ["small a"],
        "DATE '2026-01-03'": small,
        "DATE '2026-01-05'": large,
        "TIMESTAMP '2026-01-03T11:59:59'": ["small a"],
        "TIMESTAMP '2026-01-03T14:00:00+02:00'": small,
    }
    for clause, rows in expected.items():
        assert rows_as_of(session, clause) == rows, clause
    changed = session.sql(
        "SELECT was.id, was.said AS was, now.said AS now\n"
        "FROM v as of model 'small' was JOIN v\nAS OF\nMODEL 'large' AS now ON was.id = now.id\n"
        "WHERE was.said <> now.said ORDER BY 1",
        read_only=True,
    )
    assert changed.to_pylist() == [{"id": n, "was": small[n], "now": large[n]} for n in range(2)]
    assert session.sql("SELECT v.id FROM v AS OF VERSION 1 WHERE v.id = 0").to_pylist() == [
        {"id": 0}
    ]


def test_equal_rows_of_another_model_are_its_version(tmp_path: Path) -> None:
    query = "SELECT id FROM t WHERE llm_text('Echo', text) IS NOT NULL"
    opened(tmp_path, "small", ["a"]).sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    session = opened(tmp_path, "large", ["a"])
    assert session.sql("REFRESH v").to_pylist()[0]["rewritten"] is False
    for name in ("small", "large"):
        assert session.sql(f"SELECT * FROM v AS OF MODEL '{name}'").to_pylist() == [{"id": 0}]


REFUSED = {
    "v AS OF MODEL 'smal'": "no version of model smal\nHint: .*small",
    "v AS OF MODEL 'zzz'": "no version of model zzz\nHint: Known: small",
    "v AS OF DATE '2025-12-31'": "no version of date 2025-12-31\nHint: Its versions: 1 since 2026",
    "v AS OF DATE 'May'": "'May' is no date",
    "v AS OF TIMESTAMP 'noon'": "'noon' is no timestamp",
    "v AS OF VERSION 7": "no version of version 7",
    "v AS OF VERSION '1'": "this is no version of a view",
    "v AS OF MODEL 1": "this is no version of a view",
    "t AS OF MODEL 'small'": "no materialised view 't'",
}


@pytest.mark.parametrize("source", REFUSED)
def test_a_version_that_is_not_there(source: str, tmp_path: Path) -> None:
    session = opened(tmp_path, "small", ["a"])
    session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    with pytest.raises(bf.QueryError, match=f"(?s){REFUSED[source]}"):
        session.sql(f"SELECT * FROM {source}")


@pytest.mark.parametrize("seed", range(10))
def test_random_histories_of_models_and_rows(seed: int, tmp_path: Path, clock: type[Clock]) -> None:
    """Each version that stays has the rows that were served then; the last ten do, and the last one
    of each model."""
    rng, served, texts = random.Random(seed), list[tuple[float, str, list[str]]](), ["a"]
    model = "small"
    for day in range(3 * _MOST_VERSIONS):
        clock.days = float(day)
        if rng.random() < 0.7:
            texts.append(f"text {day}")
        model = rng.choice(["small", "large", "huge"]) if rng.random() < 0.3 else model
        session = opened(tmp_path, model, texts)
        session.sql("REFRESH v" if served else f"CREATE MATERIALIZED VIEW v AS {QUERY}")
        rows = rows_as_of(session, f"DATE '{clock.now():%Y-%m-%d}'")
        assert rows == [f"{model} {text}" for text in texts]
        if not served or served[-1][1:] != (model, rows):
            served.append((clock.days, model, rows))
    for days, _, rows in served[-_MOST_VERSIONS:]:
        assert rows_as_of(session, f"DATE '{BEGIN + timedelta(days=days):%Y-%m-%d}'") == rows
    for name in {name for _, name, _ in served}:
        expected = next(rows for _, one, rows in reversed(served) if one == name)
        assert rows_as_of(session, f"MODEL '{name}'") == expected
    view = session.materialized_views["v"]
    assert len(view.history) <= _MOST_VERSIONS + 2
    place = ViewFolder(tmp_path, "v")
    files = {file.name for file in place.path.glob("rows-*.parquet")}
    kept = {one["version"] for one in view.history} | {view.version - 1}
    assert files <= {f"rows-{version}.parquet" for version in kept}
