"""Files as tables by their extension, and results in each format."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from datafusion import SessionContext

from blendfusion.cli.files import Format, format_for, register_file, write
from blendfusion.errors import QueryError

ROWS = [{"id": 1, "text": "one, two"}, {"id": 2, "text": "naïve [bold]"}]
TABLE = pa.Table.from_pylist(ROWS)


def save(path: Path) -> None:
    kind = path.suffix.lower()
    if kind == ".parquet":
        pyarrow.parquet.write_table(TABLE, path)
    elif kind == ".arrow":
        with pa.ipc.new_file(path, TABLE.schema) as file:
            file.write_table(TABLE)
    elif kind in (".csv", ".tsv"):
        options = pyarrow.csv.WriteOptions(delimiter="\t" if kind == ".tsv" else ",")
        pyarrow.csv.write_csv(TABLE, path, options)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["t.csv", "t.CSV", "t.tsv", "t.json", "t.ndjson", "t.jsonl", "t.arrow", "t.parquet"]
)
def test_a_file_is_read_by_its_extension(name: str, tmp_path: Path) -> None:
    save(tmp_path / name)
    context = SessionContext()
    assert register_file(context, f"things={tmp_path / name}") == "things"
    found = context.sql("SELECT id, text FROM things ORDER BY id").to_arrow_table()
    assert found.to_pylist() == ROWS


def test_a_path_may_hold_an_equals_sign(tmp_path: Path) -> None:
    save(tmp_path / "a=b.csv")
    assert register_file(SessionContext(), f"t={tmp_path / 'a=b.csv'}") == "t"


@pytest.mark.parametrize("spec", ["reviews.csv", "=reviews.csv", "reviews=", ""])
def test_a_wrong_spec_says_what_is_right(spec: str) -> None:
    with pytest.raises(QueryError, match="NAME=PATH"):
        register_file(SessionContext(), spec)


def test_a_missing_file_names_a_close_one(tmp_path: Path) -> None:
    save(tmp_path / "reviews.csv")
    with pytest.raises(QueryError, match="no file") as raised:
        register_file(SessionContext(), f"r={tmp_path / 'review.csv'}")
    assert "reviews.csv" in str(raised.value.hint)
    with pytest.raises(QueryError, match="no file"):
        register_file(SessionContext(), f"r={tmp_path / 'nowhere' / 'r.csv'}")


def test_an_unknown_extension_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").touch()
    with pytest.raises(QueryError, match="how to read") as raised:
        register_file(SessionContext(), f"t={tmp_path / 't.xlsx'}")
    assert ".parquet" in str(raised.value.hint)


RESULT = pa.table(
    {
        "name": ["a [red]x[/red]", None],
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        "day": pa.array([datetime.date(2024, 2, 29), None]),
        "tags": pa.array([["x", "y"], None]),
        "raw": pa.array([b"\x00\x01", None]),
    }
)


def printed(style: Format, capsys: pytest.CaptureFixture[str], table: pa.Table = RESULT) -> str:
    write(table, style, None)
    return capsys.readouterr().out


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = printed("json", capsys).splitlines()
    assert json.loads(first) == {
        "name": "a [red]x[/red]",
        "price": 1.5,
        "day": "2024-02-29",
        "tags": ["x", "y"],
        "raw": "AAE=",
    }
    assert set(json.loads(second).values()) == {None}


def test_csv_holds_lists_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    table = RESULT.drop_columns(["raw"])
    read = pyarrow.csv.read_csv(io.BytesIO(printed("csv", capsys, table).encode()))
    assert read.column("tags").to_pylist() == ['["x", "y"]', ""]
    assert read.column("name").to_pylist()[0] == "a [red]x[/red]"


def test_a_table_shows_data_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed("table", capsys)
    assert "a [red]x[/red]" in shown
    assert "NULL" in shown
    assert '["x", "y"]' in shown
    assert shown.endswith("2 rows\n")
    long = printed("table", capsys, pa.table({"text": ["word " * 100]}))
    assert "…" in long
    assert long.endswith("1 row\n")


def test_results_without_rows_keep_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    empty = RESULT.slice(0, 0)
    assert "price" in printed("table", capsys, empty)
    assert printed("csv", capsys, empty).startswith('"name","price"')
    assert printed("json", capsys, empty) == ""


def test_a_file_gets_the_format_of_its_name(tmp_path: Path) -> None:
    assert format_for(None) == "table"
    for name, style in (("o.csv", "csv"), ("o.JSON", "json"), ("o.parquet", "parquet")):
        path = tmp_path / name
        assert format_for(path) == style
        write(TABLE, style, path)  # type: ignore[arg-type]
        assert path.stat().st_size > 0
    assert pyarrow.parquet.read_table(tmp_path / "o.parquet").equals(TABLE)
    assert format_for(tmp_path / "notes.txt") == "table"


def test_what_cannot_be_written_says_why(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="needs a file"):
        write(TABLE, "parquet", None)
    with pytest.raises(QueryError, match="cannot write"):
        write(TABLE, "csv", tmp_path / "nowhere" / "o.csv")
