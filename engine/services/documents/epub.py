"""EPUB: the chapters of a book, which are pages of HTML in an archive."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote

from blendfusion.services.documents.archives import (
    Attributes,
    open_archive,
    parse_part,
    part_bytes,
    translate_damage,
)
from blendfusion.services.documents.blocks import Ask, Block, Unreadable
from blendfusion.services.documents.html import html_blocks

CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_CONTAINER_SPACE = ("urn:oasis:names:tc:opendocument:xmlns:container",)
_PACKAGE_SPACE = ("http://www.idpf.org/2007/opf",)
_CIPHER_SPACE = ("http://www.w3.org/2001/04/xmlenc#",)
_PAGE_TYPES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "")
_MOST_BYTES = 64 << 20


def chapters(path: str, ask: Ask) -> Iterator[tuple[int, list[Block] | str]]:
    """The chapters in the order of the book, by their numbers. One that is not there, or
    encrypted, is the reason why it cannot be read. Raises Unreadable."""
    with open_archive(path) as archive:
        names = _spine(archive)
        encrypted = _encrypted_names(archive)
        wanted = ask(len(names))
        for number, name in enumerate(names, 1):
            if wanted is None or number in wanted:
                yield number, _chapter(archive, name, encrypted)


def _chapter(archive: zipfile.ZipFile, name: str, encrypted: set[str]) -> list[Block] | str:
    if name in encrypted:
        return f"'{name}' is encrypted"
    try:
        with translate_damage():
            return html_blocks(part_bytes(archive, name, _MOST_BYTES))
    except KeyError:
        return f"'{name}' is not in the archive"
    except Unreadable as problem:
        return f"'{name}': {problem}"


def _spine(archive: zipfile.ZipFile) -> list[str]:
    """The parts of the archive that are chapters, in their order."""
    package = _attributes(archive, CONTAINER, "rootfile", "full-path", _CONTAINER_SPACE)
    if not package or package[0] not in archive.namelist():
        raise Unreadable("it is an EPUB file without a list of its chapters")
    folder = posixpath.dirname(package[0])
    parts: dict[str, str] = {}
    order: list[str] = []

    def start(tag: str, attributes: Attributes) -> None:
        if tag == "item" and attributes.get("media-type", "") in _PAGE_TYPES:
            place = unquote(attributes.get("href", "").partition("#")[0])
            parts[attributes.get("id", "")] = posixpath.normpath(posixpath.join(folder, place))
        elif tag == "itemref":
            order.append(attributes.get("idref", ""))

    parse_part(archive, package[0], start, spaces=_PACKAGE_SPACE)
    return [parts[name] for name in order if name in parts]


def _encrypted_names(archive: zipfile.ZipFile) -> set[str]:
    if _ENCRYPTION not in archive.namelist():
        return set()
    found = _attributes(archive, _ENCRYPTION, "CipherReference", "URI", _CIPHER_SPACE)
    return set(map(unquote, found))


def _attributes(
    archive: zipfile.ZipFile, part: str, element: str, name: str, spaces: tuple[str, ...]
) -> list[str]:
    """The values of an attribute of the elements of one kind."""
    found: list[str] = []

    def start(tag: str, attributes: Attributes) -> None:
        if tag == element and name in attributes:
            found.append(attributes[name])

    parse_part(archive, part, start, spaces=spaces)
    return found
