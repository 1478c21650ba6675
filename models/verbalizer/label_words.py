"""The words by which the replies of a closed set are scored, besides or instead of their own.

A small model that would answer *Yes* says so more reliably by several words than by one, and a label by
its lower case, as the answers of the worked examples are written, and by words that say the same
(``related_words``). All are scored in the same place, so they cost nothing (docs/lab.md has what each is worth).
"""

from __future__ import annotations

import re
from collections import Counter

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.verbalizer.lexicon import idea_of
from blendfusion.types import Task

_TRUTH = (("Yes", "correct"), ("No", "wrong"))
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*[/,;&|]\s*|\s+(?:and|or)\s+")
_DENIED = re.compile(r"\b(?:not?|non|never|none|without|less|un)\b|n't\b")


def words_of(task: Task) -> tuple[tuple[str, ...], ...]:
    """The words for each canonical answer of the task's closed set, in its order: truth has words of
    ours, a label is written in lower case, and by the names that it lists, or that its meaning does.

    >>> from blendfusion.types import Constraint
    >>> words_of(Task("llm_classify", "", Constraint("choice", options=("World", "Sci/Tech"))))
    (('world',), ('sci/tech', 'sci', 'tech'))
    """
    if task.constraint.kind == "boolean":
        return _TRUTH
    options = closed_set(task.constraint) or ()
    meanings = task.constraint.meanings or ("",) * len(options)
    return tuple(_label(*label) for label in zip(options, meanings, strict=True))


def related_words_of(task: Task) -> tuple[tuple[str, ...], ...]:
    """Words that say the same as each of the labels of a choice, in the order of its answers; none where a label
    names no idea that is known, and none that another label has too. () for other closed sets.

    >>> from blendfusion.types import Constraint
    >>> related_words_of(Task("llm_classify", "", Constraint("choice", options=("film", "novels"))))
    (('film', 'movie', 'cinema', 'actor', 'director'), ())
    """
    if task.constraint.kind != "choice":
        return ()
    own = words_of(task)
    related = [tuple(dict.fromkeys(w for name in names for w in _related(name))) for names in own]
    labels = Counter(
        word for said in zip(own, related, strict=True) for word in {*said[0], *said[1]}
    )
    return tuple(tuple(word for word in words if labels[word] == 1) for words in related)


def _related(name: str) -> tuple[str, ...]:
    """By the last word of a name: what credit cards are is cards."""
    idea = None if _DENIED.search(name) else idea_of(re.split(r"[\s_-]+", name.strip())[-1])
    return idea.words if idea else ()


def _label(option: str, meaning: str) -> tuple[str, ...]:
    named = [*_BETWEEN.split(option), *(_ARTICLE.sub("", m) for m in _BETWEEN.split(meaning))]
    return tuple(dict.fromkeys(_spelled(name) for name in (option, *named) if name.strip()))


def _spelled(name: str) -> str:
    """In lower case, unless it is all capitals, as abbreviations are."""
    return name if name.isupper() and len(name) > 1 else name.lower()
