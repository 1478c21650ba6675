"""Addresses of stores as they may be shown: without passwords and keys."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

_SECRETS = ("password", "sslpassword", "passfile", "secret_key", "access_key", "session_token")


def without_secrets(url: str) -> str:
    """The URL as it may be shown.

    >>> without_secrets("postgresql://ann:hush@db:5432/x?sslmode=require&password=hush")
    'postgresql://ann:***@db:5432/x?sslmode=require&password=***'
    """
    try:
        parts = urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
        hidden = re.sub(r":.*", ":***", user, flags=re.DOTALL) + at + host
        fields = [(k, "***" if k in _SECRETS else v) for k, v in parse_qsl(parts.query)]
        return urlunsplit(parts._replace(netloc=hidden, query=urlencode(fields, safe="*/:")))
    except ValueError:
        return f"{url.partition(':')[0]}://***"


def secrets_of(url: str) -> list[str]:
    """The parts of ``url`` that must not be shown, as written and as meant; the longest first."""
    try:
        parts = urlsplit(url)
        written = [parts.netloc.rpartition("@")[0].partition(":")[2]]
        written += [value for key, value in parse_qsl(parts.query) if key in _SECRETS]
    except ValueError:
        written = [url]
    found = {s for secret in written for s in (secret, unquote(secret)) if s}
    return sorted(found, key=len, reverse=True)


def clean_message(problem: Exception, url: str) -> str:
    """The message of an error in one line, without the secrets in ``url``."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    for secret in secrets_of(url):
        # As a word: the letters of a short password may stand anywhere.
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text.rstrip(".")
