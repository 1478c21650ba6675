"""Whether a recording ends before its own header, or its format, says so."""

from __future__ import annotations

_OPEN_ENDED = 0xFFFF_FF00
"""Sizes from here on are those of programs that wrote to a pipe and did not know them."""
_PAGE, _LAST = b"OggS", 4
_PAGE_HEAD = 27


def is_cut(data: bytes) -> bool:
    """Whether the end of a recording in WAV or Ogg is missing. Other formats are not known here.

    >>> is_cut(b"RIFF" + (1000).to_bytes(4, "little") + b"WAVE")
    True
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _wave_is_cut(data)
    return data[:4] == _PAGE and _ogg_is_cut(data)


def _wave_is_cut(data: bytes) -> bool:
    stated = int.from_bytes(data[4:8], "little")
    if 0 < stated < _OPEN_ENDED and stated + 8 > len(data) + 1:  # one byte of padding may miss
        return True
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if data[at : at + 4] == b"data":
            return size < _OPEN_ENDED and at + 8 + size > len(data)
        at += 8 + size + size % 2
    return False


def _ogg_is_cut(data: bytes) -> bool:
    """An Ogg stream ends with a page that says that it is the last one."""
    at = data.rfind(_PAGE)
    if at + _PAGE_HEAD > len(data):
        return True
    sizes = data[at + _PAGE_HEAD : at + _PAGE_HEAD + data[at + 26]]
    whole = len(sizes) == data[at + 26] and at + _PAGE_HEAD + len(sizes) + sum(sizes) <= len(data)
    return not whole or not data[at + 5] & _LAST
