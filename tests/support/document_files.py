"""Documents that tests read: DOCX, PPTX, EPUB, e-mails, HTML and Markdown with known content."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path
from xml.sax.saxutils import escape

from pptx import Presentation
from pptx.util import Pt

SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = (
    f'<w:styles xmlns:w="{SPACE}"><w:style w:styleId="Kop1"><w:name w:val="heading 1"/></w:style>'
    "</w:styles>"
)
HTML = """<!doctype html><html><head><title>Mill</title><style>p {}</style></head><body>
<nav>Home</nav><header>Acme</header><h1>The mill &amp; more</h1><p>It grinds<br>every
  day.<script>alert(1)</script></p><ul><li>wheat<li>rye</ul><ol><li>one</li><li>two</li></ol>
<table><tr><th>grain<th>price<tr><td>rye<td><p>2</p></table><pre>a
  b</pre><footer>1999</footer></body></html>"""
HTML_BLOCKS = [
    ("title", "Mill"),
    ("aside", "Home"),
    ("header", "Acme"),
    ("title", "The mill & more"),
    ("paragraph", "It grinds\nevery day."),
    ("list", "• wheat\n• rye\n1. one\n2. two"),
    ("table", "grain | price\nrye | 2"),
    ("code", "a\n  b"),
    ("footer", "1999"),
]
MARKDOWN = """---
author: A
---
# The *mill*

It grinds
every `day`.

- wheat
- rye
  1. old

| grain | price |
|---|---|
| rye | 2 |

```
a
```
"""
MARKDOWN_BLOCKS = [
    ("aside", "author: A"),
    ("title", "The mill"),
    ("paragraph", "It grinds every day."),
    ("list", "• wheat\n• rye\n  1. old"),
    ("table", "grain | price\nrye | 2"),
    ("code", "a"),
]
DOCX_BLOCKS = [
    ("header", "Acme"),
    ("title", "The mill"),
    ("paragraph", "It grinds every day."),
    ("list", "• wheat\n• rye"),
    ("table", "grain | price\nrye | 2"),
    ("footer", "1999"),
]


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of WordprocessingML."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def write_docx(path: Path, body: str | None = None, **parts: str) -> None:
    """A DOCX file of a body in WordprocessingML; ``parts`` are other parts of the archive."""
    if body is None:
        cells = ["".join(f"<w:tc>{paragraph(c)}</w:tc>" for c in row) for row in _ROWS]
        deleted = "<w:p><w:del><w:r><w:t>gone</w:t></w:r></w:del></w:p>"
        table = "".join(f"<w:tr>{row}</w:tr>" for row in cells)
        items = paragraph("wheat", "ListParagraph") + paragraph("rye", "ListParagraph")
        title = paragraph("The mill", "Kop1") + paragraph("It grinds every day.") + deleted
        body = f"{title}{items}<w:tbl>{table}</w:tbl>"
        parts = {
            "styles": STYLES,
            "header1": f'<w:hdr xmlns:w="{SPACE}">{paragraph("Acme")}</w:hdr>',
            "footer1": f'<w:ftr xmlns:w="{SPACE}">{paragraph("1999")}</w:ftr>',
            **parts,
        }
    document = f'<w:document xmlns:w="{SPACE}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"document": document, **parts}.items():
            archive.writestr(f"word/{name}.xml", content)


_ROWS = [["grain", "price"], ["rye", "2"]]


def write_pptx(path: Path) -> None:
    """Two slides: a list with notes, and a table below a text."""
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "The mill"
    frame = slide.placeholders[1].text_frame
    frame.text = "wheat"
    item = frame.add_paragraph()
    item.text, item.level = "rye", 1
    slide.notes_slide.notes_text_frame.text = "Greet the guests."
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Prices"
    table = slide.shapes.add_table(2, 2, Pt(72), Pt(300), Pt(288), Pt(72)).table
    for row, cells in enumerate(_ROWS):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    box = slide.shapes.add_textbox(Pt(72), Pt(144), Pt(288), Pt(36))
    box.text_frame.text = "In euros."
    deck.save(os.fspath(path))


PPTX_BLOCKS = [
    (1, "title", "The mill"),
    (1, "list", "• wheat\n  • rye"),
    (1, "footnote", "Greet the guests."),
    (2, "title", "Prices"),
    (2, "paragraph", "In euros."),
    (2, "table", "grain | price\nrye | 2"),
]


def write_epub(path: Path, chapters: Mapping[str, str], **parts: str) -> None:
    """A book of chapters, by their names; ``parts`` are other parts of META-INF."""
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(chapters)
    )
    order = "".join(f'<itemref idref="i{n}"/>' for n in range(len(chapters)))
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf">'
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("book.opf", package)
        for name, content in parts.items():
            archive.writestr(f"META-INF/{name}.xml", content)
        for name, content in chapters.items():
            page = f'<?xml version="1.0"?><!DOCTYPE html><html><body>{content}</body></html>'
            archive.writestr(name, page)


def changed_archive(path: Path, parts: Mapping[str, bytes]) -> bytes:
    """The archive at ``path`` with other parts."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(path) as before,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        content = {name: before.read(name) for name in before.namelist()}
        for name, data in {**content, **parts}.items():
            after.writestr(name, data)
    return written.getvalue()


def _mail() -> bytes:
    inner = EmailMessage()
    inner["From"], inner["Subject"] = "Bo <bo@mill.example>", "Rye"
    inner.set_content("Two bags, please.\n")
    mail = EmailMessage()
    mail["From"], mail["To"] = "Zoë <zoe@mill.example>", "ann@mill.example"
    mail["Date"], mail["Subject"] = "Mon, 04 Mar 2024 10:00:00 +0100", "Größe der Mühle"
    mail.set_content("Plain words.\n")
    mail.add_alternative("<p>Words in <b>HTML</b>.</p><ul><li>rye</ul>", subtype="html")
    mail.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="bill.pdf")
    mail.add_attachment(inner)
    return mail.as_bytes()


MAIL = _mail()
MAIL_BLOCKS = [
    ("title", "Größe der Mühle"),
    (
        "paragraph",
        "From: Zoë <zoe@mill.example>\nTo: ann@mill.example\nDate: Mon, 04 Mar 2024 10:00:00 +0100",
    ),
    ("paragraph", "Words in HTML."),
    ("list", "• rye"),
    ("title", "Rye"),
    ("paragraph", "From: Bo <bo@mill.example>"),
    ("paragraph", "Two bags, please."),
    ("list", "• attached: bill.pdf (application/pdf, 8 bytes)"),
]
