"""The words that score the replies of a closed set: ``verbalize`` is how back ends ask for them.

``label_words`` has the words of labels and of yes and no, ``lexicon`` their related words, and
``parse_question`` finds the idea in a yes/no question.
"""

from __future__ import annotations

from dataclasses import dataclass

from blendfusion.models.services.verbalizer.label_words import related_words_of, words_of
from blendfusion.models.services.verbalizer.lexicon import Idea
from blendfusion.models.services.verbalizer.parse_question import question_idea
from blendfusion.types import Task


@dataclass(frozen=True, slots=True)
class Verbalization:
    """The words of one task. ``own`` and ``related``: for each canonical answer, in its order, the
    words that stand for it and those of its subject, none of which another answer shares; both are
    empty where the answers are no closed set. ``idea``: what a yes/no question asks for, by the
    words of the idea and of its opposite; None where the question's form or the idea is unknown."""

    own: tuple[tuple[str, ...], ...]
    related: tuple[tuple[str, ...], ...]
    idea: Idea | None


def verbalize(task: Task) -> Verbalization:
    """The words that score the replies of a task.

    >>> from blendfusion.types import Constraint
    >>> verbalize(Task("llm_filter", "Is it about sports?", Constraint("boolean"))).idea.words[:2]
    ('sports', 'game')
    >>> labels = Constraint("choice", options=("Film", "Novels"))
    >>> verbalize(Task("llm_classify", "", labels))
    Verbalization(own=(('film',), ('novels',)), related=(('film', 'movie', 'cinema', 'actor', 'director'), ()), idea=None)
    """
    own = words_of(task)
    related = related_words_of(task) or ((),) * len(own)
    return Verbalization(own, related, question_idea(task))
