"""Text as it is seen: without invisible signs, with letters for codes that stand for several."""

from __future__ import annotations

import unicodedata

_UNSEEN = (0xAD, 0x200B, 0x2060, 0xFEFF, 0xFFFF, 0x7F)
_LETTERS = {
    **dict.fromkeys((*range(9), *range(14, 32), *_UNSEEN)),
    **dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)),
    **dict.fromkeys((0xF0B7, 0xF06C, 0xF09F), "•"),  # bullets of symbol fonts
    **dict.fromkeys((0xF0A7, 0xF06E, 0xF071), "▪"),
    0xF0D8: "‣",
    0xF0FC: "✓",
}


def spell_out(text: str) -> str:
    """A text without signs that are not seen, and with letters for what stands for several.

    >>> spell_out("o\\ufb03ce, pro\\u00advision, e\\u0301")
    'office, provision, é'
    """
    if text.isascii() and text.isprintable():
        return text
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return unicodedata.normalize("NFC", paired.translate(_LETTERS))
