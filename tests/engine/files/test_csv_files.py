"""CSV files of every form: random ones against Python's csv and DuckDB, and those that were once read
wrongly."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import os
import random
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from datafusion import CsvReadOptions, SessionConfig

import blendfusion as bf
from blendfusion.files import csv_tables
from blendfusion.files.csv_head import head_of
from blendfusion.files.quoted_breaks import has_quoted_break

WORDS = (
    "Hello",
    "the lamp broke",
    "naïve 😀",
    "a, b",
    "x;y",
    "tab\there",
    'say "hi"',
    "7,quoted",
    "| |",
)
BREAKS = ("\n", "\r\n", "\n\n", "\n7,like a record,1\n")
DELIMITERS = (",", ";", "\t", "|")
STAMP, ZONE = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?", r"(?:Z|[+-]\d\d(?::?\d\d)?)"
ZONES = ("Z", "+02:00", "-0530", "+05", "+00:00")
UTC = ZoneInfo("UTC")


@pytest.fixture
def session() -> bf.Session:
    return bf.connect(None, cache=None, show_values="on")


@dataclass(frozen=True)
class Made:
    """A random CSV file."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    content: bytes
    delimiter: str
    ending: str

    def typed(self) -> list[list[object]]:
        """The rows as they are read: a column has the type of all its values."""
        columns = [_typed(column) for column in zip(*self.rows, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]


def _is_ambiguous(one: Made) -> bool:
    """Whether another delimiter makes as good a table of a file: nobody can tell which is meant."""
    written = io.StringIO()
    csv.writer(written, delimiter=one.delimiter).writerows([one.names, *one.rows])
    for delimiter in set(DELIMITERS) - {one.delimiter}:
        text = io.StringIO(written.getvalue(), newline="")
        counts = {len(record) for record in csv.reader(text, delimiter=delimiter)}
        if len(counts) == 1 and max(counts) >= len(one.names) > 1:
            return True
    return False


def _typed(column: Sequence[str]) -> list[object]:
    known = [value for value in column if value]
    readers: Sequence[tuple[str, Any]] = (
        (r"-?\d{1,15}", int),
        (r"-?\d{1,15}|-?\d+\.\d+", float),
        (r"(?i:true|false)", lambda text: text.lower() == "true"),
        (r"\d{4}-\d\d-\d\d", datetime.date.fromisoformat),
        (STAMP, datetime.datetime.fromisoformat),
        (STAMP + ZONE, lambda text: datetime.datetime.fromisoformat(text).astimezone(UTC)),
    )
    for pattern, reader in readers:
        if known and all(re.fullmatch(pattern, value) for value in known):
            with suppress(ValueError):  # no such day
                return [reader(value) if value else None for value in column]
    return [value or None for value in column]


def _text(chance: random.Random) -> str:
    pieces = [
        chance.choice((*WORDS, *BREAKS, "x" * chance.randrange(60)))
        for _ in range(chance.randrange(1, 5))
    ]
    return "".join(pieces).strip() or "x"


def _stamp(chance: random.Random) -> str:
    day = f"{chance.choice((1899, 2024))}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    return f"{day}{chance.choice('T ')}{chance.randrange(24):02}:00:59{chance.choice(('', '.5', '.123456'))}"


KINDS = {
    "text": _text,
    "whole": lambda chance: str(chance.randrange(-999, 9999)),
    "number": lambda chance: f"{chance.uniform(-99, 99):.3f}",
    "flag": lambda chance: chance.choice(("true", "false", "True")),
    "day": lambda chance: f"2024-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}",
    "near day": lambda chance: chance.choice(("2024-02-31", "2024-13-01", "2024-01-01 10:00:00 said Ann")),
    "moment": lambda chance: _stamp(chance) + chance.choice(ZONES),
    "local time": lambda chance: _stamp(chance),
    "any time": lambda chance: _stamp(chance) + chance.choice((*ZONES, "", "", "")),
    "long whole": lambda chance: str(chance.randrange(10**19, 10**20)),
}  # fmt: skip


def made(seed: int) -> Made:
    """The random file of a number."""
    chance = random.Random(seed)
    kinds = [chance.choice([*KINDS, "text"]) for _ in range(chance.randrange(1, 6))]
    names = [
        f"{chance.choice(('id', 'text', 'Created On', 'a,b', 'x'))} {n}" for n in range(len(kinds))
    ]
    count = chance.choice((1, 3, 20, 300))
    blanks = 0.1 if len(kinds) > 1 and chance.random() < 0.5 else 0
    rows = [
        ["" if chance.random() < blanks else KINDS[kind](chance) for kind in kinds]
        for _ in range(count)
    ]
    delimiter = chance.choice(DELIMITERS if len(kinds) > 1 else ",")
    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=delimiter,
        lineterminator=chance.choice(("\n", "\r\n")),
        quoting=chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
    )
    writer.writerows([names, *rows])
    encoding = chance.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16"))
    written = text.getvalue()
    if chance.random() < 0.3:
        written = written.rstrip("\r\n")
    pack, packed = chance.choice(
        ((bytes, ""), (bytes, ""), (gzip.compress, ".gz"), (bz2.compress, ".bz2"))
    )
    return Made(names, rows, pack(written.encode(encoding)), delimiter, f".csv{packed}")


