"""A session reads the files that a folder has by now."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf


@pytest.mark.parametrize("suffix", ["parquet", "json"])
@pytest.mark.parametrize("query", ["SELECT id FROM t", "SELECT id FROM t WHERE llm_filter('?', x)"])
def test_files_that_come_and_go(query: str, suffix: str, tmp_path: Path) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)

    def write(name: str, number: int) -> None:
        file = tmp_path / f"{name}.{suffix}"
        if suffix == "parquet":
            pq.write_table(pa.table({"id": [number], "x": [f"text {number}"]}), file)
        else:
            file.write_text(f'{{"id": {number}, "x": "text {number}"}}\n')

    def ids() -> list[int]:
        return sorted(session.sql(query).to_pydict()["id"])

    write("a", 1)
    getattr(session, f"register_{suffix}")("t", str(tmp_path))
    assert ids() == [1]
    write("b", 2)
    assert ids() == [1, 2]
    (tmp_path / f"a.{suffix}").rename(tmp_path / f"c.{suffix}")
    assert ids() == [1, 2]
    assert session.sql("SELECT count(*) AS n, max(id) AS m FROM t").to_pylist() == [
        {"n": 2, "m": 2}
    ]
    (tmp_path / f"b.{suffix}").unlink()
    assert ids() == [1]
    assert session.sql("SELECT count(*) AS n, max(id) AS m FROM t").to_pylist() == [
        {"n": 1, "m": 1}
    ]
