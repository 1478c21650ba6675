"""Damaged and hostile documents: 200 files by name."""

from __future__ import annotations

import io
import random
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from document_files import (
    HTML,
    MAIL,
    MARKDOWN,
    SPACE,
    changed_archive,
    paragraph,
    write_docx,
    write_epub,
    write_pptx,
)
from document_pages import make

_ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))


def hostile_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The names and contents; ``folder`` is for scratch."""
    yield from small_files(folder)
    yield "bomb.docx", _bomb()
    yield "bomb.pptx", changed_archive(folder / "good.pptx", {"ppt/bomb.xml": bytes(300 << 20)})
    yield "bomb.epub", changed_archive(folder / "good.epub", {"a.xhtml": bytes(300 << 20)})
    yield "deep.html", b"<div>" * 300_000
    yield "content.pdf", _pdf(b"/Kids [3 0 R] /Count 1", zlib.compress(b"q " * 30_000_000))
    yield "text.pdf", _pdf(b"/Kids [3 0 R] /Count 1", zlib.compress(b"BT (a) Tj ET " * 2_000_000))


def small_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Those that are made at once."""
    chance = random.Random(7)
    good = folder / "good.docx"
    write_docx(good)
    pdf, docx = make(folder, "tables", 1, 1).path.read_bytes(), good.read_bytes()
    for number in range(30):
        yield f"cut{number}.pdf", pdf[: chance.randrange(20, len(pdf))]
    for number in range(60):
        yield f"flipped{number}.pdf", _flipped(pdf, chance)
    for number in range(15):
        yield f"cut{number}.docx", docx[: chance.randrange(len(docx))]
    for number in range(30):
        yield f"flipped{number}.docx", _flipped(docx, chance)
    for number in range(15):
        yield f"noise{number}.html", _flipped(HTML.encode(), chance) + chance.randbytes(300)
    for number in range(10):
        yield f"noise{number}.md", _flipped(MARKDOWN.encode(), chance) + chance.randbytes(300)
    for number, ending in enumerate(("pdf", "docx", "html", "md", "txt")):
        yield f"empty.{ending}", b""
        yield f"zeros.{ending}", bytes(5000)
        yield f"random{number}.{ending}", chance.randbytes(5000)
    yield "docx.pdf", docx
    yield "pdf.docx", pdf
    yield "pdf.txt", pdf
    yield "html.pdf", HTML.encode()
    yield "html.docx", HTML.encode()
    yield "zip.docx", _archive({"readme.txt": b"no document"})
    yield "styles.docx", _archive({"word/document.xml": b"<a/>", "word/styles.xml": b"<" * 1000})
    yield "entities.docx", _archive({"word/document.xml": _exploding()})
    yield "external.docx", _archive({"word/document.xml": _external()})
    yield "deep.docx", _archive({"word/document.xml": b"<a>" * 200_000})
    cells = f"<w:tbl xmlns:w='{SPACE}'><w:tr><w:tc>" * 120 + paragraph("x")
    yield "tables.docx", _archive({"word/document.xml": cells.encode()})
    yield "lists.html", b"<ul><li>" * 100_000 + b"x"
    yield "tables.html", b"<table><tr><td>" * 20_000 + b"x"
    yield "comment.html", b"<!--" * 50_000
    yield "tags.html", b"<a b=" * 50_000
    yield "entities.html", b"&#99999999999;&amp" * 50_000
    yield "quotes.md", b">" * 20_000 + b"x"
    yield "brackets.md", b"[" * 5_000 + b"]" * 5_000
    yield "stars.md", b"*a_" * 5_000
    yield "ticks.md", b"".join(b"`" * n + b" " for n in range(300))
    yield "count.pdf", _pdf(b"/Kids [3 0 R] /Count 2000000000")
    yield "many.pdf", _pdf(b"/Kids [3 0 R] /Count 99999")
    yield "circle.pdf", _pdf(b"/Kids [2 0 R 2 0 R] /Count 50")
    yield "size.pdf", _pdf(b"/Kids [3 0 R] /Count 1", box=b"0 0 1e30 1e30")
    yield "form.pdf", _pdf(b"/Kids [3 0 R] /Count 1", zlib.compress(b"/F Do " * 1000), form=True)
    yield from _slides_books_and_mails(chance, folder)
    yield "name\\..\\\n'\".txt", b"A name."


