"""JSON and Arrow files lose no row, key or digit, whichever method or statement reads them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import blendfusion as bf

_LATE = 1_500
"""Rows, of which DataFusion's methods look at 1,000 to find the columns."""


def _external(session: bf.Session, place: str, kind: str) -> bf.Frame:
    session.sql(f"CREATE EXTERNAL TABLE t STORED AS {kind} LOCATION '{place}'").collect()
    return session.table("t")


def _registered(session: bf.Session, place: str, kind: str) -> bf.Frame:
    getattr(session, f"register_{kind}")("t", place)
    return session.table("t")


DOORS: dict[str, Callable[[bf.Session, str, str], bf.Frame]] = {
    "register_file": lambda session, place, kind: session.register_file(place, "t"),
    "read": lambda session, place, kind: getattr(session, f"read_{kind}")(place),
    "register": _registered,
    "external": _external,
    "path": lambda session, place, kind: session.sql(f"SELECT * FROM '{place}'"),
}


@pytest.fixture
def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: True), cache=None, read_files="local")


def rows_of(frame: bf.Frame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.to_pylist()
    return sorted(rows, key=lambda row: float(row["id"]))


LATE_ROWS = {
    "a key": {"id": _LATE, "late": "x"},
    "a fraction": {"id": _LATE + 0.5},
    "a key inside": {"id": _LATE, "o": {"b": 2}},
    "a key of an item": {"id": _LATE, "l": [{"b": 2}]},
}


@pytest.mark.parametrize("late", LATE_ROWS)
@pytest.mark.parametrize("door", DOORS)
def test_what_comes_late_in_json_is_there(
    door: str, late: str, session: bf.Session, tmp_path: Path
) -> None:
    early = [{"id": n, "o": {"a": n}, "l": [{"a": n}]} for n in range(_LATE)]
    file = tmp_path / "t.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*early, LATE_ROWS[late]]))
    found = rows_of(DOORS[door](session, str(file), "json"))
    last = {name: value for name, value in found[-1].items() if value is not None}
    assert len(found) == _LATE + 1
    assert found[1]["o"]["a"] == 1
    assert last["id"] == LATE_ROWS[late]["id"]
    assert last.get("late") == LATE_ROWS[late].get("late")
    if late == "a key inside":
        assert last["o"] == {"a": None, "b": 2}
    if late == "a key of an item":
        assert last["l"] == [{"a": None, "b": 2}]


@pytest.mark.parametrize("at", [0, _LATE])
@pytest.mark.parametrize("long", [2**63, -(2**63) - 1, 2**53 + 1])
@pytest.mark.parametrize("door", DOORS)
def test_whole_numbers_of_json_keep_their_digits(
    door: str, long: int, at: int, session: bf.Session, tmp_path: Path
) -> None:
    values: list[float] = [0.5] * (_LATE + 1)
    values[at] = long
    text = "".join(
        json.dumps({"id": n, "x": value, "t": "x" * 700}) + "\n" for n, value in enumerate(values)
    )
    (tmp_path / "t.json").write_text(text)
    if door == "external":
        with pytest.raises(bf.QueryError, match="are read one by one"):
            DOORS[door](session, str(tmp_path / "t.json"), "json")
        return
    found = rows_of(DOORS[door](session, str(tmp_path / "t.json"), "json"))
    assert found[at]["x"] == str(long)


def test_a_number_is_found_where_two_blocks_meet(
    session: bf.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blendfusion.files.json_tables._BLOCK", 7)
    monkeypatch.setattr("blendfusion.files.json_tables.JSON_BYTES", 30)
    (tmp_path / "t.json").write_text('{"x": 0.5}\n{"x": 1}\n{"x": 2}\n{"x": 9223372036854775808}\n')
    assert session.read_json(tmp_path / "t.json").to_pydict()["x"][-1] == str(2**63)


@pytest.mark.filterwarnings("ignore::blendfusion.FileWarning")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("door", DOORS)
def test_columns_of_arrow_files_go_by_name(
    door: str, seed: int, session: bf.Session, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    kinds = [pa.int32(), pa.int64()] if seed % 2 else [pa.int64()]
    expected = []
    for file in range(3):
        names = ["a", "b", "c"][: chance.randint(1, 3)] if seed else ["a", "b", "c"]
        values = {name: chance.randint(1, 100) for name in names} | {"id": file}
        expected.append({name: values.get(name) for name in ("a", "b", "c", "id")})
        shuffled = chance.sample([*values], len(values)) if file else [*values]
        table = pa.table({n: pa.array([values[n]], chance.choice(kinds)) for n in shuffled})
        stream = pa.ipc.new_stream if seed == 3 else pa.ipc.new_file
        with stream(str(tmp_path / f"{file}.arrow"), table.schema) as writer:
            writer.write_table(table)
    if door == "external":
        with pytest.raises(bf.QueryError, match="are read one by one"):
            DOORS[door](session, str(tmp_path), "arrow")
        return
    found = rows_of(DOORS[door](session, str(tmp_path), "arrow"))
    assert [{name: row.get(name) for name in ("a", "b", "c", "id")} for row in found] == expected


def test_files_of_arrow_that_are_alike_are_an_external_table(
    session: bf.Session, tmp_path: Path
) -> None:
    for file in range(2):
        table = pa.table({"id": [file], "x": ["a"]})
        with pa.ipc.new_file(str(tmp_path / f"{file}.arrow"), table.schema) as writer:
            writer.write_table(table)
    found = rows_of(_external(session, f"{tmp_path}/", "arrow"))
    assert found == [{"id": 0, "x": "a"}, {"id": 1, "x": "a"}]
