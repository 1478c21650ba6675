"""Downloads a file of any size from http(s), with the standard library: one file, no event loop."""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path
from urllib import request
from urllib.error import HTTPError
from urllib.request import OpenerDirector, Request, getproxies

from yarl import URL

from blendfusion.models.protocol.web_access import basic_login, trusted_certificates

_SILENCE_SECONDS = 60.0
_BLOCK_BYTES = 1 << 18


class DownloadFailed(Exception):
    """A file cannot be had. ``status``: that of the server's reply; 0 without one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def download(url: str, place: Path) -> None:
    """Write the file at an http(s) URL to ``place``. Redirects are followed, to http(s) alone; a
    login in the URL goes to its own server alone. Raises DownloadFailed."""
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
    except HTTPError as problem:
        problem.close()
        raise DownloadFailed(f"the server answers {problem.code}", problem.code) from problem
    except (OSError, HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", problem)
        raise DownloadFailed(str(reason) or type(problem).__name__) from problem


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
