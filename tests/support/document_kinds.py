"""Documents of known text of kinds that are rare: turned pages, a table across two columns, notes
over pages, filled forms, text from right to left, nested parts, damage, blank pages, long ledgers,
revisions, comments, documents within documents, elements without ends, mails whose lines go on,
totals below tables, labels that hang beside works."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from html import escape
from pathlib import Path
from typing import Any

from document_corpus import Author, Known, _build, _style, divided, pdf_lines
from document_files import SPACE, paragraph, write_docx
from pptx import Presentation
from pptx.util import Pt
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Spacer, Table

WIDTH, HEIGHT = A4
_FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
"""With letters of Hebrew, where Debian keeps it."""
_BODY = ParagraphStyle("text", fontName="Times-Roman", fontSize=10, leading=13)


def _draw(canvas: Canvas, text: str, x: float, top: float, width: float) -> float:
    """Draw a paragraph, and return where the next one begins."""
    made = Paragraph(text, _BODY)
    height = made.wrapOn(canvas, width, 2000)[1]
    made.drawOn(canvas, x, top - height)
    return float(top - height - 9)


def rotated(path: Path, author: Author) -> None:
    """Each page is turned another way, and a viewer shows all upright."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    for turn in author.chance.sample([0, 90, 180, 270], 4):
        canvas.setPageRotation(turn)
        canvas.saveState()
        wide, high = (HEIGHT, WIDTH) if turn % 180 else (WIDTH, HEIGHT)  # of the page as it is kept
        canvas.translate(*{0: (0, 0), 90: (wide, 0), 180: (wide, high), 270: (0, high)}[turn])
        canvas.rotate(turn)
        top = HEIGHT - 60
        for _ in range(5):
            top = _draw(canvas, author.text(25, 45), 60, top, WIDTH - 120)
        canvas.restoreState()
        canvas.showPage()
    canvas.save()


def across(path: Path, author: Author) -> None:
    """Two columns, a table over both, and two columns below it."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    grid = author.chance.random() < 0.5
    for _ in range(2):
        lowest = HEIGHT - 60
        for part in range(2):
            top, ends = lowest, []
            for column in range(2):
                place = top
                for _ in range(2):
                    place = _draw(canvas, author.text(30, 45), 50 + column * 260, place, 235)
                ends.append(place)
            lowest = min(ends) - 20
            if part == 0:
                rows = author.table(5, 5)
                author.rows += [" ".join(row) for row in rows]
                style = [("GRID", (0, 0), (-1, -1), 0.5, "black")] if grid else []
                table = Table(
                    rows, colWidths=[99] * 5, style=[*style, ("FONTSIZE", (0, 0), (-1, -1), 8)]
                )
                height = table.wrapOn(canvas, 500, 500)[1]
                table.drawOn(canvas, 50, lowest - height)
                lowest -= height + 30
        canvas.showPage()
    canvas.save()


def long_notes(path: Path, author: Author) -> None:
    """Footnotes that go on at the foot of the next page."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    small = ParagraphStyle("note", fontName="Times-Roman", fontSize=8, leading=10)
    for page in range(1, 4):
        top = HEIGHT - 60
        for number in range(5):
            mark = f"<super>{page}</super>" if number == 4 else ""
            top = _draw(canvas, author.text(35, 55) + mark, 60, top, 470)
        canvas.line(60, 150, 200, 150)
        rest = [author.text(14, 20)] if page > 1 else []
        foot = 146.0
        for text in [*rest, f"<super>{page}</super> {author.text(25, 40)}"]:
            note = Paragraph(text, small)
            foot -= note.wrapOn(canvas, 470, 100)[1] + 2
            note.drawOn(canvas, 60, foot)
        canvas.showPage()
    canvas.save()


