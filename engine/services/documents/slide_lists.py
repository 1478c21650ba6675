"""The paragraphs of a text of a slide, with the labels of those that are items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blendfusion.services.documents.docx_math import Equation
from blendfusion.services.documents.docx_numbers import BULLET, in_form
from blendfusion.services.documents.exponents import write_raised

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math"
_TEXTS = (f"{_DRAWING}t", f"{_MATH}}}t")
_INDENT = "  "
_FORMS = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
}


def paragraphs_of(frame: Any, are_items: bool) -> list[tuple[str, bool]]:
    """The text of each paragraph that has one, and whether it is an item of a list, whose text
    begins with its label. ``are_items``: unless the paragraph says that it has no label."""
    found: list[tuple[str, bool]] = []
    counts: dict[int, int] = {}
    for paragraph in frame.paragraphs:
        text = _text_of(paragraph._p)
        if not text:
            continue
        depth = paragraph.level
        counts = {level: count for level, count in counts.items() if level <= depth}
        label = _label(paragraph._p.find(f"{_DRAWING}pPr"), are_items, depth, counts)
        found.append((f"{_INDENT * depth}{label} {text}" if label else text, bool(label)))
    return found


def _text_of(paragraph: Any) -> str:
    """Its text, that of its fields and formulas too."""
    parts: list[str] = []
    equation, raised, begins = Equation(), False, 0
    for event, element in _walk(paragraph):
        space, _, tag = str(element.tag).rpartition("}")
        if space == _MATH:
            if event == "start":
                equation.start(tag, element.get(f"{_MATH}}}val"), parts)
            else:
                equation.end(tag, parts)
        if event == "start":
            if tag in ("r", "fld"):
                begins, raised = len(parts), False
            elif tag == "rPr":
                raised = _whole(element.get("baseline", "0")) > 0
            continue
        if element.tag in _TEXTS:
            parts.append(element.text or "")
        elif element.tag == f"{_DRAWING}br":
            parts.append("\n")
        elif tag in ("r", "fld") and raised:
            parts[begins:] = [write_raised("".join(parts[:begins]), "".join(parts[begins:]))]
    return "".join(parts).strip()


def _walk(element: Any) -> Iterator[tuple[str, Any]]:
    """The elements within one, where they start and where they end."""
    open_ones = [iter([element])]
    around: list[Any] = []
    while open_ones:
        inner = next(open_ones[-1], None)
        if inner is None:
            open_ones.pop()
            if around:
                yield "end", around.pop()
            continue
        yield "start", inner
        around.append(inner)
        open_ones.append(iter(inner))


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _label(properties: Any, is_item: bool, depth: int, counts: dict[int, int]) -> str:
    """The label of a paragraph; ``counts`` has the last number of each depth."""
    numbers = bullet = none = None
    if properties is not None:
        numbers = properties.find(f"{_DRAWING}buAutoNum")
        bullet = properties.find(f"{_DRAWING}buChar")
        none = properties.find(f"{_DRAWING}buNone")
    if numbers is None:
        counts.pop(depth, None)
        return BULLET if bullet is not None or (is_item and none is None) else ""
    first = numbers.get("startAt", "1")
    number = counts.get(depth, int(first) - 1 if first.isascii() and first.isdigit() else 0) + 1
    counts[depth] = number
    return _number_text(number, numbers.get("type", "arabicPeriod"))


def _number_text(number: int, kind: str) -> str:
    """A number as its kind says: "arabicPeriod" is "3.", "alphaLcParenR" is "c)"."""
    form = next((kept for name, kept in _FORMS.items() if kind.startswith(name)), "decimal")
    shown = in_form(number, form)
    if kind.endswith("ParenBoth"):
        return f"({shown})"
    if kind.endswith("ParenR"):
        return f"{shown})"
    return f"{shown}." if kind.endswith("Period") else shown
