"""Parts of a ZIP archive as bytes and as XML, with limits against archives that explode."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from xml.parsers import expat

from blendfusion.services.documents.blocks import Unreadable

MOST_BYTES = 256 << 20
"""The most bytes that a part of the archive may have, unpacked."""
_BLOCK = 1 << 20
_DEEPEST = 500
WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
"""The elements of Word's documents."""

Attributes = dict[str, str]


@contextmanager
def open_archive(path: str) -> Iterator[zipfile.ZipFile]:
    """An archive, whose damage is Unreadable wherever it shows."""
    with translate_damage(), zipfile.ZipFile(path) as archive:
        yield archive


@contextmanager
def translate_damage() -> Iterator[None]:
    """Raise Unreadable in place of what zipfile raises for a damaged archive."""
    try:
        yield
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, OSError, NotImplementedError):
        raise Unreadable("its archive is damaged") from None
    except RuntimeError as problem:  # zipfile's, for an archive with a password
        if type(problem) is not RuntimeError:
            raise
        raise Unreadable("its archive needs a password") from None
    except Exception as problem:
        if type(problem).__module__ == "zlib":
            raise Unreadable("its archive is damaged") from None
        raise


def part_bytes(archive: zipfile.ZipFile, name: str, most: int = MOST_BYTES) -> bytes:
    """The content of one part. Raises Unreadable for one of more than ``most`` bytes."""
    with archive.open(name) as part:
        found = part.read(most + 1)
    if len(found) > most:
        raise _too_large(name, most)
    return found


def _too_large(name: str, most: int) -> Unreadable:
    return Unreadable(f"'{name}' is larger than {most >> 20} MB unpacked")


def parse_part(
    archive: zipfile.ZipFile,
    name: str,
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None] = lambda tag: None,
    text: Callable[[str], None] = lambda text: None,
    spaces: tuple[str, ...] = WORD,
) -> None:
    """Read one part: ``start``, ``end`` and ``text`` are called for its elements in the namespaces
    ``spaces``, and for text. Document types are refused: they define entities, which could
    explode."""
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
        if space in spaces:
            start(local, {key.rpartition(" ")[2]: value for key, value in attributes.items()})

    def close_element(tag: str) -> None:
        nonlocal depth
        depth -= 1
        space, _, local = tag.rpartition(" ")
        if space in spaces:
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
                    raise _too_large(name, MOST_BYTES)
                parser.Parse(block, False)
            parser.Parse(b"", True)
    except expat.ExpatError:
        raise Unreadable(f"'{name}' is not well-formed XML") from None
