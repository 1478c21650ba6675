"""Which database a URL or a path means."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from blendfusion.errors import QueryError, close_matches
from blendfusion.redaction import without_secrets

KINDS = {
    "sqlite": "sqlite",
    "sqlite3": "sqlite",
    "duckdb": "duckdb",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
"""The kinds of databases, by the schemes of URLs and the names after TYPE, in small letters."""
_ENDINGS = {
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".db3": "sqlite",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
}
_FILES = ("sqlite", "duckdb")
_HEADS = {"sqlite": (0, b"SQLite format 3\x00"), "duckdb": (8, b"DUCK")}
_NAME = re.compile(r"[^0-9a-z_]+")
_DESCRIPTORS: dict[tuple[int, int], int] = {}
"""The open descriptors of files, by device and inode."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is. ``location`` is the path of a file, or a URL with its credentials;
    ``shown`` has none."""

    kind: str
    location: str
    shown: str
    name: str
    """The name that its tables have in front if nothing else is said."""


def place_of(url: str | os.PathLike[str], kind: str | None = None) -> Place:
    """The database of a URL, as SQLAlchemy writes it (``sqlite:///shop.db``,
    ``postgresql://user@host/shop``), or of the path of a file. ``kind`` is what TYPE says. Raises
    QueryError for a place that is none."""
    text = os.fspath(url)
    scheme, colon, _ = text.partition("://")
    given = (kind or "").lower()
    if given and given not in KINDS:
        raise _unknown_kind(given)
    if not colon:
        return _file(text, KINDS.get(given) or _kind_of_file(text))
    driver = scheme.lower().partition("+")[0]
    if driver not in KINDS:
        raise _unknown_kind(driver)
    found = KINDS[driver]
    if given and KINDS[given] != found:
        raise QueryError(f"TYPE {given} is not the kind of database of '{without_secrets(text)}'")
    if found in _FILES:
        return _file(_path_of(text), found)
    parts = urlsplit(text)
    database = unquote(parts.path.strip("/"))
    location = f"{found}://{text.partition('://')[2]}"
    return Place(found, location, without_secrets(text), _name_of(database or found))


def _path_of(url: str) -> str:
    """The path of ``sqlite:///relative.db`` and ``sqlite:////absolute.db``, as SQLAlchemy reads
    them."""
    path = url.partition("://")[2].partition("?")[0]
    if not path.startswith("/"):
        raise QueryError(
            f"'{url}' names a host, and a file has none",
            hint=f"Write three strokes: {url.partition('://')[0]}:///{path}.",
        )
    return unquote(path[1:])


def _file(path: str, kind: str) -> Place:
    if kind not in _FILES:
        raise QueryError(
            f"a database of {kind} has a URL", hint=f"For example {kind}://user@host/shop."
        )
    file = Path(path).expanduser()
    if not path or path == ":memory:":
        raise QueryError("a database in memory belongs to the connection that made it")
    if not file.is_file():
        near = ""
        if file.parent.is_dir():
            near = close_matches(file.name, (other.name for other in file.parent.iterdir()))
        raise QueryError(f"there is no database '{path}'", hint=near or None)
    return Place(kind, str(file), path, _name_of(file.name.partition(".")[0]))


def _kind_of_file(path: str) -> str:
    """The kind of a file by its first bytes, else by its ending."""
    file = Path(path).expanduser()
    if file.is_file():
        head = _head(file)
        for kind, (start, mark) in _HEADS.items():
            if head[start:].startswith(mark):
                return kind
    kind_by_ending = _ENDINGS.get(file.suffix.lower())
    if kind_by_ending is None:
        raise QueryError(
            f"'{path}' is no database that can be told by its first bytes",
            hint="Say what it is: sqlite:///…, duckdb:///…, postgresql://…, mysql://….",
        )
    return kind_by_ending


def _head(file: Path) -> bytes:
    """The first bytes of a file. Its descriptor stays open: POSIX gives back all locks of a process
    on a file, those of databases too, when any descriptor of it is closed."""
    if os.name != "posix":
        with file.open("rb") as opened:
            return opened.read(16)
    found = file.stat()
    key = found.st_dev, found.st_ino
    if key not in _DESCRIPTORS:
        _DESCRIPTORS[key] = os.open(file, os.O_RDONLY)
    return os.pread(_DESCRIPTORS[key], 16, 0)


def _name_of(text: str) -> str:
    name = _NAME.sub("_", text.lower()).strip("_") or "db"
    return f"_{name}" if name[0].isdigit() else name


def _unknown_kind(kind: str) -> QueryError:
    known = sorted(set(KINDS.values()))
    return QueryError(
        f"no kind of database is called '{kind}'",
        hint=close_matches(kind, KINDS) or f"There are {', '.join(known)}.",
    )