def filled_forms(path: Path, author: Author) -> None:
    """Texts of several lines, choices and lists."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    for page in range(2):
        for number in range(4):
            top, name = 760 - 150 * number, f"f{page}{number}"
            canvas.setFont("Helvetica", 11)
            canvas.drawString(60, top, author.text(2) + ":")
            kind = (page * 4 + number) % 3
            if kind == 0:
                lines = "\n".join(author.text(3) for _ in range(3))
                canvas.acroForm.textfield(
                    name=name,
                    value=lines,
                    x=240,
                    y=top - 70,
                    width=250,
                    height=80,
                    fieldFlags="multiline",
                )
            elif kind == 1:
                value = author.text(1)
                canvas.acroForm.choice(
                    name=name,
                    value=value,
                    options=[value, "otherwise"],
                    x=240,
                    y=top - 8,
                    width=200,
                    height=22,
                )
            else:
                canvas.acroForm.textfield(
                    name=name, value=author.text(3), x=240, y=top - 8, width=250, height=22
                )
        canvas.showPage()
    canvas.save()


_HEBREW = "אבגדהוזחטיכלמנסעפצקרשת"


def _hebrew(author: Author, count: int) -> str:
    words = [
        "".join(author.chance.choices(_HEBREW, k=author.chance.randint(3, 7))) for _ in range(count)
    ]
    return author.keep(" ".join(words))


def leftward(path: Path, author: Author) -> None:
    """Hebrew, each letter where it stands: lines begin on the right."""
    pdfmetrics.registerFont(TTFont("DejaVu", os.fspath(_FONT)))
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    for _ in range(2):
        canvas.setFont("DejaVu", 11)
        for number in range(24):
            if number % 8 != 7:
                canvas.drawRightString(
                    WIDTH - 60, HEIGHT - 60 - 16 * number, _hebrew(author, 8)[::-1]
                )
        canvas.showPage()
    canvas.save()


def leftward_html(path: Path, author: Author) -> None:
    parts = [f"<h2>{_hebrew(author, 3)}</h2><p>{_hebrew(author, 30)}</p>" for _ in range(4)]
    path.write_text(f'<html dir="rtl"><body>{"".join(parts)}</body></html>', encoding="utf-8")


def leftward_docx(path: Path, author: Author) -> None:
    body = [
        paragraph(_hebrew(author, 3), "Heading1") + paragraph(_hebrew(author, 30)) for _ in range(4)
    ]
    write_docx(path, "".join(body))


def noted_slides(path: Path, author: Author) -> None:
    """Notes of several paragraphs, groups within groups, hidden and empty slides."""
    deck = Presentation()
    for number in range(5):
        slide = deck.slides.add_slide(deck.slide_layouts[6 if number == 3 else 5])
        if number == 3:
            continue
        slide.shapes.title.text = author.text(3, 5)
        group = slide.shapes.add_group_shape()
        for depth in range(2):
            box = group.shapes.add_textbox(Pt(60), Pt(150 + 90 * depth), Pt(560), Pt(60))
            box.text_frame.word_wrap = True
            box.text_frame.text = author.text(8, 14)
            group = group.shapes.add_group_shape()
        if number == 2:
            slide._element.set("show", "0")
        frame = slide.notes_slide.notes_text_frame
        frame.text = author.text(8, 14)
        for _ in range(2):
            frame.add_paragraph().text = author.text(8, 14)
    deck.save(os.fspath(path))


def nested_mails(path: Path, author: Author) -> None:
    """HTML with its image in a mixed part, a message within, and texts that are attached in other
    charsets and codings."""
    mail = EmailMessage()
    mail["Subject"], mail["From"] = author.text(4), "ann@mill.example"
    mail.set_content("Please look at the other form.")
    body = f"<p>{escape(author.text(30))}</p><p>{escape(author.text(20))}<img src='cid:a'></p>"
    mail.add_alternative(body, subtype="html", charset="iso-8859-1", cte="quoted-printable")
    form: Any = mail.get_payload()[1]
    form.add_related(b"x" * 50, "image", "png", cid="<a>")
    mail.make_mixed()
    part = EmailMessage()
    part.set_content(author.text(20), charset="utf-16", cte="base64")
    mail.attach(part)
    inner = EmailMessage()
    inner["Subject"] = author.text(3)
    inner.set_content(author.text(25), cte="quoted-printable")
    deeper = EmailMessage()
    deeper["Subject"] = author.text(3)
    deeper.set_content(author.text(25), cte="base64")
    inner.add_attachment(deeper)
    mail.add_attachment(inner)
    path.write_bytes(mail.as_bytes())


def navigated_books(path: Path, author: Author) -> None:
    """A list of chapters that is a chapter itself, folders, and chapters in another order than
    that of their files."""
    chapters = [(f"text/c{n}.xhtml", author.text(3), author.text(60)) for n in range(5)]
    links = "".join(f'<li><a href="{file}">{n}</a></li>' for n, (file, _, _) in enumerate(chapters))
    nav = f'<nav xmlns:epub="x" epub:type="toc"><ol>{links}</ol></nav>'
    items = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    order = '<itemref idref="nav"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        container = '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles>'
        space = "urn:oasis:names:tc:opendocument:xmlns:container"
        archive.writestr(
            "META-INF/container.xml", f'<container xmlns="{space}">{container}</container>'
        )
        for number, (file, title, text) in enumerate(chapters):
            html = f"<html xmlns='http://www.w3.org/1999/xhtml'><body><h1>{title}</h1><p>{text}</p></body></html>"
            archive.writestr(f"OEBPS/{file}", html)
            order += f'<itemref idref="i{number}"/>'
        for number, (file, _, _) in reversed([*enumerate(chapters)]):
            items += f'<item id="i{number}" href="{file}" media-type="application/xhtml+xml"/>'
        archive.writestr("OEBPS/nav.xhtml", f"<html><body>{nav}</body></html>")
        package = f"<manifest>{items}</manifest><spine>{order}</spine>"
        archive.writestr(
            "OEBPS/book.opf", f'<package xmlns="http://www.idpf.org/2007/opf">{package}</package>'
        )


def locked(path: Path, author: Author) -> None:
    """A password for what one may do, and none to read it."""
    lock = StandardEncryption("", ownerPassword="owner", canPrint=0, canCopy=0, strength=128)
    canvas = Canvas(os.fspath(path), A4, invariant=True, encrypt=lock)
    for _ in range(2):
        top = HEIGHT - 60
        for _ in range(6):
            top = _draw(canvas, author.text(30, 50), 60, top, 470)
        canvas.showPage()
    canvas.save()


def damaged(path: Path, author: Author) -> None:
    """With a wrong place of the list of its objects, and something before its beginning."""
    _build(
        path,
        [p for _ in range(8) for p in (Paragraph(author.text(40), _style(author)), Spacer(1, 8))],
    )
    data = path.read_bytes()
    at = data.rindex(b"startxref")
    path.write_bytes(b"\n\n" * author.chance.randrange(2) + data[:at] + b"startxref\n17\n%%EOF\n")


def blanks(path: Path, author: Author) -> None:
    """Pages without text between others."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    for page in range(8):
        if page in (0, 3, 4, 7):
            canvas.rect(60, 60, 200, 200)
        else:
            top = HEIGHT - 60
            for _ in range(5):
                top = _draw(canvas, author.text(25, 50), 60, top, 470)
        canvas.showPage()
    canvas.save()


