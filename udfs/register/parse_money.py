"""``parse_money``: the amount that a text states, as decimal number, without a model."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

import pyarrow as pa
from datafusion import ScalarUDF, udf

NAME = "parse_money"
_TYPE = pa.decimal128(18, 4)
_MOST = Decimal(10) ** 14
_AMOUNT = re.compile(
    r"(?P<open>\()?\s*(?P<sign>[-+−])?\s*(?:[^\W\d_]{1,3}\.?|[$€£¥₹₽₩₺฿])?"
    + r"\s*(?P<minus>[-−])?\s*(?P<digits>\d[\d.,'’\s\u00a0\u202f]*)"
    + r"(?:(?<=[.,])[-–—]{1,2})?\s*(?:[^\W\d_]{1,4}\.?|[$€£¥₹₽₩₺฿])?\s*(?P<after>[-−])?\s*(?P<close>\))?"
)


def amount_of(text: str) -> Decimal | None:
    """The amount of a text that is an amount and nothing else; None for any other.

    The last of point and comma is the decimal mark, unless exactly three digits follow the only one
    there is, or one is there several times: amounts have at most two decimal places, so that these
    part thousands.

    >>> [str(amount_of(text)) for text in ("EUR 1.234,50", "$1,234.5", "1.234", "(12,00 €)")]
    ['1234.50', '1234.5', '1234', '-12.00']
    """
    found = _AMOUNT.fullmatch(" ".join(text.split()))  # one blank: the pattern has many `\s*`
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    digits = _digits(re.sub(r"['’\s\u00a0\u202f]", "", found["digits"]))
    if digits is None:
        return None
    signs = [found["sign"], found["minus"], found["after"]]
    negative = bool(found["open"]) != any(sign not in (None, "+") for sign in signs)
    amount = Decimal(digits)
    return -amount if negative else amount


def _digits(text: str) -> str | None:
    """The number with a point as its decimal mark; None where marks part no thousands."""
    text = text.rstrip(".,")
    marks = [character for character in text if character in ".,"]
    if not marks:
        return text
    last = marks[-1]
    whole, _, rest = text.rpartition(last)
    if len(set(marks)) == 1 and (len(marks) > 1 or len(rest) == 3):
        whole, rest = text, ""
    parts = re.split(r"[.,]", whole)
    if len(set(re.findall(r"[.,]", whole))) > 1 or (rest and last in whole):
        return None
    grouped = len(parts) == 1 or (
        0 < len(parts[0]) <= 3 and all(len(p) in (2, 3) for p in parts[1:])
    )
    if not grouped or (len(parts) > 1 and len(parts[-1]) != 3):
        return None
    return "".join(parts) + (f".{rest}" if rest else "")


def _column(texts: pa.Array) -> pa.Array:
    known = {text: _fit(text) for text in dict.fromkeys(texts.to_pylist())}
    return pa.array([known[text] for text in texts.to_pylist()], _TYPE)


def _fit(text: str | None) -> Decimal | None:
    amount = None if text is None else amount_of(text)
    if amount is None or abs(amount) >= _MOST:
        return None
    with localcontext() as context:
        context.prec = 40
        return amount.quantize(Decimal("0.0001"))


def parse_money_function() -> ScalarUDF:
    return udf(_column, [pa.string()], _TYPE, "immutable", NAME)
