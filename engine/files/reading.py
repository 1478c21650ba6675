"""Files as tables: the name of a file says how it is read."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from datafusion import SessionContext

from blendfusion.errors import ModelNotFound, QueryError
from blendfusion.files.conversions import (
    are_lines,
    folder_of,
    standard_input_file,
)
from blendfusion.files.csv_files import CsvOptions
from blendfusion.files.csv_tables import csv_table
from blendfusion.files.formats import format_of, kind_of_all, module_for
from blendfusion.files.json_kinds import wrong_line
from blendfusion.files.json_tables import JSON_BYTES, json_table, whole_lines
from blendfusion.files.objects import list_objects, store_error
from blendfusion.files.texts import (
    check_encoding,
    not_encoded,
    read_head,
    wrong_bytes,
)
from blendfusion.files.typed_tables import typed_table
from blendfusion.places.folders import File, Listing, list_files, note_hidden
from blendfusion.places.lakes import (
    READ_WHOLE,
    check_below,
    check_folders,
    check_url,
    kind_of_lake,
)
from blendfusion.places.remote import (
    LOCAL,
    SCHEMES,
    STORES,
    check_no_user,
    download,
    local_path,
    open_file,
    open_store,
    scheme_of,
)
from blendfusion.redaction import without_secrets

_BLANKS = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
_MOST_BLANKS = 1 << 16
_SHEET = re.compile(r"(?P<path>.*\.xlsx)#(?P<sheet>.+)", re.IGNORECASE | re.DOTALL)
STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read, as far as their names do not say it."""

    delimiter: str | None = None
    """The sign between the cells of CSV; None: found in its header."""
    encoding: str | None = None
    """Python's name for that of text; None: UTF-8, or as the mark at its beginning says."""
    sheet: str | None = None
    """The sheet of a workbook; None: the first one that holds something."""

    def check_kind(self, kind: str, place: str) -> None:
        """Raise QueryError for what files of a kind do not have."""
        for given, name, kinds in (
            (self.encoding, "encoding", ("csv", "json")),
            (self.sheet, "sheet", ("xlsx",)),
        ):
            if given is not None and kind not in kinds:
                raise QueryError(
                    f"'{place}' is {kind}, which has no {name}", hint=f"Leave out {name}={given!r}."
                )


def named_files(spec: str) -> tuple[str, str, tuple[Path, ...]]:
    """(table, path, files) of ``name=path`` or ``path``; no files for standard input and URLs.
    Raises QueryError."""
    name, path = named_path(spec)
    if path == STANDARD_INPUT or scheme_of(path) not in (None, LOCAL):
        return name, path, ()
    found = list_files(_workbook(local_path(path))[0]).files
    return name, path, tuple(file.path for file in found)


def register_spec(catalog: SessionContext, spec: str, encoding: str | None = None) -> str:
    """Register ``name=path`` or ``path`` and return the name: see ``register_file``. ``encoding``
    is that of text files. Raises QueryError for a wrong spec, too."""
    name, path = named_path(spec)
    register_file(catalog, path, name, Reading(encoding=encoding))
    return name


def named_path(spec: str) -> tuple[str, str]:
    """The name and the path of ``name=path`` or ``path``."""
    name, equals, path = spec.partition("=")
    if not equals or "/" in name or Path(spec).exists():
        name, path = "stdin" if spec == STANDARD_INPUT else table_name(spec), spec
    if not name.strip() or not path:
        raise QueryError(
            f"--table {spec!r} is not NAME=PATH", hint="For example: --table reviews=reviews.csv"
        )
    return name.strip(), path


def table_name(path: str) -> str:
    """The name of a table that is called after its file, or its sheet: ``Sales 2024.csv`` is
    ``sales_2024``, ``book.xlsx#Tickets`` is ``tickets``."""
    sheet = _SHEET.fullmatch(path)
    own = sheet["sheet"] if sheet else Path(path).name.split(".")[0]
    return re.sub(r"\W+", "_", own).strip("_").lower()


def register_file(
    catalog: SessionContext, path: str, name: str, reading: Reading | None = None
) -> None:
    """Register the file or files at ``path`` as the table ``name``, as SQL writes it; the extension
    says how they are read.

    A path may be a file, a folder of files of one kind, a pattern (``logs/*.parquet``,
    ``year/**/*.csv``), a sheet of a workbook (``book.xlsx#Sheet``), a URL (file, http, https, s3,
    gs, az), or ``-`` for standard input, whose beginning says what it is. Folders called
    ``name=value`` are columns. Documents (PDF, DOCX, PPTX, EPUB, e-mails, HTML, Markdown,
    text) are tables of their blocks, see ``read_documents``. Text files may be compressed (.gz,
    .zst, .bz2, .xz). Warns (FileWarning) of what was left out or put together. Raises QueryError
    for a missing file, an unknown extension, a table of Delta Lake, Iceberg or Hudi, and a file
    that cannot be read."""
    reading = reading or Reading()
    reading = replace(reading, encoding=check_encoding(reading.encoding))
    place = path
    if path == STANDARD_INPUT:
        path = str(standard_input_file(sys.stdin.buffer.read(), folder_of(catalog)))
    path = local_path(path)
    if scheme_of(path) is None:
        _register_local(catalog, name, path, reading)
    else:
        _register_remote(catalog, name, path, reading)
    note = getattr(catalog, "note_registration", None)
    if note is not None:  # a session, and no plain context
        note("register_file", name, place, asdict(reading))


