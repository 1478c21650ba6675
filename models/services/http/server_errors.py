"""Quotes a server's error message, shortened, without the key and without prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from http.client import responses

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.prompts.parse_reply import encodable
from blendfusion.models.services.http.response import Response
from blendfusion.redaction import in_quotes, without_secrets

_SHOWN = 300
"""Characters of a server's own words that an error repeats."""
_ECHO = 16
"""So many characters in a row that also stand in a prompt come from it."""
_TOO_LONG = re.compile(
    r"context.(length|window|size)|(prompt|input|string) is too long|string too long"
    r"|request too large|reduce the length|maximum model length|max_new_tokens|tokens allowed",
    re.IGNORECASE,
)
"""From messages of OpenAI, vLLM, SGLang, TGI, llama-server, llama-cpp-python, Groq, Mistral,
Anthropic and Gemini, as of 2026."""
_QUOTED = re.compile(r"""(?<!\w)['"`‘“]([^'"`’”]{4,})['"`’”]""")
_PARTICULAR = re.compile(r"(?<![\w.'\"`])(\w*\d\w*(?:[-.,]\w+)*|(?<=\w )[A-Z]\w{2,})(?!\w)")
"""Numbers, and names within a sentence."""
_WORD = 4
"""A whole value that is shorter than this is no secret, and may be a word of the message."""


def words_of(response: Response) -> str:
    """The message of an error, as the servers in use state it; on one line, in full."""
    message = response.text
    try:
        message = _message(json.loads(message))
    except (ValueError, RecursionError):
        if message.lstrip().startswith("<"):  # a page of a proxy, whose title is the reason
            message = ""
    return " ".join(encodable(message).split())


def _message(body: Json) -> str:
    if isinstance(body, dict):
        for name in ("error", "message", "detail", "msg"):
            if body.get(name):
                return _message(body[name])
    if isinstance(body, list) and body:  # FastAPI: one entry a field, with what was sent in it
        return "; ".join(f"{_place(entry)}{_message(entry)}" for entry in body[:3])
    return body if isinstance(body, str) else json.dumps(body)


def _place(entry: Json) -> str:
    """The field that an entry of FastAPI's is about."""
    place = entry.get("loc") if isinstance(entry, dict) else None
    named = isinstance(place, list) and bool(place) and isinstance(place[-1], str)
    return f"{place[-1]}: " if named and isinstance(place, list) else ""


def says_too_long(words: str) -> bool:
    """True if a server's words of refusal say that the prompt does not fit the model's window.

    >>> says_too_long("This model's maximum context length is 2048 tokens. However, you requested 9000")
    True
    >>> says_too_long("The upstream server took too long to answer")
    False
    """
    return _TOO_LONG.search(words) is not None


def status_of(response: Response, key: str | None, prompt: Iterable[str] = ()) -> str:
    """The status of a reply, and what the server says of it; its name where it says nothing."""
    status, message = response.status, words_of(response)
    name = responses.get(status, "no words")
    return f"HTTP {status}: {quote_error(message, key, prompt) if message else name}"


def quote_error(words: str, key: str | None, prompt: Iterable[str] = ()) -> str:
    """``words`` in quotes, without the key and what they repeat of the prompt's texts, cut at 300
    characters.

    >>> quote_error("Bad input: My name is Ada Lovelace. for sk-1", "sk-1", ["My name is Ada Lovelace."])
    "'Bad input: … for …'"
    """
    return in_quotes(clean_error(words, key, prompt), _SHOWN)


def clean_error(words: str, key: str | None, prompt: Iterable[str] = ()) -> str:
    """``words`` as ``quote_error`` has them in its quotes."""
    words = without_secrets(" ".join(encodable(words[: 8 * _SHOWN]).split()), key)[: 2 * _SHOWN]
    for text in prompt:
        words = _without_pieces(words, " ".join(text.split()))
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"


def _without_pieces(words: str, text: str) -> str:
    """``words`` without what they repeat of ``text``, at least what is long, in quotes, a number or
    a name."""

    def shorter(found: re.Match[str]) -> str:
        return found[0].replace(found[1], "…") if found[1] in text else found[0]

    return _PARTICULAR.sub(shorter, _QUOTED.sub(shorter, _without(words, text)))


def _without(words: str, text: str) -> str:
    if len(text) < _ECHO:
        return words.replace(text, "…") if len(text) >= _WORD else words
    kept, place = [], 0
    while place < len(words):
        end = place + _ECHO
        if end > len(words) or words[place:end] not in text:
            kept.append(words[place])
            place += 1
            continue
        while end < len(words) and words[place : end + 1] in text:
            end += 1
        kept.append("…")
        place = end
    return "".join(kept)
