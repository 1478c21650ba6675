"""The words that score the replies of a closed set, besides or instead of their own.

A small model expresses *Yes* more reliably by several words than by one. It expresses a label more
reliably in lower case, as in the worked examples, and by related words (``lexicon``). All are
scored at the same position, so they cost nothing (benchmarks/lab.md has the worth of each).
"""

from __future__ import annotations

import re
from collections import Counter

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.services.verbalizer.lexicon import idea_of
from blendfusion.types import Task

TRUTH = (("Yes", "correct"), ("No", "wrong"))
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<!\s)(?:\s*+[/,;&|]\s*|\s++(?:and|or)\s+)")
_DENIED = re.compile(r"\b(?:not?|non|never|none|without|less|un)\b|n't\b")


def words_of(task: Task) -> tuple[tuple[str, ...], ...]:
    """The words for each canonical answer of the task's closed set, in its order: fixed words for
    yes and no; a label in lower case, by the names that it lists, or that its meaning lists.

    >>> from blendfusion.types import Constraint
    >>> words_of(Task("llm_classify", "", Constraint("choice", options=("World", "Sci/Tech"))))
    (('world',), ('sci/tech', 'sci', 'tech'))
    """
    if task.constraint.kind == "boolean":
        return TRUTH
    options = closed_set(task.constraint)
    if options is None:  # the points of a scale may have meanings, too
        return ()
    meanings = task.constraint.meanings or ("",) * len(options)
    return tuple(_label(*label) for label in zip(options, meanings, strict=True))


def related_words_of(task: Task) -> tuple[tuple[str, ...], ...]:
    """Related words of each label of a choice, in the order of its answers; none for an unknown
    label, and none shared with another label. () for other closed sets.

    >>> from blendfusion.types import Constraint
    >>> related_words_of(Task("llm_classify", "", Constraint("choice", options=("film", "novels"))))
    (('film', 'movie', 'cinema', 'actor', 'director'), ())
    """
    if task.constraint.kind != "choice":
        return ()
    own = words_of(task)
    related = [
        tuple(dict.fromkeys(w for name in names for w in _related_words(name))) for names in own
    ]
    labels = Counter(
        word for pair in zip(own, related, strict=True) for word in {*pair[0], *pair[1]}
    )
    return tuple(tuple(word for word in words if labels[word] == 1) for words in related)


def _related_words(name: str) -> tuple[str, ...]:
    """The related words of the last word of a name: a credit card is a card."""
    idea = None if _DENIED.search(name) else idea_of(re.split(r"[\s_-]+", name.strip())[-1])
    return idea.words if idea else ()


def _label(option: str, meaning: str) -> tuple[str, ...]:
    named = [*_BETWEEN.split(option), *(_ARTICLE.sub("", m) for m in _BETWEEN.split(meaning))]
    return tuple(dict.fromkeys(_spell(name) for name in (option, *named) if name.strip()))


def _spell(name: str) -> str:
    """In lower case, except abbreviations in capitals."""
    return name if name.isupper() and len(name) > 1 else name.lower()