def _entries(author: Author, count: int) -> Iterator[tuple[str, ...]]:
    for number in range(count):
        day = f"2024-{1 + number // 840:02}-{1 + number // 30 % 28:02}"
        amount = f"{author.chance.uniform(1, 99999):,.2f}"
        yield (
            day,
            f"B{number:05}",
            author.chance.choice(("rent", "flour", "repair of roof")),
            amount,
        )


def long_ledgers(path: Path, author: Author) -> None:
    """10,000 rows, with the names of the columns on each page."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    ruled, places = author.chance.random() < 0.5, (60, 150, 240, 460)
    step = author.chance.choice([11, 13])
    each = 720 // step - 2
    entries = [*_entries(author, 10_000)]
    for start in range(0, len(entries), each):
        canvas.setFont("Helvetica-Bold", 8)
        for x, name in zip(places, ("Date", "Booking", "Purpose", "Amount"), strict=True):
            canvas.drawString(x, 790, name)
        if ruled:
            canvas.line(60, 787, 530, 787)
        canvas.setFont("Helvetica", 8)
        for number, entry in enumerate(entries[start : start + each]):
            for x, value in zip(places, entry, strict=True):
                canvas.drawString(x, 775 - step * number, value)
        canvas.drawString(280, 25, f"Page {start // each + 1}")
        canvas.showPage()
    canvas.save()
    for entry in entries:
        author.rows.append(author.keep(" ".join(entry)))


def long_pages(path: Path, author: Author) -> None:
    """10,000 rows of a table of HTML, whose head comes again after each hundred."""
    head, found = "<tr><th>Date<th>Booking<th>Purpose<th>Amount", []
    for number, entry in enumerate(_entries(author, 10_000)):
        if number % 100 == 0:
            found.append(head)
            author.keep("Date Booking Purpose Amount")
        author.rows.append(author.keep(" ".join(entry)))
        found.append(f"<tr>{''.join(f'<td>{cell}' for cell in entry)}")
    path.write_text(f"<table>{''.join(found)}</table>", encoding="utf-8")


def _run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def revised(path: Path, author: Author) -> None:
    """What was inserted, deleted and moved, with comments, text boxes and fields of old forms."""
    comments, body = "", ""
    for number in range(4):
        first, new, last = author.text(6), author.text(3), author.text(6)
        body += (
            f"<w:p>{_run(first)}<w:del><w:r><w:delText>gone</w:delText></w:r>{_run('gone')}</w:del>"
            f"{_run(' ')}<w:ins>{_run(new)}</w:ins><w:r><w:tab/></w:r>{_run(last)}"
            f'<w:commentRangeEnd w:id="{number}"/><w:r><w:commentReference w:id="{number}"/></w:r></w:p>'
        )
        comments += f'<w:comment w:id="{number}" w:author="{author.text(1)}">{paragraph(author.text(8))}</w:comment>'
        half, rest = author.text(5), author.text(5)
        body += (
            f"<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>{_run(half)}<w:r><w:ptab/></w:r></w:p>"
            f"<w:p>{_run(rest)}</w:p>"
        )
        box = f"<w:txbxContent>{paragraph(author.text(7))}</w:txbxContent>"
        body += (
            '<w:p><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/'
            f'markup-compatibility/2006"><mc:Choice Requires="wps"><w:drawing>{box}</w:drawing>'
            f"</mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent>"
            f"</w:r>{_run(author.text(5))}</w:p>"
        )
        label, chosen = author.text(2), author.text(1)
        body += (
            f'<w:p>{_run(label + " ")}<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList>'
            f'<w:result w:val="1"/><w:listEntry w:val="other"/><w:listEntry w:val="{chosen}"/>'
            '</w:ddList></w:ffData></w:fldChar></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
        )
        sum_, part, root = author.text(1), author.text(1), author.text(1)
        m = "http://schemas.openxmlformats.org/officeDocument/2006/math"
        body += (
            f'<w:p xmlns:m="{m}">'
            f"<m:oMath><m:f><m:num><m:r><m:t>{sum_}</m:t></m:r></m:num><m:den><m:r><m:t>{part}"
            f"</m:t></m:r></m:den></m:f><m:rad><m:e><m:r><m:t>{root}</m:t></m:r></m:e></m:rad>"
            "</m:oMath></w:p>"
        )
    write_docx(path, body, comments=f'<w:comments xmlns:w="{SPACE}">{comments}</w:comments>')


def composed(path: Path, author: Author) -> None:
    """A main part of another name, with pages of HTML and another document in it, and a diagram."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    links = ""

    def link(name: str, kind: str, target: str) -> None:
        nonlocal links
        links += f'<Relationship Id="{name}" Type="{office}/{kind}" Target="{target}"/>'

    body = paragraph(author.text(20))
    page = f"<h1>{author.text(3)}</h1><p>{author.text(20)}</p>"
    body += '<w:altChunk r:id="a"/>' + paragraph(author.text(10))
    inner = path.with_name("inner.docx")
    write_docx(inner, paragraph(author.text(15)))
    body += '<w:altChunk r:id="b"/>' + paragraph(author.text(10))
    points = "".join(
        f"<dgm:pt><dgm:t><a:p><a:r><a:t>{author.text(3)}</a:t></a:r></a:p></dgm:t></dgm:pt>"
        for _ in range(3)
    )
    body += (
        f'<w:p><w:r><w:drawing><dgm:relIds xmlns:dgm="{drawing}/diagram" r:dm="c"/></w:drawing>'
        f"</w:r></w:p>{paragraph(author.text(10))}"
    )
    link("a", "aFChunk", "a.html")
    link("b", "aFChunk", "/word/b.docx")
    link("c", "diagramData", "diagrams/data1.xml")
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    parts = {
        "_rels/.rels": f'<Relationships xmlns="{space}"><Relationship Id="r" '
        f'Type="{office}/officeDocument" Target="/word/document2.xml"/></Relationships>',
        "word/_rels/document2.xml.rels": f'<Relationships xmlns="{space}">{links}</Relationships>',
        "word/document2.xml": f'<w:document xmlns:w="{SPACE}" xmlns:r="{office}"><w:body>{body}'
        "</w:body></w:document>",
        "word/a.html": page,
        "word/diagrams/data1.xml": f'<dgm:dataModel xmlns:dgm="{drawing}/diagram" '
        f'xmlns:a="{drawing}/main"><dgm:ptLst>{points}</dgm:ptLst></dgm:dataModel>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.write(inner, "word/b.docx")
    inner.unlink()


def loose_html(path: Path, author: Author) -> None:
    """Items, cells and paragraphs without ends, tables in tables, formulas and entities."""
    parts = []
    for _ in range(4):
        items = "".join(
            f"<li>{author.text(3)}<ul><li>{author.text(2)}<li>{author.text(2)}</ul>"
            for _ in range(2)
        )
        parts.append(f"<ul>{items}</ul><p>{author.text(10)}")
        first, inner, last = author.table(2, 2), author.table(2, 2), author.text(2)
        rows = [
            "".join(f"<tr>{''.join(map('<td>{}'.format, row))}" for row in t)
            for t in (first, inner)
        ]
        parts.append(f"<table>{rows[0]}<tr><td><table>{rows[1]}</table>{last}</table>")
        left, right = author.text(1), author.text(1)
        parts.append(
            f"<p>{author.keep('AT&T')}".replace("&", "&amp;")
            + f" <math><semantics><mrow><mi>{left}</mi><mo>=</mo><mi>{right}</mi></mrow>"
            "<annotation>gone</annotation></semantics></math>"
        )
    path.write_text("".join(parts), encoding="utf-8")


def loose_markdown(path: Path, author: Author) -> None:
    """Front matter, breaks within cells, and rows of tables with more cells than their head."""
    parts = ["---\ntitle: gone\n---\n"]
    for _ in range(5):
        head = " | ".join(author.text(1) for _ in range(2))
        rows = [
            f"| {author.text(1)}<br>{author.text(1)} | {author.text(2)} | {author.text(2)} |"
            for _ in range(3)
        ]
        parts.append(
            f"| {head} |\n|---|:-:|\n"
            + "\n".join(rows)
            + f"\n\n{author.text(12)}<BR/>{author.text(2)}\n"
        )
    path.write_text("\ufeff" + "\n".join(parts), encoding="utf-8")


def flowed_mails(path: Path, author: Author) -> None:
    """Lines that go on, some within words, a report on a delivery, and a byte that is damaged."""
    subject, words = author.text(3), author.text(40)
    cut = (words[at : at + 50] for at in range(0, len(words), 50))
    lines = [" " * line.startswith(" ") + line + " " for line in cut]
    damaged = f"{author.keep('größe 日本 übel')} {author.text(8)}".encode()
    status = f"Diagnostic: {author.keep('smtp')} {author.text(4)}"
    head = (
        f"Subject: {subject}\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: "
        "text/plain; charset=utf-8; format=flowed; delsp=yes\nContent-Transfer-Encoding: 8bit\n\n"
        + "\n".join(lines)[:-1]
        + "\n--b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n"
    )
    foot = f"\n--b\nContent-Type: message/delivery-status\n\n{status}\n\n--b--\n"
    path.write_bytes(b"\xef\xbb\xbf" + head.encode() + damaged + b" \xff" + foot.encode())


def annotated(path: Path, author: Author) -> None:
    """Texts that somebody wrote over a page, and comments, in two fonts with soft hyphens."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    for page in range(3):
        for number in range(4):
            top = 760 - 90 * number
            canvas.setFont(("Times-Roman", "Courier")[number % 2], 11)
            before = author.text(5)
            word = author.keep(f"provisional{page}{number}")
            canvas.drawString(60, top, f"{before} {word[:5]}\u00ad")
            canvas.drawString(60, top - 13, f"{word[5:]} {author.text(4)}")
            box = [60, top - 50, 400, top - 36]
            canvas.freeTextAnnotation(author.text(4), None, box)
        canvas.textAnnotation(author.text(6), [500, 700, 520, 720])
        canvas.showPage()
    canvas.save()


def over_pages(path: Path, author: Author) -> None:
    """Two columns whose ends, as those of pages, divide words."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    lines = [*divided(author.text(900), 44)]
    for start in range(0, len(lines), 50):
        left = 50 if start // 50 % 2 == 0 else 310
        pdf_lines(canvas, lines[start : start + 50], left, 780, size=9)
        if left > 50:
            canvas.showPage()
    canvas.save()


def noted_markdown(path: Path, author: Author) -> None:
    """Notes, some of one word, and tables within lists."""
    parts, notes = [], []
    for number in range(6):
        text, count = author.text(15), author.chance.choice([1, 8])
        parts.append(f"{text}[^{number}]")
        notes.append(f"[^{number}]: {author.text(count)}.")
        item, cells, rest = author.text(4), author.table(2, 2), author.text(4)
        rows = "\n".join(f"   | {' | '.join(row)} |" for row in [cells[0], ["---"] * 2, cells[1]])
        parts.append(f"1. {item}\n\n{rows}\n\n2. {rest}\n\n---")
    path.write_text("\n\n".join([*parts, *notes]), encoding="utf-8")


def invoices(path: Path, author: Author) -> None:
    """Totals below the last columns of a table."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    canvas.setFont("Helvetica-Bold", 16)
    canvas.drawString(50, 790, author.text(2))
    canvas.setFont("Helvetica", 9)
    chance, top = author.chance, 760

    def amount() -> str:
        return f"{chance.uniform(1, 9999):,.2f}"

    rows = [("Pos", "Item", "Qty", "Price")]
    for number in range(1, chance.randint(8, 20)):
        what = chance.choice(["flour", "rye", "mill stone", "sack"])
        rows.append((str(number), f"{what} {number * 7}", str(chance.randint(1, 99)), amount()))
    for position, item, quantity, price in rows:
        canvas.drawString(50, top, position)
        canvas.drawString(90, top, item)
        canvas.drawRightString(400, top, quantity)
        canvas.drawRightString(520, top, price)
        author.rows.append(author.keep(f"{position} {item} {quantity} {price}"))
        top -= 15
    canvas.line(300, top + 10, 520, top + 10)
    for name in ("Net", "VAT", "Total"):
        price = amount()
        canvas.drawString(330, top - 5, name)
        canvas.drawRightString(520, top - 5, price)
        author.rows.append(author.keep(f"{name} {price}"))
        top -= 15
    _draw(canvas, author.text(30, 50), 50, top - 20, 480)
    canvas.save()


def works(path: Path, author: Author) -> None:
    """A list of references, whose labels hang beside them."""
    canvas = Canvas(os.fspath(path), A4, invariant=True)
    top, named = 800.0, author.chance.random() < 0.5
    for number in range(1, 19):
        label = author.keep(f"Mil{number:02}" if named else str(number))
        canvas.setFont("Times-Roman", 10)
        canvas.drawString(50, top - 9, f"[{label}]")
        top = _draw(canvas, author.text(15, 30), 90, top, 450)
    canvas.save()


KINDS: dict[Callable[[Path, Author], None], tuple[str, int]] = {
    rotated: ("pdf", 3),
    across: ("pdf", 3),
    long_notes: ("pdf", 3),
    filled_forms: ("pdf", 2),
    leftward: ("pdf", 2 if _FONT.exists() else 0),
    leftward_html: ("html", 1),
    leftward_docx: ("docx", 1),
    noted_slides: ("pptx", 2),
    nested_mails: ("eml", 2),
    navigated_books: ("epub", 2),
    locked: ("pdf", 2),
    damaged: ("pdf", 2),
    blanks: ("pdf", 2),
    long_ledgers: ("pdf", 2),
    long_pages: ("html", 1),
    revised: ("docx", 3),
    composed: ("docx", 2),
    loose_html: ("html", 3),
    loose_markdown: ("md", 3),
    flowed_mails: ("eml", 2),
    annotated: ("pdf", 2),
    over_pages: ("pdf", 3),
    noted_markdown: ("md", 3),
    invoices: ("pdf", 3),
    works: ("pdf", 2),
}
"""The ending, and the number of files, of each kind: 56 together."""


COMMENTED = (revised, annotated)
"""Kinds with comments, which no chunk has."""


def make_kind(make: Callable[[Path, Author], None], folder: Path, seed: int = 0) -> list[Known]:
    """The files of one kind, with their text."""
    found = []
    ending, count = KINDS[make]
    for number in range(count):
        author = Author(make.__name__, 1000 * seed + number)
        path = folder / f"{make.__name__} {number}.{ending}"
        make(path, author)
        found.append(Known(path, author.words, author.rows))
    return found
