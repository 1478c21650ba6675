"""httpx's own records of requests, without secrets."""

from __future__ import annotations

import logging

from blendfusion.redaction import without_secrets


class _WithoutSecrets(logging.Filter):
    """Cuts what may be secret out of URLs, and the words of a server out of its status line."""

    def filter(self, record: logging.LogRecord) -> bool:
        if (
            isinstance(record.args, tuple) and len(record.args) == 5
        ):  # method, URL, version, status, words
            method, url, version, status, _ = record.args
            record.args = (method, without_secrets(str(url)), version, status, "")
        return True


def without_secrets_in_logs() -> None:
    """From here on the logger ``httpx`` writes no secrets; may be called again."""
    logger = logging.getLogger("httpx")
    if not any(isinstance(one, _WithoutSecrets) for one in logger.filters):
        logger.addFilter(_WithoutSecrets())
