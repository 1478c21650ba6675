"""Parts of documents that are rare, and what they must not become: exponents, notes, fields of
forms, charts, comments, labels of lists, words that a column divides, initials and code."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from document_corpus import pdf_lines
from document_files import SPACE, paragraph, write_docx
from pptx import Presentation
from pptx.chart.data import BubbleChartData, CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.util import Pt
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph

import blendfusion as bf
from blendfusion.services.documents.html import html_blocks
from blendfusion.services.documents.markdown import markdown_blocks

_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
_MODERN = "http://schemas.microsoft.com/office/2018/10/relationships/"
_TEXT = (
    "The tenant of the mill pays the rent on the first day of",
    "each month, and the landlord keeps the roof whole until the",
    "end of the lease. Flour is ground on every day of the week",
)


def _read(path: Path) -> list[tuple[int | None, str, str]]:
    rows = bf.connect(None, cache=None).read_documents(path).to_pylist()
    return [(row["page"], row["kind"], row["text"]) for row in rows]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (
            "<form><fieldset><legend>Tenant</legend><label>Name</label><input value='Ann Lee'>"
            "<label>Town</label><select><option>Bern<option selected>Basel</select><input "
            "type=checkbox checked>heated<input type=hidden value=x><textarea>two\nrooms</textarea>",
            ["Tenant", "Name Ann Lee Town Basel ☒ heated two rooms"],
        ),
        ("<dialog>One</dialog><hgroup>two</hgroup><menu>three", ["One", "two", "three"]),
        (
            "10<sup>5</sup> bags in 2024<sup><a href='#n'>1</a></sup>, 3 m<sup>2</sup>, 10<sup>"
            "−3</sup>, the 1<sup>st</sup> of H<sub>2</sub>O",
            ["10^5 bags in 2024[1], 3 m2, 10^−3, the 1st of H2O"],
        ),
        ("<ol type=a><li>x<li>y</ol>", ["a. x\nb. y"]),
        ("<ol reversed start=3 type=I><li>x<li>y</ol>", ["III. x\nII. y"]),
        ("<p><![CDATA[a <b> c]]> d</p>", ["a <b> c d"]),
        ("<ruby>\u6f22<rp>(</rp><rt>kan<rp>)</rp></ruby>\u5b57", ["\u6f22(kan)\u5b57"]),
        (
            "<table><tbody><tr><td rowspan=0>a<td>1<tr><td>2<tbody><tr><td>b<td>3</table>",
            ["a | 1\n | 2\nb | 3"],
        ),
        ("<img alt=T>he mill<img alt='of wood'>.", ["The mill of wood ."]),
    ],
)
def test_parts_of_pages(page: str, found: list[str]) -> None:
    assert [block.text for block in html_blocks(page)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "The rent[^1] of 2024[^n].\n\nAgain[^1].\n\n[^1]: Yes.\n[^n]: In *May*\nand June,\n\n"
            "    or later\n\nEnd",
            [
                ("paragraph", "The rent[1] of 2024[n]."),
                ("footnote", "[1] Yes."),
                ("footnote", "[n] In May and June,  or later"),
                ("paragraph", "Again[1]."),
                ("paragraph", "End"),
            ],
        ),
        (
            "0. one\n\n   | a | b |\n   |---|---|\n   | c | d |\n\n1. two\n\n   <div>three</div>\n",
            [
                ("list", "0. one"),
                ("table", "a | b\nc | d"),
                ("list", "1. two"),
                ("paragraph", "three"),
            ],
        ),
        ("---\ntitle: Lease\n---\nText", [("aside", "title: Lease"), ("paragraph", "Text")]),
        ('+++\na = "b"\n+++\nText', [("aside", 'a = "b"'), ("paragraph", "Text")]),
        ("10<sup>5</sup> x[^9]", [("paragraph", "10^5 x[^9]")]),
        ("```\n[^1]: no note\n```", [("code", "[^1]: no note")]),
    ],
)
def test_parts_of_markdown(text: str, found: list[tuple[str, str]]) -> None:
    blocks = markdown_blocks(text.encode())
    assert [(b.kind, " ".join(b.text.split(" "))) for b in blocks] == [
        (kind, text) for kind, text in found
    ]


def _run(text: str, properties: str = "") -> str:
    kept = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{kept}<w:t xml:space="preserve">{text}</w:t></w:r>'


_RAISED = '<w:vertAlign w:val="superscript"/>'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"<w:p>{_run('10')}{_run('5', _RAISED)}{_run(' m')}{_run('2', _RAISED)}</w:p>", "10^5 m2"),
        (
            f"<w:p><w:r><w:ruby><w:rt>{_run('kan')}</w:rt><w:rubyBase>{_run('X')}</w:rubyBase>"
            f"</w:ruby></w:r>{_run('Y')}</w:p>",
            "X(kan)Y",
        ),
        (
            '<w:p><w:r><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:shape>'
            '<v:textpath string="A draft"/></v:shape></w:pict></w:r></w:p>',
            "A draft",
        ),
        (
            "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr><w:tr><w:trPr><w:gridBefore "
            'w:val="1"/></w:trPr><w:tc>{}</w:tc></w:tr></w:tbl>'.format(*map(paragraph, "abc")),
            "a | b\n | c",
        ),
    ],
)
def test_parts_of_docx(tmp_path: Path, body: str, text: str) -> None:
    write_docx(tmp_path / "a.docx", body)
    assert [row[2] for row in _read(tmp_path / "a.docx")] == [text]


def test_labels_of_lists_that_refer_to_others(tmp_path: Path) -> None:
    """A definition may be that of a style, and a list may state levels of its own."""

    def level(depth: int, form: str, text: str, more: str = "") -> str:
        return (
            f'<w:lvl w:ilvl="{depth}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
            f'<w:lvlText w:val="{text}"/></w:lvl>'
        )

    numbering = (
        f'<w:numbering xmlns:w="{SPACE}"><w:abstractNum w:abstractNumId="0"><w:numStyleLink '
        'w:val="S"/></w:abstractNum><w:abstractNum w:abstractNumId="1"><w:styleLink w:val="S"/>'
        + level(0, "upperRoman", "Art. %1")
        + level(1, "decimal", "%1.%2", "<w:isLgl/>")
        + '</w:abstractNum><w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="6"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0">'
        + level(0, "lowerLetter", "%1)")
        + "</w:lvlOverride></w:num></w:numbering>"
    )
    body = "".join(
        f'<w:p><w:pPr><w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'
        f"</w:pPr>{_run(text)}</w:p>"
        for number, depth, text in ((5, 0, "one"), (5, 1, "two"), (5, 0, "three"), (6, 0, "four"))
    )
    write_docx(tmp_path / "a.docx", body, numbering=numbering)
    assert [row[2] for row in _read(tmp_path / "a.docx")] == [
        "Art. I one\n  1.1 two\nArt. II three",
        "c) four",
    ]


def test_charts_have_all_that_they_show(tmp_path: Path) -> None:
    deck = Presentation()
    shapes = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    points, bubbles, levels = XyChartData(), BubbleChartData(), CategoryChartData()
    points.add_series("M").add_data_point(1.5, 2)
    bubbles.add_series("B").add_data_point(1, 2, 7)
    year = levels.add_category("2024")
    year.add_sub_category("Q1")
    year.add_sub_category("Q2")
    levels.add_series("L", (3, 4))
    days = CategoryChartData()
    days.add_category(datetime.date(2024, 1, 5))
    days.add_category(datetime.date(2024, 12, 31))
    days.add_series("D", (5, None))
    for at, (kind, data) in enumerate(
        (
            (XL_CHART_TYPE.XY_SCATTER, points),
            (XL_CHART_TYPE.BUBBLE, bubbles),
            (XL_CHART_TYPE.LINE, levels),
            (XL_CHART_TYPE.LINE, days),
        )
    ):
        chart = shapes.add_chart(kind, 0, Pt(100 * at), Pt(90), Pt(90), data).chart
        if at == 0:
            chart.has_title = chart.value_axis.has_title = chart.category_axis.has_title = True
            chart.chart_title.text_frame.text = "Rye"
            chart.category_axis.axis_title.text_frame.text = "Years"
            chart.value_axis.axis_title.text_frame.text = "Euros"
    deck.save(os.fspath(tmp_path / "a.pptx"))
    assert [row[2] for row in _read(tmp_path / "a.pptx")] == [
        *("Rye", "Years", "Euros", " | M\n1.5 | 2", " | B\n1 | 2 | 7"),
        *(" | L\n2024 Q1 | 3\n2024 Q2 | 4", " | D\n2024-01-05 | 5\n2024-12-31 | "),
    ]


def test_comments_on_slides_are_asides(tmp_path: Path) -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "The mill"
    old = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    new = (
        'xmlns:n="http://schemas.microsoft.com/office/powerpoint/2018/8/main" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    )
    words = "<n:txBody><a:bodyPr/><a:p><a:r><a:t>{}</a:t></a:r></a:p></n:txBody>"
    answer = f'<n:replyLst><n:reply authorId="b">{words.format("No.")}</n:reply></n:replyLst>'
    for owner, name, kind, content in (
        (
            *(deck.part, "commentAuthors", f"{_RELATIONS}commentAuthors"),
            f'<p:cmAuthorLst {old}><p:cmAuthor id="0" name="Ann"/></p:cmAuthorLst>',
        ),
        (
            *(slide.part, "comment1", f"{_RELATIONS}comments"),
            f'<p:cmLst {old}><p:cm authorId="0"><p:text>Old?</p:text></p:cm></p:cmLst>',
        ),
        (
            *(deck.part, "authors", f"{_MODERN}authors"),
            f'<n:authorLst {new}><n:author id="b" name="Bo"/></n:authorLst>',
        ),
        (
            *(slide.part, "modern1", f"{_MODERN}comments"),
            f'<n:cmLst {new}><n:cm authorId="b">{answer}{words.format("New?")}</n:cm></n:cmLst>',
        ),
    ):
        part = Part(PackURI(f"/ppt/{name}.xml"), "text/xml", owner.package, content.encode())
        owner.relate_to(part, kind)
    deck.save(os.fspath(tmp_path / "a.pptx"))
    assert _read(tmp_path / "a.pptx") == [
        (1, "title", "The mill"),
        *((1, "aside", text) for text in ("Ann: Old?", "Bo: New?", "Bo: No.")),
    ]


def _two_columns(canvas: Canvas) -> None:
    pdf_lines(canvas, [*_TEXT * 6, "The last payment of the provi-"], 50, 760, size=9)
    pdf_lines(canvas, ["sional rent is due in spring.", *_TEXT * 6], 310, 760, size=9)


def _two_pages(canvas: Canvas) -> None:
    pdf_lines(canvas, [*_TEXT, "The last payment of the provi-"], 72, 160)
    canvas.drawString(72, 60, "The foot of pages")
    canvas.showPage()
    pdf_lines(canvas, ["sional rent is due in spring.", *_TEXT], 72, 760)
    canvas.drawString(72, 60, "The foot of pages")


@pytest.mark.parametrize("draw", [_two_columns, _two_pages])
def test_a_word_that_a_column_or_a_page_divides_is_whole(
    tmp_path: Path, draw: Callable[[Canvas], None]
) -> None:
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"), invariant=True)
    draw(canvas)
    canvas.save()
    session = bf.connect(None, cache=None)
    frame = session.read_documents(tmp_path / "a.pdf")
    one, other = (row["text"] for row in frame.to_pylist() if row["kind"] == "paragraph")
    assert one.endswith("of the provisional")
    assert other.startswith("rent is due")
    second = session.read_documents(tmp_path / "a.pdf").filter(bf.col("page") == 2)
    if draw is _two_pages:
        assert second.to_pylist()[0]["text"].startswith("rent is due")


def test_an_initial_begins_its_word(tmp_path: Path) -> None:
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"), invariant=True)
    for top, initial, first in ((700, "T", "he tenant pays"), (500, "A", "mill grinds")):
        canvas.setFont("Times-Roman", 40)
        canvas.drawString(72, top, initial)
        pdf_lines(canvas, [first, "the rent of the mill"], 102, top + 19)
        pdf_lines(canvas, ["on the first day of the month"], 72, top - 11)
    canvas.save()
    text = " ".join(row[2] for row in _read(tmp_path / "a.pdf"))
    assert text == (
        "The tenant pays the rent of the mill on the first day of the month "
        "A mill grinds the rent of the mill on the first day of the month"
    )


def test_letters_that_touch_are_one_word_and_exponents_stay_apart(tmp_path: Path) -> None:
    style = ParagraphStyle("text", fontName="Times-Roman", fontSize=11, leading=14)
    text = (
        "H<sub>2</sub>O, CO<sub>2</sub>; 10<super>5</super> grains on 3 m<super>2</super>, in 2024"
        "<super>1</super>, and 1,000<super>12</super>."
    )
    note = ParagraphStyle("note", fontName="Times-Roman", fontSize=8, leading=10)
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"), invariant=True)
    for content, kind, top in (
        (f"{text} {' '.join(_TEXT)}", style, 700),
        ("<super>1</super> A year of much rain, which was long", note, 120),
    ):
        made = Paragraph(content, kind)
        made.wrapOn(canvas, 400, 800)
        made.drawOn(canvas, 72, top)
    canvas.save()
    rows = _read(tmp_path / "a.pdf")
    assert rows[0][2].startswith("H2O, CO2; 10^5 grains on 3 m2, in 2024[1], and 1,000^12. The")
    assert rows[1] == (1, "footnote", "[1] A year of much rain, which was long")


def test_code_keeps_its_lines_and_indents(tmp_path: Path) -> None:
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"), invariant=True)
    code = ["def pay(rent):", "    if rent > 0:", "        return  rent * 2", "", "    return 0"]
    pdf_lines(canvas, _TEXT, 72, 760)
    pdf_lines(canvas, code, 72, 700, font="Courier")
    pdf_lines(canvas, _TEXT, 72, 600)
    pdf_lines(canvas, _TEXT[:2], 72, 500, font="Courier")
    canvas.save()
    assert [row[1:] for row in _read(tmp_path / "a.pdf")] == [
        ("paragraph", " ".join(_TEXT)),
        ("code", "\n".join(code)),
        ("paragraph", " ".join(_TEXT)),
        ("paragraph", " ".join(_TEXT[:2])),
    ]
