"""PPTX, EPUB and e-mails as tables of blocks; a damaged part costs no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from document_files import (
    MAIL,
    MAIL_BLOCKS,
    PPTX_BLOCKS,
    changed_archive,
    write_epub,
    write_pptx,
)
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml import parse_xml
from pptx.util import Pt

import blendfusion as bf
from blendfusion.services.documents.mail import mail_pages

DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'


def rows_of(path: Path, **options: Any) -> list[tuple[int | None, str, str | None, str | None]]:
    """Page, kind, text and error of each row."""
    rows = bf.connect(None, cache=None).read_documents(path, **options).to_pylist()
    return [(row["page"], row["kind"], row["text"], row["error"]) for row in rows]


def test_slides_are_pages(tmp_path: Path) -> None:
    write_pptx(tmp_path / "a.pptx")
    expected = [(*block, None) for block in PPTX_BLOCKS]
    assert rows_of(tmp_path / "a.pptx") == expected
    session = bf.connect(None, cache=None, read_files="local")
    query = f"SELECT bbox, text FROM '{tmp_path}/a.pptx' WHERE page = 2 AND kind = 'paragraph'"
    (row,) = session.sql(query).to_pylist()
    assert row == {
        "bbox": {"left": 72.0, "top": 144.0, "right": 360.0, "bottom": 180.0},
        "text": "In euros.",
    }


def test_what_slides_have_besides_texts(tmp_path: Path) -> None:
    """A chart, texts side by side, one in a group, labels of items, a formula, a newer form."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for left, top, text in ((300, 12, "right"), (20, 20, "left"), (20, 10, "")):
        slide.shapes.add_textbox(Pt(left), Pt(top), Pt(200), Pt(40)).text_frame.text = text
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(Pt(20), Pt(70), Pt(200), Pt(40)).text_frame.text = "in a group"
    box = slide.shapes.add_textbox(Pt(20), Pt(150), Pt(200), Pt(80)).text_frame
    for number, (label, text) in enumerate(
        (
            ('<a:buAutoNum type="arabicPeriod" startAt="3"/>', "three"),
            ('<a:buAutoNum type="arabicPeriod" startAt="3"/>', "four"),
            ('<a:buChar char="-"/>', "a dash"),
            ("<a:buNone/>", "no item"),
            ('<a:buAutoNum type="alphaLcParenR"/>', "letters"),
        )
    ):
        paragraph = box.paragraphs[0] if number == 0 else box.add_paragraph()
        paragraph.text = text
        paragraph._p.insert(0, parse_xml(f"<a:pPr {DRAWING}>{label}</a:pPr>"))
    shown = slide.shapes.add_textbox(Pt(20), Pt(240), Pt(200), Pt(20))
    shown.text_frame.text = "E ="
    formula = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    shown.text_frame.paragraphs[0]._p.append(
        parse_xml(f'<m:oMath xmlns:m="{formula}"><m:r><m:t> mc²</m:t></m:r></m:oMath>')
    )
    newer = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    around = parse_xml(
        f'<mc:AlternateContent xmlns:mc="{newer}"><mc:Choice Requires="x"/></mc:AlternateContent>'
    )
    shown._element.addprevious(around)
    around[0].append(shown._element)
    data = CategoryChartData()
    data.categories = ["rye", "wheat"]
    data.add_series("price", (2, 1.5))
    data.add_series("bags", (7, None))
    kind = XL_CHART_TYPE.COLUMN_CLUSTERED
    chart = slide.shapes.add_chart(kind, Pt(20), Pt(300), Pt(300), Pt(200), data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "This year"
    deck.save(os.fspath(tmp_path / "a.pptx"))
    assert rows_of(tmp_path / "a.pptx") == [
        (1, "paragraph", "left", None),
        (1, "paragraph", "right", None),
        (1, "paragraph", "in a group", None),
        (1, "list", "3. three\n4. four\n• a dash", None),
        (1, "paragraph", "no item", None),
        (1, "list", "a) letters", None),
        (1, "paragraph", "E = mc²", None),
        (1, "paragraph", "This year", None),
        (1, "table", " | price | bags\nrye | 2 | 7\nwheat | 1.5 | ", None),
    ]


def test_a_damaged_shape_costs_no_other(tmp_path: Path) -> None:
    write_pptx(tmp_path / "a.pptx")
    deck = Presentation(os.fspath(tmp_path / "a.pptx"))
    frame = deck.slides[0].shapes.title.text_frame
    frame.paragraphs[0]._p.insert(0, parse_xml(f'<a:pPr {DRAWING} lvl="a"/>'))
    deck.save(os.fspath(tmp_path / "b.pptx"))
    expected = [(*block, None) for block in PPTX_BLOCKS if block[2] != "The mill"]
    expected.insert(2, (1, "error", None, "'Title 1' is damaged (ValueError)"))
    assert rows_of(tmp_path / "b.pptx") == expected


CHAPTERS = {
    "text/one a.xhtml": "<h1>One</h1><p>It grinds.</p><aside epub:type='footnote'>Daily.</aside>",
    "two.xhtml": "<p>Two&nbsp;bags.</p><aside>An advert</aside>",
    "three.xhtml": "<p>Three.</p>",
}
BOOK = [
    (1, "title", "One", None),
    (1, "paragraph", "It grinds.", None),
    (1, "footnote", "Daily.", None),
    (2, "paragraph", "Two bags.", None),
    (2, "aside", "An advert", None),
    (3, "paragraph", "Three.", None),
]


def test_chapters_of_a_book_are_pages(tmp_path: Path) -> None:
    write_epub(tmp_path / "a.epub", {name.replace(" ", "%20"): c for name, c in CHAPTERS.items()})
    content = {name: c.encode() for name, c in CHAPTERS.items()}
    (tmp_path / "a.epub").write_bytes(changed_archive(tmp_path / "a.epub", content))
    assert rows_of(tmp_path / "a.epub") == BOOK


ENCRYPTION = (
    '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:CipherReference URI="two.xhtml"/>'
    "</encryption>"
)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (
            lambda path: write_epub(path, CHAPTERS, encryption=ENCRYPTION),
            "'two.xhtml' is encrypted",
        ),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b"two.xhtml", b"tow.xhtml")),
            "'two.xhtml' is not in the archive",
        ),
        (
            lambda path: path.write_bytes(
                changed_archive(path, {"two.xhtml": b"x" * ((64 << 20) + 1)})
            ),
            "'two.xhtml': 'two.xhtml' is larger than 64 MB unpacked",
        ),
    ],
)
def test_a_chapter_that_cannot_be_read_costs_no_other(
    tmp_path: Path, harm: Callable[[Path], object], reason: str
) -> None:
    write_epub(tmp_path / "a.epub", CHAPTERS)
    harm(tmp_path / "a.epub")
    expected = [*BOOK[:3], (2, "error", None, reason), BOOK[5]]
    assert rows_of(tmp_path / "a.epub") == expected


