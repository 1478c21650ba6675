"""Builds HTML that is safe by construction: text is escaped where it meets markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from blendfusion.redaction import printable


class Html(str):
    """Markup. Every other string is text."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | None) -> Html:
    """An element. Text in it, and values of attributes, are escaped; control characters and those
    that turn the direction of text are made visible. An attribute that is None is left out;
    ``class_`` is ``class``, ``aria_label`` is ``aria-label``.

    >>> tag("p", "a<b", tag("br"), class_='"x"', id=None)
    '<p class="&quot;x&quot;">a&lt;b<br></p>'
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    opened = f"<{name}{pairs}>"
    if name in _VOID:
        return Html(opened)
    return Html(f"{opened}{join_html(content)}</{name}>")


def join_html(parts: Iterable[str]) -> Html:
    """Concatenated pieces, with text among them escaped."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def text(plain: str) -> Html:
    """Text as markup."""
    return plain if isinstance(plain, Html) else Html(escape(printable(plain), quote=True))


_VOID = frozenset({"br", "hr", "meta", "link"})
