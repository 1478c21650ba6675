"""Rows between the stages of a query: in memory up to a size, then in files that leave no trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scripts import Counted, spoken

import blendfusion as bf
from blendfusion.errors import BlendFusionError, OptionError
from blendfusion.models.stores.temporary_rows import TemporaryRows
from blendfusion.options import Options
from blendfusion.run.execution.spill import Spill

TABLE = pa.table(
    {
        "n": range(1000),
        "text": [f"text {n}" if n % 7 else None for n in range(1000)],
        "list": [[n, n + 1] for n in range(1000)],
        "kind": pa.array([("a", "b", "c")[n % 3] for n in range(1000)]).dictionary_encode(),
    }
)


def pieces() -> Iterator[pa.Table]:
    """The table in pieces whose dictionaries differ."""
    yield TABLE.slice(0, 500)
    rest = TABLE.slice(500)
    kind = rest["kind"].cast(pa.string()).combine_chunks().dictionary_encode()
    yield rest.set_column(3, "kind", kind)


def test_rows_come_back_as_they_were_and_no_file_is_left(tmp_path: Path) -> None:
    spill = Spill(Options(spill_above=0, spill_folder=str(tmp_path)))
    kept = spill.keep(pieces())
    assert kept.to_pylist() == TABLE.to_pylist()
    assert kept.schema == TABLE.schema
    assert spill.spilled > 0
    assert list(tmp_path.iterdir()) == []


def test_what_fits_stays_in_memory(tmp_path: Path) -> None:
    spill = Spill(Options(spill_above=1, spill_folder=str(tmp_path / "none")))
    assert spill.keep(pieces()).to_pylist() == TABLE.to_pylist()
    assert spill.spilled == 0


def test_the_limit_is_for_all_stages_together(tmp_path: Path) -> None:
    half_a_megabyte = pa.table({"n": range(62_500)})
    spill = Spill(Options(spill_above=1, spill_folder=str(tmp_path)))
    for _ in range(2):
        spill.keep([half_a_megabyte])
        assert spill.spilled == 0
    assert spill.keep([half_a_megabyte, half_a_megabyte]).num_rows == 125_000
    assert spill.spilled > 1_000_000


def test_rows_on_disk_take_no_memory(tmp_path: Path) -> None:
    before = pa.total_allocated_bytes()
    spill = Spill(Options(spill_above=1, spill_folder=str(tmp_path)))
    kept = spill.keep(pa.table({"n": range(n, n + 100_000)}) for n in range(20))
    assert kept.nbytes == 20 * 800_000
    assert pa.total_allocated_bytes() - before < 1_000_000
    descriptors = len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0
    del kept
    if descriptors:
        assert len(os.listdir("/dev/fd")) <= descriptors


def test_no_rows_are_rows_too(tmp_path: Path) -> None:
    spill = Spill(Options(spill_above=0, spill_folder=str(tmp_path)))
    assert spill.keep([TABLE.slice(0, 0)]).schema == TABLE.schema


def test_a_folder_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    spill = Spill(Options(spill_above=0, spill_folder=str(tmp_path / "none")))
    with pytest.raises(
        BlendFusionError, match=r"none.*\nHint: Name another folder with spill_folder"
    ):
        spill.keep([TABLE])


def test_a_disk_without_room_is_named_with_the_remedy(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    small = TABLE.select(["n"]).slice(0, 100)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, usual[1]))  # no file may be larger
    try:
        with pytest.raises(BlendFusionError, match="cannot be written to a file"):
            Spill(Options(spill_above=0, spill_folder=str(tmp_path))).keep([small] * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert list(tmp_path.iterdir()) == []


def test_what_the_rows_raise_is_no_trouble_of_the_file(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.Table]:
        yield TABLE
        raise ConnectionError("of a model")

    with pytest.raises(ConnectionError, match="of a model"):
        Spill(Options(spill_above=0, spill_folder=str(tmp_path))).keep(failing())
    assert list(tmp_path.iterdir()) == []


QUERIES = (
    "SELECT t.x FROM t JOIN u ON t.x = u.x WHERE llm_filter('holds a', t.x) ORDER BY t.x",
    "SELECT llm_int('length', x) AS n, count(*) AS many FROM t GROUP BY n ORDER BY n",
    "SELECT upper(m) AS m FROM (SELECT llm_map('upper', x) AS m FROM t) ORDER BY m LIMIT 3",
    "SELECT unnest(xs) AS x FROM l WHERE llm_filter('holds a', name) ORDER BY x",
    "SELECT x, llm_filter('holds b', x) AS b FROM t WHERE x IN (SELECT llm_map('upper', x) FROM u) "
    "OR llm_filter('holds a', x) ORDER BY x",
)


@pytest.mark.parametrize("sql", QUERIES)
def test_results_are_the_same_with_every_stage_on_disk(sql: str, tmp_path: Path) -> None:
    def session(**options: object) -> Counted:
        counted = Counted(spoken, **options)
        counted.add("t", {"x": ["a", "ab", "b", None, "bab", "", "ca"] * 50})
        counted.add("u", {"x": ["a", "B", "ca"]})
        counted.add("l", {"name": ["a", "b", "ca"], "xs": [[1, 2], [3], None]})
        return counted

    memory, disk = session(), session(spill_above=0, spill_folder=str(tmp_path))
    assert disk.rows(sql) == memory.rows(sql)
    assert len(disk.model.calls) == len(memory.model.calls)
    frame = disk.session.sql(sql)
    frame.collect()
    assert frame.prepared.staged is not None
    assert frame.latest.execution is not None
    assert (frame.latest.execution._spill.spilled > 0) == (len(frame.prepared.staged.stages) > 1)
    assert list(tmp_path.iterdir()) == []


def test_these_queries_have_stages_between_which_rows_lie() -> None:
    counted = Counted(spoken)
    counted.add("t", {"x": ["a"]}).add("u", {"x": ["a"]}).add("l", {"name": ["a"], "xs": [[1]]})
    frames = [counted.session.sql(sql) for sql in QUERIES]
    assert [len(f.prepared.staged.stages) for f in frames if f.prepared.staged] == [1, 2, 2, 2, 2]


ANSWER_QUERIES = (
    "SELECT id, llm_map('upper', x) AS m, llm_filter('holds 1', x) AS b FROM r WHERE id % 7 > 0",
    "SELECT x, count(*) AS n FROM r WHERE llm_filter('holds 2', x) OR llm_int('length', x) = 9 "
    "GROUP BY x ORDER BY x",
    "SELECT id, llm_int('length', x, on_error => 'keep') AS n FROM r",
)


def repeated(**options: Any) -> Counted:
    """A session over 4,000 values, each in two chunks."""
    rows = {"id": range(8_000), "x": [f"value {n * 37 % 4_000}" for n in range(8_000)]}
    return Counted(spoken, chunk_rows=1_000, **options).add("r", rows)


@pytest.mark.parametrize("sql", ANSWER_QUERIES)
def test_results_are_the_same_with_answers_on_disk(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled: list[int] = []
    add = TemporaryRows.add
    monkeypatch.setattr(
        TemporaryRows,
        "add",
        lambda file, holder, rows: spilled.append(len(rows)) or add(file, holder, rows),
    )
    memory = repeated()
    expected = memory.session.sql(sql)
    table = expected.to_arrow_table()
    assert not spilled
    disk = repeated(spill_above=1, spill_folder=str(tmp_path))
    frame = disk.session.sql(sql)
    assert frame.to_arrow_table().equals(table)
    assert spilled
    assert disk.model.calls == memory.model.calls
    assert frame.trace.usage == replace(expected.trace.usage, seconds=frame.trace.usage.seconds)
    assert list(tmp_path.iterdir()) == []


def test_answers_that_cannot_be_written_are_stored_all_the_same(tmp_path: Path) -> None:
    """One error; the next run asks only what is left."""
    cache, asked = tmp_path / "answers.sqlite", 0
    for options in ({"spill_above": 1, "spill_folder": str(tmp_path / "none")}, {}):
        model = bf.ScriptedModel(spoken, fingerprint="spoken")
        session = bf.connect(model, cache=cache, chunk_rows=500, **options)
        session.from_pydict({"x": [f"value {n}" for n in range(4_000)]}, "r")
        frame = session.sql("SELECT llm_map('upper', x) AS m FROM r")
        if options:
            with pytest.raises(BlendFusionError, match="answers of a query cannot be written"):
                frame.collect()
        else:
            frame.collect()
        asked += len(model.calls)
        assert len(model.calls) > 1_000
    assert asked == 4_000


def test_the_options_are_checked() -> None:
    with pytest.raises(OptionError, match="spill_above"):
        bf.connect(bf.ScriptedModel(spoken), spill_above=-1)
    with pytest.raises(OptionError, match="The path of a folder"):
        bf.connect(bf.ScriptedModel(spoken), spill_folder=3)
