"""Translates a regular expression to a llama.cpp grammar (GBNF), which has nearly the same
operators."""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<times>[*+?]|\{[0-9]+(?:,[0-9]*)?\})(?P<manner>[?+]?)"
    r"|\[(?P<set>\^?\]?(?:\\.|[^\]\\])*)\]"
    r"|\\(?P<escape>x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)"
    r"|(?P<any>\.)|(?P<edge>[\^$])|(?P<plain>.)",
    re.DOTALL,
)
_IN_SET = re.compile(r"\\(?P<escape>x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|(?P<plain>.)", re.DOTALL)
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\r\n"}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


class _Unwritable(Exception):
    """The pattern uses a feature that GBNF or this translation lacks."""


def gbnf_of(pattern: str) -> str | None:
    r"""A grammar that admits the whole matches of ``pattern`` (only the ASCII part of \d, \w, \s);
    None for look-around, flags, boundaries, or possessive quantifiers.

    >>> print(gbnf_of(r"-?(0|[1-9][0-9]{0,2})"))
    root ::= "-"? ( "0" | [1-9] [0-9]{0,2} )
    """
    try:
        return f"root ::= {_body(pattern)}"
    except _Unwritable:
        return None


def gbnf_literal(text: str) -> str:
    """``text`` as a literal of GBNF.

    >>> print(gbnf_literal('say "no"'))
    "say \\"no\\""
    """
    escaped = re.sub(r'["\\]', r"\\\g<0>", text).replace("\n", r"\n").replace("\r", r"\r")
    return f'"{escaped}"'


def _body(pattern: str) -> str:
    written: list[str] = []
    depth, empty = 0, True  # empty: no item since the start of the alternative
    for part in _PARTS.finditer(pattern):
        if part["times"]:
            if empty or part["manner"] == "+" or written[-1][-1] in "*+?}":
                raise _Unwritable
            written[-1] += part["times"]  # greediness does not matter for a whole match
            continue
        if part["edge"]:
            if part.start() if part["edge"] == "^" else part.end() < len(pattern):
                raise _Unwritable
            continue
        if (part["bar"] or part["close"]) and empty:
            written.append('""')
        depth += bool(part["open"]) - bool(part["close"])
        if depth < 0:
            raise _Unwritable
        empty = bool(part["open"] or part["bar"])
        written.append(_piece(part, pattern))
    if depth or re.search(r"(^|[^\\])(\\\\)*\\$", pattern):
        raise _Unwritable
    return " ".join([*written, '""'] if empty else written)


def _piece(part: re.Match[str], pattern: str) -> str:
    if part["open"]:
        if part["open"] == "(" and pattern.startswith("?", part.end()):
            raise _Unwritable
        return "("
    if part["bar"] or part["close"]:
        return part[0]
    if part["set"] is not None:
        return _set(part["set"])
    if part["any"]:
        return r"[^\n]"
    if part["escape"] and part["escape"].lower() in _CLASSES:
        negated = "^" if part["escape"].isupper() else ""
        return f"[{negated}{_CLASSES[part['escape'].lower()]}]"
    if part["plain"] and part["plain"] in "\\[":
        raise _Unwritable
    return gbnf_literal(_unescape(part["escape"]) if part["escape"] else part["plain"])


def _set(inside: str) -> str:
    negated = inside.startswith("^")
    inside = inside[negated:]
    if "[" in re.sub(r"\\.", "", inside) or re.search(r"&&|--|~~", inside):
        raise _Unwritable  # only Rust has nested sets
    written = []
    for part in _IN_SET.finditer(inside):
        if part["escape"] in _CLASSES:
            written.append(_CLASSES[part["escape"]])
        elif part["escape"]:
            written.append(_hex_escape(_unescape(part["escape"])))
        else:
            written.append(
                part[0] if part[0].isalnum() or part[0] in "- " else _hex_escape(part[0])
            )
    return f"[{'^' * negated}{''.join(written)}]"


def _unescape(escape: str) -> str:
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape in _CONTROLS:
        return _CONTROLS[escape]
    if escape.isalnum():
        raise _Unwritable
    return escape


def _hex_escape(character: str) -> str:
    return f"\\x{ord(character):02X}" if character.isascii() else character
