"""Exports and imports stored answers as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from blendfusion.models.protocol.gate import Unfit, object_of, stored_answer
from blendfusion.models.stores.entry import Entry
from blendfusion.models.stores.key import KEY_BYTES, KEY_VERSION


class WrongLine(ValueError):
    """A line that is no stored answer; says which and why."""


def lines_of(entries: Iterable[Entry]) -> Iterator[str]:
    """A line that says what follows, and one for each entry, each with its end of line."""
    yield json.dumps({"blendfusion": "answers", "keys": KEY_VERSION}) + "\n"
    for entry in entries:
        answer = entry.answer
        line = {
            "key": entry.key.hex(),
            "text": answer.text,
            "finish": answer.finish,
            "logprob": answer.logprob,
            "used": entry.used,
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"


def entries_of(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries that the lines of a file of answers have, one at a time. Raises WrongLine."""
    numbered = enumerate(lines, 1)
    header = _parse_line(*next(numbered, (1, "")))
    if header.get("blendfusion") != "answers":
        raise WrongLine("line 1: not answers that 'blendfusion cache export' wrote")
    if header.get("keys") != KEY_VERSION:
        raise WrongLine(f"line 1: keys of version {header.get('keys')!s:.20}, not {KEY_VERSION}")
    for number, line in numbered:
        if line.strip():
            yield _entry(number, _parse_line(number, line))


def _parse_line(number: int, line: str) -> dict[str, object]:
    try:
        found: dict[str, object] = object_of(line)
    except Unfit as problem:
        raise WrongLine(f"line {number}: {problem}") from None
    return found


def _entry(number: int, line: dict[str, object]) -> Entry:
    used, key = line.get("used"), _key(line.get("key"))
    if key is None:
        raise WrongLine(f"line {number}: 'key' is not {KEY_BYTES} bytes in hexadecimal")
    try:
        answer = stored_answer(line.get("text"), line.get("finish"), line.get("logprob"))
    except Unfit as problem:
        raise WrongLine(f"line {number}: {problem}") from None
    if isinstance(used, bool) or not isinstance(used, int) or not 0 <= used < 2**62:
        raise WrongLine(f"line {number}: 'used' is no time in seconds")
    return Entry(key, answer, used)


def _key(text: object) -> bytes | None:
    try:
        key = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return None
    return key if len(key) == KEY_BYTES else None
