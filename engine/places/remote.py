"""Files on servers: downloaded from http(s), listed and read in place in object stores."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, Protocol, cast
from urllib.parse import unquote, urlsplit

from datafusion.object_store import AmazonS3, GoogleCloud, MicrosoftAzure

from blendfusion.errors import QueryError

STORES: dict[str, Callable[[str], Any]] = {
    "s3": lambda bucket: _amazon(bucket),
    "gs": lambda bucket: GoogleCloud(bucket),
    "az": lambda bucket: MicrosoftAzure(bucket),
}
SCHEMES = ("http", "https", *STORES)
LOCAL = "file"
_TIMEOUT_SECONDS = 60.0
_CONNECT_SECONDS = 10.0


class Stores(Protocol):
    """A context that reads from object stores."""

    def register_object_store(self, schema: str, store: Any, host: str | None = None) -> None: ...


def scheme_of(path: str) -> str | None:
    """The scheme of a URL in small letters; None for a path on this machine."""
    scheme, colon, _ = path.partition("://")
    return scheme.lower() if colon and scheme.isalnum() else None


def local_path(url: str) -> str:
    """The path of a ``file://`` URL on this machine; any other text as it is.

    >>> local_path("file:///tmp/a%20b.csv"), local_path("a.csv")
    ('/tmp/a b.csv', 'a.csv')
    """
    if scheme_of(url) != LOCAL:
        return url
    return unquote(url.partition("://")[2].removeprefix("localhost"))


def check_no_user(url: str) -> None:
    """Raises QueryError for a URL of an object store with a key in front of the bucket."""
    if "@" in urlsplit(url).netloc:
        raise QueryError(
            f"'{url}' has a user in front of the bucket",
            hint="Credentials come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY.",
        )


def open_store(context: Stores, url: str) -> None:
    """Register the object store of ``url``, whose credentials the environment holds
    (AWS_ACCESS_KEY_ID and so on)."""
    parts = urlsplit(url)
    context.register_object_store(
        f"{parts.scheme.lower()}://", STORES[parts.scheme.lower()](parts.netloc), parts.netloc
    )


def _amazon(bucket: str) -> Any:
    endpoint = _endpoint()
    plain = (endpoint or "").startswith("http://")
    return AmazonS3(bucket, region=_region(), endpoint=endpoint, allow_http=plain)


def _endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT")


def _region() -> str | None:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")


def file_system(url: str) -> Any:
    """The client that lists the object store of ``url``: see ``open_store`` for its credentials."""
    from pyarrow import fs

    scheme = scheme_of(url)
    if scheme == "gs":
        return fs.GcsFileSystem()
    if scheme == "az":
        return fs.AzureFileSystem(os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", ""))
    endpoint, region = _endpoint(), _region()
    return fs.S3FileSystem(
        region=region,
        endpoint_override=endpoint,
        scheme="http" if (endpoint or "").startswith("http://") else "https",
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_TIMEOUT_SECONDS,
    )


def key_of(url: str) -> str:
    """The bucket and the key of the object at ``url``."""
    return unquote(url.partition("://")[2])


def open_object(url: str, compression: str | None = None) -> AbstractContextManager[IO[bytes]]:
    """The content of the object at ``url``, decompressed."""
    stream = file_system(url).open_input_stream(key_of(url), compression=compression)
    return cast("AbstractContextManager[IO[bytes]]", stream)


def open_file(url: str) -> IO[bytes]:
    """The content of the object at ``url``, for readers that begin at its end."""
    return cast("IO[bytes]", file_system(url).open_input_file(key_of(url)))


def download(url: str, folder: Path) -> Path:
    """The file at an http(s) URL, in ``folder``. Raises QueryError if it cannot be had."""
    from blendfusion.places.downloads import DownloadFailed, download

    name = Path(unquote(urlsplit(url).path)).name or "download"
    place = folder / name
    try:
        download(url, place)
    except DownloadFailed as problem:
        where = "Check the address and the network."
        if problem.status:
            where = "Check the address, and whether the file needs a login."
        raise QueryError(f"cannot read '{url}': {problem}", hint=where) from problem
    return place
