"""Files as tables by their extension, and results in each format."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from datafusion import CsvReadOptions, SessionContext

import blendfusion as bf
from blendfusion.apps.cli.results import Format, format_for, write
from blendfusion.datafusion.file_errors import INFERRED_ROWS
from blendfusion.errors import QueryError
from blendfusion.files.reading import register_spec

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
    assert register_spec(context, f"things={tmp_path / name}") == "things"
    found = context.sql("SELECT id, text FROM things ORDER BY id").to_arrow_table()
    assert found.to_pylist() == ROWS


def test_a_path_may_hold_an_equals_sign(tmp_path: Path) -> None:
    save(tmp_path / "a=b.csv")
    assert register_spec(SessionContext(), f"t={tmp_path / 'a=b.csv'}") == "t"


@pytest.mark.parametrize("spec", ["=reviews.csv", "reviews=", ""])
def test_a_wrong_spec_says_what_is_right(spec: str) -> None:
    with pytest.raises(QueryError, match="NAME=PATH"):
        register_spec(SessionContext(), spec)


def test_a_missing_file_names_a_close_one(tmp_path: Path) -> None:
    save(tmp_path / "reviews.csv")
    with pytest.raises(QueryError, match="no file") as raised:
        register_spec(SessionContext(), f"r={tmp_path / 'review.csv'}")
    assert "reviews.csv" in str(raised.value.hint)
    with pytest.raises(QueryError, match="no file"):
        register_spec(SessionContext(), f"r={tmp_path / 'nowhere' / 'r.csv'}")


def test_an_unknown_extension_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "t.rtf").touch()
    with pytest.raises(QueryError, match="how to read") as raised:
        register_spec(SessionContext(), f"t={tmp_path / 't.rtf'}")
    assert ".parquet" in str(raised.value.hint)
    (tmp_path / "t.docx").write_text("x")
    with pytest.raises(QueryError, match="is a document") as raised:
        register_spec(SessionContext(), f"t={tmp_path / 't.docx'}")
    assert "register_file" in str(raised.value.hint)


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


@pytest.mark.parametrize(("pipe", "style"), [(False, "table"), (True, "tsv")])
def test_without_a_file_a_screen_gets_a_table_and_a_pipe_its_values(
    pipe: bool, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blendfusion.apps.cli.results.is_pipe", lambda stream: pipe)
    assert format_for(None) == style


def test_a_file_gets_the_format_of_its_name(tmp_path: Path) -> None:
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


def rows_of(spec: str) -> list[dict[str, object]]:
    context = SessionContext()
    name = register_spec(context, spec)
    found: list[dict[str, object]] = context.sql(f"SELECT * FROM {name}").to_pylist()
    return sorted(found, key=lambda row: str(row.get("id")))


def test_a_table_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    save(tmp_path / "My Sales-2024.csv")
    assert register_spec(SessionContext(), str(tmp_path / "My Sales-2024.csv")) == "my_sales_2024"


@pytest.mark.parametrize("name", ["t.csv.gz", "t.json.gz", "t.tsv.bz2"])
def test_compressed_text_is_read(name: str, tmp_path: Path) -> None:
    inner = tmp_path / name.rpartition(".")[0]
    save(inner)
    pack = {"gz": gzip.compress, "bz2": bz2.compress}[name.rpartition(".")[2]]
    (tmp_path / name).write_bytes(pack(inner.read_bytes()))
    assert rows_of(f"t={tmp_path / name}") == ROWS


@pytest.mark.parametrize("place", ["", "/", "/*.csv"])
def test_a_folder_or_a_pattern_is_one_table(place: str, tmp_path: Path) -> None:
    for part, row in enumerate(ROWS):
        file = tmp_path / f"part{part}.csv"
        file.write_text(f'id,text\n{row["id"]},"{row["text"]}"\n', encoding="utf-8")
    assert rows_of(f"t={tmp_path}{place}") == ROWS


def test_a_folder_of_several_kinds_or_of_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="no files"):
        register_spec(SessionContext(), f"t={tmp_path}")
    save(tmp_path / "a.csv")
    save(tmp_path / "b.parquet")
    with pytest.raises(QueryError, match=r"several kinds, such as 'a.csv' and 'b.parquet'"):
        register_spec(SessionContext(), f"t={tmp_path}")


def test_an_array_of_json_objects_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(ROWS), encoding="utf-8")
    assert rows_of(f"t={tmp_path / 'a.json'}") == ROWS
    (tmp_path / "b.json").write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(QueryError, match="no table"):
        register_spec(SessionContext(), f"t={tmp_path / 'b.json'}")
    (tmp_path / "c.json").write_text("[{", encoding="utf-8")
    with pytest.raises(QueryError, match="cannot read"):
        register_spec(SessionContext(), f"t={tmp_path / 'c.json'}")


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_another_delimiter_is_seen_in_the_header(delimiter: str, tmp_path: Path) -> None:
    lines = ["id@text", "1@one, two", "2@naïve [bold]"]
    text = "\n".join(lines).replace("@", delimiter)
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert rows_of(f"t={tmp_path / 't.csv'}") == ROWS


def test_text_in_another_encoding_names_its_line_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes("id,text\n1,a\n2,ä\n".encode("latin-1"))
    with pytest.raises(QueryError, match=r"l\.csv' is not UTF-8: see line 3") as raised:
        register_spec(SessionContext(), f"t={tmp_path / 'l.csv'}")
    assert "iconv -f LATIN1" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("a,b\n1,2\n3,4,5\n", "line 3 of the CSV file: 3 fields, where the lines before have 2", '"a, b"'),
        ("a,b\n" + "1,2\n" * 2000 + "3\n", "line 2002 of the CSV file: 1 fields", '"a, b"'),
        ('id,"a b",id\n1,2,3\n', "has two columns 'id'", "Rename them"),
        ("id,b,id,b\n1,2,3,4\n", "has two columns 'id' and 'b'", "Rename them"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_csv_has_its_line_and_the_remedy(
    text: str, problem: str, remedy: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    session = bf.connect(None, cache=None, show_values="off")
    with pytest.raises(QueryError, match=problem) as raised:
        session.register_file(str(tmp_path / "t.csv"))
    assert remedy in (raised.value.hint or "")


def test_two_columns_of_one_name_are_refused_however_a_csv_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id;a;id\n1;2;3\n", encoding="utf-8")
    session = bf.connect(None, cache=None)
    readers: list[Callable[..., object]] = [session.read_csv, partial(session.register_csv, "t")]
    for reader in readers:
        for path in (file, str(file), str(tmp_path), [str(file)]):
            with pytest.raises(
                QueryError, match="has two columns 'id'\nHint: Rename them in the first"
            ):
                reader(path, delimiter=";")
            with pytest.raises(QueryError, match="has two columns 'id'"):
                reader(path, options=CsvReadOptions(delimiter=";"))
        reader(file, delimiter=";", has_header=False)
    assert session.table("t").count() == 2
    file.write_text("id,a,id\n1,2,3\n", encoding="utf-8")
    with pytest.raises(QueryError, match="has two columns 'id'\nHint: Rename them in the first"):
        session.sql(f"CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{file}'")


def test_types_of_a_csv_are_those_of_many_rows_and_of_later_ones_an_error(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id,code\n" + "".join(f"{i},{i}\n" for i in range(3000)) + "3000,A7\n", "utf-8")
    session = bf.connect(None, cache=None, show_values="off")
    assert session.register_file(str(file)).to_pydict()["code"][-1] == "A7"
    file.write_text("id,code\n" + "1,2\n" * INFERRED_ROWS + "3000,A7\n", "utf-8")
    session.register_file(str(file), "late")
    with pytest.raises(bf.ExecutionError, match=r"line 100002 of the CSV file .*: … in column 2 is not Int64") as raised:  # fmt: skip
        session.sql("SELECT max(code) FROM late").collect()
    assert "CREATE EXTERNAL TABLE" in (raised.value.hint or "")
    assert raised.value.hint is not None
    assert "Values are withheld here: show_values='on' shows them." in raised.value.hint
    assert "Values are withheld here: --show-values on shows them." in raised.value.hint.on("page")


@pytest.mark.parametrize(
    "text", ["id,text\n1,x\n", '[{"id": 1, "text": "x"}]', '{"id": 1, "text": "x"}\n']
)
def test_standard_input_is_a_table(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert rows_of("t=-") == [{"id": 1, "text": "x"}]


EVERY_TYPE = pa.table(
    {
        "view": pa.array(["a", None], pa.string_view()),
        "bytes": pa.array([b"\xff", None], pa.binary()),
        "bytes_view": pa.array([b"\xff", None], pa.binary_view()),
        "dictionary": pa.array(["a", None]).dictionary_encode(),
        "ends": pa.RunEndEncodedArray.from_arrays([2], ["a"]),
        "none": pa.nulls(2),
        "small": pa.array([1.5, None], pa.float16()),
        "wide": pa.array([Decimal("1.50"), None], pa.decimal256(50, 2)),
        "span": pa.array([datetime.timedelta(seconds=1), None]),
        "moment": pa.array([datetime.datetime(2024, 1, 2, 3, 4), None], pa.timestamp("us", "UTC")),
        "day": pa.array([datetime.date(2024, 1, 2), None]),
        "list": pa.array([["a"], None]),
        "struct": pa.array([{"a": 1}, None]),
    }
)


@pytest.mark.parametrize("extension", ["csv", "tsv", "json", "parquet", "arrow", "txt"])
def test_every_type_is_written(extension: str, tmp_path: Path) -> None:
    table = EVERY_TYPE
    if extension == "parquet":  # which has no 16-bit view of bytes
        table = table.drop_columns(["bytes_view"])
    file = tmp_path / f"o.{extension}"
    write(table, format_for(file), file)
    if extension in ("csv", "tsv"):
        delimiter = "\t" if extension == "tsv" else ","
        (first, _) = csv.DictReader(io.StringIO(file.read_text("utf-8")), delimiter=delimiter)
        assert first["view"] == first["dictionary"] == first["ends"] == "a"
        assert first["bytes"] == first["bytes_view"] == "/w=="
        assert (first["wide"], first["list"], first["none"]) == ("1.50", '["a"]', "")
    assert [f.name for f in tmp_path.iterdir()] == [file.name]


TEXTS = ["P01", "", None, "a\tb", "a\nb", "a\r", 'a "b"', "a,b", " a ", "'a'", "ä", "\\t", "7"]


def test_tabs_quote_only_what_needs_it(capfdbinary: Any) -> None:
    """What ``cut`` and ``awk`` read has quotes where a reader of TSV needs them, and no others."""
    table = pa.table({"text\t": TEXTS, "n": range(len(TEXTS))})
    write(table, "tsv", None)
    shown = capfdbinary.readouterr().out.decode()
    rows = list(csv.reader(io.StringIO(shown, newline=""), delimiter="\t"))
    assert rows == [["text\t", "n"], *([t or "", str(n)] for n, t in enumerate(TEXTS))]
    cells = ["P01", '""', "", '"a\tb"', '"a\nb"', '"a\r"', '"a ""b"""', *TEXTS[7:]]
    assert shown == "".join(
        f"{c}\t{n}\n" for c, n in zip(['"text\t"', *cells], ["n", *range(13)], strict=True)
    )


@pytest.mark.parametrize("name", ["o.docx", "o.docx.gz", "o.parquet.gz", "o.gz", "o"])
def test_an_unknown_extension_of_a_result_is_an_error(name: str) -> None:
    with pytest.raises(QueryError, match="how to write") as raised:
        format_for(Path(name))
    assert ".parquet" in (raised.value.hint or "")


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "o.csv"
    file.write_text("before", encoding="utf-8")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.csv.write_csv", full)
    with pytest.raises(QueryError, match="No space left"):
        write(TABLE, "csv", file)
    assert [f.read_text("utf-8") for f in tmp_path.iterdir()] == ["before"]


def test_long_cells_are_whole_in_files_and_on_wish(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = pa.table({"x": ["word " * 20]})
    write(long, "table", None)
    assert "…" in capsys.readouterr().out
    write(long, "table", None, full_cells=True)
    assert capsys.readouterr().out.count("word") == 20
    write(long, "table", tmp_path / "o.txt")
    assert (tmp_path / "o.txt").read_text("utf-8").count("word") == 20


def test_a_plan_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    write(pa.table({"plan": ["Stage 1", "  filter x"]}), "table", None)
    assert capsys.readouterr().out == "Stage 1\n  filter x\n"
