"""Finds e-mail addresses, telephone numbers and card numbers by rules, and replaces spans."""

from __future__ import annotations

import re
from collections.abc import Sequence

_EMAIL = re.compile(r"[\w.+%'-]*[\w+%-]@[\w-]+(?:\.[\w-]+)+")
_CARD = re.compile(r"(?<![\d])\d(?:[ -]?\d){12,18}(?!\d)")
_PHONE = re.compile(
    r"(?<![\w.,/+-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{1,4}\)[ .-]?)?\d{2,}(?:[ .\u2010\u2011/-]\d{2,})*(?!\w|[.,]\d)"
)
_PLAIN = re.compile(r"\d{10,}|\d{3} \d{3} \d{4}")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./-]\d\d?[./-]\d{2,4}")
_FEWEST, _MOST = 7, 15
"""Digits of a telephone number."""


def without_personal_data(text: str) -> str:
    """A text with a mark for each e-mail address, card number and telephone number.

    >>> without_personal_data("Call +49 30 1234567 or mail a.b@example.org, 4111 1111 1111 1111.")
    'Call [PHONE] or mail [EMAIL], [CARD].'
    """
    text = _EMAIL.sub("[EMAIL]", text)
    text = _CARD.sub(lambda found: "[CARD]" if _is_card(found[0]) else found[0], text)
    return _PHONE.sub(lambda found: "[PHONE]" if _is_phone(found[0]) else found[0], text)


def without_spans(text: str, spans: Sequence[str | None], mark: str) -> str:
    """A text with ``mark`` for each whole occurrence of a span, the longest first.

    >>> without_spans("Ann met Anna Lee.", ["Ann", "Anna Lee"], "[X]")
    '[X] met [X].'
    """
    present = sorted({s.strip() for s in spans if s and s.strip()}, key=lambda s: (-len(s), s))
    if not present:
        return text
    own = "|".join(rf"(?<!\w){re.escape(span)}(?!\w)" for span in present)
    marks = r"\[(?:EMAIL|PHONE|CARD)\]"
    return re.sub(f"({marks})|{own}", lambda found: found[1] or mark, text)


def _is_card(text: str) -> bool:
    """Whether the digits have the check digit of card numbers (Luhn)."""
    if _DATE.search(text):
        return False
    digits = [int(c) for c in text if c.isdigit()][::-1]
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)) % 10 == 0


def _is_phone(text: str) -> bool:
    digits = sum(c.isdigit() for c in text)
    if not _FEWEST <= digits <= _MOST or _DATE.search(text):
        return False
    # Groups between blanks, and fewer than ten digits on end, may be any numbers.
    return text[0] in "+(0" or any(c in text for c in "-./") or bool(_PLAIN.fullmatch(text))
