"""Files as tables: the name of a file says how it is read."""

from __future__ import annotations

import codecs
import csv
import glob
import io
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, Protocol, cast

import pyarrow as pa
from datafusion.catalog import Table as CatalogTable

from blendfusion.datafusion.file_errors import INFERRED_ROWS
from blendfusion.errors import QueryError, close_matches
from blendfusion.files.conversions import (
    are_lines,
    encoding_of,
    folder_of,
    json_lines,
    json_rows,
    standard_input_file,
)
from blendfusion.files.json_kinds import Kinds, need_conversion, wrong_line
from blendfusion.files.open_quotes import check_quotes
from blendfusion.files.remote import SCHEMES, downloaded, open_store, scheme_of
from blendfusion.files.spreadsheets import read_sheet
from blendfusion.search.lance_table import lance_table

_KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",  # one object a line, or one array of objects
    ".ndjson": "json",
    ".jsonl": "json",
    ".arrow": "arrow",
    ".parquet": "parquet",
    ".lance": "lance",
    ".xlsx": "xlsx",  # its first sheet
    **dict.fromkeys((".pdf", ".docx", ".html", ".htm", ".md", ".txt"), "document"),
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
"""The compressions of text files."""

_GLOB = re.compile(r"[*?\[]")
_DELIMITERS = ",;\t|"
_HEAD_BYTES = 1 << 16
_JSON_BYTES = 1 << 20
"""The text of a JSON file that is searched for values of several kinds."""
_CONVERTED_BYTES = 1 << 28
"""The largest files that are converted for their sake."""
STANDARD_INPUT = "-"


class Catalog(Protocol):
    """An object that registers files as tables: a session, or DataFusion's own context."""

    def register_csv(
        self,
        name: str,
        path: str,
        *,
        delimiter: str = ",",
        schema_infer_max_records: int = 1000,
        file_extension: str = ".csv",
        file_compression_type: str | None = None,
    ) -> None: ...

    def register_json(
        self,
        name: str,
        path: str,
        *,
        schema_infer_max_records: int = 1000,
        file_extension: str = ".json",
        file_compression_type: str | None = None,
    ) -> None: ...

    def register_arrow(self, name: str, path: str, *, file_extension: str = ".arrow") -> None: ...

    def register_parquet(
        self, name: str, path: str, *, file_extension: str = ".parquet"
    ) -> None: ...

    def register_record_batches(
        self, name: str, partitions: list[list[pa.RecordBatch]]
    ) -> None: ...

    def register_table(self, name: str, table: CatalogTable) -> None: ...

    def register_object_store(self, schema: str, store: Any, host: str | None = None) -> None: ...


def named_files(spec: str) -> tuple[str, str, tuple[Path, ...]]:
    """(table, path, files) of ``name=path`` or ``path``; no files for standard input and URLs.
    Raises QueryError."""
    name, path = _parts(spec)
    if path == STANDARD_INPUT or scheme_of(path) is not None:
        return name, path, ()
    return name, path, tuple(_files(path, str(Path(path).expanduser())))


def register_spec(catalog: Catalog, spec: str) -> str:
    """Register ``name=path`` or ``path`` and return the name: see ``register_file``. Raises
    QueryError for a wrong spec, too."""
    name, path = _parts(spec)
    register_file(catalog, path, name)
    return name


def _parts(spec: str) -> tuple[str, str]:
    """The name and the path of ``name=path`` or ``path``."""
    name, equals, path = spec.partition("=")
    if not equals:
        name, path = "stdin" if spec == STANDARD_INPUT else table_name(spec), spec
    if not name.strip() or not path:
        raise QueryError(
            f"--table {spec!r} is not NAME=PATH", hint="For example: --table reviews=reviews.csv"
        )
    return name.strip(), path


def table_name(path: str) -> str:
    """The name of a table that is called after its file: ``Sales 2024.csv`` is ``sales_2024``."""
    return re.sub(r"\W+", "_", Path(path).name.split(".")[0]).strip("_").lower()


