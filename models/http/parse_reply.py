"""Converts replies of chat models to canonical text: lenient in form, strict in content."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from blendfusion.models.constraints.constraint import closed_set, holds
from blendfusion.models.http.server_errors import encodable
from blendfusion.models.prompts.canonical import canonical
from blendfusion.types import Constraint

FIELD = "answer"
"""The one field of the JSON object that a server may be asked to reply with."""

MOST_CHARACTERS = 1_000_000
"""A longer reply states no answer."""
_MOST_SHORT = 10_000
"""The most characters of a value that is no text, list or struct."""
_THOUGHT, _THOUGHT_ENDS = "<think>", "</think>"
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
_TRUTH = {"true": "true", "yes": "true", "false": "false", "no": "false"}


def read_reply(reply: str, constraint: Constraint) -> str | None:
    """The canonical answer that ``reply`` states, or None if it states none within ``constraint``.

    Undone are wrappings (a JSON object with the field "answer", quotes, code fences, thoughts
    before the answer) and spellings of the same value; nothing is guessed from a sentence. Time is
    linear in the length of the reply, and no reply raises.

    >>> read_reply('{"answer": "Yes."}', Constraint("boolean"))
    'true'
    >>> read_reply("1,234", Constraint("integer"))
    '1234'
    >>> read_reply("probably 3", Constraint("integer")) is None
    True
    """
    if len(reply) > MOST_CHARACTERS:
        return None
    try:
        for candidate in map(encodable, _candidates(reply, constraint)):
            if candidate and holds(constraint, candidate):
                return candidate
    except (ValueError, ArithmeticError, RecursionError):
        return None  # nested too deeply, or a number that is none
    return None


def read_answer(reply: str, constraint: Constraint) -> str | None:
    """The canonical answer for a text that a person wrote. A text that fits ``constraint`` is
    unchanged; another spelling is read as in a model's reply. None for anything else.

    >>> read_answer("No", Constraint("boolean")), read_answer("sports", Constraint("choice", options=("Sports",)))
    ('false', 'Sports')
    """
    return reply if holds(constraint, reply) else read_reply(reply, constraint)


def _candidates(reply: str, constraint: Constraint) -> Iterator[str]:
    text = _without_thought(reply).strip()
    fenced = _FENCE.fullmatch(text)
    if fenced:
        text = fenced[1].strip()
    if constraint.kind == "struct":
        yield from _structs(text, constraint)
        return
    stated = _stated(text, constraint)
    if stated is not None:
        text = stated.strip()
    yield text
    if constraint.kind == "text":
        return
    bare = text.strip("\"'`*. \t\n")
    yield bare
    if len(bare) > _MOST_SHORT:
        return
    yield from _spellings(bare, constraint)


def _without_thought(reply: str) -> str:
    """The reply without its first thought, and without the blanks around that."""
    start = reply.find(_THOUGHT)
    end = reply.find(_THOUGHT_ENDS, start) if start >= 0 else -1
    if end < 0:
        return reply
    return reply[:start].rstrip() + reply[end + len(_THOUGHT_ENDS) :].lstrip()


def _stated(text: str, constraint: Constraint) -> str | None:
    """The value of a JSON reply as text; None if the reply is not one of our forms of JSON."""
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and FIELD in value:
        value = value[FIELD]
    elif constraint.kind == "text":  # text that happens to be JSON is the answer itself
        return None
    if isinstance(value, list):
        plain = all(isinstance(element, str | int | Decimal) for element in value)
        return canonical(value, constraint) if plain else None
    if isinstance(value, str | int | Decimal):
        return canonical(value, constraint)
    return None


def _structs(text: str, constraint: Constraint) -> Iterator[str]:
    """The object that a reply is, and the one in its field "answer"."""
    try:
        whole = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return
    if isinstance(whole, dict):
        for stated in (whole.get(FIELD), whole):
            if isinstance(stated, dict):
                yield canonical(_read(stated, constraint), constraint)


def _read(value: Any, constraint: Constraint) -> Any:
    """A part of a JSON object, its values in the spelling that we use; an empty text is no
    value."""
    if isinstance(value, dict):
        members = {f.name: f.constraint for f in constraint.fields}
        return {name: _read(part, members.get(name, constraint)) for name, part in value.items()}
    if isinstance(value, list):
        return [_read(element, constraint.item or Constraint()) for element in value]
    if value == "":
        return None
    if constraint.kind == "text" or not isinstance(value, str | int | Decimal):
        return value
    return read_reply(canonical(value, constraint), constraint) or value


def _spellings(text: str, constraint: Constraint) -> Iterator[str]:
    kind = constraint.kind
    if kind == "boolean":
        yield _TRUTH.get(text.casefold(), "")
    elif kind in ("integer", "number", "score"):
        yield _number(text, constraint)
    elif kind in ("date", "timestamp"):
        yield _moment(text, constraint)
    elif kind == "choice":
        same = [o for o in closed_set(constraint) or () if o.casefold() == text.casefold()]
        if len(same) == 1:
            yield same[0]


def _number(text: str, constraint: Constraint) -> str:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text):
        return ""
    try:
        return canonical(Decimal(text), constraint)
    except InvalidOperation:
        return ""


def _moment(text: str, constraint: Constraint) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return ""
    # A zone stays, and is refused: dropping it would change the moment.
    return canonical(moment, constraint)
