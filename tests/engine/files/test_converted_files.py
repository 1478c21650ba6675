"""Files that are read although DataFusion reads them otherwise: encodings, forms of JSON, standard
input of any kind."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.errors import QueryError
from blendfusion.files.reading import register_spec

ROWS = [{"id": 1, "text": "one, two"}, {"id": 2, "text": "naïve 😀"}]


def read(spec: str, name: str = "t") -> list[dict[str, Any]]:
    context = SessionContext()
    assert register_spec(context, spec) == name
    rows: list[dict[str, Any]] = context.table(name).to_pylist()
    return rows


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_text_says_its_encoding_by_its_mark(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes('id,text\n1,"one, two"\n2,naïve 😀\n'.encode(encoding))
    assert read(str(tmp_path / "t.csv")) == ROWS
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode(encoding)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(lines))
    assert read(str(tmp_path / "t.json.gz")) == ROWS


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('{\n "a": 1,\n "b": "x"\n}\n', [{"a": 1, "b": "x"}]),
        ('{\n "a": 1\n}\n{\n "a": 2\n}', [{"a": 1}, {"a": 2}]),
        ('[{"a": 1}, {"a": 2, "b": "late"}]', [{"a": 1, "b": None}, {"a": 2, "b": "late"}]),
        ('[{"a": 1}, {"a": "x"}]', [{"a": "1"}, {"a": "x"}]),
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n{"a": "x"}\n{"a": true}\n{}', [{"a": v} for v in ("1", "x", "true", None)]),
        (
            '{"a": {"b": [1]}}\n{"a": {"b": ["x", {"c": 1}]}}',
            [{"a": {"b": ["1"]}}, {"a": {"b": ["x", '{"c": 1}']}}],
        ),
        ('{"a": {"b": 1}}\n{"a": 5}', [{"a": '{"b": 1}'}, {"a": "5"}]),
        ('{"a": NaN}\n{"a": 1.5}', [{"a": None}, {"a": 1.5}]),
        ('\ufeff[{"a": 1}]', [{"a": 1}]),
        (
            '{"n": 12345678901234567890, "m": [9223372036854775808]}\n{"n": 1, "m": [2]}',
            [
                {"n": "12345678901234567890", "m": ["9223372036854775808"]},
                {"n": "1", "m": ["2"]},
            ],
        ),
        ('{"n": 9223372036854775807}', [{"n": 9223372036854775807}]),
    ],
)
def test_json_in_every_form(text: str, rows: list[Any], tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text, "utf-8")
    assert read(str(tmp_path / "t.json")) == rows


def test_files_of_one_folder_have_one_type_for_a_name(tmp_path: Path) -> None:
    for number, text in enumerate(('{"a": 1}\n', '{"a": "x"}\n')):
        (tmp_path / f"{number}.jsonl").write_text(text, "utf-8")
    assert sorted(row["a"] for row in read(f"t={tmp_path}")) == ["1", "x"]


def test_a_late_value_of_another_kind_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    rows = [f'{{"a": {n}}}' for n in range(150_000)]
    (tmp_path / "t.jsonl").write_text("\n".join([*rows, '{"a": "late"}']), "utf-8")
    with bf.connect(None, cache=None, show_values="on") as session:
        session.register_file(tmp_path / "t.jsonl")
        with pytest.raises(
            bf.ExecutionError, match=r"column 'a' of the JSON file: '\d+' is no string"
        ) as raised:
            session.sql("SELECT * FROM t").collect()
    assert "jq -c '.a |= tostring'" in str(raised.value.hint)


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n{"a": 2\n', "utf-8")
    with pytest.raises(QueryError, match=r"t\.jsonl' is not JSON: see line 2"):
        read(str(tmp_path / "t.jsonl"))


def test_an_empty_array_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[]", "utf-8")
    with pytest.raises(QueryError, match="holds no row"):
        read(str(tmp_path / "t.json"))


def _parquet() -> bytes:
    content = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), content)
    return content.getvalue()


CSV = 'id,text\n1,"one, two"\n2,naïve 😀\n'.encode()


@pytest.mark.parametrize(
    "content",
    [CSV, gzip.compress(CSV), CSV.decode().encode("utf-16"), json.dumps(ROWS).encode(), _parquet()],
    ids=["csv", "gzip", "utf-16", "json", "parquet"],
)
def test_standard_input_is_what_it_begins_like(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read("-", "stdin") == ROWS


def test_empty_standard_input_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(QueryError, match="standard input is empty"):
        read("t=-")


def test_a_folder_with_a_note_beside_its_tables_names_the_tables(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("hello")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n")
    with pytest.raises(QueryError, match="several kinds") as raised:
        read(str(tmp_path))
    assert str(raised.value.hint).endswith("/*.csv'")


def test_a_file_is_described_as_a_table_is(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    with bf.connect(None, cache=None, read_files="local") as session:
        shown = session.sql(f"DESCRIBE '{tmp_path / 't.csv'}'").to_pylist()
    assert [row["column_name"] for row in shown] == ["x"]
