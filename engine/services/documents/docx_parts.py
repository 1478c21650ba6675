"""The parts of a DOCX file beside its text: diagrams, charts, whole documents."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from blendfusion.services.documents.archives import (
    Attributes,
    parse_part,
    part_bytes,
    translate_damage,
)
from blendfusion.services.documents.blocks import Block, Unreadable

_RELATIONS = ("http://schemas.openxmlformats.org/package/2006/relationships",)
_DIAGRAM = (
    "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "http://schemas.openxmlformats.org/drawingml/2006/main",
)
_MOST_BYTES = 64 << 20
_DEEPEST = 3


def relations(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """The kind and the name of each part that a part refers to, by the ids of the references."""
    folder, name = posixpath.split(part)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    found: dict[str, tuple[str, str]] = {}

    def start(tag: str, attributes: Attributes) -> None:
        if tag == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.join("/", folder, attributes.get("Target", ""))
            kind = attributes.get("Type", "").rpartition("/")[2]
            found[attributes.get("Id", "")] = kind, posixpath.normpath(target).lstrip("/")

    if place in archive.namelist():
        parse_part(archive, place, start, spaces=_RELATIONS)
    return found


@dataclass(slots=True)
class OtherParts:
    """The parts that the text of a document refers to."""

    archive: zipfile.ZipFile
    targets: dict[str, tuple[str, str]]
    read_document: Callable[[zipfile.ZipFile, int], tuple[list[Block], list[str]]]
    """Reads a document within this one."""
    depth: int = 0
    problems: list[str] = field(default_factory=list)
    """Why a part cannot be read."""

    def blocks(self, kind: str, reference: str) -> list[Block]:
        """The blocks of a part of this kind."""
        name = self.targets.get(reference, ("", ""))[1]
        if name not in self.archive.namelist():
            self.problems.append(f"a {kind} that it refers to is missing")
            return []
        read = {"diagram": self._diagram, "chart": self._chart, "document": self._document}[kind]
        try:
            with translate_damage():
                return read(name)
        except Unreadable as problem:
            self.problems.append(f"'{name}': {problem}")
        except (KeyError, ValueError, AttributeError, IndexError, TypeError) as problem:
            self.problems.append(f"'{name}' is damaged ({type(problem).__name__})")
        return []

    def _diagram(self, name: str) -> list[Block]:
        texts: list[str] = []
        inside = 0

        def start(tag: str, _: Attributes) -> None:
            nonlocal inside
            inside += tag == "t"
            if tag == "pt":
                texts.append("")

        def end(tag: str) -> None:
            nonlocal inside
            inside -= tag == "t"

        def text(text: str) -> None:
            if inside > 1 and texts:  # the text of a run, in the text of a point
                texts[-1] += text

        parse_part(self.archive, name, start, end, text, _DIAGRAM)
        lines = "\n".join(f"• {' '.join(text.split())}" for text in texts if text.strip())
        return [Block("list", lines)] if lines else []

    def _chart(self, name: str) -> list[Block]:
        try:
            from pptx.chart.chart import Chart
            from pptx.exc import PythonPptxError
            from pptx.oxml import parse_xml

            from blendfusion.services.documents.slide_charts import chart_blocks
        except ImportError:
            raise Unreadable(
                "charts need python-pptx: pip install 'blendfusion[documents]'"
            ) from None
        make: Any = Chart
        space = parse_xml(part_bytes(self.archive, name, _MOST_BYTES))
        if space.getroottree().docinfo.doctype:
            raise Unreadable("its XML has a document type, which is refused")
        try:
            return chart_blocks(make(space, None), None)
        except PythonPptxError as problem:
            raise Unreadable(f"it is damaged ({type(problem).__name__})") from None

    def _document(self, name: str) -> list[Block]:
        data = part_bytes(self.archive, name, _MOST_BYTES)
        ending = posixpath.splitext(name)[1].lower()
        if data.startswith(b"PK\x03\x04"):
            if self.depth >= _DEEPEST:
                raise Unreadable(f"documents are nested deeper than {_DEEPEST} levels")
            with zipfile.ZipFile(io.BytesIO(data)) as inner:
                blocks, problems = self.read_document(inner, self.depth + 1)
            self.problems += problems
            return blocks
        if ending in (".htm", ".html", ".xhtml"):
            from blendfusion.services.documents.html import html_blocks

            return html_blocks(data)
        if ending in (".mht", ".mhtml", ".eml"):
            from blendfusion.services.documents.mail import mail_pages

            parts = [page for _, page in mail_pages(data)]
            self.problems += [f"'{name}': {page}" for page in parts if isinstance(page, str)]
            return [block for page in parts if not isinstance(page, str) for block in page]
        if ending == ".txt":
            from blendfusion.services.documents.plain import text_pages

            return [block for page in text_pages(data) for block in page]
        raise Unreadable("a part of this kind is not read")
