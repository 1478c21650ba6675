"""Regular expressions as grammars of llama.cpp's: the same texts, or no grammar at all."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark

from blendfusion.models.constraints.constraint import regex_of
from blendfusion.models.services.http.gbnf import gbnf_literal, gbnf_of
from blendfusion.types import Constraint

BYTES = LLTokenizer("byte")


def admits(grammar: str, text: str) -> bool:
    matcher = LLMatcher(BYTES, LLMatcher.grammar_from_lark(gbnf_to_lark(grammar)))
    assert not matcher.is_error(), matcher.get_error()
    tokens = BYTES.tokenize_str(text)
    return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())


ATOMS = st.sampled_from(["a", "b", "-", r"\.", r"\d", "[ab]", "[^a]", r"[a\]-]", '"', "é"])
TIMES = st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{1,}", "??"])


def repeated(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = inner.map(lambda pattern: f"({pattern})") | inner.map(lambda p: f"(?:{p})")
    return st.lists(st.tuples(grouped | ATOMS, TIMES).map("".join), max_size=3).map("".join)


PATTERNS = st.recursive(
    ATOMS, lambda inner: repeated(inner) | st.lists(inner, max_size=3).map("|".join), max_leaves=6
)


@given(PATTERNS, st.lists(st.text('ab-.1"é]', max_size=5), max_size=8))
def test_a_grammar_admits_what_its_pattern_does(pattern: str, texts: list[str]) -> None:
    grammar = gbnf_of(pattern)
    assert grammar is not None
    for text in texts:
        assert admits(grammar, text) == (re.fullmatch(pattern, text) is not None), grammar


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("integer", ["0", "-7", "123456789012345678"], ["", "007", "1.5", "+1"]),
        ("number", ["0", "-0.5", "12.25"], ["1.", ".5", "1e3"]),
        (
            "date",
            ["2024-02-29", "1815-06-09", "0400-02-29"],
            ["2023-02-29", "1900-02-29", "0000-01-01"],
        ),
        ("timestamp", ["2024-02-29T23:59:59"], ["2024-02-29", "2024-02-29T24:00:00"]),
    ],
)
def test_our_own_kinds_have_grammars(kind: str, good: list[str], bad: list[str]) -> None:
    grammar = gbnf_of(regex_of(Constraint(kind)))  # type: ignore[arg-type]
    assert grammar is not None
    assert [admits(grammar, text) for text in [*good, *bad]] == [True] * len(good) + [False] * len(
        bad
    )


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)a",
        r"\bword",
        r"(?=a)a",
        r"a++",
        r"a{2}{3}",
        r"\p{L}",
        r"[a[b]]",
        r"[a&&b]",
        "a^b",
        "(a",
        "a)",
        "[a",
        "a\\",
        "*a",
        r"(a)\1",
    ],
)
def test_what_a_grammar_cannot_say_has_none(pattern: str) -> None:
    assert gbnf_of(pattern) is None


@pytest.mark.parametrize("text", ['say "no"', "back\\slash", "two\nlines", "é and 中"])
def test_literals_are_themselves_and_nothing_else(text: str) -> None:
    grammar = f"root ::= {gbnf_literal(text)}"
    assert admits(grammar, text)
    assert not admits(grammar, text + "x")
