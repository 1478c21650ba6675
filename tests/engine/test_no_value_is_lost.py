"""Rows and files whose values would be left out or run together are errors, or are read whole."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

import blendfusion as bf


@pytest.fixture(scope="module")
def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")


def test_a_key_of_a_later_row_is_a_column(session: bf.Session) -> None:
    frame = session.from_pylist([{"id": 1}, {"id": 2, "note": "x"}, {"late": True}], "rows")
    assert frame.to_pylist() == [
        {"id": 1, "note": None, "late": None},
        {"id": 2, "note": "x", "late": None},
        {"id": None, "note": None, "late": True},
    ]
    assert session.sql("SELECT count(note) AS n FROM rows").to_pylist() == [{"n": 1}]


def test_wrong_rows_and_columns_are_named(session: bf.Session) -> None:
    with pytest.raises(bf.ArgumentError, match="column 'a' holds values of several types"):
        session.from_pylist([{"a": 1}, {"a": "x"}])
    with pytest.raises(bf.ArgumentError, match="column 'a' has 1 values, and 'b' has 2"):
        session.from_pydict({"a": [1], "b": [1, 2]})
    with pytest.raises(bf.ArgumentError, match="a row is a dict, not tuple"):
        session.from_pylist([(1, 2)])  # type: ignore[list-item]


def test_columns_of_arrow_stay_as_they_are(session: bf.Session) -> None:
    column = pa.chunked_array([[1], [2]], pa.int8())
    frame = session.from_pydict({"a": column, "b": [None, "x"]})  # type: ignore[dict-item]
    assert frame.schema().field("a").type == pa.int8()
    assert frame.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert session.from_pylist([]).to_pylist() == []


OPEN = [
    ('id,v\n1,"open\n2,b\n', 2),
    ('id,v\n1,"a\nb"\n2,"open, and\n3,c\n', 4),
    ('id,v\r\n1,5" pipe\r\n2,6" pipe\r\n3,"open\r\n', 4),
]


@pytest.mark.parametrize(("text", "line"), OPEN)
@pytest.mark.parametrize("packed", [False, True])
def test_an_open_quote_is_an_error_with_its_line(
    session: bf.Session, tmp_path: Path, text: str, line: int, packed: bool
) -> None:
    file = tmp_path / ("t.csv.gz" if packed else "t.csv")
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(bf.QueryError, match=f"the quote that opens on line {line} is not closed"):
        session.register_file(file, "quoted")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('id,v\n1,5" pipe\n2,b\n', [{"id": 1, "v": '5" pipe'}, {"id": 2, "v": "b"}]),
        ('id;v\n1;"a ""b"""\n2;5" x\n', [{"id": 1, "v": 'a "b"'}, {"id": 2, "v": '5" x'}]),
        ('id,v\n1,"a\n\nb"\n', [{"id": 1, "v": "a\n\nb"}]),
    ],
)
def test_quotes_inside_of_values_are_characters(
    session: bf.Session, tmp_path: Path, text: str, rows: list[dict[str, object]]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text, newline="")
    name = f"t{abs(hash(text))}"
    assert session.register_file(file, name).to_pylist() == rows


def test_the_ending_that_a_reader_expects_is_named(session: bf.Session, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"id": 1}\n')
    with pytest.raises(bf.ExecutionError, match=r"does not end in \.json") as raised:
        session.read_json(file)
    assert "register_file" in (raised.value.hint or "")
