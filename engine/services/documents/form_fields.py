"""The fields of PDF forms, texts that were written over pages, and comments."""

from __future__ import annotations

import ctypes
from bisect import bisect
from collections.abc import Callable, Sequence
from typing import Any

from blendfusion.services.documents.blocks import Block, Box
from blendfusion.services.documents.letters import spell_out
from blendfusion.services.documents.pdf_words import Place
from blendfusion.services.documents.words import Word

_MOST_FIELDS = 5_000
_MOST_BYTES = 1 << 20
_COMMENTS = tuple(
    f"FPDF_ANNOT_{kind}"
    for kind in "TEXT HIGHLIGHT UNDERLINE SQUIGGLY STRIKEOUT CARET SQUARE CIRCLE".split()
)
_CHECKED, _SIZE = "☒", 12.0
"""The sign of a box that is checked, and the greatest height of a line of a value in points."""


def join_labels(fields: Sequence[Word], words: Sequence[Word], rules: Sequence[Box]) -> None:
    """Let values begin where the label to their left ends, so that no column lies between the two;
    not over another field, or a rule."""
    order = sorted(words, key=lambda word: word.box[2])
    ends = [word.box[2] for word in order]
    for field in fields:
        left = field.box[0]
        near = reversed(order[: bisect(ends, left)])
        label = next((w for w in near if w.box[1] < field.middle < w.box[3]), None)
        if label is None:
            continue
        between = (label.box[2], field.box[1], left, field.box[3])
        if any(_overlap(other.box, between) for other in fields if other is not field):
            continue
        if not any(_overlap(rule, between) for rule in rules if rule[3] - rule[1] > field.height):
            field.box = (label.box[2] + 0.2 * field.height, *field.box[1:])


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def added_texts(
    raw: Any, form: Any, page: Any, place: Place
) -> tuple[list[Word], list[Word], list[Block]]:
    """The contents of the fields of a page (texts, choices, and boxes that are checked), the texts
    that were written over it, and the comments on it. ``form``: None, if the file has none."""
    fields, texts, comments = list[Word](), list[Word](), list[Block]()
    for at in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        added = raw.FPDFPage_GetAnnot(page, at)
        if not added:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(added)
            if kind == raw.FPDF_ANNOT_WIDGET and form is not None:
                fields += _words(_value(raw, form, added), _box(raw, added, place))
            elif raw.FPDFAnnot_GetFlags(added) & raw.FPDF_ANNOT_FLAG_HIDDEN:
                continue
            elif kind == raw.FPDF_ANNOT_FREETEXT:
                texts += _words(_string(raw, added, b"Contents"), _box(raw, added, place))
            elif kind in map(raw.__dict__.get, _COMMENTS):
                comments += _comment(raw, added, place)
        finally:
            raw.FPDFPage_CloseAnnot(added)
    return fields, texts, comments


def _comment(raw: Any, added: Any, place: Place) -> list[Block]:
    lines = spell_out(_string(raw, added, b"Contents")).splitlines()
    text = "\n".join(line.strip() for line in lines if line.strip())
    author = " ".join(_string(raw, added, b"T").split())
    box = _box(raw, added, place)
    return [Block("aside", f"{author}: {text}" if author else text, box)] if text else []


def _string(raw: Any, added: Any, name: bytes) -> str:
    return _text(lambda held, size: raw.FPDFAnnot_GetStringValue(added, name, held, size))


def _text(read: Callable[[Any, int], int]) -> str:
    """A text that PDFium writes where it is told, and whose size it says."""
    size = read(None, 0)
    if not 2 < size <= _MOST_BYTES:
        return ""
    held = (ctypes.c_ushort * (size // 2))()
    read(held, size)
    return bytes(held).decode("utf-16-le", "replace").rstrip("\0")


def _value(raw: Any, form: Any, field: Any) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, field)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        return _CHECKED if raw.FPDFAnnot_IsChecked(form, field) else ""
    if kind not in (
        raw.FPDF_FORMFIELD_TEXTFIELD,
        raw.FPDF_FORMFIELD_COMBOBOX,
        raw.FPDF_FORMFIELD_LISTBOX,
    ):
        return ""
    return _text(lambda held, size: raw.FPDFAnnot_GetFormFieldValue(form, field, held, size))


def _box(raw: Any, field: Any, place: Place) -> Box:
    rect = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(field, rect)
    return place(rect.left, rect.bottom, rect.right, rect.top)


def _words(value: str, box: Box) -> list[Word]:
    """A word for each line of a value, from the top of its field."""
    lines = [text for line in value.splitlines() if (text := " ".join(spell_out(line).split()))]
    step = min((box[3] - box[1]) / max(len(lines), 1), _SIZE)
    if len(lines) == 1:
        top = (box[1] + box[3] - step) / 2
        return [Word(lines[0], (box[0], top, box[2], top + step))]
    return [
        Word(text, (box[0], box[1] + at * step, box[2], box[1] + (at + 1) * step))
        for at, text in enumerate(lines)
    ]
