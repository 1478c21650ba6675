"""The words by which the replies of a closed set are scored, besides or instead of their own.

A small model that would answer *Yes* says so more reliably by several words than by one, and a label by
its lower case, as the answers of the worked examples are written: the scores stand in the same place, so
they cost nothing (docs/answers.md has what each is worth).
"""

from __future__ import annotations

import re

from blendfusion.models.constraint import closed_set
from blendfusion.types import Task

_TRUTH = (("Yes", "correct"), ("No", "wrong"))
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*[/,;&|]\s*|\s+(?:and|or)\s+")


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


def _label(option: str, meaning: str) -> tuple[str, ...]:
    named = [*_BETWEEN.split(option), *(_ARTICLE.sub("", m) for m in _BETWEEN.split(meaning))]
    return tuple(dict.fromkeys(_spelled(name) for name in (option, *named) if name.strip()))


def _spelled(name: str) -> str:
    """In lower case, unless it is all capitals, as abbreviations are."""
    return name if name.isupper() and len(name) > 1 else name.lower()
