"""Reads one file: its ending and its first bytes say how."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blendfusion.services.documents.blocks import Ask, Block, Unreadable

if TYPE_CHECKING:
    from blendfusion.services.documents.page_layout import Page

ENDINGS = {
    ".pdf": "PDF",
    ".docx": "DOCX",
    ".docm": "DOCX",
    ".pptx": "PPTX",
    ".pptm": "PPTX",
    ".epub": "EPUB",
    ".eml": "e-mail",
    ".html": "HTML",
    ".htm": "HTML",
    ".xhtml": "HTML",
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".txt": "text",
    ".text": "text",
}
IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
"""Pages as images, which are read with ``ocr``."""
MOST_BYTES = 1 << 30
MOST_TEXT_BYTES = 64 << 20
_ARCHIVES = ("DOCX", "PPTX", "EPUB")
_ZIP = b"PK\x03\x04"
_HEAD = 1024
_TEXT_HEAD = 4096
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Pages = Iterator[tuple[int | None, "list[Block] | str"]]
"""The number of a page (None: the file has none) and its blocks, or why it cannot be read."""


def pages(path: str, ocr: bool, ask: Ask) -> Pages:
    """The pages of a file. Raises Unreadable for a file that is too large, or that cannot be read
    as the kind that its name tells."""
    ending = Path(path).suffix.lower()
    kind = ENDINGS.get(ending)
    try:
        size = os.stat(path).st_size
        if size > MOST_BYTES:
            raise Unreadable(f"it is larger than {MOST_BYTES >> 20:,} MB")
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError as problem:
        raise Unreadable(f"it cannot be opened: {problem.strerror or problem}") from None
    if not head:
        raise Unreadable("it is empty")
    if b"%PDF-" in head:
        yield from _pdf(path, ocr, ask)
    elif ending in IMAGES and ocr:
        yield from _image(path)
    elif ending in IMAGES:
        raise Unreadable("it is an image, whose text is read with ocr => true")
    elif head.startswith(_ZIP):
        yield from _archive(path, ask)
    elif kind == "PDF":
        raise Unreadable("it is no PDF: '%PDF-' is not in its first bytes")
    elif kind in _ARCHIVES:
        raise Unreadable(f"it is no {kind} file, which would be a ZIP archive")
    elif kind is None:
        raise Unreadable(f"its ending is none of {', '.join(ENDINGS)}")
    elif size > MOST_TEXT_BYTES:
        raise Unreadable(f"it is a text larger than {MOST_TEXT_BYTES >> 20} MB")
    elif kind == "e-mail":
        from blendfusion.services.documents.mail import mail_pages

        yield from mail_pages(Path(path).read_bytes())
    else:
        yield from _text(Path(path).read_bytes(), kind, ask)


def _archive(path: str, ask: Ask) -> Pages:
    """The pages of an archive, whose parts say its kind."""
    from blendfusion.services.documents.archives import open_archive
    from blendfusion.services.documents.docx import docx_pages, main_part

    with open_archive(path) as archive:
        names = set(archive.namelist())
        is_docx = main_part(archive) is not None
    if is_docx:
        yield from docx_pages(path)
    elif "ppt/presentation.xml" in names:
        from blendfusion.services.documents.slides import slides

        yield from slides(path, ask)
    elif "META-INF/container.xml" in names:
        from blendfusion.services.documents.epub import chapters

        yield from chapters(path, ask)
    else:
        raise Unreadable(f"it is a ZIP archive, and no {', '.join(_ARCHIVES)} file")


def _pdf(path: str, ocr: bool, ask: Ask) -> Pages:
    from blendfusion.services.documents.pdf import PdfFile

    try:
        import pypdfium2  # noqa: F401 - to say what is missing
    except ImportError:
        raise Unreadable("PDF needs pypdfium2: pip install 'blendfusion[documents]'") from None
    file = PdfFile(path, _recognise if ocr else None)
    yield from file.blocks(ask(file.count))


def _recognise(page: Any, width: float, height: float) -> Page:
    from blendfusion.services.documents.ocr import recognise

    return recognise(page, width, height)


def _image(path: str) -> Pages:
    from blendfusion.services.documents.ocr import image_pages

    for number, page in enumerate(image_pages(path), 1):
        if isinstance(page, str):
            yield number, page
            continue
        yield number, page.blocks(number, {})
        if page.doubt:
            yield number, page.doubt


def _text(data: bytes, kind: str, ask: Ask) -> Pages:
    from blendfusion.services.documents.html import html_blocks
    from blendfusion.services.documents.markdown import markdown_blocks
    from blendfusion.services.documents.plain import text_pages

    if b"\0" in data[:_TEXT_HEAD] and not data.startswith(_UTF_16):
        raise Unreadable("it is no text: it has zero bytes")
    if kind == "HTML":
        yield None, html_blocks(data)
    elif kind == "Markdown":
        yield None, markdown_blocks(data)
    else:
        found = text_pages(data)
        if len(found) == 1:
            yield None, found[0]
            return
        wanted = ask(len(found))
        for number, blocks in enumerate(found, 1):
            if wanted is None or number in wanted:
                yield number, blocks
