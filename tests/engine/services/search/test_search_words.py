"""The words of a full-text query: every text means something, and operators mean what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.services.search.words import (
    CombinedTerms,
    Phrase,
    Term,
    Words,
    lance_query,
    text_query,
)

READ: dict[str, Term | None] = {
    "gravel bikes": Words("gravel bikes"),
    "  a  or b and not c ": Words("a or b and not c"),
    "the (lab) test": Words("the lab test"),
    '"gravel bike"': Phrase("gravel bike"),
    'a "b c" d': CombinedTerms(some=(Words("a"), Phrase("b c"), Words("d"))),
    "a OR b": CombinedTerms(some=(Words("a"), Words("b"))),
    "a b OR c OR d e": CombinedTerms(some=(Words("a b"), Words("c"), Words("d e"))),
    "a AND b": CombinedTerms(all=(Words("a"), Words("b"))),
    "a AND NOT b": CombinedTerms(all=(Words("a"),), none=(Words("b"),)),
    "a NOT b NOT c": CombinedTerms(all=(Words("a"),), none=(Words("b"), Words("c"))),
    "a AND b OR c": CombinedTerms(some=(CombinedTerms(all=(Words("a"), Words("b"))), Words("c"))),
    "a AND (b OR c)": CombinedTerms(
        all=(Words("a"), CombinedTerms(some=(Words("b"), Words("c")))),
    ),
    "": None,
    " () ": None,
    # What makes no sense as operators is plain words.
    "OR": Words("OR"),
    "Rock AND": Words("Rock AND"),
    "NOT a": Words("NOT a"),
    "(a OR b": Words("a OR b"),
    "a) OR b": Words("a OR b"),
    'a "b': Words("a b"),
    '"" OR ""': Words('"" OR ""'),
}


@pytest.mark.parametrize("text", READ)
def test_what_a_query_asks_for(text: str) -> None:
    assert text_query(text).term == READ[text]


def test_what_a_vector_is_of() -> None:
    """A plain text is itself; of one with operators, what is wanted."""
    assert text_query("Is it (very) late?").text == "Is it (very) late?"
    assert text_query('late AND "flight delay" NOT rail').text == "late flight delay"
    assert text_query("late").plain
    assert not text_query('"late"').plain


@given(st.text(alphabet='ab"() ANDORT\n', max_size=40))
def test_every_text_means_something(text: str) -> None:
    pytest.importorskip("lance", reason="needs the extra 'search'")
    found = text_query(text)
    assert found.plain or found.term is not None
    if found.term is not None:
        lance_query(found.term, "text")


def test_deep_nesting_is_plain_words() -> None:
    assert text_query("(" * 10_000 + "a OR b").plain
    assert text_query("(" * 5_000 + "a OR b" + ")" * 5_000).term is not None
