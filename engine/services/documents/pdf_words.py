"""The words of a page of a PDF with their places, from PDFium's characters."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

from blendfusion.services.documents.blocks import Box, union
from blendfusion.services.documents.exponents import write_raised
from blendfusion.services.documents.letters import spell_out
from blendfusion.services.documents.words import Word

Place = Callable[[float, float, float, float], Box]
"""From a box of the page's own space (from below) to one of the page that is shown."""
UNKNOWN = "\ufffd"
"""The sign for a glyph whose letter the file does not tell."""
_DIVIDED = "\x02"  # what PDFium gives for a hyphen at the end of a line
_GENERATED = ("", "\r\n")
"""PDFium's signs between characters where the file has none."""
_IN_BULK = "\ufffe"  # and in the text of a page at once
_NUMBER = re.compile(r"(?<=.)([0-9]+)([.,;:!?)\]]*)\Z")
_RAISED = re.compile(r"[+\-\u2212\u2013]?[0-9]+")
_OTHER = re.compile(r"[^\s!-~]")
"""A character that may have to be spelled out."""
_CHINESE = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]")
"""Also Japanese and Korean."""
_DOWN = 3
"""The direction of words that run down."""
_WORD = re.compile(r"[^\s\x02]*\x02|[^\s\x02]+")


class PageWords:
    """Reads the words of one page, which is rotated by ``turn`` quarter turns. PDFium is asked
    about all words at once: a loop in Python over the characters would take most of the time."""

    def __init__(self, raw: Any, text: Any, place: Place, turn: int) -> None:
        self._raw, self._text, self._place, self._turn = raw, text, place, turn
        self._address = ctypes.cast(text, ctypes.c_void_p).value
        self._object_of = _by_address(raw.FPDFText_GetTextObject)
        self._read_box = _by_address(raw.FPDFText_GetLooseCharBox)
        self._is_unmapped = _by_address(raw.FPDFText_HasUnicodeMapError)
        self.letters = self.unmapped = 0
        """How many letters have been read, and how many of them the file does not tell."""
        self._name = ctypes.create_string_buffer(128)
        self._flags = ctypes.c_int()

    def read(self, count: int) -> dict[int, list[Word]]:
        """The words of ``count`` characters, in the order of the file, by their direction."""
        found: dict[int, list[Word]] = {}
        characters = self._mark_unmapped(self._characters(count))
        spans = [match.span() for match in _WORD.finditer(characters)]
        starts = [start for start, _ in spans]
        firsts, lasts = self._boxes(starts), self._boxes([stop - 1 for _, stop in spans])
        is_plain = _OTHER.search(characters) is None
        each = zip(spans, firsts, lasts, self._styles(starts), strict=True)
        end_before = 0
        box_before: Box | None = None
        for (start, stop), first, last, (way, bold, fixed) in each:
            if first and last and not _apart(first, last, way, stop - start):
                pieces = [(start, stop, _around(first, last), way)]
            else:
                pieces = [*self._slowly(start, stop, way)]
            for begin, end, box, way in pieces:
                piece = characters[begin:end]
                if not is_plain:
                    piece = spell_out(piece.replace(_DIVIDED, "-"))
                if not piece:
                    continue
                strong = bold if begin == start else self._style(begin)[1]
                word = Word(piece, box, strong, fixed=fixed)
                words = found.setdefault(way, [])
                if way or not first or not last:
                    words.append(word)
                    continue
                if piece[-1] < "A" and (begin, end) == (start, stop):
                    self._find_raised(word, first, last, end)
                bare = begin == start and characters[begin - 1 : begin] != " "
                bare = bare and characters[end_before:begin] in _GENERATED
                if bare and words and box_before and _touch(box_before, first):
                    _continue(words[-1], word, box_before, first)
                else:
                    words.append(word)
            end_before, box_before = stop, last
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

    def _mark_unmapped(self, characters: str) -> str:
        """Characters, with a sign for those that PDFium takes for a letter only because a glyph has
        its number."""
        unmapped = [*map(self._is_unmapped, repeat(self._address), range(len(characters)))]
        if 1 in unmapped:
            known = list(characters)
            for at, number in enumerate(unmapped):
                if number == 1:
                    letter = known[at] = _letter_of(characters[at])
                    # Fonts without names are made of pictures, whose codes are often ASCII's.
                    self.unmapped += not letter.isascii() or (letter != " " and self._has_name(at))
            characters = "".join(known)
        self.letters = sum(map(len, characters.split()))
        return characters

    def _has_name(self, at: int) -> bool:
        """Whether the font of a character has a name."""
        return bool(self._raw.FPDFText_GetFontInfo(self._text, at, None, 0, self._flags) > 1)

    def _styles(self, places: Sequence[int]) -> list[tuple[int, bool, bool]]:
        """The styles of characters; those of one object, as a line is, have the same."""
        objects = map(self._object_of, repeat(self._address), places)
        found: list[tuple[int, bool, bool]] = []
        style, before = (0, False, False), None
        for at, what in zip(places, objects, strict=True):
            if what is None or what != before:
                style, before = self._style(at), what
            found.append(style)
        return found

    def _style(self, at: int) -> tuple[int, bool, bool]:
        """The direction of a character in quarter turns, whether its font is bold, and whether the
        letters of that have one width."""
        raw, text, name = self._raw, self._text, self._name
        angle = raw.FPDFText_GetCharAngle(text, at)
        way = -(round(angle / (math.pi / 2)) + self._turn) % 4 if angle >= 0 else 0  # clockwise
        length = raw.FPDFText_GetFontInfo(text, at, name, len(name), self._flags)
        # A longer name is not written.
        lower = name.value.lower() if 0 < length <= len(name) else b""
        bold = b"bold" in lower or b"black" in lower or raw.FPDFText_GetFontWeight(text, at) >= 600
        return way, bold, bool(self._flags.value & 1) or b"courier" in lower

    def _boxes(self, places: Sequence[int]) -> list[Box | None]:
        """The boxes of characters; None where PDFium knows none."""
        if not places:
            return []
        held = (ctypes.c_float * (4 * len(places)))()  # left, top, right, bottom
        rooms = range(ctypes.addressof(held), ctypes.addressof(held) + ctypes.sizeof(held), 16)
        known = [*map(self._read_box, repeat(self._address), places, rooms)]
        sides = memoryview(held).cast("B").cast("f").tolist()
        boxes: list[Box | None] = [
            *map(self._place, sides[0::4], sides[3::4], sides[2::4], sides[1::4])
        ]
        if all(known):
            return boxes
        return [box if is_known else None for box, is_known in zip(boxes, known, strict=True)]

    def _slowly(self, start: int, stop: int, way: int) -> Iterator[tuple[int, int, Box, int]]:
        """The parts of a word that stand together, with their directions: what is written from top
        to bottom is read as if it were turned."""
        begin = start
        boxes: list[Box] = []
        down = False
        for at, box in zip(range(start, stop), self._boxes(range(start, stop)), strict=True):
            if box is None:
                continue
            if boxes:
                below = not way and _is_below(boxes[-1], box)
                if not below if down else _apart(boxes[-1], box, way, 2):
                    if below and len(boxes) == 1:
                        down = True
                    else:
                        yield begin, at, union(boxes), _DOWN if down else way
                        begin, boxes, down = at, [], False
            boxes.append(box)
        if boxes:
            yield begin, stop, union(boxes), _DOWN if down else way

    def _find_raised(self, word: Word, first: Box, last: Box, end: int) -> None:
        """Find the digits at the end of a word that stand higher than its beginning; its last
        character is before the place ``end``."""
        number = _NUMBER.search(word.text)
        if number is None:
            return
        digits, behind = number.groups()
        if not behind and not _is_raised(first, last):
            return
        stop = end - len(behind)
        count = 0
        for box in reversed(self._boxes(range(stop - len(digits), stop))):
            if box is None or not _is_raised(first, box):
                break
            count += 1
        if count:
            before = word.text[: number.end(1) - count]
            word.raised, word.behind = digits[-count:], len(behind)
            word.text = before + write_raised(before, word.raised) + behind