def _plain(table: pa.Table) -> list[list[object]]:
    return [list(row.values()) for row in table.to_pylist()]


def _differs(number: int, folder: Path) -> str | None:
    """What is wrong with how the file of a number is read; None if nothing is."""
    one = made(number)
    file = folder / f"t{number}{one.ending}"
    file.write_bytes(one.content)
    config = SessionConfig(
        {"datafusion.optimizer.repartition_file_min_size": "1"}
    ).with_target_partitions(4)
    session = bf.connect(None, cache=None, config=config)
    try:
        given = one.delimiter if _is_ambiguous(one) else None
        table = session.register_file(file, "t", delimiter=given).to_arrow_table()
        again = (
            session.read_csv(file, delimiter=one.delimiter).to_arrow_table()
            if one.ending == ".csv"
            else table
        )
    except bf.BlendFusionError as problem:
        return f"{number}: {problem}"
    finally:
        file.unlink()
    if table.column_names != list(one.names):
        return f"{number}: columns {table.column_names}, not {one.names}"
    if not (same(_plain(table), one.typed()) and same(_plain(again), one.typed())):
        return f"{number}: {_plain(table)[:3]}, not {one.typed()[:3]}"
    return None


def same(found: Sequence[Sequence[object]], due: Sequence[Sequence[object]]) -> bool:
    """Whether two tables have the same rows, whatever the order in which files are read."""
    return sorted(map(repr, found)) == sorted(map(repr, due))


def test_random_files_are_read_as_they_were_written(
    given_cases: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_tables, "_CUT_BYTES", 0)  # every file may be cut
    count = 150 if given_cases is None else given_cases
    first = int(os.environ.get("CSV_FROM", "0"))
    numbers = range(first, first + count)
    wrong = [found for n in numbers if (found := _differs(n, tmp_path)) is not None]
    assert not wrong, "\n".join(wrong[:5])


def test_the_oracle_agrees_with_duckdb(tmp_path: Path) -> None:
    for number in range(100):
        one = made(number)
        if one.ending != ".csv" or one.content.startswith((b"\xff\xfe", b"\xef\xbb")):
            continue
        file = tmp_path / f"t{number}.csv"
        file.write_bytes(one.content)
        read = duckdb.read_csv(
            str(file),
            header=True,
            delimiter=one.delimiter,
            quotechar='"',
            escapechar='"',
            all_varchar=True,
        )
        due = [[value or None for value in row] for row in one.rows]
        assert [list(row) for row in read.fetchall()] == due, number


def rows_of(frame: bf.Frame) -> list[dict[str, Any]]:
    return sorted(frame.to_pylist(), key=repr)


def write_rows(file: Path, rows: Sequence[Sequence[object]]) -> Path:
    with file.open("w", encoding="utf-8", newline="") as target:
        csv.writer(target).writerows(rows)
    return file


