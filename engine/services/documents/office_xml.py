"""Parts of an Office archive as XML, with limits against archives that explode."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from xml.parsers import expat

from blendfusion.services.documents.blocks import Unreadable

MOST_BYTES = 256 << 20
"""The most bytes that a part of the archive may have, unpacked."""
_BLOCK = 1 << 20
_DEEPEST = 500
SPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
"""The elements that are told of."""

Attributes = dict[str, str]


def parse_part(
    archive: zipfile.ZipFile,
    name: str,
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
) -> None:
    """Read one part. Document types are refused: they define entities, which could explode."""
    parser = expat.ParserCreate(namespace_separator=" ")
    depth = 0

    def refuse(*_: object) -> None:
        raise Unreadable("its XML has a document type, which is refused")

    def open_element(tag: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise Unreadable(f"its XML is nested deeper than {_DEEPEST} levels")
        space, _, local = tag.rpartition(" ")
        if space in SPACES:
            start(local, {key.rpartition(" ")[2]: value for key, value in attributes.items()})

    def close_element(tag: str) -> None:
        nonlocal depth
        depth -= 1
        space, _, local = tag.rpartition(" ")
        if space in SPACES:
            end(local)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.CharacterDataHandler = text
    parser.buffer_text = True
    size = 0
    try:
        with archive.open(name) as part:
            while block := part.read(_BLOCK):
                size += len(block)
                if size > MOST_BYTES:
                    raise Unreadable(f"'{name}' is larger than {MOST_BYTES >> 20} MB unpacked")
                parser.Parse(block, False)
            parser.Parse(b"", True)
    except expat.ExpatError:
        raise Unreadable(f"'{name}' is not well-formed XML") from None