def _letter_of(code: str) -> str:
    """A letter for a glyph of which no more than its number is known. Some fonts number their
    glyphs as Latin-1 or UTF-16 does; the third one of most others is a blank."""
    if code in "\x03\xa0":
        return " "
    is_likely = code <= "\xff" or _CHINESE.match(code)
    return code if is_likely and code.isprintable() else UNKNOWN


def _is_raised(first: Box, box: Box) -> bool:
    """Whether a character is smaller than another, and stands higher."""
    height = box[3] - box[1]
    return height <= 0.9 * (first[3] - first[1]) and box[3] <= first[3] - 0.3 * height


def _is_below(before: Box, box: Box) -> bool:
    """Whether a character stands below another, as in text that runs down."""
    shared = min(before[2], box[2]) - max(before[0], box[0])
    step, height = box[1] - before[1], before[3] - before[1]
    narrow = min(before[2] - before[0], box[2] - box[0])
    return shared >= 0.5 * narrow and 0.5 * height <= step <= 1.6 * height


def _touch(before: Box, first: Box) -> bool:
    """Whether no blank is between two characters, as where the line of the second is raised."""
    height, other = sorted([before[3] - before[1], first[3] - first[1]])
    if height < 0.45 * other:
        return False
    shared = min(before[3], first[3]) - max(before[1], first[1])
    return -0.2 * height <= first[0] - before[2] <= 0.1 * height and shared >= 0.3 * height


def _continue(word: Word, rest: Word, before: Box, first: Box) -> None:
    """Add the rest of a word."""
    text = rest.text
    if rest.raised:
        word.raised, word.behind = rest.raised, rest.behind
    elif word.raised:
        word.behind += len(text)
    elif _is_raised(before, first) and (digits := _RAISED.match(text)):
        word.raised, word.behind = digits[0], len(text) - len(digits[0])
        text = write_raised(word.text, text)
    word.text += text
    word.box = _around(word.box, rest.box)


def _by_address(function: Any) -> Any:
    """A function of PDFium that takes and gives addresses as numbers, in half of the time."""
    names = [function.restype, *function.argtypes]
    plain = [kind if kind is ctypes.c_int else ctypes.c_void_p for kind in names]
    return ctypes.CFUNCTYPE(*plain)(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _around(first: Box, last: Box) -> Box:
    """The smallest box around two, most of which stand side by side."""
    left, top, right, bottom = first
    other_left, other_top, other_right, other_bottom = last
    return (
        left if left <= other_left else other_left,
        top if top <= other_top else other_top,
        right if right >= other_right else other_right,
        bottom if bottom >= other_bottom else other_bottom,
    )


def _apart(first: Box, last: Box, way: int, count: int) -> bool:
    """Whether the first and the last of ``count`` characters are too far apart for one word."""
    if way % 2:
        (top, left, bottom, right), (up, start, down, end) = first, last
    else:
        (left, top, right, bottom), (start, up, end, down) = first, last
    height = bottom - top if bottom - top > down - up else down - up
    gap = start - right if start - right > left - end else left - end
    return gap > (1.3 * (count - 2) + 0.6) * height or abs(down - bottom) > 0.7 * height
