"""The reply to one HTTP request, read whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Response:
    """``content`` is decompressed. ``headers``: by names in small letters, or in any."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """The content as text in the encoding that the reply names, else UTF-8."""
        named = _CHARSET.search(self.headers.get("content-type", ""))
        try:
            return self.content.decode(named[1] if named else "utf-8", "replace")
        except LookupError:  # nobody knows the encoding, or it is none of text
            return self.content.decode("utf-8", "replace")
