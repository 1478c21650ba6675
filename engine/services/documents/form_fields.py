"""The values of the fields of a PDF form, as words at the places of the fields."""

from __future__ import annotations

import ctypes
from bisect import bisect
from collections.abc import Sequence
from typing import Any

from blendfusion.services.documents.blocks import Box
from blendfusion.services.documents.letters import spell_out
from blendfusion.services.documents.pdf_words import Place
from blendfusion.services.documents.words import Word

_MOST_FIELDS = 5_000
_MOST_BYTES = 1 << 20
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


def field_words(raw: Any, form: Any, page: Any, place: Place) -> list[Word]:
    """The contents of the fields of a page: texts, choices, and boxes that are checked."""
    found: list[Word] = []
    for at in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        field = raw.FPDFPage_GetAnnot(page, at)
        if not field:
            continue
        try:
            if raw.FPDFAnnot_GetSubtype(field) == raw.FPDF_ANNOT_WIDGET:
                found += _words(_value(raw, form, field), _box(raw, field, place))
        finally:
            raw.FPDFPage_CloseAnnot(field)
    return found


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
    size = raw.FPDFAnnot_GetFormFieldValue(form, field, None, 0)
    if not 2 < size <= _MOST_BYTES:
        return ""
    held = (ctypes.c_ushort * (size // 2))()
    raw.FPDFAnnot_GetFormFieldValue(form, field, held, size)
    return bytes(held).decode("utf-16-le", "replace").rstrip("\0")


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
