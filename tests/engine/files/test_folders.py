"""Folders and patterns of files as people have them: Hive and Spark, odd names, types of several
widths."""

from __future__ import annotations

import datetime
import gzip
import itertools
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.files.united_types import united_type

ROWS = pa.table({"id": [1, 2], "x": ["a", "b"]})
TWICE = sorted(ROWS.to_pylist() * 2, key=str)
ODD_NAMES = (
    "export [final]",
    "a*",
    "b?",
    "50%",
    "x#1",
    "a b",
    "é😀",
    "it's",
    "a;b",
    "{1,2}",
    "a&b=c",
    "~",
    "x%20y",
)


@pytest.fixture
def session() -> bf.Session:
    return bf.connect(
        bf.ScriptedModel(lambda call: True), cache=None, show_values="on", read_files="local"
    )


def save(place: Path, content: pa.Table | str | bytes) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pa.Table) and place.suffix == ".arrow":
        with pa.ipc.new_file(place, content.schema) as file:
            file.write_table(content)
    elif isinstance(content, pa.Table):
        pq.write_table(content, place)
    else:
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


def rows_of(frame: bf.Frame) -> list[dict[str, Any]]:
    return sorted(frame.to_pylist(), key=str)


def test_what_spark_writes_beside_its_files_is_left_out(
    session: bf.Session, tmp_path: Path
) -> None:
    for name in ("part-0.snappy.parquet", "_temporary/0/part-1.parquet"):
        save(tmp_path / name, ROWS)
    for name in (
        "_SUCCESS",
        ".part-0.crc",
        "._SUCCESS.crc",
        ".part-9.parquet",
        "_committed_12",
        "_metadata.parquet",
    ):
        save(tmp_path / name, "x")
    save(tmp_path / "part-2.parquet", b"")
    assert rows_of(session.register_file(tmp_path, "t")) == ROWS.to_pylist()
    save(tmp_path / "_more.parquet", ROWS)
    with pytest.warns(bf.FileWarning, match="names begin with _ are left out: '_more.parquet'"):
        assert rows_of(session.register_file(tmp_path, "u")) == ROWS.to_pylist()
    assert session.register_file(tmp_path / "_more.parquet", "v").count() == 2


@pytest.mark.parametrize(
    "pattern", ["*/*.parquet", "**/*.parquet", "[ab]/*", "?/p.parquet", "**/p.*"]
)
def test_a_pattern_goes_over_folders(pattern: str, session: bf.Session, tmp_path: Path) -> None:
    for folder in "ab":
        save(tmp_path / folder / "p.parquet", ROWS)
    assert rows_of(session.register_file(tmp_path / pattern, "t")) == TWICE
    assert rows_of(session.sql(f"SELECT * FROM '{tmp_path / pattern}'")) == TWICE


