"""Files on servers: downloaded from http(s), read in place from object stores."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import httpx
from datafusion.object_store import AmazonS3, GoogleCloud, MicrosoftAzure

from blendfusion.errors import QueryError

_STORES: dict[str, Callable[[str], Any]] = {
    "s3": lambda bucket: _amazon(bucket),
    "gs": lambda bucket: GoogleCloud(bucket),
    "az": lambda bucket: MicrosoftAzure(bucket),
}
SCHEMES = ("http", "https", *_STORES)
_TIMEOUT_SECONDS = 60.0


class Stores(Protocol):
    """A context that reads from object stores."""

    def register_object_store(self, schema: str, store: Any, host: str | None = None) -> None: ...


def scheme_of(path: str) -> str | None:
    """The scheme of a URL in small letters; None for a path on this machine."""
    scheme, colon, _ = path.partition("://")
    return scheme.lower() if colon and scheme.isalnum() else None


def open_store(context: Stores, url: str) -> None:
    """Register the object store of ``url``, whose credentials the environment holds
    (AWS_ACCESS_KEY_ID and so on)."""
    parts = urlsplit(url)
    context.register_object_store(
        f"{parts.scheme.lower()}://", _STORES[parts.scheme.lower()](parts.netloc), parts.netloc
    )


def _amazon(bucket: str) -> Any:
    endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    plain = (endpoint or "").startswith("http://")
    return AmazonS3(bucket, region=region, endpoint=endpoint, allow_http=plain)


def downloaded(url: str, folder: Path) -> Path:
    """The file at an http(s) URL, in ``folder``. Raises QueryError if it cannot be had."""
    name = Path(unquote(urlsplit(url).path)).name or "download"
    place = folder / name
    try:
        with (
            httpx.stream("GET", url, follow_redirects=True, timeout=_TIMEOUT_SECONDS) as reply,
            place.open("wb") as file,
        ):
            reply.raise_for_status()
            for block in reply.iter_bytes():
                file.write(block)
    except httpx.HTTPStatusError as problem:
        raise QueryError(
            f"cannot read '{url}': the server answers {problem.response.status_code}",
            hint="Check the address, and whether the file needs a login.",
        ) from problem
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        raise QueryError(
            f"cannot read '{url}': {problem}", hint="Check the address and the network."
        ) from problem
    return place
