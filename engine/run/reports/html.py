"""Builds HTML that is safe by construction: text is escaped where it meets markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

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


@cache
def style() -> Html:
    """The style sheet, which contains no foreign text."""
    return Html(
        f"<style>{files('blendfusion.run.reports').joinpath('page.css').read_text('utf-8')}</style>"
    )


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    kinds: Sequence[str] = (),
    kind: str = "",
) -> Html:
    """A table; ``kinds`` are those of its columns: ``wide`` for long texts, ``n`` for numbers, else
    "". A table wider than the page scrolls, also by keys."""
    classes = [name or None for name in kinds] or [None] * len(heads)
    head = [
        tag("th", n, scope="col", class_=k) if n else tag("td")
        for n, k in zip(heads, classes, strict=True)
    ]
    body = [
        tag("tr", *(tag("td", cell, class_=k) for cell, k in zip(row, classes, strict=True)))
        for row in rows
    ]
    parts = (tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body))
    made = tag("table", *parts, class_=kind or None)
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def cut(text: str, longest: int) -> str:
    """``text``, or its beginning and the number of missing characters.

    >>> cut("abcdef", 3)
    'abc… (3 characters more)'
    """
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text) - longest:,} characters more)"