def test_two_stars_go_any_way_down(session: bf.Session, tmp_path: Path) -> None:
    for folder in ("", "a", "a/b", "a/b/c", ".hidden", "_old/x"):
        save(tmp_path / folder / "p.csv", f"way\n/{folder}\n")
    frame = session.register_file(tmp_path / "**/*.csv", "t")
    assert [row["way"] for row in rows_of(frame)] == ["/", "/a", "/a/b", "/a/b/c"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_that_exists_is_no_pattern(name: str, session: bf.Session, tmp_path: Path) -> None:
    folder = tmp_path / name
    save(folder / "x.csv", "id,x\n7,other\n")
    for ending, content in (
        (".csv", "id,x\n1,a\n2,b\n"),
        (".csv.gz", gzip.compress(b"id,x\n1,a\n2,b\n")),
        (".jsonl", '{"id": 1, "x": "a"}\n{"id": 2, "x": "b"}\n'),
        (".parquet", ROWS),
        (".arrow", ROWS),
    ):
        file = save(tmp_path / f"f{ending}" / f"{name}{ending}", content)
        save(file.with_name(f"a{name[1:]}x{ending}"), content)
        assert rows_of(session.register_file(file, "t")) == ROWS.to_pylist(), file
        assert rows_of(session.register_file(file.as_uri(), "t2")) == ROWS.to_pylist(), file
        assert session.register_file(file.parent, "u").count() == 4, file
        for table in ("t", "t2", "u"):
            session.deregister_table(table)
    assert rows_of(session.register_file(folder, "v")) == [{"id": 7, "x": "other"}]
    assert rows_of(session.read_csv(folder / "x.csv")) == [{"id": 7, "x": "other"}]


def test_a_file_has_a_url(
    session: bf.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = save(tmp_path / "a b.csv", "id\n1\n")
    assert rows_of(session.sql(f"SELECT * FROM '{file.as_uri()}'")) == [{"id": 1}]
    assert (
        main(["query", "SELECT id FROM t", "--table", f"t={file.as_uri()}", "--format", "csv"]) == 0
    )
    assert capsys.readouterr().out == '"id"\n1\n'


MONTHS = {"01": 0, "02": 1, "12": 2}


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow"])
@pytest.mark.parametrize("place", ["", "/", "/*/*.{}", "/**/*.{}", "/month=*/*.{}"])
def test_hive_partitions_are_columns(
    place: str, ending: str, session: bf.Session, tmp_path: Path
) -> None:
    for month, number in MONTHS.items():
        rows = pa.table({"id": [number]})
        content = {"csv": f"id\n{number}\n", "jsonl": f'{{"id": {number}}}\n'}.get(ending, rows)
        save(tmp_path / f"month={month}" / f"p.{ending}", content)
    save(tmp_path / "_SUCCESS", "")
    frame = session.register_file(f"{tmp_path}{place.format(ending)}", "t")
    assert rows_of(frame) == [{"id": n, "month": m} for m, n in MONTHS.items()]
    query = "FROM t WHERE month = '02'"
    assert rows_of(session.sql(f"SELECT id {query}")) == [{"id": 1}]
    plan = "".join(session.sql(f"EXPLAIN SELECT id {query}").to_pydict()["plan"])
    assert "month=02/" in plan
    assert "month=01/" not in plan
    assert session.sql(f"SELECT month {query} AND llm_filter('Good?', month)").to_pylist() == [
        {"month": "02"}
    ]


def test_partitions_have_the_types_that_duckdb_finds(session: bf.Session, tmp_path: Path) -> None:
    kinds = {
        "year": ("2023", "2024"),
        "month": ("01", "12"),
        "day": ("2024-01-31", "2024-02-29"),
        "odd": ("a:b", "c d/é"),
        "part": ("1", None),
    }
    for number, values in enumerate(zip(*kinds.values(), strict=True)):
        folders = [f"{name}={escaped(value)}" for name, value in zip(kinds, values, strict=True)]
        save(tmp_path.joinpath(*folders) / "p.parquet", pa.table({"id": [number]}))
    frame = session.register_file(tmp_path, "t")
    due = duckdb.read_parquet(f"{tmp_path}/**/*.parquet", hive_partitioning=True)
    rows = [dict(zip(due.columns, row, strict=True)) for row in due.fetchall()]
    assert frame.sort("id").to_pylist() == sorted(rows, key=lambda row: row["id"])
    assert session.sql("SELECT id FROM t WHERE part IS NULL").to_pylist() == [{"id": 1}]
    assert session.sql("SELECT id FROM t WHERE odd = 'a:b' AND year = 2023").to_pylist() == [
        {"id": 0}
    ]


def escaped(value: str | None) -> str:
    """A value as Spark writes it in the name of a folder."""
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    return "".join(f"%{ord(sign):02X}" if sign in ':/="' else sign for sign in value)


def test_a_column_goes_before_a_folder_of_its_name(session: bf.Session, tmp_path: Path) -> None:
    for month in ("1", "2"):
        save(tmp_path / f"month={month}/p.parquet", pa.table({"id": [1], "month": [f"m{month}"]}))
    assert rows_of(session.register_file(tmp_path, "t")) == [
        {"id": 1, "month": "m1"},
        {"id": 1, "month": "m2"},
    ]


def test_files_in_some_partitions_only_have_null(session: bf.Session, tmp_path: Path) -> None:
    save(tmp_path / "p.parquet", ROWS.slice(0, 1))
    save(tmp_path / "month=1/p.parquet", ROWS.slice(1))
    assert rows_of(session.register_file(tmp_path, "t")) == [
        {"id": 1, "x": "a", "month": None}, {"id": 2, "x": "b", "month": 1}
    ]  # fmt: skip


def test_a_folder_of_folders_names_the_pattern(session: bf.Session, tmp_path: Path) -> None:
    save(tmp_path / "a/p.parquet", ROWS)
    with pytest.raises(bf.QueryError, match="there are no files in") as raised:
        session.register_file(tmp_path)
    assert "/**/*.parquet'" in str(raised.value.hint)


def _values(kind: pa.DataType) -> list[Any]:
    types = pa.types
    if types.is_dictionary(kind):
        return ["a", None]
    if types.is_integer(kind):
        return [7, None]
    if types.is_floating(kind):
        return [2.5, None]
    if types.is_decimal(kind):
        return [Decimal("1.5"), None]
    if types.is_timestamp(kind):
        return [datetime.datetime(2024, 1, 2, 3, 4, 5), None]
    if types.is_date(kind):
        return [datetime.date(2024, 1, 2), None]
    return ["a", None]


WIDTHS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.decimal128(20, 4)),
    *(pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.date32()),
    *(pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin")),
    *(pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [pair for pair in itertools.combinations(WIDTHS, 2) if united_type(*pair)],
    ids=str,
)
def test_two_widths_of_one_type_are_read(
    one: pa.DataType, other: pa.DataType, tmp_path: Path
) -> None:
    session = bf.connect(None, cache=None)
    for name, kind in (("1", one), ("2", other)):
        column = pa.array(_values(kind), kind.value_type if pa.types.is_dictionary(kind) else kind)
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
        save(tmp_path / f"{name}.parquet", pa.table({"file": [name] * 2, "v": column}))
        save(tmp_path / "arrow" / f"{name}.arrow", pa.table({"file": [name] * 2, "v": column}))
    due = [*_values(one), *_values(other)]
    for place in (tmp_path, tmp_path / "arrow"):
        session.register_file(place, place.name)
        found = session.sql(f'SELECT v FROM "{place.name}" ORDER BY file, v IS NULL').to_pydict()[
            "v"
        ]
        for value, expected in zip(found, due, strict=True):
            assert (value is None) == (expected is None)
            assert expected is None or same(value, expected)
        session.deregister_table(f'"{place.name}"')


def same(value: Any, expected: Any) -> bool:
    if isinstance(expected, datetime.date) and not isinstance(expected, datetime.datetime):
        expected = datetime.datetime(expected.year, expected.month, expected.day)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if isinstance(expected, datetime.datetime):
        return bool(
            value.timestamp() == expected.replace(tzinfo=value.tzinfo and datetime.UTC).timestamp()
        )
    return bool(value == expected) or float(value) == float(expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.bool_(), pa.int8()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.string()),
        (pa.list_(pa.int8()), pa.int8()),
    ],
)
def test_types_without_a_common_one_name_both_files(
    one: pa.DataType, other: pa.DataType, session: bf.Session, tmp_path: Path
) -> None:
    for name, kind in (("1", one), ("2", other)):
        save(tmp_path / f"{name}.parquet", pa.table({"v": pa.nulls(1, kind)}))
    with pytest.raises(
        bf.QueryError, match=r"column 'v' is .* in '1.parquet', and .* in '2.parquet'"
    ):
        session.register_file(tmp_path)