def _register_remote(catalog: SessionContext, name: str, url: str, reading: Reading) -> None:
    """Register what is at a URL. Messages have it without passwords and signatures."""
    scheme = scheme_of(url)
    try:
        if scheme in ("http", "https"):
            _register_local(catalog, name, str(download(url, folder_of(catalog))), reading)
        elif scheme in STORES:
            check_no_user(url)
            _register_objects(catalog, name, url, reading)
        else:
            raise QueryError(
                f"'{url}': no file can be read by {scheme}://",
                hint=f"Known are {', '.join(SCHEMES)}. Other stores: session.register_object_store(…).",
            )
    except QueryError as problem:
        problem.reword(without_secrets(problem.message), problem.hint)
        raise problem from None


def _workbook(path: str) -> tuple[str, str | None]:
    """The path and the sheet of ``book.xlsx#Sheet``; a file of that name is no sheet."""
    found = None if Path(path).expanduser().exists() else _SHEET.fullmatch(path)
    return (path, None) if found is None else (found["path"], found["sheet"])


def _register_local(catalog: SessionContext, name: str, path: str, reading: Reading) -> None:
    if _register_lake(catalog, name, path):
        return
    path, sheet = _workbook(path)
    reading = reading if sheet is None else replace(reading, sheet=sheet)
    listing = _list(path)
    files = listing.files
    kind = kind_of_all([file.url for file in files], path)
    reading.check_kind(kind, path)
    if kind == "document":
        _register_documents(catalog, name, str(Path(path).expanduser()))
        return
    if kind == "parquet":
        check_folders({file.path.parent for file in files})
    empty = next((file for file in files if _is_empty(file, kind)), None)
    if empty is not None:
        raise QueryError(f"'{empty.url}' is empty", hint="A table needs the names of its columns.")
    note_hidden(listing, format_of(files[0].name).extension)
    try:
        _register(catalog, name, kind, listing, reading)
    except QueryError:
        raise
    except Exception as problem:  # DataFusion's and pyarrow's, of which each has its own
        raise unreadable(listing, kind, problem) from problem


def _is_empty(file: File, kind: str) -> bool:
    """Whether a file on this machine has nothing, or as a text nothing but line breaks, perhaps
    behind the mark of an encoding."""
    if not file.path.is_file() or file.size > _MOST_BLANKS:
        return False
    is_text = kind in ("csv", "json")
    return not file.size or (is_text and not file.path.read_bytes().strip(_BLANKS))


def _register_lake(catalog: SessionContext, name: str, path: str) -> bool:
    """Register the folder of a table of a lake by its log, if a service and its library can read
    it. Whether it did."""
    folder = Path(path).expanduser()
    register = getattr(catalog, "register_lake", None)
    if register is None or not folder.is_dir() or kind_of_lake(folder) not in READ_WHOLE:
        return False
    try:
        register(name, folder)
    except (QueryError, ModelNotFound):
        return False  # what else reads it refuses it, with the remedy
    return True


def _list(path: str) -> Listing:
    """The files at ``path``. Raises QueryError for a table of Delta Lake, Iceberg or Hudi."""
    folder = Path(path).expanduser()
    if folder.is_dir() and folder.suffix.lower() != ".lance":
        check_below(folder)
    return list_files(path)


def _register_objects(catalog: SessionContext, name: str, url: str, reading: Reading) -> None:
    listing = list_objects(url)
    kind = kind_of_all([file.name for file in listing.files], url)
    reading.check_kind(kind, url)
    if kind not in ("csv", "json", "arrow", "parquet"):
        raise QueryError(
            f"'{url}': {kind} is not read from {scheme_of(url)}://", hint="Download it first."
        )
    open_store(catalog, url)
    if kind == "parquet":
        check_url(catalog, listing.base)
    note_hidden(listing, format_of(listing.files[0].name).extension)
    try:
        _register(catalog, name, kind, listing, reading)
    except QueryError:
        raise
    except Exception as problem:  # DataFusion's and pyarrow's, of several kinds
        raise store_error(url, problem) from problem


def _register(
    catalog: SessionContext, name: str, kind: str, listing: Listing, reading: Reading
) -> None:
    new_folder = partial(folder_of, catalog)
    if kind == "csv":
        tabs = format_of(listing.files[0].name).extension.lower().startswith(".tsv")
        delimiter = reading.delimiter or ("\t" if tabs else None)
        csv_table(listing, CsvOptions(delimiter, reading.encoding), new_folder).register(
            catalog, name
        )
    elif kind == "json":
        json_table(listing, new_folder, reading.encoding).register(catalog, name)
    elif kind in ("parquet", "arrow"):
        typed_table(kind, listing, new_folder, _content).register(catalog, name)
    else:
        module_for(kind).register(catalog, name, listing, reading.sheet)


def _content(file: File) -> Any:
    """The content of a file, for readers of pyarrow."""
    return file.url if scheme_of(file.url) is None else open_file(file.url)


def _register_documents(catalog: SessionContext, name: str, place: str) -> None:
    register = getattr(catalog, "register_documents", None)
    if register is None:
        raise QueryError(
            f"'{place}' is a document, which DataFusion's own context does not read",
            hint="A session does: bf.connect(ctx=context).register_file(path).",
        )
    register(name, place)


def unreadable(listing: Listing, kind: str, problem: Exception) -> QueryError:
    """Why a file cannot be read, in one line, with the remedy where it is known."""
    files = [file.path for file in listing.files]
    if kind in ("csv", "json"):
        for file in files:
            line = wrong_bytes(file)
            if line is not None:
                return not_encoded(file, None, line)
            if not read_head(file):
                return QueryError(
                    f"cannot read '{file}' as {kind}: it is not compressed as its name says",
                    hint="Give the file the ending of its compression.",
                )
            head = read_head(file, JSON_BYTES) if kind == "json" else b""
            number = wrong_line(whole_lines(head, JSON_BYTES)) if are_lines(head) else None
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
