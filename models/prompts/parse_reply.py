"""Converts replies of chat models to canonical text: lenient in form, strict in content."""

from __future__ import annotations

import datetime
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from blendfusion.models.constraints.constraint import fitting, holds
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.prompts.thoughts import without_thoughts
from blendfusion.types import Constraint

FIELD = "answer"
"""The one field of the JSON object that a server may be asked to reply with."""

MOST_CHARACTERS = 1_000_000
"""A longer reply states no answer."""
_MOST_SHORT = 10_000
"""The most characters of a value that is no text, list or struct."""
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
_HALF = re.compile("[\ud800-\udfff]")
_ALONE = re.compile("(?:[\ud800-\udbff](?![\udc00-\udfff]))+|(?<![\ud800-\udbff])[\udc00-\udfff]+")
_AROUND = "\"'`*. \t\n"
_TRUTH = {"true": "true", "yes": "true", "false": "false", "no": "false"}


class _NumberText(str):
    """A number of a JSON text, as it was written there."""

    __slots__ = ()


def encodable(text: str) -> str:
    """``text`` with a sign for each half of a surrogate pair, which JSON may hold and nothing can
    encode.

    >>> encodable("cut in an emoji: \\ud83d")
    'cut in an emoji: �'
    """
    if text.isascii() or not _HALF.search(text):
        return text
    # In runs: a codec handles one half at a time, in a microsecond each.
    whole = _ALONE.sub(lambda found: "�" * len(found[0]), text)
    return whole.encode("utf-16", "surrogatepass").decode("utf-16")


def read_reply(reply: str, constraint: Constraint) -> str | None:
    """The canonical answer that ``reply`` states, or None if it states none within ``constraint``.

    A reply that is an option, letter for letter, is that option; a pattern sees what was written.
    Else wrappings are undone (a JSON object with the field "answer", quotes, code fences, thoughts)
    and spellings of the same value; nothing is guessed from a sentence. A reply that ends within a
    thought states nothing. A field of a struct that fits nothing is null, unless all do. Time is
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
    if constraint.kind == "choice":
        yield from (reply, reply.strip())
    # Marks of thoughts within JSON are part of a value.
    spoken = reply if _is_json(reply, constraint) else without_thoughts(reply)
    if spoken is None:
        return
    text = spoken.strip()
    fenced = _FENCE.fullmatch(text)
    if fenced:
        text = fenced[1].strip()
    if constraint.kind == "struct":
        yield from _structs(text, constraint)
    elif constraint.kind in ("choice", "regex"):
        yield from _as_written(spoken, text, constraint)
    else:
        yield from _values(text, constraint)


def _as_written(spoken: str, text: str, constraint: Constraint) -> Iterator[str]:
    """The readings of a reply under a choice or a pattern: first the reply itself, unless it is the
    JSON object that was asked for."""
    stated = _value_text(text, constraint)
    forms = (
        [spoken, text] if stated is None or text[:1] != "{" else [stated, stated.strip(), spoken]
    )
    forms += [stated or "", text.strip(_AROUND), (stated or "").strip(_AROUND)]
    for form in dict.fromkeys(forms):
        yield form
        if constraint.kind == "choice":
            yield option_meant(constraint.options, form) or ""


def _values(text: str, constraint: Constraint) -> Iterator[str]:
    stated = _value_text(text, constraint)
    if stated is not None:
        text = stated.strip()
    yield text
    if constraint.kind == "text":
        return
    bare = text.strip(_AROUND)
    yield bare
    if len(bare) <= _MOST_SHORT:
        yield from _spellings(bare, constraint)


def _json(text: str) -> Any:
    """A JSON text, with its numbers as written. Raises ValueError and RecursionError."""
    return json.loads(
        text, parse_float=_NumberText, parse_int=_NumberText, parse_constant=_NumberText
    )


def _is_json(text: str, constraint: Constraint) -> bool:
    """Whether a reply is an object or an array of JSON; of a text the object that was asked for."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        stated = _json(text)
    except (ValueError, RecursionError):
        return False
    return constraint.kind != "text" or (isinstance(stated, dict) and FIELD in stated)


def _value_text(text: str, constraint: Constraint) -> str | None:
    """The value of a JSON reply as text; None if the reply is not one of our forms of JSON."""
    try:
        value = _json(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and FIELD in value:
        value = value[FIELD]
    elif constraint.kind == "text":  # text that happens to be JSON is the answer itself
        return None
    if isinstance(value, list):
        return (
            canonical(_items(value, constraint), constraint) if all(map(_is_plain, value)) else None
        )
    return canonical(_number_in(value, constraint), constraint) if _is_plain(value) else None


def _items(elements: Sequence[Any], constraint: Constraint) -> list[Any]:
    item = constraint.item or Constraint()
    return [_read(element, item) if element != "" else element for element in elements]


def _structs(text: str, constraint: Constraint) -> Iterator[str]:
    """The object that a reply is, and the one in its field "answer"."""
    try:
        whole = _json(text)
    except (ValueError, RecursionError):
        return
    if isinstance(whole, dict):
        for stated in (whole.get(FIELD), whole):
            if isinstance(stated, dict):
                yield fitting(canonical(_read(stated, constraint), constraint), constraint) or ""


def _read(value: Any, constraint: Constraint) -> Any:
    """A part of a JSON object, its values in the spelling that we use; an empty text is no
    value."""
    if isinstance(value, dict):
        members = {f.name: f.constraint for f in constraint.fields}
        return {name: _read(part, members.get(name, Constraint())) for name, part in value.items()}
    if isinstance(value, list):
        present = (element for element in value if element not in (None, ""))
        return [_read(element, constraint.item or Constraint()) for element in present]
    if not _is_plain(value):
        return value
    if value == "":
        return None
    stated = _number_in(value, constraint)
    if constraint.kind == "text":
        return stated
    return read_reply(canonical(stated, constraint), constraint) or stated


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bool)


def _number_in(value: Any, constraint: Constraint) -> Any:
    """The number that a JSON text has there; as written where an answer is a text of its own."""
    if not isinstance(value, _NumberText):
        return value
    if constraint.kind in ("choice", "regex", "text"):
        return str(value)
    try:
        return Decimal(value)
    except InvalidOperation:  # its exponent is beyond all that is counted
        return str(value)


def option_meant(options: Sequence[str], text: str) -> str | None:
    """The one option that ``text`` is: letter for letter, or else but for blanks around it, for the
    Unicode form of its letters, for their case. None if it is none, or one of several.

    >>> option_meant(("Rome  ", "Oslo"), "Rome"), option_meant(("US", "us"), "Us")
    ('Rome  ', None)
    """
    for spelling in _SPELLINGS:
        same = _by_spelling(tuple(options), spelling).get(spelling(text), ())
        if same:
            return same[0] if len(same) == 1 else None
    return None


def _same_letters(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


def _same_word(text: str) -> str:
    return unicodedata.normalize("NFC", _same_letters(text).casefold())


_SPELLINGS: tuple[Callable[[str], str], ...] = (str, str.strip, _same_letters, _same_word)


@lru_cache(maxsize=256)
def _by_spelling(
    options: tuple[str, ...], spelling: Callable[[str], str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for option in options:
        found[spelling(option)] = (*found.get(spelling(option), ()), option)
    return found


def _spellings(text: str, constraint: Constraint) -> Iterator[str]:
    kind = constraint.kind
    if kind == "boolean":
        yield _TRUTH.get(text.casefold(), "")
    elif kind in ("integer", "number", "score"):
        yield _number(text, constraint)
    elif kind in ("date", "timestamp"):
        yield _moment(text, constraint)


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