def test_nested_columns_of_two_widths(session: bf.Session, tmp_path: Path) -> None:
    save(
        tmp_path / "1.parquet",
        pa.table({"s": [{"a": 1}], "l": pa.array([[1]], pa.list_(pa.int32()))}),
    )
    save(tmp_path / "2.parquet", pa.table({"s": [{"a": 1.5, "b": "x"}], "l": [[2.5]]}))
    assert rows_of(session.register_file(tmp_path, "t")) == [
        {"s": {"a": 1.0, "b": None}, "l": [1.0]}, {"s": {"a": 1.5, "b": "x"}, "l": [2.5]}
    ]  # fmt: skip


def test_columns_of_parquet_files_are_put_together_by_name(
    session: bf.Session, tmp_path: Path
) -> None:
    save(tmp_path / "1.parquet", pa.table({"Id": [1], "x": ["a"]}))
    save(tmp_path / "2.parquet", pa.table({"x": ["b"], "id": [2], "more": [True]}))
    with pytest.warns(bf.FileWarning, match=r"NULL for 'more' not in '1.parquet'"):
        frame = session.register_file(tmp_path, "t")
    assert rows_of(frame) == [{"Id": 1, "x": "a", "more": None}, {"Id": 2, "x": "b", "more": True}]
    assert session.sql("SELECT x FROM t WHERE more AND llm_filter('Good?', x)").to_pylist() == [
        {"x": "b"}
    ]