def register_file(catalog: Catalog, path: str, name: str, delimiter: str | None = None) -> None:
    """Register the file or files at ``path`` as the table ``name``, as SQL writes it; the extension
    says how they are read.

    A path may be a file, a folder of files of one kind, a pattern (``logs/*.parquet``), a URL
    (http, https, s3, gs, az), or ``-`` for standard input, whose beginning says what it is.
    Documents (PDF, DOCX, HTML, Markdown, text) are tables of their blocks, see ``read_documents``.
    Text files may be compressed (.gz, .zst, .bz2, .xz). ``delimiter`` is that of CSV (None: found
    in its first line). Raises QueryError for a missing file, an unknown extension, and a file that
    cannot be read."""
    if path == STANDARD_INPUT:
        path = str(standard_input_file(sys.stdin.buffer.read(), folder_of(catalog)))
    scheme = scheme_of(path)
    if scheme is not None:
        _register_url(catalog, name, path, scheme, delimiter)
        return
    place = str(Path(path).expanduser())
    files = _files(path, place)
    kind, extension, compression = _format(files[0])
    if all(_format(file)[0] == "document" for file in files):
        _register_documents(catalog, name, place)
        return
    other = next((file for file in files if _format(file)[:2] != (kind, extension)), None)
    if other is not None:
        raise QueryError(
            f"'{path}' holds files of several kinds, such as '{files[0].name}' and '{other.name}'",
            hint=f"Name those of one kind: '{path.rstrip('/')}/*{_usual_extension(files)}'",
        )
    empty = next((file for file in files if file.is_file() and not file.stat().st_size), None)
    if empty is not None:
        raise QueryError(f"'{empty}' is empty", hint="A table needs the names of its columns.")
    how = (kind, extension, compression)
    try:
        if kind in ("csv", "json"):
            place, files, how = _converted(catalog, place, files, how)
        _register(catalog, name, place, files, how, delimiter)
    except QueryError:
        raise
    except Exception as problem:  # DataFusion's and pyarrow's, of which each has its own
        raise _unreadable(files, kind, problem) from problem


def _register_url(
    catalog: Catalog, name: str, url: str, scheme: str, delimiter: str | None
) -> None:
    if scheme not in SCHEMES:
        raise QueryError(
            f"'{url}': no file can be read by {scheme}://",
            hint=f"Known are {', '.join(SCHEMES)}. Other stores: session.register_object_store(…).",
        )
    if scheme in ("http", "https"):
        register_file(catalog, str(downloaded(url, folder_of(catalog))), name, delimiter)
        return
    kind, extension, compression = _format(Path(url))
    if kind not in ("csv", "json", "arrow", "parquet"):
        raise QueryError(f"'{url}': {kind} is not read from {scheme}://", hint="Download it first.")
    try:
        open_store(catalog, url)
        _register(catalog, name, url, (), (kind, extension, compression), delimiter)
    except Exception as problem:  # DataFusion's, of several kinds
        detail = str(problem).split("\n")[0]
        raise QueryError(
            f"cannot read '{url}': {detail}",
            hint="Credentials come from the environment, such as AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_REGION.",
        ) from problem


def _files(path: str, place: str) -> Sequence[Path]:
    """The files that a path stands for, at least one."""
    file = Path(place)
    if file.is_dir() and file.suffix.lower() != ".lance":
        found = sorted(f for f in file.iterdir() if f.is_file() and not f.name.startswith("."))
        if not found:
            raise QueryError(f"there are no files in '{path}'")
        return found
    if file.exists():
        return [file]
    if _GLOB.search(place):
        matches = sorted(Path(found) for found in glob.glob(place))
        if matches:
            return matches
        raise QueryError(f"no file matches '{path}'")
    near = ""
    if file.parent.is_dir():
        near = close_matches(file.name, (other.name for other in file.parent.iterdir()))
    raise QueryError(f"there is no file '{path}'", hint=near or None)


def _format(file: Path) -> tuple[str, str, str | None]:
    """(kind, extension as it is written, compression) of a file, by its name."""
    suffix, extension = file.suffix.lower(), file.suffix
    compression = _COMPRESSIONS.get(suffix)
    if compression is not None:
        inner = Path(file.stem).suffix
        suffix, extension = inner.lower(), inner + extension
    kind = _KINDS.get(suffix)
    if kind is None or (compression is not None and kind not in ("csv", "json")):
        raise QueryError(
            f"how to read '{file}'?",
            hint=f"The extensions known are {', '.join(_KINDS)}; text may be compressed: "
            f"{', '.join(_COMPRESSIONS)}.",
        )
    return kind, extension, compression