@pytest.mark.parametrize("padding", range(0, 100, 9))
def test_line_breaks_in_quotes_are_no_ends_of_records_at_any_size(
    padding: int, session: bf.Session, tmp_path: Path
) -> None:
    rows: list[list[object]] = [[n, "x" * padding + ",\n\nb", "k"] for n in range(400)]
    file = write_rows(tmp_path / "t.csv", [["id", "text", "k"], *rows])
    readers = [
        session.register_file(file, "a"),
        session.read_csv(file),
        session.sql("SELECT * FROM (SELECT 1) s CROSS JOIN a WHERE true").drop("Int64(1)"),
    ]
    session.register_csv("b", file)
    session.sql(f"CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{file}'")
    for frame in (*readers, session.table("b"), session.table("c")):
        assert [row["text"] for row in frame.to_pylist()] == [row[1] for row in rows]


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_a_large_file_is_not_cut_inside_of_quotes(partitions: int, tmp_path: Path) -> None:
    mail = (
        "Hello\nthe lamp broke again after two days of use.\n7,quoted line\nPlease send a new one"
    )
    file = write_rows(
        tmp_path / "t.csv", [["id", "text"], *([n, f"{n} {mail}"] for n in range(140_000))]
    )
    assert file.stat().st_size > 12 << 20
    session = bf.connect(
        None, cache=None, config=SessionConfig().with_target_partitions(partitions)
    )
    query = "SELECT count(*) AS n, count(DISTINCT id) AS ids, min(length(text)) AS least FROM "
    due = [{"n": 140_000, "ids": 140_000, "least": len(mail) + 2}]
    session.register_file(file, "a")
    session.register_csv("b", file)
    session.register_csv("s", file, schema=pa.schema([("id", pa.int64()), ("text", pa.string())]))
    session.sql(f"CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{file}'")
    session.sql(f"CREATE EXTERNAL TABLE d (id BIGINT, text TEXT) STORED AS CSV LOCATION '{file}'")
    for table in "absc d".replace(" ", ""):
        assert session.sql(query + table).to_pylist() == due, table


@pytest.mark.long
def test_a_large_file_without_line_breaks_in_quotes_is_read_by_all_cores(tmp_path: Path) -> None:
    file = write_rows(
        tmp_path / "t.csv", [["id", "text"], *([n, "a, b" * 20] for n in range(140_000))]
    )
    session = bf.connect(None, cache=None, config=SessionConfig().with_target_partitions(4))
    session.register_file(file, "a")
    session.sql(f"CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{file}'")
    for table in "ac":
        plan = session.sql(f"EXPLAIN SELECT * FROM {table}").to_pydict()["plan"]
        assert "4 groups" in "".join(plan)
        assert session.sql(f"SELECT count(*) AS n FROM {table}").to_pylist() == [{"n": 140_000}]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,b\n1,2\n", False),
        ('a,"b, c"\n1,"2"\n', False),
        ('a,"b\nc"\n', True),
        ('"a ""b""\nc"\n', True),
        ('"a ""b"" c"\n', False),
        ('x,"' + "y" * 400_000 + '\n"\n', True),
        ('x,"' + "y" * 400_000 + '"\n', False),
        ('5" wide\nx\n', True),  # nobody can tell
    ],
)  # fmt: skip
def test_quoted_line_breaks_are_found_in_blocks(text: str, found: bool) -> None:
    assert has_quoted_break(io.BytesIO(text.encode())) is found