def _random_files(chance: random.Random) -> Iterator[tuple[str, pa.Table]]:
    widths = {"n": WIDTHS[:10], "s": WIDTHS[-3:], "t": WIDTHS[12:15]}
    for number in range(chance.randrange(1, 5)):
        names = chance.sample(sorted(widths), chance.randrange(1, 4))
        columns = {}
        for name in names:
            kind = chance.choice(widths[name])
            values = chance.choices(_values(kind), k=3)
            plain = pa.array(values, pa.string() if pa.types.is_dictionary(kind) else kind)
            columns[name] = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain
        table = pa.table({"id": [number * 10 + n for n in range(3)], **columns})
        folder = chance.choice(
            ("", "", f"day={chance.randrange(1, 3)}/", "day=__HIVE_DEFAULT_PARTITION__/")
        )
        yield f"{folder}{number}.parquet", table


def test_random_folders_are_read_as_duckdb_reads_them(cases: int, tmp_path: Path) -> None:
    for seed in range(cases // 20):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        made = dict(_random_files(chance))
        for name, table in made.items():
            save(folder / name, table)
        session = bf.connect(None, cache=None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("blendfusion.places.notes.warnings.warn", lambda *_, **__: None)
            found = {row["id"]: row for row in session.register_file(folder, "t").to_pylist()}
        for name, table in made.items():
            read = duckdb.from_arrow(table).fetchall()
            for row in (dict(zip(table.column_names, values, strict=True)) for values in read):
                for column in ("n", "s", "t"):
                    value, due = found[row["id"]].get(column), row.get(column)
                    assert (value is None) == (due is None), (seed, name, column)
                    assert due is None or value == due or same(value, due), (seed, name, column)
                if "day=" in "".join(made):
                    day = name.partition("day=")[2].partition("/")[0]
                    assert found[row["id"]]["day"] == (int(day) if day.isdecimal() else None), (
                        seed,
                        name,
                    )


def test_json_files_of_two_endings_are_one_table(session: bf.Session, tmp_path: Path) -> None:
    save(tmp_path / "a.jsonl", json.dumps({"x": 1}))
    save(tmp_path / "b.ndjson", json.dumps({"x": 2}))
    save(tmp_path / "c.JSONL", json.dumps({"x": 3}))
    assert rows_of(session.register_file(tmp_path, "t")) == [{"x": 1}, {"x": 2}, {"x": 3}]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_values_of_folders_find_their_rows(session: bf.Session, tmp_path: Path, kind: str) -> None:
    """Object stores escape some characters, by which DataFusion does not find a folder again."""
    values = [f"a{mark}b" for mark in "\"*<>[\\]^`{|}~?#'=+&@!;:,é🙂 "] + ["a[1]", "{x}", "[]"]
    for number, value in enumerate(values):
        content = pa.table({"id": [number]}) if kind == "parquet" else f"id\n{number}\n"
        save(tmp_path / "t" / f"k={value}" / f"f.{kind}", content)
    session.register_file(tmp_path / "t", name="t")

    found = {row["id"]: row["k"] for row in session.sql("SELECT id, k FROM t").to_pylist()}
    assert found == dict(enumerate(values))
    for number, value in enumerate(values):
        text = value.replace("'", "''")
        rows = session.sql(f"SELECT id FROM t WHERE k = '{text}'").to_pylist()
        assert rows == [{"id": number}], value
        others = session.sql(f"SELECT id FROM t WHERE k <> '{text}'").count()
        assert others == len(values) - 1, value
    listed = session.sql("SELECT count(*) AS n FROM t WHERE k IN ('a[1]', '{x}', 'none')")
    assert listed.to_pydict() == {"n": [2]}


def test_folders_that_datafusion_would_not_find_are_refused(
    session: bf.Session, tmp_path: Path
) -> None:
    save(tmp_path / "t" / "k=a[1]" / "f.parquet", ROWS)
    with pytest.raises(bf.QueryError, match=r"rows of the folder 'k=a\[1\]' by their value"):
        session.register_parquet("t", tmp_path / "t", table_partition_cols=[("k", pa.string())])
    session.register_parquet("t", tmp_path / "t")
    assert session.table("t").count() == 2
