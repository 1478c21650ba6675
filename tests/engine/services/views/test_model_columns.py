"""Columns of answers in Lance tables: added in one step, resumed, refreshed, with provenance."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from view_kinds import script

import blendfusion as bf

lance = pytest.importorskip("lance")

TEXTS = [f"{word} {n % 6}" for n, word in enumerate(["red", "small", "torn"] * 4)]
ADD = "ALTER TABLE reviews ADD COLUMN topic AS (llm_classify(text, ['size', 'colour', 'price']))"
VALUES = len(set(TEXTS))


class Cut(bf.BlendFusionError):
    """The end of a model in the middle of a backfill."""


class Shop:
    """A Lance table of several fragments, and a model that counts and may end."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.place, self.left = folder, str(folder / "reviews.lance"), None
        rows = pa.table({"id": list(range(len(TEXTS))), "text": TEXTS})
        lance.write_dataset(rows, self.place, max_rows_per_file=5)
        self.model = bf.ScriptedModel(self.answer, fingerprint="by digests", batch_size=2)
        self.left: int | None = None

    def answer(self, request: bf.Request) -> object:
        if self.left == 0:
            raise Cut("cut")
        self.left = None if self.left is None else self.left - 1
        return script(request)

    def open(self) -> bf.Session:
        views = str(self.folder / "views")
        session = bf.connect(self.model, cache=None, progress="off", views_folder=views)
        session.register_lance("reviews", self.place)
        return session

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = lance.dataset(self.place).to_table().to_pylist()
        return found

    def full(self) -> list[dict[str, Any]]:
        """The rows with the column as a query without stored answers gives it."""
        with bf.connect(bf.ScriptedModel(script), cache=None) as session:
            data = lance.dataset(self.place).to_table(columns=["id", "text"])
            session.from_arrow(data, name="reviews")
            column = "llm_classify(text, ['size', 'colour', 'price'])"
            return session.sql(f"SELECT id, text, {column} AS topic FROM reviews").to_pylist()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_column_is_added_in_one_version_and_refreshed(shop: Shop) -> None:
    session = shop.open()
    row = session.sql(ADD).to_pylist()[0]
    assert (row["version"], row["rows"], row["asked"]) == (2, len(TEXTS), VALUES)
    assert shop.rows() == shop.full()
    assert session.sql("SELECT * FROM reviews ORDER BY id").to_pylist() == shop.full()
    again = session.sql("REFRESH COLUMN reviews.topic").to_pylist()[0]
    assert (again["version"], again["rows"], again["asked"]) == (2, 0, 0)
    lance.write_dataset(
        pa.table({"id": [20, 21], "text": ["new", TEXTS[0]]}), shop.place, mode="append"
    )
    data = lance.dataset(shop.place)
    data.update({"text": "'corrected'"}, where="id = 3")
    data.delete("id = 5")
    before = lance.dataset(shop.place).version
    other = shop.open()
    row = other.sql("REFRESH COLUMN reviews.topic").to_pylist()[0]
    assert (row["version"], row["asked"]) == (before + 1, 2)
    assert sorted(shop.rows(), key=lambda one: one["id"]) == sorted(
        shop.full(), key=lambda one: one["id"]
    )


def test_the_provenance_of_a_column(shop: Shop) -> None:
    session = shop.open()
    place = session.sql(ADD).to_pylist()[0]["provenance"]
    rows = pq.read_table(place).to_pylist()
    assert {tuple(row["values"]) for row in rows} == {(text,) for text in TEXTS}
    answers = {row["values"][0]: row["answer"] for row in rows}
    assert {one["text"]: one["topic"] for one in shop.rows()} == answers
    assert {(row["model"], row["first_version"]) for row in rows} == {("scripted", 2)}
    session.register_file(place, "answers")
    counted = session.sql("SELECT count(*) AS n FROM answers WHERE answer IS NOT NULL")
    assert counted.to_pylist() == [{"n": VALUES}]


