"""Workbooks: sheets by name, and what of a workbook was left out."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main

openpyxl = pytest.importorskip("openpyxl")
TICKETS = [("id", "text"), (1, "broken"), (2, "fine")]
ROWS = [{"id": 1, "text": "broken"}, {"id": 2, "text": "fine"}]


def book(file: Path, sheets: Mapping[str, Sequence[Sequence[Any]]]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(file)
    made.close()
    return file


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bf.Session:
    monkeypatch.chdir(tmp_path)
    return bf.connect(None, cache=None, read_files="local")


def test_a_sheet_has_a_name(session: bf.Session, capsys: pytest.CaptureFixture[str]) -> None:
    book(
        Path("book.xlsx"),
        {"Summary": [("Report 2026", 1), ("all", 2)], "Tickets": TICKETS, "A b": TICKETS[:2]},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.register_file("book.xlsx", "t", sheet="Tickets").to_pylist() == ROWS
        assert session.register_file("book.xlsx", sheet="tickets ").to_pylist() == ROWS
        assert session.register_file("book.xlsx#A b").to_pylist() == ROWS[:1]
        assert session.sql("SELECT * FROM 'book.xlsx#Tickets'").to_pylist() == ROWS
    assert {"t", "tickets", "a_b"} <= session.catalog().schema().names()
    assert (
        main(["query", "SELECT id FROM tickets", "--table", "book.xlsx#Tickets", "--format", "csv"])
        == 0
    )
    assert capsys.readouterr().out == '"id"\n1\n2\n'
    with pytest.raises(bf.QueryError, match=r"'book.xlsx' has no sheet 'Ticket'") as raised:
        session.register_file("book.xlsx", sheet="Ticket")
    assert "Tickets" in str(raised.value.hint)
    Path("t.csv").write_text("x\n1\n")
    with pytest.raises(bf.QueryError, match="has no sheet"):
        session.register_file("t.csv", sheet="Tickets")


def test_a_note_names_the_sheets_that_are_left_out(session: bf.Session) -> None:
    book(
        Path("book.xlsx"),
        {"Empty": [], "Tickets": TICKETS, "Prices": [("a", "b")], "Blank": [(None,)]},
    )
    with pytest.warns(
        bf.FileWarning, match=r"the sheet 'Tickets' of 2 was read; others: 'Prices'\. Name one"
    ):
        assert session.register_file("book.xlsx", "t").to_pylist() == ROWS
    book(Path("report.xlsx"), {"Summary": [("Report 2026",)], "Tickets": TICKETS})
    with pytest.warns(bf.FileWarning, match="the sheet 'Tickets' of 2 was read; others: 'Summary'"):
        assert session.register_file("report.xlsx", "r").to_pylist() == ROWS
    assert session.register_file("report.xlsx#Summary", "s").to_pylist() == []
    book(Path("one.xlsx"), {"Tickets": TICKETS, "Blank": []})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.register_file("one.xlsx", "u").to_pylist() == ROWS


@pytest.mark.parametrize(
    ("above", "note"),
    [
        ([("Report 2026",)], "Report 2026"),
        ([("Report 2026",), (), ("for Ann",), ()], "Report 2026"),
        ([(), ("Report",), ()], "Report"),
        ([(), ()], None),
    ],
)
def test_a_title_above_the_header(
    above: Sequence[Sequence[Any]], note: str | None, session: bf.Session
) -> None:
    book(Path("book.xlsx"), {"Tickets": [*above, *TICKETS]})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert session.register_file("book.xlsx", "t").to_pylist() == ROWS
    assert [str(one.message) for one in said] == [
        f"'book.xlsx#Tickets': the rows above the header are left out: {note!r}"
    ][: note is not None]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([("text",), ("a",), ("b",)], [{"text": "a"}, {"text": "b"}]),
        ([(None, "id", None, "x"), (None, 1, None, "a")], [{"id": 1, "x": "a"}]),
        ([("city", 2023, 2024), ("Rome", 1, 2)], [{"city": "Rome", "2023": 1, "2024": 2}]),
        ([("a", "b"), (1,)], [{"a": 1, "b": None}]),
    ],
)
def test_headers_of_every_form(
    rows: Sequence[Sequence[Any]], found: Sequence[Mapping[str, Any]], session: bf.Session
) -> None:
    book(Path("book.xlsx"), {"S": rows})
    assert session.register_file("book.xlsx", "t").to_pylist() == found


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no row names columns"),
        ([(None, "x"), ("index", 1)], "column 1 of the sheet has values and no name"),
        ([("a", "b"), (1, 2, 3)], "column 3 of the sheet has values and no name"),
        ([("a", "a"), (1, 2)], "two columns 'a'"),
    ],
)
def test_values_without_a_name_are_not_lost(
    rows: Sequence[Sequence[Any]], message: str, session: bf.Session
) -> None:
    book(Path("book.xlsx"), {"S": rows})
    with pytest.raises(bf.QueryError, match=message):
        session.register_file("book.xlsx", "t")


def test_books_of_a_folder(session: bf.Session) -> None:
    Path("d").mkdir()
    for name in "ab":
        book(Path(f"d/{name}.xlsx"), {"Summary": [("x", "y")], "Tickets": TICKETS})
    assert session.register_file("d", "t", sheet="Tickets").to_pylist() == ROWS * 2


@pytest.mark.parametrize(("rows", "count"), [(1, 1), (3000, 3000)])
def test_formulas_without_a_value_are_counted(session: bf.Session, rows: int, count: int) -> None:
    book(Path("book.xlsx"), {"a": [("id", "twice"), *((n, f"=A{n + 2}*2") for n in range(rows))]})
    with pytest.warns(bf.FileWarning, match=f"{count:,} formulas? without a value") as told:
        found = session.sql("SELECT count(*) AS n, count(twice) AS twice FROM 'book.xlsx'")
    assert (len(told), found.to_pylist()) == (1, [{"n": rows, "twice": 0}])


def test_formulas_with_a_value_or_an_empty_text_are_read(session: bf.Session) -> None:
    book(Path("made.xlsx"), {"a": [("id", "text", "more"), (1, "=A2", "=A3"), (2, None, "b")]})
    with zipfile.ZipFile("made.xlsx") as made, zipfile.ZipFile("book.xlsx", "w") as archive:
        for name in made.namelist():
            data = made.read(name)
            data = data.replace(
                b'<c r="B2"><f>A2</f><v></v></c>', b'<c r="B2"><f>A2</f><v>7</v></c>'
            )
            data = data.replace(b'<c r="B2"><f>A2</f><v /></c>', b'<c r="B2"><f>A2</f><v>7</v></c>')
            data = data.replace(b'<c r="C2">', b'<c r="C2" t="str">')
            archive.writestr(name, data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.sql("SELECT text, more FROM 'book.xlsx'").to_pylist() == [
            {"text": 7, "more": None},
            {"text": None, "more": "b"},
        ]


def changed(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the first sheet of a workbook as another program would have written it."""
    with zipfile.ZipFile(file) as made:
        parts = {name: made.read(name) for name in made.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, change(part) if name.endswith("sheet1.xml") else part)


