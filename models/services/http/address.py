"""Parses the URL of a server with a library, and checks it before any request."""

from __future__ import annotations

import re
import threading
import warnings

from yarl import URL

from blendfusion.errors import HostedModelWarning, ModelNotFound

URL_VARIABLE = "OPENAI_BASE_URL"
HOSTED_URL = "https://api.openai.com/v1"
_NO_PORT = "there is no port but 1 to 65535"
_UNFIT_IN_HOST = re.compile(r"[\s%\\]")
_URL_IN_NAME = re.compile(r"@\s*(?P<url>[a-zA-Z][a-zA-Z0-9+.-]*://.*)", re.DOTALL)

_NEXT_URL = re.compile(r"\s*,\s*(?=[a-zA-Z][a-zA-Z0-9+.-]*://)")

_announced: set[str] = set()
_announcing = threading.Lock()


def checked_url(text: str) -> URL:
    """The URL of a server. Raises ModelNotFound with the reason for a text that is no URL of a
    server.

    >>> str(checked_url("HTTP://[::1]:8000/v1/"))
    'http://[::1]:8000/v1'
    """
    wrong = f"'{_without_secrets(text)}' is not the URL of a server"
    hint = "It begins with http:// or https:// and mostly ends in /v1."
    try:
        url = URL(text.strip())
        host, port = url.host, url.explicit_port
        text.encode("utf-8")
    except ValueError as problem:  # and its kinds: of encodings, of addresses, of idna
        reason = _NO_PORT if "range" in str(problem) else problem
        raise ModelNotFound(f"{wrong}: {reason}", hint=hint) from None
    if url.scheme not in ("http", "https") or not host or _UNFIT_IN_HOST.search(host):
        raise ModelNotFound(wrong, hint=hint)
    if port == 0:
        raise ModelNotFound(f"{wrong}: {_NO_PORT}", hint=hint)
    if not text.strip().isprintable():
        raise ModelNotFound(wrong, hint=hint)
    return _at_path(url, url.raw_path.rstrip("/"))


def with_path(url: str, usual: str) -> str:
    """``url``, with the path of the ``usual`` one where it has none, as providers' own libraries
    name their servers.

    >>> with_path("http://host:8000", "https://api/v1"), with_path("http://host/x", "https://api/v1")
    ('http://host:8000/v1', 'http://host/x')
    """
    given = checked_url(url)
    return str(given if given.raw_path.strip("/") else _at_path(given, URL(usual).raw_path))


def several(url: str) -> list[str]:
    """The URLs of several servers, separated by commas.

    >>> several("http://a/v1, https://b/v1"), several("http://a/v1?x=1,2")
    (['http://a/v1', 'https://b/v1'], ['http://a/v1?x=1,2'])
    """
    return _NEXT_URL.split(url.strip())


def below(url: URL, path: str) -> URL:
    """A path below the URL of a server, with the server's own query string.

    >>> str(below(checked_url("http://host/v1?api-version=2"), "/models"))
    'http://host/v1/models?api-version=2'
    """
    return _at_path(url, url.raw_path.rstrip("/") + path)


def shown_url(url: URL) -> str:
    """A URL without what may be secret in it: the user and the query."""
    return str(url.with_user(None).with_query(None))


def _at_path(url: URL, path: str) -> URL:
    """``url`` with another path, in which everything is quoted that must be, and no fragment."""
    return url.with_path(path, encoded=True, keep_query=True)


def split_name(argument: str, scheme: str = "openai") -> tuple[str, str | None]:
    """(name, URL) of ``NAME@URL``; the URL is None for a plain name, which has no ``@``.

    Raises ModelNotFound for an ``@`` without a URL behind it: what was meant for a server of one's
    own must not go to another one.

    >>> split_name("org/model:7b@http://localhost:8000/v1")
    ('org/model:7b', 'http://localhost:8000/v1')
    """
    found = _URL_IN_NAME.search(argument)
    name = (argument[: found.start()] if found else argument).strip()
    if not found and "@" in argument:
        raise ModelNotFound(
            f"'{scheme}:{_without_secrets(argument)}' has no URL behind the @",
            hint=f"A URL begins with http:// or https://: '{scheme}:MODEL@http://HOST:PORT/v1'.",
        )
    if not name:
        raise ModelNotFound(
            f"'{scheme}:{_without_secrets(argument)}' names no model",
            hint=f"Write '{scheme}:MODEL@http://HOST:PORT/v1'.",
        )
    return name, found["url"] if found else None


def announce(name: str, url: str) -> None:
    """Say once a process where a model is asked that was named without a server."""
    with _announcing:
        new = f"{name}@{url}" not in _announced
        _announced.add(f"{name}@{url}")
    if new:
        warnings.warn(
            f"the values go to {url}, as 'openai:{name}' names no server. "
            f"'openai:{name}@{url}' names it.",
            HostedModelWarning,
            stacklevel=2,
        )


def _without_secrets(text: str) -> str:
    """A name or URL without the user and the query, which may be secrets."""
    return re.sub(r"(?<=://)[^/?#@]*@", "…@", re.sub(r"\?.*", "?…", text, flags=re.DOTALL))