@pytest.mark.parametrize("left", range(VALUES))
def test_a_backfill_that_was_cut_off_goes_on(shop: Shop, left: int) -> None:
    shop.left = left
    with pytest.raises(Cut):
        shop.open().sql(ADD)
    assert lance.dataset(shop.place).version == 1
    assert lance.dataset(shop.place).schema.names == ["id", "text"]
    shop.left = None
    row = shop.open().sql(ADD).to_pylist()[0]
    assert row["asked"] == VALUES - left
    assert shop.rows() == shop.full()
    assert lance.dataset(shop.place).version == 2


REFUSED = {
    "ALTER TABLE reviews ADD COLUMN id AS (1)": "has a column 'id' already",
    "ALTER TABLE memory ADD COLUMN topic AS (1)": "it is no table of Lance, Delta Lake or an attached database\nHint: .*VIEW",
    "ALTER TABLE nix ADD COLUMN topic AS (1)": "it is no table of Lance",
    "ALTER TABLE reviews ADD COLUMN n AS (row_number() OVER (ORDER BY id))": "made row by row",
    "ALTER TABLE reviews ADD COLUMN n AS (llm_same(text))": "made row by row",
    "ALTER TABLE reviews ADD COLUMN n AS (count(*))": "",
    "ALTER TABLE reviews ADD COLUMN n AS (nix)": "unknown column 'nix'",
    "ALTER TABLE reviews ADD COLUMN n AS ()": "no expression",
    "ALTER TABLE reviews ADD COLUMN n AS (1) FIRST": "goes on",
    "ALTER TABLE reviews ADD COLUMN n TEXT": "this ALTER TABLE is not possible",
    "ALTER TABLE reviews DROP COLUMN text": "this ALTER TABLE is not possible",
    "REFRESH COLUMN reviews.text": "is no column of answers that was added here",
    "REFRESH COLUMN reviews": "takes a table and a column",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_refused_changes_nothing(statement: str, shop: Shop) -> None:
    session = shop.open()
    session.from_pydict({"text": ["a"]}, name="memory")
    with pytest.raises(bf.BlendFusionError, match=f"(?s){REFUSED[statement]}"):
        session.sql(statement)
    assert lance.dataset(shop.place).version == 1
    with pytest.raises(bf.QueryError, match="read-only"):
        session.sql(statement, read_only=True)


RUNNER = """
import sys, time
import blendfusion as bf
from view_kinds import script

folder, seconds = sys.argv[1], float(sys.argv[2])

def answer(request):
    with open(f"{folder}/asked.txt", "a") as file:
        file.write(request.values[0] + "\\\\n")
    time.sleep(seconds)
    return script(request)

model = bf.ScriptedModel(answer, fingerprint="by digests", batch_size=2)
with bf.connect(model, cache=None, progress="off", views_folder=f"{folder}/views") as session:
    session.register_lance("reviews", f"{folder}/reviews.lance")
    session.sql(sys.argv[3])
"""


@pytest.mark.long
def test_a_killed_backfill_goes_on(shop: Shop) -> None:
    """kill −9 at random moments of a backfill: the table stays as it was, and a kill costs a batch
    of two values at most."""
    rng, kills = random.Random(3), 8
    support = str(Path(__file__).parents[3] / "support")
    code = f"import sys; sys.path.insert(0, {support!r})\n{RUNNER}"
    asked = shop.folder / "asked.txt"
    for number in range(kills + 1):
        seconds = "0" if number == kills else "0.2"
        child = subprocess.Popen([sys.executable, "-c", code, str(shop.folder), seconds, ADD])
        if number < kills:
            before = len(asked.read_text().split("\n")) if asked.exists() else 0
            until = time.monotonic() + 60
            while time.monotonic() < until and child.poll() is None:
                if asked.exists() and len(asked.read_text().split("\n")) > before:
                    break
                time.sleep(0.01)
            time.sleep(rng.random() * 0.5)
            child.kill()
        code_of_end = child.wait(60)
        if code_of_end == 0:
            break
        assert lance.dataset(shop.place).schema.names == ["id", "text"]
    assert code_of_end == 0
    assert shop.rows() == shop.full()
    assert lance.dataset(shop.place).version == 2
    assert len(asked.read_text().split()) // 2 <= VALUES + 2 * number
