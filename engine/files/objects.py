"""The files of a folder or a pattern in an object store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from blendfusion.errors import QueryError
from blendfusion.places.folders import File, Listing, has_pattern, is_hidden
from blendfusion.places.lakes import check_keys
from blendfusion.places.partitions import partition_of
from blendfusion.places.remote import file_system, key_of, scheme_of

_CREDENTIALS = (
    "Credentials come from the environment, such as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
    "AWS_REGION; AWS_ENDPOINT_URL names another server than Amazon's."
)


def list_objects(url: str) -> Listing:
    """The files at ``url``: an object, a folder (``…/``) or a pattern. Hidden files are left out,
    as on this machine. Raises QueryError where there is none, and for what cannot be listed."""
    bucket, _, key = key_of(url).partition("/")
    if not bucket:
        raise QueryError(
            f"'{url}' names no bucket", hint=f"For example {scheme_of(url)}://bucket/folder/"
        )
    try:
        return _list_objects(url, bucket, [part for part in key.split("/") if part])
    except OSError as problem:  # pyarrow's, of several kinds
        raise store_error(url, problem) from problem


def store_error(url: str, problem: Exception) -> QueryError:
    """Why an object store could not be read, in one line."""
    text, bucket = str(problem), key_of(url).partition("/")[0]
    if (
        "NoSuchBucket" in text
        or "NO_SUCH_BUCKET" in text
        or "bucket does not exist" in text.lower()
    ):
        return QueryError(
            f"cannot read '{url}': there is no bucket '{bucket}'",
            hint="Check its name, and AWS_ENDPOINT_URL if it is on another server than Amazon's.",
        )
    if any(word in text for word in ("ACCESS_DENIED", "AccessDenied", "403", "Forbidden")):
        return QueryError(
            f"cannot read '{url}': access to '{bucket}' was refused", hint=_CREDENTIALS
        )
    if any(word in text for word in ("404", "Not Found", "not found", "No files found")):
        return QueryError(f"cannot read '{url}': there is no such file", hint=_CREDENTIALS)
    detail = text.split("\n")[0].split(": error ")[0]
    return QueryError(f"cannot read '{url}': {detail}", hint=_CREDENTIALS)


def _list_objects(url: str, bucket: str, parts: Sequence[str]) -> Listing:
    store, scheme = file_system(url), scheme_of(url)
    whole = store.get_file_info("/".join((bucket, *parts)))
    if whole.is_file and not url.endswith("/"):
        place = f"{scheme}://{quote(whole.path)}"
        return Listing(url, url, (File(place, max(whole.size, 0), (), _change_time(whole)),))
    pattern = _pattern(url, parts) if not _exists(whole) else []
    base = "/".join((bucket, *parts[: len(parts) - len(pattern)]))
    found = _below(store, base, [*pattern, "*"] if pattern[-1:] == ["**"] else pattern)
    keys = [key for key, info in found.items() if info.size and _is_wanted(key.split("/"), pattern)]
    check_keys([*found], keys, lambda folder: f"{scheme}://{base}/{folder}", bool(pattern))
    if not keys:
        raise _no_files(url, parts, bool(pattern))
    outer = tuple(part for part in base.split("/")[1:] if partition_of(part))
    files = [
        File(
            f"{scheme}://{quote(f'{base}/{key}')}",
            found[key].size,
            (*outer, *key.split("/")[:-1]),
            _change_time(found[key]),
        )
        for key in sorted(keys)
    ]
    passed = tuple(key for key in found if _is_read(key.split("/")[:-1]))
    return Listing(url, f"{scheme}://{quote(base)}", tuple(files), passed)


def _pattern(url: str, parts: Sequence[str]) -> list[str]:
    """The parts of a pattern from the first one that is a pattern itself; signs that a URL escapes
    are none."""
    written = [part for part in url.partition("://")[2].split("/")[1:] if part]
    fixed = next((at for at, part in enumerate(written) if has_pattern(part)), len(parts))
    return list(parts[fixed:])


def _exists(info: Any) -> bool:
    return bool(info.type.name != "NotFound")


def _no_files(url: str, parts: Sequence[str], is_pattern: bool) -> QueryError:
    if is_pattern:
        return QueryError(f"no file matches '{url}'")
    if not url.endswith("/") and "." in "".join(parts[-1:]):
        return QueryError(f"cannot read '{url}': there is no such file", hint=_CREDENTIALS)
    return QueryError(
        f"there are no files in '{url}'",
        hint=f"Files in folders below it: '{url.rstrip('/')}/**/*.parquet'.",
    )


def _change_time(info: Any) -> int:
    return info.mtime_ns or 0


def _below(store: Any, base: str, pattern: Sequence[str]) -> dict[str, Any]:
    """All objects below ``base`` by their keys there, as far down as a pattern goes."""
    from pyarrow import fs

    recursive = len(pattern) != 1
    try:
        infos = store.get_file_info(fs.FileSelector(base, recursive=recursive))
    except FileNotFoundError as problem:
        bucket = base.partition("/")[0]
        if "/" in base and store.get_file_info(bucket).type != fs.FileType.NotFound:
            return {}
        raise OSError("NoSuchBucket") from problem
    return {info.path[len(base) + 1 :]: info for info in infos if info.is_file}


def _is_wanted(key: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a key, by its parts, is a file of a pattern, or without one, of a folder."""
    *folders, name = key
    first = pattern[-1][:1] if pattern else ""
    if any(map(is_hidden, folders)) or (is_hidden(name) and name[:1] != first):
        return False
    return _matches(key, pattern) if pattern else _is_read(folders)


def _is_read(folders: Iterable[str]) -> bool:
    """Whether a folder below another one belongs to its table."""
    return all(partition_of(folder) is not None for folder in folders)


def _matches(key: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a key match those of a pattern, of which ``**`` matches any number."""
    if not pattern:
        return not key
    if pattern[0] == "**":
        return any(_matches(key[skip:], pattern[1:] or ["*"]) for skip in range(len(key)))
    return bool(key) and fnmatchcase(key[0], pattern[0]) and _matches(key[1:], pattern[1:])