def test_an_email_says_who_wrote_what_and_what_is_attached(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(MAIL)
    assert rows_of(tmp_path / "a.eml") == [(None, *block, None) for block in MAIL_BLOCKS]


def test_a_cut_email_gives_what_is_there_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(MAIL[: MAIL.index(b"Two bags")])
    *rows, error = rows_of(tmp_path / "a.eml")
    assert [row[2] for row in rows if row[1] == "title"] == ["Größe der Mühle", "Rye"]
    assert error == (None, "error", None, "its end is missing")


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252", "utf-16", "no-such"])
@pytest.mark.parametrize("coding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("kind", ["plain", "html"])
def test_texts_of_emails_in_any_charset(charset: str, coding: str, kind: str) -> None:
    text = "Größe: 5" if kind == "plain" else "<p>Größe: 5</p>"
    if coding == "8bit" and charset == "utf-16":
        pytest.skip("no such e-mail: its lines cannot be found")
    mail = EmailMessage()
    stated = charset if charset != "no-such" else "utf-8"
    mail["Subject"] = "x"
    mail.set_content(
        text.encode(stated), "text", kind, cte=coding if coding != "8bit" else "base64"
    )
    mail.set_param("charset", charset)
    data = mail.as_bytes()
    if coding == "8bit":
        head = f"Subject: x\nContent-Type: text/{kind}; charset={charset}\n"
        data = f"{head}Content-Transfer-Encoding: 8bit\n\n".encode() + text.encode(stated)
    ((_, blocks),) = mail_pages(data)
    assert not isinstance(blocks, str)
    assert [block.text for block in blocks] == ["x", "Größe: 5"]


def test_chunks_count_the_words_that_they_leave_out(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(
        "<header>The Mill</header><h1>One</h1><p>It grinds.<h1>Two</h1><p>Daily."
        "<footer>Printed in 1999</footer>"
    )
    frame = bf.connect(None, cache=None).read_documents(page, chunk=50)
    assert [(row["text"], row["left_out"]) for row in frame.to_pylist()] == [
        ("One\n\nIt grinds.", 5),
        ("Two\n\nDaily.", 0),
    ]
    blocks = bf.connect(None, cache=None).read_documents(page).to_pylist()
    assert {row["left_out"] for row in blocks} == {None}


def test_a_page_that_has_only_margins_is_a_chunk(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<footer>Printed in 1999</footer>")
    frame = bf.connect(None, cache=None).read_documents(page, chunk=50)
    assert [(row["text"], row["left_out"]) for row in frame.to_pylist()] == [("Printed in 1999", 0)]
