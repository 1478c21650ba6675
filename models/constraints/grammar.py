"""Grammars in Lark's form, as llguidance follows and matches them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.models.constraints.regex import STEP_FUEL

_LARGEST = 50_000_000
"""Characters of a grammar, and the work to make its lexer."""
_ITEMS = 200_000
"""Items of a parser's row: the places in the rules that one text may have reached."""


def limits() -> Any:
    """llguidance's limits for large grammars and patterns."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        step_lexer_fuel=STEP_FUEL,
        initial_lexer_fuel=_LARGEST,
        max_grammar_size=_LARGEST,
        max_items_in_row=_ITEMS,
    )


def with_edges(grammar: str, lead: str = "", stop: str = "") -> str:
    """A whole grammar: ``lead``, a query, and ``stop``, which may be left out.

    >>> print(with_edges("query: \\"SELECT 1\\"", "\\n", "<end>"))
    start: "\\n" query "<end>"?
    query: "SELECT 1"
    """
    parts = [json.dumps(lead)] if lead else []
    parts.append("query")
    if stop:
        parts.append(f"{json.dumps(stop)}?")
    return f"start: {' '.join(parts)}\n{grammar}"


def admits(grammar: str, text: str) -> bool:
    """Whether ``text`` is a query of the grammar. Raises ArgumentError for a grammar that
    llguidance cannot follow."""
    automaton = _automaton(grammar).deep_copy()
    data = list(text.encode("utf-8", "replace"))
    return bool(automaton.try_consume_tokens(data) == len(data) and automaton.is_accepting())


@lru_cache(maxsize=4)
def _automaton(grammar: str) -> Any:
    from llguidance import LLMatcher, LLTokenizer

    automaton = LLMatcher(
        LLTokenizer("byte"),
        LLMatcher.grammar_from_lark(with_edges(grammar)),
        log_level=0,
        limits=limits(),
    )
    if automaton.is_error():
        reason = automaton.get_error().splitlines()[0]
        raise ArgumentError(f"the grammar cannot be followed: {reason[:200]}")
    return automaton
