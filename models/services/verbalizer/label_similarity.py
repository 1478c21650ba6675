"""The similarity of a text and the labels of a choice, beside what the model tells of them.

A small model says little about labels such as *exchange rate*, whose related words the lexicon does
not know; the cosine of label and text tells such subjects. Where the lexicon knows all labels, its
words tell more (benchmarks/lab.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.services.verbalizer.similarity import cosines
from blendfusion.models.services.verbalizer.verbalize import verbalize
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.options import Options
from blendfusion.types import Task


def label_weight(task: Task, options: Options, way: Way | None) -> float:
    """The weight of the similarity of text and label; 0.0 where it does not count: for anything but
    a choice about one text, with meanings or examples, or where the lexicon knows every label.

    >>> from blendfusion.types import Constraint
    >>> way = Way("text", likelihood=1.0, labels=6.5)
    >>> labels = Constraint("choice", options=("exchange rate", "PIN"))
    >>> label_weight(Task("llm_classify", "", labels, ("text",)), Options(), way)
    6.5
    >>> labels = Constraint("choice", options=("sports", "politics"))
    >>> label_weight(Task("llm_classify", "", labels, ("text",)), Options(), way)
    0.0
    """
    constraint = task.constraint
    if way is None or constraint.kind != "choice" or constraint.meanings or task.examples:
        return 0.0
    if task.aggregate or task.images or len(task.columns) > 1:
        return 0.0
    if not options.wordings or options.calibration == "none" or _all_known(task):
        return 0.0
    return way.labels


def label_similarities(task: Task, texts: Sequence[str]) -> list[list[float]]:
    """The cosines of each text and of every label, in the order of the answers."""
    return cosines(texts, closed_set(task.constraint) or ())


def _all_known(task: Task) -> bool:
    """Whether the lexicon has words for each label beyond its own."""
    words = verbalize(task)
    pairs = zip(words.own, words.related, strict=True)
    return all({*related} - {*own} for own, related in pairs)
