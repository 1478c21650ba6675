"""PDF by pypdfium2 (extra ``documents``): words with their places, page by page."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from blendfusion.services.documents.blocks import Block, Box, Unreadable
from blendfusion.services.documents.divided_words import first_of, last_of, move_rest
from blendfusion.services.documents.form_fields import added_texts, join_labels
from blendfusion.services.documents.page_layout import Page
from blendfusion.services.documents.pdf_words import UNKNOWN, PageWords, Place
from blendfusion.services.documents.ruled_tables import sides

MOST_PAGES = 100_000
_MOST_CHARACTERS = 400_000
_MOST_OBJECTS = 20_000
_WIDTH = 0.01
"""In points: narrower lines of text are left out by PDFium."""
_SLANT = 0.01
_DEPTH = 8
"""How deep what is drawn may be nested."""
_NEIGHBOURS = (-2, -1, 1, 2)
"""The pages around a page whose edges tell its header: also those of the same side of a sheet."""

Recognised = Callable[[Any, float, float], Page]
"""Recognises the text of a page as an image, given PDFium's page and its size in points."""


class PdfFile:
    """An open PDF. Pages are read when their blocks are asked for, each with its neighbours."""

    def __init__(self, path: str, recognised: Recognised | None = None) -> None:
        import pypdfium2

        self._raw: Any = pypdfium2.raw
        self._recognised = recognised
        self._pages: dict[int, Page] = {}
        self._blocks: dict[int, list[Block]] = {}
        self._known: dict[int, set[str]] = {}
        """The words with a hyphen of each page that has blocks."""
        try:
            self._document = pypdfium2.PdfDocument(path)
        except pypdfium2.PdfiumError as problem:
            raise Unreadable(_reason(str(problem))) from None
        self.count = len(self._document)
        self._form: Any = None
        if self._document.get_formtype() in (self._raw.FORMTYPE_ACRO_FORM, 3):  # or beside XFA
            self._document.init_forms()
            self._form = self._document.formenv
        if self.count > MOST_PAGES:
            raise Unreadable(f"it states {self.count:,} pages; at most {MOST_PAGES:,} are read")

    def blocks(self, wanted: Collection[int] | None) -> Iterator[tuple[int, list[Block] | str]]:
        """The blocks of the pages ``wanted`` (None: all; from 1), or why one cannot be read."""
        for number in range(1, self.count + 1):
            if wanted is not None and number not in wanted:
                continue
            try:
                page = self._page(number)
            except Unreadable as problem:
                yield number, str(problem)
                continue
            yield number, self._whole_words(number)
            if page.doubt:
                yield number, page.doubt

    def _whole_words(self, number: int) -> list[Block]:
        """The blocks of a page, with the words that its ends divide where they begin."""
        found = list(self._blocks_of(number))
        first, last = first_of(found), last_of(found)
        if first is not None and number > 1:
            before = self._blocks_of(number - 1)
            at = last_of(before)
            if at is not None:
                found[first] = move_rest(before[at], found[first], self._known[number - 1])[1]
        if last is not None and number < self.count:
            after = self._blocks_of(number + 1)
            at = first_of(after)
            if at is not None:
                found[last] = move_rest(found[last], after[at], self._known[number])[0]
        return [block for block in found if block.text]

    def _blocks_of(self, number: int) -> list[Block]:
        """The blocks of one page by itself; none where it cannot be read."""
        if number not in self._blocks:
            for old in [n for n in self._blocks if n < number - 1]:
                del self._blocks[old], self._known[old]
            try:
                page = self._page(number)
            except Unreadable:
                self._blocks[number], self._known[number] = [], set()
            else:
                around = self._around(number)
                self._blocks[number] = page.blocks(number, around)
                self._known[number] = page.compounds
        return self._blocks[number]

    def _around(self, number: int) -> dict[int, Page]:
        found = {}
        for other in (number + step for step in _NEIGHBOURS):
            if 1 <= other <= self.count:
                with suppress(Unreadable):
                    found[other] = self._page(other)
        for old in [n for n in self._pages if n < number - 2]:
            del self._pages[old]
        return found

    def _page(self, number: int) -> Page:
        if number not in self._pages:
            self._pages[number] = self._read(number)
        return self._pages[number]

    def _read(self, number: int) -> Page:
        import pypdfium2

        try:
            page = self._document[number - 1]
        except pypdfium2.PdfiumError:
            raise Unreadable(f"page {number} cannot be read") from None
        try:
            width, height = page.get_size()
            if not (0 < width < 1e5 and 0 < height < 1e5):
                raise Unreadable(f"page {number} has no sensible size")
            found = Page(width, height)
            place = self._places(page)
            self._widen(page)
            self._read_words(page, found, place)
            text = found.words.get(0, [])
            form = None if self._form is None else self._form.raw
            fields, texts, found.comments = added_texts(self._raw, form, page, place)
            if fields or texts:
                turn = found.turn
                found.words[turn] = [*found.words.get(turn, []), *fields, *texts]
            if self._recognised is not None and not _has_text(found):
                return self._recognised(page, width, height)
            if found.unmapped:
                found.doubt = (
                    f"the file does not tell {found.unmapped:,} of the {found.letters:,} letters of page"
                    f" {number}: they are {UNKNOWN}, or may be wrong. With ocr => true, a page of which"
                    " most are unmapped is read as an image"
                )
            self._read_rules(page, found, place)
            if fields and not found.turn:
                join_labels(fields, text, found.rules)
            return found
        finally:
            page.close()

    def _places(self, page: Any) -> Place:
        """From a box of the page's own space (from below) to one of the page that is shown."""
        around = self._raw.FS_RECTF()
        self._raw.FPDF_GetPageBoundingBox(page, around)
        low, high = around.bottom, around.top
        start, end = around.left, around.right
        turn = max(self._raw.FPDFPage_GetRotation(page), 0)

        def place(left: float, bottom: float, right: float, top: float) -> Box:
            if not turn:
                return left - start, high - top, right - start, high - bottom
            if turn == 1:
                return bottom - low, left - start, top - low, right - start
            if turn == 2:
                return end - right, bottom - low, end - left, top - low
            return high - top, end - right, high - bottom, end - left

        self._turn = turn
        return place

    def _widen(self, page: Any) -> None:
        """Make the lines of text wider that have no width, which PDFium would leave out: those that
        run down the page in a font that is neither in the file nor on this machine."""
        raw = self._raw
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        for shape in islice(self._shapes(page), _MOST_OBJECTS):
            if (
                raw.FPDFPageObj_GetType(shape) == raw.FPDF_PAGEOBJ_TEXT
                and raw.FPDFPageObj_GetBounds(shape, left, bottom, right, top)
                and right.value - left.value < _WIDTH <= top.value - bottom.value
            ):
                middle = (bottom.value + top.value) / 2
                raw.FPDFPageObj_Transform(shape, 1, 0, _SLANT, 1, -_SLANT * middle, 0)

    def _shapes(self, holder: Any, depth: int = 0) -> Iterator[Any]:
        """The objects of a page, also those in what it repeats."""
        raw = self._raw
        count, get = (
            (raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject)
            if depth
            else (raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject)
        )
        for at in range(max(count(holder), 0)):
            shape = get(holder, at)
            yield shape
            if depth < _DEPTH and raw.FPDFPageObj_GetType(shape) == raw.FPDF_PAGEOBJ_FORM:
                yield from self._shapes(shape, depth + 1)

    def _read_words(self, page: Any, found: Page, place: Place) -> None:
        raw = self._raw
        text = raw.FPDFText_LoadPage(page)
        if not text:
            return
        try:
            count = raw.FPDFText_CountChars(text)
            if count > _MOST_CHARACTERS:
                raise Unreadable(f"a page has {count:,} characters; {_MOST_CHARACTERS:,} are read")
            reader = PageWords(raw, text, place, self._turn)
            found.words = reader.read(count)
            found.unmapped, found.letters = reader.unmapped, reader.letters
        finally:
            raw.FPDFText_ClosePage(text)

    def _read_rules(self, page: Any, found: Page, place: Place) -> None:
        raw = self._raw
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        for at in range(min(raw.FPDFPage_CountObjects(page), _MOST_OBJECTS)):
            shape = raw.FPDFPage_GetObject(page, at)
            if raw.FPDFPageObj_GetType(
                shape
            ) == raw.FPDF_PAGEOBJ_PATH and raw.FPDFPageObj_GetBounds(
                shape, left, bottom, right, top
            ):
                box = place(left.value, bottom.value, right.value, top.value)
                if box[2] - box[0] < 0.9 * found.width or box[3] - box[1] < 0.9 * found.height:
                    found.rules += sides(box)


def _has_text(page: Page) -> bool:
    """Whether the file tells most letters."""
    return any(page.words.values()) and 2 * page.unmapped <= page.letters


def _reason(problem: str) -> str:
    lower = problem.lower()
    if "password" in lower:
        return "it needs a password"
    if "security" in lower:
        return "its encryption is not known"
    return "it is damaged, or no PDF"
