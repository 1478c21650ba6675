"""The words of a page of a PDF with their places, from PDFium's characters."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from blendfusion.services.documents.blocks import Box, union
from blendfusion.services.documents.letters import spell_out
from blendfusion.services.documents.words import Word

Place = Callable[[float, float, float, float], Box]
"""From a box of the page's own space (from below) to one of the page that is shown."""
UNKNOWN = "\ufffd"
"""The sign for a glyph whose letter the file does not tell."""
_DIVIDED = "\x02"  # what PDFium gives for a hyphen at the end of a line
_IN_BULK = "\ufffe"  # and in the text of a page at once
_DIGITS = re.compile(r"(?<!\d)[0-9]{1,2}\Z")
_WORD = re.compile(r"[^\s\x02]*\x02|[^\s\x02]+")


class PageWords:
    """Reads the words of one page; ``turn`` are the page's quarter turns."""

    def __init__(self, raw: Any, text: Any, place: Place, turn: int) -> None:
        self._raw, self._text, self._place, self._turn = raw, text, place, turn
        self._loose = raw.FS_RECTF()
        self._name = ctypes.create_string_buffer(128)
        self._flags = ctypes.c_int()

    def read(self, count: int) -> dict[int, list[Word]]:
        """The words of ``count`` characters, in the order of the file, by their direction."""
        found: dict[int, list[Word]] = {}
        characters = self._characters(count)
        for match in _WORD.finditer(characters):
            text = match[0]
            start, stop = match.span()
            way = self._way(start)
            for first, last, box in self._pieces(start, stop, way):
                piece = spell_out(text[first - start : last - start].replace(_DIVIDED, "-"))
                if piece:
                    raised = "" if way else self._superscript(piece, first, last)
                    word = Word(piece, box, self._is_bold(first), raised=raised)
                    found.setdefault(way, []).append(word)
        return found

    def _characters(self, count: int) -> str:
        """One character for each index: at once where that is exact."""
        raw, text = self._raw, self._text
        held = (ctypes.c_ushort * (count + 1))()
        if raw.FPDFText_GetText(text, 0, count, held) == count + 1:
            bulk = bytes(held)[: 2 * count].decode("utf-16-le", "surrogatepass")
            if len(bulk) == count:
                return bulk.replace(_IN_BULK, _DIVIDED)
        codes = (raw.FPDFText_GetUnicode(text, at) for at in range(count))
        return "".join(chr(code) if 0 < code < 0x110000 else UNKNOWN for code in codes)

    def _way(self, at: int) -> int:
        """The direction of a character in quarter turns."""
        angle = self._raw.FPDFText_GetCharAngle(self._text, at)
        return (round(angle / (math.pi / 2)) - self._turn) % 4 if angle >= 0 else 0

    def _pieces(self, start: int, stop: int, way: int) -> Iterator[tuple[int, int, Box]]:
        """The parts of a word that stand together: mostly all of it."""
        first = self._box(start)
        last = first if stop - start == 1 else self._box(stop - 1)
        if first and last and not _apart(first, last, way, stop - start):
            yield start, stop, union([first, last])
        else:
            yield from self._slowly(start, stop, way)

    def _slowly(self, start: int, stop: int, way: int) -> Iterator[tuple[int, int, Box]]:
        begin = start
        boxes: list[Box] = []
        for at in range(start, stop):
            box = self._box(at)
            if box is None:
                continue
            if boxes and _apart(boxes[-1], box, way, 2):
                yield begin, at, union(boxes)
                begin, boxes = at, []
            boxes.append(box)
        if boxes:
            yield begin, stop, union(boxes)

    def _superscript(self, piece: str, first: int, last: int) -> str:
        """The digits at the end of a word that stand higher than its beginning."""
        digits = _DIGITS.search(piece)
        if digits is None or last - first <= len(digits[0]):
            return ""
        start, end = self._box(first), self._box(last - 1)
        if start is None or end is None:
            return ""
        height = end[3] - end[1]
        smaller = height <= 0.9 * (start[3] - start[1])
        return digits[0] if smaller and end[3] <= start[3] - 0.3 * height else ""

    def _box(self, at: int) -> Box | None:
        loose = self._loose
        if not self._raw.FPDFText_GetLooseCharBox(self._text, at, loose):
            return None
        return self._place(loose.left, loose.bottom, loose.right, loose.top)

    def _is_bold(self, at: int) -> bool:
        raw = self._raw
        if raw.FPDFText_GetFontWeight(self._text, at) >= 600:
            return True
        length = raw.FPDFText_GetFontInfo(self._text, at, self._name, 128, self._flags)
        name = self._name.raw[: min(max(length, 0), 128)].lower()
        return b"bold" in name or b"black" in name


def _apart(first: Box, last: Box, way: int, count: int) -> bool:
    """Whether the first and the last of ``count`` characters are too far apart for one word."""
    along, across = (0, 1) if way % 2 == 0 else (1, 0)
    height = max(first[across + 2] - first[across], last[across + 2] - last[across])
    gap = max(last[along] - first[along + 2], first[along] - last[along + 2])
    shift = abs(last[across + 2] - first[across + 2])
    return gap > (1.3 * (count - 2) + 0.6) * height or shift > 0.7 * height
