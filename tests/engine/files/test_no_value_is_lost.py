"""Rows and files whose values would be left out or run together are errors, or are read whole."""

from __future__ import annotations

import datetime
import gzip
import json
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
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


MIXED = [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 5)]
"""Arrow takes the type of the first, and the second loses its time."""
ZONED = [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2024, 1, 1), None]
"""Arrow takes the second for a time of the zone of the first."""


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (MIXED, "of several types: dates with a time, and without"),
        (ZONED, "of several types: dates with a time zone, and without"),
        (ZONED[::-1], "of several types: dates with a time zone, and without"),
        ([2**70], "a whole number of more than 64 bits"),
        ([Fraction(1, 2), None], "of the type Fraction, which no table here has"),
        ([1 + 2j], "of the type complex, which no table here has"),
        ([{"a": 1}, {"a": "x"}], "of several types"),
    ],
)
def test_values_that_no_column_holds_are_named(
    session: bf.Session, values: list[object], wrong: str
) -> None:
    with pytest.raises(bf.ArgumentError, match=f"column 'a' holds .*{wrong}"):
        session.from_pydict({"a": values})
    with pytest.raises(
        bf.ArgumentError, match=f"column 'a' of the frame holds .*{wrong}"
    ) as raised:
        session.from_pandas(pd.DataFrame({"a": values}))
    assert raised.value.hint == "Make them text, for example: df['a'] = df['a'].astype('string')."
    with pytest.raises(bf.ArgumentError, match=wrong):
        session.sql("SELECT * FROM $df", df=pd.DataFrame({"a": values}))


def test_objects_of_polars_are_refused_and_sparse_columns_are_read(session: bf.Session) -> None:
    """Polars passes the addresses of objects on as bytes."""
    for values in (pl.Series("a", [object()]), pl.Series("a", [2**100], dtype=pl.Int128)):
        for use in (
            lambda df: session.from_polars(df),
            lambda df: session.from_arrow(df),
            lambda df: session.sql("SELECT * FROM $df", df=df),
            lambda df: df.llm.map("q", "a", session=session),
        ):
            with pytest.raises(bf.ArgumentError, match="column 'a' of the frame has the type "):
                use(pl.DataFrame([values]))
    sparse = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 1])})
    assert session.from_pandas(sparse).to_pydict() == {"a": [0, 0, 1]}


def test_two_columns_of_one_name_are_an_error(session: bf.Session, tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "t.parquet")
    for use in (
        lambda: session.from_arrow(twice, "twice"),
        lambda: session.from_arrow(twice.to_batches()[0], "twice"),
        lambda: session.sql("SELECT * FROM $t", t=twice),
        lambda: session.register_file(tmp_path / "t.parquet", "twice"),
        lambda: session.read_parquet(tmp_path / "t.parquet"),
    ):
        with pytest.raises(bf.BlendFusionError, match="has two columns 'a'") as raised:
            use()
        assert str(raised.value.hint).startswith("Rename one")
    assert session.from_pydict({"a": [1]}, "twice").to_pydict() == {"a": [1]}


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


@pytest.mark.parametrize("calls", [True, False])
def test_what_a_format_does_not_hold_becomes_text(
    session: bf.Session, tmp_path: Path, calls: bool
) -> None:
    """DataFusion refuses it, after every question was asked."""
    table = pa.table(
        {
            "id": [1, 2],
            "tags": [["a", "b"], None],
            "at": pa.array([{"x": 1.5, "name": "q"}, None]),
            "spans": pa.array([(1, 2, 0), None], pa.month_day_nano_interval()),
        }
    )
    frame = session.from_arrow(table)
    frame = frame.filter(bf.llm_filter("q", "id")) if calls else frame
    frame.write_csv(tmp_path / "rows.csv", with_header=True)
    text = (tmp_path / "rows.csv").read_text()
    assert text.splitlines()[1].startswith(
        """1,"[""a"", ""b""]","{""x"": 1.5, ""name"": ""q""}",1 mon"""
    )
    frame.write_parquet(str(tmp_path / "rows.parquet"))
    rows = session.read_parquet(tmp_path / "rows.parquet").to_pylist()
    assert rows[0] == {**table.to_pylist()[0], "spans": "1 mons 2 days"}
    assert rows[1] == {"id": 2, "tags": None, "at": None, "spans": None}


