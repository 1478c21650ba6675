"""Functions of regular expressions. DataFusion's are those of Rust, without look-around."""

from __future__ import annotations

import re

from blendfusion.services.dialects.functions.call import FunctionCall, Write, Written
from blendfusion.udfs.declare.arguments import sql_string

_GROUP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?P?<(?![=!]))", re.DOTALL)


def groups(pattern: str) -> int:
    """The number of groups of a pattern that are captured."""
    return sum(1 for found in _GROUP.finditer(pattern) if found[1])


def _pattern(call: FunctionCall, place: int, flags: str) -> str:
    text = call.text(place, "the pattern")
    return f"(?{flags}){text}" if flags else text


def replace_matches(*, groups_by: str, flags: str = "") -> Write:
    """``REGEXP_REPLACE(x, pattern, new)`` of every place; ``groups_by`` is the character before the
    number of a group in ``new``: a backslash or a dollar."""

    def write(call: FunctionCall) -> Written:
        new = call.text(2, "what replaces it") if len(call.arguments) > 2 else ""
        if groups_by == "\\":
            new = new.replace("$", "$$")
            ours = re.sub(r"\\(\\|\d)", lambda m: f"${{{m[1]}}}" if m[1] != "\\" else "\\", new)
        else:
            ours = re.sub(r"\\\$", "$$", re.sub(r"(?<!\\)\$(\d)", r"${\1}", new))
        every = "g" + flags
        return [
            "regexp_replace(",
            *call.value(0),
            ", ",
            *call.value(1),
            f", {sql_string(ours)}, '{every}')",
        ]

    return write


def extract_match(
    *, group: int | None = None, absent: str = "", whole: bool = False, flags: str = ""
) -> Write:
    """Writes a call that extracts a match of a pattern: its first group, or the whole match without
    groups (BigQuery); the group ``group``, by default 1 (Databricks); with ``whole``, the whole
    match (Snowflake, MySQL).

    ``absent`` is the result without a match; ``""``: NULL."""

    def write(call: FunctionCall) -> Written:
        pattern = _pattern(call, 1, flags)
        count, wanted = groups(pattern), 0 if whole else (group or 0)
        if group is not None and len(call.arguments) > 2:
            given = call.number(2)
            if given is None:
                raise call.refusal("the number of the group must be a literal here")
            wanted = given
        if wanted > count:
            raise call.refusal(f"the pattern has no group {wanted}", at=call.arguments[1][0])
        index = wanted or 1
        if wanted == 0 and count and (whole or group is not None):
            pattern = f"({pattern})"
        found = f"regexp_match({{0}}, {sql_string(pattern)})[{index}]"
        if absent:
            found = f"CASE WHEN {{0}} IS NOT NULL THEN coalesce({found}, '') END"
        return call.fill(found)

    return write


def whole_match(call: FunctionCall) -> Written:
    """The pattern describes all of the text, as in Snowflake."""
    return call.fill("regexp_like({0}, '^(?:' || {1} || ')$')")


def first_replaced(call: FunctionCall) -> Written:
    """PostgreSQL's REGEXP_REPLACE, whose groups are those of DataFusion, too."""
    if len(call.arguments) > 3:
        given = call.text(3, "the flags")
        if set(given) - set("gi"):
            raise call.refusal(f"the flags '{given}' have no equal here", "Flags: g and i.")
    new = call.literal(2)
    if new is not None and ("$" in new or "\\&" in new):
        raise call.refusal("'$' or '\\&' in what replaces it has no equal here")
    names = ", ".join(f"{{{i}}}" for i in range(len(call.arguments)))
    return call.fill(f"regexp_replace({names})")