def _usual_extension(files: Sequence[Path]) -> str:
    """The extension of most files that are no documents, if any is none."""
    tables = [file for file in files if _format(file)[0] != "document"]
    counts = Counter(_format(file)[1] for file in tables or files)
    return counts.most_common(1)[0][0]


def _converted(
    catalog: Catalog, place: str, files: Sequence[Path], how: tuple[str, str, str | None]
) -> tuple[str, Sequence[Path], tuple[str, str, str | None]]:
    """``place``, ``files`` and ``how``, or those of copies that DataFusion reads: in UTF-8, and
    with one JSON object a line."""
    kind, extension, _ = how
    heads = [_head(file) for file in files]
    encodings = [encoding_of(head) for head in heads]
    foreign = any(encodings) or (kind == "json" and not all(map(are_lines, heads)))
    if not foreign and not (kind == "json" and _are_mixed(files)):
        return place, files, how
    folder, suffix = folder_of(catalog), Path(f"x{extension}").suffixes[0]
    kinds = Kinds()

    def content(number: int) -> bytes:
        read, encoding = _bytes(files[number]), encodings[number]
        return read if encoding is None else read.decode(encoding).encode()

    def rows(number: int) -> Iterator[dict[str, object]]:
        return json_rows(content(number), str(files[number]))

    for number in range(len(files)) if kind == "json" else ():
        for row in rows(number):
            kinds.note(row)
    for number in range(len(files)):
        text = json_lines(rows(number), kinds) if kind == "json" else content(number)
        (folder / f"{number:06}{suffix}").write_bytes(text)
    return str(folder), sorted(folder.iterdir()), (kind, suffix, None)


def _register(
    catalog: Catalog,
    name: str,
    place: str,
    files: Sequence[Path],
    how: tuple[str, str, str | None],
    delimiter: str | None,
) -> None:
    kind, extension, compression = how
    if kind == "csv":
        tabs = extension.lower().startswith(".tsv")
        head = _head(files[0]) if files else b""
        delimiter = delimiter or ("\t" if tabs else _delimiter(head))
        _check_header(head, delimiter, place)
        if files and head:
            check_quotes(((str(file), _decompressed(file)) for file in files), delimiter)
        catalog.register_csv(
            name,
            place,
            delimiter=delimiter,
            schema_infer_max_records=INFERRED_ROWS,
            file_extension=extension,
            file_compression_type=compression,
        )
    elif kind == "json":
        catalog.register_json(
            name,
            place,
            schema_infer_max_records=INFERRED_ROWS,
            file_extension=extension,
            file_compression_type=compression,
        )
    elif kind == "arrow":
        catalog.register_arrow(name, place, file_extension=extension)
    elif kind == "parquet":
        catalog.register_parquet(name, place, file_extension=extension)
    elif kind == "xlsx":
        sheet = pa.concat_tables(map(read_sheet, files), promote_options="permissive")
        catalog.register_record_batches(name, [sheet.to_batches()])
    else:
        catalog.register_table(name, lance_table(place))


def _register_documents(catalog: Catalog, name: str, place: str) -> None:
    register = getattr(catalog, "register_documents", None)
    if register is None:
        raise QueryError(
            f"'{place}' is a document, which DataFusion's own context does not read",
            hint="A session does: bf.connect(ctx=context).register_file(path).",
        )
    register(name, place)


def _bytes(file: Path) -> bytes:
    with _decompressed(file) as stream:
        content: bytes = stream.read()
    return content


def _decompressed(file: Path) -> AbstractContextManager[IO[bytes]]:
    """The content of a file, by its extension in any letter case."""
    compression = _COMPRESSIONS.get(file.suffix.lower())
    if compression == "xz":
        return lzma.open(file)
    codec = "bz2" if compression == "bzip2" else compression  # pyarrow's name for it
    stream = pa.input_stream(str(file), compression=codec)
    return cast("AbstractContextManager[IO[bytes]]", stream)