@pytest.mark.parametrize("size", [None, b"A1", b"A1:B2", b"B2:B3", b"A1:ZZ4000"])
@pytest.mark.parametrize("rows", [TICKETS, [*TICKETS, (3,)], [("id", "text"), (1,), (2,)]])
def test_the_size_that_a_sheet_states_bounds_nothing(
    size: bytes | None, rows: Sequence[Sequence[Any]], session: bf.Session
) -> None:
    book(Path("book.xlsx"), {"a": rows})
    expected = session.register_file("book.xlsx", "whole").to_pylist()
    assert [row["id"] for row in expected] == [row[0] for row in rows[1:]]
    stated = b"" if size is None else b'<dimension ref="' + size + b'"/>'
    changed(Path("book.xlsx"), lambda xml: re.sub(rb"<dimension [^>]*>", stated, xml))
    assert session.register_file("book.xlsx", "t").to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 2.5, "x"], ["1", "2.5", "x"]),
        ([2**53, "7", 7.5], ["9007199254740992", "7", "7.5"]),
        ([True, 1], ["True", "1"]),
        ([1, 2.5], [1.0, 2.5]),
        ([2**70, 1], [float(2**70), 1.0]),
    ],
)
@pytest.mark.parametrize("is_one", [True, False])
def test_numbers_beside_texts_keep_their_digits(
    values: Sequence[Any], found: Sequence[Any], is_one: bool, session: bf.Session
) -> None:
    """In one sheet, and in a folder of sheets with one row each."""
    Path("d").mkdir()
    parts = [values] if is_one else [[value] for value in values]
    for number, part in enumerate(parts):
        book(Path(f"d/{number}.xlsx"), {"a": [("v", "n"), *((value, 1) for value in part)]})
        changed(
            Path(f"d/{number}.xlsx"),
            lambda xml: xml.replace(b"1.180591620717411e+21", b"1180591620717411303424"),
        )
    assert session.register_file("d", "t").select("v").to_pydict() == {"v": [*found]}


def test_columns_of_a_folder_go_by_their_names(session: bf.Session) -> None:
    Path("d").mkdir()
    book(Path("d/1.xlsx"), {"a": [("id", "text"), (1, "a")]})
    book(Path("d/2.xlsx"), {"a": [("Text", "ID"), ("b", 2)]})
    book(Path("d/3.xlsx"), {"a": [("id", "more"), (3, "c")]})
    with pytest.warns(bf.FileWarning, match=r"'text' not in '3\.xlsx'"):
        found = session.register_file("d", "t")
    assert found.sort("id").to_pydict() == {
        "id": [1, 2, 3],
        "text": ["a", "b", None],
        "more": [None, None, "c"],
    }


def test_errors_of_cells_are_null(session: bf.Session) -> None:
    errors = ["#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?"]
    book(Path("book.xlsx"), {"a": [("v", "t"), *((error, error) for error in errors), (10, "a")]})
    changed(
        Path("book.xlsx"),
        lambda xml: re.sub(rb'(r="B\d+"[^>]*)t="e"><v>([^<]*)</v>', rb'\1t="str"><v>\2</v>', xml),
    )
    with pytest.warns(bf.FileWarning, match="5 cells with an error, read as NULL"):
        session.register_file("book.xlsx", "t")
    assert session.sql("SELECT v FROM t WHERE v > 5").to_pylist() == [{"v": 10}]
    assert session.table("t").to_pydict()["t"] == [*errors, "a"]
