"""Downloads a file of any size from http(s), with the standard library: one file, no event loop."""

from __future__ import annotations

import gzip
import re
import shutil
import zlib
from http.client import HTTPException
from pathlib import Path
from urllib import request
from urllib.error import HTTPError
from urllib.request import OpenerDirector, Request, getproxies

from yarl import URL

from blendfusion.models.protocol.web_access import basic_login, trusted_certificates

_SILENCE_SECONDS = 60.0
_BLOCK_BYTES = 1 << 18
_WHOLE = (200, 203)
"""The statuses whose body is the file; that of 206 is a part of it, and that of 202 a promise."""
_GZIP = b"\x1f\x8b"
_ENDINGS = {"zstd": ".zst", "bzip2": ".bz2", "xz": ".xz"}
"""The endings of files that are compressed so themselves."""
_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype\s+html|html)\b", re.IGNORECASE)
"""The beginning of a page for people, such as one that asks for a login."""


class DownloadFailed(Exception):
    """A file cannot be had. ``status``: that of the server's reply; 0 without one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def download(url: str, place: Path) -> None:
    """Write the file at an http(s) URL to ``place``. Redirects are followed, to http(s) alone; a
    login in the URL goes to its own server alone. A file that was compressed for its way alone is
    decompressed. Raises DownloadFailed, also for a part of a file, and for a page in its place."""
    try:
        address = URL(url)
        request = Request(str(address.with_user(None).with_fragment(None)))
        if address.user is not None:
            login = basic_login(address.user, address.password or "")
            request.add_unredirected_header("Authorization", login)
        with (
            _opener().open(request, timeout=_SILENCE_SECONDS) as reply,
            place.open("wb") as file,
        ):
            while block := reply.read(_BLOCK_BYTES):
                file.write(block)
            if reply.length:  # so many bytes were promised, and are missing
                raise DownloadFailed("the connection broke before the end of the file")
            if reply.status not in _WHOLE:
                raise DownloadFailed(f"the server answers {reply.status}", reply.status)
        _remove_encoding(place, reply.headers.get("Content-Encoding", "").strip().lower())
        _check_page(place, reply.headers.get_content_type())
    except HTTPError as problem:
        problem.close()
        raise DownloadFailed(f"the server answers {problem.code}", problem.code) from problem
    except (OSError, EOFError, HTTPException, ValueError, zlib.error) as problem:
        reason = getattr(problem, "reason", problem)
        raise DownloadFailed(str(reason) or type(problem).__name__) from problem


def _remove_encoding(place: Path, encoding: str) -> None:
    """Decompress what a server compressed unasked. Some say so of a file that is itself compressed
    (``.gz``), or that is not: it stays."""
    if encoding in ("", "identity") or place.suffix.lower() == _ENDINGS.get(encoding):
        return
    with place.open("rb") as file:
        is_compressed = file.read(2) == _GZIP
    if encoding in ("gzip", "x-gzip"):
        if not is_compressed:
            return
        with gzip.open(place) as inner:
            if place.suffix.lower() == ".gz" and inner.read(2) != _GZIP:
                return
        plain = place.with_name(f".{place.name[:80]}.plain")
        with gzip.open(place) as inner, plain.open("wb") as file:
            shutil.copyfileobj(inner, file, _BLOCK_BYTES)
        plain.replace(place)
        return
    raise DownloadFailed(
        f"the server sends it compressed as {encoding[:20]!r}, which was not asked for"
    )


def _check_page(place: Path, content_type: str) -> None:
    """Raises DownloadFailed for a page in the place of a file of another kind."""
    if content_type == "text/html" and place.suffix.lower() not in (".html", ".htm"):
        with place.open("rb") as file:
            if _PAGE.match(file.read(_BLOCK_BYTES)):
                raise DownloadFailed(
                    "the server answers with a page (HTML), maybe for a login", 200
                )


def _opener() -> OpenerDirector:
    """Opens http and https alone, through the proxies of the environment."""
    proxies = getproxies()
    for_all = proxies.get("all")
    named = {scheme: proxies.get(scheme, for_all) for scheme in ("http", "https")}
    opener = OpenerDirector()
    for handler in (
        request.ProxyHandler({scheme: proxy for scheme, proxy in named.items() if proxy}),
        request.HTTPHandler(),
        request.HTTPSHandler(context=trusted_certificates()),
        request.HTTPDefaultErrorHandler(),
        request.HTTPRedirectHandler(),
        request.HTTPErrorProcessor(),
        request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener
