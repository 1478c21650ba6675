"""Large initials over several lines, which begin the first word beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.services.documents.blocks import union
from blendfusion.services.documents.words import Word, typical_height

_LEAST = 20.0
_TIMES = 1.8
"""The least height of an initial: in points, and in heights of the text."""


def join_initials(words: Sequence[Word]) -> Sequence[Word]:
    """Words, with large initials in those that they begin."""
    large = [at for at, w in enumerate(words) if w.height > _LEAST and _is_initial(w.text)]
    if not large:
        return words
    usual = typical_height(words)
    found: list[Word | None] = list(words)
    for at in large:
        initial = words[at]
        beside = [
            (word.middle, word.box[0], other)
            for other, word in enumerate(words)
            if initial.box[1] <= word.middle <= initial.box[3]
            and word.height < initial.height / _TIMES
            and -usual < word.box[0] - initial.box[2] < usual
        ]
        first = min(beside, default=None)
        if initial.height < _TIMES * usual or first is None:
            continue
        if max(beside)[0] - first[0] < 0.5 * usual or not words[first[2]].text[0].isalpha():
            continue
        word = words[first[2]]
        text = f"{initial.text}{word.text}"
        if _are_apart(initial.text, word.text, words):
            text = f"{initial.text} {word.text}"
        found[first[2]] = replace(word, text=text, box=_beside(initial, word))
        found[at] = None
    return [word for word in found if word is not None]


def _beside(initial: Word, word: Word) -> tuple[float, float, float, float]:
    """The place of the word, from where its initial begins."""
    return union([(initial.box[0], word.box[1], initial.box[2], word.box[3]), word.box])


def _is_initial(text: str) -> bool:
    return len(text.strip("\"'„“”«»")) == 1 and text[-1].isalpha() and text.isupper()


def _are_apart(initial: str, word: str, words: Sequence[Word]) -> bool:
    """Whether an initial is a word of its own: the page has the next word, and not both as one."""
    if initial.upper() not in ("A", "I", "O", "E", "Y"):
        return False
    known = {other.text.lower().strip(".,;:!?") for other in words}
    rest = [other for other in words if other.text.lower() == word.lower()]
    return len(rest) > 1 and f"{initial}{word}".lower() not in known
