"""Selects the store of a session's answers, and the path of its file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from blendfusion.errors import OptionError
from blendfusion.models.services import offers
from blendfusion.models.stores.entry import Entry
from blendfusion.models.stores.memory import AnswerStore, MemoryStore
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.models.stores.sqlite_file import SCHEMA_VERSION

CACHE_VARIABLE = "BLENDFUSION_CACHE"
MEMORY_WORDS = ("off", "none", "memory", ":memory:")
"""Values of the argument, the variable, or ``--cache``, for no file."""
FILE_NAME = f"answers-{SCHEMA_VERSION}.sqlite"
"""The name contains the version of the file format, so that two versions of BlendFusion do not
share a file."""

Cache: TypeAlias = "str | os.PathLike[str] | AnswerStore | None"


@runtime_checkable
class CopiedStore(AnswerStore, Protocol):
    """A store whose answers can be copied to another one."""

    @property
    def path(self) -> Path | str:
        """Where the answers are, without secrets."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Every stored answer, ordered by its key."""
        ...

    def add(self, entries: Iterable[Entry]) -> int:
        """Keep ``entries``; how many are new. Raises OSError."""
        ...


@runtime_checkable
class LateStore(Protocol):
    """A store that is far, and can write behind those who store."""

    def write_behind(self) -> None:
        """From now on, answers are written a moment after they are stored."""
        ...


def store_for(cache: Cache, limit_mb: int) -> AnswerStore:
    """The store of ``connect(cache=…)``: a path, the URL of a database or folder, a store, None or
    "off" for memory, or "auto" (that which BLENDFUSION_CACHE names, else one in the user's cache
    folder). No file is created yet.

    Raises OptionError for other values.
    """
    if cache == "auto" and _is_address(os.environ.get(CACHE_VARIABLE, "").strip()):
        cache = os.environ[CACHE_VARIABLE].strip()
    if isinstance(cache, str) and _is_address(cache):
        return store_at(cache)
    if cache == "auto":
        path = cache_path()
        return MemoryStore() if path is None else SqliteStore(path, limit_mb=limit_mb)
    if cache is None or (isinstance(cache, str) and cache.lower() in MEMORY_WORDS):
        return MemoryStore()
    if isinstance(cache, str | os.PathLike):
        path = Path(cache).expanduser()
        if not path.name or os.path.isdir(path):  # False where it may not look
            raise OptionError(
                f"cache={os.fspath(cache)!r} is a folder",
                hint=f"Name a file, for example {str(path / FILE_NAME)!r}, or a folder that machines "
                f"share as a URL: {path.absolute().as_uri()!r}.",
            )
        return SqliteStore(path, limit_mb=limit_mb)
    if isinstance(cache, AnswerStore):
        return cache
    raise OptionError(
        f"cache={cache!r} is not possible",
        hint="A path, 'postgresql://…', 'file:///folder', 's3://bucket/folder', 'auto', None for memory only, or an object with the methods of "
        "bf.AnswerStore.",
    )


def store_at(address: str) -> CopiedStore:
    """The store at a URL: a table of PostgreSQL, or a folder of segments. Raises OptionError."""
    stores = offers("STORES")
    scheme = address.partition("://")[0].lower()
    build = stores.get(scheme, stores.get("*"))
    if build is None:
        raise OptionError(
            f"cache='{scheme}://…' needs the service blendfusion/models/services/shared_stores, "
            "which is not installed"
        )
    store: CopiedStore = build(address)
    return store


def _is_address(cache: str) -> bool:
    return "://" in cache


def cache_path(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> Path | None:
    """The file of "auto"; None for memory.

    >>> cache_path({"BLENDFUSION_CACHE": "off"}) is None
    True
    >>> cache_path({"XDG_CACHE_HOME": "/tmp/c"}, "linux").as_posix()
    '/tmp/c/blendfusion/answers-1.sqlite'
    """
    path_text = environment.get(CACHE_VARIABLE, "").strip()
    if path_text.lower() in MEMORY_WORDS:
        return None
    if path_text:
        return Path(path_text).expanduser()
    try:
        return user_cache(environment, platform) / FILE_NAME
    except RuntimeError:  # a user without a home
        return None


def user_cache(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """This user's folder for reproducible files. Raises RuntimeError for a user without a home."""
    return _folder(environment, platform) / "blendfusion"


def _folder(environment: Mapping[str, str], platform: str) -> Path:
    """The platform's cache folder of this user."""
    if platform == "win32":
        local = environment.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification ignores relative paths.
    return Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache"