@pytest.mark.parametrize(
    ("text", "before", "names"),
    [
        ("# exported 2024-01-01\nid,x\n1,a\n", "# exported 2024-01-01\n", ("id", "x")),
        ("# exported 2024, by Bob\nid,x\n1,a\n", "# exported 2024, by Bob\n", ("id", "x")),
        ("# a\n# b,c\n\nid,x\n1,a", "# a\n# b,c\n\n", ("id", "x")),
        ("Report 2026\n\nid;x\n1;a\n2;b\n", "Report 2026\n\n", ("id", "x")),
        ("Report,,\n,,\nid,x,y\n1,2,3\n", "Report,,\n,,\n", ("id", "x", "y")),
        ("#id,x\n1,a\n", "", ("#id", "x")),
        ("# of items,price\n3,5\n", "", ("# of items", "price")),
        ("#a\n#b\n", "", ("#a",)),
        ("text\nhello\nworld\n", "", ("text",)),
        ('text\n"a, b"\n"c"\n', "", ("text",)),
        ("text\nHello, world\nfoo", "", ("text",)),
        ('x\n"1",5\n"2",6\n', "", ("x",)),
        ("name,city\nAda,Rome\n", "", ("name", "city")),
        ("id,x\n", "", ("id", "x")),
    ],
)
def test_a_header_is_found_behind_comments_and_titles(
    text: str, before: str, names: tuple[str, ...]
) -> None:
    head = head_of(text)
    assert (head.before, head.names) == (before, names)


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("header", ["id;x", "id", "a,b;c"])
@pytest.mark.parametrize("line", ["sep=;\n", "SEP=;\r\n", '"sep=;"\n', "\ufeffsep=;\n"])
def test_a_first_line_may_state_the_delimiter(
    line: str, header: str, rows: int, session: bf.Session, tmp_path: Path
) -> None:
    names = header.split(";")
    row = [f"{1},{n}" for n in range(len(names))]
    text = line + "\n".join([header, *[";".join(row)] * rows, ""])
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    with pytest.warns(bf.FileWarning):
        frame = session.register_file(tmp_path / "t.csv")
    assert frame.to_pylist() == [dict(zip(names, row, strict=True))] * rows


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_lines_before_the_header_are_left_out_and_named(
    ending: str, session: bf.Session, tmp_path: Path
) -> None:
    content = b'# exported 2024-01-01\r\n#\r\nid,x\r\n1,#a\r\n2,"b\r\n#c"\r\n'
    file = tmp_path / f"t{ending}"
    file.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    with pytest.warns(
        bf.FileWarning, match=r"before its header are left out: '# exported 2024-01-01'"
    ):
        frame = session.register_file(file)
    assert frame.to_pylist() == [{"id": 1, "x": "#a"}, {"id": 2, "x": "b\r\n#c"}]


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "cp1251", "utf-16-le", "shift_jis", "gb18030"]
)
def test_an_encoding_is_given_by_its_name(
    encoding: str, session: bf.Session, tmp_path: Path
) -> None:
    text = {"cp1251": "Привет", "shift_jis": "日本", "gb18030": "中文"}.get(encoding, "naïve ä")
    file = tmp_path / "t.csv"
    file.write_bytes(f'id,text\n1,"{text}\n,x"\n'.encode(encoding))
    assert session.register_file(file, "t", encoding=encoding).to_pylist() == [
        {"id": 1, "text": f"{text}\n,x"}
    ]
    lines = tmp_path / "t.jsonl"
    lines.write_bytes(f'{{"text": "{text}"}}\n'.encode(encoding))
    assert session.register_file(lines, "j", encoding=encoding).to_pylist() == [{"text": text}]


