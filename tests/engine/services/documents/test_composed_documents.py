"""Parts of documents that are easily lost: comments, fields, equations, other documents in them."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from document_files import SPACE, paragraph, write_docx
from reportlab.pdfgen.canvas import Canvas

import blendfusion as bf
from blendfusion.services.documents.docx import docx_pages
from blendfusion.services.documents.html import decode, decode_as, html_blocks
from blendfusion.services.documents.mail import mail_pages
from blendfusion.services.documents.markdown import markdown_blocks

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def texts(path: Path) -> list[tuple[str, str]]:
    ((_, blocks),) = docx_pages(os.fspath(path))
    assert not isinstance(blocks, str)
    return [(block.kind, block.text) for block in blocks]


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (f"<m:f><m:num>{math('a+b')}</m:num><m:den>{math('2')}</m:den></m:f>", "(a+b)/2"),
        (f"<m:sSup><m:e>{math('x')}</m:e><m:sup>{math('n+1')}</m:sup></m:sSup>", "x^(n+1)"),
        (f"<m:rad><m:e>{math('n')}</m:e></m:rad>", "√n"),
        (f"<m:d><m:e>{math('a')}</m:e></m:d>{math('b')}", "(a)b"),
        (
            '<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>'
            f"<m:e>{math('a,b')}</m:e></m:d>",
            "[a,b]",
        ),
        (
            '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>'
            f"<m:sub>{math('i=1')}</m:sub><m:sup>{math('n')}</m:sup><m:e>{math('i')}</m:e></m:nary>",
            "∑_(i=1)^ni",
        ),
    ],
)
def test_equations_are_lines(tmp_path: Path, inner: str, text: str) -> None:
    body = f'<w:p xmlns:m="{MATH}"><m:oMath>{inner}</m:oMath></w:p>'
    write_docx(tmp_path / "a.docx", body)
    assert texts(tmp_path / "a.docx") == [("paragraph", text)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<w:checkBox><w:checked/></w:checkBox>", "☒ x"),
        ('<w:checkBox><w:default w:val="1"/><w:checked w:val="0"/></w:checkBox>', "☐ x"),
        ('<w:ddList><w:listEntry w:val="a"/><w:listEntry w:val="b"/></w:ddList>', "a x"),
        ('<w:textInput><w:default w:val="a"/></w:textInput>', "x"),
    ],
)
def test_fields_of_old_forms(tmp_path: Path, content: str, text: str) -> None:
    field = (
        f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{content}</w:ffData></w:fldChar></w:r>'
    )
    write_docx(
        tmp_path / "a.docx",
        f'<w:p>{field}<w:r><w:t xml:space="preserve"> x</w:t></w:r></w:p>',
    )
    assert texts(tmp_path / "a.docx") == [("paragraph", text)]


@pytest.mark.parametrize(
    ("choice", "fallback", "found"),
    [("new", "old", ["new"]), ("", "old", ["old"]), ("new", "", ["new"])],
)
def test_one_of_two_forms_is_read(
    tmp_path: Path, choice: str, fallback: str, found: list[str]
) -> None:
    space = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    body = (
        f'<w:p><w:r><mc:AlternateContent xmlns:mc="{space}"><mc:Choice>{paragraph(choice)}</mc:Choice>'
        f"<mc:Fallback>{paragraph(fallback)}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
        f"{paragraph('after')}"
    )
    write_docx(tmp_path / "a.docx", body)
    assert [text for _, text in texts(tmp_path / "a.docx")] == [*found, "after"]


def test_a_comment_stands_behind_its_block_and_in_no_chunk(tmp_path: Path) -> None:
    body = '<w:p><w:r><w:t>Rent</w:t></w:r><w:r><w:commentReference w:id="3"/></w:r></w:p>'
    comment = f'<w:comment w:id="3" w:author="Ann">{paragraph("Too much?")}</w:comment>'
    write_docx(
        tmp_path / "a.docx",
        body + paragraph("End"),
        comments=f'<w:comments xmlns:w="{SPACE}">{comment}</w:comments>',
    )
    assert texts(tmp_path / "a.docx") == [
        ("paragraph", "Rent"),
        ("aside", "Ann: Too much?"),
        ("paragraph", "End"),
    ]
    rows = bf.connect(None, cache=None).read_documents(tmp_path / "a.docx", chunk=50).to_pylist()
    assert [(row["text"], row["left_out"]) for row in rows] == [("Rent\n\nEnd", 3)]


def test_a_part_that_is_missing_or_unknown_is_said(tmp_path: Path) -> None:
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    write_docx(
        tmp_path / "a.docx",
        f'{paragraph("a")}<w:altChunk xmlns:r="{office}" r:id="x"/>'
        f'<w:altChunk xmlns:r="{office}" r:id="y"/>{paragraph("b")}',
    )
    with zipfile.ZipFile(tmp_path / "a.docx", "a") as archive:
        archive.writestr(
            "word/_rels/document.xml.rels",
            f'<Relationships xmlns="{space}"><Relationship Id="y" Target="b.rtf"/></Relationships>',
        )
        archive.writestr("word/b.rtf", "{\\rtf1 text}")
    rows = bf.connect(None, cache=None).read_documents(tmp_path / "a.docx").to_pylist()
    assert [row["text"] or row["error"] for row in rows] == [
        "a",
        "b",
        "a document that it refers to is missing",
        "'word/b.rtf': a part of this kind is not read",
    ]


def test_documents_within_documents_have_a_limit(tmp_path: Path) -> None:
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    data = b""
    for number in range(6):
        chunk = f'<w:altChunk xmlns:r="{office}" r:id="y"/>' if data else ""
        write_docx(tmp_path / "a.docx", paragraph(str(number)) + chunk)
        with zipfile.ZipFile(tmp_path / "a.docx", "a") as archive:
            archive.writestr(
                "word/_rels/document.xml.rels",
                f'<Relationships xmlns="{space}"><Relationship Id="y" Target="b.docx"/>'
                "</Relationships>",
            )
            if data:
                archive.writestr("word/b.docx", data)
        data = (tmp_path / "a.docx").read_bytes()
    *_, problem = docx_pages(os.fspath(tmp_path / "a.docx"))
    assert problem == (None, "'word/b.docx': documents are nested deeper than 3 levels")


def test_a_chart_is_a_table(tmp_path: Path) -> None:
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    chart = "http://schemas.openxmlformats.org/drawingml/2006/chart"
    points = '<c:pt idx="0"><c:v>{}</c:v></c:pt><c:pt idx="1"><c:v>{}</c:v></c:pt>'
    series = (
        "<c:ser><c:idx val='0'/><c:order val='0'/><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>Rent</c:v></c:pt></c:strCache>"
        "</c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:ptCount val='2'/>"
        f"{points.format('May', 'June')}</c:strCache></c:strRef></c:cat><c:val><c:numRef>"
        f"<c:numCache><c:ptCount val='2'/>{points.format(400, 410.5)}</c:numCache></c:numRef>"
        "</c:val></c:ser>"
    )
    write_docx(
        tmp_path / "a.docx",
        f'<w:p><w:r><w:drawing><c:chart xmlns:c="{chart}" xmlns:r="{office}" r:id="y"/>'
        "</w:drawing></w:r></w:p>",
    )
    with zipfile.ZipFile(tmp_path / "a.docx", "a") as archive:
        archive.writestr(
            "word/_rels/document.xml.rels",
            f'<Relationships xmlns="{space}"><Relationship Id="y" Target="charts/c.xml"/>'
            "</Relationships>",
        )
        archive.writestr(
            "word/charts/c.xml",
            f'<c:chartSpace xmlns:c="{chart}"><c:chart><c:plotArea><c:barChart>{series}'
            "</c:barChart></c:plotArea></c:chart></c:chartSpace>",
        )
    assert texts(tmp_path / "a.docx") == [("table", " | Rent\nMay | 400\nJune | 410.5")]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<ul><li>a<li>b</ul><p>c", [("list", "• a\n• b"), ("paragraph", "c")]),
        (
            "<ol><li>a<ul><li>b</ul><li>c</ol><h1>d",
            [("list", "1. a\n  • b\n2. c"), ("title", "d")],
        ),
        (
            "<p>A <math><mi>x</mi><annotation>y</annotation></math> b",
            [("paragraph", "A x b")],
        ),
    ],
)
def test_elements_without_ends_and_formulas(page: str, found: list[tuple[str, str]]) -> None:
    assert [(block.kind, block.text) for block in html_blocks(page)] == found


def test_a_row_of_markdown_keeps_what_is_beyond_its_head() -> None:
    text = "| a | b |\n|---|---|\n| x<br>y | 1 | **z** |\n\n> | q |\n> |---|\n> | 1 | 2 |\n"
    assert [block.text for block in markdown_blocks(text.encode())] == [
        "a | b\nx y | 1 | z",
        "q\n1 | 2",
    ]


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("“x”".encode("cp1252"), "iso-8859-1", "“x”"),
        ("镕基".encode("gbk"), "gb2312", "镕基"),
        ("größe".encode(), "iso-2022-jp", "größe"),
        ("日本語".encode("iso-2022-jp"), "iso-2022-jp", "日本語"),
        ("größe".encode(), "us-ascii", "größe"),
        ("größe ü".encode("latin-1"), "utf-8", "größe ü"),
        ("größe €".encode() + b" \xff", "utf-8", "größe € \ufffd"),
        (b"x", "unknown-8bit", "x"),
    ],
)
def test_texts_in_the_charset_that_they_have(data: bytes, charset: str, text: str) -> None:
    found = decode_as(data, charset)
    assert (decode(data) if found is None else found) == text


FLOWED = "Subject: x\nContent-Type: text/plain; charset=utf-8; format=flowed{}\n\n{}"


@pytest.mark.parametrize(
    ("lines", "delsp", "text"),
    [
        ("one \ntwo\nthree", "", "one two\nthree"),
        ("wo \nrd", "; delsp=yes", "word"),
        ("> a \n> b\n>> c \nd", "", "> a b\n>> c \nd"),
        (" From here \non\n-- \nAnn", "", "From here on\n-- \nAnn"),
    ],
)
def test_lines_of_mails_that_go_on(lines: str, delsp: str, text: str) -> None:
    ((_, blocks),) = mail_pages(FLOWED.format(delsp, lines).encode())
    assert not isinstance(blocks, str)
    assert [block.text for block in blocks] == ["x", text]


def test_the_report_on_a_delivery_is_read() -> None:
    data = (
        b"\xef\xbb\xbfSubject: x\nContent-Type: message/delivery-status\n\n"
        b"Reporting-MTA: dns; a\n\nStatus: 5.1.1\n"
    )
    ((_, blocks),) = mail_pages(data)
    assert not isinstance(blocks, str)
    assert [block.text for block in blocks] == ["x", "Reporting-MTA: dns; a\nStatus: 5.1.1"]


def test_texts_written_over_a_page_and_comments_on_it(tmp_path: Path) -> None:
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"))
    canvas.drawString(72, 700, "Name of the tenant:")
    canvas.freeTextAnnotation("Ann Miller", None, [200, 695, 300, 712])
    canvas.textAnnotation("Is she of age?", [400, 695, 420, 715])
    canvas.save()
    rows = bf.connect(None, cache=None).read_documents(tmp_path / "a.pdf").to_pylist()
    assert [row["kind"] for row in rows][-1] == "aside"
    assert " ".join(row["text"] for row in rows).replace(" | ", " ") == (
        "Name of the tenant: Ann Miller Is she of age?"
    )
