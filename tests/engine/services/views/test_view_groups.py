"""Groups and entities in views: they keep their names in every session that refreshes the view."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from word_groups import TOPICS, ByWord, answer

import blendfusion as bf
from blendfusion.services.replay.digests import table_digest

GROUPS = "SELECT id, llm_group(text, into => 4, name => 'topics') AS g FROM t ORDER BY id"
ENTITIES = "SELECT id, llm_same(text, name => 'firms') AS e FROM t ORDER BY id"


def entity(request: bf.Request) -> object:
    """Names are one entity if they begin with the same word."""
    words = {str(value).split()[0] for value in request.values if value}
    return len(words) == 1 if request.constraint.kind == "boolean" else "same"


class Shop:
    def __init__(self, folder: Path, script: Any) -> None:
        self.folder, self.script = folder, script
        self.texts: dict[int, str] = {}

    def open(self) -> bf.Session:
        self.model = bf.ScriptedModel(self.script, fingerprint="by words")
        views = str(self.folder / "views")
        session = bf.connect(
            self.model, cache=None, embedder=ByWord(), progress="off", views_folder=views
        )
        self.fill(session)
        return session

    def fill(self, session: bf.Session) -> None:
        kinds = pa.schema([("id", pa.int64()), ("text", pa.string())])
        rows = [{"id": number, "text": text} for number, text in self.texts.items()]
        session.from_arrow(pa.Table.from_pylist(rows, kinds), name="t")


def rows_of(session: bf.Session) -> dict[int, str]:
    return {row["id"]: row["g"] for row in session.sql("SELECT * FROM v").to_pylist()}


@pytest.mark.parametrize("seed", range(6))
def test_groups_keep_their_names_over_sessions(seed: int, tmp_path: Path) -> None:
    """Rows come, change and go; each refresh runs in a session of its own. A row whose text stays
    keeps its group, a refresh asks the new texts alone, and a full run with the view's groups gives
    the bytes of the view."""
    rng, shop = random.Random(seed), Shop(tmp_path, answer)
    for number in range(16):
        shop.texts[number] = f"{TOPICS[number % 4]} {number}"
    with shop.open() as session:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
        before = rows_of(session)
        assert {*before.values()} == {*TOPICS}
    known = {*shop.texts.values()}
    for step in range(5):
        old = dict(shop.texts)
        for _ in range(rng.randint(0, 12)):
            number = rng.choice([*shop.texts, 100 * step + rng.randrange(50)])
            shop.texts[number] = f"{rng.choice([*TOPICS[:2], 'strange'])} {rng.randrange(90)}"
        for number in rng.sample(sorted(shop.texts), 2):
            del shop.texts[number]
        with shop.open() as session:
            done = session.refresh_view("v")
            after = rows_of(session)
            new = {*shop.texts.values()} - known
            assert {call.values for call in shop.model.calls} == {(text,) for text in new}
            known |= new
            kept = [n for n in after if old.get(n) == shop.texts[n]]
            assert {n: after[n] for n in kept} == {n: before[n] for n in kept}
            assert "other" in after.values() or not any("strange" in t for t in shop.texts.values())
            again = session.refresh_view("v")
            assert (again.reasons, again.is_rewritten) == ((), False)
        full = Shop(tmp_path / f"full {seed} {step}", answer)
        full.texts = shop.texts
        with full.open() as session:
            session.groups.load("topics", tmp_path / "views" / "v" / "groups-topics.json")
            rows = session.sql(GROUPS).to_arrow_table()
            assert table_digest(rows) == done.view.digest
        before = after


def test_groups_without_a_name_stay_with_their_view(tmp_path: Path) -> None:
    """Each refresh is one of another session; a call that changes makes other groups."""
    query, shop = (
        GROUPS.replace(", name => 'topics'", "").replace(" AS g", ""),
        Shop(tmp_path, answer),
    )
    shop.texts = {number: f"{TOPICS[number % 4]} {number}" for number in range(16)}
    with shop.open() as session:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert session.sql("SELECT * FROM v").columns == session.sql(query).columns
        before = session.sql("SELECT * FROM v").to_pylist()
        assert {row[name] for row in before for name in [*row][1:]} == {*TOPICS}
    shop.texts |= {20: "strange 20", 21: f"{TOPICS[0]} 21"}
    with shop.open() as session:
        assert session.sql("REFRESH v").to_pylist()[0]["asked"] > 0
        after = session.sql("SELECT * FROM v").to_pylist()
        assert after[: len(before)] == before
        assert [*after[-1].values()][1] == TOPICS[0]
        assert session.sql("REFRESH v").to_pylist()[0]["why"] == "nothing changed"
        session.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query.replace('4', '2')}")


def test_a_renamed_group_is_a_change_that_asks_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path, answer)
    shop.texts = {n: f"{TOPICS[n % 4]} {n}" for n in range(12)}
    with shop.open() as session:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
        session.groups.rename("topics", "late", "Slow delivery")
        row = session.sql("REFRESH v").to_pylist()[0]
        assert (row["asked"], row["rewritten"]) == (0, True)
        assert row["why"] == "the table of groups 'topics' changed"
        assert "Slow delivery" in rows_of(session).values()
    with shop.open() as session:
        row = session.sql("REFRESH v").to_pylist()[0]
        assert (row["asked"], row["why"]) == (0, "nothing changed")
        assert "topics" in session.groups


def test_a_damaged_file_of_groups_is_named(tmp_path: Path) -> None:
    shop = Shop(tmp_path, answer)
    shop.texts = {n: f"{TOPICS[n % 4]} {n}" for n in range(12)}
    with shop.open() as session:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
    file = tmp_path / "views" / "v" / "groups-topics.json"
    assert file.stat().st_mode & 0o077 == 0
    file.write_text("{")
    with shop.open() as session, pytest.raises(bf.ArgumentError, match="holds no groups"):
        session.sql("REFRESH v")


def test_entities_keep_their_names_over_sessions(tmp_path: Path) -> None:
    shop = Shop(tmp_path, entity)
    shop.texts = {0: "late co", 1: "late inc", 2: "price co"}
    with shop.open() as session:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {ENTITIES}")
        before = {row["id"]: row["e"] for row in session.sql("SELECT * FROM v").to_pylist()}
        assert before[0] == before[1] != before[2]
    shop.texts |= {3: "late ag", 4: "a late one"}
    with shop.open() as session:
        session.sql("REFRESH v")
        after = {row["id"]: row["e"] for row in session.sql("SELECT * FROM v").to_pylist()}
        assert {n: after[n] for n in before} == before
        assert after[3] == before[0]