@pytest.mark.parametrize("text", ["Größe,text\n1,a\n", '"a\nä";b\n1;2\n'])
def test_a_header_in_another_encoding_is_no_name(
    text: str, session: bf.Session, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(bf.QueryError, match=r"t\.csv' is not UTF-8: see line"):
        session.register_file(file, "t")
    rows = session.register_file(file, "t", encoding="latin-1").to_pylist()
    file.write_bytes(text.encode())
    assert session.register_file(file, "u").to_pylist() == rows
    file.write_bytes("a\ufffd,b\n1,2\n".encode())
    assert session.register_file(file, "v").to_pylist() == [{"a\ufffd": 1, "b": 2}]


def test_a_wrong_encoding_says_what_is_right(session: bf.Session, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes("id,text\n1,a\n2,ä\n".encode("latin-1"))
    for given, message, hint in (
        (None, r"t\.csv' is not UTF-8: see line 3", "encoding='latin-1'"),
        ("ascii", r"t\.csv' is not ascii: see line 3", "encoding='latin-1'"),
        ("lattin-1", "unknown encoding 'lattin-1'", "latin-1"),
    ):
        with pytest.raises(bf.QueryError, match=message) as raised:
            session.register_file(file, "t", encoding=given)
        assert hint in str(raised.value.hint)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(bf.QueryError, match="has no encoding"):
        session.register_file(tmp_path / "t.parquet", "t", encoding="latin-1")


def test_columns_of_files_are_put_together_by_name(session: bf.Session, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,city\nAda,Rome\n")
    (tmp_path / "b.csv").write_text("City;Name\nOslo;Bob\n")
    frame = session.register_file(tmp_path, "t")
    assert rows_of(frame) == [{"name": "Ada", "city": "Rome"}, {"name": "Bob", "city": "Oslo"}]
    (tmp_path / "c.csv").write_text("name,city,zip\nEve,Bonn,1\n")
    (tmp_path / "d.csv").write_text("name\nMia\n")
    with pytest.warns(
        bf.FileWarning,
        match=r"NULL for 'zip' not in 'a.csv', 'b.csv'; 'city', 'zip' not in 'd.csv'",
    ):
        frame = session.register_file(tmp_path, "u")
    due = duckdb.read_csv(
        [str(tmp_path / f"{n}.csv") for n in "acd"], union_by_name=True
    ).fetchall()
    assert {tuple(row.values()) for row in frame.to_pylist()} == {*due, ("Bob", "Oslo", None)}
    assert rows_of(session.sql("SELECT name FROM u WHERE zip IS NULL AND city = 'Oslo'")) == [
        {"name": "Bob"}
    ]


def test_a_column_has_a_type_for_all_files(session: bf.Session, tmp_path: Path) -> None:
    for name, text in (("a", "x,y\n1,1\n"), ("b", "y,x\n2.5,two\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    frame = session.register_file(tmp_path, "t")
    assert rows_of(frame) == [{"x": "1", "y": 1.0}, {"x": "two", "y": 2.5}]


def test_a_file_without_the_header_of_the_others_is_refused(
    session: bf.Session, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("name,city\nAda,Rome\n")
    (tmp_path / "b.csv").write_text("Bob,Oslo\n")
    for read in (session.register_file, session.read_csv):
        with pytest.raises(
            bf.QueryError,
            match=r"b.csv' and '.*a.csv' have no column in common: .* '.*b.csv' is 'Bob,Oslo'",
        ):
            read(tmp_path)


def test_files_whose_columns_a_schema_names_stand_in_its_order(
    session: bf.Session, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n4,3\n")
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    with pytest.raises(
        bf.QueryError, match=r"b.csv' has other columns than '.*a.csv', or in another order"
    ):
        session.register_csv("t", tmp_path, schema=schema)
    with pytest.raises(bf.QueryError, match=r"b.csv' has other columns than"):
        session.sql(f"CREATE EXTERNAL TABLE t (x INT, y INT) STORED AS CSV LOCATION '{tmp_path}/'")
    with pytest.raises(bf.QueryError, match="read one by one") as raised:
        session.sql(f"CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{tmp_path}/'")
    assert "register_file" in str(raised.value.hint)
    session.register_csv("u", tmp_path)
    assert rows_of(session.table("u")) == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]


RECORDS = 100_000
"""Those from which the types of columns are found."""


def test_a_wrong_line_has_the_number_that_an_editor_shows(
    session: bf.Session, tmp_path: Path
) -> None:
    rows = [["id", "text"], *([n, "two\nlines"] for n in range(50))]
    file = write_rows(tmp_path / "t.csv", rows)
    with file.open("a") as target:
        target.write("1,2,3\n")
    with pytest.raises(
        bf.QueryError, match=r"line 102 of the CSV file: 3 fields, where the lines before have 2"
    ):
        session.register_file(file)


@pytest.mark.long
def test_a_wrong_late_line_has_its_number_and_its_file(session: bf.Session, tmp_path: Path) -> None:
    rows = [["id", "text"], *([n, "two\nlines"] for n in range(RECORDS + 20_000))]
    for name, last in (("length", "1,2,3"), ("value", "late,x")):
        file = write_rows(tmp_path / f"{name}.csv", rows)
        with file.open("a") as target:
            target.write(f"{last}\n")
        session.register_file(file)
        with pytest.raises(bf.ExecutionError) as raised:
            session.sql(f"SELECT max(id) FROM {name}").collect()
        assert f"line {2 * (RECORDS + 20_000) + 2} of the CSV file '{file}'" in str(raised.value)


def test_an_external_table_has_the_types_and_options_it_was_given(
    session: bf.Session, tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_text(
        'id;at;day;ok;x;"odd ""name"""\n1;2024-01-01 10:00:00.5;2024-01-01;true;1.5;\n'
    )
    session.sql(
        f"CREATE EXTERNAL TABLE IF NOT EXISTS t STORED AS CSV LOCATION '{tmp_path / 't.txt'}' "
        "OPTIONS ('format.delimiter' ';');"
    )
    plain = bf.connect(None, cache=None).read_csv(
        tmp_path / "t.txt", delimiter=";", file_extension=".txt"
    )
    assert session.table("t").to_pylist() == plain.to_pylist()
    assert [field.type for field in session.table("t").schema()][:5] == [
        pa.int64(), pa.timestamp("ms"), pa.date32(), pa.bool_(), pa.float64()
    ]  # fmt: skip
    (tmp_path / "new").mkdir()
    session.sql(f"CREATE EXTERNAL TABLE w (x INT) STORED AS CSV LOCATION '{tmp_path}/new/'")
    session.sql("INSERT INTO w VALUES (1)").collect()
    assert session.table("w").to_pylist() == [{"x": 1}]


def test_nothing_is_said_of_files_that_are_alike(session: bf.Session, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x,y\n1,2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.register_file(tmp_path, "t").count() == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\n\n", b" \r\n", b"\xff\xfe", b"\xff\xfe\n\x00"],
)
def test_a_file_without_a_line_is_empty(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "blank.csv"
    file.write_bytes(content)
    with pytest.raises(bf.QueryError, match="is empty") as raised:
        bf.connect(bf.ScriptedModel(lambda _: True), cache=None).register_file(str(file))
    assert "names of its columns" in (raised.value.hint or "")


@pytest.mark.parametrize(
    "values",
    [
        ["01234", "00501"],
        ["1", "01"],
        ["0", "1"],
        ["0", "-0"],
        ["-7", "0"],
        ["00", "01"],
        ["01", "x"],
        ["01.0", "2"],
        ["00.5", "1.5"],
        ["0.5", "0"],
        ["-0.5", "10.25"],
        ["0e3", "10"],
        ["1e3", "01"],
        ["004917012345", "1"],
        ["-01", "-2"],
        ["10"] * 5000 + ["01"],
    ],
)
def test_digits_behind_a_zero_are_text_as_in_duckdb(values: list[str], tmp_path: Path) -> None:
    file = tmp_path / "zeros.csv"
    file.write_text("\n".join(["zip,n", *(f"{value},1" for value in values)]) + "\n")
    session = bf.connect(bf.ScriptedModel(lambda _: True), cache=None)
    found = session.register_file(str(file)).to_pydict()["zip"]
    assert found == [row[0] for row in duckdb.read_csv(str(file)).fetchall()]


def test_digits_behind_a_zero_in_one_of_several_files(tmp_path: Path) -> None:
    for name, value in (("a", "1234"), ("b", "01234")):
        (tmp_path / f"{name}.csv").write_text(f"zip\n{value}\n")
    session = bf.connect(bf.ScriptedModel(lambda _: True), cache=None)
    assert sorted(session.register_file(str(tmp_path), "t").to_pydict()["zip"]) == ["01234", "1234"]


def _written(value: str | None, form: CsvReadOptions, rng: random.Random) -> str:
    """A cell of a file."""
    quote, escape = form.quote, form.escape
    if value is None:
        return rng.choice(["", "NA", "-"] if form.null_regex else [""])
    signs = {form.delimiter, quote, escape or quote, form.comment or quote, "\n", " "}
    if not (signs & set(value) or value in ("NA", "-") or rng.random() < 0.3):
        return value
    inside = value if escape is None else value.replace(escape, escape * 2)
    return f"{quote}{inside.replace(quote, (escape or quote) + quote)}{quote}"


@pytest.mark.parametrize("seed", range(60))
def test_files_with_options_are_read_as_these_say(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    form = CsvReadOptions(
        delimiter=rng.choice([",", ";", "|"]),
        quote=rng.choice(['"', "'"]),
        escape=rng.choice([None, "\\"]),
        comment=rng.choice([None, "#"]),
        null_regex=rng.choice([None, "^(NA|-)$"]),
    )
    pieces = ["a", "é", " ", "0", "#", "\n", form.delimiter, form.quote]
    rows: list[list[str | None]] = []
    for _ in range(rng.choice([2, 30])):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 4))) + "x"
        rows.append([rng.choice([text, text, None]), rng.choice(["1", "25", None])])
    lines = [form.delimiter.join(["a", "n"])]
    for row in rows:
        if form.comment and rng.random() < 0.3:
            lines.append(f"{form.comment} note {form.quote}")
        lines.append(form.delimiter.join(_written(value, form, rng) for value in row))
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines) + "\n", newline="")
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.register_csv("t", file, options=form)
    due = sorted(str([text, None if n is None else int(n)]) for text, n in rows)
    for query in ("SELECT a, n FROM t", "SELECT a, n FROM t WHERE llm_filter('q', a) OR TRUE"):
        found = session.sql(query).to_pylist()
        if any(n is not None for _, n in rows):
            assert sorted(str([*row.values()]) for row in found) == due
    assert session.read_csv(file, options=form).count() == len(rows)


def test_texts_for_null_that_would_be_texts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,x\n1,NA\n")
    session = bf.connect(None, cache=None)
    statement = f"CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{tmp_path}/t.csv' OPTIONS"
    with pytest.raises(bf.QueryError, match="null_regex"):
        session.sql(f"{statement} ('format.has_header' 'true', 'format.null_regex' '^NA$')")
    known = CsvReadOptions(
        schema=pa.schema([("id", pa.int64()), ("x", pa.string())]), null_regex="NA"
    )
    with pytest.raises(bf.QueryError, match="null_regex"):
        session.register_csv("t", tmp_path / "t.csv", options=known)