def _are_mixed(files: Sequence[Path]) -> bool:
    """Whether the first lines of JSON files need a conversion that memory allows."""
    size = sum(file.stat().st_size for file in files)
    room = _JSON_BYTES // len(files)
    lines = [line for file in files for line in _lines(_head(file, room), room)]
    return size <= _CONVERTED_BYTES and need_conversion(lines)


def _lines(head: bytes, room: int) -> Sequence[bytes]:
    """The whole lines of the beginning of a text, of at most ``room`` bytes."""
    lines = head.splitlines()
    return lines[:-1] if len(head) == room else lines


def _head(file: Path, size: int = _HEAD_BYTES) -> bytes:
    """The first bytes of a text file, decompressed; nothing where they cannot be read."""
    try:
        with _decompressed(file) as stream:
            head: bytes = stream.read(size)
    except (OSError, EOFError, lzma.LZMAError, pa.ArrowException):
        return b""
    return head


def _delimiter(head: bytes) -> str:
    """The delimiter of a CSV text: a comma, unless its first line has none and another one
    instead."""
    line = re.sub(rb'"[^"]*"', b"", head.lstrip().split(b"\n", 1)[0])
    return max(_DELIMITERS, key=lambda d: (d == "," and b"," in line, line.count(d.encode())))


def check_header(path: object, delimiter: str) -> None:
    """Raises QueryError for columns of one name in the first of the CSV files at ``path``: a file,
    a folder, a pattern, or a list of them. Others than local ones are not read."""
    place = str(path[0] if isinstance(path, list) and path else path)
    inside = sorted(Path(place).glob("*.csv*")) if Path(place).is_dir() else glob.glob(place)
    file = next((file for file in map(Path, inside) if file.is_file()), None)
    if file is not None:
        _check_header(_head(file), delimiter, place)


def _check_header(head: bytes, delimiter: str, place: str) -> None:
    """Raises QueryError for columns of one name, which DataFusion would read as one."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    counts = Counter(next(csv.reader(io.StringIO(text), delimiter=delimiter), []))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        *others, last = map(repr, twice)
        names = f"{', '.join(others)} and {last}" if others else last
        least = "two" if max(counts.values()) == 2 else "several"
        raise QueryError(
            f"'{place}' has {least} columns {names}",
            hint="Rename them in the first line of the file: one name a column.",
        )


def _unreadable(files: Sequence[Path], kind: str, problem: Exception) -> QueryError:
    """Why a file cannot be read, in one line, with the remedy where it is known."""
    if kind in ("csv", "json"):
        for file in files:
            line = _wrong_bytes(file)
            if line is not None:
                return QueryError(
                    f"'{file}' is not UTF-8: see line {line}",
                    hint=f"Convert it first, for example: iconv -f LATIN1 -t UTF-8 '{file}' > utf8{file.suffix}",
                )
            if not _head(file):
                return QueryError(
                    f"cannot read '{file}' as {kind}: it is not compressed as its name says",
                    hint="Give the file the ending of its compression.",
                )
            head = _head(file, _JSON_BYTES) if kind == "json" else b""
            number = wrong_line(_lines(head, _JSON_BYTES)) if are_lines(head) else None
            if number is not None:
                return QueryError(
                    f"'{file}' is not JSON: see line {number}",
                    hint="A table is an array of objects, or one object a line.",
                )
    place = files[0] if len(files) == 1 else files[0].parent
    detail = str(getattr(problem, "message", problem)).split("\n")[0]
    known = getattr(problem, "hint", None)
    return QueryError(
        f"cannot read '{place}' as {kind}: {detail}",
        hint=known or "The ending says how a file is read.",
    )


def _wrong_bytes(file: Path) -> int | None:
    """The first line of a text that is not UTF-8, from 1; None for one that is."""
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    try:
        with _decompressed(file) as stream:
            block = stream.read(_HEAD_BYTES)
            while True:
                try:
                    line += decoder.decode(block, final=not block).count("\n")
                except UnicodeDecodeError as wrong:
                    before: bytes = wrong.object[: wrong.start]
                    return line + before.count(b"\n")
                if not block:
                    return None
                block = stream.read(_HEAD_BYTES)
    except (OSError, pa.ArrowException):
        return None