def _slides_books_and_mails(chance: random.Random, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Damaged and hostile files of these three kinds."""
    write_pptx(folder / "good.pptx")
    write_epub(folder / "good.epub", {"a.xhtml": "<p>One.</p>", "b.xhtml": "<p>Two.</p>"})
    for ending in ("pptx", "epub", "eml"):
        good = MAIL if ending == "eml" else (folder / f"good.{ending}").read_bytes()
        for number in range(8):
            yield f"cut{number}.{ending}", good[: chance.randrange(len(good))]
        for number in range(8):
            yield f"flipped{number}.{ending}", _flipped(good, chance)
        yield f"empty.{ending}", b""
        yield f"zeros.{ending}", bytes(5000)
        yield f"random.{ending}", chance.randbytes(5000)
    for kind, hostile in (("entities", _exploding()), ("external", _external())):
        slide = "ppt/slides/slide1.xml"
        yield f"{kind}.pptx", changed_archive(folder / "good.pptx", {slide: hostile})
        yield f"{kind}.epub", changed_archive(folder / "good.epub", {"book.opf": hostile})
    many = [(f"{number}.xhtml", "<p>x</p>") for number in range(1000)]
    write_epub(folder / "many.epub", dict(many))
    yield "many.epub", (folder / "many.epub").read_bytes()
    yield (
        "climbs.epub",
        changed_archive(
            folder / "good.epub",
            {"book.opf": _CLIMBS},
        ),
    )
    nested = b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n"
    yield "deep.eml", b"Subject: x\n" + b"".join(nested % (n, n) for n in range(3000))
    yield "headers.eml", b"Subject: x\n" + b"X: y\n" * 50_000 + b"\ntext"
    yield "words.eml", b"Subject: " + b"=?utf-8?q?=C3=A4?= " * 1_000 + b"\n\ntext"
    yield "base64.eml", b"Subject: x\nContent-Transfer-Encoding: base64\n\n" + b"!" * 2_000_000


_CLIMBS = b"""<package xmlns="http://www.idpf.org/2007/opf"><manifest>
<item id="a" href="../../../../etc/passwd"/><item id="b" href="/etc/passwd"/>
<item id="c" href="file:///etc/passwd"/></manifest>
<spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/></spine></package>"""


def _flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice([1, 5, 30, 200])):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _archive(parts: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return held.getvalue()


def _bomb() -> bytes:
    """An archive of 400 KB whose document has 400 MB."""
    held = io.BytesIO()
    with (
        zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        part.write(f"<w:document xmlns:w='{SPACE}'><w:p><w:r><w:t>".encode())
        for _ in range(100):
            part.write(b" " * (4 << 20))
    return held.getvalue()


def _exploding() -> bytes:
    return f'<!DOCTYPE a [<!ENTITY a0 "ha">{_ENTITIES}]><a>&a11;</a>'.encode()


def _external() -> bytes:
    return b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'


def _pdf(
    pages: bytes, content: bytes = b"", box: bytes = b"0 0 600 800", *, form: bool = False
) -> bytes:
    """A PDF of one page; ``content`` is compressed. ``form``: a form that draws itself."""
    resources = b"/Resources << /XObject << /F 5 0 R >> >>" if form else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages " + pages + b" >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox ["
        + box
        + b"] /Contents 4 0 R "
        + resources
        + b">>",
        b"<< /Length %d /Filter /FlateDecode >> stream\n%b\nendstream" % (len(content), content),
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] "
        + resources
        + b" /Length 6 >> stream\n/F Do \nendstream",
    ]
    body, places = b"%PDF-1.7\n", []
    for number, held in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj %b endobj\n" % (number, held)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Root 1 0 R /Size 6 >> startxref %d %%%%EOF" % len(body)
    return body + b"xref\n0 6\n0000000000 65535 f \n" + table + end
