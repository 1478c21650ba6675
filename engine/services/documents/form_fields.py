"""The values of the fields of a PDF form, as words at the places of the fields."""

from __future__ import annotations

import ctypes
from typing import Any

from blendfusion.services.documents.blocks import Box
from blendfusion.services.documents.letters import spell_out
from blendfusion.services.documents.pdf_words import Place
from blendfusion.services.documents.words import Word

_MOST_FIELDS = 5_000
_MOST_BYTES = 1 << 20
_CHECKED, _SIZE = "☒", 12.0
"""The sign of a box that is checked, and the greatest height of a line of a value in points."""


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
    if len(lines) == 1:
        middle = (box[1] + box[3]) / 2
        half = min(box[3] - box[1], _SIZE) / 2
        return [Word(lines[0], (box[0], middle - half, box[2], middle + half))]
    step = (box[3] - box[1]) / max(len(lines), 1)
    return [
        Word(text, (box[0], box[1] + at * step, box[2], box[1] + (at + 1) * step))
        for at, text in enumerate(lines)
    ]
