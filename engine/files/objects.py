"""The files of a folder or a pattern in an object store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from blendfusion.errors import QueryError
from blendfusion.files.folders import File, Listing, has_pattern, is_hidden
from blendfusion.files.lakes import check_keys
from blendfusion.files.partitions import partition_of
from blendfusion.files.remote import file_system, key_of, scheme_of

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
        return _listed(url, bucket, [part for part in key.split("/") if part])
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


def _listed(url: str, bucket: str, parts: Sequence[str]) -> Listing:
    store, scheme = file_system(url), scheme_of(url)
    whole = "/".join((bucket, *parts))
    is_pattern = any(map(has_pattern, parts)) and not _is_object(store, whole)
    if not is_pattern and parts and not url.endswith("/") and _is_object(store, whole):
        return Listing(url, url, (File(f"{scheme}://{quote(whole)}", 1),))
    fixed = next((n for n, part in enumerate(parts) if has_pattern(part)), len(parts))
    base = "/".join((bucket, *(parts[:fixed] if is_pattern else parts)))
    pattern = list(parts[fixed:]) if is_pattern else []
    pattern += ["*"] if pattern[-1:] == ["**"] else []
    found = _below(store, base, recursive=len(pattern) != 1)
    check_keys((f"{base}/{key}" for key, _ in found), lambda folder: f"{scheme}://{folder}")
    outer = tuple(part for part in parts[:fixed] if partition_of(part))
    files = [
        File(f"{scheme}://{quote(f'{base}/{key}')}", size, (*outer, *key.split("/")[:-1]))
        for key, size in found
        if size and _is_wanted(key.split("/"), pattern)
    ]
    if not files:
        what = f"no file matches '{url}'" if is_pattern else f"there are no files in '{url}'"
        raise QueryError(
            what, hint="A folder of folders: '…/**/*.parquet'." if not is_pattern else None
        )
    passed = tuple(key for key, _ in found if _is_read(key.split("/")[:-1]))
    files.sort(key=lambda file: file.url)
    return Listing(url, f"{scheme}://{quote(base)}", tuple(files), passed)


def _is_object(store: Any, path: str) -> bool:
    return bool(store.get_file_info(path).is_file)


def _below(store: Any, base: str, *, recursive: bool) -> list[tuple[str, int]]:
    """(key below ``base``, size) of all objects there."""
    from pyarrow import fs

    try:
        infos = store.get_file_info(fs.FileSelector(base, recursive=recursive))
    except FileNotFoundError as problem:
        bucket = base.partition("/")[0]
        if "/" in base and store.get_file_info(bucket).type != fs.FileType.NotFound:
            return []
        raise OSError("NoSuchBucket") from problem
    return [(info.path[len(base) + 1 :], info.size) for info in infos if info.is_file]


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
        return any(_matches(key[skip:], pattern[1:]) for skip in range(len(key)))
    return bool(key) and fnmatchcase(key[0], pattern[0]) and _matches(key[1:], pattern[1:])
