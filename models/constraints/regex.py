"""A user's regular expression: whether it can shape answers, and whether a text matches it.

The engine that writes answers under a pattern (llguidance) also reads them back, so that both mean
the same by it: character classes of Unicode, case, counts. It looks at each byte of a text once,
whatever the pattern; no text makes it go back and try again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from blendfusion.errors import ArgumentError

MOST_NESTED = 10_000
"""What counts inside one another may multiply to: ``((a{9}){9}){9}`` is 729."""
STEP_FUEL = 4_000_000
"""Work of llguidance's for one token (about 14,000 a millisecond). Its default of 200,000 ends in
the middle of answers to patterns that people write (``(\\w{1,20} ?){1,20}``); with this much every
pattern within ``MOST_NESTED`` that was tried was followed, in 0.1 s a token at worst."""

_TOKEN = re.compile(r"\\[pP]\{[^}]*\}|\\x\{[^}]*\}|\\.|\{[0-9]+(?:,[0-9]*)?\}|.", re.DOTALL)


def check(pattern: str) -> None:
    """Raises ArgumentError, which names the pattern, if no answer can be written under it: it is no
    regular expression, or no regular language, or nothing matches it, or its counts explode."""
    nested = _nested(pattern)
    if nested > MOST_NESTED:
        raise ArgumentError(
            f"the regex {pattern!r} is too large: counts inside one another multiply to {nested:,}",
            hint=f"At most {MOST_NESTED:,}: count once, or use * or + inside.",
        )
    _automaton(pattern)


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches. Raises as ``check`` does.

    >>> matches("[A-Z]{2}|x", "AB"), matches("[A-Z]{2}|x", "ABx")
    (True, False)
    """
    automaton = _automaton(pattern).deep_copy()
    said = list(text.encode("utf-8", "surrogatepass"))
    return bool(automaton.try_consume_tokens(said) == len(said) and automaton.is_accepting())


def unanchored(pattern: str) -> str:
    """The pattern as a part of a larger one: as the whole text must match, ``^`` and ``$`` say
    nothing where they can be true at all, and there they could not.

    >>> unanchored(r"^\\$[^$]+$")
    '(?:)\\\\$[^$]+(?:)'
    """
    return "".join(
        "(?:)" if token in ("^", "$", r"\A", r"\z") and not inside else token
        for token, inside in _tokens(pattern)
    )


@lru_cache(maxsize=256)
def _automaton(pattern: str) -> Any:
    """Follows the pattern byte by byte. What is returned is never moved: take copies."""
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

    try:
        pattern.encode()
    except UnicodeEncodeError:
        raise _refused(pattern, "error: it holds half of a surrogate pair") from None
    whole = f"(?:{pattern})" if pattern.endswith("\\") else pattern  # else it would be left out
    automaton = LLMatcher(
        LLTokenizer("byte"),
        LLMatcher.grammar_from_regex(whole),
        log_level=0,
        limits=LLParserLimits(step_lexer_fuel=STEP_FUEL),
    )
    if automaton.is_error():
        raise _refused(pattern, automaton.get_error())
    first = automaton.deep_copy()
    first.compute_bitmask()
    if first.is_error():
        raise _refused(pattern, first.get_error())
    return automaton


def _refused(pattern: str, reason: str) -> ArgumentError:
    if re.search("look-?around|backreference", reason):
        return ArgumentError(
            f"the regex {pattern!r} uses look-around or back-references",
            hint="Only regular languages can constrain decoding: rewrite it without them.",
        )
    if reason.startswith("NoExtension"):
        return ArgumentError(
            f"no text matches the regex {pattern!r}", hint="No answer could, either."
        )
    if "lexer error" in reason:
        return ArgumentError(
            f"the regex {pattern!r} is too large to be followed", hint="Make its counts smaller."
        )
    said = re.search("error: (.*)", reason)
    return ArgumentError(
        f"the regex {pattern!r} is invalid: {said[1] if said else reason.splitlines()[0]}",
        hint="The whole answer must match; escape special characters with a backslash.",
    )


def _tokens(pattern: str) -> Iterator[tuple[str, bool]]:
    """The pattern in pieces that mean something, and whether each stands in brackets."""
    depth = 0
    before = ""
    for token in _TOKEN.findall(pattern):
        yield token, depth > 0
        if token == "[":
            depth += 1
        elif token == "]" and depth and before not in ("[", "[^"):  # "]" may be the first inside
            depth -= 1
        before = before + token if before == "[" and token == "^" else token


def _nested(pattern: str) -> int:
    """The largest product of counts that stand inside one another; 1 if none do.

    >>> _nested("(a{2}b{3,4}){5}c{1,9}")
    20
    """
    largest = 1
    groups: list[tuple[int, int]] = [(1, 0)]  # of each open group: (largest product, of how many)
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
