"""Equations of DOCX in one line: ``(a+b)/2``, ``x^2``, ``√(n+1)``."""

from __future__ import annotations

from dataclasses import dataclass, field

MATH = (
    "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "http://purl.oclc.org/ooxml/officeDocument/math",
)
"""The elements of equations."""
_SIGNS = {"num": "", "den": "/", "sup": "^", "sub": "_", "rad": "√", "d": ""}
"""The sign before each part, which stands in brackets if it is longer than a character."""


@dataclass(slots=True)
class Equation:
    """Writes the parts of an equation into the text of its paragraph."""

    _begun: list[int] = field(default_factory=list)
    """Where each open part begins."""
    _brackets: list[dict[str, str]] = field(default_factory=list)
    _large: str = ""
    """The sign of a sum, a product or an integral."""

    def start(self, tag: str, value: str | None, parts: list[str]) -> None:
        if tag in _SIGNS:
            self._begun.append(len(parts))
            if tag == "d":
                self._brackets.append({"begChr": "(", "endChr": ")"})
        elif tag in ("begChr", "endChr") and self._brackets:
            self._brackets[-1][tag] = value or ""
        elif tag == "naryPr":
            self._large = "∫"
        elif tag == "chr" and self._large:
            self._large = value or ""

    def end(self, tag: str, parts: list[str]) -> None:
        if tag == "naryPr":
            parts.append(self._large)
            self._large = ""
        elif tag in _SIGNS and self._begun:
            at = self._begun.pop()
            text = "".join(parts[at:])
            if tag == "d" and self._brackets:
                around = self._brackets.pop()
                parts[at:] = [around["begChr"], text, around["endChr"]]
            elif text:
                whole = len(text) == 1 or (text[0], text[-1]) == ("(", ")")
                parts[at:] = [_SIGNS[tag], text if whole else f"({text})"]
