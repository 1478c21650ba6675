"""What a reader of documents loses easily: divided words, rows at the edges of pages, what stands
around tables, labels, notes."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from document_files import SPACE, paragraph, write_docx
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from blendfusion.services.documents.blocks import Block
from blendfusion.services.documents.chunks import cut_chunks
from blendfusion.services.documents.docx import docx_pages
from blendfusion.services.documents.html import html_blocks
from blendfusion.services.documents.joined_lines import join_lines
from blendfusion.services.documents.markdown import markdown_blocks
from blendfusion.services.documents.pdf import PdfFile


def pdf_blocks(path: Path) -> list[Block]:
    """The blocks of all pages."""
    found: list[Block] = []
    for _, blocks in PdfFile(os.fspath(path)).blocks(None):
        assert not isinstance(blocks, str)
        found += blocks
    return found


def write_lines(path: Path, pages: Sequence[Sequence[str]], step: float = 14.0) -> Path:
    """A PDF of pages of lines, from the upper edge."""
    canvas = Canvas(os.fspath(path), invariant=True)
    for lines in pages:
        canvas.setFont("Helvetica", 10)
        for number, line in enumerate(lines):
            canvas.drawString(60, 800 - step * number, line)
        canvas.showPage()
    canvas.save()
    return path


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["The payment of the provi-", "sional rent"], "The payment of the provisional rent"),
        (["is due in Septem-", "ber of the year"], "is due in September of the year"),
        (["a state-of-the-", "art mill"], "a state-of-the-art mill"),
        (["co-operation and co-", "operation"], "co-operation and co-operation"),
        (["of Baden-", "Baden"], "of Baden-Baden"),
        (["pages 10-", "20 of it"], "pages 10-20 of it"),
        (["COVID-", "19 and pre-", "and post-war"], "COVID-19 and pre- and post-war"),
        (["a dash -", "and more"], "a dash - and more"),
        (["the years 1990–", "1995, and/", "or later"], "the years 1990–1995, and/or later"),
    ],
)
def test_a_word_that_a_line_divides_is_whole(tmp_path: Path, lines: list[str], text: str) -> None:
    assert [block.text for block in pdf_blocks(write_lines(tmp_path / "a.pdf", [lines]))] == [text]


def test_every_word_survives_its_division(tmp_path: Path) -> None:
    """Words of several lengths, each divided at every place, in small and in capital letters."""
    words = ["provisional", "Donaudampf", "rental", "überall"]
    for number, word in enumerate(words):
        for at in range(2, len(word) - 2):
            name = tmp_path / f"{number} {at}.pdf"
            write_lines(name, [[f"The {word[:at]}-", f"{word[at:]} is here."]])
            assert [b.text for b in pdf_blocks(name)] == [f"The {word} is here."], (word, at)


def test_scripts_without_blanks_are_joined_without() -> None:
    assert join_lines(["契約書の", "第一条", "ABC", "def"]) == "契約書の第一条 ABC def"


def test_special_codes_are_letters(tmp_path: Path) -> None:
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"), invariant=True)
    canvas._code.append(  # a subscript, and gaps that only places tell
        "BT /F1 12 Tf 72 700 Td (H) Tj /F1 7 Tf 8.7 -3 Td (2) Tj /F1 12 Tf 3.9 3 Td (O) Tj ET"
    )
    canvas._code.append("BT /F1 12 Tf 72 680 Td [(ab) -300 (cd) -1200 (ef)] TJ ET")
    canvas.showPage()
    canvas.save()
    assert [block.text for block in pdf_blocks(tmp_path / "a.pdf")] == ["H2O ab cd ef"]


def _transfer(chance: random.Random) -> str:
    amount = f"{chance.randint(1, 999)}.{chance.randint(10, 99)}"
    return f"Transfer {chance.randint(100000, 999999)} to tenant {chance.randint(10, 99)}   {amount} EUR"


LEDGERS: dict[str, Callable[[random.Random], str]] = {
    "transfers": _transfer,
    "measures": lambda chance: (
        f"Measured {chance.randint(10**5, 10**6)} at {chance.randint(9, 99)} degrees"
    ),
    "numbers": lambda chance: str(chance.randint(1, 9999)),
    "names": lambda chance: f"{chance.choice(['Ann', 'Bo', 'Cy'])} paid {chance.randint(100, 999)}",
    "dates": lambda chance: (
        f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02} {chance.randint(1, 99)}.00"
    ),
}


@pytest.mark.parametrize("kind", LEDGERS)
@pytest.mark.parametrize(("header", "rows"), [("Bank of the Mill", 30), (None, 30), ("Acme", 53)])
def test_no_row_of_a_ledger_is_taken_for_a_margin(
    tmp_path: Path, kind: str, header: str | None, rows: int
) -> None:
    chance = random.Random(f"{kind} {header} {rows}")
    step = 25.0 if rows == 30 else 14.0
    pages = [[LEDGERS[kind](chance) for _ in range(rows)] for _ in range(6)]
    with_header = [[header, "", *lines] if header else lines for lines in pages]
    name = write_lines(tmp_path / "ledger.pdf", with_header, step)
    kept: list[str] = []
    for _, blocks in PdfFile(os.fspath(name)).blocks(None):
        assert not isinstance(blocks, str)
        assert [b.text for b in blocks if b.kind == "header"] == ([header] if header else [])
        kept += [text for _, text, _ in cut_chunks([(b.kind, b.text, b.box) for b in blocks], 400)]
    found = " ".join(" ".join(kept).split()).replace(" | ", " ")
    assert found == " ".join(" ".join(line.split()) for lines in pages for line in lines)


def test_margins_count_with_the_page(tmp_path: Path) -> None:
    pages = [
        ["Report 2024", "", "", f"Text {'abc'[n]} of it.", *[""] * 50, f"{n + 7} / 90"]
        for n in range(3)
    ]
    blocks = pdf_blocks(write_lines(tmp_path / "a.pdf", pages))
    assert [(block.kind, block.text) for block in blocks[:3]] == [
        ("header", "Report 2024"),
        ("paragraph", "Text a of it."),
        ("footer", "7 / 90"),
    ]
    assert [block.kind for block in blocks] == ["header", "paragraph", "footer"] * 3


@pytest.mark.parametrize("style", [[], [("LINEBELOW", (0, 0), (-1, 0), 1, "black")]])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Before the table comes text.", "After the table comes text."),
        ("Short.", "Short."),
        (
            "Before the table comes a sentence that is about as long as the table is wide, or more.",
            "After.",
        ),
    ],
)
def test_a_table_without_rules_leaves_out_what_stands_around_it(
    tmp_path: Path, style: list[tuple[object, ...]], before: str, after: str
) -> None:
    sheet = getSampleStyleSheet()
    rows = [["Item", "Qty", "Price", "Remark"]]
    rows += [[f"thing {n}", str(3 * n), f"{n}.50", "fine"] for n in range(6)]
    story = [
        Paragraph("Table one", sheet["Heading1"]),
        Paragraph(before, sheet["Normal"]),
        Table(rows, style=style),
        Paragraph(after, sheet["Normal"]),
    ]
    SimpleDocTemplate(os.fspath(tmp_path / "a.pdf"), invariant=1).build(story)
    assert [(block.kind, block.text) for block in pdf_blocks(tmp_path / "a.pdf")] == [
        ("title", "Table one"),
        ("paragraph", before),
        ("table", "\n".join(" | ".join(row) for row in rows)),
        ("paragraph", after),
    ]


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ("<tr><td rowspan=2>r1<td>b1<tr><td>b2", "r1 | b1\n | b2"),
        ("<tr><td colspan=2>a<td>b<tr><td>1<td>2<td>3", "a |  | b\n1 | 2 | 3"),
        ("<tr><td>a<td rowspan=3>b<tr><td>c<tr><td>d<tr><td>e<td>f", "a | b\nc\nd\ne | f"),
        ("<tr><td rowspan=99999999>a<td>b<tr><td>c", "a | b\n | c"),
        ("<tr><td>p|q<td>r", r"p\|q | r"),
    ],
)
def test_cells_stay_in_their_columns(cells: str, text: str) -> None:
    (block,) = html_blocks(f"<table>{cells}</table>".encode())
    assert (block.kind, block.text) == ("table", text)


def test_a_bar_in_a_cell_of_markdown_is_no_border() -> None:
    (block,) = markdown_blocks(b"| a | b |\n|---|---|\n| p\\|q | r |\n")
    assert block.text == "a | b\np\\|q | r"


def test_lists_of_html_keep_depth_and_numbers() -> None:
    text = "<ol start=3><li>c<ul><li>x<ol><li>y</ol></ul><li>d<li value=9>i</ol>"
    (block,) = html_blocks(text.encode())
    assert block.text == "3. c\n  • x\n    1. y\n4. d\n9. i"


NUMBERING = f"""<w:numbering xmlns:w="{SPACE}">
<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/>
<w:lvlText w:val="%1."/></w:lvl><w:lvl w:ilvl="1"><w:start w:val="1"/>
<w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>
</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0">
<w:startOverride w:val="7"/></w:lvlOverride></w:num></w:numbering>"""


def _item(text: str, number_list: int, depth: int = 0) -> str:
    numbers = f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number_list}"/></w:numPr>'
    return f"<w:p><w:pPr>{numbers}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_numbered_lists_of_docx_keep_their_numbers(tmp_path: Path) -> None:
    items = [("a", 2, 0), ("b", 1, 0), ("c", 1, 1), ("d", 1, 1), ("e", 1, 0), ("f", 1, 1)]
    body = "".join(_item(*item) for item in items) + paragraph("Text.") + _item("g", 3)
    write_docx(tmp_path / "a.docx", body, numbering=NUMBERING)
    ((_, blocks),) = docx_pages(os.fspath(tmp_path / "a.docx"))
    assert [block.text for block in blocks] == [
        "• a",
        "1. b\n  1.a) c\n  1.b) d\n2. e\n  2.a) f",
        "Text.",
        "7. g",
    ]


def test_notes_of_docx_stand_behind_what_refers_to_them(tmp_path: Path) -> None:
    def reference(kind: str, number: int) -> str:
        return f'<w:r><w:{kind}Reference w:id="{number}"/></w:r>'

    notes = {
        f"{kind}s": f'<w:{kind}s xmlns:w="{SPACE}"><w:{kind} w:id="{number}">'
        f"{paragraph(text)}</w:{kind}></w:{kind}s>"
        for kind, number, text in (("footnote", 2, "Except Sundays."), ("endnote", 5, "Sources."))
    }
    text = "<w:r><w:t>Open daily</w:t></w:r>"
    cell = f"<w:tc><w:p>{text}{reference('endnote', 5)}</w:p></w:tc>"
    body = f"<w:p>{text}{reference('footnote', 2)}</w:p><w:tbl><w:tr>{cell}</w:tr></w:tbl>"
    write_docx(tmp_path / "a.docx", body + paragraph("End."), **notes)
    ((_, found),) = docx_pages(os.fspath(tmp_path / "a.docx"))
    assert [(block.kind, block.text) for block in found] == [
        ("paragraph", "Open daily[1]"),
        ("footnote", "[1] Except Sundays."),
        ("table", "Open daily[e1]"),
        ("footnote", "[e1] Sources."),
        ("paragraph", "End."),
    ]


def test_signs_and_hidden_text_of_docx(tmp_path: Path) -> None:
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r>"
    shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>co</w:t><w:noBreakHyphen/></w:r>'
    body = f"<w:p>{hidden}{shown}<w:r><w:t>op pro</w:t><w:softHyphen/><w:t>vi</w:t></w:r></w:p>"
    write_docx(tmp_path / "a.docx", body)
    ((_, blocks),) = docx_pages(os.fspath(tmp_path / "a.docx"))
    assert [block.text for block in blocks] == ["co-op provi"]


def test_values_of_forms_stand_beside_their_labels(tmp_path: Path) -> None:
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"), invariant=True)
    form = canvas.acroForm
    for row, label in enumerate(("Tenant:", "Town:", "Pets:", "Note:", "Empty:")):
        canvas.drawString(72, 700 - 40 * row, label)
    form.textfield(name="t", value="Anna Müller", x=140, y=692, width=200, height=20)
    form.choice(
        name="c", value="Graz", options=["Graz", "Linz"], x=140, y=652, width=200, height=20
    )
    form.checkbox(name="p", checked=True, x=140, y=612, size=20)
    form.textfield(name="n", value="one two", x=140, y=572, width=200, height=20)
    form.textfield(name="e", value="", x=140, y=532, width=200, height=20)
    canvas.showPage()
    canvas.save()
    found = " ".join(block.text for block in pdf_blocks(tmp_path / "a.pdf"))
    text = " ".join(found.replace("|", " ").split())
    assert text == "Tenant: Anna Müller Town: Graz Pets: ☒ Note: one two Empty:"


@pytest.mark.parametrize("columns", [1, 2])
def test_footnotes_of_a_pdf_are_blocks_and_exponents_stay(tmp_path: Path, columns: int) -> None:
    style, note = getSampleStyleSheet()["Normal"], getSampleStyleSheet()["Normal"].clone("note")
    note.fontSize, note.leading = 7, 9
    canvas = Canvas(os.fspath(tmp_path / "a.pdf"), invariant=True)
    for column in range(columns):
        number, width = column + 1, 460 // columns
        text = (
            f"The mill<super>{number}</super> has 10 m<super>2</super> of floor. "
            + "It grinds. " * 20
        )
        for content, kind, top in (
            (text, style, 700),
            (f"<super>{number}</super> A mill of wood, which was built long ago", note, 120),
        ):
            shown = Paragraph(content, kind)
            shown.wrapOn(canvas, width - 20, 800)
            shown.drawOn(canvas, 60 + width * column, top - shown.height)
    canvas.showPage()
    canvas.save()
    blocks = pdf_blocks(tmp_path / "a.pdf")
    exponent = "m2" if columns == 1 else "m[2]"  # where there is a note 2, it may be meant
    for number in range(1, columns + 1):
        assert f"[{number}] A mill of wood, which was built long ago" in [
            block.text for block in blocks if block.kind == "footnote"
        ]
    body = [block.text for block in blocks if block.kind == "paragraph"]
    assert [text.partition(" of floor")[0] for text in body] == [
        f"The mill[{number}] has 10 {exponent}" for number in range(1, columns + 1)
    ]


@pytest.mark.parametrize("shown", [0, 90, 180, 270])
@pytest.mark.parametrize("drawn", [0, 90, 180, 270])
def test_text_that_is_drawn_in_any_direction_is_read_in_its_order(
    tmp_path: Path, shown: int, drawn: int
) -> None:
    """Landscape tables stand on their side in a page, which a viewer may turn, too."""
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(600, 800), invariant=True)
    canvas.setPageRotation(shown)
    width, height = (800, 600) if shown % 180 else (600, 800)
    corner = {0: (0, 0), 90: (width, 0), 180: (width, height), 270: (0, height)}
    canvas.translate(*corner[drawn])
    canvas.rotate(drawn)
    lines = [f"line{number} says one two three four five" for number in range(6)]
    for number, line in enumerate(lines):
        canvas.drawString(60, 300 - 20 * number, line)
    canvas.save()
    assert (
        " ".join(block.text for block in pdf_blocks(tmp_path / "a.pdf")).split()
        == " ".join(lines).split()
    )
