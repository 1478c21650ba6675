"""Rows that a view keeps by pieces of its tables: which of them a refresh computes again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf
from blendfusion.services.replay.digests import table_digest
from blendfusion.services.views import kept_rows
from blendfusion.services.views.kept_rows import bounds_of

TOPIC = "llm_classify(text, ['size', 'price'])"
QUERIES = {
    "filter": "SELECT id, text FROM t WHERE llm_filter('Is it good?', text)",
    "two filters": "SELECT id FROM t WHERE llm_filter('Good?', text) AND llm_filter('Long?', text)",
    "column": f"SELECT id, {TOPIC} AS topic FROM t",
    "groups": f"SELECT {TOPIC} AS topic, count(*) AS n, sum(weight) AS w FROM t GROUP BY 1 ORDER BY 1",
    "first": f"SELECT id, {TOPIC} AS topic FROM t ORDER BY topic, id DESC LIMIT 20",
    "count": "SELECT count(*) AS n FROM t WHERE llm_filter('Is it good?', text)",
}


def script(call: bf.Request) -> object:
    number = sum(str(call.values[0]).encode())
    options = call.constraint.options
    return number % 3 == 0 if call.constraint.kind == "boolean" else options[number % 2]


class Table:
    """A table of 20 files, or of one, that changes."""

    def __init__(self, folder: Path, *, files: int) -> None:
        self.folder, self.files = folder, files
        self.numbers = [*range(6_000)]
        self.write()

    def write(self) -> None:
        self.folder.mkdir(exist_ok=True)
        step = -(-len(self.numbers) // self.files)
        for place in range(self.files):
            part = self.numbers[place * step : (place + 1) * step]
            rows = {"id": part, "text": [f"text {n}" if n % 11 else None for n in part]}
            rows["weight"] = [n * 0.1 for n in part]  # type: ignore[misc]
            pq.write_table(pa.table(rows), self.folder / f"{place:02}.parquet")

    def connect(self, views: Path, calls: list[bf.Request]) -> bf.Session:
        model = bf.ScriptedModel(script, fingerprint="sum", batch_size=512)
        model.calls = calls
        session = bf.connect(model, cache=None, progress="off", views_folder=str(views))
        session.register_parquet("t", str(self.folder))
        return session


@pytest.mark.parametrize("files", [1, 20])
@pytest.mark.parametrize("kind", QUERIES)
def test_few_rows_run_again(
    kind: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After insertions, corrections and deletions the rows are those of a view made anew, of this
    folder and of another one, and few rows are looked up again."""
    monkeypatch.setattr(kept_rows, "_LEAST", 32)
    monkeypatch.setattr(kept_rows, "_BITS", 6)
    table, rng = Table(tmp_path / "t", files=files), random.Random(f"{kind} {files}")
    query = QUERIES[kind]
    with table.connect(tmp_path / "views", []) as session:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    for step in range(3):
        if files == 1:
            at = rng.randrange(6_000)
            table.numbers[at : at + 5] = [10_000 + 10 * step + n for n in range(7)]
        else:
            table.numbers[-3:] = [20_000 + 10 * step + n for n in range(3)]
        table.write()
        calls: list[bf.Request] = []
        with table.connect(tmp_path / "views", calls) as session:
            done = session.refresh_view("v")
            assert done.trace is not None
            read = done.trace.usage.values + done.trace.usage.cached
            assert read < (2_400 if kind != "first" else 12_000), (kind, files, step)
            served = session.sql("SELECT * FROM v").to_arrow_table()
        with table.connect(tmp_path / "others", []) as session:
            session.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
            expected = session.sql("SELECT * FROM v").to_arrow_table()
        assert table_digest(served) == table_digest(expected), (kind, files, step)


def test_pieces_meet_again_behind_a_change() -> None:
    rng = np.random.default_rng(3)
    texts = [f"row {n}" for n in rng.integers(0, 1 << 40, 50_000)]
    before = pa.record_batch({"text": texts})
    after = pa.record_batch({"text": [*texts[:700], "more", *texts[700:40_000], *texts[40_003:]]})

    def pieces(batch: pa.RecordBatch) -> set[str]:
        bounds = bounds_of(batch)
        assert (bounds[0], bounds[-1]) == (0, len(batch))
        assert all(0 < b - a <= 8_192 for a, b in pairwise(bounds))
        return {str(batch.slice(a, b - a).to_pydict()) for a, b in pairwise(bounds)}

    assert len(pieces(before)) > 20
    assert len(pieces(after) - pieces(before)) <= 6


@pytest.mark.parametrize("most_bytes", [1 << 26, 1_000])
def test_pieces_do_not_depend_on_batches(most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "_BYTES_OF_A_BATCH", most_bytes)
    rng = np.random.default_rng(5)
    rows = pa.record_batch({"text": [f"row {n}" for n in rng.integers(0, 1 << 40, 150_000)]})

    def pieces(cuts: list[int]) -> Iterator[list[str]]:
        batches = (rows.slice(a, b - a) for a, b in pairwise([0, *cuts, len(rows)]))
        for batch, bounds in kept_rows.whole_pieces(batches):
            for a, b in pairwise(bounds):
                yield batch.column(0).slice(a, b - a).to_pylist()

    whole = [*pieces([])]
    assert [*chain.from_iterable(whole)] == rows.column(0).to_pylist()
    for count in (1, 20, 50):
        assert [*pieces(sorted(rng.integers(0, len(rows), count).tolist()))] == whole
    assert [*kept_rows.whole_pieces(iter(()))] == []
    assert [bounds for _, bounds in kept_rows.whole_pieces(iter([rows.slice(0, 0)]))] == [[0]]


def test_a_damaged_file_of_kept_rows_is_none(tmp_path: Path) -> None:
    table = Table(tmp_path / "t", files=1)
    with table.connect(tmp_path / "views", []) as session:
        session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERIES['column']}")
        before = session.sql("SELECT * FROM v").to_arrow_table()
    (file,) = (tmp_path / "views" / "v").glob("stage-*.arrow")
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], whole[:-2_000], whole[:-700] + bytes(700)):
        file.write_bytes(damaged)
        table.numbers.append(table.numbers[-1] + 1)
        table.write()
        with table.connect(tmp_path / "views", []) as session:
            session.sql("REFRESH v")
            rows = session.sql("SELECT * FROM v").to_arrow_table()
        assert rows.slice(0, len(before)) == before
        assert len(rows) == len(table.numbers)


def test_files_of_a_table_have_one_order(tmp_path: Path) -> None:
    """Partitions read the files that are theirs, whichever is faster."""
    table = Table(tmp_path / "t", files=20)
    found = set()
    for _ in range(6):
        with table.connect(tmp_path / "views", []) as session:
            frame = session.sql("SELECT id FROM t")
            streams = frame.execute_stream_partitioned()
            found.add(tuple(sum(b.to_pyarrow().num_rows for b in s) for s in streams))
    assert len(found) == 1
    assert min(next(iter(found))) > 0