@pytest.mark.parametrize("least", [0, -(2**53), 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**64 - 1])
@pytest.mark.parametrize("is_null", [True, False])
def test_long_whole_numbers_beside_null_keep_their_digits_in_pandas(
    session: bf.Session, least: int, is_null: bool
) -> None:
    kind = pa.uint64() if least > 2**63 else pa.int64()
    values = [least, 3, *[None] * is_null]
    table = pa.table(
        {"a": pa.array(values, kind), "b": ["x"] * len(values), "c": pa.nulls(len(values), kind)}
    )
    frame = session.from_arrow(table).to_pandas()
    assert [None if pd.isna(value) else int(value) for value in frame["a"]] == values
    assert list(frame.columns) == ["a", "b", "c"]
    is_long = abs(least) > 2**53
    names = {(True, True): str(kind).replace("i", "I").replace("u", "U"), (True, False): "float64"}
    assert str(frame["a"].dtype) == names.get((is_null, is_long), str(kind))


@pytest.mark.parametrize("value", ["abc", b"abc", 1, None, {"x": 1}])
def test_a_value_is_no_column(session: bf.Session, value: object) -> None:
    kind = type(value).__name__
    with pytest.raises(bf.ArgumentError, match=f"column 'a' is a value of the type {kind}"):
        session.from_pydict({"id": [1], "a": value})  # type: ignore[dict-item]


def test_columns_of_any_kind_are_columns(session: bf.Session) -> None:
    columns = {
        "a": range(2),
        "b": pd.Series([1, 2]),
        "c": (x for x in "xy"),
        "d": pl.Series([3, 4]),
    }
    found = session.from_pydict({**columns, "e": pa.array([1, 2])}).to_pydict()  # type: ignore[dict-item]
    assert found == {"a": [0, 1], "b": [1, 2], "c": ["x", "y"], "d": [3, 4], "e": [1, 2]}


NUMBERS = ["1", "-7", "2.5", "1e3", str(2**53 + 1), str(-(2**53) - 1), str(2**63 - 1), str(2**64)]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".json"])
@pytest.mark.parametrize("seed", range(12))
def test_numbers_of_many_digits_keep_them_beside_fractions(
    tmp_path: Path, session: bf.Session, ending: str, seed: int
) -> None:
    chosen = random.Random(seed)
    written = chosen.sample(NUMBERS, chosen.randint(1, 4))
    parts = [written] if seed % 2 else [written, chosen.sample(NUMBERS, 2)]
    for number, part in enumerate(parts):
        rows = [f'{{"n": {value}, "in": {{"l": [{value}]}}}}' for value in part]
        text = "[" + ",".join(rows) + "]" if ending == ".json" else "\n".join(rows)
        csv = "n,x\n" + "".join(f"{value},a\n" for value in part)
        (tmp_path / f"{number}{ending}").write_text(csv if ending == ".csv" else text)
    name = f"numbers_{ending[1:]}_{seed}"
    session.register_file(tmp_path, name)
    found = session.sql(f"SELECT * FROM {name}").to_pylist()
    due = sorted(Decimal(value) for part in parts for value in part)
    assert sorted(Decimal(str(row["n"])) for row in found) == due
    if ending != ".csv":
        assert sorted(Decimal(str(row["in"]["l"][0])) for row in found) == due


@pytest.mark.parametrize("ending", [".jsonl", ".json"])
@pytest.mark.parametrize("seed", range(8))
def test_lists_of_objects_have_null_among_them(
    tmp_path: Path, session: bf.Session, ending: str, seed: int
) -> None:
    chosen = random.Random(seed)

    def item() -> object:
        return chosen.choice(
            [None, {"p": 1}, {"p": None, "q": "x"}, {"q": "y", "r": [None, [1.5], []]}]
        )

    rows = [{"id": n, "l": [item() for _ in range(chosen.randint(0, 3))]} for n in range(20)]
    rows += [{"id": 20, "l": [None, {"p": 2}]}, {"id": 21, "l": [{"r": [[2.5], None]}, None]}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / f"t{ending}").write_text(json.dumps(rows) if ending == ".json" else lines)
    name = f"gaps_{ending[1:]}_{seed}"
    session.register_file(tmp_path / f"t{ending}", name)
    found = session.sql(f"SELECT * FROM {name} ORDER BY id").to_pylist()
    for row, read in zip(rows, found, strict=True):
        whole = {"p": None, "q": None, "r": None}
        assert read["id"] == row["id"]
        assert read["l"] == [one if one is None else whole | one for one in row["l"]]
