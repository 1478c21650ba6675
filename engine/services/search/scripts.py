"""Scripts without blanks between words (Chinese, Japanese, Thai, …) in an index of words: each of
their signs is a word, and a query asks for signs side by side."""

from __future__ import annotations

import re

import pyarrow as pa

from blendfusion.services.search.words import CombinedTerms, Phrase, Term, Words

_BLANKLESS = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_PICTURES = "\u2600-\u27bf\U0001f300-\U0001faff"
_SIGN = re.compile(f"[{_BLANKLESS}{_PICTURES}]")
_RUN = re.compile(f"[{_BLANKLESS}{_PICTURES}]+")
_PICTURE = re.compile(f"[{_PICTURES}]")
_LONG_WORD = re.compile(f"[^\\W{_BLANKLESS}]{{101,}}")
_WORD = re.compile(f"[^\\W_]|{_PICTURE.pattern}")
_MOST_PAIRS = 64


def with_words(text: str) -> str:
    """A text whose signs are words; a picture has the letters of its code, since others are no
    words of the index.

    >>> with_words("the 契約 is ☂")
    'the  契  約  is  u2602 '
    """
    return _SIGN.sub(_word, text)


def _word(sign: re.Match[str]) -> str:
    return f" u{ord(sign[0]):x} " if _PICTURE.match(sign[0]) else f" {sign[0]} "


def texts_with_words(texts: pa.Array) -> pa.Array:
    """Texts as they are indexed."""
    found = texts.to_pylist()
    if all(text is None or text.isascii() for text in found):
        return texts
    return pa.array([text and with_words(text) for text in found], texts.type)


def signs_side_by_side(term: Term) -> Term:
    """A query for texts whose signs are words: of a run of signs, any two neighbours may match."""
    if isinstance(term, Phrase):
        return Phrase(with_words(term.text))
    if isinstance(term, CombinedTerms):
        parts = (tuple(map(signs_side_by_side, some)) for some in (term.some, term.all, term.none))
        return CombinedTerms(*parts)
    runs: list[str] = _RUN.findall(term.text)
    if not runs:
        return term
    pairs = [run[at : at + 2] for run in runs for at in range(max(len(run) - 1, 1))]
    neighbours = list(dict.fromkeys(pairs))[:_MOST_PAIRS]
    found: list[Term] = [Phrase(with_words(pair)) for pair in neighbours]
    rest = _RUN.sub(" ", term.text).strip()
    if rest:
        found.append(Words(rest))
    return found[0] if len(found) == 1 else CombinedTerms(some=tuple(found))


def has_words(text: str) -> bool:
    """Whether a text may be meant: it has a letter, a digit or a picture, besides words of more
    than a hundred letters.

    >>> [has_words(text) for text in ("(((", "a" * 5000, "🚲", "C", "契約")]
    [False, False, True, True, True]
    """
    return _WORD.search(_LONG_WORD.sub(" ", text)) is not None
