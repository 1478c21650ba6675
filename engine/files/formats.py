"""The format of a file, by the extension in its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from blendfusion.errors import QueryError
from blendfusion.files.texts import COMPRESSIONS
from blendfusion.services import offers

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",  # one object a line, or one array of objects
    ".ndjson": "json",
    ".jsonl": "json",
    ".arrow": "arrow",
    ".parquet": "parquet",
    ".lance": "lance",
    ".xlsx": "xlsx",
    **dict.fromkeys((".pdf", ".docx", ".pptx", ".epub", ".eml"), "document"),
    **dict.fromkeys((".html", ".htm", ".md", ".txt"), "document"),
}


@dataclass(frozen=True, slots=True)
class Format:
    """How a file is read."""

    kind: str
    extension: str
    """As it is written, with that of the compression."""
    compression: str | None = None


def format_of(name: str) -> Format:
    """The format of the file called ``name``. Raises QueryError for an unknown one."""
    file = PurePath(name)
    suffix, extension = file.suffix.lower(), file.suffix
    compression = COMPRESSIONS.get(suffix)
    if compression is not None:
        inner = PurePath(file.stem).suffix
        suffix, extension = inner.lower(), inner + extension
    kind = KINDS.get(suffix)
    if kind is None or (compression is not None and kind not in ("csv", "json")):
        raise QueryError(
            f"how to read '{name}'?",
            hint=f"The extensions known are {', '.join(KINDS)}; text may be compressed: "
            f"{', '.join(COMPRESSIONS)}.",
        )
    return Format(kind, extension, compression)


def module_for(kind: str) -> Any:
    """The module of a service that reads files of a kind, and perhaps writes them. Raises
    QueryError."""
    found = offers("formats").get(kind)
    if found is None:
        raise QueryError(f"{kind} needs a service of blendfusion/services, which is not installed")
    return found()


def kind_of_all(names: Sequence[str], place: str) -> str:
    """The kind of the files called ``names``, at ``place``. Raises QueryError for several kinds."""
    formats = [format_of(name) for name in names]
    other = next((n for n, one in enumerate(formats) if one.kind != formats[0].kind), None)
    if other is not None:
        raise QueryError(
            f"'{place}' holds files of several kinds, such as '{PurePath(names[0]).name}' and "
            f"'{PurePath(names[other]).name}'",
            hint=f"Name those of one kind: '{place.rstrip('/')}/*{_usual_extension(formats)}'",
        )
    return formats[0].kind


def _usual_extension(formats: Sequence[Format]) -> str:
    """The extension of most files that are no documents, if any is none."""
    tables = [one for one in formats if one.kind != "document"]
    return Counter(one.extension for one in tables or formats).most_common(1)[0][0]
