"""PPTX: the titles, texts, lists, tables and charts of slides, by python-pptx."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from blendfusion.services.documents.archives import MOST_BYTES, open_archive
from blendfusion.services.documents.blocks import Ask, Block, Box, Kind, Unreadable, table_text
from blendfusion.services.documents.slide_charts import chart_blocks
from blendfusion.services.documents.slide_comments import comments_of
from blendfusion.services.documents.slide_lists import paragraphs_of

_POINT = 12_700
"""A point in the units of the file."""
_KINDS: dict[str, Kind] = {
    "TITLE": "title",
    "CENTER_TITLE": "title",
    "VERTICAL_TITLE": "title",
    "SUBTITLE": "title",
    "FOOTER": "footer",
    "DATE": "footer",
    "SLIDE_NUMBER": "footer",
    "HEADER": "header",
}
_LISTS = ("BODY", "OBJECT", "VERTICAL_BODY", "VERTICAL_OBJECT")
"""The placeholders whose paragraphs are items, unless they say otherwise."""
_ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"


def slides(path: str, ask: Ask) -> Iterator[tuple[int, list[Block] | str]]:
    """The slides by their numbers, and why a part of one cannot be read. Raises Unreadable."""
    from pptx import Presentation

    with open_archive(path) as archive:
        _refuse_bombs(archive)
        found = Presentation(path).slides
        wanted = ask(len(found))
        for number, slide in enumerate(found, 1):
            if wanted is None or number in wanted:
                reader = _Slide(slide)
                yield number, reader.blocks()
                yield from ((number, problem) for problem in reader.problems)


def _refuse_bombs(archive: zipfile.ZipFile) -> None:
    """Raise Unreadable for a part that is too large; zipfile reads no more of a part than the size
    that it states."""
    for part in archive.infolist():
        if part.file_size > MOST_BYTES:
            raise Unreadable(f"'{part.filename}' is larger than {MOST_BYTES >> 20} MB unpacked")


@dataclass(slots=True)
class _Shape:
    """A shape that has text, with its place on the slide."""

    shape: Any
    kind: Kind
    box: Box | None


class _Slide:
    """The blocks of a slide: its title, its other shapes as they are read, the speaker's notes, and
    comments."""

    def __init__(self, slide: Any) -> None:
        self._slide = slide
        self.problems: list[str] = []

    def blocks(self) -> list[Block]:
        if self._slide._element.getroottree().docinfo.doctype:
            raise Unreadable("its XML has a document type, which is refused")
        _choose_alternatives(self._slide._element)
        found: list[Block] = []
        for shape in _in_reading_order(self._shapes(self._slide.shapes, None)):
            try:
                found += _blocks_of(shape)
            except _damages() as problem:
                name = " ".join(str(shape.shape.name).split())[:80]
                self.problems.append(f"'{name}' is damaged ({type(problem).__name__})")
        if self._slide.has_notes_slide:
            frame = self._slide.notes_slide.notes_text_frame
            notes = "\n".join(text for text, _ in paragraphs_of(frame, False)) if frame else ""
            if notes:
                found.append(Block("footnote", notes))
        try:
            found += comments_of(self._slide)
        except _damages() as problem:
            self.problems.append(f"a comment is damaged ({type(problem).__name__})")
        return found

    def _shapes(self, shapes: Iterable[Any], around: Box | None) -> Iterator[_Shape]:
        """All shapes; one in a group has the place of the group."""
        for shape in shapes:
            box = around or _box(shape)
            if hasattr(shape, "shapes"):
                yield from self._shapes(shape.shapes, box)
            else:
                yield _Shape(shape, _kind(shape), box)


def _damages() -> tuple[type[Exception], ...]:
    """The exceptions that python-pptx raises for a damaged shape."""
    from pptx.exc import PythonPptxError

    return PythonPptxError, KeyError, ValueError, AttributeError, IndexError, TypeError


def _choose_alternatives(slide: Any) -> None:
    """Put forms that need a newer program in place of those for older ones."""
    for element in list(slide.iter(f"{_ALTERNATIVES}AlternateContent")):
        choice = element.find(f"{_ALTERNATIVES}Choice")
        if choice is None:
            choice = element.find(f"{_ALTERNATIVES}Fallback")
        parent = element.getparent()
        for child in list(choice if choice is not None else ()):
            element.addprevious(child)
        parent.remove(element)


def _box(shape: Any) -> Box | None:
    if None in (shape.left, shape.top, shape.width, shape.height):
        return None
    left, top = shape.left / _POINT, shape.top / _POINT
    return left, top, left + shape.width / _POINT, top + shape.height / _POINT


def _kind(shape: Any) -> Kind:
    if not shape.is_placeholder:
        return "paragraph"
    name = shape.placeholder_format.type.name if shape.placeholder_format.type else ""
    return _KINDS.get(name, "list" if name in _LISTS else "paragraph")


def _in_reading_order(shapes: Iterable[_Shape]) -> list[_Shape]:
    """Headers and titles first, footers last; between them from top to bottom, and from left to
    right where shapes stand side by side."""
    parts: dict[str, list[_Shape]] = {"header": [], "title": [], "": [], "footer": []}
    for shape in shapes:
        parts[shape.kind if shape.kind in parts else ""].append(shape)
    rows: list[list[_Shape]] = []
    middle = 0.0
    nowhere: Box = (0.0, 0.0, 0.0, 0.0)
    for shape in sorted(parts[""], key=lambda shape: (shape.box or nowhere)[1]):
        _, top, _, bottom = shape.box or nowhere
        if not rows or top >= middle:
            rows.append([])
            middle = (top + bottom) / 2
        rows[-1].append(shape)
    between = [s for row in rows for s in sorted(row, key=lambda s: (s.box or nowhere)[0])]
    return [*parts["header"], *parts["title"], *between, *parts["footer"]]


def _blocks_of(shape: _Shape) -> list[Block]:
    inner, box = shape.shape, shape.box
    if getattr(inner, "has_table", False):
        text = table_text([[_cell_text(cell) for cell in row.cells] for row in inner.table.rows])
        return [Block("table", text, box)] if text else []
    if getattr(inner, "has_chart", False):
        return chart_blocks(inner.chart, box)
    if inner.has_text_frame:
        return _texts(shape)
    return _diagram(inner, box)


def _texts(shape: _Shape) -> list[Block]:
    """Neighbouring items are one list."""
    found: list[Block] = []
    paragraphs = paragraphs_of(shape.shape.text_frame, shape.kind == "list")
    if shape.kind not in ("list", "paragraph"):
        text = "\n".join(text for text, _ in paragraphs)
        return [Block(shape.kind, text, shape.box)] if text else []
    for text, is_item in paragraphs:
        if is_item and found and found[-1].kind == "list":
            found[-1] = Block("list", f"{found[-1].text}\n{text}", shape.box)
        else:
            found.append(Block("list" if is_item else "paragraph", text, shape.box))
    return found


def _cell_text(cell: Any) -> str:
    return "\n".join(text for text, _ in paragraphs_of(cell.text_frame, False))


def _diagram(shape: Any, box: Box | None) -> list[Block]:
    """The texts of a SmartArt diagram, which python-pptx does not read."""
    from pptx.oxml import parse_xml

    for relations in shape._element.iter(f"{_DIAGRAM}relIds"):
        part = shape.part.related_part(next(v for k, v in relations.items() if k.endswith("}dm")))
        points = parse_xml(part.blob).iter(f"{_DIAGRAM}pt")
        texts = ["".join(t.text or "" for t in point.iter(_TEXT)).strip() for point in points]
        lines = "\n".join(f"• {text}" for text in texts if text)
        return [Block("list", lines, box)] if lines else []
    return []
