"""Checks a user's regular expression, and matches texts against it.

The engine that enforces patterns while decoding (llguidance) also matches them, so both give a
pattern the same meaning: character classes of Unicode, case, counts. It reads each byte of a text
once, whatever the pattern, without backtracking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from blendfusion.errors import ArgumentError

MOST_NESTED = 10_000
"""Maximum product of nested counts: ``((a{9}){9}){9}`` is 729."""
STEP_FUEL = 4_000_000
r"""Work of llguidance for one token (about 14,000 units per millisecond). Its default of 200,000
ends within answers to common patterns (``(\w{1,20} ?){1,20}``). With this limit, every tested
pattern within ``MOST_NESTED`` completed, in at most 0.1 s per token."""

_TOKEN = re.compile(r"\\[pP]\{[^}]*\}|\\x\{[^}]*\}|\\.|\{[0-9]+(?:,[0-9]*)?\}|.", re.DOTALL)


def check(pattern: str) -> None:
    """Raises ArgumentError, naming the pattern, if no answer can be written under it: the pattern
    is invalid, not regular, matches nothing, or has counts that multiply to too much."""
    nested = _largest_count(pattern)
    if nested > MOST_NESTED:
        raise ArgumentError(
            f"the regex {pattern!r} is too large: its nested counts multiply to {nested:,}",
            hint=f"The maximum is {MOST_NESTED:,}: use fewer nested counts, or * or + inside.",
        )
    _automaton(pattern)


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches. Raises as ``check`` does.

    >>> matches("[A-Z]{2}|x", "AB"), matches("[A-Z]{2}|x", "ABx")
    (True, False)
    """
    automaton = _automaton(pattern).deep_copy()
    data = list(text.encode("utf-8", "surrogatepass"))
    return bool(automaton.try_consume_tokens(data) == len(data) and automaton.is_accepting())


def without_anchors(pattern: str) -> str:
    r"""The pattern as a part of a larger one. The whole text must match, so ``^`` and ``$`` have no
    effect where they can hold, and nothing matches where they cannot.

    >>> without_anchors(r"^\$[^$]+$")
    '(?:)\\$[^$]+(?:)'
    """
    return "".join(
        "(?:)" if token in ("^", "$", r"\A", r"\z") and not inside else token
        for token, inside in _tokens(pattern)
    )


@lru_cache(maxsize=256)
def _automaton(pattern: str) -> Any:
    """A matcher that follows the pattern byte by byte. It is cached: copy it before use."""
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

    try:
        pattern.encode()
    except UnicodeEncodeError:
        raise _refusal(pattern, "error: it holds half of a surrogate pair") from None
    whole = f"(?:{pattern})" if pattern.endswith("\\") else pattern  # else it would be left out
    automaton = LLMatcher(
        LLTokenizer("byte"),
        LLMatcher.grammar_from_regex(whole),
        log_level=0,
        limits=LLParserLimits(step_lexer_fuel=STEP_FUEL),
    )
    if automaton.is_error():
        raise _refusal(pattern, automaton.get_error())
    first = automaton.deep_copy()
    first.compute_bitmask()
    if first.is_error():
        raise _refusal(pattern, first.get_error())
    return automaton


def _refusal(pattern: str, reason: str) -> ArgumentError:
    if re.search("look-?around|backreference", reason):
        return ArgumentError(
            f"the regex {pattern!r} uses look-around or back-references",
            hint="Only regular languages can constrain decoding: rewrite it without them.",
        )
    if reason.startswith("NoExtension"):
        return ArgumentError(
            f"the regex {pattern!r} matches no text", hint="No answer could satisfy it."
        )
    if "lexer error" in reason:
        return ArgumentError(
            f"the regex {pattern!r} is too large to evaluate", hint="Reduce its counts."
        )
    found = re.search("error: (.*)", reason)
    return ArgumentError(
        f"the regex {pattern!r} is invalid: {found[1] if found else reason.splitlines()[0]}",
        hint="The whole answer must match; escape special characters with a backslash.",
    )


def _tokens(pattern: str) -> Iterator[tuple[str, bool]]:
    """The tokens of the pattern, each with whether it is inside brackets."""
    depth = 0
    before = ""
    for token in _TOKEN.findall(pattern):
        yield token, depth > 0
        if token == "[":
            depth += 1
        elif (
            token == "]" and depth and before not in ("[", "[^")
        ):  # "]" may be the first character inside
            depth -= 1
        before = before + token if before == "[" and token == "^" else token


def _largest_count(pattern: str) -> int:
    """The largest product of nested counts; 1 without any.

    >>> _largest_count("(a{2}b{3,4}){5}c{1,9}")
    20
    """
    largest = 1
    groups: list[tuple[int, int]] = [
        (1, 0)
    ]  # for each open group: (largest product, its own counts)
    last = (1, 0)
    for token, inside in _tokens(pattern):
        if inside or token in ("*", "+", "?"):
            continue
        if token == "(":
            groups.append((1, 0))
        elif token == ")" and len(groups) > 1:
            last = groups.pop()
        elif token[0] == "{" and len(token) > 1:
            count = max(int(number) for number in token[1:-1].split(",") if number)
            last = (last[0] * max(1, count), last[1] + 1)
        else:
            last = (1, 0)
        groups[-1] = max(groups[-1], last)
        if last[1] > 1:
            largest = max(largest, last[0])
    return largest
