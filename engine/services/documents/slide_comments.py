"""Comments on slides, in the form of PowerPoint up to 2019 and in today's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blendfusion.services.documents.blocks import Block, Unreadable

_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"


def comments_of(slide: Any) -> list[Block]:
    """The comments on a slide with the names of who wrote them, each behind what it answers."""
    authors: dict[str, str] = {}
    for root in _parts(slide.part.package.presentation_part.part, ("commentAuthors", "authors")):
        authors |= {one.get("id", ""): one.get("name", "") for one in root}
    found: list[Block] = []
    for root in _parts(slide.part, ("comments",)):
        for comment in root.iter():
            if _name(comment) in ("cm", "reply"):
                text, author = _text(comment), authors.get(comment.get("authorId", ""), "")
                if text:
                    found.append(Block("aside", f"{author}: {text}" if author else text))
    return found


def _parts(part: Any, kinds: tuple[str, ...]) -> Iterator[Any]:
    """The roots of the parts of some kinds that a part refers to."""
    from pptx.oxml import parse_xml

    for relation in part.rels.values():
        if relation.reltype.rpartition("/")[2] in kinds and not relation.is_external:
            root = parse_xml(relation.target_part.blob)
            if root.getroottree().docinfo.doctype:
                raise Unreadable("its XML has a document type, which is refused")
            yield root


def _text(comment: Any) -> str:
    """Its own text, without those of the answers to it."""
    parts = []
    for child in comment:
        if _name(child) == "text":
            parts.append(child.text or "")
        elif _name(child) == "txBody":
            lines = ("".join(t.text or "" for t in line.iter(_TEXT)) for line in child)
            parts.append("\n".join(filter(None, lines)))
    return "".join(parts).strip()


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
